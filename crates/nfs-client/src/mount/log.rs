//! Copies of data that were written and may be lost if the server restarts.

use std::cell::{Cell, RefCell};

use crate::types::Verifier;

/// Data of one file written and not committed, in the order of writing.
#[derive(Debug, Default)]
pub(super) struct Log {
    pieces: Vec<Piece>,
    data: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    offset: u64,
    len: usize,
    verifier: Verifier,
}

impl Log {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes of data.
    pub(super) fn len(&self) -> usize {
        self.data.len()
    }

    pub(super) fn push(&mut self, offset: u64, data: &[u8], verifier: Verifier) {
        self.data.extend_from_slice(data);
        match self.pieces.last_mut() {
            Some(last) if last.verifier == verifier && last.offset + last.len as u64 == offset => {
                last.len += data.len();
            }
            _ => self.pieces.push(Piece { offset, len: data.len(), verifier }),
        }
    }

    /// Whether all was written to the server's instance of this verifier.
    pub(super) fn is_of(&self, verifier: &Verifier) -> bool {
        self.pieces.iter().all(|piece| piece.verifier == *verifier)
    }

    /// Offsets and data in the order of writing.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut rest = &self.data[..];
        self.pieces.iter().map(move |piece| {
            let (data, after) = rest.split_at(piece.len);
            rest = after;
            (piece.offset, data)
        })
    }

    /// Puts what was written later behind it.
    pub(super) fn append(&mut self, later: &Self) {
        self.data.extend_from_slice(&later.data);
        self.pieces.extend_from_slice(&later.pieces);
    }

    fn cut(&mut self, size: u64) {
        let mut kept = Self::default();
        if self.pieces.iter().any(|piece| piece.offset + piece.len as u64 > size) {
            let mut rest = &self.data[..];
            for piece in &self.pieces {
                let (data, after) = rest.split_at(piece.len);
                rest = after;
                let len = size.saturating_sub(piece.offset).min(piece.len as u64) as usize;
                if len > 0 {
                    kept.push(piece.offset, &data[..len], piece.verifier);
                }
            }
            self.clear();
            self.append(&kept);
        }
    }

    fn clear(&mut self) {
        self.pieces.clear();
        self.data.clear();
    }

    fn capacity(&self) -> usize {
        self.data.capacity() + self.pieces.capacity() * size_of::<Piece>()
    }
}

/// Logs that are not used at the moment, and how much all hold.
#[derive(Debug)]
pub(super) struct Logs {
    free: RefCell<Vec<Log>>,
    /// Bytes that the free ones have room for.
    spare: Cell<usize>,
    /// Bytes of data in those in use.
    held: Cell<usize>,
    limit: usize,
}

impl Logs {
    pub(super) fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Self { free: RefCell::default(), spare: Cell::new(0), held: Cell::new(0), limit }
    }

    /// Whether this many more bytes exceed the limit.
    pub(super) fn is_full(&self, more: usize) -> bool {
        self.held.get().saturating_add(more) > self.limit
    }

    /// Bytes held.
    pub(super) fn held(&self) -> usize {
        self.held.get()
    }

    /// Adds to the bytes held.
    pub(super) fn hold(&self, bytes: usize) {
        self.held.set(self.held.get() + bytes);
    }

    /// An empty log, with room from earlier use if there is one.
    pub(super) fn take(&self) -> Log {
        let log = self.free.borrow_mut().pop().unwrap_or_default();
        self.spare.set(self.spare.get() - log.capacity());
        log
    }

    /// Forgets what a log has at and behind an offset.
    pub(super) fn cut(&self, log: &mut Log, size: u64) {
        let before = log.len();
        log.cut(size);
        self.held.set(self.held.get() - (before - log.len()));
    }

    /// What the log holds is not needed any more.
    pub(super) fn give(&self, mut log: Log) {
        self.held.set(self.held.get() - log.len());
        log.clear();
        let capacity = log.capacity();
        if capacity > 0 && self.spare.get() + capacity <= self.limit {
            self.spare.set(self.spare.get() + capacity);
            self.free.borrow_mut().push(log);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_come_back_in_order_and_neighbours_are_one() {
        let (old, new) = ([1; 8], [2; 8]);
        let mut log = Log::default();
        log.push(10, b"ab", old);
        log.push(12, b"cd", old);
        log.push(10, b"x", old);
        log.push(11, b"y", new);
        let mut later = Log::default();
        later.push(0, b"z", new);
        log.append(&later);
        let pieces: Vec<_> = log.pieces().collect();
        assert_eq!(pieces, [(10, &b"abcd"[..]), (10, b"x"), (11, b"y"), (0, b"z")]);
        assert!(!log.is_of(&old) && later.is_of(&new));
        let logs = Logs::new(100);
        logs.hold(log.len());
        logs.cut(&mut log, 11);
        assert_eq!(log.pieces().collect::<Vec<_>>(), [(10, &b"a"[..]), (10, b"x"), (0, b"z")]);
        logs.cut(&mut log, 0);
        assert!(log.is_empty() && logs.held.get() == 0);
    }

    #[test]
    fn room_is_used_again_within_the_limit() {
        let logs = Logs::new(1000);
        let mut log = logs.take();
        log.push(0, &[1; 60], [0; 8]);
        logs.hold(60);
        assert!(logs.is_full(941) && !logs.is_full(940));
        let room = log.data.capacity();
        logs.give(log);
        assert!(!logs.is_full(1000));
        let log = logs.take();
        assert!(log.is_empty() && log.data.capacity() == room);
        let mut large = Log::default();
        large.push(0, &[1; 2000], [0; 8]);
        logs.hold(2000);
        logs.give(large);
        assert_eq!(logs.take().capacity(), 0);
    }
}
