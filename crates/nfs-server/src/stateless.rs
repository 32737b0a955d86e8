//! What NFS versions 2 and 3 have in common: handles, rights without an open, delegations and share modes of others,
//! and changes of names and attributes.

use crate::call::Call;
use crate::fs::{
    Attr, Changed, Created, FileSystem, FsError, Kind, Linked, NewFile, Node, RemoveKind, Removed, Renamed,
    SetAttr, Time, access, permits,
};
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
    /// The file of a handle, on an export that the call's flavour may use. It may be gone: using it tells.
    pub(crate) fn resolve(&mut self, handle: &[u8]) -> Result<FileId, StatelessError> {
        let id = self.resolve_by_any_flavor(handle)?;
        let export = self.server.exports.get(id.export)?;
        if !export.flavors.contains(self.flavor) {
            self.too_weak = true;
            return Err(FsError::Access.into());
        }
        Ok(id)
    }

    /// The file of a handle, whatever the call's flavour is. It may be gone: using it tells.
    pub(crate) fn resolve_by_any_flavor(&self, handle: &[u8]) -> Result<FileId, StatelessError> {
        let (instance, id) = handle::decode(handle).map_err(|_| StatelessError::BadHandle)?;
        let ours = instance == self.server.instance;
        ours.then_some(id).ok_or_else(|| FsError::Stale.into())
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
        if !permitted || self.denied(id, write) {
            return Err(FsError::Access.into());
        }
        self.conflict(id, if write { Conflict::Change } else { Conflict::Read })?;
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
            Ok((file, _)) => self.conflict(FileId::new(dir.export, file), Conflict::Change),
            // The operation itself will find out.
            Err(_) => Ok(()),
        }
    }

    /// Makes a file. Special files with numbers are for user 0.
    pub(crate) fn create(
        &mut self,
        dir: FileId,
        name: &[u8],
        new: NewFile<'_>,
        set: &SetAttr,
        verifier: Option<u64>,
    ) -> Result<Created, StatelessError> {
        if is_dot(name) {
            return Err(FsError::Exists.into());
        }
        if matches!(new, NewFile::Special(Kind::Block | Kind::Character, _)) && self.who.uid != 0 {
            return Err(FsError::NotOwner.into());
        }
        let (fs, node) = self.server.exports.file_mut(dir)?;
        // Creation of what is there (UNCHECKED) does not change the directory.
        if self.server.state.delegated(dir) && fs.lookup(self.who, node, name) == Err(FsError::NotFound) {
            self.conflict(dir, Conflict::Change)?;
        }
        Ok(fs.create(self.who, node, name, new, set, verifier, self.now.wall)?)
    }

    /// What creating a file that exists does to it: of the attributes only the size counts.
    pub(crate) fn reuse(&mut self, dir: FileId, name: &[u8], set: &SetAttr) -> Result<Attr, StatelessError> {
        let (fs, node) = self.server.exports.file_mut(dir)?;
        let (file, attr) = fs.lookup(self.who, node, name)?;
        if attr.kind != Kind::Regular {
            return Err(FsError::Exists.into());
        }
        if set.size.is_none() {
            return Ok(attr);
        }
        let id = FileId::new(dir.export, file);
        self.conflict(id, Conflict::Change)?;
        if self.denied(id, true) {
            return Err(FsError::Access.into());
        }
        let set = SetAttr { size: set.size, ..SetAttr::default() };
        Ok(fs.set_attr(self.who, file, &set, None, false, self.now.wall)?.after)
    }

    /// Sets attributes of a file.
    pub(crate) fn change(
        &mut self,
        id: FileId,
        set: &SetAttr,
        guard: Option<Time>,
    ) -> Result<Changed, StatelessError> {
        let (fs, node) = self.server.exports.file_mut(id)?;
        self.conflict(id, Conflict::Change)?;
        if set.size.is_some() && self.denied(id, true) {
            return Err(FsError::Access.into());
        }
        // The owner may cut off what it may not write, as if the file had been opened before.
        let owner = set.size.is_some() && fs.attr(node)?.uid == self.who.uid;
        Ok(fs.set_attr(self.who, node, set, guard, owner, self.now.wall)?)
    }

    /// Removes a name.
    pub(crate) fn remove(
        &mut self,
        dir: FileId,
        name: &[u8],
        kind: RemoveKind,
    ) -> Result<Removed, StatelessError> {
        let (fs, node) = self.server.exports.file_mut(dir)?;
        self.name_conflict(dir, name)?;
        self.conflict(dir, Conflict::Change)?;
        Ok(fs.remove(self.who, node, name, kind, self.now.wall)?)
    }

    /// Gives a file another name, which may be that of another file.
    pub(crate) fn rename(
        &mut self,
        (from, name): (FileId, &[u8]),
        (to, new_name): (FileId, &[u8]),
    ) -> Result<Renamed, StatelessError> {
        if from.export != to.export {
            return Err(FsError::CrossDevice.into());
        }
        if is_dot(name) || is_dot(new_name) {
            return Err(FsError::Invalid.into());
        }
        let (fs, from_node) = self.server.exports.file_mut(from)?;
        let (_, to_node) = self.server.exports.file_mut(to)?;
        self.name_conflict(from, name)?;
        self.name_conflict(to, new_name)?;
        self.conflict(from, Conflict::Change)?;
        self.conflict(to, Conflict::Change)?;
        Ok(fs.rename(self.who, from_node, name, to_node, new_name, self.now.wall)?)
    }

    /// Gives a file one more name.
    pub(crate) fn link(&mut self, file: FileId, dir: FileId, name: &[u8]) -> Result<Linked, StatelessError> {
        if file.export != dir.export {
            return Err(FsError::CrossDevice.into());
        }
        if is_dot(name) {
            return Err(FsError::Exists.into());
        }
        let (fs, node) = self.server.exports.file_mut(file)?;
        let (_, dir_node) = self.server.exports.file_mut(dir)?;
        self.conflict(file, Conflict::Change)?;
        self.conflict(dir, Conflict::Change)?;
        Ok(fs.link(self.who, node, dir_node, name, self.now.wall)?)
    }
}

/// Whether a name means the directory itself or its parent.
pub(crate) fn is_dot(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}
