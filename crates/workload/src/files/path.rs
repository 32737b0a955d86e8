//! Paths on the hot path.

use std::ffi::CStr;

/// A path built without allocating, ended by a NUL.
#[derive(Clone)]
pub struct PathBuffer {
    bytes: [u8; Self::CAPACITY],
    length: usize,
}

impl PathBuffer {
    const CAPACITY: usize = 256;

    /// An empty path.
    pub fn new() -> Self {
        Self { bytes: [0; Self::CAPACITY], length: 0 }
    }

    /// Empties it.
    pub fn clear(&mut self) {
        self.length = 0;
        self.bytes[0] = 0;
    }

    /// Appends text. Fileset names are checked to be short, so that the capacity always suffices; what does not fit is
    /// cut off.
    #[inline]
    pub fn push(&mut self, text: &[u8]) {
        let end = (self.length + text.len()).min(Self::CAPACITY - 1);
        self.bytes[self.length..end].copy_from_slice(&text[..end - self.length]);
        self.bytes[end] = 0;
        self.length = end;
    }

    /// Appends a number with leading zeros up to `width` digits.
    #[inline]
    pub fn push_number(&mut self, mut number: u64, width: usize) {
        let mut digits = [b'0'; 20];
        let mut at = digits.len();
        while number > 0 || digits.len() - at < width {
            at -= 1;
            digits[at] = b'0' + (number % 10) as u8;
            number /= 10;
        }
        self.push(&digits[at..]);
    }

    /// The path for a system call.
    #[inline]
    pub fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_with_nul(&self.bytes[..=self.length]).unwrap_or_default()
    }

    /// The path as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.length]).into_owned()
    }
}

impl Default for PathBuffer {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for PathBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PathBuffer({:?})", self.text())
    }
}
