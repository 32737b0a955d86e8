//! Open loops that ask for more than their workers can do.

use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Evidence, Finding, Plot, Remedy};
use crate::measured::Measured;
use crate::results::limits::laws::under_way;
use crate::results::rule::Detector;
use crate::words::{percent, time};

/// Operations that had to be under way, for each that could be.
const LEAST_RATIO: f64 = 2.0;
const LEAST_OPERATIONS: u64 = 30;

pub(super) const DETECTOR: Detector = Detector { explanation: &EXPLANATION, detect };

const EXPLANATION: Explanation = Explanation {
    id: "behind-schedule",
    group: Group::Doubt,
    title: "Operations began late, because no worker was free",
    mechanism: "In an open loop operations have times at which they are to begin, and latencies count from these. When workers are still busy with \
                earlier ones the next wait for them: the latency is that of a queue in front of the workers, which grows as long as the rate is more than they \
                can do, and says more about the length of the run than about the file system.",
    formula: "open loops of 30 operations or more: N = rate · mean latency are under way or wait, of which workers · queue depth can be under way. Found when N is \
              ≥ 2 times that; cost = 1 − workers · queue depth / N, the least share of the latencies that is waiting for a worker",
    source: "Little's law N = X·R (Jain 1991, §30.3); B. Schroeder, A. Wierman and M. Harchol-Balter, Open versus closed (2006)",
};

fn detect(measured: &Measured<'_>) -> Verdict {
    let operations = measured.operations();
    if !measured.recording.is_open_loop() || measured.is_virtual() || operations < LEAST_OPERATIONS {
        return Verdict::Irrelevant;
    }
    let Some(workload) = measured.workload else {
        return Verdict::Unknown("how many operations each worker keeps under way is not known: the stored study file cannot be read".into());
    };
    let (there_were, there_may_be) = under_way(measured, workload);
    if there_may_be <= 0.0 || there_were < LEAST_RATIO * there_may_be {
        return Verdict::Clear;
    }
    let waited = 1.0 - there_may_be / there_were;
    let mean = measured.operation_ns() as f64 / operations as f64;
    let rate = operations as f64 / measured.seconds();
    Verdict::Found(
        Finding::new(
            &EXPLANATION,
            Confidence::Certain,
            format!(
                "Operations waited for a free worker: at {rate:.0}/s and {} each {there_were:.1} were under way or waited, and {there_may_be:.0} can \
                 be under way; {} of the latencies, or more, is waiting.",
                time(mean),
                percent(waited)
            ),
            Remedy::new("Ask for a lower rate, or give the load more workers; the file system's own time is measured by a closed loop, without `rate`.")
                .confirmed_by("a load curve (`studies/load-curve.toml`): where the latency leaves the ground is the most that can be asked for"),
        )
        .with([
            Evidence::number("operations under way or waiting (rate · mean latency)", there_were),
            Evidence::number("that can be under way (workers · queue depth)", there_may_be),
            Evidence::per_second("operations per second", rate),
            Evidence::nanoseconds("mean latency, from the time at which they were to begin", mean),
        ])
        .costs(waited, CostOf::OperationTime, "1 − workers · queue depth / (rate · mean latency)")
        .shown_by(Plot::Latency),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;

    /// An open loop whose operations of 10 ms are this many times as many as its workers have time for.
    fn made(times: f64) -> Made {
        let mut made = Made::new().reading();
        let recording = made.recording();
        let time: u64 = recording.workers.iter().map(|worker| worker.end_ns - worker.start_ns).sum();
        let count = (time as f64 * times / 1e7).ceil() as u64;
        recording.series.truncate(1);
        (recording.series[0].total.count, recording.series[0].total.sum_ns) = (count, count * 10_000_000);
        made
    }

    #[test]
    fn what_workers_have_no_time_for_waits() {
        let found = made(4.0).found(&DETECTOR);
        assert!((found.cost.as_ref().unwrap().share - 0.75).abs() < 0.01, "{:?}", found.cost);
        assert!(found.what.contains("10 ms each"), "{}", found.what);
        assert!(matches!(made(2.0).verdict(&DETECTOR), Verdict::Found(_)));
        assert_eq!(made(1.98).verdict(&DETECTOR), Verdict::Clear);
    }

    #[test]
    fn closed_loops_have_no_schedule() {
        assert_eq!(Made::new().verdict(&DETECTOR), Verdict::Irrelevant);
        let mut few = made(4.0);
        few.recording().series[0].total.count = LEAST_OPERATIONS - 1;
        assert_eq!(few.verdict(&DETECTOR), Verdict::Irrelevant);
        let mut unreadable = made(4.0);
        unreadable.results.study.text = "[study".into();
        assert!(matches!(unreadable.verdict(&DETECTOR), Verdict::Unknown(_)));
    }
}
