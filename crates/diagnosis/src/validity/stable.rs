//! How much of what was written without synchronisation reached stable storage while it was measured.

use benchmaster_record::environment::TargetEnvironment;
use benchmaster_record::model::Claim;
use benchmaster_record::results::ServedBy;

use super::burst::unsynchronised;
use crate::prelude::*;

/// From this share on the rate is that of the storage.
const NEARLY_ALL: f64 = 0.95;
/// Below it the rate is mostly that of memory.
const LITTLE: f64 = 0.5;
/// Fewer bytes say nothing of a rate.
const LEAST_BYTES: u64 = 1 << 20;

pub(crate) static UNSTABLE_WRITES: Rule = Rule {
    check: unstable_writes,
    finding: Follows::Finding(Consequence {
        could: |measured| when(measured.bytes(OperationKind::Write) > 0),
        numbers: &[
            ("written", "bytes written without synchronisation"),
            ("stable", "of them on stable storage, at most"),
            ("stable_share", "their share"),
            ("commits", "COMMITs meanwhile"),
        ],
        cost: |failed| Some(1.0 - failed.number("stable_share")?),
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::UnstableWrites)
};

/// What became of written bytes.
struct Stable {
    /// The most that were on stable storage in the end.
    most: u64,
    /// What it is known from.
    how: &'static str,
    commits: Option<u64>,
}

fn unstable_writes(s: Subject<'_>) -> Option<Check> {
    let labels = unsynchronised(s.workload);
    let series = s.recording.series.iter();
    let written: u64 = series
        .filter(|series| series.key.operation == OperationKind::Write)
        .filter(|series| labels.contains(&(&*series.key.group, &*series.key.label)))
        .map(|series| series.total.bytes)
        .sum();
    if written < LEAST_BYTES || memory_is_storage(s) {
        return None;
    }
    let stable = stable(s, written)?;
    let share = stable.most.min(written) as f64 / written as f64;
    if share >= NEARLY_ALL {
        return None;
    }
    let message = format!(
        "{} were written without synchronisation, and at most {} of them ({}) reached stable storage while it was measured ({}).",
        size(written as f64),
        size(stable.most.min(written) as f64),
        percent(share),
        stable.how
    );
    let severity = match s.workload.claims {
        Claim::Cache => Severity::Note,
        _ if share < LITTLE => Severity::Warning,
        _ => Severity::Note,
    };
    let evidence = [
        Evidence::bytes("written", written as f64),
        Evidence::bytes("stable", stable.most.min(written) as f64),
        Evidence::number("stable_share", share),
        Evidence::number("commits", stable.commits.map_or(f64::NAN, |commits| commits as f64)),
    ];
    failed(s, CheckKind::UnstableWrites, severity, message, evidence)
}

/// Where the data are as stable in memory as they will ever be.
fn memory_is_storage(s: Subject<'_>) -> bool {
    s.service.is_some_and(|service| service.server == ServedBy::Embedded)
        || s.environment.target.as_ref().is_some_and(TargetEnvironment::is_memory)
}

/// `None` where nothing was counted.
fn stable(s: Subject<'_>, written: u64) -> Option<Stable> {
    let Some(rpc) = &s.recording.rpc else {
        let most = s.recording.host.written_back?;
        return Some(Stable { most, how: "what the kernel wrote back", commits: None });
    };
    let phase = rpc.phase(Phase::Measure)?;
    let of = |name: &str| phase.row(name).map_or((0, 0), |row| (row.ops, row.bytes_sent));
    let ((_, sent), (commits, _)) = (of("WRITE"), of("COMMIT"));
    if mounted_synchronously(s) {
        return Some(Stable {
            most: sent.min(written),
            how: "what stable WRITEs sent",
            commits: Some(commits),
        });
    }
    let (most, how) = match commits {
        0 => (0, "no COMMIT was made, and the WRITEs asked for none"),
        _ => (sent, "what WRITEs sent; COMMITs made a part of it stable"),
    };
    Some(Stable { most, how, commits: Some(commits) })
}

/// Whether the mount makes each WRITE stable.
fn mounted_synchronously(s: Subject<'_>) -> bool {
    let listed = |options: &str| {
        options.split([',', '&']).any(|one| matches!(one, "sync" | "sync=file" | "sync=data" | "noac"))
    };
    let of_service =
        s.service.and_then(|service| service.url.split_once('?')).map(|(_, options)| listed(options));
    of_service.unwrap_or_else(|| s.environment.target.as_ref().is_some_and(|target| listed(&target.options)))
}
