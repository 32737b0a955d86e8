//! Files that could not be read or written.

use std::io;
use std::path::{Path, PathBuf};

/// A file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct FileError {
    pub path: PathBuf,
    pub source: io::Error,
}

/// Names the file of an error.
pub(crate) fn at(path: impl AsRef<Path>) -> impl Fn(io::Error) -> FileError {
    let path = path.as_ref().to_owned();
    move |source| FileError { path: path.clone(), source }
}
