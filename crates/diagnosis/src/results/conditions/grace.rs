//! Waiting for a server's grace period.

use crate::prelude::*;
use crate::validity::rule::in_lab;

pub(crate) static RULE: Rule = Rule {
    check,
    remedy: Some(|check| match check.number("restarted") {
        Some(restarted) if restarted > 0.0 => case("grace-period", "restart"),
        _ => Remedy::default(),
    }),
    finding: Follows::Detector(detect),
    ..Rule::of(CheckKind::GracePeriod)
};

const IN_GRACE: Consequence = Consequence {
    could: in_lab,
    numbers: &[("longest_ns", "longest open, create or lock")],
    cost: |failed| {
        let length = failed.measured.recording.length_ns.max(1) as f64;
        Some(failed.number("longest_ns")? / length)
    },
    ..Consequence::CERTAIN
};

/// By the server of a lab.
fn check(s: Subject<'_>) -> Option<Check> {
    let (before, after) = s.lab?.server.as_ref()?;
    let restarted = before.restarted(after) == Some(true);
    let began = match (before.grace_ended, before.lock_grace_ended) {
        (Some(false), _) => {
            "was in its grace period when the measured phase began, and refuses new opens and locks until it ends"
        }
        (_, Some(false)) => {
            "was in its lock manager's grace period when the measured phase began, and refuses new locks until it ends"
        }
        _ if restarted => {
            "was restarted in the measured phase, and clients reclaimed their opens and locks; it refuses new ones during \
             its grace period"
        }
        _ => return None,
    };
    let series = s.recording.series.iter().filter(|series| TAKES_STATE.contains(&series.key.operation));
    let longest = series.filter_map(|series| Some(series.total.latency.decode().ok()?.max())).max();
    let waited = match longest {
        Some(ns) if ns > 500_000_000 => format!(": the longest waited {:.1} s", ns as f64 / 1e9),
        _ => String::new(),
    };
    let message = format!("The server {began}{waited}.");
    let evidence = [
        Evidence::nanoseconds("longest_ns", longest.unwrap_or(0) as f64),
        Evidence::number("restarted", f64::from(u8::from(restarted))),
    ];
    failed(s, CheckKind::GracePeriod, Severity::Warning, message, evidence)
}

/// Operations that wait for the end of a grace period.
const TAKES_STATE: [OperationKind; 3] = [OperationKind::Open, OperationKind::Create, OperationKind::Lock];

/// Shortest pause after NFS4ERR_GRACE, in seconds: Linux (`NFS4_POLL_RETRY_MIN`) and our own client wait as long at first.
const PAUSE: f64 = 0.1;

/// Calls by which the kernel's client says that it has back what it had: of version 4.1 and later, of 4.0.
const HAD_BACK: [&str; 2] = ["RECLAIM_COMPLETE", "SETCLIENTID_CONFIRM"];

/// Calls that a server in its grace period refuses.
const REFUSED: [&str; 3] = ["OPEN", "OPEN_NOATTR", "LOCK"];

/// Errors for each worker that a recovery brings without a grace period: one of its session, one of its state.
const OF_RECOVERY: u64 = 2;

/// An open or lock that takes so long waited for something, in seconds: after a grace period pauses of 0.1, 0.2, 0.4 and 0.8 s.
const WAITED: f64 = 1.0;

/// By the stored check of a lab's server, else by how often our client had to wait for it, or by the errors of the kernel's.
fn detect(measured: &Measured<'_>) -> Verdict {
    if stored(measured, CheckKind::GracePeriod).is_some() {
        return RULE.follows(&IN_GRACE, measured);
    }
    let Some((rpc, phase)) = measured.rpcs() else { return Verdict::Irrelevant };
    if !rpc.connection.version.is_some_and(NfsVersion::has_state) {
        return Verdict::Irrelevant;
    }
    let waits = phase.events.get("grace").copied().unwrap_or(0);
    if waits == 0 {
        return match rpc.source {
            RpcSource::Client => RULE.follows(&IN_GRACE, measured),
            RpcSource::Kernel => {
                inferred(measured, phase).map_or_else(|| RULE.follows(&IN_GRACE, measured), Verdict::Found)
            }
        };
    }
    let took = phase.total().execute_ns;
    let waited = waits as f64 * PAUSE;
    let what = format!(
        "The server answered {} that it was in its grace period; each time the call was retried after {PAUSE} s or more.",
        plural(waits as usize, "time")
    );
    Verdict::Found(
        Finding::new(Confidence::Certain, what)
            .with([Evidence::number("answers that it is in its grace period", waits as f64)])
            .costs_as(
                waited / (took as f64 / 1e9 + waited),
                CostOf::CallTime,
                "at least 0.1 s for each answer",
            ),
    )
}

/// The kernel's client counts errors by call and does not say which they were. Where it had state back, opens and locks that are
/// refused more often than a recovery alone does it, and wait for it, were refused because of a grace period. Clients that take each
/// other's state away look the same.
fn inferred(measured: &Measured<'_>, phase: &RpcPhase) -> Option<Finding> {
    let had_back: u64 = HAD_BACK.iter().filter_map(|call| phase.row(call)).map(|row| row.ops).sum();
    let refused: u64 = REFUSED.iter().filter_map(|call| phase.row(call)).map(|row| row.errors).sum();
    let workers = measured.recording.workers.len() as u64;
    if had_back == 0
        || refused <= workers * OF_RECOVERY
        || stored(measured, CheckKind::SharedClientId).is_some()
    {
        return None;
    }
    let series = TAKES_STATE.into_iter().flat_map(|kind| measured.of_kind(kind));
    let longest = series.filter_map(|series| Some(series.total.latency.decode().ok()?.max())).max()?;
    let seconds = longest as f64 / 1e9;
    if seconds < WAITED {
        return None;
    }
    let what = format!(
        "The server had lost its state and {} reclaimed it; OPEN and LOCK were refused {} in the meantime, and the longest open or lock took {seconds:.1} s: the server was restarted, and \
         refused new opens and locks in its grace period.",
        plural(had_back as usize, "client"),
        plural(refused as usize, "time"),
    );
    let found = Finding::new(Confidence::Likely, what)
        .advised(case("grace-period", "restart"))
        .with([
            Evidence::number("clients that reclaimed their state", had_back as f64),
            Evidence::number("errors of OPEN and LOCK", refused as f64),
            Evidence::nanoseconds("longest open, create or lock", longest as f64),
        ])
        .costs(seconds / measured.seconds().max(1e-9));
    Some(found)
}

#[cfg(test)]
mod tests {
    use benchmaster_record::phase::Phase;
    use std::time::Duration;

    use benchmaster_record::recording::{EncodedHistogram, RpcCounters, RpcRow};

    use super::*;
    use crate::results::testing::Made;

    #[test]
    fn told_to_wait_for_the_end_of_grace() {
        let mut made = Made::served();
        assert!(!matches!(made.verdict(&RULE), Verdict::Found(_)));
        let phases = &mut made.recording().rpc.as_mut().unwrap().phases;
        let measure = phases.iter_mut().find(|phase| phase.phase == Phase::Measure).unwrap();
        measure.events.insert("grace".into(), 7);
        let found = made.found(&RULE);
        assert!(found.what.contains("7 times"), "{}", found.what);
        assert!(found.cost.unwrap().share > 0.0);
        // What the server of a lab said itself comes first.
        let workload = made.recording().workload.clone();
        made.checked(CheckKind::GracePeriod, &workload, &[("longest_ns", 4e9)]);
        let found = made.found(&RULE);
        assert_eq!(found.evidence[0].name, "longest open, create or lock");
        assert!(found.remedy.text.starts_with("Start the measurement when"), "{:?}", found.remedy);
        let mut made = Made::served();
        made.checked(CheckKind::GracePeriod, &workload, &[("longest_ns", 4e9), ("restarted", 1.0)]);
        assert!(made.found(&RULE).remedy.text.starts_with("If the restart was intended"));
    }

    /// A run in which the kernel's client had state back, with so many errors of LOCK and a longest lock.
    fn recovered(errors: u64, longest: Duration) -> Made {
        let mut made = Made::served();
        made.recording().rpc.as_mut().unwrap().source = RpcSource::Kernel;
        let series = &mut made.recording().series[0];
        series.key.operation = OperationKind::Lock;
        let mut latency = series.total.latency.decode().unwrap();
        latency.record(longest.as_nanos() as u64).unwrap();
        series.total.latency = EncodedHistogram::encode(&latency);
        let like = made.rows()[0].clone();
        let row = |operation: &str, errors| RpcRow {
            operation: operation.into(),
            counters: RpcCounters { errors, ..like.counters },
            ..like.clone()
        };
        made.rows().extend([row("RECLAIM_COMPLETE", 0), row("LOCK", errors)]);
        made
    }

    #[test]
    fn the_kernels_client_is_told_by_what_was_refused_after_a_recovery() {
        let workers = recovered(0, Duration::ZERO).recording().workers.len() as u64;
        let (few, many) = (workers * OF_RECOVERY, workers * OF_RECOVERY + 1);
        let long = Duration::from_secs(3);
        let found = recovered(many, long).found(&RULE);
        assert!(found.what.contains("took 3.0 s"), "{}", found.what);
        assert_eq!(found.confidence, Confidence::Likely);
        let clear = |made: Made| assert!(!matches!(made.verdict(&RULE), Verdict::Found(_)));
        // A lease that ran out, or a server that needs no grace period.
        clear(recovered(few, long));
        clear(recovered(many, Duration::from_millis(900)));
        let mut refused = recovered(many, long);
        refused.rows().retain(|row| row.operation != "RECLAIM_COMPLETE");
        clear(refused);
        let mut cloned = recovered(many, long);
        let workload = cloned.recording().workload.clone();
        cloned.checked(CheckKind::SharedClientId, &workload, &[]);
        clear(cloned);
    }
}
