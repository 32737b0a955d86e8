//! The part of `mountstats` that belongs to one mount.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use memchr::memmem::{self, Finder};

/// The beginning of the line with which a mount's part begins: `device DEVICE mounted on POINT with fstype nfs`.
pub(super) fn first_line(source: &str, mount_point: &Path) -> Vec<u8> {
    let mut line = b"device ".to_vec();
    escape(source.as_bytes(), &mut line);
    line.extend(b" mounted on ");
    escape(mount_point.as_os_str().as_bytes(), &mut line);
    line.extend(b" with fstype nfs");
    line
}

/// Writes a name as the kernel does: `\040` for a space.
fn escape(name: &[u8], line: &mut Vec<u8>) {
    for byte in name {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => {
                line.extend([b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]);
            }
            _ => line.push(*byte),
        }
    }
}

/// Where a mount's part is, while the text comes in.
#[derive(Debug)]
pub struct Block<'a> {
    first_line: Finder<'a>,
    /// Where it begins.
    start: Option<usize>,
    /// Where the next one begins.
    end: Option<usize>,
    /// So much has been looked at in vain.
    looked: usize,
}

impl<'a> Block<'a> {
    /// Looks for a part that begins with these bytes.
    pub fn new(first_line: &'a [u8]) -> Self {
        Self { first_line: Finder::new(first_line), start: None, end: None, looked: 0 }
    }

    /// Whether the whole part is in this text, which is longer than at the last call.
    pub fn is_whole(&mut self, text: &[u8]) -> bool {
        if self.start.is_none() {
            self.start = self.start_in(text);
            self.looked = match self.start {
                Some(start) => start,
                // What is looked for may have come in part.
                None => text.len().saturating_sub(self.first_line.needle().len()),
            };
        }
        if self.start.is_some() && self.end.is_none() {
            // Lines of a mount begin with a tab, that of the next one does not. Empty lines come in between.
            let next = memmem::find(text.get(self.looked..).unwrap_or_default(), b"\ndevice ");
            let none = memmem::find(text.get(self.looked..).unwrap_or_default(), b"\nno device ");
            self.end = next.into_iter().chain(none).min().map(|at| self.looked + at + 1);
            self.looked = text.len().saturating_sub(b"\nno device ".len()).max(self.looked);
        }
        self.end.is_some()
    }

    /// The part, at the end of the text too. `None` if there is none.
    pub fn finish(mut self, text: &[u8]) -> Option<&[u8]> {
        self.is_whole(text);
        text.get(self.start?..self.end.unwrap_or(text.len()))
    }

    /// Where the first line is: at the beginning of a line.
    fn start_in(&self, text: &[u8]) -> Option<usize> {
        let mut from = self.looked;
        loop {
            let at = from + self.first_line.find(text.get(from..)?)?;
            if at == 0 || text.get(at - 1) == Some(&b'\n') {
                return Some(at);
            }
            from = at + 1;
        }
    }
}

/// The part of a text that begins with these bytes.
pub fn find<'t>(text: &'t [u8], first_line: &[u8]) -> Option<&'t [u8]> {
    Block::new(first_line).finish(text)
}
