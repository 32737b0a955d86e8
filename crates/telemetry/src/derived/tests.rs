use proptest::prelude::*;

use super::*;
use crate::sampling::{Cost, Kind, MetricKey};

const SECOND: i64 = 1_000_000_000;

fn points(values: &[(i64, f64)]) -> Vec<Point> {
    values.iter().map(|(seconds, value)| Point { time_ns: seconds * SECOND, value: *value }).collect()
}

fn series(sampler: &str, metric: &str, instance: &str, values: &[(i64, f64)]) -> Series {
    Series {
        key: MetricKey { sampler: sampler.into(), metric: metric.into(), instance: instance.into() },
        kind: Kind::Counter,
        unit: "1".into(),
        points: points(values),
    }
}

#[test]
fn counters_are_taken_between_the_edges() {
    let points = points(&[(0, 100.0), (10, 200.0), (20, 200.0), (30, 500.0)]);
    let grown = |from: i64, to: i64| growth(&points, from * SECOND, to * SECOND);
    assert_eq!(grown(0, 30), Some(400.0));
    assert_eq!(grown(5, 25), Some(50.0 + 150.0));
    assert_eq!(grown(12, 18), Some(0.0));
    assert_eq!(grown(22, 24), Some(60.0));
    // Readings cover only part of it.
    assert_eq!(grown(-10, 5), Some(50.0));
    assert_eq!(grown(40, 50), None);
    assert_eq!(growth(&points[..1], 0, SECOND), None);
}

#[test]
fn a_counter_that_started_anew_goes_on_from_zero() {
    let points = points(&[(0, 100.0), (10, 150.0), (20, 30.0), (30, 40.0)]);
    assert_eq!(growth(&points, 0, 30 * SECOND), Some(50.0 + 30.0 + 10.0));
    assert_eq!(growth(&points, 15 * SECOND, 30 * SECOND), Some(15.0 + 10.0));
}

#[test]
fn gauges_have_a_mean_over_time_and_a_maximum() {
    // Long at 10, shortly at 100.
    let points = points(&[(0, 10.0), (80, 10.0), (90, 100.0), (100, 10.0)]);
    assert_eq!(mean(&points, 0, 100 * SECOND), Some((800.0 + 550.0 + 550.0) / 100.0));
    assert_eq!(mean(&points, 10 * SECOND, 20 * SECOND), Some(10.0));
    assert_eq!(maximum(&points, 0, 100 * SECOND), Some(100.0));
    assert_eq!(maximum(&points, 0, 85 * SECOND), Some(55.0));
    assert_eq!(value_at(&points, 85 * SECOND), Some(55.0));
    assert_eq!((value_at(&points, -1), value_at(&points, 101 * SECOND)), (None, None));
    assert_eq!((mean(&points[..1], 0, SECOND), maximum(&[], 0, SECOND)), (None, None));
}

proptest! {
    /// Windows that follow each other add up to the whole, and means lie between the extremes.
    #[test]
    fn windows_add_up(steps in prop::collection::vec((1_i64..1000, 0_u32..1000), 2..20), cuts in prop::collection::vec(0_i64..20_000, 0..5)) {
        let (mut time, mut value) = (0, 0.0);
        let points: Vec<_> = steps.iter().map(|(after, grown)| {
            (time, value) = (time + after, value + f64::from(*grown));
            Point { time_ns: time, value }
        }).collect();
        let (from, to) = (points[0].time_ns, time);
        let mut edges: Vec<_> = cuts.into_iter().map(|cut| cut.clamp(from, to)).chain([from, to]).collect();
        edges.sort_unstable();
        edges.dedup();
        let parts: f64 = edges.windows(2).map(|edge| growth(&points, edge[0], edge[1]).unwrap()).sum();
        prop_assert!((parts - (value - points[0].value)).abs() < 1e-6, "{} {}", parts, value);
        for edge in edges.windows(2) {
            let (mean, most) = (mean(&points, edge[0], edge[1]).unwrap(), maximum(&points, edge[0], edge[1]).unwrap());
            prop_assert!(mean <= most + 1e-9);
            prop_assert_eq!(most, value_at(&points, edge[1]).unwrap());
        }
    }
}

#[test]
fn numbers_of_a_run_are_those_computed_by_hand() {
    // A window of 10 s within readings from 0 to 20 s; everything grows evenly.
    let even = |total: f64| [(0, 0.0), (20, total)];
    let counter = |sampler, metric, instance, total| series(sampler, metric, instance, &even(total));
    let mut all = vec![
        // Two processors, 40 s of time in 20 s.
        counter("cpu", "user", "", 8e9),
        counter("cpu", "nice", "", 0.0),
        counter("cpu", "system", "", 4e9),
        counter("cpu", "softirq", "", 2e9),
        counter("cpu", "steal", "", 2e9),
        counter("cpu", "idle", "", 20e9),
        counter("cpu", "iowait", "", 4e9),
        counter("cpu", "user", "0", 15e9),
        counter("cpu", "idle", "0", 5e9),
        counter("cpu", "user", "1", 1e9),
        counter("cpu", "idle", "1", 19e9),
        counter("cpu", "context_switches", "", 2000.0),
        counter("net", "rx_bytes", "lo", 1000.0),
        counter("net", "tx_bytes", "lo", 1000.0),
        counter("net", "rx_bytes", "eth0", 600.0),
        counter("net", "tx_bytes", "eth0", 60.0),
        counter("net", "rx_bytes", "eth1", 400.0),
        counter("net", "tx_bytes", "eth1", 40.0),
        counter("net", "RetransSegs", "Tcp", 20.0),
        counter("net", "OutSegs", "Tcp", 180.0),
        counter("diskstats", "reads", "sda", 200.0),
        counter("diskstats", "read_bytes", "sda", 819_200.0),
        counter("diskstats", "read_time", "sda", 600e6),
        counter("diskstats", "writes", "sda", 0.0),
        counter("diskstats", "busy_time", "sda", 5e9),
        counter("diskstats", "queue_time", "sda", 20e9),
        counter("diskstats", "reads", "loop0", 0.0),
        counter("nfsd", "rpc_calls", "", 500.0),
        counter("nfsd", "sockets-enqueued", "0", 6.0),
        counter("nfsd", "sockets-enqueued", "1", 4.0),
        counter("pressure", "some", "io", 4e9),
        counter("process", "user", "self", 3e9),
        counter("process", "system", "self", 1e9),
        series("memory", "Dirty", "", &[(0, 0.0), (5, 0.0), (10, 100.0), (15, 0.0), (20, 0.0)]),
        series("memory", "Cached", "", &[(0, 50.0), (20, 10.0)]),
    ];
    all.iter_mut()
        .filter(|series| series.key.sampler == "memory")
        .for_each(|series| series.kind = Kind::Gauge);
    let cost = Cost { cpu_ns: 1, elapsed_ns: 4, ..Cost::default() };
    let samples = Samples { series: all, cost, ..Samples::default() };
    let found = derive(&samples, 5 * SECOND, 15 * SECOND);
    let expected = [
        ("cpu.busy", 0.4, "1"),
        ("cpu.user", 0.2, "1"),
        ("cpu.system", 0.15, "1"),
        ("cpu.softirq", 0.05, "1"),
        ("cpu.iowait", 0.1, "1"),
        ("cpu.steal", 0.05, "1"),
        ("cpu.busiest", 0.75, "1"),
        ("cpu.context_switches", 100.0, "1/s"),
        ("memory.dirty_max", 100.0, "B"),
        ("memory.dirty_mean", 50.0, "B"),
        ("memory.cached_growth", -20.0, "B"),
        ("net.lo.received", 500.0, "B"),
        ("net.lo.sent", 500.0, "B"),
        ("net.eth0.received", 300.0, "B"),
        ("net.eth0.sent", 30.0, "B"),
        ("net.eth1.received", 200.0, "B"),
        ("net.eth1.sent", 20.0, "B"),
        ("net.received", 500.0, "B"),
        ("net.sent", 50.0, "B"),
        ("tcp.retransmitted", 10.0, "1"),
        ("tcp.retransmitted_share", 0.1, "1"),
        ("disk.sda.reads", 10.0, "1/s"),
        ("disk.sda.read", 40_960.0, "B/s"),
        ("disk.sda.read_wait", 3e6, "ns"),
        ("disk.sda.writes", 0.0, "1/s"),
        ("disk.sda.written", 0.0, "B/s"),
        ("disk.sda.wait", 3e6, "ns"),
        ("disk.sda.queue", 1.0, "1"),
        ("disk.sda.utilization", 0.25, "1"),
        ("nfsd.calls", 250.0, "1"),
        ("nfsd.waits", 5.0, "1"),
        ("pressure.io.some", 0.2, "1"),
        ("process.cpu", 2e9, "ns"),
        ("sampling.share", 0.25, "1"),
    ];
    let mut left: Vec<_> = found.keys().map(String::as_str).collect();
    for (name, value, unit) in expected {
        let derived = found.get(name).unwrap_or_else(|| panic!("no {name}"));
        assert!((derived.value - value).abs() <= value.abs() * 1e-12, "{name}: {} {value}", derived.value);
        assert_eq!(derived.unit, unit, "{name}");
        left.retain(|other| *other != name);
    }
    assert_eq!(left, Vec::<&str>::new());
    assert_eq!(derive(&samples, 5, 5), BTreeMap::new());
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<BTreeMap<String, Derived>>(&text).unwrap(), found);
}

#[test]
fn every_name_of_the_list_is_computed_somewhere() {
    let source = include_str!("../derived.rs");
    for [name, _, _] in DERIVED {
        assert_eq!(source.matches(&format!("\"{name}\"")).count(), 1, "{name}");
    }
}

#[test]
fn time_that_the_kernel_takes_back_counts_as_none() {
    let samples = Samples {
        series: vec![
            series("cpu", "user", "", &[(0, 0.0), (10, 4.0)]),
            series("cpu", "idle", "", &[(0, 100.0), (10, 106.0)]),
            series("cpu", "iowait", "", &[(0, 1000.0), (5, 1003.0), (10, 999.0)]),
        ],
        ..Samples::default()
    };
    let found = derive(&samples, 0, 10 * SECOND);
    assert_eq!((found["cpu.busy"].value, found["cpu.iowait"].value), (0.4, 0.0));
}
