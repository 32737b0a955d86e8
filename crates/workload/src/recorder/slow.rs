//! Operations that take far longer than those before them: when each ran, and how many others ended since the last one.

use crate::recording::SlowOperation;

/// What a slot has of them.
#[derive(Debug)]
pub(super) struct Slow {
    /// From which latency on an operation is slow; none is before the first have been handed in.
    limit_ns: u64,
    /// Operations and nanoseconds that were handed in.
    earlier: (u64, u64),
    /// The number of the last slow one.
    last: Option<u64>,
    found: Vec<SlowOperation>,
}

impl Slow {
    pub(super) fn new() -> Self {
        Self { limit_ns: u64::MAX, earlier: (0, 0), last: None, found: Vec::new() }
    }

    /// Whether a latency is to be kept by [`Self::take`].
    #[inline(always)]
    pub(super) fn is(&self, latency_ns: u64) -> bool {
        latency_ns >= self.limit_ns
    }

    /// Keeps an operation, the last of `so_far` of the slot. How many of its worker ended since is known there: `None` where the
    /// slot is the worker's.
    #[cold]
    pub(super) fn take(&mut self, operation: SlowOperation, so_far: u64, own: Option<Option<u64>>) {
        let number = self.earlier.0 + so_far;
        let since = self.last.replace(number).map(|last| number - last);
        if self.found.len() < SlowOperation::MOST {
            self.found.push(SlowOperation { since, since_own: own.unwrap_or(since), ..operation });
        }
    }

    /// Those since it was called last; `count` and `sum_ns`: operations and nanoseconds that the slot hands in.
    pub(super) fn hand_in(&mut self, count: u64, sum_ns: u64) -> impl Iterator<Item = SlowOperation> + '_ {
        self.earlier = (self.earlier.0 + count, self.earlier.1.saturating_add(sum_ns));
        if let Some(mean) = self.earlier.1.checked_div(self.earlier.0) {
            self.limit_ns = mean.saturating_mul(SlowOperation::TIMES).max(SlowOperation::LEAST_NS);
        }
        self.found.drain(..)
    }
}
