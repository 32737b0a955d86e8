//! Reading back what was written.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Advice, fadvise};

use crate::area::{AreaError, Location, WorkArea};
use crate::content::BLOCK;
use crate::engine::nfs::NfsEngine;
use crate::engine::posix::PosixEngine;
use crate::engine::{Engine, Files};
use crate::files::{FileTable, PathBuffer};
use crate::nfs::SharedMount;
use crate::operation_error::OperationError;
use crate::parallel::{self, CHUNK};
use crate::program::flags::OpenFlags;
use crate::worker::block_on;

/// Result of reading filesets back.
#[derive(Debug, Default)]
pub(crate) struct ReadBack {
    pub(crate) verified: u64,
    /// The first wrong data found.
    pub(crate) corruption: Option<String>,
}

/// Why written data could not be read back.
#[derive(Debug)]
pub(crate) struct ReadBackError(pub(crate) io::Error);

impl From<AreaError> for ReadBackError {
    fn from(error: AreaError) -> Self {
        Self(io::Error::other(error))
    }
}

/// Reads every existing file of `tables` in `area` and proves each block whose content is known, on all processors.
/// Stops soon after the first wrong one, or when `stop` is set. `observe` is given the bytes proved so far.
///
/// # Errors
/// When a file that must be there cannot be read.
pub(crate) fn read_back(
    area: &WorkArea,
    shared: &SharedMount,
    tables: &[&FileTable],
    block: usize,
    stop: &AtomicBool,
    observe: &mut dyn FnMut(u64),
) -> Result<ReadBack, ReadBackError> {
    let (verified, found) = (AtomicU64::new(0), AtomicBool::new(false));
    let corruption = Mutex::new(None);
    for table in tables {
        let reader =
            Reader { table, block, stop, verified: &verified, found: &found, corruption: &corruption };
        let mut tick = || observe(verified.load(Ordering::Relaxed));
        look_at_each(area, shared, table.files(), &reader, stop, &mut tick)?;
    }
    let corruption = corruption.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(ReadBack { verified: verified.into_inner(), corruption })
}

/// Looks at files, on whatever engine they are reached.
pub(crate) trait LookAt: Sync {
    /// Looks at file number `file`. `path` is empty; `opened` is to be called with the open file.
    async fn file<E: Engine>(
        &self,
        engine: &E,
        file: u64,
        path: PathBuffer,
        chunk: &mut [u8],
        opened: impl Fn(&E::Handle),
    ) -> Result<(), ReadBackError>;
}

/// Has `look` look at every number below `files` in `area`, on all processors. What the kernel's cache holds is forgotten
/// before.
///
/// # Errors
/// The first error of `look`, or why the area cannot be reached.
pub(crate) fn look_at_each(
    area: &WorkArea,
    shared: &SharedMount,
    files: u64,
    look: &impl LookAt,
    stop: &AtomicBool,
    tick: &mut dyn FnMut(),
) -> Result<(), ReadBackError> {
    match area.place() {
        Location::Directory(directory) => {
            let engine = PosixEngine::new(directory.root()?);
            let one = |file, chunk: &mut Vec<u8>| {
                chunk.resize(CHUNK, 0);
                block_on(look.file(&engine, file, PathBuffer::new(), chunk, forget_pages))
            };
            parallel::for_each(files, one, tick)
        }
        Location::Nfs(nfs) => {
            let one = async |engine: &NfsEngine<'_>, file, chunk: &mut Vec<u8>| {
                chunk.resize(CHUNK, 0);
                look.file(engine, file, nfs.path(), chunk, |_| ()).await
            };
            nfs.jobs(shared, "verify", files, one, stop, tick)
        }
    }
}

/// Reads back the files of one table.
struct Reader<'r> {
    table: &'r FileTable,
    block: usize,
    stop: &'r AtomicBool,
    verified: &'r AtomicU64,
    /// Wrong data were found.
    found: &'r AtomicBool,
    corruption: &'r Mutex<Option<String>>,
}

impl LookAt for Reader<'_> {
    /// Proves a file.
    async fn file<E: Engine>(
        &self,
        engine: &E,
        file: u64,
        mut path: PathBuffer,
        chunk: &mut [u8],
        opened: impl Fn(&E::Handle),
    ) -> Result<(), ReadBackError> {
        let ended = self.found.load(Ordering::Relaxed) || self.stop.load(Ordering::Relaxed);
        if ended || !self.table.exists(file) {
            return Ok(());
        }
        self.table.file_path(self.table.at(file), &mut path);
        let fail = |error: OperationError| {
            let error = io::Error::from(error);
            ReadBackError(io::Error::new(
                error.kind(),
                format!("cannot read back `{}`: {error}", path.text()),
            ))
        };
        let handle = engine.files().open(&path, OpenFlags::default(), false).await.map_err(fail)?;
        opened(&handle);
        let proved = self.prove(engine, &handle, file, chunk).await;
        let closed = engine.files().close(handle).await;
        if let Some(what) = proved.map_err(fail)? {
            self.found.store(true, Ordering::Relaxed);
            let text = format!("{}, {what}", path.text());
            self.corruption.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
        }
        closed.map_err(fail)
    }
}

impl Reader<'_> {
    /// What is wrong with a file, if anything is.
    async fn prove<E: Engine>(
        &self,
        engine: &E,
        handle: &E::Handle,
        file: u64,
        chunk: &mut [u8],
    ) -> Result<Option<String>, OperationError> {
        let Self { table, block, .. } = *self;
        let (mut scratch, mut seen) = ([0; BLOCK], Vec::new());
        let (size, mut offset) = (table.size(file), 0);
        while offset < size && !self.stop.load(Ordering::Relaxed) {
            let wanted = chunk.len().min(usize::try_from(size - offset).unwrap_or(usize::MAX));
            table.see(file, offset, wanted, block, &mut seen);
            let read = read_full(engine, handle, &mut chunk[..wanted], offset).await?;
            // Of a file that ends early the last block is not whole.
            let whole = if read < wanted { read - read % block } else { read };
            match table.prove(file, offset, &chunk[..whole], block, &seen, &mut scratch) {
                Ok(bytes) => self.verified.fetch_add(bytes, Ordering::Relaxed),
                Err(what) => return Ok(Some(what)),
            };
            if read < wanted {
                let missing = table.missing(offset, read, block, &seen);
                return Ok(
                    missing.map(|at| format!("offset {at}: the file ends before, although this was written"))
                );
            }
            offset += wanted as u64;
        }
        Ok(None)
    }
}

/// Makes the kernel forget what its cache holds of a file, which is not what the storage holds. Where the advice is
/// ignored a check is only weaker.
fn forget_pages(file: &OwnedFd) {
    let _ = rustix::fs::fdatasync(file).and_then(|()| fadvise(file, 0, None, Advice::DontNeed));
}

/// Reads until the buffer is full or the file ends.
pub(crate) async fn read_full<E: Engine>(
    engine: &E,
    handle: &E::Handle,
    buffer: &mut [u8],
    offset: u64,
) -> Result<usize, OperationError> {
    let mut read = 0;
    while read < buffer.len() {
        match engine.read(handle, &mut buffer[read..], offset + read as u64).await? {
            0 => break,
            more => read += more,
        }
    }
    Ok(read)
}
