//! Operations and their time by file and by size.

use super::Spot;
use crate::recording::{NO_FILE, PartRow};

/// Binary logarithms of up to 32 bits.
pub(super) const SIZES: usize = 33;

/// Counts of a slot by file, then by size. Operations that follow each other on one file in one size cost a comparison: they
/// are counted when the next one is another's.
#[derive(Debug)]
pub(super) struct Parts {
    /// Operations and nanoseconds.
    counted: Box<[(u64, u64); PartRow::FILES + SIZES]>,
    file: u32,
    bytes: u64,
    /// Operations and nanoseconds of the slot when this file and size began.
    since: (u64, u64),
}

impl Parts {
    pub(super) fn new() -> Self {
        Self { counted: Box::new([(0, 0); PartRow::FILES + SIZES]), file: NO_FILE, bytes: 0, since: (0, 0) }
    }

    /// Another operation begins to be counted, before which the slot had `so_far`.
    #[inline(always)]
    pub(super) fn next(&mut self, bytes: u64, spot: Spot, so_far: (u64, u64)) {
        if (spot.file, bytes) != (self.file, self.bytes) {
            self.count(so_far);
            (self.file, self.bytes) = (spot.file, bytes);
        }
    }

    /// Counts what is not counted yet of the slot's operations and nanoseconds.
    #[inline(never)]
    pub(super) fn count(&mut self, so_far: (u64, u64)) {
        let (count, sum_ns) = (so_far.0 - self.since.0, so_far.1 - self.since.1);
        self.since = so_far;
        let mut add = |at: usize| {
            let part = &mut self.counted[at];
            *part = (part.0 + count, part.1 + sum_ns);
        };
        if self.file != NO_FILE {
            add(self.file as usize % PartRow::FILES);
        }
        if self.bytes > 0 {
            add(PartRow::FILES + (u64::BITS - (self.bytes - 1).leading_zeros()).min(32) as usize);
        }
    }

    /// Counts of all of the slot's operations, given their number and nanoseconds.
    pub(super) fn all(&mut self, so_far: (u64, u64)) -> &[(u64, u64)] {
        self.count(so_far);
        &self.counted[..]
    }

    pub(super) fn clear(&mut self) {
        self.counted.fill((0, 0));
        self.since = (0, 0);
    }
}
