//! A TCP connection: its input cut into records, and its output.

use std::io::IoSliceMut;

use benchmaster_nfs_proto::record::{self, Joiner, Scan};
use rustix::event::epoll::EventFlags;

use super::output::Output;
use super::stream::Stream;
use crate::dispatch::Conversation;
use crate::peer::Peer;
use crate::reply::Reply;

/// Length to which a record's buffer grows before the sender has sent so much.
const FIRST_GROWTH: usize = 64 << 10;

/// Records longer than this are received into a buffer of their own, not along with others.
const LARGE: usize = 256 << 10;
/// What is received where a large record is expected: its beginning, so that hardly anything of it has to be copied.
const PEEK: usize = 4 << 10;

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) stream: Stream,
    pub(super) peer: Peer,
    pub(super) conversation: Conversation,
    pub(super) input: Input,
    pub(super) output: Output,
    pub(super) held: Holding,
    /// Whether calls to the client wait in its outbox until it reads.
    pub(super) calls: bool,
    /// Round of [`Arrivals`](crate::arrivals::Arrivals) in which the last request came.
    pub(super) round: u64,
    /// What epoll watches for.
    pub(super) watched: EventFlags,
    /// The client will send no more.
    pub(super) ended: bool,
}

/// Replies of a connection that are held back for later.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Holding {
    replies: usize,
    /// Bytes of their own.
    encoded: usize,
    /// Bytes of files that they refer to.
    referred: usize,
}

impl Holding {
    pub(super) fn add(&mut self, reply: &Reply) {
        let encoded = reply.encoder.buffer().len();
        self.replies += 1;
        self.encoded += encoded;
        self.referred += reply.len() - encoded;
    }

    pub(super) fn remove(&mut self, reply: &Reply) {
        let encoded = reply.encoder.buffer().len();
        self.replies -= 1;
        self.encoded -= encoded;
        self.referred -= reply.len() - encoded;
    }

    /// A request is put aside: its reply will come.
    pub(super) fn expect(&mut self) {
        self.replies += 1;
    }

    /// What was put aside goes on.
    pub(super) fn resume(&mut self) {
        self.replies -= 1;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.replies == 0
    }

    /// Whether there are so many that the client must wait. Pages cost memory only when their file changes meanwhile.
    pub(super) fn is_full(&self) -> bool {
        self.replies >= 16 << 10 || self.encoded >= 4 << 20 || self.referred >= 256 << 20
    }
}

/// What is to become of the input after a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    /// Go on.
    Continue,
    /// Keep the rest for later: the client does not read its replies, or others must have their turn.
    Pause,
    /// TLS follows: whatever else has come in the clear is not looked at (RFC 9289 §5.1.1).
    StartTls,
    /// Close the connection.
    Close,
}

/// Bytes received and not yet handled.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// The beginning of a record, or whole records after [`Control::Pause`]; valid up to `filled`.
    storage: Vec<u8>,
    filled: usize,
    /// Length at which to look again.
    need: usize,
    /// Whether `storage` was never looked at.
    paused: bool,
    /// Whether the last record was [`LARGE`]: the next one probably is, too.
    large: bool,
    /// A record of several fragments.
    joiner: Option<Box<Joiner>>,
}

/// What a receive brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    /// This many bytes in the buffer that was given, after what went to the storage.
    Bytes(usize),
    /// Nothing more for now.
    Blocked,
    /// The sender is done.
    End,
    /// The connection is broken.
    Broken,
}

impl Input {
    /// Whether records wait that came before a pause.
    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    /// Whether the beginning of a large record has just been received, and its rest has a place to go to.
    pub(super) fn is_large_begun(&self) -> bool {
        self.large && self.filled > 0 && self.filled <= PEEK && self.need > LARGE
    }

    /// One receive: the rest of the stored record first, what follows into `buffer`.
    pub(super) fn receive(&mut self, stream: &mut Stream, buffer: &mut [u8]) -> Received {
        let wanted = if self.filled > 0 && self.joiner.is_none() { self.make_room() } else { 0 };
        let peek = PEEK.min(buffer.len());
        let room = &mut self.storage[self.filled..self.filled + wanted];
        let received = match wanted {
            0 if self.large => stream.receive(&mut [IoSliceMut::new(&mut buffer[..peek])]),
            0 => stream.receive(&mut [IoSliceMut::new(buffer)]),
            _ if self.large => stream.receive(&mut [IoSliceMut::new(room)]),
            _ => stream.receive(&mut [IoSliceMut::new(room), IoSliceMut::new(buffer)]),
        };
        match received {
            Received::Bytes(taken) => {
                let stored = taken.min(wanted);
                self.filled += stored;
                Received::Bytes(taken - stored)
            }
            other => other,
        }
    }

    /// Room in the storage for more of its record: all of it once the sender has shown that it means it, with this
    /// record or the one before, so that a header alone costs little.
    fn make_room(&mut self) -> usize {
        let target = if self.large { self.need } else { self.need.min((self.filled * 4).max(FIRST_GROWTH)) };
        if self.storage.len() < target {
            self.storage.resize(target, 0);
        }
        target.saturating_sub(self.filled)
    }

    /// Hands every whole record to `handle`: the stored one, then those in `data`; keeps what is left over.
    pub(super) fn process(
        &mut self,
        mut data: &[u8],
        limit: usize,
        spare: &mut Vec<u8>,
        handle: &mut dyn FnMut(&[u8]) -> Control,
    ) -> Control {
        if self.paused {
            let mut stored = std::mem::take(&mut self.storage);
            stored.truncate(std::mem::take(&mut self.filled));
            self.paused = false;
            stored.extend_from_slice(data);
            let control = self.process(&stored, limit, spare, handle);
            if stored.capacity() > spare.capacity() {
                *spare = stored;
            }
            return control;
        }
        while self.filled > 0 {
            let missing = self.need.saturating_sub(self.filled).min(data.len());
            let (now, later) = data.split_at(missing);
            data = later;
            if self.storage.len() < self.filled + now.len() {
                self.storage.resize(self.filled + now.len(), 0);
            }
            self.storage[self.filled..self.filled + now.len()].copy_from_slice(now);
            self.filled += now.len();
            if self.filled < self.need {
                return Control::Continue;
            }
            match record::next_record(&self.storage[..self.filled], limit) {
                Ok(Scan::Record { payload, .. }) => {
                    self.large = payload.end > LARGE;
                    let control = handle(&self.storage[payload]);
                    self.filled = 0;
                    self.recycle(spare);
                    if control != Control::Continue {
                        return self.leave(control, data, spare);
                    }
                }
                Ok(Scan::Need(need)) => self.need = need,
                Ok(Scan::Fragmented) => {
                    let mut joiner = Box::new(Joiner::new());
                    let fed = joiner.feed(&self.storage[..self.filled], limit);
                    self.filled = 0;
                    self.recycle(spare);
                    // A header alone completes nothing.
                    if fed.is_err() {
                        return Control::Close;
                    }
                    self.joiner = Some(joiner);
                }
                Err(_) => return Control::Close,
            }
        }
        self.direct(data, limit, spare, handle)
    }

    fn direct(
        &mut self,
        mut data: &[u8],
        limit: usize,
        spare: &mut Vec<u8>,
        handle: &mut dyn FnMut(&[u8]) -> Control,
    ) -> Control {
        loop {
            if let Some(joiner) = &mut self.joiner {
                let Ok(fed) = joiner.feed(data, limit) else { return Control::Close };
                data = &data[fed.consumed..];
                if !fed.complete {
                    return Control::Continue;
                }
                let control = handle(joiner.record());
                self.joiner = None;
                if control != Control::Continue {
                    return self.leave(control, data, spare);
                }
            }
            match record::next_record(data, limit) {
                Ok(Scan::Record { payload, consumed }) => {
                    self.large = false;
                    let control = handle(&data[payload]);
                    data = &data[consumed..];
                    if control != Control::Continue {
                        return self.leave(control, data, spare);
                    }
                }
                Ok(Scan::Need(need)) => {
                    self.store(data, need, spare);
                    return Control::Continue;
                }
                Ok(Scan::Fragmented) => self.joiner = Some(Box::default()),
                Err(_) => return Control::Close,
            }
        }
    }

    /// Stops within `data`: keeps it for later, unless the connection is to be closed.
    fn leave(&mut self, control: Control, data: &[u8], spare: &mut Vec<u8>) -> Control {
        if control == Control::StartTls && !data.is_empty() {
            return Control::Close;
        }
        if control == Control::Pause && !data.is_empty() {
            self.store(data, 0, spare);
            self.paused = true;
        }
        control
    }

    fn store(&mut self, data: &[u8], need: usize, spare: &mut Vec<u8>) {
        self.need = need;
        self.filled = data.len();
        if data.is_empty() {
            self.recycle(spare);
            return;
        }
        if self.storage.len() < data.len() {
            if self.storage.capacity() < data.len() && spare.capacity() >= data.len() {
                std::mem::swap(&mut self.storage, spare);
            }
            self.storage.resize(data.len().max(self.storage.len()), 0);
        }
        self.storage[..data.len()].copy_from_slice(data);
    }

    /// Gives the storage's memory back, to the next connection of the thread that needs some.
    fn recycle(&mut self, spare: &mut Vec<u8>) {
        if self.storage.capacity() > spare.capacity() {
            std::mem::swap(&mut self.storage, spare);
        }
        self.storage = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: usize = 1 << 12;

    fn record(content: &[u8]) -> Vec<u8> {
        let mut bytes = (record::LAST_FRAGMENT | content.len() as u32).to_be_bytes().to_vec();
        bytes.extend_from_slice(content);
        bytes
    }

    fn fragmented(content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut chunks = content.chunks(3).peekable();
        while let Some(chunk) = chunks.next() {
            let last = if chunks.peek().is_none() { record::LAST_FRAGMENT } else { 0 };
            bytes.extend_from_slice(&(last | chunk.len() as u32).to_be_bytes());
            bytes.extend_from_slice(chunk);
        }
        bytes
    }

    proptest! {
        /// However the stream is cut, and wherever it is paused, every record arrives once and whole.
        #[test]
        fn records_survive_any_cut(
            records in prop::collection::vec((prop::collection::vec(any::<u8>(), 1..200), any::<bool>()), 1..20),
            cuts in prop::collection::vec(1usize..300, 1..50),
            pauses in prop::collection::vec(any::<bool>(), 1..20),
        ) {
            let stream: Vec<u8> = records
                .iter()
                .flat_map(|(content, split)| if *split { fragmented(content) } else { record(content) })
                .collect();
            let (mut input, mut spare) = (Input::default(), Vec::new());
            let mut seen: Vec<Vec<u8>> = Vec::new();
            let mut pauses = pauses.iter().cycle();
            let mut rest = stream.as_slice();
            let mut cuts = cuts.iter().cycle();
            let mut handle = |record: &[u8]| {
                seen.push(record.to_vec());
                if *pauses.next().unwrap() { Control::Pause } else { Control::Continue }
            };
            while !rest.is_empty() {
                let (now, later) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                rest = later;
                let mut control = input.process(now, LIMIT, &mut spare, &mut handle);
                while control == Control::Pause && input.is_paused() {
                    control = input.process(&[], LIMIT, &mut spare, &mut handle);
                }
                prop_assert_ne!(control, Control::Close);
            }
            let sent: Vec<Vec<u8>> = records.into_iter().map(|(content, _)| content).collect();
            prop_assert_eq!(seen, sent);
            prop_assert_eq!(input.storage.capacity(), 0);
        }
    }

    #[test]
    fn a_header_that_promises_much_costs_little() {
        let mut input = Input::default();
        let header = (record::LAST_FRAGMENT | 1_000_000).to_be_bytes();
        let control = input.process(&header, 2 << 20, &mut Vec::new(), &mut |_| panic!("no record"));
        assert_eq!(control, Control::Continue);
        assert_eq!(input.make_room(), FIRST_GROWTH - 4);
        let too_long = (record::LAST_FRAGMENT | 3_000_000).to_be_bytes();
        let mut input = Input::default();
        let control = input.process(&too_long, 2 << 20, &mut Vec::new(), &mut |_| panic!("no record"));
        assert_eq!(control, Control::Close);
    }
}
