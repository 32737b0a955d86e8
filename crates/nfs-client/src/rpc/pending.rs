//! Calls that wait for their replies, found by transaction number.

use std::task::Waker;
use std::time::Instant;

/// Where a call's reply is.
#[derive(Debug)]
pub(super) enum State {
    /// The place is free.
    Free,
    /// Nothing was sent yet, or it has to be sent again.
    Idle,
    /// Sent.
    Waiting,
    /// Its reply lies in the receive buffer: from, length.
    Ready(usize, usize),
    /// Its reply was moved out of the receive buffer.
    Kept(Vec<u8>),
    /// The caller receives the rest of its reply itself.
    Landing,
    /// The connection broke.
    Lost,
    /// Its reply did not come in time.
    TimedOut,
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) xid: u32,
    pub(super) state: State,
    pub(super) waker: Option<Waker>,
    /// Wants data of a large reply in its own buffer.
    pub(super) lands: bool,
    pub(super) deadline: Option<Instant>,
    pub(super) sent: Option<Instant>,
    pub(super) received: Option<Instant>,
    /// Length of the reply.
    pub(super) bytes: usize,
}

impl Entry {
    fn free() -> Self {
        Self {
            xid: 0,
            state: State::Free,
            waker: None,
            lands: false,
            deadline: None,
            sent: None,
            received: None,
            bytes: 0,
        }
    }

    /// Puts the entry into a state and lets its task see it.
    pub(super) fn wake(&mut self, state: State) {
        self.state = state;
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// A table whose places are the low bits of transaction numbers: the number is chosen so that its place is free.
#[derive(Debug)]
pub(super) struct Pending {
    entries: Vec<Entry>,
    used: usize,
    next: u32,
    /// Calls that want to receive data themselves.
    pub(super) landing: usize,
}

impl Pending {
    /// `first` is where transaction numbers begin.
    pub(super) fn new(first: u32) -> Self {
        Self { entries: (0..64).map(|_| Entry::free()).collect(), used: 0, next: first, landing: 0 }
    }

    /// Takes a place; returns its transaction number.
    pub(super) fn take(&mut self, lands: bool) -> u32 {
        if self.used * 2 >= self.entries.len() {
            self.grow();
        }
        let xid = loop {
            let xid = self.next;
            self.next = self.next.wrapping_add(1);
            if matches!(self.entries[self.index(xid)].state, State::Free) {
                break xid;
            }
        };
        self.used += 1;
        self.landing += usize::from(lands);
        let index = self.index(xid);
        self.entries[index] = Entry { xid, state: State::Idle, lands, ..Entry::free() };
        xid
    }

    fn index(&self, xid: u32) -> usize {
        xid as usize & (self.entries.len() - 1)
    }

    fn grow(&mut self) {
        let larger = (0..self.entries.len() * 2).map(|_| Entry::free()).collect();
        let old = std::mem::replace(&mut self.entries, larger);
        for entry in old {
            if !matches!(entry.state, State::Free) {
                // Numbers that differ in the low bits still do with one bit more.
                let index = self.index(entry.xid);
                self.entries[index] = entry;
            }
        }
    }

    /// The entry of a number, if it is in use.
    pub(super) fn get(&mut self, xid: u32) -> Option<&mut Entry> {
        let index = self.index(xid);
        let entry = &mut self.entries[index];
        (entry.xid == xid && !matches!(entry.state, State::Free)).then_some(entry)
    }

    /// Gives a place back; the state it was in.
    pub(super) fn free(&mut self, xid: u32) -> State {
        let Some(entry) = self.get(xid) else { return State::Free };
        let lands = entry.lands;
        let state = std::mem::replace(entry, Entry::free()).state;
        self.used -= 1;
        self.landing -= usize::from(lands);
        state
    }

    /// A call does not receive its data itself after all: its reply is received as others are.
    pub(super) fn lands_no_more(&mut self, xid: u32) {
        if let Some(entry) = self.get(xid)
            && std::mem::take(&mut entry.lands)
        {
            entry.state = State::Waiting;
            self.landing -= 1;
        }
    }

    /// All entries in use.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        self.entries.iter_mut().filter(|entry| !matches!(entry.state, State::Free))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_unique_and_found() {
        let mut pending = Pending::new(u32::MAX - 5);
        let xids: Vec<u32> = (0..1000).map(|_| pending.take(false)).collect();
        let mut sorted = xids.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), 1000);
        assert!(xids.iter().all(|&xid| pending.get(xid).is_some_and(|entry| entry.xid == xid)));
        for &xid in &xids[..990] {
            assert!(matches!(pending.free(xid), State::Idle));
            assert!(pending.get(xid).is_none());
        }
        // The places of long outstanding calls are passed over.
        let more: Vec<u32> = (0..5000)
            .map(|_| {
                let xid = pending.take(true);
                pending.free(xid);
                xid
            })
            .collect();
        assert!(more.iter().all(|xid| !xids[990..].contains(xid)));
        assert_eq!((pending.iter_mut().count(), pending.landing), (10, 0));
    }
}
