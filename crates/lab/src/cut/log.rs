//! The log of a disk: what each write replaced, and the flushes, in the order in which they were done. `uml/disk_log.c` writes
//! it, in two files of which the one with the higher generation goes on where the other one ended.
//!
//! A file begins with a magic number and its generation. A record has its kind, offset, length and time, and that of a write
//! the bytes that it replaced. All numbers have 8 bytes, the least significant first.

use std::io::{self, BufReader, Read, Seek};

use super::SECTOR;

const MAGIC: &[u8; 8] = b"disklog1";
const HEAD: u64 = 16;
const RECORD: u64 = 32;
const WRITTEN: &[u8; 8] = b"write\0\0\0";
const FLUSHED: &[u8; 8] = b"flush\0\0\0";

/// More than a request of any disk driver has, in bytes.
const LARGEST: u64 = 64 << 20;

/// Why a log cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("the log of the server's disk cannot be read: {0}")]
    Read(#[from] io::Error),
    /// The machine has not begun one.
    #[error(
        "the log of the server's disk is empty: the machine was started without one, or has not opened its disk"
    )]
    Empty,
    #[error("file {file} of the server's disk log is no such log: it begins with {found:02x?}")]
    NoLog { file: usize, found: [u8; 8] },
    #[error("the two files of the server's disk log do not follow one another: generations {0} and {1}")]
    Gap(u64, u64),
    #[error("the server's disk log is damaged: in file {file}, the record at byte {at} {problem}")]
    Record { file: usize, at: u64, problem: &'static str },
}

/// A write or a flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    /// On the host's monotonic clock, in ns.
    pub(crate) time: u64,
    /// `None`: a flush.
    pub(crate) write: Option<Write>,
}

/// Whole sectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Write {
    pub(crate) offset: u64,
    pub(crate) length: u64,
    /// The file of the log that has the bytes which it replaced, and where.
    pub(crate) file: usize,
    pub(crate) at: u64,
}

/// The entries of both files of a log of a disk of `size` bytes, the oldest first.
///
/// # Errors
/// [`LogError`]. What the machine did not finish when it was killed, at the end of the newer file, is left out: the write
/// itself was not begun.
pub(crate) fn read<F: Read + Seek>(files: [F; 2], size: u64) -> Result<Vec<Entry>, LogError> {
    let mut parts = Vec::new();
    for (number, file) in files.into_iter().enumerate() {
        parts.extend(part(number, file, size)?);
    }
    parts.sort_by_key(|part| part.generation);
    match parts.as_slice() {
        [] => return Err(LogError::Empty),
        [one, other] if one.generation.checked_add(1) != Some(other.generation) => {
            return Err(LogError::Gap(one.generation, other.generation));
        }
        [one, _] if let Some((file, at)) = one.unfinished => {
            return Err(LogError::Record { file, at, problem: "ends too early" });
        }
        _ => {}
    }
    Ok(parts.into_iter().flat_map(|part| part.entries).collect())
}

struct Part {
    generation: u64,
    entries: Vec<Entry>,
    /// The record with which it ends, if that is not complete.
    unfinished: Option<(usize, u64)>,
}

/// A file of a log; `None` if it has not been begun.
fn part<F: Read + Seek>(number: usize, file: F, size: u64) -> Result<Option<Part>, LogError> {
    let mut file = BufReader::new(file);
    let end = file.seek(io::SeekFrom::End(0))?;
    file.rewind()?;
    if end < HEAD {
        return Ok(None);
    }
    let [magic, generation] = words::<2>(&mut file)?;
    if magic != *MAGIC {
        return Err(LogError::NoLog { file: number, found: magic });
    }
    let mut part = Part { generation: u64::from_le_bytes(generation), entries: Vec::new(), unfinished: None };
    let mut at = HEAD;
    while at < end {
        let damaged = |problem| Err(LogError::Record { file: number, at, problem });
        if end - at < RECORD {
            part.unfinished = Some((number, at));
            break;
        }
        let [kind, offset, length, time] = words::<4>(&mut file)?;
        let [offset, length, time] = [offset, length, time].map(u64::from_le_bytes);
        let write = match &kind {
            FLUSHED if length == 0 => None,
            FLUSHED => return damaged("is a flush with data"),
            WRITTEN => Some(Write { offset, length, file: number, at: at + RECORD }),
            _ => return damaged("is neither a write nor a flush"),
        };
        if offset % SECTOR != 0 || length % SECTOR != 0 {
            return damaged("is not of whole sectors");
        }
        if length > LARGEST || offset.checked_add(length).is_none_or(|behind| behind > size) {
            return damaged("is larger than the disk, or lies beyond its end");
        }
        if end - at - RECORD < length {
            part.unfinished = Some((number, at));
            break;
        }
        file.seek_relative(length as i64)?;
        at += RECORD + length;
        part.entries.push(Entry { time, write });
    }
    Ok(Some(part))
}

fn words<const N: usize>(file: &mut impl Read) -> io::Result<[[u8; 8]; N]> {
    let mut words = [[0; 8]; N];
    for word in &mut words {
        file.read_exact(word)?;
    }
    Ok(words)
}

#[cfg(test)]
pub(super) mod made {
    //! Logs as `disk_log.c` writes them.

    use super::*;

    pub(crate) fn head(generation: u64) -> Vec<u8> {
        [*MAGIC, generation.to_le_bytes()].concat()
    }

    pub(crate) fn write(log: &mut Vec<u8>, offset: u64, replaced: &[u8], time: u64) {
        record(log, *WRITTEN, offset, replaced.len() as u64, time);
        log.extend(replaced);
    }

    pub(crate) fn flush(log: &mut Vec<u8>, time: u64) {
        record(log, *FLUSHED, 0, 0, time);
    }

    pub(crate) fn record(log: &mut Vec<u8>, kind: [u8; 8], offset: u64, length: u64, time: u64) {
        log.extend(kind);
        log.extend([offset, length, time].map(u64::to_le_bytes).concat());
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::made::*;
    use super::*;

    const SIZE: u64 = 1 << 20;

    fn of(one: &[u8], other: &[u8]) -> Result<Vec<Entry>, LogError> {
        read([Cursor::new(one), Cursor::new(other)], SIZE)
    }

    fn refused(one: &[u8], other: &[u8]) -> String {
        of(one, other).unwrap_err().to_string()
    }

    #[test]
    fn both_files_are_read_in_their_order() {
        let (mut newer, mut older) = (head(8), head(7));
        write(&mut older, 512, &[0; 1024], 1);
        flush(&mut older, 2);
        write(&mut newer, 0, &[0; 512], 3);
        let first = Write { offset: 512, length: 1024, file: 1, at: 48 };
        let last = Write { offset: 0, length: 512, file: 0, at: 48 };
        let expected = [
            Entry { time: 1, write: Some(first) },
            Entry { time: 2, write: None },
            Entry { time: 3, write: Some(last) },
        ];
        assert_eq!(of(&newer, &older).unwrap(), expected);
        // The newer one was only just emptied when the machine was killed.
        assert_eq!(of(&[], &older).unwrap(), expected[..2]);
        assert_eq!(of(&newer[..10], &older).unwrap(), expected[..2]);
    }

    #[test]
    fn what_was_not_finished_at_the_end_is_left_out() {
        let mut log = head(1);
        write(&mut log, 0, &[1; 512], 1);
        let whole = log.len();
        write(&mut log, 512, &[1; 512], 2);
        for end in whole..log.len() {
            assert_eq!(of(&log[..end], &[]).unwrap().len(), 1, "{end}");
        }
        let damaged = refused(&log[..whole + 40], &head(2));
        assert!(damaged.contains("file 0") && damaged.contains("ends too early"), "{damaged}");
    }

    #[test]
    fn what_is_no_log_is_an_error() {
        assert!(refused(&[], &[]).contains("empty"));
        assert!(refused(&[7; 100], &[]).contains("file 0"));
        assert!(refused(&head(1), &head(1)).contains("generations 1 and 1"));
        assert!(refused(&head(1), &head(3)).contains("generations 1 and 3"));
        assert!(refused(&head(u64::MAX), &head(0)).contains("generations"));
        let with = |kind: &[u8; 8], offset, length| {
            let mut log = head(1);
            record(&mut log, *kind, offset, length, 0);
            refused(&log, &[])
        };
        assert!(with(b"wrong\0\0\0", 0, 0).contains("neither"));
        assert!(with(FLUSHED, 0, 512).contains("flush with data"));
        assert!(with(WRITTEN, 100, 512).contains("whole sectors"));
        assert!(with(WRITTEN, 512, 100).contains("whole sectors"));
        assert!(with(WRITTEN, SIZE, 512).contains("beyond its end"));
        assert!(with(WRITTEN, u64::MAX - 511, 512).contains("beyond its end"));
        assert!(with(WRITTEN, 0, 1 << 40).contains("larger than the disk"));
    }

    #[test]
    fn garbage_never_panics() {
        let mut log = head(1);
        for number in 0..20 {
            write(&mut log, number * 512, &[3; 512], number);
            flush(&mut log, number);
        }
        for (at, value) in (0..log.len()).flat_map(|at| [(at, 0), (at, 0x7f), (at, 0xff)]) {
            let mut damaged = log.clone();
            damaged[at] = value;
            // Any result will do.
            let _ = of(&damaged, &[]);
            let _ = of(&damaged[..at], &log);
        }
    }
}
