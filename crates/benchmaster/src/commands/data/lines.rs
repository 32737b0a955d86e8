//! The rows of a CSV file, one at a time, with their lines.

use std::io::{ErrorKind, Read};

use memchr::memchr;

use super::key::Key;
use super::quoted::Quoted;

/// Bytes that are asked for at once.
const BLOCK: usize = 1 << 18;

/// Reads rows. Nothing is copied or allocated per row, except where something is quoted.
pub(super) struct Lines<R> {
    input: R,
    /// What was read and is not done with, up to `filled`.
    block: Vec<u8>,
    /// Where the next line begins in it.
    at: usize,
    filled: usize,
    /// Lines read so far.
    line: u64,
    delimiter: Option<u8>,
    quoted: Quoted,
}

/// The cells of a row.
pub(super) enum Row<'a> {
    Plain(Plain<'a>),
    Quoted(super::quoted::Cells<'a>),
}

/// A row in which nothing is quoted.
pub(super) struct Plain<'a> {
    /// What is left of it; `None` after the last cell.
    rest: Option<&'a str>,
    delimiter: u8,
}

impl Plain<'_> {
    /// The key of the next cell, when that is short. Spaces around it are part of it.
    #[inline(always)]
    pub(super) fn short(&self) -> Option<Key> {
        Key::until(self.rest?, self.delimiter)
    }

    /// Passes the next cell, whose key this is.
    #[inline(always)]
    pub(super) fn pass(&mut self, key: Key) {
        self.rest = self.rest.and_then(|rest| rest.get(key.length() + 1..));
    }
}

impl<'a> Iterator for Plain<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest?;
        let (cell, rest) = match memchr(self.delimiter, rest.as_bytes()) {
            Some(length) => (rest.get(..length)?, rest.get(length + 1..)),
            None => (rest, None),
        };
        self.rest = rest;
        Some(cell.trim())
    }
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self {
            input,
            block: vec![0; BLOCK],
            at: 0,
            filled: 0,
            line: 0,
            delimiter: None,
            quoted: Quoted::default(),
        }
    }

    /// The next row and its line, counted from 1.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Row<'_>)>, String> {
        let (start, end) = loop {
            let Some((mut start, end)) = self.line()? else { return Ok(None) };
            if self.line == 1 && self.block[start..end].starts_with("\u{feff}".as_bytes()) {
                start += 3;
            }
            let bytes = &self.block[start..end];
            if !bytes.starts_with(b"#") && !bytes.trim_ascii().is_empty() {
                break (start, end);
            }
        };
        let line = self.line;
        let plain = memchr(b'"', &self.block[start..end]).is_none();
        let delimiter = match self.delimiter {
            Some(delimiter) => delimiter,
            None => *self.delimiter.insert(delimiter(text(&self.block[start..end], line)?)),
        };
        if plain {
            let row = text(&self.block[start..end], line)?.trim_end_matches(['\n', '\r']);
            return Ok(Some((line, Row::Plain(Plain { rest: Some(row), delimiter }))));
        }
        self.quoted.clear();
        let mut closed = self.quoted.line(text(&self.block[start..end], line)?, delimiter);
        while !closed {
            let Some((start, end)) = self.line()? else {
                return Err(format!("line {line}: a quote is opened and never closed"));
            };
            closed = self.quoted.line(text(&self.block[start..end], line)?, delimiter);
        }
        Ok(Some((line, Row::Quoted(self.quoted.cells()))))
    }

    /// Finds the next line, its end with it, in the block; `None` at the end of the input.
    fn line(&mut self) -> Result<Option<(usize, usize)>, String> {
        let mut searched = self.at;
        loop {
            if let Some(length) = memchr(b'\n', &self.block[searched..self.filled]) {
                let start = self.at;
                self.at = searched + length + 1;
                self.line += 1;
                return Ok(Some((start, self.at)));
            }
            searched = self.filled - self.at;
            if !self.more()? {
                let start = self.at;
                self.at = self.filled;
                self.line += 1;
                return Ok((start < self.filled).then_some((start, self.filled)));
            }
        }
    }

    /// Moves what is left to the front and reads more behind it; `false` at the end of the input.
    fn more(&mut self) -> Result<bool, String> {
        self.block.copy_within(self.at..self.filled, 0);
        self.filled -= self.at;
        self.at = 0;
        if self.filled == self.block.len() {
            self.block.resize(2 * self.filled, 0);
        }
        loop {
            match self.input.read(&mut self.block[self.filled..]) {
                Ok(bytes) => {
                    self.filled += bytes;
                    return Ok(bytes > 0);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(format!("line {}: cannot be read: {error}", self.line + 1)),
            }
        }
    }
}

/// A line of the row that begins at `line` as text.
fn text(bytes: &[u8], line: u64) -> Result<&str, String> {
    str::from_utf8(bytes).map_err(|_| format!("line {line} is not UTF-8; save the file as UTF-8"))
}

/// What separates cells: the first of comma, semicolon and tab that the header has outside of quotes.
fn delimiter(header: &str) -> u8 {
    let has = |byte: &u8| header.split('"').step_by(2).any(|part| part.as_bytes().contains(byte));
    *[b',', b';', b'\t'].iter().find(|byte| has(byte)).unwrap_or(&b',')
}
