//! Checks of clocks, and of clients that should start together.

use benchmaster_record::results::{Check, CheckKind, Evidence, Severity};

use super::rule::{
    Consequence, Could, Failed, Follows, Rule, Subject, all_of_it, always, any, failed, nothing, several,
    when,
};
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Need, Plot, Remedy};
use crate::words::percent;

pub(crate) static CLOCK_STEP: Rule = Rule {
    kind: CheckKind::ClockStep,
    explanation: Explanation {
        id: "clock-step",
        group: Group::Doubt,
        title: "The wall clock was changed during the measurement",
        mechanism: "Times within a run are from a monotonic clock, so rates and latencies are right. Comparisons by wall-clock time, with logs of \
                    servers and of other hosts, are off by the step.",
        formula: "found when the wall clock and the monotonic clock diverged by more than 1 ms and 500 parts in a million",
        source: "the check `clock-step`; RFC 5905, section 10 (how fast a clock is slewed)",
    },
    check: clock_step,
    remedy: |_| {
        Remedy::new("Let the time service settle before runs, and slew instead of stepping.")
            .by(Need::Anywhere, "chronyc tracking; chronyc waitsync")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: always,
        worth: any,
        numbers: &[("step_ns", "change of the wall clock")],
        cost: nothing,
        plot: None,
    }),
};

fn clock_step(s: Subject<'_>) -> Option<Check> {
    // NTP slews by at most 500 parts in a million; 1 ms covers the reading of two clocks.
    let allowed = 1e6 + s.recording.length_ns as f64 * 500e-6;
    let step = s.recording.host.clock_step_ns as f64;
    if step.abs() <= allowed {
        return None;
    }
    let message = format!("The wall clock was changed by {:.1} ms during the measured phase.", step / 1e6);
    let evidence = [Evidence::nanoseconds("step_ns", step)];
    failed(s, CheckKind::ClockStep, Severity::Warning, message, evidence)
}

pub(crate) static CLOCK_DRIFT: Rule = Rule {
    kind: CheckKind::ClockDrift,
    explanation: Explanation {
        id: "clock-drift",
        group: Group::Doubt,
        title: "The clock of the measurement was wrong",
        mechanism: "Operations are timed with the processor's time-stamp counter. When it runs at another speed than the kernel's clock (another host after a \
                    migration, a counter that stops in sleep), every latency is wrong by the same factor.",
        formula: "found when the two differ by more than 0.1 % over the run; all of it is in doubt",
        source: "the check `clock-drift`; docs/metrics.md, \"From operations to responses\"",
    },
    check: clock_drift,
    remedy: |_| {
        Remedy::new("Measure on a host whose time-stamp counter has a constant speed, and do not migrate virtual machines during a run.")
            .by(Need::Anywhere, "cat /sys/devices/system/clocksource/clocksource0/current_clocksource; grep -o 'constant_tsc\\|nonstop_tsc' /proc/cpuinfo | sort | uniq -c")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: always,
        worth: any,
        numbers: &[("drift", "relative error of the time-stamp counter")],
        cost: all_of_it,
        plot: None,
    }),
};

fn clock_drift(s: Subject<'_>) -> Option<Check> {
    const ALLOWED: f64 = 1e-3;
    let drift = s.recording.host.clock_drift;
    if drift.abs() <= ALLOWED {
        return None;
    }
    let message = format!(
        "The time-stamp counter differs from the kernel's clock by {:.2} %: all times of this run are wrong by that share.",
        drift * 100.0
    );
    failed(s, CheckKind::ClockDrift, Severity::Invalid, message, [Evidence::number("drift", drift)])
}

/// Share of the measured phase below which it does not matter that clients started apart.
const LEAST: f64 = 0.01;

/// A time of the check as a share of the measured phase.
fn part(failed: Failed<'_>, name: &str) -> f64 {
    failed.number(name).unwrap_or(0.0) / failed.measured.recording.length_ns.max(1) as f64
}

/// How far apart clients may start: 1 ms, or a hundredth of the measured phase where that is shorter.
fn allowed_spread(s: Subject<'_>) -> f64 {
    (s.recording.length_ns as f64 / 100.0).min(1e6)
}

fn has_several(s: Subject<'_>) -> bool {
    s.recording.agents.iter().map(|agent| agent.clients).sum::<u32>() > 1
}

pub(crate) static UNALIGNED_START: Rule = Rule {
    kind: CheckKind::UnalignedStart,
    explanation: Explanation {
        id: "unaligned-start",
        group: Group::Doubt,
        title: "Clients did not start together",
        mechanism: "Until the last client has started, the others share the server among fewer: the total rate mixes two loads, and the early clients fill caches \
                    for the late ones.",
        formula: "found when 1 % or more of the measured phase lay between the first operations of the first and of the last client (the check itself notes 1 ms); in doubt = spread / length",
        source: "the check `unaligned-start`; paper 000, section 2 (235 ms mean and 432 ms at most between starts); paper 002, section 6",
    },
    check: unaligned_start,
    remedy: |_| {
        Remedy::new("Use a warm-up, so that all clients are running when the measured phase begins; or measure so long that the spread does not matter. Keep the clients' processors idle before the start.")
            .by(Need::Anywhere, "warm_up = \"5s\"   # in the workload; or a longer `duration`")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: several,
        worth: |failed| part(failed, "spread_ns") >= LEAST,
        numbers: &[
            ("spread_ns", "time between the first operations of the first and the last client"),
            ("bound_ns", "uncertainty of that time"),
        ],
        cost: |failed| {
            let length = failed.measured.recording.length_ns.max(1) as f64;
            Some((
                failed.number("spread_ns")? / length,
                CostOf::Time,
                "time in which not all clients had started",
            ))
        },
        plot: Some(Plot::Clients),
    }),
};

fn unaligned_start(s: Subject<'_>) -> Option<Check> {
    let start = s.recording.start.as_ref().filter(|_| has_several(s))?;
    let spread = start.spread_ns as f64;
    if spread <= allowed_spread(s) {
        return None;
    }
    let message = format!(
        "Clients did not start together: {:.2} ms lay between the first operation of the first client and that of the last \
         (± {:.3} ms), {} of the measured phase.",
        spread / 1e6,
        start.bound_ns as f64 / 1e6,
        percent(spread / s.recording.length_ns.max(1) as f64)
    );
    let evidence = [
        Evidence::nanoseconds("spread_ns", spread),
        Evidence::nanoseconds("bound_ns", start.bound_ns as f64),
    ];
    failed(s, CheckKind::UnalignedStart, Severity::Warning, message, evidence)
}

pub(crate) static CLOCK_BOUND: Rule = Rule {
    kind: CheckKind::ClockBound,
    explanation: Explanation {
        id: "clock-bound",
        group: Group::Doubt,
        title: "It is not known whether clients started together",
        mechanism: "Clocks of hosts are compared by messages; the error of the comparison is up to half their shortest round trip. Over a long or busy path that is more \
                    than the difference to be detected.",
        formula: "found when the clocks are known to no better than 1 % of the measured phase (the check itself notes 1 ms)",
        source: "the check `clock-bound`; RFC 5905, section 8 (offset and delay of a clock)",
    },
    check: clock_bound,
    remedy: |_| {
        Remedy::new(
            "Use a network with shorter round trips between controller and clients, or measure longer.",
        )
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: several,
        worth: |failed| part(failed, "bound_ns") >= LEAST,
        numbers: &[("bound_ns", "uncertainty of the clocks")],
        cost: |failed| {
            let length = failed.measured.recording.length_ns.max(1) as f64;
            Some((
                failed.number("bound_ns")? / length,
                CostOf::Time,
                "time in which perhaps not all clients had started",
            ))
        },
        plot: None,
    }),
};

fn clock_bound(s: Subject<'_>) -> Option<Check> {
    let start = s.recording.start.as_ref().filter(|_| has_several(s))?;
    let (bound, allowed) = (start.bound_ns as f64, allowed_spread(s));
    if bound <= allowed || start.spread_ns as f64 > allowed {
        return None;
    }
    let message = format!(
        "It is not known whether clients started together: their clocks are known to within {:.2} ms only.",
        bound / 1e6
    );
    let evidence = [Evidence::nanoseconds("bound_ns", bound)];
    failed(s, CheckKind::ClockBound, Severity::Warning, message, evidence)
}

pub(crate) static AGENT_CLOCK_DRIFT: Rule = Rule {
    kind: CheckKind::AgentClockDrift,
    explanation: Explanation {
        id: "agent-clock-drift",
        group: Group::Doubt,
        title: "Clocks of clients run at different speeds",
        mechanism: "Intervals of different clients are aligned by their times. When one clock gains on the others, they drift apart during the run.",
        formula: "found when a client's clock gained more than 500 microseconds a second on the controller's, beyond the uncertainty of the comparison",
        source: "the check `agent-clock-drift`; RFC 5905, section 10",
    },
    check: agent_clock_drift,
    remedy: |_| Remedy::new("Run a time service on all clients.").by(Need::Anywhere, "chronyc tracking"),
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: |measured| match several(measured) {
            Could::Yes => when(measured.recording.agents.iter().any(|agent| agent.clock.drift.is_some())),
            other => other,
        },
        worth: any,
        numbers: &[("drift", "relative difference of the clocks' speeds")],
        cost: nothing,
        plot: None,
    }),
};

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
        "The clock of {} gained {:.0} microseconds a second on the controller's: times of different clients do not match.",
        agent.name,
        drift * 1e6
    );
    failed(s, CheckKind::AgentClockDrift, Severity::Warning, message, [Evidence::number("drift", drift)])
}
