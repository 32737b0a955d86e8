//! Checks of clocks, and of clients that are to begin together.

use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Plot, Remedy};
use crate::results::measured::Measured;
use crate::results::stored::{Could, Stored, Told, all_of_it, always, nothing, several, when, worth_it};
use benchmaster_record::phase::Phase;

pub(super) static CLOCK_STEP: Stored = Stored {
    check: "clock-step",
    explanation: Explanation {
        id: "clock-step",
        group: Group::Doubt,
        title: "The wall clock was changed while it was measured",
        mechanism: "Times within a run are of a clock that is not changed, so rates and latencies are right. What is compared by wall-clock time, as logs of \
                    servers and of other hosts, is off by the step.",
        formula: "found when the wall clock and the monotonic clock moved apart by more than 1 ms and 500 parts in a million",
        source: "the check `clock-step`; RFC 5905, section 10 (how fast a clock is slewed)",
    },
    confidence: Confidence::Certain,
    could: always,
    worth: worth_it,
    numbers: &[("step_ns", "change of the wall clock", "ns")],
    cost: nothing,
    remedy: |_| {
        Remedy::new("Let the time service settle before runs, and slew instead of stepping.")
            .by("chronyc tracking; chronyc waitsync")
    },
    plot: None,
};

pub(super) static CLOCK_DRIFT: Stored = Stored {
    check: "clock-drift",
    explanation: Explanation {
        id: "clock-drift",
        group: Group::Doubt,
        title: "The clock of the measurement was wrong",
        mechanism: "Operations are timed with the processor's time-stamp counter. When that runs at another speed than the kernel's clock (another host after a \
                    migration, a counter that stops in sleep), every latency is wrong by as much.",
        formula: "found when the two differ by more than 0.1 % over the run; all of it is in doubt",
        source: "the check `clock-drift`; docs/metrics.md, \"From operations to responses\"",
    },
    confidence: Confidence::Certain,
    could: always,
    worth: worth_it,
    numbers: &[("drift", "relative error of the fast clock", "1")],
    cost: all_of_it,
    remedy: |_| {
        Remedy::new("Measure on a host whose time-stamp counter does not change its speed, and do not move virtual machines meanwhile.")
            .by("cat /sys/devices/system/clocksource/clocksource0/current_clocksource; grep -o 'constant_tsc\\|nonstop_tsc' /proc/cpuinfo | sort | uniq -c")
    },
    plot: None,
};

/// Share of the measured phase below which it does not matter that clients began apart.
const LEAST: f64 = 0.01;

/// A time of the check as a share of the measured phase.
fn part(told: Told<'_>, name: &str) -> f64 {
    told.number(name).unwrap_or(0.0) / told.measured.recording.length_ns.max(1) as f64
}

pub(super) static UNALIGNED_START: Stored = Stored {
    check: "unaligned-start",
    explanation: Explanation {
        id: "unaligned-start",
        group: Group::Doubt,
        title: "Clients did not begin together",
        mechanism: "Until the last client has begun the others share the server among fewer: the rate of all together is of two loads, and the early clients fill caches \
                    for the late ones.",
        formula: "found when 1 % or more of the measured phase lay between the first operations of the first and of the last client (the check itself tells of 1 ms); in doubt = spread / length",
        source: "the check `unaligned-start`; paper 000, section 2 (235 ms mean and 432 ms at most between starts); paper 002, section 6",
    },
    confidence: Confidence::Certain,
    could: several,
    worth: |told| part(told, "spread_ns") >= LEAST,
    numbers: &[
        ("spread_ns", "time between the first operations of the first and the last client", "ns"),
        ("bound_ns", "to within", "ns"),
    ],
    cost: |told| {
        let length = told.measured.recording.length_ns.max(1) as f64;
        Some((told.number("spread_ns")? / length, CostOf::Time, "time in which not all clients had begun"))
    },
    remedy: |told| {
        let remedy = Remedy::new(
            "Measure so long that the spread does not matter, and see that no client's processors are busy when it is to begin.",
        );
        if told.measured.recording.phases.iter().any(|phase| phase.phase == Phase::WarmUp) {
            remedy.by("duration = \"60s\"")
        } else {
            remedy.by("warm_up = \"5s\"   # in the workload: all clients are under way when it is measured")
        }
    },
    plot: Some(Plot::Clients),
};

pub(super) static CLOCK_BOUND: Stored = Stored {
    check: "clock-bound",
    explanation: Explanation {
        id: "clock-bound",
        group: Group::Doubt,
        title: "It cannot be told whether clients began together",
        mechanism: "Clocks of hosts are compared by messages; half their shortest round trip is how wrong the comparison can be. Over a long or busy way it is more than \
                    what is to be told.",
        formula: "found when the clocks are known to no better than 1 % of the measured phase (the check itself tells of 1 ms)",
        source: "the check `clock-bound`; RFC 5905, section 8 (offset and delay of a clock)",
    },
    confidence: Confidence::Certain,
    could: several,
    worth: |told| part(told, "bound_ns") >= LEAST,
    numbers: &[("bound_ns", "clocks are known to within", "ns")],
    cost: |told| {
        let length = told.measured.recording.length_ns.max(1) as f64;
        Some((
            told.number("bound_ns")? / length,
            CostOf::Time,
            "time in which perhaps not all clients had begun",
        ))
    },
    remedy: |_| Remedy::new("Run the controller close to the clients, or measure longer."),
    plot: None,
};

pub(super) static AGENT_CLOCK_DRIFT: Stored = Stored {
    check: "agent-clock-drift",
    explanation: Explanation {
        id: "agent-clock-drift",
        group: Group::Doubt,
        title: "Clocks of clients run at different speeds",
        mechanism: "Intervals of different clients are put together by their times. When one clock gains on the others, they drift apart in the course of the run.",
        formula: "found when a client's clock gained more than 500 microseconds a second on the controller's, beyond what the comparison can be wrong",
        source: "the check `agent-clock-drift`; RFC 5905, section 10",
    },
    confidence: Confidence::Certain,
    could: |measured| match several(measured) {
        Could::Yes => drifts(measured),
        other => other,
    },
    worth: worth_it,
    numbers: &[("drift", "relative difference of the clocks' speeds", "1")],
    cost: nothing,
    remedy: |_: Told<'_>| Remedy::new("Let a time service run on all clients.").by("chronyc tracking"),
    plot: None,
};

fn drifts(measured: &Measured<'_>) -> Could {
    when(measured.recording.agents.iter().any(|agent| agent.clock.drift.is_some()))
}
