//! Checks of a replay: what of the trace was not replayed, and how late its calls were issued.

use crate::prelude::*;

pub(crate) static LEFT_OUT: Rule = Rule {
    check: left_out,
    finding: Follows::Finding(Consequence {
        could: replayed,
        numbers: &[("left_out", "calls left out"), ("replayed", "calls replayed")],
        cost: |failed| {
            let (left_out, replayed) = (failed.number("left_out")?, failed.number("replayed")?);
            Some(left_out / (left_out + replayed))
        },
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::ReplayLeftOut)
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
    check: late,
    finding: Follows::Finding(Consequence {
        could: replayed,
        numbers: &[
            ("median_ns", "lateness, median"),
            ("p90_ns", "lateness, exceeded by a tenth"),
            ("p99_ns", "lateness, exceeded by a hundredth"),
            ("max_ns", "lateness, maximum"),
        ],
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::ReplayLate)
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
