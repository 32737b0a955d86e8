//! The state in parts, each behind a lock of its own: what is held on a file is in one part, which the file's number
//! names (and every stateid).
//!
//! Clients, and the sequences of 4.0 owners, concern all parts and change seldom: who holds the lock of any part may read
//! them, who changes them holds all locks. So operations on files of different parts write no common memory.

use std::cell::UnsafeCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use benchmaster_nfs_proto::v4::Stateid4;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use smallvec::SmallVec;

use super::client::Clients;
use super::file::{Files, Place};
use super::turns::Turns;
use crate::config::ServerConfig;
use crate::handle::FileId;
use crate::thread::number_of_this_thread;

/// Parts for every thread: two threads seldom meet in one. And the fewest and most.
const PER_THREAD: usize = 4;
const FEWEST: usize = 8;
const MOST: usize = 256;

/// All parts, and what concerns them all.
#[derive(Debug)]
pub(super) struct Shards {
    parts: Box<[Part]>,
    whole: UnsafeCell<Whole>,
}

// SAFETY: `whole` is read only with a lock of some part held, and written only with all of them (`Shards::all`): as behind
// a readers-writer lock, for which these bounds are enough.
unsafe impl Sync for Shards where Whole: Send + Sync {}

/// One part. In cache lines of its own: neighbours are used by other threads.
#[derive(Debug)]
#[repr(align(128))]
struct Part {
    files: RwLock<Files>,
    /// Acquisitions of the lock that had to wait.
    waits: AtomicU64,
    guarded: Arc<Guarded>,
}

/// How many files of a part have delegations or deny modes on them: most operations have to look no further.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Guarded(pub(super) AtomicU32);

/// What concerns all parts.
#[derive(Debug)]
struct Whole {
    clients: Clients,
    turns: Turns,
}

/// A part, for looking.
#[derive(Debug)]
pub struct Look<'a> {
    files: RwLockReadGuard<'a, Files>,
    clients: &'a Clients,
}

/// A part, for changing.
#[derive(Debug)]
pub struct Change<'a> {
    files: RwLockWriteGuard<'a, Files>,
    clients: &'a Clients,
}

/// Everything, for changing.
#[derive(Debug)]
pub struct All<'a> {
    clients: &'a mut Clients,
    files: AllFiles<'a>,
}

/// All parts, for changing.
#[derive(Debug)]
pub struct AllFiles<'a> {
    pub(super) parts: SmallVec<[RwLockWriteGuard<'a, Files>; FEWEST]>,
    pub(super) turns: &'a mut Turns,
}

impl Shards {
    /// Parts for the threads of a server.
    pub(super) fn new(
        config: &ServerConfig,
        boot: u64,
        clients: Clients,
        write_delegations: &Arc<AtomicBool>,
    ) -> Self {
        let count = (config.threads.saturating_mul(PER_THREAD)).clamp(FEWEST, MOST).next_power_of_two();
        let part = |index: usize| {
            let guarded = Arc::new(Guarded::default());
            let place = Place { index: index as u32, bits: count.trailing_zeros() };
            let files =
                RwLock::new(Files::new(config, boot, place, (guarded.clone(), write_delegations.clone())));
            Part { files, waits: AtomicU64::new(0), guarded }
        };
        let whole = Whole { clients, turns: Turns::new(config.lease) };
        Self { parts: (0..count).map(part).collect(), whole: UnsafeCell::new(whole) }
    }

    /// The part of a file.
    pub(super) fn part_of(&self, file: FileId) -> usize {
        part_of(file, self.parts.len())
    }

    /// The part that a stateid names.
    pub(super) fn part_of_stateid(&self, stateid: &Stateid4) -> usize {
        part_of_stateid(stateid, self.parts.len())
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether no file of the part has delegations or deny modes on it.
    pub(super) fn is_unguarded(&self, part: usize) -> bool {
        self.part(part).guarded.0.load(Ordering::Acquire) == 0
    }

    /// Locks a part, for looking.
    pub(super) fn read(&self, part: usize) -> Look<'_> {
        let files = self.part(part).read();
        // SAFETY: with the lock of a part held no thread is in `All`, the only one that writes; the reference ends with
        // the guard, as `Look` hands out reborrows only.
        let Whole { clients, .. } = unsafe { &*self.whole.get() };
        Look { files, clients }
    }

    /// Locks a part, for changing.
    pub(super) fn write(&self, part: usize) -> Change<'_> {
        let files = self.part(part).write();
        // SAFETY: as in `read`.
        let Whole { clients, .. } = unsafe { &*self.whole.get() };
        Change { files, clients }
    }

    /// Locks the part that this thread locks for reading what concerns all: threads do not meet there.
    pub(super) fn whole(&self) -> Look<'_> {
        self.read(number_of_this_thread())
    }

    /// Locks everything.
    pub(super) fn all(&self) -> All<'_> {
        // In the order of their numbers: two threads cannot wait for each other.
        let parts = self.parts.iter().map(Part::write).collect();
        // SAFETY: all locks are held, so that no other reference exists; it ends with the guards, as `All` hands out
        // reborrows only.
        let Whole { clients, turns } = unsafe { &mut *self.whole.get() };
        All { clients, files: AllFiles { parts, turns } }
    }

    /// Acquisitions of locks that had to wait.
    pub(super) fn waits(&self) -> u64 {
        self.parts.iter().map(|part| part.waits.load(Ordering::Relaxed)).sum()
    }

    fn part(&self, part: usize) -> &Part {
        &self.parts[part & (self.parts.len() - 1)]
    }
}

impl Part {
    fn read(&self) -> RwLockReadGuard<'_, Files> {
        self.files.try_read().unwrap_or_else(|| {
            self.waits.fetch_add(1, Ordering::Relaxed);
            self.files.read()
        })
    }

    fn write(&self) -> RwLockWriteGuard<'_, Files> {
        self.files.try_write().unwrap_or_else(|| {
            self.waits.fetch_add(1, Ordering::Relaxed);
            self.files.write()
        })
    }
}

impl Look<'_> {
    /// What is held on files of the part.
    pub fn files(&self) -> &Files {
        &self.files
    }

    /// All clients.
    pub fn clients(&self) -> &Clients {
        self.clients
    }
}

impl Change<'_> {
    /// All clients, and what is held on files of the part.
    pub fn split(&mut self) -> (&Clients, &mut Files) {
        (self.clients, &mut self.files)
    }

    /// What is held on files of the part.
    pub fn files(&mut self) -> &mut Files {
        &mut self.files
    }
}

impl<'a> All<'a> {
    /// Clients, and what they hold.
    pub fn split(&mut self) -> (&mut Clients, &mut AllFiles<'a>) {
        (self.clients, &mut self.files)
    }

    /// All clients.
    pub fn clients(&mut self) -> &mut Clients {
        self.clients
    }

    /// What they hold.
    pub fn files(&mut self) -> &mut AllFiles<'a> {
        &mut self.files
    }
}

impl AllFiles<'_> {
    /// The part of a file.
    pub(crate) fn part(&mut self, file: FileId) -> &mut Files {
        let index = self.index_of(file);
        &mut self.parts[index]
    }

    pub(super) fn index_of(&self, file: FileId) -> usize {
        part_of(file, self.parts.len())
    }
}

/// Files made one after the other are in different parts.
fn part_of(file: FileId, parts: usize) -> usize {
    (file.ino as usize ^ (file.export as usize).wrapping_mul(7)) & (parts - 1)
}

fn part_of_stateid(stateid: &Stateid4, parts: usize) -> usize {
    let [_, _, _, _, a, b, c, d, ..] = stateid.other;
    u32::from_be_bytes([a, b, c, d]) as usize & (parts - 1)
}

#[cfg(test)]
impl AllFiles<'static> {
    /// Parts that nothing else uses.
    pub(super) fn alone(config: &ServerConfig, boot: u64, clients: Clients) -> Self {
        let shards: &'static Shards =
            Box::leak(Box::new(Shards::new(config, boot, clients, &Arc::default())));
        let All { files, .. } = shards.all();
        files
    }
}

#[cfg(test)]
mod tests;
