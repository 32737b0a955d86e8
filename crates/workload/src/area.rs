//! The working directory of a study on a target, and the filesets prepared in it.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use benchmaster_telemetry::fs::free_bytes;
use rustix::fs::{Mode, OFlags};

use crate::content::{self, BLOCK, Stamp};
use crate::engine::posix::PosixEngine;
use crate::files::{FileTable, PathBuffer};
use crate::model::{Fileset, Sharing, Workload};
use crate::parallel;
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
        "fileset `{fileset}` needs {needed} bytes and `{}` has {free} bytes free; make it smaller (`file_size`, `files`) or free \
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
        "fileset `{fileset}` was written by a workload without `verify` or with another `io_size`, so what it holds cannot \
         be proved; add `verify = true` there too, with sizes that are multiples of the same power of two"
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
    /// `None` while it is let go of.
    root: Option<OwnedFd>,
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

/// How filesets are prepared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Preparation<'a> {
    /// Clients that need files.
    pub(crate) clients: u32,
    /// Seed of sizes and contents.
    pub(crate) seed: u64,
    /// Ends preparation early when set.
    pub(crate) stop: &'a AtomicBool,
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

impl Ready {
    /// Every table once.
    pub(crate) fn distinct(&self) -> Vec<&FileTable> {
        let shared = self.tables.first().is_some_and(|table| table.is_shared());
        let tables = if shared { &self.tables[..1] } else { &self.tables[..] };
        tables.iter().map(|table| &**table).collect()
    }
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
        if path.symlink_metadata().is_ok() {
            let ours = std::fs::read_to_string(&marker).is_ok_and(|text| text.trim() == id);
            // A session that was killed between making the directory and marking it leaves it, or the marker, empty.
            let empty = std::fs::read_dir(&path).is_ok_and(|entries| {
                entries.flatten().all(|entry| {
                    entry.file_name() == MARKER && entry.metadata().is_ok_and(|metadata| metadata.len() == 0)
                })
            });
            if path.is_symlink() || !ours && !empty {
                return Err(AreaError::Foreign { path });
            }
            remove_marked(&path)?;
        }
        std::fs::create_dir(&path).map_err(|source| io_error("make", &path, source))?;
        std::fs::write(&marker, id).map_err(|source| io_error("write", &marker, source))?;
        let root = Some(open_directory(&path)?);
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

    /// The working directory, opened.
    ///
    /// # Errors
    /// When it was released and could not be opened again.
    pub(crate) fn root(&self) -> Result<BorrowedFd<'_>, AreaError> {
        let gone = || io_error("use", &self.path, io::Error::from(io::ErrorKind::NotFound));
        self.root.as_ref().map(AsFd::as_fd).ok_or_else(gone)
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
        self.root = Some(open_directory(&self.path)?);
        Ok(())
    }

    /// Lets go of the working directory, so that the target can be unmounted.
    pub(crate) fn release(&mut self) {
        self.root = None;
    }

    /// Removes the working directory with everything in it.
    ///
    /// # Errors
    /// When files cannot be removed.
    pub fn remove(self) -> Result<(), AreaError> {
        drop(self.root);
        remove_marked(&self.path)
    }

    /// Makes the filesets of a workload ready. `observe` is given the bytes written so far.
    pub(crate) fn prepare(
        &mut self,
        workload: &Workload,
        program: &Program,
        options: &Preparation<'_>,
        observe: &mut dyn FnMut(u64),
    ) -> Result<Vec<Ready>, AreaError> {
        if self.root.is_none() {
            self.reopen()?;
        }
        let mut ready = Vec::new();
        let mut before = 0;
        for ((name, fileset), effect) in workload.filesets.iter().zip(&program.effects) {
            let verify = program.verify_block;
            let reused = self.reusable(name, fileset, options, verify)?;
            if !reused {
                self.discard(name)?;
                let prepared =
                    self.make(name, fileset, options, verify, &mut |bytes| observe(before + bytes))?;
                self.prepared.insert(name.clone(), prepared);
            }
            let Some(prepared) = self.prepared.get_mut(name) else { continue };
            prepared.names_changed |= *effect == Effect::Names;
            prepared.opaque |= *effect >= Effect::Data && verify.is_none();
            prepared.tables.iter().for_each(|table| table.rewind());
            let tables = prepared.tables.clone();
            let distinct = if fileset.sharing == Sharing::Shared { &tables[..1] } else { &tables[..] };
            let counts = distinct.iter().map(|table| table.existing());
            let (files, bytes) = counts.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            before += if reused { 0 } else { bytes };
            ready.push(Ready { name: name.clone(), tables, reused, files, bytes });
        }
        Ok(ready)
    }

    fn reusable(
        &self,
        name: &str,
        fileset: &Fileset,
        options: &Preparation<'_>,
        verify: Option<usize>,
    ) -> Result<bool, AreaError> {
        let Some(known) = self.prepared.get(name) else { return Ok(false) };
        if known.fileset != *fileset || known.clients != options.clients || known.seed != options.seed {
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

    /// Removes a fileset and whatever a preparation that failed left of one.
    fn discard(&mut self, name: &str) -> Result<(), AreaError> {
        self.prepared.remove(name);
        let path = self.path.join(name);
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &path, error)),
            _ => Ok(()),
        }
    }

    fn make(
        &self,
        name: &str,
        fileset: &Fileset,
        options: &Preparation<'_>,
        verify: Option<usize>,
        observe: &mut dyn FnMut(u64),
    ) -> Result<Prepared, AreaError> {
        let Preparation { clients, seed, stop } = *options;
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
        let written = AtomicU64::new(0);
        let mut path = PathBuffer::new();
        for table in distinct {
            for directory in 0..table.directories() {
                table.directory_path(directory, &mut path);
                let full = self.path.join(path.text());
                std::fs::create_dir_all(&full).map_err(|source| io_error("make", &full, source))?;
            }
            let filler =
                Filler { area: self, table, block: verify.unwrap_or(BLOCK), written: &written, stop };
            let mut tick = || observe(written.load(Ordering::Relaxed));
            parallel::for_each(table.files(), |file, chunk| filler.fill(file, chunk), &mut tick)?;
        }
        // Writing the files back must not disturb what is measured next.
        rustix::fs::syncfs(self.root()?).map_err(|errno| io_error("flush", &self.path, errno.into()))?;
        Ok(Prepared { fileset: fileset.clone(), clients, seed, tables, names_changed: false, opaque: false })
    }
}

/// Writes the files of one table that shall exist.
struct Filler<'a> {
    area: &'a WorkArea,
    table: &'a FileTable,
    block: usize,
    written: &'a AtomicU64,
    stop: &'a AtomicBool,
}

impl Filler<'_> {
    fn fill(&self, file: u64, chunk: &mut [u8]) -> Result<(), AreaError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(AreaError::Stopped);
        }
        if !self.table.exists(file) {
            return Ok(());
        }
        let mut path = PathBuffer::new();
        self.table.file_path(self.table.at(file), &mut path);
        let fail = |action, source| io_error(action, &self.area.path.join(path.text()), source);
        let flags = OpenFlags { write: true, truncate: true, ..OpenFlags::default() };
        let created = PosixEngine::new(self.area.root()?).open_file(&path, flags, true);
        let handle = File::from(created.map_err(|errno| fail("create", errno.into()))?);
        let (size, id) = (self.table.size(file), self.table.file_id(file));
        let mut offset = 0;
        while offset < size {
            if self.stop.load(Ordering::Relaxed) {
                return Err(AreaError::Stopped);
            }
            let length = chunk.len().min(usize::try_from(size - offset).unwrap_or(usize::MAX));
            for (part, at) in chunk[..length].chunks_mut(self.block).zip((offset..).step_by(self.block)) {
                content::fill(part, Stamp { file: id, offset: at, generation: 0 });
            }
            handle.write_all_at(&chunk[..length], offset).map_err(|source| fail("write", source))?;
            offset += length as u64;
            self.written.fetch_add(length as u64, Ordering::Relaxed);
        }
        Ok(())
    }
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> AreaError {
    AreaError::Io { action, path: path.into(), source }
}

/// Removes a marked directory, its marker last: what a kill leaves behind is still known as ours.
fn remove_marked(path: &Path) -> Result<(), AreaError> {
    let fail = |source| io_error("remove", path, source);
    for entry in std::fs::read_dir(path).map_err(fail)? {
        let entry = entry.map_err(fail)?;
        if entry.file_name() != MARKER {
            let path = entry.path();
            let directory = entry.file_type().map_err(fail)?.is_dir();
            let removed =
                if directory { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
            removed.map_err(|source| io_error("remove", &path, source))?;
        }
    }
    std::fs::remove_dir_all(path).map_err(fail)
}

fn open_directory(path: &Path) -> Result<OwnedFd, AreaError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| io_error("open", path, errno.into()))
}

/// A directory for scratch targets, below the system's directory for temporary files, for this user alone.
///
/// # Errors
/// When it cannot be made, or somebody else has made it.
pub fn scratch_directory(id: &str) -> Result<PathBuf, AreaError> {
    let path = std::env::temp_dir().join(format!("benchmaster-scratch-{id}"));
    match DirBuilder::new().mode(0o700).create(&path) {
        Ok(()) => Ok(path),
        // Left by a session of the same study that was killed.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && is_own_directory(&path) => Ok(path),
        Err(source) => Err(io_error("make", &path, source)),
    }
}

fn is_own_directory(path: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    path.symlink_metadata().is_ok_and(|found| found.is_dir() && found.uid() == user)
}

/// A random identifier of 8 hexadecimal digits for a new study.
pub fn new_id() -> String {
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    format!("{:08x}", Random::new(now, u64::from(std::process::id())).below(1 << 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_session_left_is_taken_over_and_nothing_else() {
        let target = tempfile::tempdir().unwrap();
        let area = WorkArea::create(target.path(), "cafe").unwrap();
        std::fs::create_dir_all(area.path().join("data/c0")).unwrap();
        let path = area.path().to_owned();
        drop(area);
        let area = WorkArea::create(target.path(), "cafe").unwrap();
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 1, "only the marker is there");
        area.remove().unwrap();
        assert!(!path.exists());

        for (name, content) in [("file", "x"), (MARKER, "beef"), (MARKER, "")] {
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join(name), content).unwrap();
            let created = WorkArea::create(target.path(), "cafe");
            match content {
                "" => drop(created.unwrap()),
                _ => {
                    let error = created.unwrap_err().to_string();
                    assert!(
                        error.ends_with("exists and was not made by this study; rename or remove it"),
                        "{error}"
                    );
                    assert!(path.join(name).exists(), "nothing of others is touched");
                }
            }
            std::fs::remove_dir_all(&path).unwrap();
        }
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), &path).unwrap();
        assert!(matches!(WorkArea::create(target.path(), "cafe"), Err(AreaError::Foreign { .. })));
    }

    #[test]
    fn a_target_must_be_a_directory_that_can_be_written() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = WorkArea::create(file.path(), "1").unwrap_err();
        assert!(matches!(error, AreaError::NotADirectory { .. }), "{error}");
        let error = WorkArea::create(Path::new("/proc"), "1").unwrap_err().to_string();
        assert!(error.starts_with("cannot make `/proc/benchmaster-1`: "), "{error}");
    }

    #[test]
    fn scratch_directories_are_private_and_found_again() {
        let id = format!("test-{}", new_id());
        let path = scratch_directory(&id).unwrap();
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o700);
        assert_eq!(scratch_directory(&id).unwrap(), path);
        std::fs::remove_dir(&path).unwrap();
        std::fs::write(&path, "").unwrap();
        assert!(scratch_directory(&id).is_err());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(new_id().len(), 8);
    }
}
