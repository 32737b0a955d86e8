//! Opens that wait until a delegation has come back from another client.

use super::tools::{latencies, ops, without_rpcs};
use crate::prelude::*;

/// Delegations that came back.
const LEAST_RETURNED: u64 = 5;
/// Share of the calls that wait.
const LEAST_SHARE: f64 = 0.05;
/// The client waits 100 ms and twice as long after each refusal: its calls take 100, 300, 700, 1500 ms and a little more.
const STEPS_NS: [(u64, u64); 4] = [
    (99_000_000, 140_000_000),
    (297_000_000, 350_000_000),
    (693_000_000, 770_000_000),
    (1_485_000_000, 1_620_000_000),
];

pub(super) const DETECTOR: Detector = Detector { id: "delegation-recall", detect };

const KINDS: [OperationKind; 8] = [
    OperationKind::Open,
    OperationKind::Create,
    OperationKind::Unlink,
    OperationKind::Rename,
    OperationKind::Truncate,
    OperationKind::Chmod,
    OperationKind::Utimes,
    OperationKind::Link,
];

fn detect(measured: &Measured<'_>) -> Verdict {
    let opened = measured
        .recording
        .series
        .iter()
        .any(|series| KINDS.contains(&series.key.operation) && series.total.count > 0);
    if !opened {
        return Verdict::Irrelevant;
    }
    let Some((rpc, phase)) = measured.rpcs() else {
        return without_rpcs(measured);
    };
    if !rpc.connection.version.is_some_and(NfsVersion::has_state) {
        return Verdict::Irrelevant;
    }
    let event = |name: &str| phase.events.get(name).copied().unwrap_or(0);
    let returned =
        ops(measured, &["DELEGRETURN"]).max(event("delegation-recalled")).max(event("delegation-returned"));
    if returned < LEAST_RETURNED {
        return Verdict::Clear;
    }
    let waiting = measured.recording.series.iter().filter(|series| KINDS.contains(&series.key.operation));
    let worst = waiting.filter_map(steps).max_by(|a, b| a.ns.total_cmp(&b.ns));
    let Some(worst) = worst else { return Verdict::Clear };
    let what = format!(
        "{} of the calls of {} ({}) wait in steps of 100 ms, {} on average, while {returned} delegations come back from other clients.",
        percent(worst.share),
        worst.label,
        worst.calls,
        time(worst.ns / worst.calls as f64)
    );
    let finding = Finding::new(Confidence::Certain, what)
        .with([
            Evidence::number("calls that took a step of 100 ms, or several", worst.calls as f64),
            Evidence::number("their share of the calls of that kind", worst.share),
            Evidence::nanoseconds("their mean latency", worst.ns / worst.calls as f64),
            Evidence::number("delegations that came back", returned as f64),
            Evidence::number("OPEN", ops(measured, &["OPEN"]) as f64),
        ])
        .costs(share(worst.ns, measured.operation_ns() as f64));
    // The kernel's client does not tell of them here.
    let told = (rpc.source == RpcSource::Client).then(|| event("delay") as f64);
    let delays = told.map(|delays| Evidence::number("answers to come again later (NFS4ERR_DELAY)", delays));
    Verdict::Found(finding.with(delays))
}

struct Steps<'a> {
    label: &'a str,
    calls: u64,
    share: f64,
    ns: f64,
}

fn steps(series: &SeriesRecording) -> Option<Steps<'_>> {
    let histogram = latencies(series)?;
    let (mut calls, mut ns) = (0, 0.0);
    for value in histogram.iter_recorded() {
        let latency = value.value_iterated_to();
        if STEPS_NS.iter().any(|(from, to)| (*from..=*to).contains(&latency)) {
            calls += value.count_at_value();
            ns += value.count_at_value() as f64 * latency as f64;
        }
    }
    let share = calls as f64 / histogram.len() as f64;
    (calls >= LEAST_RETURNED && share >= LEAST_SHARE).then_some(Steps {
        label: &series.key.label,
        calls,
        share,
        ns,
    })
}

#[cfg(test)]
mod tests {
    use super::super::made;
    use super::*;

    fn verdict(latencies: &[(u64, u64)], returned: u64, version: &str) -> Verdict {
        let mut recording = made::recording("recall", 100.0);
        made::series(&mut recording, OperationKind::Open, 0, latencies);
        made::rpcs(
            &mut recording,
            RpcSource::Kernel,
            version,
            &[("OPEN", 2_000, 300, 0.0, 200.0), ("DELEGRETURN", returned, 100, 0.0, 200.0)],
        );
        made::judge(recording, detect)
    }

    #[test]
    fn a_thousand_opens_of_a_tenth_of_a_second() {
        let Verdict::Found(found) = verdict(&[(100_400_000, 1_000)], 1_000, "4.1") else { panic!() };
        assert!(
            found.what.starts_with("100 % of the calls of open (1000) wait in steps of 100 ms"),
            "{}",
            found.what
        );
        let Verdict::Found(found) =
            verdict(&[(200_000, 900), (101_000_000, 80), (305_000_000, 20)], 100, "4.1")
        else {
            panic!()
        };
        assert!((found.evidence[0].value - 100.0).abs() < 1e-9);
        assert_eq!(verdict(&[(200_000, 952), (101_000_000, 48)], 100, "4.1"), Verdict::Clear);
        assert_eq!(verdict(&[(100_400_000, 1_000)], 4, "4.1"), Verdict::Clear);
        // Slow, but not in steps.
        assert_eq!(verdict(&[(180_000_000, 1_000)], 1_000, "4.1"), Verdict::Clear);
        assert_eq!(verdict(&[(100_400_000, 1_000)], 1_000, "3"), Verdict::Irrelevant);
        assert_eq!(made::judge(made::recording("recall", 1.0), detect), Verdict::Irrelevant);
    }
}
