//! The ledger of a durability witness: what was acknowledged as stable, in a file outside the target.
//!
//! Each entry is written before the stream that got the reply goes on, so that it survives the death of this process: what an
//! application could rely on can then be checked by reading the ledger. A line of JSON says where and what the files are
//! ([`Header`]); entries of [`Entry::LENGTH`] bytes follow. What was there when the workload began has no entries.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use benchmaster_clock::monotonic_ns;
use benchmaster_record::witness::Promise;
use serde::{Deserialize, Serialize};

use crate::files::NameState;
use crate::model::Workload;

/// What a ledger is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The format: 1.
    pub ledger: u32,
    /// Where the files are: a directory, or the URL of an export with its options.
    pub target: String,
    /// The working directory in it.
    pub directory: String,
    /// The workload's name.
    pub name: String,
    /// The workload, with its filesets.
    pub workload: Workload,
    /// Seed of the filesets.
    pub fileset_seed: u64,
    /// The first client, and how many there are.
    pub clients: (u32, u32),
}

impl Header {
    /// The format of ledgers of this version.
    pub const FORMAT: u32 = 1;
}

/// What happened to a promise. All numbers are little-endian.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A block has a generation at least.
    Block { table: u32, file: u32, number: u32, generation: u32, by: Promise, at_ms: u32 },
    /// A file has a name, or none.
    Name { table: u32, file: u32, name: NameState, by: Promise, at_ms: u32 },
    /// Nothing is promised of the content of a file any more.
    Emptied { table: u32, file: u32 },
    /// Nothing is promised of its name any more.
    Unsure { table: u32, file: u32 },
}

fn short(file: u64) -> u32 {
    u32::try_from(file).unwrap_or(u32::MAX)
}

impl Entry {
    /// Bytes of an entry.
    pub(crate) const LENGTH: usize = 24;

    pub(crate) fn block(
        table: u32,
        file: u64,
        number: u32,
        generation: u32,
        by: Promise,
        at_ms: u32,
    ) -> Self {
        Self::Block { table, file: short(file), number, generation, by, at_ms }
    }

    pub(crate) fn name(table: u32, file: u64, name: NameState, by: Promise, at_ms: u32) -> Self {
        Self::Name { table, file: short(file), name, by, at_ms }
    }

    pub(crate) fn emptied(table: u32, file: u64) -> Self {
        Self::Emptied { table, file: short(file) }
    }

    pub(crate) fn unsure(table: u32, file: u64) -> Self {
        Self::Unsure { table, file: short(file) }
    }

    /// The table and the file that it is about.
    pub(crate) fn place(&self) -> (u32, u32) {
        match *self {
            Self::Block { table, file, .. }
            | Self::Name { table, file, .. }
            | Self::Emptied { table, file }
            | Self::Unsure { table, file } => (table, file),
        }
    }

    fn encode(&self) -> [u8; Self::LENGTH] {
        let place =
            |promise: Promise| Promise::ALL.iter().position(|known| *known == promise).unwrap_or(0) as u8;
        let (kind, by, words) = match *self {
            Self::Block { table, file, number, generation, by, at_ms } => {
                (0, place(by), [table, file, number, generation, at_ms])
            }
            Self::Name { table, file, name, by, at_ms } => {
                (1, place(by), [table, file, name as u32, 0, at_ms])
            }
            Self::Emptied { table, file } => (2, 0, [table, file, 0, 0, 0]),
            Self::Unsure { table, file } => (3, 0, [table, file, 0, 0, 0]),
        };
        let mut bytes = [0; Self::LENGTH];
        (bytes[0], bytes[1]) = (kind, by);
        for (word, place) in words.iter().zip(bytes[4..].chunks_exact_mut(4)) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The entry of these bytes, if it is one.
    pub(crate) fn decode(bytes: &[u8; Self::LENGTH]) -> Option<Self> {
        let word = |at: usize| {
            let at = 4 + 4 * at;
            bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
        };
        let (table, file) = (word(0)?, word(1)?);
        let by = Promise::ALL.get(usize::from(bytes[1])).copied();
        Some(match bytes[0] {
            0 => {
                Self::Block { table, file, number: word(2)?, generation: word(3)?, by: by?, at_ms: word(4)? }
            }
            1 => Self::Name { table, file, name: NameState::from_word(word(2)?)?, by: by?, at_ms: word(4)? },
            2 => Self::Emptied { table, file },
            3 => Self::Unsure { table, file },
            _ => return None,
        })
    }
}

/// The ledger of one process.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: File,
    begun_ns: i64,
    failed: OnceLock<io::Error>,
}

impl Ledger {
    /// Begins a ledger.
    pub(crate) fn create(path: &Path, header: &Header) -> io::Result<Self> {
        // Appending: entries of several threads do not get into each other.
        let mut file = OpenOptions::new().append(true).create_new(true).open(path)?;
        let mut line = serde_json::to_vec(header)?;
        line.push(b'\n');
        file.write_all(&line)?;
        Ok(Self { path: path.to_owned(), file, begun_ns: monotonic_ns(), failed: OnceLock::new() })
    }

    /// Milliseconds since it was begun.
    pub(crate) fn now_ms(&self) -> u32 {
        u32::try_from((monotonic_ns() - self.begun_ns) / 1_000_000).unwrap_or(u32::MAX)
    }

    /// Adds an entry; an error is kept for the [end](Self::end).
    pub(crate) fn write(&self, entry: &Entry) {
        if let Err(error) = (&self.file).write_all(&entry.encode()) {
            let _ = self.failed.set(error);
        }
    }

    /// The check is over.
    ///
    /// # Errors
    /// The first write to it that failed: its process could not have been outlived.
    pub(crate) fn end(&self) -> Result<(), (PathBuf, io::Error)> {
        let kind = |error: &io::Error| io::Error::new(error.kind(), error.to_string());
        self.failed.get().map_or(Ok(()), |error| Err((self.path.clone(), kind(error))))
    }
}

/// Only a process that is killed leaves it behind.
impl Drop for Ledger {
    fn drop(&mut self) {
        // It may be gone.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Why a ledger cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The file.
    #[error("cannot read `{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// It is none.
    #[error("`{}` is no ledger of a durability witness: {problem}", path.display())]
    Format { path: PathBuf, problem: String },
}

/// Reads a ledger: what it is about, and its entries. The last one may be cut off: it was never told.
pub(crate) fn read(path: &Path) -> Result<(Header, Vec<Entry>), LedgerError> {
    let bytes = std::fs::read(path).map_err(|source| LedgerError::Io { path: path.to_owned(), source })?;
    let wrong = |problem: String| LedgerError::Format { path: path.to_owned(), problem };
    let end = bytes.iter().position(|&byte| byte == b'\n').ok_or_else(|| wrong("it has no header".into()))?;
    let header: Header = serde_json::from_slice(&bytes[..end]).map_err(|error| wrong(error.to_string()))?;
    if header.ledger != Header::FORMAT {
        return Err(wrong(format!(
            "its format is {}, and this program reads {}",
            header.ledger,
            Header::FORMAT
        )));
    }
    let (entries, _) = bytes[end + 1..].as_chunks::<{ Entry::LENGTH }>();
    let entries = entries.iter().enumerate().map(|(number, bytes)| {
        Entry::decode(bytes).ok_or_else(|| wrong(format!("entry {number} is damaged")))
    });
    Ok((header, entries.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn entries_are_read_as_they_were_written() {
        let by = Promise::Fsync;
        for entry in [
            Entry::block(1, 2, 3, 4, by, 5),
            Entry::name(7, 8, NameState::Renamed, Promise::Rename, 9),
            Entry::emptied(1, 2),
            Entry::unsure(3, 4),
        ] {
            assert_eq!(Entry::decode(&entry.encode()), Some(entry));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes: [u8; 24], text in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Entry::decode(&bytes);
            let place = tempfile::TempDir::new().unwrap();
            let path = place.path().join("ledger");
            std::fs::write(&path, text).unwrap();
            prop_assert!(read(&path).is_err());
        }
    }
}
