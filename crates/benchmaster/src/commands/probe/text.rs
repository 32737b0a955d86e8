//! The tables that `probe` prints.

use benchmaster_probe::{
    CONFIDENCE, Direction, Estimate, Latency, NetworkProbe, NullData, RpcProbe, Throughput,
};
use benchmaster_record::results::Unit;
use benchmaster_units::format::{self, Scale, rounded};

/// The result of `probe network`.
pub(super) fn network(probe: &NetworkProbe, unicode: bool) -> String {
    let whose = if probe.own_far_end { ", a far end in this process: this host, no network" } else { "" };
    let mut lines = vec![format!("network to {}{whose}", probe.target)];
    let mss = probe.mss_bytes.map(|bytes| format!("segments of {} bytes", format::count(bytes)));
    let about: Vec<String> =
        [probe.congestion_control.clone(), mss, Some(format!("probed in {:.0} s", probe.seconds))]
            .into_iter()
            .flatten()
            .collect();
    lines.push(about.join(", "));
    lines.push(String::new());
    let trip = format!("round trip of {} bytes", probe.message_bytes);
    lines.extend(latencies(&[(&trip, &probe.round_trip), ("opening a connection", &probe.connect)], unicode));
    if !probe.throughput.is_empty() {
        lines.push(String::new());
        lines.extend(throughput(&probe.throughput, unicode));
    }
    if let Some(null) = &probe.null_data {
        lines.push(String::new());
        lines.extend(null_data(null, unicode));
    }
    lines.push(String::new());
    lines.push(intervals(probe.round_trip.mean_us.n));
    shown(lines.join("\n") + "\n", unicode)
}

/// The result of `probe rpc`.
pub(super) fn rpc(probe: &RpcProbe, unicode: bool) -> String {
    let mut lines = vec![format!("NFS version {} at {}", probe.version, probe.target), String::new()];
    lines.extend(latencies(
        &[("call of NULL", &probe.null), ("opening a connection", &probe.connect)],
        unicode,
    ));
    lines.push(String::new());
    lines.push(intervals(probe.null.mean_us.n));
    shown(lines.join("\n") + "\n", unicode)
}

fn intervals(repetitions: usize) -> String {
    match repetitions {
        0 | 1 => "one repetition: no intervals; -r 5 gives some".into(),
        n => format!(
            "±: half the {:.0} % interval (Student-t) over {n} repetitions, each on new connections",
            CONFIDENCE * 100.0
        ),
    }
}

fn time(us: f64) -> String {
    format::time(us * 1e3)
}

/// Stands for a value that is not known.
fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".into())
}

fn latencies(rows: &[(&str, &Latency)], unicode: bool) -> Vec<String> {
    let row = |(what, latency): &(&str, &Latency)| {
        vec![
            (*what).to_owned(),
            format::count(latency.n as u64),
            time(latency.min_us),
            time(latency.median_us),
            estimate(&latency.mean_us, 1e3, Unit::Nanoseconds),
            or_dash(latency.p99_us.map(time)),
            time(latency.max_us),
        ]
    };
    let head = ["latency", "n", "min", "median", "mean", "p99", "max"];
    columns(&head, rows.iter().map(row).collect(), unicode)
}

fn throughput(transfers: &[Throughput], unicode: bool) -> Vec<String> {
    let head = ["throughput", "flows", "all flows", "single flows", "fairness", "cwnd", "RTT", "resent"];
    let mut before = None;
    let row = |transfer: &Throughput| {
        let direction = match transfer.direction {
            Direction::ToFarEnd => "to far end",
            Direction::ToClient => "to client",
        };
        let first = before.replace(transfer.direction) != Some(transfer.direction);
        let flows = || transfer.repetitions.iter().flat_map(|repetition| &repetition.flows);
        let single = match transfer.flows {
            1 => String::new(),
            _ => range(flows().map(|flow| flow.bytes_per_s)),
        };
        // Of the second half of each flow, when its window had time to grow.
        let late = |of: fn(&benchmaster_probe::TcpSample) -> u64| {
            let values: Vec<f64> = flows()
                .flat_map(|flow| flow.samples.iter().skip(flow.samples.len() / 2))
                .map(|sample| of(sample) as f64)
                .collect();
            benchmaster_stats::median(&values)
        };
        vec![
            if first { direction.to_owned() } else { String::new() },
            transfer.flows.to_string(),
            estimate(&transfer.bytes_per_s, 1.0, Unit::BytesPerSecond),
            single,
            transfer.fairness.as_ref().map_or_else(String::new, |f| estimate(f, 1.0, Unit::Ratio)),
            or_dash(late(|sample| sample.cwnd_segments).map(|cwnd| format!("{cwnd:.0}"))),
            or_dash(late(|sample| sample.rtt_us).map(time)),
            format::count(flows().map(|flow| flow.retransmits).sum()),
        ]
    };
    let rows = transfers.iter().map(row).collect();
    let mut lines = columns(&head, rows, unicode);
    lines.push(
        "single flows: slowest to fastest; fairness: Jain's index; cwnd (segments), RTT: medians of the"
            .into(),
    );
    lines.push("sender's TCP_INFO while it sends".into());
    lines
}

fn null_data(null: &NullData, unicode: bool) -> Vec<String> {
    let mut lines = vec![format!(
        "null data: {} × {}, replies of {}",
        format::plural(null.connections.into(), "connection"),
        format::plural(null.threads.into(), "thread"),
        format::bytes(null.reply_bytes.into())
    )];
    let mut rows = vec![
        vec!["  throughput".to_owned(), estimate(&null.bytes_per_s, 1.0, Unit::BytesPerSecond)],
        vec!["  requests".to_owned(), estimate(&null.requests_per_s, 1.0, Unit::OperationsPerSecond)],
    ];
    let ratios = [("  fairness", &null.fairness), ("  winner-loser ratio", &null.winner_loser_ratio)];
    for (what, ratio) in ratios {
        if let Some(ratio) = ratio {
            rows.push(vec![what.to_owned(), estimate(ratio, 1.0, Unit::Ratio)]);
        }
    }
    lines.extend(columns(&["", ""], rows, unicode).into_iter().skip(1));
    lines.extend(latencies(&[("  request to reply", &null.latency)], unicode));
    lines
}

fn estimate(estimate: &Estimate, factor: f64, unit: Unit) -> String {
    rounded(estimate.mean * factor, estimate.half_width.map(|h| h * factor), unit, None).text(true)
}

/// The slowest and the fastest of several rates: `89.02–622.9 MB/s`.
fn range(rates: impl Iterator<Item = f64>) -> String {
    let (low, high) =
        rates.fold((f64::INFINITY, 0.0f64), |(low, high), rate| (rate.min(low), rate.max(high)));
    let scale = Scale::common(Unit::BytesPerSecond, [low, high]);
    let [low, high] = [low, high].map(|rate| rounded(rate, None, Unit::BytesPerSecond, scale));
    format!("{}–{} {}", low.value, high.value, high.unit)
}

/// The first column to the left, all others to the right.
fn columns(head: &[&str], rows: Vec<Vec<String>>, unicode: bool) -> Vec<String> {
    let head = head.iter().map(|name| (*name).to_owned()).collect();
    let mut all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    all.iter_mut().flatten().for_each(|cell| *cell = shown(std::mem::take(cell), unicode));
    let length = |text: &String| text.chars().count();
    let width = |column: usize| all.iter().filter_map(|row| row.get(column)).map(length).max().unwrap_or(0);
    let total: usize = (0..all.first().map_or(0, Vec::len)).map(|column| width(column) + 2).sum();
    let gap = if total > 82 { " " } else { "  " };
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, text)| match column {
            0 => format!("{text:<0$}", width(0)),
            _ => format!("{gap}{text:>0$}", width(column)),
        });
        cells.collect::<String>().trim_end().to_owned()
    };
    all.iter().map(line).collect()
}

/// Some terminals have no Unicode.
fn shown(text: String, unicode: bool) -> String {
    if unicode { text } else { format::ascii(&text) }
}
