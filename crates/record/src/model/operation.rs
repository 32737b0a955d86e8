//! The kinds of operations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// A kind of operation.
    #[derive(JsonSchema)]
    OperationKind {
        /// Open an existing file into the handle.
        Open = "open",
        /// Create a file and open it into the handle.
        Create = "create",
        /// Close the handle.
        Close = "close",
        /// Read from the handle.
        Read = "read",
        /// Write to the handle.
        Write = "write",
        /// Flush data and metadata of the handle.
        Fsync = "fsync",
        /// Flush the data of the handle.
        Fdatasync = "fdatasync",
        /// Take a byte-range lock on the handle's file, waiting for it.
        Lock = "lock",
        /// Release it.
        Unlock = "unlock",
        /// Read a file's attributes by name.
        Stat = "stat",
        /// Give a file another name in its directory.
        Rename = "rename",
        /// Remove a file.
        Unlink = "unlink",
        /// List the directory of a file.
        Readdir = "readdir",
        /// Make a directory.
        Mkdir = "mkdir",
        /// Remove a directory.
        Rmdir = "rmdir",
        /// Set the size of the handle's file to `io_size`.
        Truncate = "truncate",
        /// Reserve space for the first `io_size` bytes of the handle's file.
        Allocate = "allocate",
        /// Look for the first data in the handle's file.
        SeekData = "seek-data",
        /// Read the attributes of the handle's file.
        Fstat = "fstat",
        /// Set a file's permission bits.
        Chmod = "chmod",
        /// Set a file's times to now.
        Utimes = "utimes",
        /// Ask whether a file may be read and written.
        Access = "access",
        /// Make a symbolic link to a file, beside it: `NAME.symlink`.
        Symlink = "symlink",
        /// Read where the symbolic link of a file leads.
        Readlink = "readlink",
        /// Give a file a second name, beside the first: `NAME.link`.
        Link = "link",
        /// Set an extended attribute of a file, of `io_size` bytes.
        Setxattr = "setxattr",
        /// Read that attribute.
        Getxattr = "getxattr",
        /// List the names of a file's extended attributes.
        Listxattr = "listxattr",
        /// Remove the attribute.
        Removexattr = "removexattr",
        /// List the directory of a file with the attributes of all that is in it.
        ReaddirStat = "readdir-stat",
        /// Copy a file without moving its data through the client: `NAME.copy`.
        Copy = "copy",
    }
}

/// A name beside a file's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Beside {
    /// What `symlink` makes.
    Symlink,
    /// What `link` makes.
    Link,
    /// What `copy` makes.
    Copy,
}

impl Beside {
    /// The end of its name.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Symlink => ".symlink",
            Self::Link => ".link",
            Self::Copy => ".copy",
        }
    }
}

impl OperationKind {
    /// Whether it moves file data, so that bytes per second mean something.
    pub fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }

    /// Whether it opens a file into a handle.
    pub fn opens(self) -> bool {
        matches!(self, Self::Open | Self::Create)
    }

    /// Whether it is about the directory of a file.
    pub fn is_of_directory(self) -> bool {
        matches!(self, Self::Readdir | Self::ReaddirStat | Self::Mkdir | Self::Rmdir)
    }

    /// Whether it works on an open handle (else on a file picked by name).
    pub fn needs_handle(self) -> bool {
        matches!(
            self,
            Self::Close
                | Self::Read
                | Self::Write
                | Self::Fsync
                | Self::Fdatasync
                | Self::Lock
                | Self::Unlock
                | Self::Truncate
                | Self::Allocate
                | Self::SeekData
                | Self::Fstat
        )
    }
}
