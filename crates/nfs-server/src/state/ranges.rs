//! Byte-range locks of one file: who has locked what, whatever protocol they came by.

use std::collections::BTreeMap;

use super::interval::{Intervals, Range};

/// A lock that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeldLock {
    /// Number of its owner.
    pub(super) owner: u32,
    pub(super) range: Range,
    /// Whether it is exclusive.
    pub(super) write: bool,
}

/// The locks of a file, of owners known by number. Locking replaces what the owner has in the range (upgrade,
/// downgrade, split) and joins it with neighbours of the same type, as POSIX has it.
#[derive(Debug, Default)]
pub(super) struct LockTable {
    /// All locks by owner and first byte.
    own: BTreeMap<(u32, u64), (u64, bool)>,
    /// Exclusive locks by first byte: no two overlap.
    writers: BTreeMap<u64, (u64, u32)>,
    /// Shared locks, which overlap those of other owners.
    readers: Intervals,
}

impl LockTable {
    /// The first lock of another owner that stands against `owner` locking `range`.
    pub(super) fn conflict(&self, owner: u32, range: Range, write: bool) -> Option<HeldLock> {
        let before =
            self.writers.range(..range.first).next_back().filter(|(_, (last, _))| *last >= range.first);
        let writer = before
            .into_iter()
            .chain(self.writers.range(range.first..=range.last))
            .find(|(_, (_, other))| *other != owner)
            .map(|(first, (last, owner))| HeldLock {
                owner: *owner,
                range: Range { first: *first, last: *last },
                write: true,
            });
        let reader = || {
            let (owner, range) = self.readers.meeting(range, owner)?;
            Some(HeldLock { owner, range, write: false })
        };
        match (writer, if write { reader() } else { None }) {
            (Some(writer), Some(reader)) if reader.range.first < writer.range.first => Some(reader),
            (Some(writer), _) => Some(writer),
            (None, reader) => reader,
        }
    }

    /// Locks `range` for `owner`, against whom nothing stands.
    pub(super) fn lock(&mut self, owner: u32, range: Range, write: bool) {
        self.unlock(owner, range);
        let mut joined = range;
        if let Some(before) = range.first.checked_sub(1)
            && let Some((first, last, kind)) = self.own_before(owner, range.first)
            && last == before
            && kind == write
        {
            self.take(owner, first);
            joined.first = first;
        }
        if let Some(after) = range.last.checked_add(1)
            && let Some((last, kind)) = self.own.get(&(owner, after)).copied()
            && kind == write
        {
            self.take(owner, after);
            joined.last = last;
        }
        self.put(owner, joined, write);
    }

    /// Unlocks `range` for `owner`; what sticks out on either side stays locked.
    pub(super) fn unlock(&mut self, owner: u32, range: Range) {
        if let Some((first, last, write)) = self.own_before(owner, range.first)
            && last >= range.first
        {
            self.take(owner, first);
            self.put(owner, Range { first, last: range.first - 1 }, write);
            if last > range.last {
                self.put(owner, Range { first: range.last + 1, last }, write);
                return;
            }
        }
        while let Some((first, last, write)) = self.own_from(owner, range) {
            self.take(owner, first);
            if last > range.last {
                self.put(owner, Range { first: range.last + 1, last }, write);
                return;
            }
        }
    }

    /// Unlocks all that `owner` has locked; whether it had anything.
    pub(super) fn unlock_all(&mut self, owner: u32) -> bool {
        let any = self.holds(owner);
        self.unlock(owner, Range { first: 0, last: u64::MAX });
        any
    }

    /// Whether `owner` has locked anything.
    pub(super) fn holds(&self, owner: u32) -> bool {
        self.own.range((owner, 0)..=(owner, u64::MAX)).next().is_some()
    }

    /// Whether unlocking `range` leaves one of the owner's locks on both sides of it.
    pub(super) fn splits(&self, owner: u32, range: Range) -> bool {
        self.own_before(owner, range.first).is_some_and(|(_, last, _)| last > range.last)
    }

    /// Number of locks.
    pub(super) fn len(&self) -> usize {
        self.own.len()
    }

    /// Whether nothing is locked.
    pub(super) fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// The owner's last lock that starts before `at`.
    fn own_before(&self, owner: u32, at: u64) -> Option<(u64, u64, bool)> {
        let (key, (last, write)) = self.own.range((owner, 0)..(owner, at)).next_back()?;
        Some((key.1, *last, *write))
    }

    /// The owner's first lock that starts in `range`.
    fn own_from(&self, owner: u32, range: Range) -> Option<(u64, u64, bool)> {
        let (key, (last, write)) = self.own.range((owner, range.first)..=(owner, range.last)).next()?;
        Some((key.1, *last, *write))
    }

    fn put(&mut self, owner: u32, range: Range, write: bool) {
        self.own.insert((owner, range.first), (range.last, write));
        if write {
            self.writers.insert(range.first, (range.last, owner));
        } else {
            self.readers.insert(owner, range);
        }
    }

    fn take(&mut self, owner: u32, first: u64) {
        match self.own.remove(&(owner, first)) {
            Some((_, true)) => drop(self.writers.remove(&first)),
            Some((_, false)) => self.readers.remove(owner, first),
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OWNERS: usize = 4;
    const BYTES: usize = 24;

    /// The table as a person would draw it: per owner and byte nothing, shared, or exclusive. The last byte stands
    /// for all up to the end.
    #[derive(Default)]
    struct Model([[Option<bool>; BYTES]; OWNERS]);

    fn range(first: usize, last: usize) -> Range {
        let end = |at: usize| if at == BYTES - 1 { u64::MAX } else { at as u64 };
        Range { first: first as u64, last: end(last) }
    }

    impl Model {
        fn conflicts(&self, owner: usize, first: usize, last: usize, write: bool) -> Vec<usize> {
            let stands = |other: &usize| {
                *other != owner
                    && self.0[*other][first..=last]
                        .iter()
                        .any(|held| matches!((held, write), (Some(true), _) | (Some(_), true)))
            };
            (0..OWNERS).filter(stands).collect()
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

        /// Any sequence of locks, unlocks and whole releases leaves the same bytes locked as in the model, and
        /// conflicts are those of the model.
        #[test]
        fn agrees_with_a_map_of_bytes(
            steps in prop::collection::vec((0..OWNERS, 0..BYTES, 0..BYTES, 0..6u8), 1..120)
        ) {
            let mut table = LockTable::default();
            let mut model = Model::default();
            for (owner, a, b, what) in steps {
                let (first, last) = (a.min(b), a.max(b));
                let number = owner as u32;
                match what {
                    0 => {
                        table.unlock(number, range(first, last));
                        model.0[owner][first..=last].fill(None);
                    }
                    1 if a == b => {
                        prop_assert_eq!(table.unlock_all(number), model.0[owner].iter().any(Option::is_some));
                        model.0[owner].fill(None);
                    }
                    _ => {
                        let write = what % 2 == 0;
                        let expected = model.conflicts(owner, first, last, write);
                        match table.conflict(number, range(first, last), write) {
                            None => {
                                prop_assert!(expected.is_empty());
                                table.lock(number, range(first, last), write);
                                model.0[owner][first..=last].fill(Some(write));
                            }
                            Some(held) => {
                                prop_assert!(expected.contains(&(held.owner as usize)));
                                prop_assert!(held.range.meets(range(first, last)));
                                let at = held.range.first as usize;
                                prop_assert_eq!(model.0[held.owner as usize][at], Some(held.write));
                            }
                        }
                    }
                }
                // Every byte, and that neighbours of one type are one lock.
                for owner in 0..OWNERS {
                    let mut expected = Vec::new();
                    let bytes = &model.0[owner];
                    let mut at = 0;
                    while at < BYTES {
                        let end = (at..BYTES).take_while(|i| bytes[*i] == bytes[at]).last().unwrap_or(at);
                        if let Some(write) = bytes[at] {
                            expected.push((range(at, end).first, range(at, end).last, write));
                        }
                        at = end + 1;
                    }
                    let number = owner as u32;
                    let own: Vec<_> = table
                        .own
                        .range((number, 0)..=(number, u64::MAX))
                        .map(|((_, first), (last, write))| (*first, *last, *write))
                        .collect();
                    prop_assert_eq!(own, expected);
                }
            }
            for owner in 0..OWNERS as u32 {
                table.unlock_all(owner);
            }
            prop_assert!(table.is_empty() && table.writers.is_empty() && table.readers.is_empty());
        }
    }

    #[test]
    fn ranges_as_nfs_has_them() {
        assert_eq!(Range::new(0, 0), None);
        assert_eq!(Range::new(u64::MAX, 1), None);
        assert_eq!(Range::new(1, u64::MAX - 1), Some(Range { first: 1, last: u64::MAX - 1 }));
        assert_eq!(Range::new(2, u64::MAX - 1), None);
        assert_eq!(Range::new(7, u64::MAX), Some(Range { first: 7, last: u64::MAX }));
        for (offset, length) in [(0, 1), (5, 10), (9, u64::MAX), (u64::MAX - 1, 1)] {
            let range = Range::new(offset, length).unwrap();
            assert_eq!((range.first, range.length()), (offset, length));
        }
    }

    #[test]
    fn hundred_thousand_shared_locks_do_not_slow_down() {
        let mut table = LockTable::default();
        for owner in 0u32..100_000 {
            let at = u64::from(owner) * 4;
            table.lock(owner, Range { first: at, last: at + 100 }, false);
        }
        // A hundred thousand look-ups that would each pass over all locks if they were in a list.
        for owner in 0u32..100_000 {
            let at = u64::from(owner) * 4;
            let held = table.conflict(u32::MAX - 1, Range { first: at, last: at }, true).unwrap();
            assert!(held.range.first <= at && at <= held.range.last);
        }
        for owner in 0..100_000 {
            assert!(table.unlock_all(owner));
        }
        assert!(table.is_empty());
    }
}
