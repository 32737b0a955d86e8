//! Open loops that ask for more than their workers can do.

use crate::prelude::*;
use crate::results::limits::laws::under_way;

/// Operations that had to be under way, for each that could be.
const LEAST_RATIO: f64 = 2.0;
const LEAST_OPERATIONS: u64 = 30;

pub(super) const DETECTOR: Detector = Detector { id: "behind-schedule", detect };

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
    let what = format!(
        "Operations waited for a free worker: at {rate:.0}/s and {} each {there_were:.1} were under way or waited, and {there_may_be:.0} can \
                 be under way; {} of the latencies, or more, is waiting.",
        time(mean),
        percent(waited)
    );
    Verdict::Found(
        Finding::new(Confidence::Certain, what)
            .with([
                Evidence::number("operations under way or waiting (rate · mean latency)", there_were),
                Evidence::number("that can be under way (workers · queue depth)", there_may_be),
                Evidence::per_second("operations per second", rate),
                Evidence::nanoseconds("mean latency, from the time at which they were to begin", mean),
            ])
            .costs(waited),
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
