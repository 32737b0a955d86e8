//! What goes wrong with a working directory.

use std::io;
use std::path::PathBuf;

use benchmaster_nfs_client::mount::MountError;

use crate::conduct::Stopped;

/// Why the working directory could not be made, prepared or removed.
#[derive(Debug, thiserror::Error)]
pub enum AreaError {
    /// A file operation failed.
    #[error("cannot {action} `{}`: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// The target is not a directory.
    #[error("the target `{}` is not a directory; name the directory (or mount point) to measure", path.display())]
    NotADirectory { path: PathBuf },
    /// A directory of the name we need exists and is not ours.
    #[error("`{}` exists and was not made by this study; rename or remove it", path.display())]
    Foreign { path: PathBuf },
    /// The files do not fit.
    #[error(
        "fileset `{fileset}` needs {needed} bytes and `{}` has {free} bytes free; make it smaller (`file_size`, `files`) or free \
         space", path.display()
    )]
    NoSpace { fileset: String, needed: u64, free: u64, path: PathBuf },
    /// Verification was asked for files whose content is not known.
    #[error(
        "fileset `{fileset}` was written by a workload without `verify` or with another `io_size`, so what it holds cannot \
         be proved; add `verify = true` there too, with sizes that are multiples of the same power of two"
    )]
    NotProvable { fileset: String },
    /// The NFS server's export could not be mounted.
    #[error(transparent)]
    Mount(
        /// Why not; names server and export.
        #[from]
        MountError,
    ),
    /// The user-space NFS client could not run, or did not end in good order.
    #[error("NFS client of `{}`: {problem}", path.display())]
    Client { path: PathBuf, problem: String },
    /// Several processes would write the same files, and none could prove what the others wrote.
    #[error(
        "fileset `{fileset}` is shared, written and verified by clients in several processes, which do not know what the \
         others write; use `launcher = \"threads\"`, private filesets, or no `verify`"
    )]
    NotProvableTogether { fileset: String },
    /// Clients see different directories, which cannot hold files that all share.
    #[error(
        "fileset `{fileset}` is shared, and `{}` is not the same directory on all hosts; mount the same file system on all, or \
         use private filesets", path.display()
    )]
    NotShared { fileset: String, path: PathBuf },
    #[error("preparation was stopped")]
    Stopped,
}

impl From<Stopped> for AreaError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}
