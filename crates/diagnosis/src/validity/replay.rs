//! Checks of a replay: what of the trace was not replayed, and how late its calls were issued.

use benchmaster_record::results::{Check, CheckKind, Evidence, Severity};

use super::rule::{Consequence, Could, Follows, Rule, Subject, any, failed, nothing, when};
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Plot, Remedy};
use crate::measured::Measured;
use crate::words::percent;

pub(crate) static LEFT_OUT: Rule = Rule {
    kind: CheckKind::ReplayLeftOut,
    explanation: Explanation {
        id: "replay-left-out",
        group: Group::Doubt,
        title: "Not all of the trace was replayed",
        mechanism: "Calls that cannot be replayed, because their kind is unknown or their files cannot be created, are left out: the load is lighter \
                    than the recorded one.",
        formula: "found when calls on files in the trace were left out; in doubt = left out / (replayed + left out)",
        source: "the check `replay-left-out`; docs/replay.md",
    },
    check: left_out,
    remedy: |_| {
        Remedy::new(
            "See which kinds they are; those that move no data seldom matter. Record the trace again from the start of the program, so that it contains the opening of \
             all files.",
        )
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: replayed,
        worth: any,
        numbers: &[("left_out", "calls left out"), ("replayed", "calls replayed")],
        cost: |failed| {
            let (left_out, replayed) = (failed.number("left_out")?, failed.number("replayed")?);
            Some((left_out / (left_out + replayed), CostOf::Result, "calls that are missing"))
        },
        plot: None,
    }),
};

/// Calls named in a message.
const NAMED: usize = 6;

fn left_out(s: Subject<'_>) -> Option<Check> {
    let replay = s.recording.replay.as_ref()?;
    let left: u64 = replay.left_out.values().sum();
    if left == 0 {
        return None;
    }
    let mut named: Vec<(&String, &u64)> = replay.left_out.iter().collect();
    named.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let more = named.len().saturating_sub(NAMED);
    let mut words: Vec<String> =
        named.iter().take(NAMED).map(|(what, count)| format!("{count} × {what}")).collect();
    if more > 0 {
        words.push(format!("{more} other kinds"));
    }
    let message = format!("{left} calls of the trace on files were not replayed: {}.", words.join(", "));
    let evidence =
        [Evidence::number("left_out", left as f64), Evidence::number("replayed", replay.calls as f64)];
    failed(s, CheckKind::ReplayLeftOut, Severity::Warning, message, evidence)
}

pub(crate) static LATE: Rule = Rule {
    kind: CheckKind::ReplayLate,
    explanation: Explanation {
        id: "replay-late",
        group: Group::Doubt,
        title: "Calls of the trace were replayed late",
        mechanism: "A replay at recorded times issues a call late when the calls before it ended late. When that is frequent, the load is that of the replaying host, not \
                    the recorded one.",
        formula: "found when a tenth of the calls were issued more than 1 ms late",
        source: "the check `replay-late`; docs/replay.md",
    },
    check: late,
    remedy: |_| {
        Remedy::new(
            "If the target is slower than the recorded one, this is the result: compare latencies. Otherwise replay from a host with more idle \
             processors, or more slowly.",
        )
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: replayed,
        worth: any,
        numbers: &[
            ("median_ns", "lateness, median"),
            ("p90_ns", "lateness, exceeded by a tenth"),
            ("p99_ns", "lateness, exceeded by a hundredth"),
            ("max_ns", "lateness, maximum"),
        ],
        cost: nothing,
        plot: Some(Plot::Latency),
    }),
};

fn replayed(measured: &Measured<'_>) -> Could {
    let name = &measured.recording.workload;
    let workloads = &measured.study().workloads;
    when(workloads.iter().any(|workload| workload.name == *name && workload.use_name == "replay"))
}

/// Calls that are issued late are no longer the trace's load, whether the target or the replaying host is too slow.
fn late(s: Subject<'_>) -> Option<Check> {
    /// A tenth of the calls may be late by as much.
    const ALLOWED_NS: u64 = 1_000_000;
    let replay = s.recording.replay.as_ref()?;
    let late = replay.late.decode().ok().filter(|late| !late.is_empty())?;
    let (median, p90, p99, max) =
        (late.value_at_quantile(0.5), late.value_at_quantile(0.9), late.value_at_quantile(0.99), late.max());
    if p90 <= ALLOWED_NS {
        return None;
    }
    let behind =
        s.recording.length_ns.saturating_sub(replay.length_ns) as f64 / replay.length_ns.max(1) as f64;
    let ms = |ns: u64| ns as f64 / 1e6;
    let message = format!(
        "Calls of the trace were issued late: half by more than {:.3} ms, a tenth by more than {:.3} ms, at most {:.3} ms; \
         the replay took {} longer than the trace; latencies count from the recorded times.",
        ms(median),
        ms(p90),
        ms(max),
        percent(behind)
    );
    let evidence = [("median_ns", median), ("p90_ns", p90), ("p99_ns", p99), ("max_ns", max)]
        .map(|(name, ns)| Evidence::nanoseconds(name, ns as f64));
    failed(s, CheckKind::ReplayLate, Severity::Warning, message, evidence)
}
