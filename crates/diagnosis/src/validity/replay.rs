//! Checks of a replay: what of the trace was not replayed, and how late its calls began.

use benchmaster_record::results::{Check, Severity};

use super::{Subject, found, percent};

/// All of them.
pub(super) const CHECKS: [fn(Subject<'_>) -> Option<Check>; 2] = [left_out, late];

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
    let message = format!("of the trace, {left} calls on files were not replayed: {}", words.join(", "));
    let evidence = [("left_out", left as f64), ("replayed", replay.calls as f64)];
    found(s, "replay-left-out", Severity::Warning, message, evidence)
}

/// Calls that begin late are not the trace's load any more, whether the target or the replaying host is too slow.
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
        "calls of the trace began late: half by more than {:.3} ms, a tenth by more than {:.3} ms, at most {:.3} ms; the \
         replay took {} longer than the trace; latencies count from the recorded times",
        ms(median),
        ms(p90),
        ms(max),
        percent(behind)
    );
    let evidence = [
        ("median_ns", median as f64),
        ("p90_ns", p90 as f64),
        ("p99_ns", p99 as f64),
        ("max_ns", max as f64),
    ];
    found(s, "replay-late", Severity::Warning, message, evidence)
}
