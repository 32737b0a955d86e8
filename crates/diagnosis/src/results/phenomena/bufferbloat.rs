//! Far more data under way than the network needs.

use benchmaster_record::samples::Samples;
use benchmaster_telemetry::derived::mean;

use super::tools::digits;
use crate::prelude::*;
use crate::results::link::usage;

/// Congestion window over the bandwidth-delay product.
const LEAST_WINDOWS: f64 = 4.0;
/// Round trip over the shortest one, and nanoseconds more than it.
const LEAST_LONGER: f64 = 2.5;
const LEAST_WAIT_NS: f64 = 2e6;
/// Share of the window that is under way: else it is the program that sends little, and round trips are long for other reasons.
const LEAST_USED: f64 = 0.3;
/// Bytes per second that a connection sends.
const LEAST_RATE: f64 = 1e6;

pub(super) const DETECTOR: Detector = Detector { id: "bufferbloat", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    let served_here =
        measured.is_embedded() && measured.network().is_some_and(|network| !network.is_emulated());
    let moved: u64 = measured.recording.series.iter().map(|series| series.total.bytes).sum();
    if served_here || moved == 0 {
        return Verdict::Irrelevant;
    }
    let hosts = || measured.recording.samples.iter();
    let all: Vec<Connection> = hosts().flat_map(|host| connections(measured, &host.samples)).collect();
    let receiving: Vec<Receiving> = hosts().flat_map(|host| receivers(measured, &host.samples)).collect();
    if all.is_empty() && receiving.is_empty() {
        let of_a_directory = measured.rpcs().is_none() && measured.run.service.is_none();
        return if of_a_directory {
            Verdict::Irrelevant
        } else {
            Verdict::Unknown(
                "no connection that sends was sampled with its window and round trips: `[sampling]` with `tcp_info`; for reads on the server's host, `[server] host`".into(),
            )
        };
    }
    let bloated = all.iter().filter(|one| {
        one.windows() >= LEAST_WINDOWS
            && one.used >= LEAST_USED
            && one.rtt >= LEAST_LONGER * one.min_rtt
            && one.rtt - one.min_rtt >= LEAST_WAIT_NS
    });
    if let Some(worst) = bloated.max_by(|a, b| a.windows().total_cmp(&b.windows())) {
        return Verdict::Found(finding(measured, worst));
    }
    let waiting = receiving
        .iter()
        .filter(|one| one.rtt >= LEAST_LONGER * one.min_rtt && one.rtt - one.min_rtt >= LEAST_WAIT_NS);
    let Some(worst) = waiting.max_by(|a, b| a.rtt.total_cmp(&b.rtt)) else { return Verdict::Clear };
    // Requests that are answered late are acknowledged late, too: only a full link tells that they waited before it.
    match usage(measured) {
        Some(usage) if usage.is_limit() => Verdict::Found(received(measured, worst)),
        Some(_) => Verdict::Clear,
        None if all.is_empty() => Verdict::Unknown(
            "round trips are long, but neither the sending connections nor the network's bandwidth are known: `[server] host` for the \
             samples of its connections, or `baseline = true` in `[run]`"
                .into(),
        ),
        None => Verdict::Clear,
    }
}

/// What is known of a connection that receives: its sender's window is not.
struct Receiving {
    /// Bytes per second.
    rate: f64,
    rtt: f64,
    min_rtt: f64,
}

fn receivers(measured: &Measured<'_>, samples: &Samples) -> Vec<Receiving> {
    let seconds = measured.seconds().max(1e-9);
    let grown = |metric: &str, instance: &str| {
        let series = samples.find("tcp_info", metric, instance)?;
        Some(measured.growth(series)? / seconds)
    };
    let of = |instance: &str| {
        let rate = grown("bytes_received", instance)?;
        let sends = grown("bytes_acked", instance).is_some_and(|sent| sent > rate);
        let (rtt, min_rtt) = round_trips(measured, samples, instance)?;
        (rate >= LEAST_RATE && !sends).then_some(Receiving { rate, rtt, min_rtt })
    };
    samples.of("tcp_info", "bytes_received").filter_map(|series| of(&series.key.instance)).collect()
}

/// Mean and shortest round trip of a connection.
fn round_trips(measured: &Measured<'_>, samples: &Samples, instance: &str) -> Option<(f64, f64)> {
    let points = |metric: &str| samples.find("tcp_info", metric, instance).map(|series| &series.points[..]);
    let rtt = mean(points("rtt")?, 0, measured.recording.length_ns as i64)?;
    let shortest = points("min_rtt")?.iter().map(|point| point.value).filter(|value| *value > 0.0);
    let min_rtt = shortest.fold(f64::INFINITY, f64::min);
    min_rtt.is_finite().then_some((rtt, min_rtt))
}

/// What is known of a connection that sends.
struct Connection {
    window: f64,
    segments: f64,
    rtt: f64,
    min_rtt: f64,
    /// Share of the window that is under way; 1 where that is not told.
    used: f64,
    /// Bytes per second that the host sends.
    bandwidth: f64,
}

impl Connection {
    fn product(&self) -> f64 {
        self.bandwidth * self.min_rtt / 1e9
    }

    fn windows(&self) -> f64 {
        self.window / self.product().max(1.0)
    }
}

fn connections(measured: &Measured<'_>, samples: &Samples) -> Vec<Connection> {
    let length = measured.recording.length_ns as i64;
    let seconds = measured.seconds().max(1e-9);
    let sent: Vec<(&str, f64)> = samples
        .of("tcp_info", "bytes_acked")
        .filter_map(|series| Some((series.key.instance.as_str(), measured.growth(series)? / seconds)))
        .filter(|(_, rate)| *rate >= LEAST_RATE)
        .collect();
    let bandwidth: f64 = sent.iter().map(|(_, rate)| rate).sum();
    let of = |instance: &str| {
        let points =
            |metric: &str| samples.find("tcp_info", metric, instance).map(|series| &series.points[..]);
        let gauge = |metric: &str| mean(points(metric)?, 0, length);
        let (rtt, min_rtt) = round_trips(measured, samples, instance)?;
        let segments = gauge("cwnd")?;
        let window = segments * gauge("mss")?;
        let used = gauge("unacked").map_or(1.0, |unacked| unacked / segments.max(1.0));
        Some(Connection { window, segments, rtt, min_rtt, used, bandwidth })
    };
    sent.iter().filter_map(|(instance, _)| of(instance)).collect()
}

fn finding(measured: &Measured<'_>, worst: &Connection) -> Finding {
    let product = worst.product();
    let what = format!(
        "A connection keeps {} under way ({} segments) where {} fill the link ({} at a round trip of {}): the rest waits in queues, and round trips take {}.",
        size(worst.window),
        digits(worst.segments),
        size(product),
        rate(worst.bandwidth),
        time(worst.min_rtt),
        time(worst.rtt)
    );
    Finding::new(Confidence::Likely, what)
        .with([
            Evidence::number("congestion window", worst.segments),
            Evidence::bytes("congestion window · mss", worst.window),
            Evidence::bytes("bandwidth · shortest round trip", product),
            Evidence::number("window / (bandwidth · shortest round trip)", worst.windows()),
            Evidence::nanoseconds("round trip of TCP, mean", worst.rtt),
            Evidence::nanoseconds("round trip of TCP, shortest", worst.min_rtt),
        ])
        .costs(waited(measured, worst.rtt, worst.min_rtt))
}

fn received(measured: &Measured<'_>, worst: &Receiving) -> Finding {
    let longer = worst.rtt - worst.min_rtt;
    let queued = worst.rate * longer / 1e9;
    let what = format!(
        "Round trips of TCP take {} where {} are possible, while a connection receives {} and the link is full: {} wait in the queue before it.",
        time(worst.rtt),
        time(worst.min_rtt),
        rate(worst.rate),
        size(queued)
    );
    Finding::new(Confidence::Likely, what)
        .with([
            Evidence::bytes_per_second("rate of the connection", worst.rate),
            Evidence::bytes("bytes in the queue (rate · (rtt − min_rtt))", queued),
            Evidence::nanoseconds("round trip of TCP, mean", worst.rtt),
            Evidence::nanoseconds("round trip of TCP, shortest", worst.min_rtt),
        ])
        .costs(waited(measured, worst.rtt, worst.min_rtt))
}

/// The share of the calls' time that one longer round trip for each of them is.
fn waited(measured: &Measured<'_>, rtt: f64, min_rtt: f64) -> f64 {
    let longer = share(rtt - min_rtt, rtt);
    let of_calls = |calls: RpcRow| share(calls.ops as f64 * (rtt - min_rtt), calls.execute_ns as f64);
    measured.calls().filter(|calls| calls.ops > 0).map_or(longer, |calls| of_calls(calls).min(longer))
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;
    use benchmaster_record::samples::Kind;

    use super::super::made;
    use super::*;
    use crate::results::testing::Made;

    /// One of five connections of a server with a link of 117 MB/s and 0.17 ms, with so many segments of 1,500 bytes.
    fn verdict(cwnd: f64, rtt_ms: f64) -> Verdict {
        let mut recording = made::recording("read", 60.0);
        made::series(&mut recording, OperationKind::Read, 65_536, &[(1_000_000, 100_000)]);
        made::agents(&mut recording, 5);
        for client in 0..5 {
            let connection = format!("10.0.0.1:2049-10.0.0.{}:900", client + 2);
            let flat = |value: f64| [(0.0, value), (60.0, value)];
            let mut add = |metric: &str, kind, points: [(f64, f64); 2]| {
                made::sample(&mut recording, "server", ("tcp_info", metric, &connection), kind, &points);
            };
            add("bytes_acked", Kind::Counter, [(0.0, 0.0), (60.0, 60.0 * 23.4e6)]);
            add("cwnd", Kind::Gauge, flat(cwnd));
            add("mss", Kind::Gauge, flat(1500.0));
            add("min_rtt", Kind::Gauge, flat(170_000.0));
            add("rtt", Kind::Gauge, flat(rtt_ms * 1e6));
        }
        made::judge(recording, detect)
    }

    #[test]
    fn windows_beyond_what_the_link_needs() {
        let Verdict::Found(found) = verdict(1_900.0, 121.0) else { panic!() };
        assert!(
            found.what.contains("2.7 MiB under way (1900 segments) where 19.4 KiB fill the link"),
            "{}",
            found.what
        );
        assert!(found.cost.unwrap().share > 0.99);
        assert_eq!(verdict(23.0, 0.3), Verdict::Clear);
        assert_eq!(verdict(52.0, 4.0), Verdict::Clear);
        assert!(matches!(verdict(54.0, 4.0), Verdict::Found(_)));
        // A window that is not used.
        assert_eq!(verdict(1_900.0, 0.4), Verdict::Clear);
        assert_eq!(verdict(1_900.0, 2.1), Verdict::Clear);
    }

    /// Reads of one client at `rate` over a link of 1 Gbit/s, whose server's connections are not known.
    fn reader(rate: f64, rtt_ms: f64) -> Made {
        let mut made = Made::spread().reading();
        made.run().service.as_mut().unwrap().network.bandwidth = Some(1_000_000_000);
        let length = made.recording().length_ns as f64 / 1e9;
        for row in made.rows() {
            (row.bytes_received, row.bytes_sent) = (0, 0);
        }
        made.rows()[0].bytes_received = (rate * length) as u64;
        let recording = made.recording();
        recording.rpc.as_mut().unwrap().connection.clients = 1;
        recording
            .samples
            .iter_mut()
            .for_each(|host| host.samples.series.retain(|s| s.key.sampler != "tcp_info"));
        let (agent, connection) = (recording.samples[0].agent.clone(), "10.77.1.1:900-10.77.0.1:2049");
        made.sample(&agent, "tcp_info", "bytes_received", connection, rate * length);
        made.sample(&agent, "tcp_info", "bytes_acked", connection, rate * length / 1000.0);
        for (metric, value) in [("rtt", rtt_ms * 1e6), ("min_rtt", 1e6), ("cwnd", 10.0), ("mss", 1448.0)] {
            made.gauge(&agent, "tcp_info", metric, connection, value);
        }
        made
    }

    #[test]
    fn those_who_receive_see_the_queue_before_a_full_link() {
        let found = reader(118e6, 5.0).found(&DETECTOR);
        assert!(
            found.what.starts_with("Round trips of TCP take 5 ms where 1 ms are possible"),
            "{}",
            found.what
        );
        assert!(
            found.evidence.iter().any(|one| (one.value - 118e6 * 0.004).abs() < 1.0),
            "{:?}",
            found.evidence
        );
        // Shorter round trips, and a link with room.
        assert_eq!(reader(118e6, 2.4).verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(reader(90e6, 5.0).verdict(&DETECTOR), Verdict::Clear);
        let mut unknown = reader(118e6, 5.0);
        unknown.run().service.as_mut().unwrap().network.bandwidth = None;
        unknown.results.baselines.clear();
        assert!(matches!(unknown.verdict(&DETECTOR), Verdict::Unknown(why) if why.contains("bandwidth")));
    }

    #[test]
    fn without_samples() {
        let mut recording = made::recording("read", 1.0);
        assert_eq!(made::judge(recording.clone(), detect), Verdict::Irrelevant);
        made::series(&mut recording, OperationKind::Read, 65_536, &[(1_000_000, 100)]);
        assert_eq!(made::judge(recording.clone(), detect), Verdict::Irrelevant);
        made::rpcs(&mut recording, RpcSource::Client, "3", &[("READ", 10, 65_536, 0.0, 100.0)]);
        assert!(matches!(made::judge(recording, detect), Verdict::Unknown(_)));
    }
}
