//! Waiting for a server's grace period.

use crate::diagnosis::Verdict;
use crate::finding::{Confidence, CostOf, Evidence, Finding, Plot};
use crate::results::conditions::checks::{GRACE_PERIOD, out_of_grace};
use crate::results::{Detector, Measured, check};

pub(super) const DETECTOR: Detector = Detector { explanation: &GRACE_PERIOD.explanation, detect };

/// Shortest pause after NFS4ERR_GRACE, in seconds: Linux (`NFS4_POLL_RETRY_MIN`) and our own client wait as long at first.
const PAUSE: f64 = 0.1;

/// By the stored check of a lab's server, else by how often the client was told to wait for it.
fn detect(measured: &Measured<'_>) -> Verdict {
    if check(measured, GRACE_PERIOD.check).is_some() {
        return GRACE_PERIOD.look(measured);
    }
    let Some((rpc, phase)) = measured.rpcs() else { return Verdict::Irrelevant };
    if !rpc.connection.version.starts_with('4') {
        return Verdict::Irrelevant;
    }
    let waits = phase.events.get("grace").copied().unwrap_or(0);
    if waits == 0 {
        return GRACE_PERIOD.look(measured);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;

    #[test]
    fn told_to_wait_for_the_end_of_grace() {
        let mut made = Made::served();
        assert!(!matches!(made.verdict(&DETECTOR), Verdict::Found(_)));
        let phases = &mut made.recording().rpc.as_mut().unwrap().phases;
        let measure = phases.iter_mut().find(|phase| phase.phase == "measure").unwrap();
        measure.events.insert("grace".into(), 7);
        let found = made.found(&DETECTOR);
        assert!(found.what.contains("7 times"), "{}", found.what);
        assert!(found.cost.unwrap().share > 0.0);
        // What the server of a lab said itself comes first.
        let workload = made.recording().workload.clone();
        made.checked("grace-period", &workload, &[("longest_ns", 4e9)]);
        let found = made.found(&DETECTOR);
        assert_eq!(found.evidence[0].name, "longest open, create or lock");
    }
}
