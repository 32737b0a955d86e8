//! Record marking (RFC 5531 §11): how messages are cut out of a TCP stream.
//!
//! [`next_record`] looks at the front of a receive buffer. A record of one fragment, which is what every sender of note
//! makes, is handed out where it lies; records of many fragments are put together by a [`Joiner`].

use std::ops::Range;

use crate::xdr::{Encoder, Mark};

/// Bit of a fragment header that says "last fragment".
pub const LAST_FRAGMENT: u32 = 0x8000_0000;
/// Length of a fragment header.
pub const HEADER: usize = 4;
/// Most fragments without content in one record; others are bounded by the limit on the record's length.
pub const MAX_EMPTY_FRAGMENTS: u32 = 64;

/// Why a stream cannot be cut into records; the connection is beyond repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The record is longer than the receiver takes.
    #[error("a record of at least {len} bytes; the limit is {limit}")]
    TooLong {
        /// Length known so far.
        len: usize,
        /// Largest number of bytes or elements allowed.
        limit: usize,
    },
    /// More than [`MAX_EMPTY_FRAGMENTS`] fragments without content.
    #[error("a record with endless empty fragments")]
    EmptyFragments,
}

/// What the front of a receive buffer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scan {
    /// A whole record.
    Record {
        /// Where its payload lies in the buffer.
        payload: Range<usize>,
        /// Bytes to take off the buffer's front: the record and its header.
        consumed: usize,
    },
    /// The beginning of a record; the buffer must hold this many bytes in all before it is worth looking again.
    Need(usize),
    /// The first of several fragments: feed the buffer to a [`Joiner`].
    Fragmented,
}

/// Looks for a record of at most `limit` bytes at the front of `buf`.
///
/// One receive may bring many records: call it again on what follows `consumed`.
#[inline]
pub fn next_record(buf: &[u8], limit: usize) -> Result<Scan, RecordError> {
    let Some(header) = buf.first_chunk::<HEADER>() else { return Ok(Scan::Need(HEADER)) };
    let (len, last) = split_header(u32::from_be_bytes(*header));
    if len > limit {
        return Err(RecordError::TooLong { len, limit });
    }
    let end = HEADER + len;
    Ok(if !last {
        Scan::Fragmented
    } else if buf.len() < end {
        Scan::Need(end)
    } else {
        Scan::Record { payload: HEADER..end, consumed: end }
    })
}

/// Begins a record of one fragment: leaves room for its header. Close it with [`end`].
#[inline]
pub fn begin(e: &mut Encoder) -> Mark {
    let mark = e.mark();
    e.put(&0u32);
    mark
}

/// Ends the record begun at `mark`: writes its length.
#[inline]
pub fn end(e: &mut Encoder, mark: Mark) {
    let len = (e.len_since(mark) - HEADER) as u32;
    e.patch_u32(mark, LAST_FRAGMENT | len);
}

/// A message as a record of one fragment.
pub fn framed(message: &[u8]) -> Vec<u8> {
    let header = LAST_FRAGMENT | message.len() as u32;
    [&header.to_be_bytes(), message].concat()
}

fn split_header(header: u32) -> (usize, bool) {
    ((header & !LAST_FRAGMENT) as usize, header & LAST_FRAGMENT != 0)
}

/// Puts a record of several fragments together, from pieces of the stream as they come.
#[derive(Debug, Default)]
pub struct Joiner {
    record: Vec<u8>,
    header: u32,
    header_bytes: usize,
    /// Content bytes of the current fragment still to come.
    left: usize,
    last: bool,
    empty: u32,
}

/// What [`Joiner::feed`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fed {
    /// Bytes taken off the front of what was fed.
    pub consumed: usize,
    /// Whether [`Joiner::record`] is whole; what was not consumed belongs to the next record.
    pub complete: bool,
}

impl Joiner {
    /// A joiner that expects the header of a record's first fragment.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes bytes of the stream until a record of at most `limit` bytes is whole.
    pub fn feed(&mut self, bytes: &[u8], limit: usize) -> Result<Fed, RecordError> {
        let mut rest = bytes;
        loop {
            if self.header_bytes < HEADER {
                let Some((&byte, after)) = rest.split_first() else { break };
                rest = after;
                self.header = self.header << 8 | u32::from(byte);
                self.header_bytes += 1;
                if self.header_bytes == HEADER {
                    self.begin_fragment(limit)?;
                }
                continue;
            }
            let (content, after) = rest.split_at(self.left.min(rest.len()));
            self.record.extend_from_slice(content);
            self.left -= content.len();
            rest = after;
            if self.left > 0 {
                break;
            }
            if self.last {
                return Ok(Fed { consumed: bytes.len() - rest.len(), complete: true });
            }
            (self.header, self.header_bytes) = (0, 0);
        }
        Ok(Fed { consumed: bytes.len(), complete: false })
    }

    fn begin_fragment(&mut self, limit: usize) -> Result<(), RecordError> {
        (self.left, self.last) = split_header(self.header);
        let len = self.record.len().saturating_add(self.left);
        if len > limit {
            return Err(RecordError::TooLong { len, limit });
        }
        if self.left == 0 && !self.last {
            self.empty += 1;
            if self.empty > MAX_EMPTY_FRAGMENTS {
                return Err(RecordError::EmptyFragments);
            }
        }
        Ok(())
    }

    /// The content joined so far: the whole record after `complete`.
    pub fn record(&self) -> &[u8] {
        &self.record
    }

    /// Makes ready for another record; memory is kept up to `keep` bytes.
    pub fn clear(&mut self, keep: usize) {
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        record.shrink_to(keep);
        *self = Self { record, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1000;

    fn fragment(bytes: &[u8], last: bool) -> Vec<u8> {
        let mark = if last { LAST_FRAGMENT } else { 0 };
        [&(mark | bytes.len() as u32).to_be_bytes(), bytes].concat()
    }

    #[test]
    fn many_records_of_one_receive() {
        let mut e = Encoder::new();
        for n in 0..3u32 {
            let mark = begin(&mut e);
            (0..n).for_each(|i| e.put(&i));
            end(&mut e, mark);
        }
        let (mut buf, mut lengths) = (e.buffer(), Vec::new());
        while let Scan::Record { payload, consumed } = next_record(buf, LIMIT).unwrap() {
            lengths.push(buf[payload].len());
            buf = &buf[consumed..];
        }
        assert_eq!(lengths, [0, 4, 8]);
        assert_eq!(next_record(buf, LIMIT), Ok(Scan::Need(4)));
    }

    #[test]
    fn a_record_is_waited_for_until_it_is_whole() {
        let record = fragment(&[7; 20], true);
        for len in 0..record.len() {
            let need = if len < 4 { 4 } else { 24 };
            assert_eq!(next_record(&record[..len], LIMIT), Ok(Scan::Need(need)));
        }
        assert_eq!(next_record(&record, LIMIT), Ok(Scan::Record { payload: 4..24, consumed: 24 }));
    }

    #[test]
    fn fragments_are_joined_however_they_arrive() {
        let stream =
            [fragment(b"ab", false), fragment(b"", false), fragment(b"cde", true), fragment(b"next", true)]
                .concat();
        assert_eq!(next_record(&stream, LIMIT), Ok(Scan::Fragmented));
        for step in 1..stream.len() {
            let (mut joiner, mut at) = (Joiner::new(), 0);
            loop {
                let fed = joiner.feed(&stream[at..(at + step).min(stream.len())], LIMIT).unwrap();
                at += fed.consumed;
                if fed.complete {
                    break;
                }
            }
            assert_eq!(joiner.record(), b"abcde");
            assert_eq!(at, 17);
            joiner.clear(0);
            assert_eq!(joiner.feed(&stream[at..], LIMIT), Ok(Fed { consumed: 8, complete: true }));
            assert_eq!(joiner.record(), b"next");
        }
    }

    #[test]
    fn length_is_limited_before_memory_is_taken() {
        assert_eq!(
            next_record(&[0xff; 4], LIMIT),
            Err(RecordError::TooLong { len: 0x7fff_ffff, limit: LIMIT })
        );
        assert_eq!(
            next_record(&fragment(&[0; 1000], true), LIMIT).map(|scan| scan != Scan::Need(4)),
            Ok(true)
        );
        let mut joiner = Joiner::new();
        joiner.feed(&fragment(&[0; 600], false), LIMIT).unwrap();
        let error = joiner.feed(&401u32.to_be_bytes(), LIMIT);
        assert_eq!(error, Err(RecordError::TooLong { len: 1001, limit: LIMIT }));
        assert_eq!(joiner.record().len(), 600);
    }

    #[test]
    fn empty_fragments_do_not_go_on_for_ever() {
        let mut joiner = Joiner::new();
        let endless = [0; 4 * (MAX_EMPTY_FRAGMENTS as usize)];
        assert_eq!(joiner.feed(&endless, LIMIT), Ok(Fed { consumed: endless.len(), complete: false }));
        assert_eq!(joiner.feed(&endless, LIMIT), Err(RecordError::EmptyFragments));
    }
}
