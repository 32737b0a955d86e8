//! The interval in which a worker or a thread of workers records, and when it hands in.

use benchmaster_clock::{Clock, Ticks};

use super::Collector;

/// Longer intervals are handed in by parts of this length, so that progress is known twice a second. Whether one is over
/// costs an operation the same comparison as the end of an interval.
const HAND_IN_NS: u64 = 500_000_000;

#[derive(Debug)]
pub(super) struct Interval {
    pub(super) number: u32,
    end: Ticks,
    /// When what was recorded is to be handed in.
    pub(super) due: Ticks,
}

impl Interval {
    /// The first one of a measured phase that begins at `start`.
    pub(super) fn first(collector: &Collector, clock: &Clock, start: Ticks) -> Self {
        let end = clock.after(start, collector.interval_ns);
        Self { number: 0, end, due: clock.after(start, HAND_IN_NS).min(end) }
    }

    /// Moves on, once what was recorded is handed in, to where an operation belongs that ends at `now`.
    pub(super) fn pass(&mut self, collector: &Collector, clock: &Clock, start: Ticks, now: Ticks) {
        if now >= self.end {
            let length = collector.interval_ns;
            let number = u32::try_from(clock.nanos(start, now) / length).unwrap_or(u32::MAX - 1);
            // Rounding of ticks must not send an operation back into the interval that is over.
            self.number = number.max(self.number + 1);
            self.end = clock.after(start, (u64::from(self.number) + 1).saturating_mul(length));
        }
        self.due = clock.after(now, HAND_IN_NS).min(self.end);
    }
}
