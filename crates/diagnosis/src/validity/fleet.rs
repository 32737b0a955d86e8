//! Checks of the clients' clocks and start, of the emulated network, and of what was read beside the run.

use benchmaster_record::results::Emulator;
use benchmaster_record::results::{Check, Severity};

use super::{Subject, found, percent};

/// All of them.
pub(super) const CHECKS: [fn(Subject<'_>) -> Option<Check>; 6] =
    [unaligned_start, clock_bound, agent_clock_drift, late_network, tcp_retransmissions, sampling_cost];

/// How far apart clients may begin: 1 ms, or a hundredth of the measured phase where that is shorter.
fn allowed_spread(s: Subject<'_>) -> f64 {
    (s.recording.length_ns as f64 / 100.0).min(1e6)
}

fn several(s: Subject<'_>) -> bool {
    s.recording.agents.iter().map(|agent| agent.clients).sum::<u32>() > 1
}

fn unaligned_start(s: Subject<'_>) -> Option<Check> {
    let start = s.recording.start.as_ref().filter(|_| several(s))?;
    let spread = start.spread_ns as f64;
    if spread <= allowed_spread(s) {
        return None;
    }
    let message = format!(
        "clients did not begin together: {:.2} ms lay between the first operation of the first client and that of the last \
         (to within {:.3} ms), {} of the measured phase",
        spread / 1e6,
        start.bound_ns as f64 / 1e6,
        percent(spread / s.recording.length_ns.max(1) as f64)
    );
    let evidence = [("spread_ns", spread), ("bound_ns", start.bound_ns as f64)];
    found(s, "unaligned-start", Severity::Warning, message, evidence)
}

fn clock_bound(s: Subject<'_>) -> Option<Check> {
    let start = s.recording.start.as_ref().filter(|_| several(s))?;
    let (bound, allowed) = (start.bound_ns as f64, allowed_spread(s));
    if bound <= allowed || start.spread_ns as f64 > allowed {
        return None;
    }
    let message = format!(
        "it cannot be told whether clients began together: their clocks are known to within {:.2} ms only; use a network \
         with shorter round trips between controller and clients",
        bound / 1e6
    );
    found(s, "clock-bound", Severity::Warning, message, [("bound_ns", bound)])
}

fn agent_clock_drift(s: Subject<'_>) -> Option<Check> {
    // Crystals are within 100 parts in a million, and NTP slews by at most 500.
    const ALLOWED: f64 = 500e-6;
    let drifts = s.recording.agents.iter().filter_map(|agent| Some((agent, agent.clock.drift?)));
    let (agent, drift) = drifts.max_by(|(_, a), (_, b)| a.abs().total_cmp(&b.abs()))?;
    // Over a short run the bounds of both comparisons look like a drift.
    let noise = 2.0 * agent.clock.bound_ns as f64 / s.recording.length_ns.max(1) as f64;
    if drift.abs() <= ALLOWED + noise {
        return None;
    }
    let message = format!(
        "the clock of {} gained {:.0} microseconds a second on the controller's: times of different clients do not go \
         together",
        agent.name,
        drift * 1e6
    );
    found(s, "agent-clock-drift", Severity::Warning, message, [("drift", drift)])
}

fn late_network(s: Subject<'_>) -> Option<Check> {
    let service = s.service?;
    let achieved = service.achieved.as_ref()?;
    let late = achieved.lateness_p99_ns? as f64;
    let allowed = (service.network.delay_ns as f64 / 10.0).max(100e3);
    if late <= allowed {
        return None;
    }
    let share = harm_of_lateness(s, late, achieved.packets);
    if share < WORTH_TELLING {
        return None;
    }
    let what = if service.network.emulator == Emulator::Relay { "relay" } else { "emulated network" };
    let message = format!(
        "the {what} was late: one packet in a hundred left more than {:.2} ms after its time, with a delay of {} ms; it needs a \
         processor of its own; that is {} of the latencies measured over it",
        late / 1e6,
        service.network.delay_ns as f64 / 1e6,
        percent(share.min(1.0))
    );
    let evidence =
        [("lateness_p99_ns", late), ("delay_ns", service.network.delay_ns as f64), ("share", share)];
    found(s, "late-network", Severity::Warning, message, evidence)
}

/// Share of a latency from which on lateness of the network is told.
const WORTH_TELLING: f64 = 0.1;

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

fn tcp_retransmissions(s: Subject<'_>) -> Option<Check> {
    // What was lost on purpose comes again.
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
    let message = format!(
        "TCP sent {again:.0} segments again while it was measured: packets were lost or came too late"
    );
    found(s, "tcp-retransmissions", Severity::Note, message, [("segments", again)])
}

fn sampling_cost(s: Subject<'_>) -> Option<Check> {
    const ALLOWED: f64 = 0.005;
    // Of a short phase the first and the last reading are all there is.
    let long = s.recording.samples.iter().filter(|host| host.samples.cost.elapsed_ns >= 2_000_000_000);
    let costs = long.filter_map(|host| Some((host, host.samples.cost.share()?)));
    let (host, share) = costs.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    if share <= ALLOWED {
        return None;
    }
    let message = format!(
        "reading counters took {:.2} % of a processor on {}: read less often, or name fewer `samplers`",
        share * 100.0,
        host.agent
    );
    found(s, "sampling-cost", Severity::Note, message, [("share", share)])
}
