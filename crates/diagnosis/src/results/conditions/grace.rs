//! Waiting for a server's grace period.

use benchmaster_record::model::OperationKind;
use benchmaster_record::nfs::NfsVersion;
use benchmaster_record::recording::{RpcPhase, RpcSource};

use crate::diagnosis::Verdict;
use crate::finding::{Confidence, CostOf, Evidence, Finding, Plot};
use crate::results::conditions::checks::{GRACE_PERIOD, after_a_restart, out_of_grace};
use crate::results::measured::Measured;
use crate::results::rule::{Detector, check};
use crate::words::plural;

pub(super) const DETECTOR: Detector = Detector { explanation: &GRACE_PERIOD.explanation, detect };

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

/// By the stored check of a lab's server, else by how often our client was told to wait for it, or by what the kernel's was told.
fn detect(measured: &Measured<'_>) -> Verdict {
    if check(measured, GRACE_PERIOD.check).is_some() {
        return GRACE_PERIOD.look(measured);
    }
    let Some((rpc, phase)) = measured.rpcs() else { return Verdict::Irrelevant };
    if !rpc.connection.version.is_some_and(NfsVersion::has_state) {
        return Verdict::Irrelevant;
    }
    let waits = phase.events.get("grace").copied().unwrap_or(0);
    if waits == 0 {
        return match rpc.source {
            RpcSource::Client => GRACE_PERIOD.look(measured),
            RpcSource::Kernel => {
                inferred(measured, phase).map_or_else(|| GRACE_PERIOD.look(measured), Verdict::Found)
            }
        };
    }
    let took = phase.total().execute_ns;
    let waited = waits as f64 * PAUSE;
    Verdict::Found(
        Finding::new(
            &GRACE_PERIOD.explanation,
            Confidence::Certain,
            format!("The server answered {waits} times that it was in its grace period, and each time the call was made again after {PAUSE} s or more."),
            out_of_grace(),
        )
        .with([Evidence::new("answers that it is in its grace period", waits as f64, "1")])
        .costs(waited / (took as f64 / 1e9 + waited), CostOf::CallTime, "at least 0.1 s for each answer")
        .shown_by(Plot::Time),
    )
}

/// The kernel's client counts errors by call and does not say which they were. Where it had state back, opens and locks that are
/// refused more often than a recovery alone does it, and wait for it, were refused because of a grace period. Clients that take each
/// other's state away look the same.
fn inferred(measured: &Measured<'_>, phase: &RpcPhase) -> Option<Finding> {
    let had_back: u64 = HAD_BACK.iter().filter_map(|call| phase.row(call)).map(|row| row.ops).sum();
    let refused: u64 = REFUSED.iter().filter_map(|call| phase.row(call)).map(|row| row.errors).sum();
    let workers = measured.recording.workers.len() as u64;
    if had_back == 0 || refused <= workers * OF_RECOVERY || check(measured, "shared-client-id").is_some() {
        return None;
    }
    let kinds = [OperationKind::Open, OperationKind::Create, OperationKind::Lock];
    let series = kinds.into_iter().flat_map(|kind| measured.of_kind(kind));
    let longest = series.filter_map(|series| Some(series.total.latency.decode().ok()?.max())).max()?;
    let seconds = longest as f64 / 1e9;
    if seconds < WAITED {
        return None;
    }
    let what = format!(
        "The server had lost its state and {} had it back; OPEN and LOCK were refused {} meanwhile, and the longest open or lock took {seconds:.1} s: the server was started again, and \
         let nobody open or lock anew in its grace period.",
        plural(had_back as usize, "client"),
        plural(refused as usize, "time"),
    );
    let found = Finding::new(&GRACE_PERIOD.explanation, Confidence::Likely, what, after_a_restart())
        .with([
            Evidence::new("clients that said they had their state back", had_back as f64, "1"),
            Evidence::new("errors of OPEN and LOCK", refused as f64, "1"),
            Evidence::new("longest open, create or lock", longest as f64, "ns"),
        ])
        .costs(
            seconds / measured.seconds().max(1e-9),
            CostOf::Time,
            "the longest open, create or lock / length of the measured phase",
        )
        .shown_by(Plot::Time);
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
        assert!(!matches!(made.verdict(&DETECTOR), Verdict::Found(_)));
        let phases = &mut made.recording().rpc.as_mut().unwrap().phases;
        let measure = phases.iter_mut().find(|phase| phase.phase == Phase::Measure).unwrap();
        measure.events.insert("grace".into(), 7);
        let found = made.found(&DETECTOR);
        assert!(found.what.contains("7 times"), "{}", found.what);
        assert!(found.cost.unwrap().share > 0.0);
        // What the server of a lab said itself comes first.
        let workload = made.recording().workload.clone();
        made.checked("grace-period", &workload, &[("longest_ns", 4e9)]);
        let found = made.found(&DETECTOR);
        assert_eq!(found.evidence[0].name, "longest open, create or lock");
        assert!(found.remedy.text.starts_with("Begin when"), "{:?}", found.remedy);
        let mut made = Made::served();
        made.checked("grace-period", &workload, &[("longest_ns", 4e9), ("restarted", 1.0)]);
        assert!(made.found(&DETECTOR).remedy.text.starts_with("If the restart was meant"));
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
        let found = recovered(many, long).found(&DETECTOR);
        assert!(found.what.contains("took 3.0 s"), "{}", found.what);
        assert_eq!(found.confidence, Confidence::Likely);
        let clear = |made: Made| assert!(!matches!(made.verdict(&DETECTOR), Verdict::Found(_)));
        // A lease that ran out, or a server that needs no grace period.
        clear(recovered(few, long));
        clear(recovered(many, Duration::from_millis(900)));
        let mut refused = recovered(many, long);
        refused.rows().retain(|row| row.operation != "RECLAIM_COMPLETE");
        clear(refused);
        let mut cloned = recovered(many, long);
        let workload = cloned.recording().workload.clone();
        cloned.checked("shared-client-id", &workload, &[]);
        clear(cloned);
    }
}
