//! Reading back what was written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{Advice, fadvise};

use crate::content::BLOCK;
use crate::files::{FileTable, PathBuffer};

/// Result of reading filesets back.
#[derive(Debug, Default)]
pub(crate) struct ReadBack {
    /// Bytes proved right.
    pub(crate) verified: u64,
    /// The first wrong data found.
    pub(crate) corruption: Option<String>,
}

/// Reads every existing file of `tables` below `root` and proves each block whose content is known, on all processors.
/// Stops at the first wrong one.
pub(crate) fn read_back(root: &Path, tables: &[&FileTable], block: usize, stop: &AtomicBool) -> io::Result<ReadBack> {
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(8);
    let result = Mutex::new(ReadBack::default());
    let found = AtomicBool::new(false);
    for table in tables {
        let next = AtomicU64::new(0);
        let work = || -> io::Result<()> {
            let mut chunk = vec![0; 1 << 20];
            loop {
                let file = next.fetch_add(1, Ordering::Relaxed);
                if file >= table.files() || found.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                if !table.exists(file) {
                    continue;
                }
                let outcome = read_file(root, table, file, block, &mut chunk)?;
                let Ok(mut result) = result.lock() else { return Ok(()) };
                match outcome {
                    Ok(bytes) => result.verified += bytes,
                    Err(what) => {
                        found.store(true, Ordering::Relaxed);
                        result.corruption.get_or_insert(what);
                    }
                }
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })?;
    }
    Ok(result.into_inner().unwrap_or_default())
}

fn read_file(
    root: &Path,
    table: &FileTable,
    file: u64,
    block: usize,
    chunk: &mut [u8],
) -> io::Result<Result<u64, String>> {
    let (mut path, mut scratch) = (PathBuffer::new(), [0; BLOCK]);
    table.file_path(table.at(file), &mut path);
    let name = path.text();
    let annotate = |error: io::Error| io::Error::new(error.kind(), format!("cannot read back `{name}`: {error}"));
    let handle = File::open(root.join(&name)).map_err(annotate)?;
    // What the cache holds is not what the storage holds; where the advice is ignored the check is only weaker.
    let _ = rustix::fs::fdatasync(&handle).and_then(|()| fadvise(&handle, 0, None, Advice::DontNeed));
    let (size, mut offset, mut proved) = (table.size(file), 0, 0);
    while offset < size {
        let wanted = chunk.len().min(usize::try_from(size - offset).unwrap_or(usize::MAX));
        let before = table.finished(file, offset, wanted, block);
        let mut read = 0;
        while read < wanted {
            match handle.read_at(&mut chunk[read..wanted], offset + read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(annotate(error)),
            }
        }
        let missing = before.iter().skip(read / block).position(Option::is_some).filter(|_| read < wanted);
        match table.prove(file, offset, &chunk[..read - read % block.min(read.max(1))], block, &before, &mut scratch) {
            Ok(bytes) => proved += bytes,
            Err(what) => return Ok(Err(format!("{name}, {what}"))),
        }
        if missing.is_some() {
            let end = offset + read as u64;
            return Ok(Err(format!("{name}, offset {end}: the file ends here, and more was written")));
        }
        if read < wanted {
            break;
        }
        offset += wanted as u64;
    }
    Ok(Ok(proved))
}
