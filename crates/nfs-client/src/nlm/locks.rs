//! The locks that this client holds, as it must tell a server that restarted.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use crate::reactor::Waiters;
use crate::types::{Handle, LockKind, Range};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(super) file: Handle,
    pub(super) owner: u64,
    pub(super) kind: LockKind,
    pub(super) range: Range,
}

#[derive(Debug, Default)]
pub(super) struct LockTable {
    /// Whether somebody looks for restarts.
    pub(super) watched: bool,
    locks: Locks,
    /// Locks that could not be reclaimed.
    lost: Locks,
}

/// Whose locks: owner and file.
type Whose = (u64, Handle);

/// Locks that do not overlap with others of the same owner in the same file.
#[derive(Debug, Default)]
struct Locks(HashMap<Whose, Vec<Lock>>);

impl Lock {
    /// What is left of the lock without the bytes of another.
    fn without(self, other: &Self) -> impl Iterator<Item = Self> {
        self.range.without(other.range).map(move |range| Self { range, ..self })
    }

    fn whose(&self) -> Whose {
        (self.owner, self.file)
    }
}

impl Locks {
    fn add(&mut self, lock: Lock) {
        self.0.entry(lock.whose()).or_default().push(lock);
    }

    fn all(&self) -> impl Iterator<Item = &Lock> {
        self.0.values().flatten()
    }

    /// Cuts a range of an owner out; `true` when something was there.
    fn cut(&mut self, range: &Lock) -> bool {
        let Some(locks) = self.0.get_mut(&range.whose()) else { return false };
        let mut found = false;
        let rest = locks.iter().flat_map(|lock| {
            let mut rest = lock.without(range).peekable();
            found |= rest.peek() != Some(lock);
            rest
        });
        let rest: Vec<Lock> = rest.collect();
        if rest.is_empty() {
            drop(self.0.remove(&range.whose()))
        } else {
            *locks = rest
        }
        found
    }
}

impl LockTable {
    /// A lock was granted: it takes the place of what its owner held there.
    pub(super) fn add(&mut self, lock: Lock) {
        self.remove(&lock);
        self.locks.add(lock);
    }

    /// A range was unlocked, whatever the kind. `true` when a part of it had been lost.
    pub(super) fn remove(&mut self, lock: &Lock) -> bool {
        self.locks.cut(lock);
        self.lost.cut(lock)
    }

    /// A lock could not be reclaimed.
    pub(super) fn lose(&mut self, lock: &Lock) {
        self.locks.cut(lock);
        self.lost.add(*lock);
    }

    /// Whether the owner of a lock has any in the file, or has lost one.
    pub(super) fn any_of(&self, lock: &Lock) -> bool {
        [&self.locks, &self.lost].iter().any(|locks| locks.0.contains_key(&lock.whose()))
    }

    /// Whether this very lock is held.
    pub(super) fn contains(&self, lock: &Lock) -> bool {
        self.locks.0.get(&lock.whose()).is_some_and(|locks| locks.contains(lock))
    }

    pub(super) fn all(&self) -> Vec<Lock> {
        self.locks.all().copied().collect()
    }
}

/// Requests for locks of one owner in one file, one at a time: a lock that is reclaimed while it is unlocked, or
/// changed to another kind, would come back when it is no longer wanted.
#[derive(Debug, Default)]
pub(super) struct OwnerLocks {
    taken: RefCell<HashSet<Whose>>,
    waiting: Waiters,
}

/// A turn; ends when dropped.
#[derive(Debug)]
pub(super) struct OwnerGuard<'t> {
    turns: &'t OwnerLocks,
    whose: Whose,
}

impl OwnerLocks {
    /// Waits until no other request of this owner for this file is under way.
    pub(super) async fn take(&self, lock: &Lock) -> OwnerGuard<'_> {
        self.waiting.until(|| self.taken.borrow_mut().insert(lock.whose())).await;
        OwnerGuard { turns: self, whose: lock.whose() }
    }
}

impl Drop for OwnerGuard<'_> {
    fn drop(&mut self) {
        self.turns.taken.borrow_mut().remove(&self.whose);
        self.turns.waiting.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(owner: u64, kind: LockKind, offset: u64, length: u64) -> Lock {
        Lock { file: Handle::new(b"f").unwrap(), owner, kind, range: Range { offset, length } }
    }

    /// Owner, first byte and number of what is held.
    fn ranges(held: &LockTable) -> Vec<(u64, LockKind, u64, u64)> {
        let mut ranges: Vec<_> =
            held.locks.all().map(|l| (l.owner, l.kind, l.range.offset, l.range.length)).collect();
        ranges.sort_by_key(|&(owner, _, offset, _)| (owner, offset));
        ranges
    }

    #[test]
    fn locks_are_cut_as_the_server_cuts_them() {
        use LockKind::{Read, Write};
        let mut held = LockTable::default();
        held.add(lock(1, Write, 0, 0));
        held.add(lock(2, Read, 0, 10));
        assert!(!held.remove(&lock(1, Read, 10, 10)));
        assert_eq!(ranges(&held), [(1, Write, 0, 10), (1, Write, 20, 0), (2, Read, 0, 10)]);
        // Asked for again with another kind.
        held.add(lock(1, Read, 5, 20));
        assert_eq!(ranges(&held), [(1, Write, 0, 5), (1, Read, 5, 20), (1, Write, 25, 0), (2, Read, 0, 10)]);
        held.remove(&lock(1, Read, 0, 0));
        assert_eq!(ranges(&held), [(2, Read, 0, 10)]);
        // Less than is unlocked, and what only touches it.
        held.remove(&lock(2, Read, 10, 5));
        assert_eq!(ranges(&held), [(2, Read, 0, 10)]);
        held.add(lock(2, Read, 5, 3));
        held.remove(&lock(2, Read, 0, 0));
        assert!(ranges(&held).is_empty() && held.locks.0.is_empty());
    }

    #[test]
    fn a_lost_lock_is_known_when_it_is_unlocked() {
        let mut held = LockTable::default();
        held.add(lock(1, LockKind::Write, 0, 10));
        held.lose(&lock(1, LockKind::Write, 0, 10));
        assert!(held.all().is_empty());
        assert!(!held.remove(&lock(1, LockKind::Write, 10, 10)));
        assert!(held.remove(&lock(1, LockKind::Write, 0, 10)));
        assert!(!held.remove(&lock(1, LockKind::Write, 0, 10)));
        // One that is asked for and got again is no lost one.
        held.lose(&lock(1, LockKind::Write, 0, 10));
        held.add(lock(1, LockKind::Write, 0, 10));
        assert!(!held.remove(&lock(1, LockKind::Write, 0, 10)));
    }
}
