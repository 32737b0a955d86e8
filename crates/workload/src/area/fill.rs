//! Writing the files of a fileset, on any engine.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::{AreaError, io_error};
use crate::content::{self, Stamp};
use crate::engine::{Engine, Files};
use crate::files::{FileTable, PathBuffer};
use crate::operation_error::OperationError;
use crate::parallel::CHUNK;
use crate::program::flags::OpenFlags;

/// Writes the files of one table that shall exist.
#[derive(Debug)]
pub(super) struct Filler<'a> {
    /// The working directory, for errors.
    pub(super) path: &'a Path,
    pub(super) table: &'a FileTable,
    pub(super) block: usize,
    /// Bytes written so far.
    pub(super) written: &'a AtomicU64,
    /// Ends it early when set.
    pub(super) stop: &'a AtomicBool,
}

impl Filler<'_> {
    /// Writes one file, at most [`CHUNK`] bytes at a time: `chunk` is made that long, or as long as the file. `path` is empty.
    pub(super) async fn fill<E: Engine>(
        &self,
        engine: &E,
        file: u64,
        mut path: PathBuffer,
        chunk: &mut Vec<u8>,
    ) -> Result<(), AreaError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(AreaError::Stopped);
        }
        if !self.table.exists(file) {
            return Ok(());
        }
        self.table.file_path(self.table.at(file), &mut path);
        let fail =
            |action, error: OperationError| io_error(action, &self.path.join(path.text()), error.into());
        let flags = OpenFlags { write: true, truncate: true, ..OpenFlags::default() };
        let handle = engine.files().open(&path, flags, true).await.map_err(|error| fail("create", error))?;
        let written = self.write(engine, &handle, file, chunk).await;
        let closed = engine.files().close(handle).await.map_err(|error| fail("close", error));
        match written {
            Ok(()) => closed,
            Err(Some(error)) => Err(fail("write", error)),
            Err(None) => Err(AreaError::Stopped),
        }
    }

    async fn write<E: Engine>(
        &self,
        engine: &E,
        handle: &E::Handle,
        file: u64,
        chunk: &mut Vec<u8>,
    ) -> Result<(), Option<OperationError>> {
        let (size, id) = (self.table.size(file), self.table.file_id(file));
        let longest = usize::try_from(size).map_or(CHUNK, |size| size.min(CHUNK));
        if chunk.len() < longest {
            chunk.resize(longest, 0);
        }
        let mut offset = 0;
        while offset < size {
            if self.stop.load(Ordering::Relaxed) {
                return Err(None);
            }
            let length = chunk.len().min(usize::try_from(size - offset).unwrap_or(usize::MAX));
            for (part, at) in chunk[..length].chunks_mut(self.block).zip((offset..).step_by(self.block)) {
                content::fill(part, Stamp { file: id, offset: at, generation: 0 });
            }
            let mut done = 0;
            while done < length {
                match engine.write(handle, &chunk[done..length], offset + done as u64).await {
                    Ok(0) => return Err(Some(OperationError::Short { asked: length, done })),
                    Ok(more) => done += more,
                    Err(error) => return Err(Some(error)),
                }
            }
            offset += length as u64;
            self.written.fetch_add(length as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}
