//! Checks of clocks, and of clients that should start together.

use super::rule::{all_of_it, several};
use crate::prelude::*;

pub(crate) static CLOCK_STEP: Rule = Rule {
    check: clock_step,
    finding: Follows::Finding(Consequence {
        numbers: &[("step_ns", "change of the wall clock")],
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::ClockStep)
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
    check: clock_drift,
    finding: Follows::Finding(Consequence {
        numbers: &[("drift", "relative error of the time-stamp counter")],
        cost: all_of_it,
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::ClockDrift)
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
    check: unaligned_start,
    finding: Follows::Finding(Consequence {
        could: several,
        worth: |failed| part(failed, "spread_ns") >= LEAST,
        numbers: &[
            ("spread_ns", "time between the first operations of the first and the last client"),
            ("bound_ns", "uncertainty of that time"),
        ],
        cost: |failed| {
            let length = failed.measured.recording.length_ns.max(1) as f64;
            Some(failed.number("spread_ns")? / length)
        },
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::UnalignedStart)
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
    check: clock_bound,
    finding: Follows::Finding(Consequence {
        could: several,
        worth: |failed| part(failed, "bound_ns") >= LEAST,
        numbers: &[("bound_ns", "uncertainty of the clocks")],
        cost: |failed| {
            let length = failed.measured.recording.length_ns.max(1) as f64;
            Some(failed.number("bound_ns")? / length)
        },
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::ClockBound)
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
    check: agent_clock_drift,
    finding: Follows::Finding(Consequence {
        could: |measured| match several(measured) {
            Could::Yes => when(measured.recording.agents.iter().any(|agent| agent.clock.drift.is_some())),
            other => other,
        },
        numbers: &[("drift", "relative difference of the clocks' speeds")],
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::AgentClockDrift)
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
