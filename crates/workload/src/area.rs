//! The working directory of a study on a target, and the filesets prepared in it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use benchmaster_telemetry::fs::free_bytes;
use rustix::fs::{Mode, OFlags};

use crate::content::{self, BLOCK, Stamp};
use crate::engine::posix::PosixEngine;
use crate::files::{FileTable, PathBuffer};
use crate::model::{Fileset, Sharing, Workload};
use crate::program::{Effect, OpenFlags, Program};
use crate::random::Random;

/// Why the working directory could not be made, prepared or removed.
#[derive(Debug, thiserror::Error)]
pub enum AreaError {
    /// A file operation failed.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The target is not a directory.
    #[error("the target `{}` is not a directory; name the directory (or mount point) to measure", path.display())]
    NotADirectory {
        /// The target.
        path: PathBuf,
    },
    /// A directory of the name we need exists and is not ours.
    #[error("`{}` exists and was not made by this study; rename or remove it", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
    },
    /// The files do not fit.
    #[error(
        "fileset `{fileset}` needs {needed} bytes and `{}` has {free} free; make it smaller (`file_size`, `files`) or free \
         space", path.display()
    )]
    NoSpace {
        /// The fileset.
        fileset: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes free.
        free: u64,
        /// The target.
        path: PathBuf,
    },
    /// Verification was asked for files whose content is not known.
    #[error(
        "fileset `{fileset}` was written by a workload without `verify`, so what it holds cannot be proved; add \
         `verify = true` there too"
    )]
    NotProvable {
        /// The fileset.
        fileset: String,
    },
    /// Preparation was stopped.
    #[error("preparation was stopped")]
    Stopped,
}

/// A directory of the study's own on the target. Its content is removed by [`WorkArea::remove`], and by the next
/// session of the same study when a session was killed.
#[derive(Debug)]
pub struct WorkArea {
    target: PathBuf,
    path: PathBuf,
    root: OwnedFd,
    prepared: BTreeMap<String, Prepared>,
}

#[derive(Debug)]
struct Prepared {
    fileset: Fileset,
    clients: u32,
    seed: u64,
    tables: Vec<Arc<FileTable>>,
    names_changed: bool,
    /// Written by a workload that did not verify.
    opaque: bool,
}

/// A fileset made ready for a workload.
#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) name: String,
    /// One per client, the same one for all when shared.
    pub(crate) tables: Vec<Arc<FileTable>>,
    pub(crate) reused: bool,
    pub(crate) files: u64,
    pub(crate) bytes: u64,
}

const MARKER: &str = ".benchmaster";

impl WorkArea {
    /// Makes `target/benchmaster-<id>`. What an earlier session of the same study left there is removed.
    ///
    /// # Errors
    /// When the target is no directory, is not writable, or holds something else under that name.
    pub fn create(target: &Path, id: &str) -> Result<Self, AreaError> {
        if !target.is_dir() {
            return Err(AreaError::NotADirectory { path: target.into() });
        }
        let path = target.join(format!("benchmaster-{id}"));
        let marker = path.join(MARKER);
        if path.exists() {
            let ours = std::fs::read_to_string(&marker).is_ok_and(|text| text.trim() == id);
            // A session that was killed between making the directory and marking it leaves it empty.
            let empty = std::fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_none());
            if !ours && !empty {
                return Err(AreaError::Foreign { path });
            }
            std::fs::remove_dir_all(&path).map_err(|source| io_error("remove", &path, source))?;
        }
        std::fs::create_dir(&path).map_err(|source| io_error("make", &path, source))?;
        std::fs::write(&marker, id).map_err(|source| io_error("write", &marker, source))?;
        let root = open_directory(&path)?;
        Ok(Self { target: target.into(), path, root, prepared: BTreeMap::new() })
    }

    /// The target directory.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// The working directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// Forgets filesets that must not be carried over into another run: those whose files came or went, or all.
    ///
    /// # Errors
    /// When files cannot be removed.
    pub fn begin_run(&mut self, fresh: bool) -> Result<(), AreaError> {
        let stale = self.prepared.iter().filter(|(_, p)| fresh || p.names_changed);
        let stale: Vec<String> = stale.map(|(name, _)| name.clone()).collect();
        stale.iter().try_for_each(|name| self.discard(name))
    }

    /// Opens the working directory anew, after a hook that may have mounted the target again.
    ///
    /// # Errors
    /// When it is not there.
    pub(crate) fn reopen(&mut self) -> Result<(), AreaError> {
        self.root = open_directory(&self.path)?;
        Ok(())
    }

    /// Lets go of the working directory, so that the target can be unmounted.
    ///
    /// # Errors
    /// When the root directory cannot be opened instead.
    pub(crate) fn release(&mut self) -> Result<(), AreaError> {
        self.root = open_directory(Path::new("/"))?;
        Ok(())
    }

    /// Removes the working directory with everything in it.
    ///
    /// # Errors
    /// When files cannot be removed.
    pub fn remove(self) -> Result<(), AreaError> {
        std::fs::remove_dir_all(&self.path).map_err(|source| io_error("remove", &self.path, source))
    }

    /// Makes the filesets of a workload ready.
    pub(crate) fn prepare(
        &mut self,
        workload: &Workload,
        program: &Program,
        clients: u32,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Vec<Ready>, AreaError> {
        let mut ready = Vec::new();
        for ((name, fileset), effect) in workload.filesets.iter().zip(&program.effects) {
            let reused = self.reusable(name, fileset, clients, seed, program.verify_block)?;
            if !reused {
                self.discard(name)?;
                let prepared = self.make(name, fileset, clients, seed, program.verify_block, stop)?;
                self.prepared.insert(name.clone(), prepared);
            }
            let Some(prepared) = self.prepared.get_mut(name) else { continue };
            prepared.names_changed |= *effect == Effect::Names;
            prepared.opaque |= *effect >= Effect::Data && program.verify_block.is_none();
            let distinct = &prepared.tables[..if fileset.sharing == Sharing::Shared { 1 } else { prepared.tables.len() }];
            let existing = |table: &FileTable| -> (u64, u64) {
                let files = (0..table.files()).filter(|&file| table.exists(file));
                files.fold((0, 0), |(files, bytes), file| (files + 1, bytes + table.size(file)))
            };
            let (files, bytes) = distinct.iter().map(|t| existing(t)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            prepared.tables.iter().for_each(|table| table.rewind());
            ready.push(Ready { name: name.clone(), tables: prepared.tables.clone(), reused, files, bytes });
        }
        Ok(ready)
    }

    fn reusable(
        &self,
        name: &str,
        fileset: &Fileset,
        clients: u32,
        seed: u64,
        verify: Option<usize>,
    ) -> Result<bool, AreaError> {
        let Some(known) = self.prepared.get(name) else { return Ok(false) };
        if known.fileset != *fileset || known.clients != clients || known.seed != seed {
            return Ok(false);
        }
        let provable = match verify {
            None => true,
            Some(block) => !known.opaque && known.tables.iter().all(|t| t.tracked_block() == Some(block)),
        };
        match provable {
            true => Ok(true),
            // Files that an earlier workload of this run made are its result and cannot be made anew.
            false if known.names_changed => Err(AreaError::NotProvable { fileset: name.into() }),
            false => Ok(false),
        }
    }

    fn discard(&mut self, name: &str) -> Result<(), AreaError> {
        if self.prepared.remove(name).is_some() {
            let path = self.path.join(name);
            std::fs::remove_dir_all(&path).map_err(|source| io_error("remove", &path, source))?;
        }
        Ok(())
    }

    fn make(
        &self,
        name: &str,
        fileset: &Fileset,
        clients: u32,
        seed: u64,
        verify: Option<usize>,
        stop: &AtomicBool,
    ) -> Result<Prepared, AreaError> {
        let tables: Vec<Arc<FileTable>> = match fileset.sharing {
            Sharing::Shared => {
                let table = Arc::new(FileTable::new(name, fileset, None, seed, verify));
                (0..clients.max(1)).map(|_| table.clone()).collect()
            }
            Sharing::Private => {
                let table = |client| Arc::new(FileTable::new(name, fileset, Some(client), seed, verify));
                (0..clients).map(table).collect()
            }
        };
        let distinct = if fileset.sharing == Sharing::Shared { &tables[..1] } else { &tables[..] };
        let needed = distinct.iter().map(|table| table.total_bytes()).fold(0u64, u64::saturating_add);
        let space = free_bytes(&self.path).map_err(|source| io_error("examine", &self.path, source))?;
        // Some network file systems tell nothing and say 0.
        if space.total > 0 && needed > space.free {
            let path = self.target.clone();
            return Err(AreaError::NoSpace { fileset: name.into(), needed, free: space.free, path });
        }
        let mut path = PathBuffer::new();
        for table in distinct {
            for directory in 0..table.directories() {
                table.directory_path(directory, &mut path);
                let full = self.path.join(path.text());
                std::fs::create_dir_all(&full).map_err(|source| io_error("make", &full, source))?;
            }
            self.fill(table, verify.unwrap_or(BLOCK), stop)?;
        }
        // Writing the files back must not disturb what is measured next.
        rustix::fs::syncfs(&self.root).map_err(|errno| io_error("flush", &self.path, errno.into()))?;
        Ok(Prepared { fileset: fileset.clone(), clients, seed, tables, names_changed: false, opaque: false })
    }

    /// Writes the files that shall exist, on all processors.
    fn fill(&self, table: &FileTable, block: usize, stop: &AtomicBool) -> Result<(), AreaError> {
        let threads = std::thread::available_parallelism().map_or(1, |n| n.get()).min(8);
        let next = AtomicU64::new(0);
        let work = || -> Result<(), AreaError> {
            let engine = PosixEngine::new(self.root.as_fd());
            let (mut path, mut chunk) = (PathBuffer::new(), vec![0; 1 << 20]);
            loop {
                let file = next.fetch_add(1, Ordering::Relaxed);
                if file >= table.files() {
                    return Ok(());
                }
                if table.exists(file) {
                    table.file_path(table.at(file), &mut path);
                    self.fill_file(&engine, table, file, &path, block, &mut chunk, stop)?;
                }
            }
        };
        std::thread::scope(|scope| {
            let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            workers.into_iter().try_for_each(|worker| match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            })
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn fill_file(
        &self,
        engine: &PosixEngine<'_>,
        table: &FileTable,
        file: u64,
        path: &PathBuffer,
        block: usize,
        chunk: &mut [u8],
        stop: &AtomicBool,
    ) -> Result<(), AreaError> {
        let full = || self.path.join(path.text());
        let flags = OpenFlags { write: true, truncate: true, ..OpenFlags::default() };
        let handle = engine.open_file(path, flags, true).map_err(|error| io_error("create", &full(), io::Error::other(error)))?;
        let handle = File::from(handle);
        let (size, id) = (table.size(file), table.file_id(file));
        let mut offset = 0;
        while offset < size {
            if stop.load(Ordering::Relaxed) {
                return Err(AreaError::Stopped);
            }
            let length = chunk.len().min(usize::try_from(size - offset).unwrap_or(usize::MAX));
            for (part, at) in chunk[..length].chunks_mut(block).zip((offset..).step_by(block)) {
                content::fill(part, Stamp { file: id, offset: at, generation: 0 });
            }
            std::os::unix::fs::FileExt::write_all_at(&handle, &chunk[..length], offset)
                .map_err(|source| io_error("write", &full(), source))?;
            offset += length as u64;
        }
        Ok(())
    }
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> AreaError {
    AreaError::Io { action, path: path.into(), source }
}

fn open_directory(path: &Path) -> Result<OwnedFd, AreaError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| io_error("open", path, errno.into()))
}

/// A directory for scratch targets, below the system's directory for temporary files.
///
/// # Errors
/// When it cannot be made.
pub fn scratch_directory(id: &str) -> Result<PathBuf, AreaError> {
    let path = std::env::temp_dir().join(format!("benchmaster-scratch-{id}"));
    match std::fs::create_dir(&path) {
        Ok(()) => Ok(path),
        // Left by a session of the same study that was killed.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() && !path.is_symlink() => Ok(path),
        Err(source) => Err(io_error("make", &path, source)),
    }
}

/// A random identifier of 8 hexadecimal digits for a new study.
pub fn new_id() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    format!("{:08x}", Random::new(now, u64::from(std::process::id())).below(1 << 32))
}
