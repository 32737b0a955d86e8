//! What can go wrong with a results directory; every message names the place and the fix.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

use benchmaster_record::results::RunKey;

/// Why a results directory could not be made. Nothing usable is left behind; the same call may be repeated.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// It holds the results of a study already.
    #[error("`{}` already holds the results of a study: resume it, or choose another directory", .0.display())]
    Exists(PathBuf),
    /// It holds something else.
    #[error("`{}` is not empty and not a results directory (it has `{}`): choose a new or an empty directory",
        .directory.display(), .found.display())]
    NotEmpty {
        directory: PathBuf,
        /// One of the things in it.
        found: PathBuf,
    },
    /// The plan contradicts itself.
    #[error("the plan of the study cannot be stored: {0}")]
    Plan(String),
    /// Another process is at work in it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file could not be made.
    #[error("cannot write `{}`: {source}", .path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        source: io::Error,
    },
    /// The database could not be made.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Why a results directory could not be opened for writing.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There are no results.
    #[error("`{}` is not a results directory: it has no results.db", .0.display())]
    Missing(PathBuf),
    /// Another process is at work in it.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The database could not be opened.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Why a results directory could not be read.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// There are no results.
    #[error("`{}` is not a results directory: it has no results.db", .0.display())]
    Missing(PathBuf),
    /// The database could not be read.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Why something was not stored. What was stored before is untouched, and nothing is half stored.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The run is stored already.
    #[error("replicate {} of treatment {} is already stored in `{}`", .key.replicate, .key.treatment, .path.display())]
    Doubled {
        path: PathBuf,
        /// The run.
        key: RunKey,
    },
    /// The record refers to something that does not exist, or holds a value that cannot be stored.
    #[error("cannot store in `{}`: {problem}", .path.display())]
    Record { path: PathBuf, problem: String },
    /// What an interrupted run left behind could not be removed.
    #[error("cannot remove `{}`, left behind by an interrupted run: {source}", .path.display())]
    Leftover {
        /// The file or directory.
        path: PathBuf,
        source: io::Error,
    },
    /// The database refused.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}

/// Why a results directory could not be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("another run is on in `{}`: wait for its end, or stop it first", .0.display())]
    Running(PathBuf),
    /// The lock file could not be made or locked.
    #[error("cannot lock `{}`: {source}", .path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        source: io::Error,
    },
}

/// A failure of the database.
#[derive(Debug, thiserror::Error)]
pub enum DatabaseError {
    /// Its schema is not the one that this program reads.
    #[error("`{}` has schema version {found}, this version of Benchmaster reads version {known}: use the version \
        that wrote it", .path.display())]
    Version {
        path: PathBuf,
        /// Its schema version.
        found: u32,
        /// The version this program reads.
        known: u32,
    },
    /// It is an SQLite database of another program.
    #[error("`{}` is an SQLite database, but not one of Benchmaster's: choose another directory", .path.display())]
    Foreign { path: PathBuf },
    /// No space is left.
    #[error("no space left for `{}`: free some and run the same command again; no finished run is lost",
        .path.display())]
    Full { path: PathBuf },
    /// It may not be written.
    #[error("`{}` is read-only: give yourself write permission to the file and its directory", .path.display())]
    ReadOnly { path: PathBuf },
    /// It may not be opened.
    #[error("cannot open `{}` ({detail}): check the permissions of the file and its directory, or copy the \
        directory to a place you may write to", .path.display())]
    Access { path: PathBuf, detail: String },
    /// Its content cannot be right.
    #[error("`{}` is damaged ({detail}): restore it from a copy, or try `sqlite3 results.db .recover`",
        .path.display())]
    Damaged { path: PathBuf, detail: String },
    /// Another process kept it locked.
    #[error("`{}` is kept locked by another process: close programs that write to it and try again",
        .path.display())]
    Busy { path: PathBuf },
    #[error("`{}`: {source}", .path.display())]
    Other { path: PathBuf, source: rusqlite::Error },
}

impl DatabaseError {
    pub(crate) fn new(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let detail = source.to_string();
        match source.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::Full { path },
            Some(ErrorCode::ReadOnly) => Self::ReadOnly { path },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => Self::Access { path, detail },
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged { path, detail },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Busy { path },
            Some(_) => Self::Other { path, source },
            None => match source {
                rusqlite::Error::FromSqlConversionFailure(..)
                | rusqlite::Error::IntegralValueOutOfRange(..)
                | rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::Utf8Error(..)
                | rusqlite::Error::QueryReturnedNoRows => Self::Damaged { path, detail },
                source => Self::Other { path, source },
            },
        }
    }
}

/// Gives SQLite's results the path of the database.
pub(crate) trait At<T> {
    fn at(self, path: &Path) -> Result<T, DatabaseError>;
}

impl<T> At<T> for rusqlite::Result<T> {
    fn at(self, path: &Path) -> Result<T, DatabaseError> {
        self.map_err(|source| DatabaseError::new(path, source))
    }
}
