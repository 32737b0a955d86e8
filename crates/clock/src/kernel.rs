//! The relation of the system's clocks.

use std::sync::OnceLock;

use rustix::time::{ClockId, Timespec, clock_gettime};

/// The monotonic clock of this host (`CLOCK_MONOTONIC`), in nanoseconds. All processes of a host see the same one.
pub fn monotonic_ns() -> i64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

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

/// Whether this system's time is virtual: that of a user-mode Linux kernel with `time-travel`, whose clock moves only when
/// everything waits. Computing takes no time there, and the processor's own counters have nothing to do with its clock.
pub fn is_virtual() -> bool {
    static VIRTUAL: OnceLock<bool> = OnceLock::new();
    *VIRTUAL.get_or_init(|| std::fs::read_to_string("/proc/cmdline").is_ok_and(|line| says_virtual(&line)))
}

/// Whether a kernel's command line asks for virtual time.
fn says_virtual(command_line: &str) -> bool {
    command_line.split_whitespace().any(|word| word == "time-travel" || word.starts_with("time-travel="))
}

/// Nanoseconds fit into 63 bits until the year 2262.
pub fn nanoseconds(time: Timespec) -> i64 {
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
    fn virtual_time_is_known_by_the_kernels_command_line() {
        assert!(says_virtual("mem=768M time-travel=inf-cpu quiet\n"));
        assert!(says_virtual("root=98:0 time-travel"));
        assert!(!says_virtual("BOOT_IMAGE=/boot/vmlinuz quiet note=time-travel\n"));
    }

    #[test]
    fn readings_repeat() {
        let spread = realtime_minus_monotonic_ns() - realtime_minus_monotonic_ns();
        assert!(spread.abs() < 10_000_000, "{spread} ns");
    }
}
