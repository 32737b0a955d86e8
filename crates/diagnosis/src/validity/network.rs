//! Checks of the network: what its emulation could not do, what TCP retransmitted.

use benchmaster_record::results::Emulator;

use crate::prelude::*;

/// Segments that TCP sends before the first acknowledgement (RFC 6928 §2), in bytes.
const INITIAL_WINDOW: f64 = 14_600.0;

pub(crate) static EMULATED_NETWORK: Rule = Rule {
    check: emulated_network,
    finding: Follows::Finding(Consequence {
        could: |measured| when(measured.network().is_some_and(|network| network.delay_ns > 0)),
        worth: |failed| failed.check.severity > Severity::Note,
        numbers: &[("delay_ns", "one-way delay"), ("in_flight", "bytes in flight per connection")],
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::EmulatedNetwork)
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
    check: late_network,
    finding: Follows::Finding(Consequence {
        could: |measured| {
            let achieved = measured.run.service.as_ref().and_then(|service| service.achieved.as_ref());
            when(achieved.is_some_and(|achieved| achieved.lateness_p99_ns.is_some()))
        },
        numbers: &[
            ("lateness_p99_ns", "lateness that one packet in a hundred exceeded"),
            ("delay_ns", "one-way delay"),
            ("share", "that lateness, as a share of the latencies"),
        ],
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::LateNetwork)
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
    check: tcp_retransmissions,
    finding: Follows::Finding(Consequence {
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
        cost: |failed| Some(lost(failed)),
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::TcpRetransmissions)
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
