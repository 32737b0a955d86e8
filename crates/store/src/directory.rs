//! The files of a results directory, its lock, and how it comes into being.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

use crate::error::{CreateError, LockError};

pub(crate) const DATABASE: &str = "results.db";
/// The study file as run.
pub(crate) const STUDY: &str = "study.toml";
/// The directory of traces.
pub(crate) const TRACES: &str = "traces";
/// Locked by the process that is at work.
pub(crate) const LOCK: &str = ".lock";
/// The database until all of the directory is there. Its presence marks a directory as unfinished.
pub(crate) const DATABASE_PARTIAL: &str = "results.db.partial";
const STUDY_PARTIAL: &str = "study.toml.partial";

/// An advisory lock on a results directory, held until dropped; the system releases it when the process dies.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held open for the lock")] File);

impl Lock {
    pub(crate) fn take(directory: &Path) -> Result<Self, LockError> {
        let path = directory.join(LOCK);
        let fault = |source| LockError::Io { path: path.clone(), source };
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path).map_err(fault)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Self(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(LockError::Running(directory.into())),
            Err(error) => Err(fault(error.into())),
        }
    }
}

/// Makes the directory with `study.toml` and, last, `results.db`, which `build` writes under a temporary name.
///
/// A process killed on the way leaves a directory that is recognised by `results.db.partial` and made anew.
pub(crate) fn create(
    directory: &Path,
    study: &str,
    build: impl FnOnce(&Path) -> Result<(), CreateError>,
) -> Result<Lock, CreateError> {
    fs::create_dir_all(directory).map_err(at(directory))?;
    if directory.join(DATABASE).exists() {
        return Err(CreateError::Exists(directory.into()));
    }
    check_empty(directory)?;
    let lock = Lock::take(directory)?;
    // Another process may have finished between the check and the lock.
    if directory.join(DATABASE).exists() {
        return Err(CreateError::Exists(directory.into()));
    }
    check_empty(directory)?;

    let partial = directory.join(DATABASE_PARTIAL);
    // The mark comes first, and from here on everything in the directory is ours.
    File::create(&partial).and_then(|file| file.sync_all()).map_err(at(&partial))?;
    sync_directory(directory)?;
    for suffix in ["-journal", "-wal", "-shm"] {
        remove_if_exists(&directory.join(format!("{DATABASE_PARTIAL}{suffix}")))?;
    }
    build(&partial)?;
    File::open(&partial).and_then(|file| file.sync_all()).map_err(at(&partial))?;

    let temporary = directory.join(STUDY_PARTIAL);
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(study.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, directory.join(STUDY))
    };
    write().map_err(at(&temporary))?;
    sync_directory(directory)?;
    fs::rename(&partial, directory.join(DATABASE)).map_err(at(&partial))?;
    sync_directory(directory)?;
    if let Some(parent) = directory.canonicalize().ok().as_deref().and_then(Path::parent) {
        // The parent may not be ours to open; then its entry is as durable as the system makes it.
        let _ = File::open(parent).and_then(|file| file.sync_all());
    }
    Ok(lock)
}

/// Makes a change of names durable.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), CreateError> {
    File::open(directory).and_then(|file| file.sync_all()).map_err(at(directory))
}

/// Refuses a directory with anything in it that is not of an unfinished creation.
fn check_empty(directory: &Path) -> Result<(), CreateError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(at(directory))? {
        found.push(entry.map_err(at(directory))?.file_name());
    }
    let unfinished = found.iter().any(|name| name == DATABASE_PARTIAL);
    let ours = |name: &OsStr| {
        name == LOCK
            || unfinished
                && (name == STUDY
                    || name == STUDY_PARTIAL
                    || name.as_encoded_bytes().starts_with(DATABASE_PARTIAL.as_bytes()))
    };
    found.sort();
    match found.into_iter().find(|name| !ours(name)) {
        None => Ok(()),
        Some(name) => Err(CreateError::NotEmpty { directory: directory.into(), found: PathBuf::from(name) }),
    }
}

fn remove_if_exists(path: &Path) -> Result<(), CreateError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(path)(error)),
        _ => Ok(()),
    }
}

fn at(path: &Path) -> impl Fn(io::Error) -> CreateError {
    move |source| CreateError::Io { path: path.into(), source }
}
