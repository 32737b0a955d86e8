//! Accounting of memory for data: pages at their full length, once for every file that refers to them, and extended
//! attributes.

use std::sync::atomic::{AtomicU64, Ordering};

use super::FsError;

/// Limit of a file system that was given none. Bounds what ALLOCATE can promise.
const UNLIMITED: u64 = 1 << 40;

#[derive(Debug)]
pub(super) struct Space {
    limit: u64,
    used: AtomicU64,
}

impl Space {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self { limit: limit.unwrap_or(UNLIMITED), used: AtomicU64::new(0) }
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes `bytes`, or nothing when they are not there.
    pub(super) fn reserve(&self, bytes: u64) -> Result<(), FsError> {
        if bytes == 0 {
            return Ok(());
        }
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|used| *used <= self.limit)
            })
            .map_or(Err(FsError::NoSpace), |_| Ok(()))
    }

    pub(super) fn release(&self, bytes: u64) {
        if bytes > 0 {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// After `reserved` was taken for a change that made `before` bytes `after`: gives back the difference.
    pub(super) fn settle(&self, reserved: u64, before: u64, after: u64) {
        self.release((reserved + before).saturating_sub(after));
    }

    /// Counts what was loaded, within the limit or not.
    pub(super) fn restore(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }
}
