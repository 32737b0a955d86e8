//! Messages on their way out of a socket.

use benchmaster_nfs_proto::record::{self, Joiner, Scan};
use benchmaster_nfs_proto::xdr::XdrError;

/// Replies from this size on are received where they belong.
pub(super) const LANDING: usize = 16 << 10;
/// Received at a time.
pub(super) const BUFFER: usize = 256 << 10;
/// Received at a time behind data that land elsewhere, or when such data are expected: room for the front of the next
/// reply, little of which has to be copied.
pub(super) const FRONT: usize = 512;

/// Copies of replies whose memory is kept.
const SPARE: usize = 64;

/// What became of a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Its reply was decoded.
    Reply,
    /// Its reply is no reply. Boxed: what is returned for every call is small.
    Bad(Box<XdrError>),
    /// The connection broke.
    Lost,
    /// No reply in time.
    TimedOut,
}

/// The receive buffer of a connection.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) buffer: Vec<u8>,
    /// What is not looked at yet.
    pub(super) start: usize,
    pub(super) end: usize,
    /// Replies in the buffer that no task has taken.
    pub(super) untaken: usize,
    /// Memory of replies that had to be moved out of the buffer.
    spare: Vec<Vec<u8>>,
    pub(super) joiner: Option<Joiner>,
    pub(super) landing: Option<Landing>,
    /// Bytes taken from the socket.
    pub(super) bytes: u64,
}

/// A reply whose data its task receives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Landing {
    pub(super) xid: u32,
    /// Length of the message.
    pub(super) len: usize,
    /// Once the front was decoded: bytes of data, and how many of them have landed.
    pub(super) data: Option<(usize, usize)>,
    /// Bytes of padding behind the data that have not come.
    pub(super) padding: usize,
}

/// What lies at the front of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// A message: from, length.
    Message(usize, usize),
    /// A message that was put together in the joiner.
    Joined,
    /// The front of a message of that length (without record mark), of which at least the transaction number is here.
    Front(u32, usize),
    /// Too little to say.
    Nothing,
}

impl Incoming {
    pub(super) fn new() -> Self {
        Self {
            buffer: vec![0; BUFFER],
            start: 0,
            end: 0,
            untaken: 0,
            spare: Vec::new(),
            joiner: None,
            landing: None,
            bytes: 0,
        }
    }

    /// Looks at the front of the buffer, and takes what it finds off it (but for [`Next::Front`]).
    ///
    /// # Errors
    /// What comes is no sequence of records, or one of them is longer than `limit`.
    pub(super) fn next(&mut self, limit: usize) -> Result<Next, record::RecordError> {
        let bytes = &self.buffer[self.start..self.end];
        if let Some(joiner) = &mut self.joiner {
            let fed = joiner.feed(bytes, limit)?;
            self.start += fed.consumed;
            return Ok(if fed.complete { Next::Joined } else { Next::Nothing });
        }
        match record::next_record(bytes, limit)? {
            Scan::Record { payload, consumed } => {
                let from = self.start + payload.start;
                self.start += consumed;
                Ok(Next::Message(from, payload.len()))
            }
            Scan::Need(all) => {
                let xid = bytes.get(4..8).and_then(|bytes| bytes.first_chunk::<4>());
                match xid {
                    Some(xid) if all > 8 => Ok(Next::Front(u32::from_be_bytes(*xid), all - record::HEADER)),
                    _ => Ok(Next::Nothing),
                }
            }
            Scan::Fragmented => {
                self.joiner = Some(Joiner::new());
                self.next(limit)
            }
        }
    }

    /// Makes room for receiving: moves what is left to the front, and grows for a message of `len` bytes. No reply may
    /// lie in the buffer untaken.
    pub(super) fn make_room(&mut self, len: usize) {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        } else if self.start > 0 && self.buffer.len() - self.end < len.max(FRONT) {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let needed = self.start + len + record::HEADER;
        if self.buffer.len() < needed {
            self.buffer.resize(needed, 0);
        }
    }

    /// A part of the buffer.
    pub(super) fn copy_of(&mut self, from: usize, len: usize) -> Vec<u8> {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.clear();
        copy.extend_from_slice(&self.buffer[from..from + len]);
        copy
    }

    /// Takes memory of [`Self::copy_of`] back.
    pub(super) fn no_more_needed(&mut self, copy: Vec<u8>) {
        if self.spare.len() < SPARE {
            self.spare.push(copy);
        }
    }

    /// Forgets everything, for another connection.
    pub(super) fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
        self.joiner = None;
        self.landing = None;
    }
}
