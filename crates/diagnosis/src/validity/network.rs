//! Checks of the network: what its emulation could not do, what TCP retransmitted.

use benchmaster_record::recording::SeriesRecording;
use benchmaster_record::results::{Check, CheckKind, Emulator, Evidence, Severity};

use super::rule::{Consequence, Could, Failed, Follows, Rule, Subject, any, failed, nothing, when};
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Need, Plot, Remedy};
use crate::words::{percent, share, size};

/// Segments that TCP sends before the first acknowledgement (RFC 6928 §2), in bytes.
const INITIAL_WINDOW: f64 = 14_600.0;

pub(crate) static EMULATED_NETWORK: Rule = Rule {
    kind: CheckKind::EmulatedNetwork,
    explanation: Explanation {
        id: "emulated-network",
        group: Group::Doubt,
        title: "A relay delayed the data without TCP's knowledge",
        mechanism: "A relay terminates TCP connections on both of its sides, so that acknowledgements come at once: windows, slow start and buffers do not limit the rate as they would \
                    on a real network of that length. Latencies of single requests are right; throughput is higher than it would be.",
        formula: "found when data went through a relay with a delay, and rate · round trip / connections is more than TCP's initial window of 14,600 bytes",
        source: "the check `emulated-network`; RFC 6928, section 2",
    },
    check: emulated_network,
    remedy: |_| {
        Remedy::new("Emulate the network below TCP.")
            .by(Need::EmulatedNetwork, "[network] means = \"wire\"   # or \"netem\"; or a [lab], whose machines have a network of their own")
            .confirmed_by("the same study with `means = \"wire\"`")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: |measured| when(measured.network().is_some_and(|network| network.delay_ns > 0)),
        worth: |failed| failed.check.severity > Severity::Note,
        numbers: &[("delay_ns", "one-way delay"), ("in_flight", "bytes in flight per connection")],
        cost: nothing,
        plot: Some(Plot::Response),
    }),
};

fn emulated_network(s: Subject<'_>) -> Option<Check> {
    let service = s
        .service
        .filter(|service| service.network.emulator == Emulator::Relay && service.network.delay_ns > 0)?;
    let bytes: u64 = s.recording.series.iter().map(|series| series.total.bytes).sum();
    if bytes == 0 {
        return None;
    }
    let rpc = s.recording.rpc.as_ref();
    let connections = rpc.map_or(1, |rpc| rpc.connection.count());
    let rate = bytes as f64 * 1e9 / s.recording.length_ns.max(1) as f64;
    let delay_ns = service.network.delay_ns as f64;
    let in_flight = rate * 2.0 * delay_ns / 1e9 / f64::from(connections);
    let (severity, why) = if in_flight > INITIAL_WINDOW {
        (
            Severity::Warning,
            "the relay acknowledges locally, so TCP's windows did not limit it as on a real network of this length",
        )
    } else {
        (Severity::Note, "less than TCP's initial window, so the throughput is that of a real network")
    };
    let message = format!(
        "Throughput was measured through a relay with {} ms one-way delay and {} in flight per connection: {why}.",
        delay_ns / 1e6,
        size(in_flight.round())
    );
    let evidence = [Evidence::nanoseconds("delay_ns", delay_ns), Evidence::bytes("in_flight", in_flight)];
    failed(s, CheckKind::EmulatedNetwork, severity, message, evidence)
}

pub(crate) static LATE_NETWORK: Rule = Rule {
    kind: CheckKind::LateNetwork,
    explanation: Explanation {
        id: "late-network",
        group: Group::Doubt,
        title: "The emulated network was late",
        mechanism: "Relay and wire are programs: when they do not get a processor in time, packets are delivered late, and round trips are longer than \
                    requested.",
        formula: "found when one packet in a hundred left later than a tenth of the delay, and 0.1 ms, after its time, and that is 10 % or more of the 99th percentile of the latency, or of the mean \
                  times the share of operations that have a late packet",
        source: "the check `late-network`; docs/network.md",
    },
    check: late_network,
    remedy: |_| {
        Remedy::new("Leave the emulation a processor of its own: fewer workers and clients on this host, or fewer threads of the embedded server.")
            .by(Need::EmbeddedServer, "[server] threads = 1")
            .confirmed_by("`benchmaster wire` and `benchmaster relay` print how late they were")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: |measured| {
            let achieved = measured.run.service.as_ref().and_then(|service| service.achieved.as_ref());
            when(achieved.is_some_and(|achieved| achieved.lateness_p99_ns.is_some()))
        },
        worth: any,
        numbers: &[
            ("lateness_p99_ns", "lateness that one packet in a hundred exceeded"),
            ("delay_ns", "one-way delay"),
            ("share", "that lateness, as a share of the latencies"),
        ],
        cost: nothing,
        plot: Some(Plot::Latency),
    }),
};

/// Share of a latency from which on lateness of the network is a failed check.
const LEAST_HARM: f64 = 0.1;

fn late_network(s: Subject<'_>) -> Option<Check> {
    let service = s.service?;
    let achieved = service.achieved.as_ref()?;
    let late = achieved.lateness_p99_ns? as f64;
    let delay_ns = service.network.delay_ns as f64;
    if late <= (delay_ns / 10.0).max(100e3) {
        return None;
    }
    let share = harm_of_lateness(s, late, achieved.packets);
    if share < LEAST_HARM {
        return None;
    }
    let what = if service.network.emulator == Emulator::Relay { "relay" } else { "emulated network" };
    let message = format!(
        "The {what} was late: one packet in a hundred left more than {:.2} ms after its time, with a delay of {} ms; that is \
         {} of the latencies measured over it.",
        late / 1e6,
        delay_ns / 1e6,
        percent(share.min(1.0))
    );
    let evidence = [
        Evidence::nanoseconds("lateness_p99_ns", late),
        Evidence::nanoseconds("delay_ns", delay_ns),
        Evidence::number("share", share),
    ];
    failed(s, CheckKind::LateNetwork, Severity::Warning, message, evidence)
}

/// What a lateness of one packet in a hundred is of the latencies: of their 99th percentile, which it moves by as much as it is,
/// or of their mean, which it moves in so far as operations have late packets. The larger of both; 1 where nothing is known.
fn harm_of_lateness(s: Subject<'_>, late: f64, packets: Option<u64>) -> f64 {
    let series = &s.recording.series;
    let count: u64 = series.iter().map(|series| series.total.count).sum();
    let sum: u64 = series.iter().map(|series| series.total.sum_ns).sum();
    let p99 = series
        .iter()
        .max_by_key(|series| series.total.count)
        .and_then(|series| Some(series.total.latency.decode().ok()?.value_at_quantile(0.99)));
    if count == 0 || sum == 0 {
        return 1.0;
    }
    let have_late = packets.map_or(1.0, |packets| (packets as f64 / count as f64 / 100.0).min(1.0));
    let of_mean = have_late * late * count as f64 / sum as f64;
    let of_p99 = p99.filter(|p99| *p99 > 0).map_or(0.0, |p99| late / p99 as f64);
    of_mean.max(of_p99)
}

/// Share of all segments from which on TCP's retransmissions are worth a finding.
const LOSS: f64 = 1e-3;
/// Segments: fewer happen anywhere.
const LEAST_SEGMENTS: f64 = 10.0;
/// Share of the operations' time.
const LEAST_COST: f64 = 0.01;
/// Shortest retransmission timeout of Linux.
const TIMEOUT_NS: u64 = 200_000_000;

pub(crate) static TCP_RETRANSMISSIONS: Rule = Rule {
    kind: CheckKind::TcpRetransmissions,
    explanation: Explanation {
        id: "tcp-retransmissions",
        group: Group::Condition,
        title: "TCP retransmitted segments",
        mechanism: "A lost segment is retransmitted after a round trip if others follow it, else after 200 ms or more; and the window shrinks. One loss in a thousand \
                    is enough to hold a connection with a long round trip far below the network's rate.",
        formula: "found when ≥ 10 segments and ≥ 0.1 % of those sent were retransmitted, on a network without emulated loss, and that cost ≥ 1 %; cost at most = 200 ms for each segment, \
                  but for no more than operations took as long, / time of all operations",
        source: "the check `tcp-retransmissions`; RFC 6298; M. Mathis et al., The macroscopic behavior of the TCP congestion avoidance algorithm (1997)",
    },
    check: tcp_retransmissions,
    remedy: |_| {
        Remedy::new("Find where packets are dropped: the hosts' interfaces and softnet queues, the switch's ports, a shaper on the path.")
            .by(Need::RealNetwork, "nstat -az TcpRetransSegs TcpExtTCPTimeouts; ethtool -S DEVICE | grep -i -E 'drop|err'; ip -s link")
            .confirmed_by("`benchmaster probe network HOST` shows losses without NFS")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: |measured| {
            if measured.network().is_some_and(|network| network.loss > 0.0) {
                return Could::Never;
            }
            let of_tcp = |host: &benchmaster_record::recording::HostSamples| {
                host.samples.of("tcp_info", "total_retransmitted").next().is_some()
            };
            if measured.recording.samples.iter().any(of_tcp) {
                Could::Yes
            } else if measured.rpcs().is_none() {
                Could::Never
            } else {
                Could::Unknown(
                    "connections were not sampled: add the sampler `tcp_info` to `[sampling]`".into(),
                )
            }
        },
        worth: |failed| {
            let segments = failed.number("segments").unwrap_or(0.0);
            let hosts = failed.measured.recording.samples.iter();
            let sent: f64 = hosts
                .flat_map(|host| host.samples.of("tcp_info", "segments_out"))
                .filter_map(|series| failed.measured.growth(series))
                .sum();
            segments >= LEAST_SEGMENTS && sent > 0.0 && segments / sent >= LOSS && lost(failed) >= LEAST_COST
        },
        numbers: &[("segments", "segments that TCP retransmitted")],
        cost: |failed| {
            Some((
                lost(failed),
                CostOf::OperationTime,
                "at most: 200 ms for each retransmitted segment, as far as operations took as long",
            ))
        },
        plot: Some(Plot::Counters),
    }),
};

/// The most that retransmissions can have cost, as a share of the operations' time: the timeout for each segment, but no more than
/// as many operations took as long.
fn lost(failed: Failed<'_>) -> f64 {
    let slow = |series: &SeriesRecording| -> u64 {
        let Ok(latency) = series.total.latency.decode() else { return 0 };
        let slow =
            latency.iter_recorded().filter(|bucket| bucket.value_iterated_to() >= TIMEOUT_NS * 97 / 100);
        slow.map(|bucket| bucket.count_at_value()).sum()
    };
    let slow: u64 = failed.measured.recording.series.iter().map(slow).sum();
    let each = failed.number("segments").unwrap_or(0.0).min(slow as f64);
    share(each * TIMEOUT_NS as f64, failed.measured.operation_ns() as f64)
}

fn tcp_retransmissions(s: Subject<'_>) -> Option<Check> {
    // Emulated loss is retransmitted as well.
    if s.service.is_some_and(|service| service.network.loss > 0.0) {
        return None;
    }
    let all = s.recording.samples.iter().flat_map(|host| host.samples.of("tcp_info", "total_retransmitted"));
    let again: f64 = all
        .filter_map(|series| Some(series.points.last()?.value - series.points.first()?.value))
        .filter(|more| *more > 0.0)
        .sum();
    if again <= 0.0 {
        return None;
    }
    let message =
        format!("TCP retransmitted {again:.0} segments in the measured phase: packets were lost or late.");
    failed(s, CheckKind::TcpRetransmissions, Severity::Note, message, [Evidence::number("segments", again)])
}
