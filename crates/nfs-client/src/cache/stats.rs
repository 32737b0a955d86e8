//! What a cache did, counted: of a mount, and of all mounts of the process.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Something that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheCount {
    /// Pages that programs read.
    Read,
    /// Of these, pages that had to be waited for.
    Missed,
    /// Pages read from the server that no program had asked for.
    Ahead,
    /// Of these, pages that a program read later.
    AheadUsed,
    /// Pages dropped to make room.
    Evicted,
    /// Pages written to the server.
    Written,
    /// Nanoseconds that writers were held back.
    Throttled,
    /// Pages cached now.
    Cached,
    /// Pages dirty now.
    Dirty,
    /// Pages on their way to the server now.
    Writeback,
    /// Pages that the server has and may lose, now.
    Unstable,
}

const COUNTS: usize = CacheCount::ALL.len();

static PROCESS: [AtomicU64; COUNTS] = [const { AtomicU64::new(0) }; COUNTS];

impl CacheCount {
    /// All of them, in order.
    pub const ALL: [Self; 11] = [
        Self::Read,
        Self::Missed,
        Self::Ahead,
        Self::AheadUsed,
        Self::Evicted,
        Self::Written,
        Self::Throttled,
        Self::Cached,
        Self::Dirty,
        Self::Writeback,
        Self::Unstable,
    ];

    /// Whether it is an amount at this moment; else it only grows.
    pub fn is_level(self) -> bool {
        matches!(self, Self::Cached | Self::Dirty | Self::Writeback | Self::Unstable)
    }

    /// The sum over all mounts of this process.
    pub fn of_process(self) -> u64 {
        PROCESS[self as usize].load(Ordering::Relaxed)
    }
}

/// Counts of one mount.
#[derive(Debug, Default)]
pub struct CacheCounts([Cell<u64>; COUNTS]);

impl CacheCounts {
    /// The count at this moment.
    pub fn get(&self, count: CacheCount) -> u64 {
        self.0[count as usize].get()
    }

    pub(crate) fn add(&self, count: CacheCount, number: u64) {
        self.set(count, self.get(count) + number);
    }

    pub(crate) fn set(&self, count: CacheCount, number: u64) {
        let before = self.0[count as usize].replace(number);
        let process = &PROCESS[count as usize];
        if number >= before {
            process.fetch_add(number - before, Ordering::Relaxed);
        } else {
            process.fetch_sub(before - number, Ordering::Relaxed);
        }
    }
}

impl Drop for CacheCounts {
    fn drop(&mut self) {
        CacheCount::ALL.into_iter().filter(|count| count.is_level()).for_each(|count| self.set(count, 0));
    }
}
