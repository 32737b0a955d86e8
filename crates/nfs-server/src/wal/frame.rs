//! The log as bytes: a head, then frames of records, each with a check sum that depends on its place and its log.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::fs::image::{get_bytes, get_u32, put_bytes, put_u32};

const MAGIC: [u8; 8] = *b"bmnfslog";
const VERSION: u32 = 2;
/// Magic, version, number, salt, check sum.
pub(super) const HEADER: u64 = 8 + 4 + 8 + 8 + 4;
/// Head of a frame: mark, length of what follows, check sum.
pub(super) const FRAME: usize = 12;
const MARK: [u8; 4] = *b"frm1";

/// Records that concern no export: names of clients.
pub(crate) const CLIENTS: u32 = u32::MAX;
/// Longest name of a client.
const NAME_BYTES: usize = 64 * 1024;

/// Why a log cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// It could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Path of the log.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// It is no log, or another one than its name says.
    #[error("{} is not the log of this state file; move it away to start without it", path.display())]
    Foreign {
        /// Path of the log.
        path: PathBuf,
    },
    /// It has changes, and the state file that they follow is gone.
    #[error(
        "{} has changes that were acknowledged, and the state file that they follow is not there; restore it, or move the log away \
         to start without both",
        path.display()
    )]
    Orphan {
        /// Path of the log.
        path: PathBuf,
    },
    /// Something is wrong before its end, so that changes that were acknowledged are missing.
    #[error(
        "{} is damaged at byte {offset}: {what}; what follows was acknowledged, too. Restore the file, or cut it off there to \
         start with what comes before",
        path.display()
    )]
    Damaged {
        /// Path of the log.
        path: PathBuf,
        /// Where the damage begins, in bytes from the start of the file.
        offset: u64,
        /// Description of the damage.
        what: String,
    },
}

/// The head of a log.
pub(super) fn header(number: u64, salt: u64) -> [u8; HEADER as usize] {
    let mut head = [0; HEADER as usize];
    let parts = [&MAGIC[..], &VERSION.to_le_bytes(), &number.to_le_bytes(), &salt.to_le_bytes()].concat();
    let sum = crc32fast::hash(&parts).to_le_bytes();
    head.iter_mut().zip(parts.iter().chain(&sum)).for_each(|(to, from)| *to = *from);
    head
}

/// Puts the head before records that follow [`FRAME`] bytes of room for it.
pub(super) fn seal(bytes: &mut [u8], salt: u64, at: u64) {
    let Some((head, records)) = bytes.split_at_mut_checked(FRAME) else { return };
    let len = (records.len() as u32).to_le_bytes();
    let sum = sum(salt, at, records).to_le_bytes();
    head.iter_mut().zip(MARK.iter().chain(&len).chain(&sum)).for_each(|(to, from)| *to = *from);
}

fn sum(salt: u64, at: u64, records: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    for number in [salt, at, records.len() as u64] {
        sum.update(&number.to_le_bytes());
    }
    sum.update(records);
    sum.finalize()
}

/// Which clients may reclaim after a crash, and which no more.
pub(super) fn put_clients<'n>(out: &mut Vec<u8>, names: impl ExactSizeIterator<Item = (bool, &'n [u8])>) {
    // Writing to memory does not fail.
    let _ = put_u32(out, CLIENTS);
    let _ = put_u32(out, names.len() as u32);
    for (known, name) in names {
        let _ = put_u32(out, u32::from(known));
        let _ = put_bytes(out, name);
    }
}

/// Reads a record of names of clients, after its export number.
pub(crate) fn get_clients(
    record: &mut &[u8],
    mut each: impl FnMut(bool, Vec<u8>),
) -> Result<(), &'static str> {
    let mut all = || {
        for _ in 0..get_u32(record)? {
            let known = get_u32(record)? != 0;
            each(known, get_bytes(record, NAME_BYTES)?);
        }
        Ok::<(), crate::fs::ImageError>(())
    };
    all().map_err(|_| "impossible names of clients")
}

/// Hands every record of the log of `number` to `each`, in order, with the number of the export first. `None`: there is no log.
/// Otherwise how many bytes at the end were no whole frame, as after an end in the middle of a write.
pub(crate) fn read(
    path: &Path,
    number: u64,
    each: &mut dyn FnMut(&[u8]) -> Result<(), String>,
) -> Result<Option<u64>, LogError> {
    let failed = |source| LogError::Read { path: path.to_owned(), source };
    let damaged =
        |offset, what: &str| LogError::Damaged { path: path.to_owned(), offset, what: what.to_owned() };
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => io::BufReader::with_capacity(1 << 20, file.map_err(failed)?),
    };
    let len = file.get_ref().metadata().map_err(failed)?.len();
    let mut head = [0; HEADER as usize];
    if len < HEADER {
        // It ended before anything was in it.
        return Ok(Some(len));
    }
    file.read_exact(&mut head).map_err(failed)?;
    let salt = head.get(20..28).and_then(|salt| salt.try_into().ok()).map_or(0, u64::from_le_bytes);
    if head != header(number, salt) {
        return Err(LogError::Foreign { path: path.to_owned() });
    }
    let mut at = HEADER;
    let mut records = Vec::new();
    while at < len {
        let Some(()) = frame(&mut file, salt, at, len, &mut records).map_err(failed)? else { break };
        let mut rest = &records[..];
        while let Some((size, after)) = rest.split_first_chunk::<4>() {
            let size = u32::from_le_bytes(*size) as usize;
            let (record, after) =
                after.split_at_checked(size).ok_or_else(|| damaged(at, "a record that ends too late"))?;
            each(record).map_err(|what| damaged(at, &what))?;
            rest = after;
        }
        at += (FRAME + records.len()) as u64;
    }
    // The rest is no frame: space that was taken in advance, and the last write if it was interrupted.
    let mut rest = Vec::new();
    let mut file = file.into_inner();
    file.seek(SeekFrom::Start(at)).and_then(|_| file.read_to_end(&mut rest)).map_err(failed)?;
    let zeros = |chunk: &&[u8]| chunk.iter().fold(0, |or, byte| or | byte) == 0;
    rest.truncate(rest.len() - rest.rchunks(1024).take_while(zeros).map(<[u8]>::len).sum::<usize>());
    let cut = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    rest.truncate(cut);
    match rest.get(1..) {
        Some(later) if follows(later, salt, at + 1) => Err(damaged(at, "a frame with a wrong check sum")),
        _ => Ok(Some(cut as u64)),
    }
}

/// Reads the records of the frame at `at`; `None`: there is none.
fn frame(
    file: &mut impl Read,
    salt: u64,
    at: u64,
    len: u64,
    records: &mut Vec<u8>,
) -> io::Result<Option<()>> {
    let mut head = [0; FRAME];
    if len - at < FRAME as u64 {
        return Ok(None);
    }
    file.read_exact(&mut head)?;
    let Some((size, expected)) = parts(&head).filter(|(size, _)| *size <= len - at - FRAME as u64) else {
        return Ok(None);
    };
    records.resize(size as usize, 0);
    file.read_exact(records)?;
    Ok((sum(salt, at, records) == expected).then_some(()))
}

/// Length and check sum of a frame.
fn parts(head: &[u8]) -> Option<(u64, u32)> {
    let word = |at: usize| head.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes);
    (head.get(..4)? == MARK).then_some((u64::from(word(4)?), word(8)?))
}

/// Whether there is a whole frame anywhere in `rest`, which begins at `at` in the file.
fn follows(rest: &[u8], salt: u64, at: u64) -> bool {
    (0..rest.len()).any(|from| {
        let Some((size, expected)) = rest.get(from..).and_then(parts) else { return false };
        let begin = from + FRAME;
        let records = usize::try_from(size).ok().and_then(|size| rest.get(begin..begin.checked_add(size)?));
        records.is_some_and(|records| sum(salt, at + from as u64, records) == expected)
    })
}
