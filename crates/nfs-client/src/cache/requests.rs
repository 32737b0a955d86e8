//! Write requests of a file in a list by offset, as Linux 2.4.4 kept them.

/// No entry.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Entry {
    page: u64,
    next: u32,
}

/// Pages with a request, sorted, each linked to the next. Every search begins at the start: the time of a write grows
/// with the number of requests (paper 003, figure 3).
#[derive(Debug)]
pub(crate) struct SortedRequests {
    entries: Vec<Entry>,
    first: u32,
    free: u32,
}

impl Default for SortedRequests {
    fn default() -> Self {
        Self { entries: Vec::new(), first: NONE, free: NONE }
    }
}

impl SortedRequests {
    /// The last entry before `page`, and the one after it.
    fn search(&self, page: u64) -> (u32, u32) {
        let (mut before, mut at) = (NONE, self.first);
        while let Some(entry) = self.entries.get(at as usize) {
            if entry.page >= page {
                break;
            }
            (before, at) = (at, entry.next);
        }
        (before, at)
    }

    fn is(&self, at: u32, page: u64) -> bool {
        self.entries.get(at as usize).is_some_and(|entry| entry.page == page)
    }

    fn link(&mut self, before: u32, to: u32) {
        match self.entries.get_mut(before as usize) {
            Some(entry) => entry.next = to,
            None => self.first = to,
        }
    }

    /// Finds the request of a page, or adds one; returns whether it was there.
    pub(crate) fn add(&mut self, page: u64) -> bool {
        let (before, at) = self.search(page);
        if self.is(at, page) {
            return true;
        }
        let entry = Entry { page, next: at };
        let new = self.free;
        let new = match self.entries.get_mut(new as usize) {
            Some(place) => {
                self.free = place.next;
                *place = entry;
                new
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        self.link(before, new);
        false
    }

    /// The request of a page is done.
    pub(crate) fn remove(&mut self, page: u64) {
        let (before, at) = self.search(page);
        if self.is(at, page) {
            let next = self.entries[at as usize].next;
            self.link(before, next);
            self.entries[at as usize].next = self.free;
            self.free = at;
        }
    }

    /// All requests are done.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_has_what_a_set_has_in_order(steps in proptest::collection::vec((0u64..20, any::<bool>()), 0..60)) {
            let (mut list, mut set) = (SortedRequests::default(), BTreeSet::new());
            for (page, add) in steps {
                if add {
                    prop_assert_eq!(list.add(page), !set.insert(page));
                } else {
                    list.remove(page);
                    set.remove(&page);
                }
                let mut pages = Vec::new();
                let mut at = list.first;
                while at != NONE {
                    pages.push(list.entries[at as usize].page);
                    at = list.entries[at as usize].next;
                }
                prop_assert_eq!(pages, set.iter().copied().collect::<Vec<_>>());
            }
            list.clear();
            prop_assert!(list.first == NONE);
        }
    }
}
