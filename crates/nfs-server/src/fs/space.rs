//! Accounting of memory: data in pages at their full length, once for every file that refers to them, and extended
//! attributes; and apart from it, files and names.

use std::sync::atomic::{AtomicU64, Ordering};

use super::FsError;
use crate::thread::PerThread;

/// Limit of a file system that was given none. Bounds what ALLOCATE can promise.
const UNLIMITED: u64 = 1 << 40;
/// Memory that files and names may take in a file system whose limit is less.
const LEAST_FOR_NAMES: u64 = 16 << 20;
/// What a file takes beside its data and names, about.
const FILE: u64 = 512;
/// What a name takes beside its text, about.
const NAME: u64 = 128;
/// What a thread takes from an account in advance, so that it seldom writes what all threads write.
const ADVANCE: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct Space {
    pub(super) data: Account,
    pub(super) names: Account,
}

#[derive(Debug)]
pub(super) struct Account {
    limit: u64,
    /// With what threads have in advance.
    taken: AtomicU64,
    advances: PerThread<AtomicU64>,
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
        self.data.used()
    }

    /// How many files with short names may still be made.
    pub(super) fn free_files(&self) -> u64 {
        self.names.limit.saturating_sub(self.names.used()) / (FILE + NAME)
    }

    /// After `reserved` was taken for a change that made `before` bytes `after`: gives back the difference.
    pub(super) fn settle(&self, reserved: u64, before: u64, after: u64) {
        self.data.give_back((reserved + before).saturating_sub(after));
    }

    /// Counts what was loaded, within the limit or not.
    pub(super) fn restore(&self, data: u64, names: u64) {
        self.data.taken.fetch_add(data, Ordering::Relaxed);
        self.names.taken.fetch_add(names, Ordering::Relaxed);
    }
}

impl Account {
    fn new(limit: u64) -> Self {
        Self { limit, taken: AtomicU64::new(0), advances: PerThread::default() }
    }

    fn used(&self) -> u64 {
        let advances: u64 = self.advances.all().map(|advance| advance.load(Ordering::Relaxed)).sum();
        self.taken.load(Ordering::Relaxed).saturating_sub(advances)
    }

    /// Takes this number of bytes, if they are left.
    pub(super) fn take(&self, bytes: u64) -> Result<(), FsError> {
        if bytes == 0 || spend(self.advances.mine(), bytes) {
            return Ok(());
        }
        // Near the limit nothing is taken in advance, and what other threads have is collected.
        let advance = ADVANCE.min(self.limit >> 10);
        if self.take_exactly(bytes.saturating_add(advance)) {
            self.advances.mine().fetch_add(advance, Ordering::Relaxed);
            return Ok(());
        }
        self.collect();
        if self.take_exactly(bytes) { Ok(()) } else { Err(FsError::NoSpace) }
    }

    pub(super) fn give_back(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let mine = self.advances.mine();
        let over = (mine.fetch_add(bytes, Ordering::Relaxed) + bytes).saturating_sub(ADVANCE);
        if over > ADVANCE && spend(mine, over) {
            self.taken.fetch_sub(over, Ordering::Relaxed);
        }
    }

    fn take_exactly(&self, bytes: u64) -> bool {
        let more = |taken: u64| taken.checked_add(bytes).filter(|taken| *taken <= self.limit);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Puts back what threads have in advance.
    fn collect(&self) {
        for advance in self.advances.all() {
            self.taken.fetch_sub(advance.swap(0, Ordering::Relaxed), Ordering::Relaxed);
        }
    }
}

/// Takes bytes from an advance, if it has them.
fn spend(advance: &AtomicU64, bytes: u64) -> bool {
    let less = |advance: u64| advance.checked_sub(bytes);
    advance.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever threads have in advance, all that is free can be taken, and no more.
    #[test]
    fn the_limit_is_exact() {
        for limit in [1000, 10 << 20] {
            let account = Account::new(limit);
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        for _ in 0..100 {
                            if account.take(3).is_ok() {
                                account.give_back(3);
                            }
                        }
                        account.take(5)
                    });
                }
            });
            let used = account.used();
            assert_eq!(used, 40);
            assert_eq!(account.take(limit - used + 1), Err(FsError::NoSpace));
            assert_eq!(account.take(limit - used), Ok(()));
            assert_eq!((account.take(1), account.used()), (Err(FsError::NoSpace), limit));
            account.give_back(limit);
            assert_eq!((account.take(limit), account.take(1)), (Ok(()), Err(FsError::NoSpace)));
        }
    }
}
