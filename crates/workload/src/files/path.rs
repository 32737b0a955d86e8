//! Paths on the hot path.

use std::ffi::CStr;

/// A path built without allocating, ended by a NUL. It may begin with a directory that stays.
#[derive(Clone)]
pub struct PathBuffer {
    bytes: [u8; Self::CAPACITY],
    length: usize,
    /// Length of what stays.
    base: usize,
}

impl PathBuffer {
    const CAPACITY: usize = 320;

    pub fn new() -> Self {
        Self { bytes: [0; Self::CAPACITY], length: 0, base: 0 }
    }

    /// An empty path below `directory`, or below nothing when it is empty.
    pub fn below(directory: &[u8]) -> Self {
        let mut path = Self::new();
        if !directory.is_empty() {
            path.push(directory);
            path.push(b"/");
        }
        path.base = path.length;
        path
    }

    pub fn clear(&mut self) {
        self.length = self.base;
        self.bytes[self.base] = 0;
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

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The path as text, without the directory that stays.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes[self.base..self.length]).into_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_stays_and_is_no_part_of_the_text() {
        let mut path = PathBuffer::below(b"work");
        path.push(b"data/f");
        path.push_number(7, 3);
        assert_eq!((path.bytes(), path.text()), (&b"work/data/f007"[..], "data/f007".to_owned()));
        path.clear();
        path.push(b"x");
        assert_eq!(path.as_c_str().to_bytes(), b"work/x");
        assert_eq!(PathBuffer::below(b"").bytes(), b"");
    }
}
