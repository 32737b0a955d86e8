//! One direction of a connection: bytes under way, and when they are due.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::mem::size_of;
use std::time::Instant;

/// An empty queue keeps no more memory than this.
const KEPT: usize = 64 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The sender sends no more.
    Closed,
    Reset,
}

/// Bytes received together.
#[derive(Debug)]
struct Piece {
    due: Instant,
    /// Number of the byte after the last one, counted from the start of the connection.
    end: u64,
}

/// Bytes on their way, in order.
#[derive(Debug, Default)]
pub(super) struct Pipe {
    bytes: VecDeque<u8>,
    pieces: VecDeque<Piece>,
    /// Bytes that have left.
    sent: u64,
    end: Option<(End, Instant)>,
    /// When the last thing put in is due: nothing is due before it.
    last_due: Option<Instant>,
}

impl Pipe {
    /// Bytes that can be put in before `limit` is reached. The memory that pieces need counts too: a sender of single
    /// bytes must not cost many times what it sends.
    pub(super) fn room(&self, limit: usize) -> usize {
        limit.saturating_sub(self.bytes.len() + self.pieces.len() * size_of::<Piece>())
    }

    /// Puts in bytes that are to leave at `due`, or when what is before them leaves, if that is later.
    pub(super) fn push(&mut self, data: &[u8], due: Instant) {
        let due = self.in_order(due);
        self.bytes.extend(data);
        self.pieces.push_back(Piece { due, end: self.sent + self.bytes.len() as u64 });
    }

    /// Nothing comes after this. A reset takes the place of an end put in before.
    pub(super) fn finish(&mut self, end: End, due: Instant) {
        if !self.end.is_some_and(|(before, _)| before == End::Reset) {
            self.end = Some((end, self.in_order(due)));
        }
    }

    fn in_order(&mut self, due: Instant) -> Instant {
        let due = self.last_due.map_or(due, |last| last.max(due));
        self.last_due = Some(due);
        due
    }

    /// Whether the end was put in.
    pub(super) fn is_finished(&self) -> bool {
        self.end.is_some()
    }

    /// How it ends, once that is due. A reset overtakes bytes that the receiver did not take; a normal end does not.
    pub(super) fn ended(&self, now: Instant) -> Option<End> {
        self.end
            .filter(|(end, due)| *due <= now && (*end == End::Reset || self.bytes.is_empty()))
            .map(|(end, _)| end)
    }

    /// When something is due next, be it overdue.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let piece = self.pieces.front().map(|piece| piece.due);
        piece.or(self.end.map(|(_, due)| due))
    }

    /// When its reset is due.
    pub(super) fn reset_due(&self) -> Option<Instant> {
        self.end.filter(|(end, _)| *end == End::Reset).map(|(_, due)| due)
    }

    /// How many bytes may leave now.
    pub(super) fn due(&self, now: Instant) -> usize {
        let due = self.pieces.partition_point(|piece| piece.due <= now);
        let end =
            due.checked_sub(1).and_then(|last| self.pieces.get(last)).map_or(self.sent, |last| last.end);
        (end - self.sent) as usize
    }

    /// The first `len` bytes.
    pub(super) fn slices(&self, len: usize) -> [IoSlice<'_>; 2] {
        let (first, second) = self.bytes.as_slices();
        let first = &first[..first.len().min(len)];
        let second = &second[..second.len().min(len - first.len())];
        [IoSlice::new(first), IoSlice::new(second)]
    }

    /// Takes out bytes that have left; `whole` is called with the due time of each piece whose last byte is among them.
    pub(super) fn consume(&mut self, len: usize, mut whole: impl FnMut(Instant)) {
        self.bytes.drain(..len);
        self.sent += len as u64;
        while let Some(piece) = self.pieces.front().filter(|piece| piece.end <= self.sent) {
            whole(piece.due);
            self.pieces.pop_front();
        }
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT {
            self.bytes = VecDeque::new();
            self.pieces = VecDeque::new();
        }
    }

    /// Drops all bytes: there is no receiver any more.
    pub(super) fn clear(&mut self) {
        self.consume(self.bytes.len(), |_| {});
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn taken(pipe: &Pipe, len: usize) -> Vec<u8> {
        pipe.slices(len).iter().flat_map(|slice| slice.to_vec()).collect()
    }

    #[test]
    fn nothing_leaves_before_what_is_before_it() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut pipe = Pipe::default();
        pipe.push(b"abc", at(10));
        pipe.push(b"de", at(5));
        pipe.finish(End::Closed, at(7));
        assert_eq!((pipe.due(at(9)), pipe.next_due()), (0, Some(at(10))));
        assert_eq!((pipe.due(at(10)), pipe.ended(at(10))), (5, None));
        let mut whole = Vec::new();
        pipe.consume(2, |due| whole.push(due));
        assert!(whole.is_empty());
        assert_eq!((taken(&pipe, 3), pipe.due(at(10))), (b"cde".to_vec(), 3));
        pipe.consume(3, |due| whole.push(due));
        assert_eq!(whole, [at(10), at(10)]);
        assert_eq!(
            (pipe.next_due(), pipe.ended(at(9)), pipe.ended(at(10))),
            (Some(at(10)), None, Some(End::Closed))
        );
    }

    #[test]
    fn a_reset_takes_the_place_of_an_end_and_stays() {
        let now = Instant::now();
        let mut pipe = Pipe::default();
        pipe.push(b"abc", now);
        pipe.finish(End::Closed, now);
        assert_eq!((pipe.ended(now), pipe.reset_due()), (None, None));
        pipe.finish(End::Reset, now);
        pipe.finish(End::Closed, now);
        assert_eq!((pipe.ended(now), pipe.reset_due()), (Some(End::Reset), Some(now)));
    }

    #[test]
    fn single_bytes_fill_a_queue_by_the_memory_they_need() {
        let (mut pipe, now) = (Pipe::default(), Instant::now());
        let mut count = 0;
        while pipe.room(10_000) > 0 {
            pipe.push(b"x", now);
            count += 1;
        }
        assert!(count * (1 + size_of::<Piece>()) >= 10_000 && count < 1000, "{count}");
        pipe.clear();
        assert_eq!(pipe.room(10_000), 10_000);
    }

    proptest! {
        /// Against a list of bytes with their times.
        #[test]
        fn bytes_leave_in_order_and_in_time(
            steps in prop::collection::vec((0u64..50, 0usize..40, 0u64..30, 0usize..60), 1..60)
        ) {
            let start = Instant::now();
            let (mut pipe, mut model, mut last) = (Pipe::default(), VecDeque::new(), 0);
            let (mut now, mut next) = (0, 0u8);
            for (step, len, delay, take) in steps {
                now += step;
                let data: Vec<u8> = (0..len).map(|n| next.wrapping_add(n as u8)).collect();
                next = next.wrapping_add(len as u8);
                if len > 0 {
                    last = last.max(now + delay);
                    pipe.push(&data, start + Duration::from_millis(now + delay));
                    model.extend(data.iter().map(|byte| (*byte, last)));
                }
                let due = pipe.due(start + Duration::from_millis(now));
                prop_assert_eq!(due, model.iter().filter(|(_, at)| *at <= now).count());
                let first = model.front().map(|(_, at)| start + Duration::from_millis(*at));
                prop_assert_eq!(pipe.next_due(), first);
                let take = take.min(due);
                let expected: Vec<u8> = model.drain(..take).map(|(byte, _)| byte).collect();
                prop_assert_eq!(taken(&pipe, take), expected);
                pipe.consume(take, |_| {});
            }
        }
    }
}
