//! A working directory that is reached by system calls.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use benchmaster_telemetry::fs::free_bytes;
use rustix::fs::{Mode, OFlags};

use super::fill::Filler;
use super::{AreaError, MARKER, directory_name, io_error};
use crate::engine::posix::PosixEngine;
use crate::files::PathBuffer;
use crate::parallel;
use crate::worker::block_on;

#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// Of the study that it belongs to.
    id: String,
    /// `None` while it is let go of.
    root: Option<OwnedFd>,
}

impl Directory {
    /// Makes it below `target`.
    pub(super) fn create(target: &Path, id: &str) -> Result<Self, AreaError> {
        if !target.is_dir() {
            return Err(AreaError::NotADirectory { path: target.into() });
        }
        let path = target.join(directory_name(id));
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
        Ok(Self { path, id: id.to_owned(), root })
    }

    /// The one that another process of the same session made below `target`; `None` if it is not there.
    pub(super) fn join(target: &Path, id: &str) -> Result<Option<Self>, AreaError> {
        if !target.is_dir() {
            return Err(AreaError::NotADirectory { path: target.into() });
        }
        let path = target.join(directory_name(id));
        match std::fs::read_to_string(path.join(MARKER)) {
            Ok(text) if text.trim() == id && !path.is_symlink() => {
                let root = Some(open_directory(&path)?);
                Ok(Some(Self { path, id: id.to_owned(), root }))
            }
            Ok(_) => Err(AreaError::Foreign { path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(io_error("read", &path.join(MARKER), source)),
        }
    }

    /// The directory, opened.
    ///
    /// # Errors
    /// When it was released and could not be opened again.
    pub(crate) fn root(&self) -> Result<BorrowedFd<'_>, AreaError> {
        let gone = || io_error("use", &self.path, io::Error::from(io::ErrorKind::NotFound));
        self.root.as_ref().map(AsFd::as_fd).ok_or_else(gone)
    }

    /// Opens it unless it is open.
    pub(super) fn open(&mut self) -> Result<(), AreaError> {
        if self.root.is_none() { self.reopen() } else { Ok(()) }
    }

    pub(super) fn reopen(&mut self) -> Result<(), AreaError> {
        self.root = Some(open_directory(&self.path)?);
        Ok(())
    }

    /// Makes it again where it is gone, as after a failure of its server.
    pub(super) fn restore(&mut self) -> Result<(), AreaError> {
        let marker = self.path.join(MARKER);
        self.root = None;
        std::fs::create_dir_all(&self.path).map_err(|source| io_error("make", &self.path, source))?;
        std::fs::write(&marker, &self.id).map_err(|source| io_error("write", &marker, source))?;
        self.reopen()
    }

    pub(super) fn release(&mut self) {
        self.root = None;
    }

    pub(super) fn remove(self) -> Result<(), AreaError> {
        drop(self.root);
        remove_marked(&self.path)
    }

    /// Removes what has this name in it, if anything has.
    pub(super) fn discard(&self, name: &str) -> Result<(), AreaError> {
        let path = self.path.join(name);
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("remove", &path, error)),
            _ => Ok(()),
        }
    }

    /// Bytes of the file system, and those free.
    pub(super) fn space(&self) -> Result<(u64, u64), AreaError> {
        let space = free_bytes(&self.path).map_err(|source| io_error("examine", &self.path, source))?;
        Ok((space.total, space.free))
    }

    /// Largest readahead of its mount in KiB; `None` where it has none.
    pub(super) fn read_ahead_kib(&self) -> Option<u64> {
        benchmaster_telemetry::environment::read_ahead_kib(&self.path)
    }

    /// Makes the directories and files of a table.
    pub(super) fn fill(&self, filler: &Filler<'_>, observe: &mut dyn FnMut(u64)) -> Result<(), AreaError> {
        let mut path = PathBuffer::new();
        for directory in 0..filler.table.directories() {
            filler.table.directory_path(directory, &mut path);
            let full = self.path.join(path.text());
            std::fs::create_dir_all(&full).map_err(|source| io_error("make", &full, source))?;
        }
        let engine = PosixEngine::new(self.root()?);
        let fill = |file, chunk: &mut Vec<u8>| block_on(filler.fill(&engine, file, PathBuffer::new(), chunk));
        let mut tick = || observe(filler.written.load(Ordering::Relaxed));
        parallel::for_each(filler.table.files(), fill, &mut tick)
    }

    /// Has all that was written reach stable storage: writing it back must not disturb what is measured next.
    pub(super) fn flush(&self) -> Result<(), AreaError> {
        rustix::fs::syncfs(self.root()?).map_err(|errno| io_error("flush", &self.path, errno.into()))
    }
}

/// Removes a marked directory, its marker last: what a kill leaves behind is still known as ours.
fn remove_marked(path: &Path) -> Result<(), AreaError> {
    let fail = |source| io_error("remove", path, source);
    let entries = match std::fs::read_dir(path) {
        // A failure of its server has taken it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(fail)?,
    };
    for entry in entries {
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
