//! The clock of the hot path: monotonic nanoseconds from the processor's time-stamp counter where it can be trusted.

use std::time::Duration;

/// A reading of the clock. Only differences mean something; [`Clock::nanos`] turns them into nanoseconds, so that the
/// hot path need not.
pub type Ticks = u64;

/// Reads monotonic time.
///
/// Built on `quanta`, which uses the time-stamp counter when the processor says that it is constant and never stops,
/// and the kernel's monotonic clock otherwise. [`Clock::drift`] compares it with the kernel's.
#[derive(Debug, Clone)]
pub struct Clock {
    fast: quanta::Clock,
    ticks_per_nano: f64,
    origin: Ticks,
    kernel_origin: Duration,
}

impl Clock {
    /// A clock. The first one of a process takes some milliseconds to calibrate.
    pub fn new() -> Self {
        const SPAN: u64 = 1 << 40;
        let fast = quanta::Clock::new();
        let ticks_per_nano = SPAN as f64 / fast.delta_as_nanos(0, SPAN).max(1) as f64;
        let kernel_origin = kernel_now();
        let origin = fast.raw();
        Self { fast, ticks_per_nano, origin, kernel_origin }
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

    /// Relative difference to the kernel's monotonic clock since the clock was made: 1e-6 means that this clock ran
    /// fast by one part in a million.
    pub fn drift(&self) -> f64 {
        let kernel = (kernel_now() - self.kernel_origin).as_nanos() as f64;
        let fast = self.nanos(self.origin, self.now()) as f64;
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

fn kernel_now() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn follows_the_kernels_clock() {
        let clock = Clock::new();
        let (start, wall) = (clock.now(), std::time::Instant::now());
        clock.wait_until(clock.after(start, 20_000_000), 50_000);
        let passed = clock.nanos(start, clock.now());
        assert!(passed >= 19_999_000, "{passed}");
        assert!(wall.elapsed() >= Duration::from_millis(19));
        assert_eq!(clock.nanos(start + 5, start), 0);
        assert!(clock.drift().abs() < 1e-2, "{}", clock.drift());
    }
}
