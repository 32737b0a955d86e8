//! Delegations that would help and are not granted.

use benchmaster_record::model::{OpenFlag, Step};

use super::tools::{all_execute_ns, digits, execute_ns, ops, shares_files, without_rpcs};
use crate::prelude::*;

/// Calls that a delegation would have saved, and their share of all.
const LEAST_CALLS: u64 = 500;
const LEAST_SHARE: f64 = 0.3;
/// Delegations for each file, below which none were of use.
const FEW: f64 = 0.1;

pub(super) const DETECTOR: Detector = Detector { id: "delegation-not-granted", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    let opened: u64 = measured.of_kind(OperationKind::Open).map(|series| series.total.count).sum();
    let locked: u64 = measured.of_kind(OperationKind::Lock).map(|series| series.total.count).sum();
    if opened + locked == 0 {
        return Verdict::Irrelevant;
    }
    let Some((rpc, phase)) = measured.rpcs() else {
        return without_rpcs(measured);
    };
    if !rpc.connection.version.is_some_and(NfsVersion::has_state) {
        return Verdict::Irrelevant;
    }
    // Our own client wants them only when it keeps what they are for.
    let keeps_nothing = |url: &str| url.starts_with("nfs://") && !url.contains("cache=linux");
    if measured.run.service.as_ref().is_some_and(|service| keeps_nothing(&service.url)) {
        return Verdict::Irrelevant;
    }
    let clients = u64::from(rpc.connection.clients.max(1));
    let files: u64 = measured.recording.filesets.iter().map(|files| files.files).sum::<u64>()
        * if shares_files(measured) { clients } else { 1 };
    // The kernel's client does not say what it was granted; what it gave back it had.
    let granted: u64 = match rpc.source {
        RpcSource::Client => {
            rpc.phases.iter().filter_map(|phase| phase.events.get("delegation-granted")).sum()
        }
        RpcSource::Kernel => ops(measured, &["DELEGRETURN"]),
    };
    let locks = ["LOCK", "LOCKU", "FREE_STATEID"];
    let again = |name: &str| ops(measured, &[name]).saturating_sub(files.max(1));
    let (opens, closes) = (again("OPEN"), again("CLOSE"));
    let saved = ops(measured, &locks) + opens + closes;
    let all = phase.total().ops;
    let none = (granted as f64) < FEW * files.max(1) as f64;
    if !none || saved < LEAST_CALLS || (saved as f64) < LEAST_SHARE * all as f64 {
        return Verdict::Clear;
    }
    let rule = failed(measured);
    let part = |name: &str, again: u64| {
        execute_ns(measured, &[name]) as f64 * share(again as f64, ops(measured, &[name]) as f64)
    };
    let took = execute_ns(measured, &locks) as f64 + part("OPEN", opens) + part("CLOSE", closes);
    let what = format!(
        "{} of {all} calls open, close or lock files that a client could keep to itself with a delegation, but none was granted: {}.",
        percent(share(saved as f64, all as f64)),
        rule.why
    );
    let finding = Finding::new(rule.confidence, what)
        .advised(case("delegation-not-granted", rule.remedy))
        .with([
            Evidence::number("calls that a delegation would have saved", saved as f64),
            Evidence::number("delegations granted, as far as the client tells", granted as f64),
            Evidence::number("OPEN", ops(measured, &["OPEN"]) as f64),
            Evidence::number("LOCK", ops(measured, &["LOCK"]) as f64),
            Evidence::number("files", files as f64),
        ])
        .costs(share(took, all_execute_ns(measured) as f64));
    Verdict::Found(finding)
}

/// Which of the rules failed.
struct Rule {
    why: String,
    remedy: &'static str,
    confidence: Confidence,
}

fn failed(measured: &Measured<'_>) -> Rule {
    if measured.run.parameters.delegations == Some(false) {
        return Rule {
            why: "the study switches them off".into(),
            remedy: "off",
            confidence: Confidence::Certain,
        };
    }
    if let Some((up, confirmed)) = called_back(measured).filter(|(up, confirmed)| up < confirmed) {
        return Rule {
            why: format!(
                "the server cannot call back {} of {} clients",
                digits(confirmed - up),
                digits(confirmed)
            ),
            remedy: "callback",
            confidence: Confidence::Certain,
        };
    }
    let steps = measured
        .workload
        .iter()
        .flat_map(|workload| &workload.groups)
        .flat_map(|group| group.setup.iter().chain(&group.flow));
    let (mut reads, mut writes) = (false, false);
    for step in steps {
        opens(step, &mut reads, &mut writes);
    }
    match (reads, writes) {
        (false, true) => Rule {
            why: "all files are opened for writing".into(),
            remedy: "opened-for-writing",
            confidence: Confidence::Likely,
        },
        (true, true) => Rule {
            why: "the files are also opened for writing".into(),
            remedy: "also-written",
            confidence: Confidence::Possible,
        },
        _ => Rule {
            why:
                "the files are opened for reading only, so the server does not grant any, or cannot call back"
                    .into(),
            remedy: "not-granted",
            confidence: Confidence::Likely,
        },
    }
}

/// Whether a step and those in it open for reading only, or for writing.
fn opens(step: &Step, reads: &mut bool, writes: &mut bool) {
    if matches!(step.op, Some(OperationKind::Open | OperationKind::Create)) {
        let writing = step.flags.iter().any(|flag| matches!(flag, OpenFlag::Write | OpenFlag::WriteOnly));
        *(if writing || step.op == Some(OperationKind::Create) { &mut *writes } else { &mut *reads }) = true;
    }
    step.flow.iter().for_each(|step| opens(step, reads, writes));
}

/// Clients that the kernel's server can call back, and all that are confirmed.
fn called_back(measured: &Measured<'_>) -> Option<(f64, f64)> {
    let host = measured.server_host()?;
    let last = |metric: &str| {
        let points = &host.samples.find("nfsd", metric, "")?.points;
        let within = |time_ns: i64| time_ns <= measured.recording.length_ns as i64;
        Some(points.iter().rfind(|point| within(point.time_ns))?.value)
    };
    Some((last("clients_callback_up")?, last("clients_confirmed")?))
}

#[cfg(test)]
mod tests {
    use benchmaster_record::samples::Kind;

    use super::super::made;
    use super::*;

    fn recording(locks: u64, source: RpcSource) -> Recording {
        let mut recording = made::recording("locks", 8.0);
        made::series(&mut recording, OperationKind::Open, 0, &[(200_000, 1_000)]);
        made::series(&mut recording, OperationKind::Lock, 0, &[(200_000, 10_000)]);
        made::files(&mut recording, 1_000, 4_096_000);
        let us = 200.0;
        made::rpcs(
            &mut recording,
            source,
            "4.1",
            &[
                ("OPEN", 1_000, 300, 0.0, us),
                ("CLOSE", 1_000, 300, 0.0, us),
                ("READ", 10_000, 4_200, 0.0, us),
                ("GETATTR", 10_001, 300, 0.0, us),
                ("LOCK", locks, 300, 0.0, us),
                ("LOCKU", locks, 300, 0.0, us),
            ],
        );
        recording
    }

    #[test]
    fn locks_that_a_client_could_keep() {
        let Verdict::Found(found) = made::judge(recording(10_000, RpcSource::Kernel), detect) else {
            panic!()
        };
        assert!(found.what.starts_with("48 % of 42001 calls"), "{}", found.what);
        assert!((found.cost.unwrap().share - 20_000.0 / 42_001.0).abs() < 1e-6);
        assert_eq!(made::judge(recording(249, RpcSource::Kernel), detect), Verdict::Clear);
        assert_eq!(made::judge(recording(4_000, RpcSource::Kernel), detect), Verdict::Clear);
        // Whoever gives delegations back was granted some.
        let mut returned = recording(10_000, RpcSource::Kernel);
        let phase = returned.rpc.as_mut().unwrap().phases.last_mut().unwrap();
        let mut row = phase.rows[0].clone();
        (row.operation, row.ops) = ("DELEGRETURN".into(), 99);
        phase.rows.push(row);
        assert!(matches!(made::judge(returned.clone(), detect), Verdict::Found(_)));
        returned.rpc.as_mut().unwrap().phases.last_mut().unwrap().rows.last_mut().unwrap().ops = 100;
        assert_eq!(made::judge(returned, detect), Verdict::Clear);
        // Our own client tells what it was granted.
        let mut granted = recording(10_000, RpcSource::Client);
        assert!(matches!(made::judge(granted.clone(), detect), Verdict::Found(_)));
        made::events(&mut granted, &[("delegation-granted", 1_000)]);
        assert_eq!(made::judge(granted, detect), Verdict::Clear);
    }

    #[test]
    fn the_rule_that_failed_is_told() {
        let mut recording = recording(10_000, RpcSource::Kernel);
        made::agents(&mut recording, 2);
        for (metric, value) in [("clients_callback_up", 1.0), ("clients_confirmed", 2.0)] {
            made::sample(
                &mut recording,
                "server",
                ("nfsd", metric, ""),
                Kind::Gauge,
                &[(0.0, value), (8.0, value)],
            );
        }
        let Verdict::Found(found) = made::judge(recording, detect) else { panic!() };
        assert!(found.what.contains("the server cannot call back 1 of 2 clients"), "{}", found.what);
        assert_eq!(found.confidence, Confidence::Certain);
    }

    #[test]
    fn other_versions_and_nothing_to_delegate() {
        let mut v3 = recording(10_000, RpcSource::Kernel);
        if let Some(rpc) = &mut v3.rpc {
            rpc.connection.version = Some(NfsVersion::V3);
        }
        assert_eq!(made::judge(v3, detect), Verdict::Irrelevant);
        assert_eq!(made::judge(made::recording("read", 1.0), detect), Verdict::Irrelevant);
    }
}
