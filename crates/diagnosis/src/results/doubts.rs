//! Results that are not what they seem to be.

mod behind_schedule;
mod clocks;
mod course;
mod course_of_study;
mod data;
mod failed;
pub(super) mod noisy_host;
mod not_steady;
mod sessions;
mod surroundings;
mod uncommitted;

use super::stored::stored;
use crate::results::rule::{Comparison, Detector};

/// What is looked for in each workload of each run.
pub(super) const DETECTORS: &[Detector] = &[
    stored!(data::ERRORS),
    stored!(data::FILE_SYSTEM_FULL),
    stored!(data::UNFLUSHED_WRITES),
    stored!(data::CACHED_READS),
    stored!(data::CLIENT_STATE),
    stored!(course::TOO_FEW_OPERATIONS),
    stored!(course::UNEVEN_FINISH),
    stored!(course::TRACE_STALL),
    stored!(course::REPLAY_LEFT_OUT),
    stored!(course::REPLAY_LATE),
    stored!(clocks::CLOCK_STEP),
    stored!(clocks::CLOCK_DRIFT),
    stored!(clocks::UNALIGNED_START),
    stored!(clocks::CLOCK_BOUND),
    stored!(clocks::AGENT_CLOCK_DRIFT),
    stored!(surroundings::EMULATED_NETWORK),
    stored!(surroundings::LATE_NETWORK),
    stored!(surroundings::SHARED_HOST),
    stored!(surroundings::SAMPLING_COST),
    stored!(surroundings::LOST_WAKE_UPS),
    stored!(surroundings::NEIGHBOURS),
    stored!(surroundings::KERNEL_WARNING),
    behind_schedule::DETECTOR,
    noisy_host::DETECTOR,
    not_steady::DETECTOR,
    uncommitted::DETECTOR,
];

/// What is looked for in all runs together.
pub(super) const COMPARISONS: &[Comparison] =
    &[failed::CORRUPT, failed::FAILED, course_of_study::DRIFT, course_of_study::OUTLIER, sessions::DETECTOR];

#[cfg(test)]
mod tests {
    use benchmaster_record::results::Severity;

    use super::*;
    use crate::diagnosis::Verdict;
    use crate::results::testing::Made;

    fn detector(id: &str) -> &'static Detector {
        DETECTORS.iter().find(|one| one.explanation.id == id).unwrap()
    }

    #[test]
    fn a_healthy_run_gives_no_doubt() {
        for made in
            [Made::new(), Made::new().reading(), Made::served(), Made::spread(), Made::spread().reading()]
        {
            for detector in DETECTORS {
                let verdict = made.verdict(detector);
                assert!(!matches!(verdict, Verdict::Found(_)), "{}: {verdict:?}", detector.explanation.id);
            }
        }
    }

    #[test]
    fn every_check_that_was_stored_is_told_with_its_numbers() {
        let checks: [(&str, &[(&str, f64)]); 19] = [
            ("errors", &[("measured", 3.0), ("outside", 0.0)]),
            ("file-system-full", &[("free", 1e6), ("total", 1e9)]),
            ("unflushed-writes", &[("flush_s", 3.0), ("measured_s", 9.0)]),
            ("cached-reads", &[("read", 1e9), ("cached_share", 0.75)]),
            ("client-state", &[("problems", 1.0)]),
            ("too-few-operations", &[("operations", 99.0)]),
            ("uneven-finish", &[("early", 0.2), ("gave_up", 0.0)]),
            ("trace-stall", &[("share", 0.02)]),
            ("replay-left-out", &[("left_out", 10.0), ("replayed", 90.0)]),
            ("replay-late", &[("p90_ns", 5e6)]),
            ("clock-step", &[("step_ns", 4e7)]),
            ("clock-drift", &[("drift", 0.002)]),
            ("agent-clock-drift", &[("drift", 0.001)]),
            ("emulated-network", &[("delay_ns", 1e7), ("in_flight", 1e6)]),
            ("late-network", &[("lateness_p99_ns", 2e6), ("delay_ns", 1e7), ("share", 0.2)]),
            ("lost-wake-ups", &[("stalls", 4.0), ("operations", 1e4)]),
            ("neighbours", &[("clients", 2.0)]),
            ("kernel-warning", &[("lines", 30.0)]),
            ("noisy-host", &[("steal", 0.2)]),
        ];
        for (id, evidence) in checks {
            let mut made = Made::spread();
            let workload = made.recording().workload.clone();
            made.checked(id, &workload, evidence);
            let found = made.found(detector(id));
            assert_eq!(found.id, id);
            assert!(!found.evidence.is_empty(), "{id} without its numbers");
            assert!(found.remedy.text.len() > 20 && found.what.ends_with('.'), "{id}: {found:?}");
            // Of another workload it says nothing of this one.
            let mut other = Made::spread();
            other.checked(id, "another", evidence);
            assert!(!matches!(other.verdict(detector(id)), Verdict::Found(_)), "{id}");
        }
    }

    #[test]
    fn costs_are_those_of_the_checks_numbers() {
        let share = |id: &str, evidence: &[(&str, f64)]| {
            let mut made = Made::spread();
            let workload = made.recording().workload.clone();
            made.checked(id, &workload, evidence);
            made.found(detector(id)).cost.unwrap().share
        };
        assert!((share("unflushed-writes", &[("flush_s", 3.0), ("measured_s", 9.0)]) - 0.25).abs() < 1e-9);
        assert!((share("cached-reads", &[("read", 1e9), ("cached_share", 0.75)]) - 0.75).abs() < 1e-9);
        // What was read four times was cached after the first.
        assert!((share("cached-reads", &[("cached_share", 0.1), ("passes", 4.0)]) - 0.75).abs() < 1e-9);
        assert!((share("replay-left-out", &[("left_out", 10.0), ("replayed", 90.0)]) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn notes_are_told_where_they_matter() {
        // 20 s: 1 % of them are 200 ms.
        for (ms, told) in [(190.0, false), (210.0, true)] {
            for (id, name) in [("unaligned-start", "spread_ns"), ("clock-bound", "bound_ns")] {
                let mut made = Made::spread();
                let workload = made.recording().workload.clone();
                made.checked(id, &workload, &[(name, ms * 1e6)]);
                assert_eq!(matches!(made.verdict(detector(id)), Verdict::Found(_)), told, "{id} of {ms} ms");
            }
        }
        for (processors, told) in [(7.0, false), (7.3, true)] {
            let mut made = Made::served();
            let workload = made.recording().workload.clone();
            made.checked(
                "shared-host",
                &workload,
                &[("server_processors", processors - 2.0), ("client_processors", 2.0)],
            );
            let verdict = made.verdict(detector("shared-host"));
            assert_eq!(matches!(verdict, Verdict::Found(_)), told, "{processors} of 8: {verdict:?}");
        }
        let mut made = Made::spread();
        let workload = made.recording().workload.clone();
        made.checked("emulated-network", &workload, &[("in_flight", 1e3)]);
        made.run().checks[0].severity = Severity::Note;
        assert_eq!(made.verdict(detector("emulated-network")), Verdict::Clear);
    }

    #[test]
    fn a_rate_that_moved_is_not_steady() {
        let made = |slope: f64| {
            let mut made = Made::new();
            let recording = made.recording();
            for series in &mut recording.series {
                for interval in &mut series.intervals {
                    let factor = 1.0 + slope * f64::from(interval.index) / 20.0;
                    interval.stats.bytes = (interval.stats.bytes as f64 * factor) as u64;
                }
            }
            let workload = recording.workload.clone();
            made.checked("not-steady", &workload, &[("range_pct", 40.0), ("drift_pct", 35.0)]);
            made
        };
        let found = made(0.5).found(detector("not-steady"));
        assert!(found.what.contains("rose by") && found.tests[0].p.unwrap() < 0.01, "{found:?}");
        assert_eq!(made(0.02).verdict(detector("not-steady")), Verdict::Clear);
        let mut short = made(0.5);
        short.recording().cut_ns = 11_000_000_000;
        assert!(matches!(short.verdict(detector("not-steady")), Verdict::Unknown(_)));
        short.recording().timed = false;
        assert_eq!(short.verdict(detector("not-steady")), Verdict::Irrelevant);
    }

    #[test]
    fn programs_of_others_are_told_from_our_own() {
        use benchmaster_record::recording::HostSamples;
        use benchmaster_record::samples::{Kind, MetricKey, Point, Series};
        // Seconds of user and idle time of two processors, and of waiting, over 20 s.
        let made = |user: f64, waited: f64| {
            let mut made = Made::new();
            let recording = made.recording();
            (recording.host.process_user_ns, recording.host.process_system_ns) = (4_000_000_000, 0);
            let length = recording.length_ns as i64;
            let series = |sampler: &str, metric: &str, instance: &str, seconds: f64| Series {
                key: MetricKey { sampler: sampler.into(), metric: metric.into(), instance: instance.into() },
                kind: Kind::Counter,
                unit: "ns".into(),
                points: vec![
                    Point { time_ns: 0, value: 0.0 },
                    Point { time_ns: length, value: seconds * 1e9 },
                ],
            };
            let mut host = HostSamples { agent: "here".into(), ..HostSamples::default() };
            host.samples.series = vec![
                series("cpu", "user", "", user),
                series("cpu", "idle", "", 40.0 - user),
                series("cpu", "user", "0", user / 2.0),
                series("cpu", "user", "1", user / 2.0),
                series("pressure", "some", "cpu", waited),
            ];
            recording.samples = vec![host];
            made
        };
        // 4 s are our own; 15 % of 40 s are 6.
        let found = made(12.0, 5.0).found(detector("noisy-host"));
        assert!(found.what.contains("0.4 of the 2 processors of here"), "{}", found.what);
        assert!((found.cost.unwrap().share - 0.2).abs() < 0.01);
        assert_eq!(made(9.0, 5.0).verdict(detector("noisy-host")), Verdict::Clear);
        assert_eq!(made(12.0, 1.0).verdict(detector("noisy-host")), Verdict::Clear);
        let mut unknown = made(12.0, 5.0);
        unknown.recording().samples.clear();
        assert!(matches!(unknown.verdict(detector("noisy-host")), Verdict::Unknown(_)));
    }
}
