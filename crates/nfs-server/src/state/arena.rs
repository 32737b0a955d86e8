//! A table with numbered places, reused with a generation, whose members can be in doubly linked lists at no cost but
//! two numbers per list: state is found by number, by client, by file and by owner without any search.

use std::collections::VecDeque;

/// Places whose last use was revoked that are not used again yet.
const REVOKED: usize = 16_384;

/// No place.
pub(super) const NONE: u32 = u32::MAX;

/// Why a member was taken out against its holder's will.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Revoked {
    /// Its holder's lease ran out.
    Expired,
    /// It was a delegation that was not returned in time, while its holder's lease was valid.
    NotReturned,
}

/// The table. A member is in at most one list of each of the `L` kinds; the head of a list is kept by whoever owns it.
#[derive(Debug)]
pub(super) struct Arena<T, const L: usize> {
    cells: Vec<Cell<T, L>>,
    free: Vec<u32>,
    revoked: VecDeque<u32>,
}

#[derive(Debug)]
struct Cell<T, const L: usize> {
    generation: u32,
    /// Why the last use ended, if by [`Arena::revoke`].
    revoked: Option<Revoked>,
    links: [Link; L],
    value: Option<T>,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
}

const UNLINKED: Link = Link { before: NONE, after: NONE };

impl<T, const L: usize> Default for Arena<T, L> {
    fn default() -> Self {
        Self { cells: Vec::new(), free: Vec::new(), revoked: VecDeque::new() }
    }
}

impl<T, const L: usize> Arena<T, L> {
    /// Puts a value in; [`NONE`] when four thousand million places are taken.
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(at) = self.free.pop().or_else(|| self.oldest_revoked())
            && let Some(cell) = self.cells.get_mut(at as usize)
        {
            cell.value = Some(value);
            cell.revoked = None;
            return at;
        }
        match u32::try_from(self.cells.len()) {
            Ok(at) if at != NONE => {
                self.cells.push(Cell {
                    generation: 1,
                    revoked: None,
                    links: [UNLINKED; L],
                    value: Some(value),
                });
                at
            }
            _ => NONE,
        }
    }

    pub(super) fn get(&self, at: u32) -> Option<&T> {
        self.cells.get(at as usize)?.value.as_ref()
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.cells.get_mut(at as usize)?.value.as_mut()
    }

    /// Which use of its place a member is; changes when it is taken out.
    pub(super) fn generation(&self, at: u32) -> u32 {
        self.cells.get(at as usize).map_or(0, |cell| cell.generation)
    }

    /// Takes a member out. It must be in no list any more.
    pub(super) fn remove(&mut self, at: u32) -> Option<T> {
        let value = self.vacate(at, None)?;
        self.free.push(at);
        Some(value)
    }

    /// Takes a member out against its holder's will, which [`Arena::revoked`] tells until the place is used again: not
    /// before many others were revoked.
    pub(super) fn revoke(&mut self, at: u32, why: Revoked) -> Option<T> {
        let value = self.vacate(at, Some(why))?;
        self.revoked.push_back(at);
        Some(value)
    }

    fn oldest_revoked(&mut self) -> Option<u32> {
        if self.revoked.len() < REVOKED { None } else { self.revoked.pop_front() }
    }

    fn vacate(&mut self, at: u32, revoked: Option<Revoked>) -> Option<T> {
        let cell = self.cells.get_mut(at as usize)?;
        let value = cell.value.take()?;
        cell.generation = cell.generation.wrapping_add(1);
        cell.revoked = revoked;
        cell.links = [UNLINKED; L];
        Some(value)
    }

    /// Why this use of a place, if it was the last, was ended by [`Arena::revoke`].
    pub(super) fn revoked(&self, at: u32, generation: u32) -> Option<Revoked> {
        let cell = self.cells.get(at as usize)?;
        let was_last = cell.value.is_none() && cell.generation == generation.wrapping_add(1);
        cell.revoked.filter(|_| was_last)
    }

    /// Puts a member in front of a list.
    pub(super) fn link(&mut self, list: usize, head: &mut u32, at: u32) {
        if let Some(link) = self.link_mut(list, at) {
            *link = Link { before: NONE, after: *head };
        }
        if let Some(link) = self.link_mut(list, *head) {
            link.before = at;
        }
        *head = at;
    }

    /// Takes a member out of a list.
    pub(super) fn unlink(&mut self, list: usize, head: &mut u32, at: u32) {
        let Some(link) = self.link_mut(list, at) else { return };
        let Link { before, after } = std::mem::replace(link, UNLINKED);
        if let Some(link) = self.link_mut(list, before) {
            link.after = after;
        } else {
            *head = after;
        }
        if let Some(link) = self.link_mut(list, after) {
            link.before = before;
        }
    }

    /// The members of a list, the newest first.
    pub(super) fn list(&self, list: usize, head: u32) -> impl Iterator<Item = (u32, &T)> {
        let mut at = head;
        std::iter::from_fn(move || {
            let cell = self.cells.get(at as usize)?;
            let here = std::mem::replace(&mut at, cell.links.get(list)?.after);
            Some((here, cell.value.as_ref()?))
        })
    }

    pub(super) fn len(&self) -> usize {
        self.cells.len() - self.free.len() - self.revoked.len()
    }

    fn link_mut(&mut self, list: usize, at: u32) -> Option<&mut Link> {
        self.cells.get_mut(at as usize)?.links.get_mut(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_survive_removal_anywhere() {
        let mut arena: Arena<char, 2> = Arena::default();
        let (mut head, mut other) = (NONE, NONE);
        let at: Vec<u32> = "abcd".chars().map(|c| arena.insert(c)).collect();
        for at in &at {
            arena.link(0, &mut head, *at);
            arena.link(1, &mut other, *at);
        }
        let values =
            |arena: &Arena<char, 2>, list, head| arena.list(list, head).map(|(_, c)| *c).collect::<String>();
        assert_eq!(values(&arena, 0, head), "dcba");
        for (gone, left) in [(1, "dca"), (3, "ca"), (0, "c"), (2, "")] {
            arena.unlink(0, &mut head, at[gone]);
            assert_eq!(values(&arena, 0, head), left);
        }
        assert_eq!(values(&arena, 1, other), "dcba");
        assert_eq!(head, NONE);
    }

    #[test]
    fn places_are_reused_with_another_generation() {
        let mut arena: Arena<u8, 0> = Arena::default();
        let a = arena.insert(1);
        let first = arena.generation(a);
        assert_eq!(arena.remove(a), Some(1));
        assert_eq!(arena.remove(a), None);
        assert_eq!(arena.revoked(a, first), None);
        assert_eq!(arena.insert(2), a);
        let second = arena.generation(a);
        assert_ne!(first, second);
        assert_eq!(arena.revoke(a, Revoked::NotReturned), Some(2));
        assert_eq!((arena.revoked(a, second), arena.revoked(a, first)), (Some(Revoked::NotReturned), None));
        assert_ne!(arena.insert(3), a);
        assert_eq!(arena.len(), 1);
        for _ in 1..REVOKED {
            assert!(arena.revoked(a, second).is_some());
            let at = arena.insert(4);
            assert_ne!(at, a);
            arena.revoke(at, Revoked::Expired);
        }
        assert_eq!(arena.insert(5), a);
        assert_eq!(arena.revoked(a, second), None);
    }
}
