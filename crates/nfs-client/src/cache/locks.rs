//! Locks held under a delegation, which the server does not know.

use crate::types::{LockKind, Range};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) owner: u64,
    pub(crate) kind: LockKind,
    pub(crate) range: Range,
    /// The server has it too, on the word of a delegation that is being returned: whether that was still good when the server
    /// gave it is known when the delegation is returned.
    pub(crate) there: bool,
}

/// Locks of one file.
#[derive(Debug, Default)]
pub(crate) struct Locks(Vec<Lock>);

impl Locks {
    /// Whether no other owner's lock is in the way.
    pub(crate) fn is_free(&self, lock: &Lock) -> bool {
        let excludes = |other: &Lock| {
            other.owner != lock.owner
                && (other.kind == LockKind::Write || lock.kind == LockKind::Write)
                && other.range.overlaps(lock.range)
        };
        !self.0.iter().any(excludes)
    }

    /// Adds a lock that is free; it takes the place of what its owner held there.
    pub(crate) fn add(&mut self, lock: Lock) {
        self.remove(lock.owner, lock.range);
        self.0.push(lock);
    }

    /// Unlocks a range.
    pub(crate) fn remove(&mut self, owner: u64, range: Range) {
        let cut = self.0.extract_if(.., |lock| lock.owner == owner && lock.range.overlaps(range));
        let rest: Vec<Lock> =
            cut.flat_map(|lock| lock.range.without(range).map(move |range| Lock { range, ..lock })).collect();
        self.0.extend(rest);
    }

    /// Forgets the locks of an owner that is gone.
    pub(crate) fn release(&mut self, owner: u64) {
        self.0.retain(|lock| lock.owner != owner);
    }

    /// A lock of an owner that the server does not have.
    pub(crate) fn first(&self, owner: u64) -> Option<Lock> {
        self.0.iter().find(|lock| lock.owner == owner && !lock.there).copied()
    }

    /// The server has a lock, too.
    pub(crate) fn taken(&mut self, taken: &Lock) {
        self.0.iter_mut().filter(|lock| *lock == taken).for_each(|lock| lock.there = true);
    }

    /// The delegation was good until now: what the server has is its affair.
    pub(crate) fn returned(&mut self) {
        self.0.retain(|lock| !lock.there);
    }

    /// Takes all locks.
    pub(crate) fn take_all(&mut self) -> Vec<Lock> {
        std::mem::take(&mut self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_and_exclude_each_other() {
        let lock =
            |owner, kind, offset, length| Lock { owner, kind, range: Range { offset, length }, there: false };
        let mut locks = Locks::default();
        locks.add(lock(1, LockKind::Write, 0, 0));
        locks.remove(1, Range { offset: 10, length: 5 });
        assert!(locks.is_free(&lock(2, LockKind::Write, 10, 5)));
        for range in [(9, 1), (15, 1), (15, 0), (0, 0)] {
            assert!(!locks.is_free(&lock(2, LockKind::Read, range.0, range.1)), "{range:?}");
            assert!(locks.is_free(&lock(1, LockKind::Read, range.0, range.1)), "{range:?}");
        }
        locks.add(lock(1, LockKind::Read, 0, 10));
        assert!(locks.is_free(&lock(2, LockKind::Read, 0, 15)));
        let first = locks.first(1).unwrap();
        locks.taken(&first);
        assert!(locks.first(1).is_some_and(|next| next.owner == 1 && next != first));
        locks.returned();
        assert!(locks.is_free(&Lock { owner: 2, ..first }));
        assert_eq!(locks.take_all().len(), 1);
        assert_eq!(locks.first(1), None);
        locks.add(lock(3, LockKind::Write, 0, 0));
        locks.release(3);
        assert!(locks.is_free(&lock(2, LockKind::Write, 0, 0)));
    }
}
