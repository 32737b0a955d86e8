//! Starts and clocks of several clients, the emulated network, and what was sampled.

use super::*;

#[test]
fn clients_that_do_not_start_together_are_found() {
    assert_eq!(two_clients().checks(), []);
    let mut late = two_clients();
    late.recording.start.as_mut().unwrap().spread_ns = 432_000_000;
    let (id, severity, message) = only(&late);
    assert_eq!((id, severity), (CheckKind::UnalignedStart, Severity::Warning));
    assert!(message.contains("432.00 ms") && message.contains("± 0.080 ms"), "{message}");
    // One client begins with itself, however its threads are woken.
    late.recording.agents.truncate(1);
    assert_eq!(late.checks(), []);

    let mut unknown = two_clients();
    unknown.recording.start.as_mut().unwrap().bound_ns = 3_000_000;
    assert_eq!(only(&unknown).0, CheckKind::ClockBound);
    let mut drifting = two_clients();
    drifting.recording.agents[1].clock.drift = Some(-1e-3);
    let (id, _, message) = only(&drifting);
    assert_eq!(id, CheckKind::AgentClockDrift);
    assert!(message.contains("clock of c2 gained -1000 microseconds"), "{message}");
}

#[test]
fn a_network_that_was_late_is_found() {
    let late = |ns: u64, delay_ns: u64| {
        move |case: &mut Case| {
            let service = case.service.as_mut().unwrap();
            (service.network.emulator, service.network.delay_ns) = (Emulator::Wire, delay_ns);
            service.achieved =
                Some(NetworkAchieved { lateness_p99_ns: Some(ns), ..NetworkAchieved::default() });
        }
    };
    let (id, severity, message) = provoked_over_the_wire(Read, late(150_000, 1_000_000));
    assert_eq!((id, severity), (CheckKind::LateNetwork, Severity::Warning));
    assert!(message.contains("0.15 ms"), "{message}");
    // 0.15 ms of latencies of 1 ms are told, and of 20 ms nothing.
    let of_latency = |mean_ns: u64| {
        move |case: &mut Case| {
            late(150_000, 1_000_000)(case);
            let mut histogram = latency_histogram();
            histogram.record_n(mean_ns, 1_000).unwrap();
            for series in &mut case.recording.series {
                (series.total.count, series.total.sum_ns) = (1_000, 1_000 * mean_ns);
                series.total.latency = EncodedHistogram::encode(&histogram);
            }
        }
    };
    let tells = |case: &Case| case.checks().iter().any(|check| check.kind == CheckKind::LateNetwork);
    for (mean_ns, told) in [(1_000_000, true), (20_000_000, false)] {
        let mut case = Case::export(Read);
        of_latency(mean_ns)(&mut case);
        assert_eq!(tells(&case), told, "{mean_ns}");
    }
    for fine in [late(90_000, 0), late(900_000, 10_000_000)] {
        let mut case = Case::export(Read);
        fine(&mut case);
        assert_eq!(case.checks(), []);
    }
}

#[test]
fn the_cost_of_sampling_and_what_it_saw_are_noted() {
    let point = |time_ns, value| Point { time_ns, value };
    let series = Series {
        key: MetricKey {
            sampler: "tcp_info".into(),
            metric: "total_retransmitted".into(),
            instance: "a:1 b:2049".into(),
        },
        kind: Kind::Counter,
        unit: "1".into(),
        points: vec![point(0, 5.0), point(1, 12.0)],
    };
    let sampled = |cpu_ns, series: Vec<Series>| {
        let mut case = Case::export(Read);
        let cost = Cost { cpu_ns, elapsed_ns: 60 * SECOND, ..Cost::default() };
        let samples = Samples { series, cost, ..Samples::default() };
        case.recording.samples = vec![HostSamples { agent: "c1".into(), samples }];
        case
    };
    assert_eq!(sampled(SECOND / 10, Vec::new()).checks(), []);
    let (id, severity, message) = only(&sampled(SECOND, Vec::new()));
    assert_eq!((id, severity), (CheckKind::SamplingCost, Severity::Note));
    assert!(message.contains("1.67 % of a processor on c1"), "{message}");
    let mut again = sampled(0, vec![series]);
    let (id, _, message) = only(&again);
    assert_eq!(id, CheckKind::TcpRetransmissions);
    assert!(message.contains("7 segments"), "{message}");
    again.service.as_mut().unwrap().network.loss = 0.01;
    assert_eq!(again.checks(), [], "what is lost on purpose comes again");
}
