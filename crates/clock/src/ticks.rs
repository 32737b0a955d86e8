//! The clock of the hot path: monotonic nanoseconds from the processor's time-stamp counter where it can be trusted.
//!
//! On virtual time it is the kernel's clock: the counter would show how long the host took.

use std::sync::OnceLock;
use std::time::Duration;

use crate::counter;
use crate::kernel::{is_virtual, monotonic_ns as monotonic_ns_now};

/// Readings of two clocks of which the quickest is taken.
const READINGS: usize = 8;

/// The rate of the counter is measured over at least this time: with readings to within 100 ns, to 10 parts in a million.
const CALIBRATION_NS: i64 = 20_000_000;

/// And over so many times the time that readings take, some microseconds where the kernel's clock is slow to read (in a machine
/// of the lab): to 100 parts in a million.
const CALIBRATION_READINGS: f64 = 1e4;

/// But not over more than this.
const CALIBRATION_MOST_NS: i64 = 500_000_000;

/// Bits after the binary point of nanoseconds per tick.
const FRACTION: u32 = 32;

/// The first reading of the process.
static FIRST: OnceLock<Reading> = OnceLock::new();

/// The counter and the kernel's clock at the same moment.
#[derive(Debug, Clone, Copy)]
struct Reading {
    ticks: Ticks,
    kernel_ns: i64,
    /// Ticks that reading both took: the kernel's was read somewhere in between.
    width: Ticks,
}

impl Reading {
    fn of_kernel() -> Self {
        let kernel_ns = monotonic_ns_now();
        Self { ticks: kernel_ns.unsigned_abs(), kernel_ns, width: 0 }
    }

    /// The quickest of several was not interrupted between one clock and the other.
    fn of_counter() -> Self {
        let readings = (0..READINGS).map(|_| {
            let before = counter::read();
            let kernel_ns = monotonic_ns_now();
            let width = counter::read().saturating_sub(before);
            Self { ticks: before + width / 2, kernel_ns, width }
        });
        let quickest = readings.min_by_key(|reading| reading.width);
        quickest.unwrap_or_else(|| Self { ticks: counter::read(), kernel_ns: monotonic_ns_now(), width: 0 })
    }
}

impl Reading {
    /// How long after `first` the rate is known well enough.
    fn calibration_ns(&self, first: &Self) -> i64 {
        let nanos_per_tick =
            (self.kernel_ns - first.kernel_ns) as f64 / self.ticks.saturating_sub(first.ticks).max(1) as f64;
        let unsure_ns = (self.width + first.width) as f64 / 2.0 * nanos_per_tick;
        ((unsure_ns * CALIBRATION_READINGS) as i64).clamp(CALIBRATION_NS, CALIBRATION_MOST_NS)
    }
}

/// What is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// The time-stamp counter.
    Counter,
    /// The kernel's clock, where there is no such counter.
    Kernel,
    /// The kernel's clock, which alone knows virtual time.
    Virtual,
}

/// A reading of the clock. Only differences mean something; [`Clock::nanos`] turns them into nanoseconds, so that the
/// hot path need not.
pub type Ticks = u64;

/// Reads monotonic time.
///
/// It is the time-stamp counter when the processor says that it is constant and never stops, and the kernel's monotonic
/// clock otherwise. How fast the counter runs is measured against the kernel's clock from the first clock of the process
/// on. [`Clock::drift`] compares the two afterwards.
#[derive(Debug, Clone)]
pub struct Clock {
    source: Source,
    /// Nanoseconds per tick, in units of 2 to the power of minus [`FRACTION`].
    nanos_per_tick: u64,
    ticks_per_nano: f64,
}

impl Clock {
    /// A clock. The first one of a process takes some 20 milliseconds to calibrate; later ones are the more accurate the
    /// older the process is.
    pub fn new() -> Self {
        if is_virtual() {
            return Self::of_kernel(Source::Virtual);
        } else if !counter::is_steady() {
            return Self::of_kernel(Source::Kernel);
        }
        let first = *FIRST.get_or_init(Reading::of_counter);
        let now = loop {
            let now = Reading::of_counter();
            match now.calibration_ns(&first) - (now.kernel_ns - first.kernel_ns) {
                left @ 1.. => std::thread::sleep(Duration::from_nanos(left.unsigned_abs())),
                _ => break now,
            }
        };
        // Zero ticks in this time would be a counter that stands still.
        let ticks = now.ticks.saturating_sub(first.ticks).max(1) as f64;
        let nanos = (now.kernel_ns - first.kernel_ns) as f64;
        let nanos_per_tick = (nanos / ticks * (1u64 << FRACTION) as f64).round() as u64;
        Self { source: Source::Counter, nanos_per_tick, ticks_per_nano: ticks / nanos }
    }

    /// The kernel's monotonic clock itself.
    fn of_kernel(source: Source) -> Self {
        Self { source, nanos_per_tick: 1 << FRACTION, ticks_per_nano: 1.0 }
    }

    #[inline(always)]
    pub fn now(&self) -> Ticks {
        match self.source {
            Source::Counter => counter::read(),
            Source::Kernel | Source::Virtual => monotonic_ns_now().unsigned_abs(),
        }
    }

    fn reading(&self) -> Reading {
        match self.source {
            Source::Counter => Reading::of_counter(),
            Source::Kernel | Source::Virtual => Reading::of_kernel(),
        }
    }

    /// Nanoseconds from `earlier` to `later`; 0 when they are exchanged.
    #[inline(always)]
    pub fn nanos(&self, earlier: Ticks, later: Ticks) -> u64 {
        ((u128::from(later.saturating_sub(earlier)) * u128::from(self.nanos_per_tick)) >> FRACTION) as u64
    }

    /// Time since `earlier`.
    #[inline(always)]
    pub fn since(&self, earlier: Ticks) -> Duration {
        Duration::from_nanos(self.nanos(earlier, self.now()))
    }

    /// The time `nanos` nanoseconds after `time`.
    pub fn after(&self, time: Ticks, nanos: u64) -> Ticks {
        time.saturating_add((nanos as f64 * self.ticks_per_nano) as u64)
    }

    /// The time now, and the kernel's monotonic time at the same moment.
    pub fn with_kernel(&self) -> (Ticks, Duration) {
        let now = self.reading();
        (now.ticks, Duration::from_nanos(now.kernel_ns.unsigned_abs()))
    }

    /// The time at which the kernel's monotonic clock shows `monotonic_ns`, in the future or a short time ago.
    pub fn at_kernel(&self, monotonic_ns: i64) -> Ticks {
        let now = self.reading();
        match u64::try_from(monotonic_ns - now.kernel_ns) {
            Ok(left) => self.after(now.ticks, left),
            Err(_) => {
                now.ticks.saturating_sub(((now.kernel_ns - monotonic_ns) as f64 * self.ticks_per_nano) as u64)
            }
        }
    }

    /// Relative difference to the kernel's monotonic clock from one moment to another: 1e-6 means that this clock ran fast
    /// by one part in a million.
    pub fn drift(&self, from: (Ticks, Duration), to: (Ticks, Duration)) -> f64 {
        let kernel = to.1.saturating_sub(from.1).as_nanos() as f64;
        let fast = self.nanos(from.0, to.0) as f64;
        if kernel > 0.0 { (fast - kernel) / kernel } else { 0.0 }
    }

    /// Sleeps until `time`, spinning for the last `spin_ns` nanoseconds because sleeping is only accurate to some
    /// tens of microseconds.
    pub fn wait_until(&self, time: Ticks, spin_ns: u64) {
        loop {
            let now = self.now();
            if now >= time {
                return;
            }
            let left = self.nanos(now, time);
            // Virtual time stands still while anything is done.
            let spin_ns = if self.source == Source::Virtual { 0 } else { spin_ns };
            if left > spin_ns {
                std::thread::sleep(Duration::from_nanos(left - spin_ns));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_clock_is_read_and_waited_for_as_it_is() {
        let clock = Clock::of_kernel(Source::Virtual);
        let (before, start) = (monotonic_ns_now(), clock.now());
        assert!(start >= before.unsigned_abs() && start <= monotonic_ns_now().unsigned_abs());
        assert_eq!(clock.nanos(start, clock.after(start, 123_456_789)), 123_456_789);
        let until = clock.at_kernel(monotonic_ns_now() + 2_000_000);
        clock.wait_until(until, 50_000);
        assert!(clock.now() >= until);
    }

    #[test]
    fn slow_readings_are_compared_over_a_longer_time() {
        let reading =
            |kernel_ns: i64, width| Reading { ticks: kernel_ns.unsigned_abs() * 2, kernel_ns, width };
        let needed = |width, ms: i64| reading(ms * 1_000_000, width).calibration_ns(&reading(0, width));
        assert_eq!(needed(200, 20), CALIBRATION_NS);
        // 20,000 ticks are 10 us.
        assert_eq!(needed(20_000, 50), 100_000_000);
        assert_eq!(needed(20_000_000, 50), CALIBRATION_MOST_NS);
        // Nothing is known of the rate yet.
        assert_eq!(needed(200, 0), CALIBRATION_NS);
    }

    #[test]
    fn follows_the_kernels_clock() {
        let clock = Clock::new();
        let before = clock.with_kernel();
        let (start, wall) = (clock.now(), std::time::Instant::now());
        clock.wait_until(clock.after(start, 20_000_000), 50_000);
        let passed = clock.nanos(start, clock.now());
        assert!(passed >= 19_999_000, "{passed}");
        assert!(wall.elapsed() >= Duration::from_millis(19));
        assert_eq!(clock.nanos(start + 5, start), 0);
        // 20 ms are enough to see a clock that is wrong by a part in a thousand.
        let drift = clock.drift(before, clock.with_kernel()).abs();
        assert!(drift < 1e-3, "{drift}");
    }
}
