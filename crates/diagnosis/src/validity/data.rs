//! Checks of what was read and written: wrong data, failed operations, data that never reached the server.

use std::collections::BTreeMap;

use benchmaster_record::environment::TargetEnvironment;
use benchmaster_record::model::{Claim, OpenFlag, Step, Workload};
use benchmaster_record::recording::PhaseTiming;

use super::rule::all_of_it;
use crate::prelude::*;

/// Runs that failed by it are compared by [`crate::results::doubts::failed`].
pub(crate) static CORRUPTION: Rule = Rule {
    check: |s| {
        let message = wrong_data(s.recording.corruption.as_ref()?);
        failed(s, CheckKind::Corruption, Severity::Invalid, message, [])
    },
    finding: Follows::Comparison,
    ..Rule::of(CheckKind::Corruption)
};

/// The sentence about data that a verification found wrong.
pub(crate) fn wrong_data(first: &str) -> String {
    format!("Wrong data were read: {}.", first.trim_end_matches('.'))
}

pub(crate) static ERRORS: Rule = Rule {
    check: errors,
    finding: Follows::Finding(Consequence {
        numbers: &[
            ("measured", "operations that failed in the measured phase"),
            ("outside", "operations that failed before and after"),
        ],
        cost: all_of_it,
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::Errors)
};

fn errors(s: Subject<'_>) -> Option<Check> {
    let measured: u64 = s.recording.series.iter().map(|series| series.total.errors).sum();
    // What the server has lost cannot be closed: the witness says so.
    let lost = s.recording.witness.as_ref().is_some_and(|witness| witness.missing() > 0);
    let around = |p: &&PhaseTiming| p.phase != Phase::Measure && !(lost && p.phase == Phase::TearDown);
    let around: u64 = s.recording.phases.iter().filter(around).map(|p| p.errors).sum();
    if measured + around == 0 {
        return None;
    }
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in s.recording.series.iter().flat_map(|series| &series.errors) {
        *names.entry(name).or_default() += count;
    }
    let mut kinds: Vec<String> = names.iter().map(|(name, count)| format!("{count} × {name}")).collect();
    if around > 0 {
        kinds.push(format!("{around} outside the measured phase"));
    }
    let first = s.recording.error_details.first();
    let first = first.map_or_else(String::new, |first| format!("; first: {}", first.trim_end_matches('.')));
    let message = format!("{} operations failed ({}){first}.", measured + around, kinds.join(", "));
    let evidence =
        [Evidence::number("measured", measured as f64), Evidence::number("outside", around as f64)];
    failed(s, CheckKind::Errors, Severity::Invalid, message, evidence)
}

pub(crate) static FILE_SYSTEM_FULL: Rule = Rule {
    check: file_system_full,
    finding: Follows::Finding(Consequence {
        numbers: &[
            ("refused", "operations refused for lack of space"),
            ("free", "bytes free at the end"),
            ("total", "bytes of the file system"),
        ],
        cost: all_of_it,
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::FileSystemFull)
};

fn file_system_full(s: Subject<'_>) -> Option<Check> {
    const KIND: CheckKind = CheckKind::FileSystemFull;
    let full = |name: &str| name == "ENOSPC" || name == "EDQUOT";
    let errors = s.recording.series.iter().flat_map(|series| &series.errors);
    let refused: u64 = errors.filter(|(name, _)| full(name)).map(|(_, count)| count).sum();
    if refused > 0 {
        let message =
            format!("The file system was full: {refused} operations were refused for lack of space.");
        return failed(s, KIND, Severity::Invalid, message, [Evidence::number("refused", refused as f64)]);
    }
    let total = s.environment.target.as_ref()?.total_bytes as f64;
    let free = s.recording.host.free_after? as f64;
    if total == 0.0 || free >= total * 0.01 {
        return None;
    }
    let message = format!(
        "The file system is nearly full ({} of {} free): allocation may be slow.",
        size(free),
        size(total)
    );
    failed(
        s,
        KIND,
        Severity::Warning,
        message,
        [Evidence::bytes("free", free), Evidence::bytes("total", total)],
    )
}

pub(crate) static CACHED_READS: Rule = Rule {
    check: |s| {
        if s.workload.claims == Claim::Cache {
            return None;
        }
        // Where reads over the wire were counted no guess is needed.
        match s.recording.rpc.as_ref().and_then(|rpc| rpc.phase(Phase::Measure)) {
            Some(phase) => {
                let reads = phase.rows.iter().filter(|row| row.operation.starts_with("READ"));
                never_on_the_wire(s, reads.map(|row| row.bytes_received).sum())
            }
            None => may_be_cached(s),
        }
    },
    finding: Follows::Finding(Consequence {
        could: |measured| when(measured.bytes(OperationKind::Read) > 0),
        numbers: &[
            ("read", "bytes read by the workload"),
            ("cached_share", "share of them that a cache answered"),
            ("data_set", "bytes of the data set"),
            ("memory", "memory of the host"),
            ("passes", "times that the data set was read"),
        ],
        cost: |failed| {
            let cached = failed.number("cached_share")?;
            Some(in_doubt(cached, failed.number("passes").unwrap_or(1.0)))
        },
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::CachedReads)
};

/// What was read and did not go over the wire came from a cache: the user-space client's own, or the kernel client's.
fn never_on_the_wire(s: Subject<'_>, wire: u64) -> Option<Check> {
    let read = read(s);
    let cached = read.saturating_sub(wire);
    if cached * 20 <= read {
        return None;
    }
    let share = cached as f64 / read as f64;
    let message = format!(
        "Reads came from the client's cache: {} of {} never went over the wire.",
        percent(share),
        size(read as f64)
    );
    let evidence = [Evidence::bytes("read", read as f64), Evidence::number("cached_share", share)];
    failed(s, CheckKind::CachedReads, Severity::Warning, message, evidence)
}

/// What may have come from the page cache of this host.
fn may_be_cached(s: Subject<'_>) -> Option<Check> {
    // Where memory is the storage there is no cache to be mistaken for it.
    let memory_is_storage = s.environment.target.as_ref().is_some_and(TargetEnvironment::is_memory);
    let direct = steps(s.workload).any(|step| step.flags.contains(&OpenFlag::Direct));
    let over_the_wire = s.service.is_some_and(|service| service.url.contains("://"));
    if memory_is_storage || direct || over_the_wire {
        return None;
    }
    let read = read(s);
    let data: u64 = s.recording.filesets.iter().map(|facts| facts.bytes).sum();
    let memory = s.environment.memory_total?;
    if read == 0 || data == 0 || data >= memory {
        return None;
    }
    let cached: Option<u64> = s.recording.filesets.iter().map(|facts| facts.cached_bytes).sum();
    let share = cached.map(|cached| cached as f64 / data as f64);
    let passes = read as f64 / data as f64;
    if share.is_some_and(|share| share < 0.05) && passes <= 1.0 {
        return None;
    }
    let known = match share {
        Some(share) => format!("{} of it was cached at the start", percent(share)),
        None => "how much of it was cached is not known".into(),
    };
    let message = format!(
        "Reads may have come from this host's page cache: the data set ({}) is smaller than its memory ({}), {known}, and \
         it was read {passes:.1} times, so that {} of the reads may have come from there.",
        size(data as f64),
        size(memory as f64),
        percent(in_doubt(share.unwrap_or(0.0), passes))
    );
    let evidence = [
        Evidence::bytes("data_set", data as f64),
        Evidence::bytes("memory", memory as f64),
        Evidence::number("cached_share", share.unwrap_or(f64::NAN)),
        Evidence::number("passes", passes),
    ];
    failed(s, CheckKind::CachedReads, Severity::Warning, message, evidence)
}

/// The share of reads that a cache may have answered: what was there, and what is read again.
fn in_doubt(cached: f64, passes: f64) -> f64 {
    cached.max(1.0 - 1.0 / passes.max(1.0))
}

fn read(s: Subject<'_>) -> u64 {
    let reads = s.recording.series.iter().filter(|series| series.key.operation == OperationKind::Read);
    reads.map(|series| series.total.bytes).sum()
}

fn steps(workload: &Workload) -> impl Iterator<Item = &Step> {
    let groups = workload.groups.iter();
    groups.flat_map(|group| group.setup.iter().chain(benchmaster_record::model::leaves(&group.flow)))
}

pub(crate) static UNFLUSHED_WRITES: Rule = Rule {
    check: unflushed_writes,
    finding: Follows::Finding(Consequence {
        could: |measured| when(measured.bytes(OperationKind::Write) > 0),
        numbers: &[
            ("flush_s", "time of the flush after the measured phase"),
            ("measured_s", "length of the measured phase"),
        ],
        cost: |failed| {
            let (flush, measured) = (failed.number("flush_s")?, failed.number("measured_s")?);
            Some(flush / (flush + measured))
        },
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::UnflushedWrites)
};

fn unflushed_writes(s: Subject<'_>) -> Option<Check> {
    if s.workload.claims == Claim::Cache {
        return None;
    }
    let flush =
        s.recording.phases.iter().find(|phase| phase.phase == Phase::TearDown && phase.operations > 0)?;
    let (flush, measured) =
        ((flush.end_ns - flush.start_ns) as f64 / 1e9, s.recording.length_ns as f64 / 1e9);
    let written = s.recording.series.iter().any(|series| series.key.operation == OperationKind::Write);
    if !written || flush < 0.1 * measured {
        return None;
    }
    let message = format!(
        "Written data were still in the client's cache when the measured phase ended: flushing them took {flush:.2} s after \
         {measured:.2} s; the throughput is that of the cache."
    );
    let evidence = [Evidence::seconds("flush_s", flush), Evidence::seconds("measured_s", measured)];
    failed(s, CheckKind::UnflushedWrites, Severity::Warning, message, evidence)
}
