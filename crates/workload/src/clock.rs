//! The clock of the hot path: monotonic nanoseconds from the processor's time-stamp counter where it can be trusted.

use std::time::Duration;

/// A reading of the clock. Only differences mean something; [`Clock::nanos`] turns them into nanoseconds, so that the
/// hot path need not.
pub type Ticks = u64;

/// Reads monotonic time.
///
/// Built on `quanta`, which uses the time-stamp counter when the processor says that it is constant and never stops,
/// and the kernel's monotonic clock otherwise. [`Clock::drift`] compares the two.
#[derive(Debug, Clone)]
pub struct Clock {
    fast: quanta::Clock,
    ticks_per_nano: f64,
}

impl Clock {
    /// A clock. The first one of a process takes some milliseconds to calibrate.
    pub fn new() -> Self {
        const SPAN: u64 = 1 << 40;
        let fast = quanta::Clock::new();
        let ticks_per_nano = SPAN as f64 / fast.delta_as_nanos(0, SPAN).max(1) as f64;
        Self { fast, ticks_per_nano }
    }

    /// The time now.
    #[inline(always)]
    pub fn now(&self) -> Ticks {
        self.fast.raw()
    }

    /// Nanoseconds from `earlier` to `later`; 0 when they are exchanged.
    #[inline(always)]
    pub fn nanos(&self, earlier: Ticks, later: Ticks) -> u64 {
        self.fast.delta_as_nanos(earlier, later)
    }

    /// The time `nanos` nanoseconds after `time`.
    pub fn after(&self, time: Ticks, nanos: u64) -> Ticks {
        time.saturating_add((nanos as f64 * self.ticks_per_nano) as u64)
    }

    /// The time now, and the kernel's monotonic time at the same moment.
    pub fn with_kernel(&self) -> (Ticks, Duration) {
        let before = self.now();
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let after = self.now();
        let kernel = Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0));
        (before + (after - before) / 2, kernel)
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
    fn follows_the_kernels_clock() {
        let clock = Clock::new();
        let before = clock.with_kernel();
        let (start, wall) = (clock.now(), std::time::Instant::now());
        clock.wait_until(clock.after(start, 20_000_000), 50_000);
        let passed = clock.nanos(start, clock.now());
        assert!(passed >= 19_999_000, "{passed}");
        assert!(wall.elapsed() >= Duration::from_millis(19));
        assert_eq!(clock.nanos(start + 5, start), 0);
        // 20 ms are enough to see a clock that is wrong by a percent, if it is not read across a long interruption.
        let drift = (0..10).map(|_| clock.drift(before, clock.with_kernel()).abs()).fold(f64::MAX, f64::min);
        assert!(drift < 1e-2, "{drift}");
    }
}
