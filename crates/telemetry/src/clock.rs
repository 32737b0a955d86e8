//! The relation of the system's clocks.

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The real-time clock minus the monotonic clock, in nanoseconds.
///
/// When the value changes by more than a fraction of a millisecond between two calls, somebody set the real-time clock.
pub fn realtime_minus_monotonic_ns() -> i64 {
    // A reading is off by at most half the time it took; the quickest of several was not interrupted.
    let readings = (0..READINGS).map(|_| {
        let before = nanoseconds(clock_gettime(ClockId::Monotonic));
        let real = nanoseconds(clock_gettime(ClockId::Realtime));
        let after = nanoseconds(clock_gettime(ClockId::Monotonic));
        (after - before, real - before.midpoint(after))
    });
    readings.min_by_key(|(width, _)| *width).map_or(0, |(_, difference)| difference)
}

const READINGS: usize = 16;

/// Nanoseconds fit into 63 bits until the year 2262.
fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn the_difference_turns_monotonic_into_real_time() {
        let monotonic = nanoseconds(clock_gettime(ClockId::Monotonic));
        let real = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
        let error = monotonic + realtime_minus_monotonic_ns() - real;
        assert!(error.abs() < 1_000_000_000, "{error} ns");
    }

    #[test]
    fn readings_repeat() {
        let spread = realtime_minus_monotonic_ns() - realtime_minus_monotonic_ns();
        assert!(spread.abs() < 10_000_000, "{spread} ns");
    }
}
