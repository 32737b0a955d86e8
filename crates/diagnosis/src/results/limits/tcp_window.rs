//! The window of one TCP connection.

use benchmaster_record::environment::Environment;
use benchmaster_record::results::Emulator;

use crate::prelude::*;
use crate::results::link::usage;

/// On shorter ways windows are no limit: the buffers of a default Linux hold 20 ms of 1 Gbit/s.
const LEAST_ROUND_TRIP_NS: f64 = 1e6;
/// TCP's first window times six: less under way is no large transfer.
const LEAST_IN_FLIGHT: f64 = 65_536.0;
/// Share of what the buffers hold that is under way.
const FULL: f64 = 0.75;
/// Beyond this the limit is not where it was thought to be.
const BEYOND: f64 = 1.6;
/// Part of a receive buffer that is offered as window (`tcp_adv_win_scale` = 1).
const OF_RECEIVE_BUFFER: f64 = 0.5;
/// Part of a send buffer that holds data: the rest is bookkeeping, and writers are woken when a third is free.
const OF_SEND_BUFFER: f64 = 2.0 / 3.0;
/// Share of the time for which TCP says that it was stopped by a window.
pub(super) const STOPPED: f64 = 0.3;

pub(super) const DETECTOR: Detector = Detector { id: "tcp-window", detect };

/// One direction of the data.
struct Way {
    name: &'static str,
    /// Bytes per second and connection.
    rate: f64,
    /// What buffers hold, and whose they are.
    window: Option<(f64, &'static str)>,
}

fn detect(measured: &Measured<'_>) -> Verdict {
    let relay = measured.network().is_some_and(|network| network.emulator == Emulator::Relay);
    // Machines of a lab are on one host.
    let near = measured.run.lab.is_some() && measured.network().is_none_or(|network| !network.is_emulated());
    if !measured.is_nfs() || relay || near || measured.is_virtual() {
        return Verdict::Irrelevant;
    }
    let Some(round_trip) = measured.round_trip_ns() else {
        return if measured.is_embedded() {
            Verdict::Irrelevant
        } else {
            Verdict::Unknown(
                "the round trip to the server is not known: measure it with `baseline = true` in `[run]`, or sample `tcp_info` in `[sampling]`".into(),
            )
        };
    };
    if round_trip < LEAST_ROUND_TRIP_NS {
        return Verdict::Irrelevant;
    }
    if usage(measured).is_some_and(|usage| usage.is_limit()) {
        return Verdict::Clear;
    }
    let Some((calls, (rpc, _))) = measured.calls().zip(measured.rpcs()) else {
        return Verdict::uncounted();
    };
    let connections = f64::from(rpc.connection.count());
    let client = measured.recording.samples.first().map_or("", |host| &host.agent);
    let client = measured.environment_of(client);
    // The embedded server is on the host of the study.
    let server = client.filter(|_| measured.is_embedded());
    let per_connection = |bytes: u64| bytes as f64 / measured.seconds().max(1e-9) / connections;
    let ways = [
        Way {
            name: "to the clients",
            rate: per_connection(calls.bytes_received),
            window: least([
                ("the clients' receive buffer", client, true),
                ("the server's send buffer", server, false),
            ]),
        },
        Way {
            name: "to the server",
            rate: per_connection(calls.bytes_sent),
            window: least([
                ("the clients' send buffer", client, false),
                ("the server's receive buffer", server, true),
            ]),
        },
    ];
    let [receive, send] = &ways;
    let way = if receive.rate >= send.rate { receive } else { send };
    let in_flight = way.rate * round_trip / 1e9;
    if in_flight < LEAST_IN_FLIGHT {
        return Verdict::Clear;
    }
    let mut evidence = vec![
        Evidence::nanoseconds("round trip", round_trip),
        Evidence::bytes_per_second("rate of a connection", way.rate),
        Evidence::bytes("under way on a connection (rate · round trip)", in_flight),
    ];
    if let Some((stopped, by)) = stopped(measured).filter(|(share, _)| *share >= STOPPED) {
        evidence.push(Evidence::number("share of the time that TCP was stopped by a window", stopped));
        let what = format!(
            "Each connection had {} under way over a round trip of {}, and TCP was stopped {} of the time by {by}.",
            size(in_flight),
            time(round_trip),
            percent(stopped)
        );
        let finding = Finding::new(Confidence::Certain, what).with(evidence);
        return Verdict::Found(finding.costs_as(stopped, CostOf::Time, "time stopped / time"));
    }
    let Some((window, whose)) = way.window else {
        return Verdict::Unknown(
            "the buffers' limits are not known: `tcp_info` of `[sampling]` tells what stops TCP, from Linux 4.10 on".into(),
        );
    };
    evidence.push(Evidence::bytes("what the buffers allow under way", window));
    if !(FULL * window..BEYOND * window).contains(&in_flight) {
        return Verdict::Clear;
    }
    let what = format!(
        "Each connection moved {} {}, which is {} under way over a round trip of {}: about what {whose} allows ({}).",
        rate(way.rate),
        way.name,
        size(in_flight),
        time(round_trip),
        size(window)
    );
    let finding = Finding::new(Confidence::Likely, what).with(evidence);
    Verdict::Found(finding.costs_as(share(in_flight, window), CostOf::Time, "under way / window"))
}

/// The smallest window that buffers of known hosts allow; `true` for receive buffers.
fn least(buffers: [(&'static str, Option<&Environment>, bool); 2]) -> Option<(f64, &'static str)> {
    let windows = buffers.into_iter().filter_map(|(whose, host, receives)| {
        let (name, part) = if receives {
            ("net.ipv4.tcp_rmem", OF_RECEIVE_BUFFER)
        } else {
            ("net.ipv4.tcp_wmem", OF_SEND_BUFFER)
        };
        let most: f64 = host?.sysctls.get(name)?.split_ascii_whitespace().nth(2)?.parse().ok()?;
        Some((most * part, whose))
    });
    windows.min_by(|(a, _), (b, _)| a.total_cmp(b))
}

/// The largest share of the time for which a connection was stopped by a window, and by which.
pub(super) fn stopped(measured: &Measured<'_>) -> Option<(f64, &'static str)> {
    let hosts = measured.clients().chain(measured.server_host());
    let reasons = [("receiver_limited", "the other end's window"), ("buffer_limited", "its own send buffer")];
    let all = hosts.flat_map(|host| {
        reasons.into_iter().flat_map(move |(metric, by)| {
            let series = host.samples.of("tcp_info", metric);
            series.filter_map(move |series| Some((measured.growth(series)?, by)))
        })
    });
    let (most, by) = all.max_by(|(a, _), (b, _)| a.total_cmp(b))?;
    Some((share(most, measured.recording.length_ns as f64), by))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;
    use benchmaster_record::results::ServedBy;

    /// One connection of the embedded server with `in_flight` bytes under way over 40 ms, and buffers of 6 and 3 MB.
    fn made(in_flight: f64) -> Made {
        let mut made = Made::spread().reading();
        let service = made.run().service.as_mut().unwrap();
        service.server = ServedBy::Embedded;
        (service.network.delay_ns, service.network.base_rtt_ns) = (20_000_000, None);
        service.network.bandwidth = None;
        made.results.baselines.clear();
        let bytes = in_flight / 0.04 * made.recording().length_ns as f64 / 1e9;
        for row in made.rows() {
            (row.bytes_received, row.bytes_sent) = (0, 0);
        }
        made.rows()[0].bytes_received = bytes as u64;
        made.recording().rpc.as_mut().unwrap().connection.clients = 1;
        for session in &mut made.results.sessions {
            for host in session.environment.values_mut() {
                host.sysctls.insert("net.ipv4.tcp_rmem".into(), "4096 131072 6000000".into());
                host.sysctls.insert("net.ipv4.tcp_wmem".into(), "4096 16384 3000000".into());
            }
        }
        made.recording().agents.clear();
        made
    }

    #[test]
    fn as_much_under_way_as_buffers_hold() {
        let found = made(1_900_000.0).found(&DETECTOR);
        assert_eq!(found.confidence, Confidence::Likely);
        assert!(found.what.contains("the server's send buffer allows (1.9 MiB)"), "{}", found.what);
        assert!((found.cost.unwrap().share - 0.95).abs() < 1e-3);
        assert_eq!(made(1_480_000.0).verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(made(3_300_000.0).verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(made(60_000.0).verdict(&DETECTOR), Verdict::Clear);
    }

    #[test]
    fn tcp_says_itself_what_stops_it() {
        let mut stopped = made(1_000_000.0);
        let length = stopped.recording().length_ns as f64;
        stopped.sample("c1", "tcp_info", "receiver_limited", "a-b", 0.31 * length);
        let found = stopped.found(&DETECTOR);
        assert_eq!(found.confidence, Confidence::Certain);
        assert!(found.what.contains("31 % of the time by the other end's window"), "{}", found.what);
        stopped.sample("c1", "tcp_info", "receiver_limited", "a-b", 0.29 * length);
        assert_eq!(stopped.verdict(&DETECTOR), Verdict::Clear);
    }

    #[test]
    fn short_ways_relays_and_full_networks_are_others() {
        let mut near = made(1_900_000.0);
        near.run().service.as_mut().unwrap().network.delay_ns = 400_000;
        assert_eq!(near.verdict(&DETECTOR), Verdict::Irrelevant);
        let mut relay = made(1_900_000.0);
        relay.run().service.as_mut().unwrap().network.emulator = Emulator::Relay;
        assert_eq!(relay.verdict(&DETECTOR), Verdict::Irrelevant);
        let mut full = made(1_900_000.0);
        full.run().service.as_mut().unwrap().network.bandwidth = Some(400_000_000);
        assert_eq!(full.verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(Made::new().verdict(&DETECTOR), Verdict::Irrelevant);
    }

    #[test]
    fn what_is_not_known_is_said() {
        let mut far = made(1_900_000.0);
        let service = far.run().service.as_mut().unwrap();
        (service.server, service.network.delay_ns) = (ServedBy::External, 0);
        far.recording().samples.clear();
        assert!(matches!(far.verdict(&DETECTOR), Verdict::Unknown(why) if why.contains("baseline = true")));
        let mut unknown = made(1_900_000.0);
        unknown.results.sessions.iter_mut().for_each(|session| session.environment.clear());
        assert!(matches!(unknown.verdict(&DETECTOR), Verdict::Unknown(why) if why.contains("tcp_info")));
    }
}
