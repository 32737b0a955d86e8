//! Data that were written and may be lost if the server restarts: references to large ones, copies of others.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::mem;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

use crate::buffer::{Buffer, Data};
use crate::types::Verifier;

/// Data from this size on are kept by reference, if they are at least half of their buffer: a reference keeps all of it.
const SHARED: usize = 16 << 10;

/// Data of one file written and not committed, in the order of writing.
#[derive(Debug, Default)]
pub(super) struct Log {
    pieces: Vec<Piece>,
    /// Of those pieces that are copies.
    copies: Vec<u8>,
    /// Bytes of all.
    len: usize,
}

#[derive(Debug)]
struct Piece {
    offset: u64,
    len: usize,
    verifier: Verifier,
    /// The buffer and where in it; `None`: a copy.
    shared: Option<(Buffer, usize)>,
}

impl Log {
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes of data.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn push(&mut self, offset: u64, data: Data<'_>, verifier: Verifier) {
        let len = data.len();
        self.len += len;
        let worth = |buffer: &Buffer| len >= SHARED && len >= buffer.len() / 2;
        if let Some((buffer, start)) = data.within().filter(|(buffer, _)| worth(buffer)) {
            self.pieces.push(Piece { offset, len, verifier, shared: Some((buffer.share(), start)) });
            return;
        }
        self.copies.extend_from_slice(&data);
        match self.pieces.last_mut() {
            Some(last)
                if last.shared.is_none()
                    && last.verifier == verifier
                    && last.offset + last.len as u64 == offset =>
            {
                last.len += len;
            }
            _ => self.pieces.push(Piece { offset, len, verifier, shared: None }),
        }
    }

    /// Whether all was written to the server's instance of this verifier.
    pub(super) fn is_of(&self, verifier: &Verifier) -> bool {
        self.pieces.iter().all(|piece| piece.verifier == *verifier) || is_broken(Mutant::VerifierIgnored)
    }

    /// Offsets and data in the order of writing.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.all().map(|(piece, data)| (piece.offset, data))
    }

    fn all(&self) -> impl Iterator<Item = (&Piece, &[u8])> {
        let mut rest = &self.copies[..];
        self.pieces.iter().map(move |piece| {
            let data = match &piece.shared {
                Some((buffer, start)) => &buffer[*start..start + piece.len],
                None => {
                    let (data, after) = rest.split_at(piece.len);
                    rest = after;
                    data
                }
            };
            (piece, data)
        })
    }

    /// Puts what was written later behind it.
    pub(super) fn append(&mut self, later: &mut Self) {
        self.copies.append(&mut later.copies);
        self.pieces.append(&mut later.pieces);
        self.len += mem::take(&mut later.len);
    }

    /// Forgets what lies at and behind an offset. What is left becomes copies: of a buffer it may be little.
    fn cut(&mut self, size: u64) {
        if self.pieces.iter().all(|piece| piece.offset + piece.len as u64 <= size) {
            return;
        }
        let mut kept = Self::default();
        for (piece, data) in self.all() {
            let len = size.saturating_sub(piece.offset).min(piece.len as u64) as usize;
            if len > 0 {
                kept.push(piece.offset, data[..len].into(), piece.verifier);
            }
        }
        self.clear(drop);
        self.append(&mut kept);
    }

    /// Forgets everything, and gives up the buffers.
    fn clear(&mut self, give: impl FnMut(Buffer)) {
        self.pieces.drain(..).filter_map(|piece| piece.shared).map(|(buffer, _)| buffer).for_each(give);
        self.copies.clear();
        self.len = 0;
    }

    fn capacity(&self) -> usize {
        self.copies.capacity() + self.pieces.capacity() * size_of::<Piece>()
    }
}

/// Logs and buffers that are not used at the moment, and how much all hold.
#[derive(Debug)]
pub(super) struct Logs {
    free: RefCell<Vec<Log>>,
    /// Buffers that no one refers to any more, in the order in which that came about.
    buffers: RefCell<VecDeque<Buffer>>,
    /// Bytes that the free logs have room for, and those of the buffers.
    spare: Cell<usize>,
    /// Bytes of data in those in use.
    held: Cell<usize>,
    limit: usize,
}

impl Logs {
    pub(super) fn new(limit: u64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let (free, buffers, spare, held) = Default::default();
        Self { free, buffers, spare, held, limit }
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

    /// A buffer of this length that was given back, the one that was used last: caches may still have it.
    pub(super) fn buffer(&self, len: usize) -> Option<Buffer> {
        let mut buffers = self.buffers.borrow_mut();
        let at = buffers.iter().rposition(|buffer| buffer.len() == len)?;
        self.spare.set(self.spare.get() - len);
        buffers.remove(at)
    }

    /// Keeps a buffer for its next use, unless something else refers to it; without room in the place of the oldest ones.
    fn put(&self, buffer: Buffer) {
        let len = buffer.len();
        if buffer.is_shared() || len > self.limit {
            return;
        }
        let mut buffers = self.buffers.borrow_mut();
        while self.spare.get() + len > self.limit {
            let Some(oldest) = buffers.pop_front() else { return };
            self.spare.set(self.spare.get() - oldest.len());
        }
        self.spare.set(self.spare.get() + len);
        buffers.push_back(buffer);
    }

    /// What the log holds is not needed any more.
    pub(super) fn give(&self, mut log: Log) {
        self.held.set(self.held.get() - log.len());
        log.clear(|buffer| self.put(buffer));
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

    const OLD: Verifier = [1; 8];
    const NEW: Verifier = [2; 8];

    fn buffer(len: usize, byte: u8) -> Buffer {
        let mut buffer = Buffer::new(len);
        buffer.fill(byte);
        buffer
    }

    #[test]
    fn pieces_come_back_in_order_and_neighbours_are_one() {
        let mut log = Log::default();
        let mut push = |offset, data: &[u8], verifier| log.push(offset, data.into(), verifier);
        push(10, b"ab", OLD);
        push(12, b"cd", OLD);
        push(10, b"x", OLD);
        push(11, b"y", NEW);
        let mut later = Log::default();
        later.push(0, b"z"[..].into(), NEW);
        assert!(!log.is_of(&OLD) && later.is_of(&NEW));
        log.append(&mut later);
        assert_eq!((log.len(), later.len()), (7, 0));
        let pieces: Vec<_> = log.pieces().collect();
        assert_eq!(pieces, [(10, &b"abcd"[..]), (10, b"x"), (11, b"y"), (0, b"z")]);
        let logs = Logs::new(100);
        logs.hold(log.len());
        logs.cut(&mut log, 11);
        assert_eq!(log.pieces().collect::<Vec<_>>(), [(10, &b"a"[..]), (10, b"x"), (0, b"z")]);
        logs.cut(&mut log, 0);
        assert!(log.is_empty() && logs.held.get() == 0);
    }

    #[test]
    fn references_and_copies_keep_their_order() {
        let (mut log, large) = (Log::default(), buffer(SHARED + 8, 7));
        log.push(0, b"ab"[..].into(), OLD);
        log.push(2, Data::of(&large, 8..SHARED + 8), OLD);
        log.push(2 + SHARED as u64, b"cd"[..].into(), OLD);
        log.push(4 + SHARED as u64, b"e"[..].into(), OLD);
        assert!(large.is_shared());
        let pieces: Vec<_> = log.pieces().collect();
        assert_eq!(pieces, [(0, &b"ab"[..]), (2, &[7; SHARED]), (2 + SHARED as u64, b"cde")]);
        assert_eq!((log.len(), log.copies.len()), (SHARED + 5, 5));
        // What is left of a buffer may be little: it must not keep all of it.
        log.cut(10);
        assert!(!large.is_shared());
        assert_eq!(log.pieces().collect::<Vec<_>>(), [(0, &[b'a', b'b', 7, 7, 7, 7, 7, 7, 7, 7][..])]);
        assert_eq!(log.len(), 10);
    }

    #[test]
    fn little_of_a_large_buffer_is_copied() {
        for (len, size, shared) in [
            (SHARED, SHARED, true),
            (SHARED - 1, SHARED - 1, false),
            (SHARED, 2 * SHARED, true),
            (SHARED, 2 * SHARED + 2, false),
        ] {
            let (mut log, buffer) = (Log::default(), Buffer::new(size));
            log.push(0, Data::of(&buffer, 0..len), OLD);
            assert_eq!(buffer.is_shared(), shared, "{len} of {size}");
        }
    }

    #[test]
    fn room_is_used_again_within_the_limit() {
        let logs = Logs::new(1000);
        let mut log = logs.take();
        log.push(0, [1; 60][..].into(), OLD);
        logs.hold(60);
        assert!(logs.is_full(941) && !logs.is_full(940));
        let room = log.copies.capacity();
        logs.give(log);
        assert!(!logs.is_full(1000));
        let log = logs.take();
        assert!(log.is_empty() && log.copies.capacity() == room);
        let mut large = Log::default();
        large.push(0, [1; 2000][..].into(), OLD);
        logs.hold(2000);
        logs.give(large);
        assert_eq!(logs.take().capacity(), 0);
    }

    #[test]
    fn buffers_are_used_again_within_the_limit() {
        let logs = Logs::new(3 * SHARED as u64 + 1000);
        let mut log = logs.take();
        let in_use = buffer(SHARED, 0);
        log.push(0, Data::of(&in_use, 0..SHARED), OLD);
        for byte in 1..=4 {
            log.push(0, Data::of(&buffer(SHARED, byte), 0..SHARED), OLD);
        }
        logs.hold(log.len());
        logs.give(log);
        assert_eq!(logs.held(), 0);
        assert!(!in_use.is_shared(), "its owner goes on with it");
        assert!(logs.buffer(SHARED - 1).is_none());
        let bytes = || logs.buffer(SHARED).map(|buffer| buffer[0]);
        // The newest first; there was no room for the oldest one.
        assert_eq!([bytes(), bytes(), bytes(), bytes()], [Some(4), Some(3), Some(2), None]);
        assert!(logs.spare.get() < 1000);
    }
}
