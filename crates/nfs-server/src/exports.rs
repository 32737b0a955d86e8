//! What is exported: one file system per export, and the pseudo file system that leads to them (RFC 7530 §7.3).

use crate::config::ServerConfig;
use crate::cred::Credentials;
use crate::fs::{Attr, FileSystem, FsError, Node, Time};
use crate::handle::FileId;

/// One export.
#[derive(Debug)]
pub struct Export {
    /// Absolute path.
    pub path: String,
    /// Whether changes are refused.
    pub read_only: bool,
    /// Its files.
    pub fs: FileSystem,
}

/// All exports. Index 0 is the pseudo file system, a read-only tree whose leaves are the exports' roots; when `/` itself
/// is exported there is no pseudo file system and index 0 is that export.
#[derive(Debug)]
pub struct Exports {
    list: Vec<Export>,
}

/// Exports that make no name space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// There is none.
    #[error("nothing to export")]
    None,
    /// The path is not absolute, or has a component that is no name.
    #[error("export '{0}': not an absolute path of names")]
    Path(String),
    /// The path is there twice.
    #[error("export '{0}' is given twice")]
    Twice(String),
}

#[allow(unused_variables, clippy::todo)] // Signatures first.
impl Exports {
    /// Makes the exports that `config` names, empty.
    pub fn new(config: &ServerConfig, now: Time) -> Result<Self, ExportError> {
        todo!()
    }

    /// The file system that a handle's export number means. [`FsError::Stale`] when there is none.
    pub fn get(&self, export: u32) -> Result<&Export, FsError> {
        self.list.get(export as usize).ok_or(FsError::Stale)
    }

    /// File system and node of a file, for reading.
    pub fn file(&self, id: FileId) -> Result<(&FileSystem, Node), FsError> {
        let export = self.get(id.export)?;
        Ok((&export.fs, Node { ino: id.ino, generation: id.generation }))
    }

    /// File system and node of a file, for changing: [`FsError::ReadOnly`] where the export is.
    pub fn file_mut(&self, id: FileId) -> Result<(&FileSystem, Node), FsError> {
        let export = self.get(id.export)?;
        if export.read_only {
            return Err(FsError::ReadOnly);
        }
        self.file(id)
    }

    /// Root of the whole name space (PUTROOTFH).
    pub fn root(&self) -> FileId {
        todo!()
    }

    /// The exports a client may mount: path and root, in the order configured.
    pub fn mountable(&self) -> impl Iterator<Item = (&str, FileId)> {
        [].into_iter()
    }

    /// Walks an absolute path (MOUNT): through the pseudo file system, exports and directories in them.
    pub fn walk(&self, who: &Credentials, path: &[u8]) -> Result<FileId, FsError> {
        todo!()
    }

    /// Looks a name up, crossing into an export where the pseudo file system has its mount point.
    pub fn lookup(&self, who: &Credentials, dir: FileId, name: &[u8]) -> Result<(FileId, Attr), FsError> {
        todo!()
    }

    /// The parent directory, crossing out of an export's root; `None` at the root of the name space.
    pub fn parent(&self, dir: FileId) -> Result<Option<FileId>, FsError> {
        todo!()
    }

    /// What a directory entry of `export` leads to: the export's root where the entry is a mount point.
    pub fn cross(&self, export: u32, node: Node) -> FileId {
        todo!()
    }

    /// Inode number under which a file's directory lists it (`mounted_on_fileid`): differs from its own for the root of an
    /// export below the pseudo file system.
    pub fn mounted_on(&self, id: FileId) -> u64 {
        todo!()
    }
}
