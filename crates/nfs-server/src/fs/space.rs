//! Accounting of memory: data in pages at their full length, once for every file that refers to them, and extended
//! attributes; and apart from it, files and names.

use std::sync::atomic::{AtomicU64, Ordering};

use super::FsError;

/// Limit of a file system that was given none. Bounds what ALLOCATE can promise.
const UNLIMITED: u64 = 1 << 40;
/// Memory that files and names may take in a file system whose limit is less.
const LEAST_FOR_NAMES: u64 = 16 << 20;
/// What a file takes beside its data and names, about.
const FILE: u64 = 512;
/// What a name takes beside its text, about.
const NAME: u64 = 128;

#[derive(Debug)]
pub(super) struct Space {
    pub(super) data: Account,
    pub(super) names: Account,
}

#[derive(Debug)]
pub(super) struct Account {
    limit: u64,
    used: AtomicU64,
}

/// Memory of a file, of kinds that have a text (symbolic links) with that.
pub(super) fn of_file(text: &[u8]) -> u64 {
    FILE + text.len() as u64
}

/// Memory of a name.
pub(super) fn of_name(name: &[u8]) -> u64 {
    NAME + name.len() as u64
}

impl Space {
    pub(super) fn new(limit: Option<u64>) -> Self {
        let limit = limit.unwrap_or(UNLIMITED);
        Self { data: Account::new(limit), names: Account::new(limit.max(LEAST_FOR_NAMES)) }
    }

    pub(super) fn limit(&self) -> u64 {
        self.data.limit
    }

    pub(super) fn used(&self) -> u64 {
        self.data.used.load(Ordering::Relaxed)
    }

    /// How many files with short names may still be made.
    pub(super) fn free_files(&self) -> u64 {
        self.names.limit.saturating_sub(self.names.used.load(Ordering::Relaxed)) / (FILE + NAME)
    }

    /// After `reserved` was taken for a change that made `before` bytes `after`: gives back the difference.
    pub(super) fn settle(&self, reserved: u64, before: u64, after: u64) {
        self.data.give_back((reserved + before).saturating_sub(after));
    }

    /// Counts what was loaded, within the limit or not.
    pub(super) fn restore(&self, data: u64, names: u64) {
        self.data.used.fetch_add(data, Ordering::Relaxed);
        self.names.used.fetch_add(names, Ordering::Relaxed);
    }
}

impl Account {
    fn new(limit: u64) -> Self {
        Self { limit, used: AtomicU64::new(0) }
    }

    /// Takes this number of bytes, if they are left.
    pub(super) fn take(&self, bytes: u64) -> Result<(), FsError> {
        if bytes == 0 {
            return Ok(());
        }
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|used| *used <= self.limit)
            })
            .map_or(Err(FsError::NoSpace), |_| Ok(()))
    }

    pub(super) fn give_back(&self, bytes: u64) {
        if bytes > 0 {
            self.used.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}
