//! The inode table: from inode number and generation to a locked inode, without a lock of its own on the way.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

use super::inode::{Body, Inode};
use super::types::CAPACITY;
use super::{FsError, Node};
use crate::thread::{Counter, PerThread};

/// Slots of a chunk: allocated at once, never moved, never freed.
const CHUNK: u64 = 1024;
/// Numbers that a thread takes at once: files that it makes one after the other are beside each other.
const BLOCK: u64 = 64;
/// Chunks of a group.
const GROUP: u64 = 4096;
/// Groups of a table.
const GROUPS: u64 = CAPACITY / GROUP / CHUNK;

/// Two cache lines, never three.
#[derive(Debug)]
#[repr(align(128))]
struct Slot(RwLock<Inode>);

type Chunk = OnceLock<Box<[Slot]>>;

pub(super) type ReadGuard<'a> = RwLockReadGuard<'a, Inode>;
pub(super) type WriteGuard<'a> = RwLockWriteGuard<'a, Inode>;

/// All inodes of a file system.
///
/// The lock of a free slot is held for moments only, and never while waiting for another: whoever finds that the slot's
/// generation is not the one looked for lets it go at once. So [`Table::allocate`] may wait for it under other locks.
#[derive(Debug)]
pub(super) struct Table {
    groups: Box<[OnceLock<Box<[Chunk]>>]>,
    /// Lowest number not given out to a thread yet.
    next: AtomicU64,
    /// Free numbers that threads have.
    free: PerThread<Mutex<Vec<u32>>>,
    used: Counter,
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            groups: (0..GROUPS).map(|_| OnceLock::new()).collect(),
            next: AtomicU64::new(1),
            free: PerThread::default(),
            used: Counter::default(),
        }
    }

    /// Files there are.
    pub(super) fn used(&self) -> u64 {
        self.used.sum()
    }

    /// Locks a file for reading.
    pub(super) fn read(&self, node: Node) -> Result<ReadGuard<'_>, FsError> {
        let guard = self.slot(node.ino).ok_or(FsError::Stale)?.0.read();
        if is(&guard, node) { Ok(guard) } else { Err(FsError::Stale) }
    }

    /// As [`Table::read`], `None` when that would wait.
    pub(super) fn try_read(&self, node: Node) -> Option<Result<ReadGuard<'_>, FsError>> {
        let Some(slot) = self.slot(node.ino) else { return Some(Err(FsError::Stale)) };
        let guard = slot.0.try_read()?;
        Some(if is(&guard, node) { Ok(guard) } else { Err(FsError::Stale) })
    }

    /// Locks a file for writing.
    pub(super) fn write(&self, node: Node) -> Result<WriteGuard<'_>, FsError> {
        let guard = self.slot(node.ino).ok_or(FsError::Stale)?.0.write();
        if is(&guard, node) { Ok(guard) } else { Err(FsError::Stale) }
    }

    /// As [`Table::write`], `None` when that would wait.
    pub(super) fn try_write(&self, node: Node) -> Option<Result<WriteGuard<'_>, FsError>> {
        let Some(slot) = self.slot(node.ino) else { return Some(Err(FsError::Stale)) };
        let guard = slot.0.try_write()?;
        Some(if is(&guard, node) { Ok(guard) } else { Err(FsError::Stale) })
    }

    /// A free slot, locked, for the caller to fill.
    pub(super) fn allocate(&self) -> Result<(Node, WriteGuard<'_>), FsError> {
        let ino = self.take_number().ok_or(FsError::NoSpace)?;
        self.used.add(1);
        let guard = self.make(ino).ok_or(FsError::NoSpace)?.0.write();
        Ok((Node { ino, generation: guard.generation }, guard))
    }

    /// Frees a file's slot. What it contained is returned, to be dropped when no lock is held.
    pub(super) fn free(&self, ino: u64, mut guard: WriteGuard<'_>) -> Body {
        let body = std::mem::replace(&mut guard.body, Body::Free);
        guard.extra = None;
        guard.pinned = false;
        // The number's last generation is not used up: then it could return to one that an old handle names.
        let last = guard.generation == u32::MAX;
        guard.generation = guard.generation.saturating_add(1);
        drop(guard);
        self.used.add(1u64.wrapping_neg());
        if !last && let Ok(ino) = u32::try_from(ino) {
            self.free.mine().lock().push(ino);
        }
        body
    }

    /// No number from here on was ever used.
    pub(super) fn end(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// The slot of a number that is in use or was, for saving.
    pub(super) fn peek(&self, ino: u64) -> Option<ReadGuard<'_>> {
        Some(self.slot(ino)?.0.read())
    }

    /// Puts an inode (or a free one, for its generation) at a number, for loading: numbers ascend, each once.
    pub(super) fn restore(&self, ino: u64, inode: Inode) -> Result<(), FsError> {
        if ino < self.end() || ino >= CAPACITY {
            return Err(FsError::Invalid);
        }
        self.next.store(ino + 1, Ordering::Relaxed);
        match inode.body {
            Body::Free if inode.generation == u32::MAX => {}
            Body::Free => self.free.mine().lock().push(ino as u32),
            _ => self.used.add(1),
        }
        *self.make(ino).ok_or(FsError::Invalid)?.0.write() = inode;
        Ok(())
    }

    /// The slot of a number, for loading what comes in any order; [`Table::recount`] comes after it.
    pub(super) fn restore_at(&self, ino: u64) -> Option<WriteGuard<'_>> {
        if ino == 0 || ino >= CAPACITY {
            return None;
        }
        self.next.fetch_max(ino + 1, Ordering::Relaxed);
        Some(self.make(ino)?.0.write())
    }

    /// Counts what was loaded, and finds the numbers that are free.
    pub(super) fn recount(&self) {
        let mut free = self.free.mine().lock();
        for ino in 1..self.end() {
            match self.peek(ino).map(|inode| (matches!(inode.body, Body::Free), inode.generation)) {
                Some((false, _)) => self.used.add(1),
                Some((true, u32::MAX)) => {}
                _ => free.push(ino as u32),
            }
        }
    }

    /// A number for a new file: one that this thread has, or of a new block, or, when there are none any more, one that
    /// another thread has. The latest freed first.
    fn take_number(&self) -> Option<u64> {
        let mut mine = self.free.mine().lock();
        if mine.is_empty() {
            let more = |next: u64| (next < CAPACITY).then(|| (next + BLOCK).min(CAPACITY));
            let begin = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
            let begin = begin.unwrap_or(CAPACITY);
            mine.extend((begin..(begin + BLOCK).min(CAPACITY)).rev().map(|ino| ino as u32));
        }
        let own = mine.pop();
        drop(mine);
        own.or_else(|| self.free.all().find_map(|other| other.lock().pop())).map(u64::from)
    }

    fn slot(&self, ino: u64) -> Option<&Slot> {
        let group = self.groups.get(usize::try_from(ino / CHUNK / GROUP).ok()?)?.get()?;
        let chunk = group.get((ino / CHUNK % GROUP) as usize)?.get()?;
        chunk.get((ino % CHUNK) as usize)
    }

    /// The slot, made when it is the first of its chunk.
    fn make(&self, ino: u64) -> Option<&Slot> {
        let group = self.groups.get(usize::try_from(ino / CHUNK / GROUP).ok()?)?;
        let group = group.get_or_init(|| (0..GROUP).map(|_| OnceLock::new()).collect());
        let chunk = group.get((ino / CHUNK % GROUP) as usize)?;
        let chunk = chunk.get_or_init(|| (0..CHUNK).map(|_| Slot(RwLock::new(Inode::free()))).collect());
        chunk.get((ino % CHUNK) as usize)
    }
}

/// Whether a slot holds the file that is looked for.
fn is(inode: &Inode, node: Node) -> bool {
    inode.generation == node.generation && !matches!(inode.body, Body::Free)
}

#[cfg(test)]
mod tests {
    use super::super::data::Data;
    use super::*;

    #[test]
    fn numbers_are_used_again_under_another_generation() {
        let table = Table::new();
        let (first, mut guard) = table.allocate().unwrap();
        guard.body = Body::Regular(Data::default());
        drop(guard);
        assert_eq!(first, Node { ino: 1, generation: 1 });
        assert!(table.read(first).is_ok());
        assert_eq!(table.used(), 1);
        table.free(1, table.write(first).unwrap());
        assert_eq!(table.read(first).err(), Some(FsError::Stale));
        let (again, guard) = table.allocate().unwrap();
        assert_eq!(again, Node { ino: 1, generation: 2 });
        drop(guard);
        assert_eq!(table.read(again).err(), Some(FsError::Stale), "a slot that is not filled is no file");
        for ino in [0, 2, 5000, CAPACITY, u64::MAX] {
            assert_eq!(table.read(Node { ino, generation: 1 }).err(), Some(FsError::Stale));
        }
    }

    #[test]
    fn the_last_generation_is_not_used_up() {
        let table = Table::new();
        let (_, mut guard) = table.allocate().unwrap();
        guard.generation = u32::MAX;
        guard.body = Body::Regular(Data::default());
        table.free(1, guard);
        assert_eq!(table.allocate().unwrap().0, Node { ino: 2, generation: 1 });
    }
}
