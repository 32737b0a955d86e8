//! Reading back what was written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Advice, fadvise};

use crate::content::BLOCK;
use crate::files::{FileTable, PathBuffer};
use crate::parallel;

/// Result of reading filesets back.
#[derive(Debug, Default)]
pub(crate) struct ReadBack {
    /// Bytes proved right.
    pub(crate) verified: u64,
    /// The first wrong data found.
    pub(crate) corruption: Option<String>,
}

/// Reads every existing file of `tables` below `root` and proves each block whose content is known, on all processors.
/// Stops soon after the first wrong one, or when `stop` is set. `observe` is given the bytes proved so far.
///
/// # Errors
/// When a file that must be there cannot be read.
pub(crate) fn read_back(
    root: &Path,
    tables: &[&FileTable],
    block: usize,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(u64),
) -> io::Result<ReadBack> {
    let corruption = Mutex::new(None);
    let (verified, found) = (AtomicU64::new(0), AtomicBool::new(false));
    for table in tables {
        let work = |file, chunk: &mut [u8]| -> io::Result<()> {
            if found.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed) || !table.exists(file) {
                return Ok(());
            }
            let proved = |bytes| {
                verified.fetch_add(bytes, Ordering::Relaxed);
            };
            if let Some(what) = read_file(root, table, file, block, chunk, stop, &proved)? {
                found.store(true, Ordering::Relaxed);
                corruption.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(what);
            }
            Ok(())
        };
        parallel::for_each(table.files(), work, &mut || observe(verified.load(Ordering::Relaxed)))?;
    }
    let corruption = corruption.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(ReadBack { verified: verified.into_inner(), corruption })
}

/// What is wrong with a file, if anything is.
fn read_file(
    root: &Path,
    table: &FileTable,
    file: u64,
    block: usize,
    chunk: &mut [u8],
    stop: &AtomicBool,
    proved: &dyn Fn(u64),
) -> io::Result<Option<String>> {
    let (mut path, mut scratch, mut seen) = (PathBuffer::new(), [0; BLOCK], Vec::new());
    table.file_path(table.at(file), &mut path);
    let name = path.text();
    let annotate =
        |error: io::Error| io::Error::new(error.kind(), format!("cannot read back `{name}`: {error}"));
    let handle = File::open(root.join(&name)).map_err(annotate)?;
    // What the cache holds is not what the storage holds; where the advice is ignored the check is only weaker.
    let _ = rustix::fs::fdatasync(&handle).and_then(|()| fadvise(&handle, 0, None, Advice::DontNeed));
    let (size, mut offset) = (table.size(file), 0);
    while offset < size && !stop.load(Ordering::Relaxed) {
        let wanted = chunk.len().min(usize::try_from(size - offset).unwrap_or(usize::MAX));
        table.see(file, offset, wanted, block, &mut seen);
        let read = read_full(&handle, &mut chunk[..wanted], offset).map_err(annotate)?;
        // Of a file that ends early the last block is not whole.
        let whole = if read < wanted { read - read % block } else { read };
        match table.prove(file, offset, &chunk[..whole], block, &seen, &mut scratch) {
            Ok(bytes) => proved(bytes),
            Err(what) => return Ok(Some(format!("{name}, {what}"))),
        }
        if read < wanted {
            let missing = table.missing(offset, read, block, &seen);
            return Ok(
                missing.map(|at| format!("{name}, offset {at}: the file ends before, and this was written"))
            );
        }
        offset += wanted as u64;
    }
    Ok(None)
}

/// Reads until the buffer is full or the file ends.
fn read_full(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match file.read_at(&mut buffer[read..], offset + read as u64) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}
