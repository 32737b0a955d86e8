//! Lost packets, after each of which TCP sends less at once.

use benchmaster_record::results::Emulator;
use benchmaster_telemetry::derived::mean;

use super::tcp_window::{STOPPED, stopped};
use crate::prelude::*;
use crate::results::link::{segment, usage};

/// Bytes of a call in segments, from which on it is a large transfer: TCP answers a loss in fewer by its timeout alone.
const LEAST_SEGMENTS: f64 = 4.0;
/// Segments that were sent again, or lost by the emulation: of fewer nobody knows the share of the lost ones within a half.
const LEAST_LOST: f64 = 5.0;
/// Time of a call in round trips: of less, the way is no small part, and whoever asks waits for nothing else.
const LEAST_TRIPS: f64 = 2.0;
/// The rate in that of the formula, between which loss explains it.
const LOW: f64 = 0.5;
const HIGH: f64 = 2.0;
/// Segments under way of TCP Reno at a loss of 1 (Mathis et al.: √(3/2)).
const RENO: f64 = 1.22;
/// The same of CUBIC, times the seconds of a round trip to the power of 3/4: (C · (3 + β) / (4 · (1 − β)))^(1/4) with C = 0.4, β = 0.7.
const CUBIC: f64 = 1.054;

pub(super) const DETECTOR: Detector = Detector { id: "packet-loss", detect };

/// What is known of losses in the direction of the data.
struct Loss {
    /// Share of the segments.
    share: f64,
    /// How many.
    lost: f64,
    /// In nanoseconds, where the sender knows it.
    round_trip: Option<f64>,
    /// Bytes of data in a segment, where the sender knows it.
    segment: Option<f64>,
    from: &'static str,
    confidence: Confidence,
}

fn detect(measured: &Measured<'_>) -> Verdict {
    let emulated = measured.network().filter(|network| network.is_emulated());
    let relay = emulated.is_some_and(|network| network.emulator == Emulator::Relay);
    let loopback = measured.is_embedded() && emulated.is_none();
    if !measured.is_nfs() || measured.is_virtual() || relay || loopback {
        return Verdict::Irrelevant;
    }
    let Some((calls, (rpc, _))) = measured.calls().zip(measured.rpcs()).filter(|(calls, _)| calls.ops > 0)
    else {
        return match measured.rpcs() {
            Some(_) => Verdict::Irrelevant,
            None => Verdict::uncounted(),
        };
    };
    let to_clients = calls.bytes_received >= calls.bytes_sent;
    // What is written waits for TCP before it is sent, and what is read after the call was.
    let (bytes, call_ns) = if to_clients {
        (calls.bytes_received as f64, calls.rtt_ns as f64 / calls.ops as f64)
    } else {
        (calls.bytes_sent as f64, calls.execute_ns as f64 / calls.ops as f64)
    };
    if bytes / calls.ops as f64 <= LEAST_SEGMENTS * segment(measured) {
        return Verdict::Clear;
    }
    let Some(loss) = of_sender(measured, to_clients).or_else(|| of_emulation(measured)) else {
        return match emulated {
            Some(_) => Verdict::Clear,
            None => Verdict::Unknown(if to_clients {
                "what the server's TCP had to send again is not known: name it in `[server] host` and keep `tcp_info` in `[sampling]`".into()
            } else {
                "what the clients' TCP had to send again is not known: keep `tcp_info` in `[sampling]`".into()
            }),
        };
    };
    let Some(round_trip) = loss.round_trip.or_else(|| measured.round_trip_ns()).filter(|ns| *ns > 0.0) else {
        return Verdict::Unknown(
            "the round trip to the server is not known: measure it with `baseline = true` in `[run]`".into(),
        );
    };
    let full = usage(measured).is_some_and(|usage| usage.is_limit());
    let window = stopped(measured).is_some_and(|(share, _)| share >= STOPPED);
    let explained = full || window || goes_by_rate(measured, to_clients);
    if explained || loss.lost < LEAST_LOST || call_ns < LEAST_TRIPS * round_trip {
        return Verdict::Clear;
    }
    let connections = f64::from(rpc.connection.count());
    let moved = bytes / measured.seconds().max(1e-9) / connections;
    let segment = loss.segment.unwrap_or_else(|| segment(measured));
    let possible = segments_under_way(loss.share, round_trip / 1e9) * segment / (round_trip / 1e9);
    let part = moved / possible;
    if !(LOW..=HIGH).contains(&part) {
        return Verdict::Clear;
    }
    let what = format!(
        "{} of the segments are lost ({}). Over a round trip of {} TCP then moves about {} on a connection, and {} were moved: {} under way.",
        percent(loss.share),
        loss.from,
        time(round_trip),
        rate(possible),
        rate(moved),
        size(moved * round_trip / 1e9)
    );
    Verdict::Found(
        Finding::new(loss.confidence, what)
            .with([
                Evidence::number("share of the segments that are lost", loss.share),
                Evidence::number("lost, or sent again", loss.lost),
                Evidence::nanoseconds("round trip", round_trip),
                Evidence::bytes_per_second("rate of a connection", moved),
                Evidence::bytes_per_second("rate of a connection that such losses allow", possible),
                Evidence::number("rate / what losses allow", part),
                Evidence::nanoseconds("mean time of a call", call_ns),
            ])
            .costs(1.0 - share(round_trip, call_ns)),
    )
}

/// How many segments such losses let be under way over such a round trip.
fn segments_under_way(loss: f64, round_trip_s: f64) -> f64 {
    (RENO / loss.sqrt()).max(CUBIC * (round_trip_s / loss).powf(0.75))
}

/// What the hosts that send the data counted: the server where they go to the clients.
fn of_sender(measured: &Measured<'_>, to_clients: bool) -> Option<Loss> {
    let length = measured.recording.length_ns as i64;
    let (mut sent, mut again) = (0.0, 0.0);
    // Weighted by the segments of each connection.
    let (mut round_trips, mut segments) = (0.0, 0.0);
    let server = measured.server_host().filter(|_| to_clients);
    let clients = measured.clients().filter(|_| !to_clients);
    for host in server.into_iter().chain(clients) {
        for series in host.samples.of("tcp_info", "segments_out") {
            let of = |metric: &str| host.samples.find("tcp_info", metric, &series.key.instance);
            let gauge = |metric: &str| mean(&of(metric)?.points, 0, length);
            let counted = || {
                let out = measured.growth(series)?;
                Some((out, measured.growth(of("total_retransmitted")?)?, gauge("rtt")?, gauge("mss")?))
            };
            let Some((out, repeated, rtt, mss)) = counted() else { continue };
            sent += out;
            again += repeated;
            round_trips += out * rtt;
            segments += out * mss;
        }
    }
    (sent > 0.0 && again > 0.0).then_some(Loss {
        share: share(again, sent),
        lost: again,
        round_trip: Some(round_trips / sent),
        segment: Some(segments / sent),
        from: "the sender's TCP retransmitted as many",
        confidence: Confidence::Certain,
    })
}

/// What the emulated network loses.
fn of_emulation(measured: &Measured<'_>) -> Option<Loss> {
    let network = measured.network().filter(|network| network.loss > 0.0)?;
    let lost = measured.run.service.as_ref()?.achieved.as_ref()?.lost?;
    Some(Loss {
        share: network.loss,
        lost: lost as f64,
        round_trip: None,
        segment: None,
        from: "by the emulated network",
        confidence: Confidence::Likely,
    })
}

/// Whether the congestion control of the sender is known to go by the rate at which segments arrive.
fn goes_by_rate(measured: &Measured<'_>, to_clients: bool) -> bool {
    let asked = measured.run.parameters.congestion.as_deref();
    let of_host = || {
        let host = if to_clients && !measured.is_embedded() {
            measured.server_host()
        } else {
            measured.recording.samples.first()
        };
        let host = measured.environment_of(host.map_or("", |host| &host.agent))?;
        host.sysctls.get("net.ipv4.tcp_congestion_control").map(|name| name.trim())
    };
    asked.or_else(of_host).is_some_and(|name| name.starts_with("bbr"))
}

#[cfg(test)]
mod tests {
    use benchmaster_record::results::NetworkAchieved;
    use benchmaster_record::results::ServedBy;

    use super::*;
    use crate::results::testing::Made;

    /// Reads of 64 KiB over one connection of the embedded server: 20 ms there and back, 0.5 % lost by the emulation, at so
    /// many times the rate of the formula, each call taking so many round trips.
    fn made(part: f64, trips: f64) -> Made {
        let mut made = Made::spread().reading();
        let service = made.run().service.as_mut().unwrap();
        service.server = ServedBy::Embedded;
        service.network.emulator = Emulator::Wire;
        (service.network.delay_ns, service.network.base_rtt_ns) = (10_000_000, None);
        (service.network.bandwidth, service.network.loss) = (None, 0.005);
        service.achieved = Some(NetworkAchieved { lost: Some(40), ..NetworkAchieved::default() });
        made.results.baselines.clear();
        // 17.25 segments of 1,448 bytes in each round trip.
        let rate = part * 17.253 * 1_448.0 / 0.02;
        let bytes = rate * made.recording().length_ns as f64 / 1e9;
        let ops = (bytes / 65_536.0) as u64;
        for row in made.rows() {
            (row.ops, row.bytes_received, row.bytes_sent, row.rtt_ns, row.execute_ns) = (0, 0, 0, 0, 0);
        }
        let row = &mut made.rows()[0];
        (row.ops, row.bytes_received) = (ops, bytes as u64);
        row.rtt_ns = (ops as f64 * trips * 20e6) as u64;
        row.execute_ns = row.rtt_ns;
        let recording = made.recording();
        recording.rpc.as_mut().unwrap().connection.clients = 1;
        recording.samples.clear();
        recording.agents.clear();
        congestion(&mut made, "cubic");
        made
    }

    fn congestion(made: &mut Made, name: &str) {
        for session in &mut made.results.sessions {
            for host in session.environment.values_mut() {
                host.sysctls.insert("net.ipv4.tcp_congestion_control".into(), name.into());
            }
        }
    }

    /// What the server, on a host of its own, counted of one connection.
    fn counted(made: &mut Made, again: f64) {
        let service = made.run().service.as_mut().unwrap();
        (service.server, service.network) = (ServedBy::External, Default::default());
        service.achieved = None;
        // The host that has no clients.
        let server = {
            let other = Made::spread().reading();
            let recording = &other.results.runs[0].recordings[other.which];
            let host = recording.samples.iter().find(|host| !recording.is_of_clients(host)).unwrap().clone();
            made.recording().agents = recording.agents.clone();
            host.agent
        };
        made.sample(&server, "tcp_info", "segments_out", "a-b", 10_000.0);
        made.sample(&server, "tcp_info", "total_retransmitted", "a-b", again);
        made.gauge(&server, "tcp_info", "rtt", "a-b", 20e6);
        made.gauge(&server, "tcp_info", "mss", "a-b", 1_448.0);
    }

    #[test]
    fn the_formulas_are_those_of_the_literature() {
        // Reno, at 0.5 % and 20 ms.
        assert!((segments_under_way(0.005, 0.02) - 17.25).abs() < 0.01);
        // CUBIC with C = 0.4 and a round trip of 0.1 s, as RFC 9438 §5.1 has them in its table.
        for (loss, segments) in [(1e-4, 187.0), (1e-5, 1_054.0)] {
            let found = segments_under_way(loss, 0.1);
            assert!((found / segments - 1.0).abs() < 0.02, "{loss}: {found}");
        }
    }

    #[test]
    fn what_losses_allow_is_what_was_moved() {
        let found = made(0.96, 40.0).found(&DETECTOR);
        assert_eq!(found.confidence, Confidence::Likely);
        assert!(
            found.what.starts_with("0.5 % of the segments are lost (by the emulated network)"),
            "{}",
            found.what
        );
        assert!((found.cost.unwrap().share - 0.975).abs() < 1e-3);
        for part in [0.52, 1.9] {
            assert!(matches!(made(part, 40.0).verdict(&DETECTOR), Verdict::Found(_)), "{part}");
        }
        for part in [0.48, 2.1] {
            assert_eq!(made(part, 40.0).verdict(&DETECTOR), Verdict::Clear, "{part}");
        }
        // Calls that take no longer than the way ask for too little.
        assert!(matches!(made(1.0, 2.1).verdict(&DETECTOR), Verdict::Found(_)));
        assert_eq!(made(1.0, 1.9).verdict(&DETECTOR), Verdict::Clear);
    }

    #[test]
    fn other_limits_and_other_congestion_controls_are_none_of_it() {
        let mut rate = made(1.0, 40.0);
        congestion(&mut rate, "bbr");
        assert_eq!(rate.verdict(&DETECTOR), Verdict::Clear);
        let mut full = made(1.0, 40.0);
        full.run().service.as_mut().unwrap().network.bandwidth = Some(10_000_000);
        assert_eq!(full.verdict(&DETECTOR), Verdict::Clear);
        let mut healthy = made(1.0, 40.0);
        healthy.run().service.as_mut().unwrap().network.loss = 0.0;
        assert_eq!(healthy.verdict(&DETECTOR), Verdict::Clear);
        let mut few = made(1.0, 40.0);
        few.run().service.as_mut().unwrap().achieved.as_mut().unwrap().lost = Some(4);
        assert_eq!(few.verdict(&DETECTOR), Verdict::Clear);
        let mut small = made(1.0, 40.0);
        let row = &mut small.rows()[0];
        row.ops = row.bytes_received / 4_096;
        row.rtt_ns = row.ops * 800_000_000;
        assert_eq!(small.verdict(&DETECTOR), Verdict::Clear);
        let mut relay = made(1.0, 40.0);
        relay.run().service.as_mut().unwrap().network.emulator = Emulator::Relay;
        assert_eq!(relay.verdict(&DETECTOR), Verdict::Irrelevant);
        assert_eq!(Made::new().verdict(&DETECTOR), Verdict::Irrelevant);
        let mut stopped = made(1.0, 40.0);
        let length = stopped.recording().length_ns as f64;
        stopped.sample("c1", "tcp_info", "receiver_limited", "a-b", 0.31 * length);
        assert_eq!(stopped.verdict(&DETECTOR), Verdict::Clear);
    }

    #[test]
    fn the_sender_counts_on_real_networks() {
        let mut real = made(1.0, 40.0);
        counted(&mut real, 50.0);
        let found = real.found(&DETECTOR);
        assert_eq!(found.confidence, Confidence::Certain);
        assert!(found.what.contains("sender's TCP retransmitted as many"), "{}", found.what);
        let mut healthy = made(1.0, 40.0);
        counted(&mut healthy, 2.0);
        assert_eq!(healthy.verdict(&DETECTOR), Verdict::Clear);
        let mut unknown = made(1.0, 40.0);
        counted(&mut unknown, 50.0);
        unknown.recording().samples.clear();
        assert!(matches!(unknown.verdict(&DETECTOR), Verdict::Unknown(why) if why.contains("[server] host")));
    }
}
