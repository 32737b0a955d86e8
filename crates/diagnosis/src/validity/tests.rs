//! Findings of stored checks.

use benchmaster_record::results::{CheckKind, Severity};

use super::{rule, rules};
use crate::diagnosis::Verdict;
use crate::explanation::{Group, find};
use crate::results::testing::Made;

#[test]
fn a_healthy_run_gives_no_doubt() {
    for made in [Made::new(), Made::new().reading(), Made::served(), Made::spread(), Made::spread().reading()]
    {
        for rule in rules().filter(|rule| find(rule.id()).unwrap().group == Group::Doubt) {
            let verdict = made.verdict(rule);
            assert!(!matches!(verdict, Verdict::Found(_)), "{}: {verdict:?}", rule.kind);
        }
    }
}

#[test]
fn every_stored_check_is_found_with_its_numbers() {
    let checks: [(CheckKind, &[(&str, f64)]); 19] = [
        (CheckKind::Errors, &[("measured", 3.0), ("outside", 0.0)]),
        (CheckKind::FileSystemFull, &[("free", 1e6), ("total", 1e9)]),
        (CheckKind::UnflushedWrites, &[("flush_s", 3.0), ("measured_s", 9.0)]),
        (CheckKind::CachedReads, &[("read", 1e9), ("cached_share", 0.75)]),
        (CheckKind::ClientState, &[("problems", 1.0)]),
        (CheckKind::TooFewOperations, &[("operations", 99.0)]),
        (CheckKind::UnevenFinish, &[("early", 0.2), ("gave_up", 0.0)]),
        (CheckKind::TraceStall, &[("share", 0.02)]),
        (CheckKind::ReplayLeftOut, &[("left_out", 10.0), ("replayed", 90.0)]),
        (CheckKind::ReplayLate, &[("p90_ns", 5e6)]),
        (CheckKind::ClockStep, &[("step_ns", 4e7)]),
        (CheckKind::ClockDrift, &[("drift", 0.002)]),
        (CheckKind::AgentClockDrift, &[("drift", 0.001)]),
        (CheckKind::EmulatedNetwork, &[("delay_ns", 1e7), ("in_flight", 1e6)]),
        (CheckKind::LateNetwork, &[("lateness_p99_ns", 2e6), ("delay_ns", 1e7), ("share", 0.2)]),
        (CheckKind::LostWakeUps, &[("stalls", 4.0), ("operations", 1e4)]),
        (CheckKind::Neighbours, &[("clients", 2.0)]),
        (CheckKind::KernelWarning, &[("lines", 30.0)]),
        (CheckKind::NoisyHost, &[("steal", 0.2)]),
    ];
    for (kind, evidence) in checks {
        let mut made = Made::spread();
        let workload = made.recording().workload.clone();
        made.checked(kind, &workload, evidence);
        let found = made.found(rule(kind));
        assert_eq!(found.id, kind.name());
        assert!(!found.evidence.is_empty(), "{kind} without its numbers");
        assert!(found.remedy.text.len() > 20 && found.what.ends_with('.'), "{kind}: {found:?}");
        // Of another workload it says nothing of this one.
        let mut other = Made::spread();
        other.checked(kind, "another", evidence);
        assert!(!matches!(other.verdict(rule(kind)), Verdict::Found(_)), "{kind}");
    }
}

#[test]
fn workers_that_worked_for_a_time_are_not_told_to() {
    let advised = |timed: f64| {
        let mut made = Made::spread();
        let workload = made.recording().workload.clone();
        made.checked(CheckKind::UnevenFinish, &workload, &[("early", 0.2), ("timed", timed)]);
        made.found(rule(CheckKind::UnevenFinish)).remedy.text
    };
    assert!(advised(0.0).starts_with("Let all workers work for a time"), "{}", advised(0.0));
    assert!(advised(1.0).starts_with("Operations that were under way"), "{}", advised(1.0));
}

#[test]
fn costs_are_those_of_the_checks_numbers() {
    let share = |kind: CheckKind, evidence: &[(&str, f64)]| {
        let mut made = Made::spread();
        let workload = made.recording().workload.clone();
        made.checked(kind, &workload, evidence);
        made.found(rule(kind)).cost.unwrap().share
    };
    assert!(
        (share(CheckKind::UnflushedWrites, &[("flush_s", 3.0), ("measured_s", 9.0)]) - 0.25).abs() < 1e-9
    );
    assert!((share(CheckKind::CachedReads, &[("read", 1e9), ("cached_share", 0.75)]) - 0.75).abs() < 1e-9);
    // What was read four times was cached after the first.
    assert!((share(CheckKind::CachedReads, &[("cached_share", 0.1), ("passes", 4.0)]) - 0.75).abs() < 1e-9);
    assert!((share(CheckKind::ReplayLeftOut, &[("left_out", 10.0), ("replayed", 90.0)]) - 0.1).abs() < 1e-9);
}

#[test]
fn notes_are_found_where_they_matter() {
    // 20 s: 1 % of them are 200 ms.
    for (ms, told) in [(190.0, false), (210.0, true)] {
        for (kind, name) in [(CheckKind::UnalignedStart, "spread_ns"), (CheckKind::ClockBound, "bound_ns")] {
            let mut made = Made::spread();
            let workload = made.recording().workload.clone();
            made.checked(kind, &workload, &[(name, ms * 1e6)]);
            assert_eq!(matches!(made.verdict(rule(kind)), Verdict::Found(_)), told, "{kind} of {ms} ms");
        }
    }
    for (processors, told) in [(7.0, false), (7.3, true)] {
        let mut made = Made::served();
        let workload = made.recording().workload.clone();
        made.checked(
            CheckKind::SharedHost,
            &workload,
            &[("server_processors", processors - 2.0), ("client_processors", 2.0)],
        );
        let verdict = made.verdict(rule(CheckKind::SharedHost));
        assert_eq!(matches!(verdict, Verdict::Found(_)), told, "{processors} of 8: {verdict:?}");
    }
    let mut made = Made::spread();
    let workload = made.recording().workload.clone();
    made.checked(CheckKind::EmulatedNetwork, &workload, &[("in_flight", 1e3)]);
    made.run().checks[0].severity = Severity::Note;
    assert_eq!(made.verdict(rule(CheckKind::EmulatedNetwork)), Verdict::Clear);
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
        made.checked(CheckKind::NotSteady, &workload, &[("range_pct", 40.0), ("drift_pct", 35.0)]);
        made
    };
    let found = made(0.5).found(rule(CheckKind::NotSteady));
    assert!(found.what.contains("rose from") && found.tests[0].p.unwrap() < 0.01, "{found:?}");
    assert_eq!(made(0.02).verdict(rule(CheckKind::NotSteady)), Verdict::Clear);
    let mut short = made(0.5);
    short.recording().cut_ns = 11_000_000_000;
    assert!(matches!(short.verdict(rule(CheckKind::NotSteady)), Verdict::Unknown(_)));
    short.recording().timed = false;
    assert_eq!(short.verdict(rule(CheckKind::NotSteady)), Verdict::Irrelevant);
}

#[test]
fn other_programs_are_distinguished_from_our_own() {
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
            points: vec![Point { time_ns: 0, value: 0.0 }, Point { time_ns: length, value: seconds * 1e9 }],
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
    let found = made(12.0, 5.0).found(rule(CheckKind::NoisyHost));
    assert!(found.what.contains("0.4 of the 2 processors of here"), "{}", found.what);
    assert!((found.cost.unwrap().share - 0.2).abs() < 0.01);
    assert_eq!(made(9.0, 5.0).verdict(rule(CheckKind::NoisyHost)), Verdict::Clear);
    assert_eq!(made(12.0, 1.0).verdict(rule(CheckKind::NoisyHost)), Verdict::Clear);
    let mut unknown = made(12.0, 5.0);
    unknown.recording().samples.clear();
    assert!(matches!(unknown.verdict(rule(CheckKind::NoisyHost)), Verdict::Unknown(_)));
}

#[test]
fn bursts_are_found_where_stalls_are_long_enough() {
    use benchmaster_record::model::OperationKind;

    use crate::results::phenomena::made;
    let mut results = made::study(
        "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[workload.write]\nuse = \"random-write\"\nduration = \"1s\"\n",
    );
    let recording = |kind| {
        let mut recording = made::recording("write", 100.0);
        made::series(&mut recording, kind, 65_536, &[(50_000, 1000)]);
        recording
    };
    made::add(&mut results, 0, vec![recording(OperationKind::Write)], &[]);
    made::add(&mut results, 0, vec![recording(OperationKind::Write)], &[]);
    made::add(&mut results, 0, vec![recording(OperationKind::Read)], &[]);
    let check = |longest| {
        let numbers =
            [("burst_rate", 1.1e9), ("stall_share", 0.8), ("period_s", 30.0), ("longest_stall_s", longest)];
        made::check(CheckKind::BurstAndFlush, "write", &numbers)
    };
    results.runs[1].checks.push(check(0.1));
    made::add(&mut results, 0, vec![recording(OperationKind::Write)], &[]);
    results.runs[3].checks.push(check(0.099));
    let judge = |measured: &crate::measured::Measured<'_>| rule(CheckKind::BurstAndFlush).judge(measured);
    let verdict = |run| made::judge_run(&results, run, &made::Traces::default(), judge);
    assert_eq!(verdict(0), Verdict::Clear);
    assert_eq!(verdict(2), Verdict::Irrelevant);
    assert_eq!(verdict(3), Verdict::Clear);
    let Verdict::Found(found) = verdict(1) else { panic!() };
    assert_eq!((found.cost.unwrap().share, found.evidence[0].value), (0.8, 1.1e9));
    assert!(found.remedy.text.contains("at least 300 s"));
}

#[test]
fn every_kind_has_its_own_rule() {
    for &kind in CheckKind::ALL {
        assert_eq!(rule(kind).kind, kind);
        assert!(crate::catalogue::explain(kind.name()).is_some(), "{kind} has no finding");
    }
}
