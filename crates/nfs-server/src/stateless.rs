//! What NFS versions 2 and 3 have in common: handles, rights without an open, delegations and share modes of others.

use crate::call::Call;
use crate::fs::{Attr, FileSystem, FsError, Kind, Node, access, permits};
use crate::handle::{self, FileId};
use crate::state::Conflict;

/// Why a procedure is not carried out; each version has its own status for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatelessError {
    /// The file system refuses.
    Fs(FsError),
    /// The handle is none of this server.
    BadHandle,
    /// A client of NFSv4 has a delegation that is being recalled: try again.
    Delegated,
}

impl From<FsError> for StatelessError {
    fn from(error: FsError) -> Self {
        Self::Fs(error)
    }
}

impl<'r> Call<'r> {
    /// The file of a handle. It may be gone: using it tells.
    pub(crate) fn resolve(&self, handle: &[u8]) -> Result<FileId, StatelessError> {
        let (instance, id) = handle::decode(handle).map_err(|_| StatelessError::BadHandle)?;
        if instance != self.server.instance {
            return Err(FsError::Stale.into());
        }
        self.server.exports.get(id.export)?;
        Ok(id)
    }

    /// The handle of a file.
    pub(crate) fn handle(&self, id: FileId) -> [u8; handle::HANDLE_LEN] {
        handle::encode(self.server.instance, id)
    }

    /// Attributes of a file.
    pub(crate) fn attr(&self, id: FileId) -> Result<Attr, FsError> {
        let (fs, node) = self.server.exports.file(id)?;
        fs.attr(node)
    }

    /// A regular file that the caller may read, or write: the owner always may, as if it had been opened before a
    /// chmod, and who may execute may read (RFC 1813 §4.4).
    pub(crate) fn io(&mut self, id: FileId, write: bool) -> Result<(&'r FileSystem, Node), StatelessError> {
        let exports = &self.server.exports;
        let (fs, node) = if write { exports.file_mut(id) } else { exports.file(id) }?;
        let attr = fs.attr(node)?;
        if attr.kind != Kind::Regular {
            return Err(
                if attr.kind == Kind::Directory { FsError::IsDirectory } else { FsError::WrongKind }.into()
            );
        }
        let permitted = attr.uid == self.who.uid
            || if write {
                permits(&attr, self.who, access::WRITE)
            } else {
                permits(&attr, self.who, access::READ) || permits(&attr, self.who, access::EXECUTE)
            };
        let (denied, delegated) = {
            let files = &self.server.state.read().files;
            (files.denied(id, write), files.delegated(id))
        };
        if !permitted || denied && self.denied(id, write) {
            return Err(FsError::Access.into());
        }
        if delegated {
            self.conflict(id, if write { Conflict::Change } else { Conflict::Read })?;
        }
        Ok((fs, node))
    }

    /// Whether deny modes of NFSv4 opens are in the way of reading or writing.
    pub(crate) fn denied(&mut self, id: FileId, write: bool) -> bool {
        self.server.state.check_deny(id, write, self.now.instant, self.effects).is_err()
    }

    /// Largest READ and WRITE: over UDP they must fit a datagram.
    pub(crate) fn max_io(&self) -> u32 {
        const MAX_UDP: u32 = 32 << 10;
        let limit = if self.peer.outbox.is_some() { u32::MAX } else { MAX_UDP };
        self.server.config.max_io.min(limit)
    }

    /// Recalls the delegations that are in the way.
    pub(crate) fn conflict(&mut self, id: FileId, conflict: Conflict) -> Result<(), StatelessError> {
        let (state, now) = (&self.server.state, self.now.instant);
        state.check_conflict(id, conflict, None, now, self.effects).map_err(|_| StatelessError::Delegated)
    }

    /// Recalls the delegations on what a directory entry names, if it names anything: before it is removed, renamed or
    /// replaced.
    pub(crate) fn name_conflict(&mut self, dir: FileId, name: &[u8]) -> Result<(), StatelessError> {
        let (fs, node) = self.server.exports.file(dir)?;
        match fs.lookup(self.who, node, name) {
            Ok((file, _)) => {
                let id = FileId { export: dir.export, ino: file.ino, generation: file.generation };
                self.conflict(id, Conflict::Change)
            }
            // The operation itself will find out.
            Err(_) => Ok(()),
        }
    }
}

/// A node of an export.
pub(crate) fn file_id(export: u32, node: Node) -> FileId {
    FileId { export, ino: node.ino, generation: node.generation }
}

/// Whether a name means the directory itself or its parent.
pub(crate) fn is_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}
