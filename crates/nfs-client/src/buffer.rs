//! Buffers whose data a mount can keep without a copy.

use std::ops::{Deref, DerefMut, Range};
use std::rc::Rc;

/// Addresses of buffers are multiples of this, as O_DIRECT needs it.
const ALIGNMENT: usize = 4096;

/// Bytes at an address that is a multiple of 4096: a window of a larger allocation, which never moves.
///
/// A [mount](crate::mount::Mount::write_buffer) may refer to the bytes until they are stable on the server. A buffer that is
/// changed meanwhile becomes a copy first, so that the mount keeps what was written;
/// [`Mount::renew`](crate::mount::Mount::renew) is cheaper where the old content is not needed.
#[derive(Debug)]
pub struct Buffer {
    bytes: Rc<[u8]>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// Zeros.
    pub fn new(length: usize) -> Self {
        let bytes: Rc<[u8]> = std::iter::repeat_n(0, length + ALIGNMENT).collect();
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Self { bytes, start, length }
    }

    /// Whether something else refers to the bytes.
    #[inline]
    pub fn is_shared(&self) -> bool {
        Rc::strong_count(&self.bytes) > 1
    }

    /// Another owner of the same bytes.
    pub(crate) fn share(&self) -> Self {
        Self { bytes: self.bytes.clone(), ..*self }
    }

    #[cold]
    fn copy(&self) -> Self {
        let mut copy = Self::new(self.length);
        copy.copy_from_slice(self);
        copy
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        if self.is_shared() {
            *self = self.copy();
        }
        &mut Rc::make_mut(&mut self.bytes)[self.start..self.start + self.length]
    }
}

/// Bytes to be written, and where they lie in a buffer that can be shared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Data<'d> {
    bytes: &'d [u8],
    within: Option<(&'d Buffer, usize)>,
}

impl<'d> Data<'d> {
    /// Bytes of a buffer.
    pub(crate) fn of(buffer: &'d Buffer, range: Range<usize>) -> Self {
        Self { within: Some((buffer, range.start)), bytes: &buffer[range] }
    }

    /// A part of them.
    pub(crate) fn part(self, range: Range<usize>) -> Self {
        let within = self.within.map(|(buffer, start)| (buffer, start + range.start));
        Self { bytes: &self.bytes[range], within }
    }

    /// Parts of `size` bytes, the last one perhaps of fewer.
    pub(crate) fn parts(self, size: usize) -> impl Iterator<Item = Self> {
        (0..self.len()).step_by(size).map(move |at| self.part(at..self.len().min(at + size)))
    }

    /// The buffer, and where in it they begin.
    pub(crate) fn within(self) -> Option<(&'d Buffer, usize)> {
        self.within
    }
}

impl<'d> From<&'d [u8]> for Data<'d> {
    fn from(bytes: &'d [u8]) -> Self {
        Self { bytes, within: None }
    }
}

impl<'d> Deref for Data<'d> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_aligned_wherever_it_is_moved() {
        let buffers: Vec<_> = [0, 1, 4096, 300_000].map(Buffer::new).into();
        for (buffer, length) in buffers.iter().zip([0, 1, 4096, 300_000]) {
            assert_eq!((buffer.len(), buffer.as_ptr().addr() % ALIGNMENT), (length, 0));
        }
    }

    #[test]
    fn what_is_shared_stays_as_it_is() {
        let mut buffer = Buffer::new(10_000);
        buffer.fill(1);
        let address = buffer.as_ptr();
        let kept = buffer.share();
        assert!(buffer.is_shared());
        buffer[7] = 2;
        assert!(!buffer.is_shared() && buffer.as_ptr().addr().is_multiple_of(ALIGNMENT));
        assert_eq!((kept[7], buffer[6], buffer[7]), (1, 1, 2));
        assert_eq!(kept.as_ptr(), address);
        drop(buffer);
        let mut kept = kept;
        kept[0] = 3;
        assert_eq!(kept.as_ptr(), address, "who is alone needs no copy");
    }

    #[test]
    fn parts_know_their_places() {
        let buffer = Buffer::new(100);
        let data = Data::of(&buffer, 10..95);
        let parts: Vec<_> =
            data.parts(40).map(|part| (part.len(), part.within().map(|(_, at)| at))).collect();
        assert_eq!(parts, [(40, Some(10)), (40, Some(50)), (5, Some(90))]);
        assert!(Data::from(&b"abc"[..]).part(1..3).within().is_none());
    }
}
