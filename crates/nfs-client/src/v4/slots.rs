//! The slot table of a session (RFC 8881 §2.10.6), and the gate that holds operations back while state is recovered.
//!
//! The lowest free slot is taken, who waits is served in order of arrival. In version 4.0 there is no table, only the
//! gate.

use std::cell::{Cell, RefCell};

use benchmaster_nfs_proto::v4::Sessionid4;

use crate::reactor::Line;

/// A slot that was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) session: Sessionid4,
    /// Which of our sessions it is.
    pub(super) generation: u64,
    pub(super) number: u32,
    /// Sequence number to send.
    pub(super) sequence: u32,
    /// Highest slot in use.
    pub(super) highest: u32,
}

#[derive(Debug, Default)]
struct Table {
    /// Sequence number of the next request of each slot.
    sequence: Vec<u32>,
    /// One bit per slot in use.
    used: Vec<u64>,
    /// Slots that may be used.
    allowed: usize,
}

impl Table {
    fn lowest_free(&self) -> Option<usize> {
        let word = self.used.iter().position(|word| *word != u64::MAX)?;
        let number = word * 64 + self.used[word].trailing_ones() as usize;
        (number < self.allowed).then_some(number)
    }

    /// How many may be taken.
    fn free(&self) -> usize {
        let used = self.used.iter().enumerate().map(|(at, word)| {
            let allowed = self.allowed.saturating_sub(at * 64).min(64) as u32;
            let mask = u64::MAX.checked_shr(64 - allowed).unwrap_or_default();
            (word & mask).count_ones() as usize
        });
        self.allowed - used.sum::<usize>()
    }

    fn highest_used(&self) -> usize {
        let word = self.used.iter().rposition(|word| *word != 0);
        word.map_or(0, |word| word * 64 + 63 - self.used[word].leading_zeros() as usize)
    }

    fn is_used(&self, number: usize) -> bool {
        self.used.get(number / 64).is_some_and(|word| word & 1 << (number % 64) != 0)
    }

    fn set_used(&mut self, number: usize, used: bool) {
        if let Some(word) = self.used.get_mut(number / 64) {
            if used { *word |= 1 << (number % 64) } else { *word &= !(1 << (number % 64)) }
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Slots {
    session: Cell<Sessionid4>,
    generation: Cell<u64>,
    /// Whether there is a table at all.
    limited: Cell<bool>,
    closed: Cell<bool>,
    /// Ends all waiting.
    ended: Cell<bool>,
    table: RefCell<Table>,
    line: Line,
}

impl Slots {
    pub(super) fn session(&self) -> Sessionid4 {
        self.session.get()
    }

    /// Which of our sessions it is.
    pub(super) fn generation(&self) -> u64 {
        self.generation.get()
    }

    /// A new session with this many slots. Slots of the old one are no more.
    pub(super) fn renew(&self, session: Sessionid4, slots: u32) {
        self.session.set(session);
        self.generation.set(self.generation.get() + 1);
        self.limited.set(true);
        let mut table = self.table.borrow_mut();
        let slots = slots.max(1) as usize;
        table.sequence.clear();
        table.sequence.resize(slots, 1);
        table.used.clear();
        table.used.resize(slots.div_ceil(64), 0);
        table.allowed = slots;
        drop(table);
        self.wake_next();
    }

    /// Closes or opens the gate for those without priority.
    pub(super) fn close(&self, closed: bool) {
        self.closed.set(closed);
        if !closed {
            self.wake_next();
        }
    }

    /// Slots that the session has, and how many of them may be used.
    pub(super) fn size(&self) -> (usize, usize) {
        let table = self.table.borrow();
        (table.sequence.len(), table.allowed)
    }

    /// The server wants no more slots used than up to this one. Returns whether that are fewer than before.
    pub(super) fn target(&self, highest: u32) -> bool {
        let mut table = self.table.borrow_mut();
        let wanted = (highest as usize).saturating_add(1).min(table.sequence.len());
        let before = std::mem::replace(&mut table.allowed, wanted);
        drop(table);
        if wanted > before {
            self.wake_next();
        }
        wanted < before
    }

    /// The server has no slots beyond this one any more: they start over when it has them again.
    pub(super) fn limit(&self, highest: u32) {
        let mut table = self.table.borrow_mut();
        for number in (highest as usize).saturating_add(1)..table.sequence.len() {
            if !table.is_used(number) {
                table.sequence[number] = 1;
            }
        }
    }

    fn try_take(&self, priority: bool) -> Option<Slot> {
        if self.closed.get() && !priority {
            return None;
        }
        let (session, generation) = (self.session.get(), self.generation.get());
        if !self.limited.get() {
            return Some(Slot { session, generation, number: 0, sequence: 0, highest: 0 });
        }
        let mut table = self.table.borrow_mut();
        let number = table.lowest_free()?;
        table.set_used(number, true);
        let (sequence, highest) = (table.sequence[number], table.highest_used() as u32);
        Some(Slot { session, generation, number: number as u32, sequence, highest })
    }

    /// Takes the lowest free slot, when no request waits for one.
    pub(super) fn take_now(&self, priority: bool) -> Option<Slot> {
        if !priority && !self.line.is_empty() {
            return None;
        }
        self.try_take(priority)
    }

    /// Waits for a slot; `None` after [`Self::end`].
    pub(super) async fn take(&self, priority: bool) -> Option<Slot> {
        let end = || self.ended.get().then_some(None);
        let slot = self.line.wait(priority, || end().or_else(|| self.try_take(priority).map(Some))).await;
        match slot {
            Some(_) => self.wake_next(),
            // Those that came meanwhile end too.
            None => self.line.wake_first(usize::MAX),
        }
        slot
    }

    /// Gives a slot back; `used`: the server counted the request, so that the next has the next number.
    pub(super) fn give_back(&self, slot: Slot, used: bool) {
        if slot.generation != self.generation.get() || !self.limited.get() {
            return;
        }
        let mut table = self.table.borrow_mut();
        let number = slot.number as usize;
        if let Some(sequence) = table.sequence.get_mut(number).filter(|_| used) {
            *sequence = next_sequence(slot.sequence);
        }
        table.set_used(number, false);
        drop(table);
        self.wake_next();
    }

    /// Wakes as many as there are slots: they take them in one turn, and their requests leave together.
    fn wake_next(&self) {
        if self.line.is_empty() {
            return;
        }
        let free = if self.limited.get() { self.table.borrow().free() } else { usize::MAX };
        self.line.wake_first(free);
    }

    /// Ends all waiting.
    pub(super) fn end(&self) {
        self.ended.set(true);
        self.line.wake_first(usize::MAX);
    }
}

/// The number after this one; 0 follows the largest (RFC 8881 §2.10.6.1).
pub(super) fn next_sequence(sequence: u32) -> u32 {
    sequence.wrapping_add(1)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::reactor::Reactor;

    fn slots(n: u32) -> Slots {
        let slots = Slots::default();
        slots.renew([1; 16], n);
        slots
    }

    #[test]
    fn the_lowest_free_slot_is_taken_and_counts_on() {
        let slots = slots(70);
        let taken: Vec<Slot> = (0..70).map(|_| slots.take_now(false).unwrap()).collect();
        assert!(taken.iter().enumerate().all(|(n, slot)| slot.number == n as u32 && slot.sequence == 1));
        assert_eq!(taken[69].highest, 69);
        assert!(slots.take_now(false).is_none());
        slots.give_back(taken[65], true);
        slots.give_back(taken[3], false);
        let again = slots.take_now(false).unwrap();
        assert_eq!((again.number, again.sequence, again.highest), (3, 1, 69));
        let again = slots.take_now(false).unwrap();
        assert_eq!((again.number, again.sequence), (65, 2));
    }

    #[test]
    fn the_server_lowers_and_raises_the_number() {
        let slots = slots(4);
        let taken: Vec<Slot> = (0..4).map(|_| slots.take_now(false).unwrap()).collect();
        assert!(slots.target(1) && !slots.target(1));
        taken.iter().for_each(|slot| slots.give_back(*slot, true));
        assert_eq!([0, 1], [(); 2].map(|()| slots.take_now(false).unwrap().number)[..]);
        assert!(slots.take_now(false).is_none());
        slots.limit(1);
        assert!(!slots.target(100));
        // It starts over; a slot that is in use does not.
        assert_eq!(slots.take_now(false).map(|slot| (slot.number, slot.sequence)), Some((2, 1)));
        assert_eq!(slots.size(), (4, 4));
    }

    #[test]
    fn slots_of_an_old_session_are_forgotten() {
        let slots = slots(1);
        let old = slots.take_now(false).unwrap();
        slots.renew([2; 16], 1);
        let new = slots.take_now(false).unwrap();
        slots.give_back(old, true);
        assert!(slots.take_now(false).is_none());
        slots.give_back(new, true);
        assert_eq!(slots.take_now(false).map(|slot| slot.sequence), Some(2));
    }

    #[test]
    fn who_waits_is_served_in_order_and_may_go_away() {
        let reactor = Reactor::new().unwrap();
        let slots = Rc::new(slots(2));
        let served = Rc::new(RefCell::new(Vec::new()));
        let mut tasks: Vec<_> = (0..20)
            .map(|n| {
                let (slots, served, reactor) = (slots.clone(), served.clone(), reactor.clone());
                Box::pin(async move {
                    if n % 5 == 4 {
                        // Gives up waiting.
                        reactor.until(std::time::Instant::now(), slots.take(false)).await;
                        return;
                    }
                    let slot = slots.take(false).await.unwrap();
                    reactor.yield_now().await;
                    served.borrow_mut().push(n);
                    slots.give_back(slot, true);
                })
            })
            .collect();
        reactor.run_all(&mut tasks).unwrap();
        let expected: Vec<i32> = (0..20).filter(|n| n % 5 != 4).collect();
        assert_eq!(*served.borrow(), expected);
        assert!(slots.line.is_empty());
    }

    #[test]
    fn nobody_is_passed_over() {
        let reactor = Reactor::new().unwrap();
        let slots = slots(3);
        let counts: Vec<Cell<u32>> = (0..5).map(|_| Cell::new(0)).collect();
        let (slots, counts, most) = (&slots, &counts, &Cell::new(0));
        let mut tasks: Vec<_> = (0..5)
            .map(|n: usize| {
                let reactor = reactor.clone();
                Box::pin(async move {
                    while counts.iter().all(|count| count.get() < 100) {
                        let slot = match slots.take_now(false) {
                            Some(slot) => slot,
                            None => slots.take(false).await.unwrap(),
                        };
                        reactor.yield_now().await;
                        slots.give_back(slot, true);
                        counts[n].set(counts[n].get() + 1);
                        let least = counts.iter().map(Cell::get).min().unwrap();
                        most.set(most.get().max(counts[n].get() - least));
                    }
                })
            })
            .collect();
        reactor.run_all(&mut tasks).unwrap();
        assert!(most.get() <= 2, "{counts:?}");
    }

    #[test]
    fn the_gate_lets_recovery_through() {
        let reactor = Reactor::new().unwrap();
        let slots = Rc::new(slots(1));
        slots.close(true);
        let order = RefCell::new(Vec::new());
        let (slots, order) = (&slots, &order);
        let task = |priority: bool| async move {
            let slot = slots.take(priority).await.unwrap();
            order.borrow_mut().push(priority);
            slots.give_back(slot, true);
            if priority {
                slots.close(false);
            }
        };
        reactor.run_all(&mut [Box::pin(task(false)), Box::pin(task(true))]).unwrap();
        assert_eq!(*order.borrow(), [true, false]);
    }
}
