//! Counters and gauges over a window of time.

use crate::sampling::Point;

/// The value at a time, on the straight line between the readings around it. `None` outside of the readings.
pub fn value_at(points: &[Point], time_ns: i64) -> Option<f64> {
    let after = points.partition_point(|point| point.time_ns < time_ns);
    let next = points.get(after)?;
    if next.time_ns == time_ns {
        return Some(next.value);
    }
    let before = points.get(after.checked_sub(1)?)?;
    let share = (time_ns - before.time_ns) as f64 / (next.time_ns - before.time_ns) as f64;
    Some(before.value + (next.value - before.value) * share)
}

/// The pieces of straight line in a window: from when to when, and the values at both ends. A window that reaches beyond the
/// readings is cut to them.
fn pieces(points: &[Point], from: i64, to: i64) -> impl Iterator<Item = [Point; 2]> {
    let pairs = points.windows(2).filter_map(|pair| <[Point; 2]>::try_from(pair).ok());
    pairs.filter(move |[a, b]| b.time_ns > from && a.time_ns < to).map(move |[a, b]| {
        let length = (b.time_ns - a.time_ns) as f64;
        let at = |time: i64| Point {
            time_ns: time,
            value: a.value + (b.value - a.value) * ((time - a.time_ns) as f64 / length),
        };
        let start = if a.time_ns < from { at(from) } else { a };
        let end = if b.time_ns > to { at(to) } else { b };
        [start, end]
    })
}

/// By how much a counter grew in a window. Where it went back, it was started anew in between: from there on it grew by what
/// it shows. `None` when no two readings say anything about the window.
pub fn growth(points: &[Point], from_ns: i64, to_ns: i64) -> Option<f64> {
    // The line between a value and a lower one means nothing: such a piece is given the slope from zero.
    let grown = points.windows(2).filter_map(|pair| <[Point; 2]>::try_from(pair).ok());
    let grown = grown.filter(|[a, b]| b.time_ns > from_ns && a.time_ns < to_ns).map(|[a, b]| {
        let full = if b.value < a.value { b.value } else { b.value - a.value };
        let part = (b.time_ns.min(to_ns) - a.time_ns.max(from_ns)) as f64;
        full * (part / (b.time_ns - a.time_ns) as f64)
    });
    grown.reduce(|a, b| a + b)
}

/// The mean of a gauge over the time of a window. `None` when no two readings say anything about it.
pub fn mean(points: &[Point], from_ns: i64, to_ns: i64) -> Option<f64> {
    let (mut area, mut length) = (0.0, 0.0);
    for [a, b] in pieces(points, from_ns, to_ns) {
        let time = (b.time_ns - a.time_ns) as f64;
        area += (a.value + b.value) / 2.0 * time;
        length += time;
    }
    (length > 0.0).then(|| area / length)
}

/// The largest value of a gauge in a window, its edges included. `None` when no two readings say anything about it.
pub fn maximum(points: &[Point], from_ns: i64, to_ns: i64) -> Option<f64> {
    pieces(points, from_ns, to_ns).flat_map(|piece| piece.map(|point| point.value)).max_by(f64::total_cmp)
}
