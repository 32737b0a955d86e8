//! An I/O buffer aligned for O_DIRECT.

use std::ops::{Deref, DerefMut};

const ALIGNMENT: usize = 4096;

/// Bytes at an address that is a multiple of 4096: a window of a larger allocation, which never moves.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    length: usize,
}

impl Buffer {
    /// Zeros.
    pub(super) fn new(length: usize) -> Self {
        let bytes = vec![0; length + ALIGNMENT].into_boxed_slice();
        let start = bytes.as_ptr().align_offset(ALIGNMENT);
        Self { bytes, start, length }
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
        &mut self.bytes[self.start..self.start + self.length]
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
}
