//! A disk that fails on demand.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::{FileSystem, FsError};

/// What can go wrong with the disk of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Trouble {
    /// Data cannot be read.
    Read,
    /// Data cannot be written.
    Write,
    /// Data that were written cannot be made stable, and are lost.
    Commit,
    /// Names and attributes cannot be changed.
    Change,
    /// There is no room for new data and new files.
    Full,
    /// Of data that take more than one sector only the first half is written.
    Short,
}

/// What goes wrong now.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    /// A bit for each kind.
    now: AtomicU8,
    /// Those that go away when they have struck.
    once: AtomicU8,
    struck: AtomicU64,
}

impl Trouble {
    /// Each kind.
    pub const ALL: [Self; 6] = [Self::Read, Self::Write, Self::Commit, Self::Change, Self::Full, Self::Short];

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl FileSystem {
    /// From now on this goes wrong: `once`, or until [`Self::mend`].
    pub fn fail(&self, what: Trouble, once: bool) {
        if once {
            self.troubles.once.fetch_or(what.bit(), Ordering::Relaxed);
        }
        self.troubles.now.fetch_or(what.bit(), Ordering::Relaxed);
    }

    /// This goes wrong no more.
    pub fn mend(&self, what: Trouble) {
        self.troubles.now.fetch_and(!what.bit(), Ordering::Relaxed);
        self.troubles.once.fetch_and(!what.bit(), Ordering::Relaxed);
    }

    /// How often something went wrong.
    pub fn struck(&self) -> u64 {
        self.troubles.struck.load(Ordering::Relaxed)
    }

    /// Whether this goes wrong, this time.
    #[inline]
    pub(super) fn fails(&self, what: Trouble) -> bool {
        self.troubles.now.load(Ordering::Relaxed) & what.bit() != 0 && self.strike(what)
    }

    #[cold]
    fn strike(&self, what: Trouble) -> bool {
        if self.troubles.once.fetch_and(!what.bit(), Ordering::Relaxed) & what.bit() != 0 {
            self.troubles.now.fetch_and(!what.bit(), Ordering::Relaxed);
        }
        self.troubles.struck.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// An error if names and attributes cannot be changed.
    pub(super) fn may_change(&self) -> Result<(), FsError> {
        if self.fails(Trouble::Change) { Err(FsError::Io) } else { Ok(()) }
    }

    /// How much of a WRITE of this length is done.
    pub fn taken(&self, len: usize) -> usize {
        let whole = len <= SECTOR || !self.fails(Trouble::Short);
        if whole { len } else { (len / 2).next_multiple_of(SECTOR).min(len) }
    }
}

const SECTOR: usize = 512;
