//! Which counters are drawn together.

use benchmaster_record::model::OperationKind;
use benchmaster_record::recording::{HostSamples, OperationStats, Recording, SeriesRecording};
use benchmaster_record::samples::{Point, Samples, Series};
use benchmaster_telemetry::derived::{growth, maximum, mean};

use super::super::figure::Panel;
use super::panel;

/// Interfaces, disks and kinds of RPC that are drawn, the busiest ones.
const BUSIEST: usize = 3;

/// The measured phase in equal parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window {
    pub(super) part_ns: i64,
    pub(super) parts: u64,
}

/// A line: its name, and its value in each part of the time; NaN where it is not known.
pub(super) type Named = (String, Vec<f64>);

impl Window {
    fn of(self, value: impl Fn(i64, i64) -> Option<f64>) -> Vec<f64> {
        let part = |number: i64| value(number * self.part_ns, (number + 1) * self.part_ns);
        (0..self.parts as i64).map(|number| part(number).unwrap_or(f64::NAN)).collect()
    }

    /// Growth per second of a counter.
    fn rate(self, points: &[Point]) -> Vec<f64> {
        self.of(|from, to| Some(growth(points, from, to)? * 1e9 / self.part_ns as f64))
    }

    /// Of several counters together; a counter that is not known in a part adds nothing to it.
    fn rates<'s>(self, all: impl Iterator<Item = &'s Series>) -> Option<Vec<f64>> {
        let rates = all.map(|series| self.rate(&series.points));
        rates.reduce(|a, b| a.iter().zip(&b).map(|(x, y)| plus(*x, *y)).collect())
    }

    fn whole(self, points: &[Point]) -> f64 {
        growth(points, 0, self.part_ns * self.parts as i64).unwrap_or(0.0)
    }

    /// The instances of a counter that grew most.
    fn busiest<'s>(self, samples: &'s Samples, sampler: &str, metric: &str) -> Vec<&'s Series> {
        let is = |s: &&Series| s.key.sampler == sampler && s.key.metric == metric;
        let mut all: Vec<(f64, &Series)> =
            samples.series.iter().filter(is).map(|series| (self.whole(&series.points), series)).collect();
        all.retain(|(grown, _)| *grown > 0.0);
        all.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        all.into_iter().take(BUSIEST).map(|(_, series)| series).collect()
    }
}

/// The sum of what is known.
fn plus(a: f64, b: f64) -> f64 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ => a + b,
    }
}

/// The panels of a host.
pub(super) fn panels(host: &HostSamples, window: Window) -> Vec<(Panel, Vec<Named>)> {
    let samples = &host.samples;
    let disks = window.busiest(samples, "diskstats", "busy_time");
    known(vec![
        (panel("RPCs [1/s]", ""), rpcs(samples, window)),
        (panel("RPC times (mountstats)", "s"), rpc_times(samples, window)),
        (panel("TCP round trip", "s"), gauge(samples, "rtt", 1e-9, window)),
        (panel("TCP window [segments]", ""), gauge(samples, "cwnd", 1.0, window)),
        (panel("TCP segments retransmitted [1/s]", ""), sent_again(samples, window)),
        (panel("network", "B/s"), network(samples, window)),
        (whole(panel("CPU utilisation", "")), processors(samples, window)),
        (panel("memory to write back", "B"), memory(samples, window)),
        (whole(panel("disk busy", "")), shares(&disks, window)),
        (panel("disk wait (await)", "s"), waits(samples, &disks, window)),
    ])
}

/// Those of a server's host: what it has to do, and with what.
pub(super) fn server_panels(host: &HostSamples, window: Window) -> Vec<(Panel, Vec<Named>)> {
    let samples = &host.samples;
    let disks = window.busiest(samples, "diskstats", "busy_time");
    known(vec![
        (panel("RPCs [1/s]", ""), rpcs(samples, window)),
        (whole(panel("CPU utilisation", "")), processors(samples, window)),
        (whole(panel("disk busy", "")), shares(&disks, window)),
        (panel("disk wait (await)", "s"), waits(samples, &disks, window)),
    ])
}

/// With a mark at 1, beyond which a share cannot go.
fn whole(panel: Panel) -> Panel {
    Panel { marks: vec![(1.0, "all".into())], ..panel }
}

/// Those of which something is known.
fn known(panels: Vec<(Panel, Vec<Named>)>) -> Vec<(Panel, Vec<Named>)> {
    let is_known =
        |lines: &[Named]| lines.iter().any(|(_, values)| values.iter().any(|value| !value.is_nan()));
    panels.into_iter().filter(|(_, lines)| is_known(lines)).collect()
}

/// Bytes per second of the application, and of the machines of all clients together; operations per second where no bytes were
/// moved. With the unit.
pub(super) fn application(recording: &Recording, window: Window) -> (&'static str, Vec<Named>) {
    let mut lines = Vec::new();
    for (name, kind) in [("reads", OperationKind::Read), ("writes", OperationKind::Write)] {
        let rates = amounts(
            recording,
            window,
            |series, stats| {
                if series.key.operation == kind { stats.bytes } else { 0 }
            },
        );
        lines.extend(rates.map(|rates| (format!("application {name}"), rates)));
    }
    if lines.is_empty() {
        let all = amounts(recording, window, |_, stats| stats.count);
        return ("ops/s", all.map(|rates| ("all operations".to_owned(), rates)).into_iter().collect());
    }
    for (name, metric) in [("receive", "rx_bytes"), ("send", "tx_bytes")] {
        let hosts = recording.samples.iter().filter(|host| recording.has_clients(&host.agent));
        let interfaces =
            hosts.flat_map(|host| host.samples.of("net", metric)).filter(|s| s.key.instance != "lo");
        lines.extend(window.rates(interfaces).map(|rates| (format!("clients' hosts {name}"), rates)));
    }
    ("B/s", lines)
}

/// An amount of the intervals per second; `None` where there is none of it.
fn amounts(
    recording: &Recording,
    window: Window,
    amount: impl Fn(&SeriesRecording, &OperationStats) -> u64,
) -> Option<Vec<f64>> {
    let mut all: Vec<(u32, u64)> = Vec::new();
    for series in &recording.series {
        all.extend(series.intervals.iter().map(|one| (one.index, amount(series, &one.stats))));
    }
    all.sort_unstable();
    let mut points = vec![Point { time_ns: 0, value: 0.0 }];
    let mut sum = 0.0;
    for (index, more) in all {
        sum += more as f64;
        let interval = recording.interval_ns;
        // Nothing happened in the intervals that are not there.
        let start = (u64::from(index) * interval).min(recording.length_ns) as i64;
        let end = ((u64::from(index) + 1) * interval).min(recording.length_ns) as i64;
        let (last, before) = points.last().map_or((0, 0.0), |last| (last.time_ns, last.value));
        if last < start {
            points.push(Point { time_ns: start, value: before });
        }
        match points.last_mut() {
            Some(last) if last.time_ns == end => last.value = sum,
            _ => points.push(Point { time_ns: end, value: sum }),
        }
    }
    if let Some(last) = points.last().copied()
        && last.time_ns < recording.length_ns as i64
    {
        points.push(Point { time_ns: recording.length_ns as i64, value: last.value });
    }
    (sum > 0.0).then(|| window.rate(&points))
}

/// Where the time of the most frequent RPCs goes, each call: waiting to be sent, and until the reply.
fn rpc_times(samples: &Samples, window: Window) -> Vec<Named> {
    let mut lines = Vec::new();
    for ops in window.busiest(samples, "mountstats", "ops") {
        let calls = window.rate(&ops.points);
        for (name, metric) in [("round trip", "rtt_time"), ("queue", "queue_time")] {
            let Some(time) = samples.find("mountstats", metric, &ops.key.instance) else { continue };
            let each = |(ns, calls): (f64, &f64)| if *calls > 0.0 { ns / calls / 1e9 } else { f64::NAN };
            let values = window.rate(&time.points).into_iter().zip(&calls).map(each).collect();
            lines.push((format!("{} {name}", ops.key.instance), values));
        }
    }
    lines
}

fn processors(samples: &Samples, window: Window) -> Vec<Named> {
    let kinds = [
        ("user", &["user", "nice"][..]),
        ("kernel", &["system", "irq", "softirq"]),
        ("waiting for I/O", &["iowait"]),
        ("stolen", &["steal"]),
        ("", &["idle"]),
    ];
    let rate =
        |metrics: &[&str]| window.rates(metrics.iter().filter_map(|metric| samples.find("cpu", metric, "")));
    let rates: Vec<(&str, Vec<f64>)> =
        kinds.into_iter().filter_map(|(name, metrics)| Some((name, rate(metrics)?))).collect();
    let total = rates
        .iter()
        .map(|(_, values)| values.clone())
        .reduce(|a, b| a.iter().zip(&b).map(|(x, y)| plus(*x, *y)).collect());
    let Some(total) = total else { return Vec::new() };
    let share = |values: Vec<f64>| values.iter().zip(&total).map(|(part, all)| part / all).collect();
    rates
        .into_iter()
        .filter(|(name, _)| !name.is_empty())
        .map(|(name, values)| (name.to_owned(), share(values)))
        .collect()
}

fn memory(samples: &Samples, window: Window) -> Vec<Named> {
    [("dirty", "Dirty"), ("being written", "Writeback")]
        .into_iter()
        .filter_map(|(name, metric)| {
            let series = samples.find("memory", metric, "")?;
            Some((name.to_owned(), window.of(|from, to| maximum(&series.points, from, to))))
        })
        .collect()
}

fn network(samples: &Samples, window: Window) -> Vec<Named> {
    let mut lines = Vec::new();
    for (name, metric) in [("received", "rx_bytes"), ("sent", "tx_bytes")] {
        let busiest = window.busiest(samples, "net", metric);
        let line = |s: &&Series| (format!("{name} by {}", s.key.instance), window.rate(&s.points));
        lines.extend(busiest.iter().map(line));
    }
    lines
}

fn shares(disks: &[&Series], window: Window) -> Vec<Named> {
    let share = |s: &&Series| window.rate(&s.points).iter().map(|ns| ns / 1e9).collect();
    disks.iter().map(|disk| (disk.key.instance.clone(), share(disk))).collect()
}

/// Time of reads and writes together, divided by their number.
fn waits(samples: &Samples, disks: &[&Series], window: Window) -> Vec<Named> {
    let of = |disk: &str, metrics: [&str; 2]| {
        window.rates(metrics.into_iter().filter_map(|metric| samples.find("diskstats", metric, disk)))
    };
    let wait = |disk: &&Series| {
        let name = disk.key.instance.as_str();
        let (times, numbers) = (of(name, ["read_time", "write_time"])?, of(name, ["reads", "writes"])?);
        let each = |(ns, number): (&f64, &f64)| if *number > 0.0 { ns / number / 1e9 } else { f64::NAN };
        Some((name.to_owned(), times.iter().zip(&numbers).map(each).collect()))
    };
    disks.iter().filter_map(wait).collect()
}

/// Mean of a gauge over all connections.
fn gauge(samples: &Samples, metric: &str, scale: f64, window: Window) -> Vec<Named> {
    let all: Vec<&Series> = samples.of("tcp_info", metric).collect();
    let value = |from, to| {
        let each: Vec<f64> = all.iter().filter_map(|series| mean(&series.points, from, to)).collect();
        Some(benchmaster_stats::mean(&each)? * scale)
    };
    match all.len() {
        0 => Vec::new(),
        1 => vec![("the connection".into(), window.of(value))],
        n => vec![(format!("mean of {n} connections"), window.of(value))],
    }
}

fn sent_again(samples: &Samples, window: Window) -> Vec<Named> {
    let tested = window.rates(samples.of("tcp_info", "total_retransmitted"));
    let host = window.rates(samples.of("net", "RetransSegs"));
    [("tested connections", tested), ("whole host", host)]
        .into_iter()
        .filter_map(|(name, rates)| Some((name.to_owned(), rates?)))
        .collect()
}

/// The most frequent RPCs of the clients' mounts, or of the kernel's server.
fn rpcs(samples: &Samples, window: Window) -> Vec<Named> {
    let mut lines = Vec::new();
    for (sampler, metric) in [("mountstats", "ops"), ("nfsd", "calls"), ("nfsd", "operations")] {
        let line = |s: &&Series| (s.key.instance.clone(), window.rate(&s.points));
        lines.extend(window.busiest(samples, sampler, metric).iter().map(line));
    }
    lines
}
