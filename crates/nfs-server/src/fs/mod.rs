//! A file system in memory: inodes, directories, data in reference-counted pages, extended attributes.
//!
//! It knows nothing of NFS versions. All functions take the caller and the time; errors are [`FsError`], which each
//! version maps to its own codes. Changes to a directory report its attributes before and after, taken atomically.

use std::fmt;
use std::time::Duration;

use crate::cred::Credentials;

mod page;
mod types;

pub use page::PageSlice;
pub use types::*;

/// Options of one file system.
#[derive(Debug, Clone, Default)]
pub struct FsConfig {
    /// Bytes of data after which writes fail with [`FsError::NoSpace`].
    pub limit: Option<u64>,
    /// Reads come from one page of zeros, writes keep only the size.
    pub null_data: bool,
    /// Steps in which times and the change attribute move.
    pub change_granularity: Option<Duration>,
}

/// A file system. Shared between threads.
pub struct FileSystem {}

impl fmt::Debug for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSystem").finish_non_exhaustive()
    }
}

#[allow(unused_variables, clippy::todo)] // Signatures first.
impl FileSystem {
    /// An empty file system: a root directory of user 0 with `mode`.
    pub fn new(config: FsConfig, mode: u32, now: Time) -> Self {
        todo!()
    }

    /// The root directory.
    pub fn root(&self) -> Node {
        todo!()
    }

    /// Attributes of a file. [`FsError::Stale`] when it is gone.
    pub fn attr(&self, file: Node) -> Result<Attr, FsError> {
        todo!()
    }

    /// Sets attributes. With `guard`, only when ctime still is that ([`FsError::NotSync`] otherwise, NFSv3 SETATTR).
    /// Rules of chmod(2), chown(2), utimensat(2), truncate(2) apply; `size_checked` says that the right to write was
    /// established elsewhere (open for writing).
    pub fn set_attr(
        &self,
        who: &Credentials,
        file: Node,
        set: &SetAttr,
        guard: Option<Time>,
        size_checked: bool,
        now: Time,
    ) -> Result<Changed, FsError> {
        todo!()
    }

    /// Finds a name in a directory ("." and ".." too).
    pub fn lookup(&self, who: &Credentials, dir: Node, name: &[u8]) -> Result<(Node, Attr), FsError> {
        todo!()
    }

    /// The directory in which `dir` is; the root is its own parent.
    pub fn parent(&self, dir: Node) -> Result<Node, FsError> {
        todo!()
    }

    /// Reads up to `count` bytes at `offset` into `out` (cleared first) as references to pages. No permission check.
    pub fn read(
        &self,
        file: Node,
        offset: u64,
        count: u32,
        out: &mut Vec<PageSlice>,
        now: Time,
    ) -> Result<ReadInfo, FsError> {
        todo!()
    }

    /// Writes `data` at `offset`, or at the end. No permission check.
    /// `who` decides whether set-user-ID and set-group-ID survive (they do for user 0).
    pub fn write(
        &self,
        who: &Credentials,
        file: Node,
        offset: u64,
        data: &[u8],
        now: Time,
    ) -> Result<Changed, FsError> {
        todo!()
    }

    /// Makes a file of any kind. [`FsError::Exists`] when the name is taken.
    /// `verifier` is stored for exclusive creation and survives until the file is changed by SETATTR.
    pub fn create(
        &self,
        who: &Credentials,
        dir: Node,
        name: &[u8],
        new: NewFile<'_>,
        set: &SetAttr,
        verifier: Option<u64>,
        now: Time,
    ) -> Result<Created, FsError> {
        todo!()
    }

    /// The verifier of exclusive creation that the file was made with.
    pub fn verifier(&self, file: Node) -> Result<Option<u64>, FsError> {
        todo!()
    }

    /// Makes a hard link.
    pub fn link(
        &self,
        who: &Credentials,
        file: Node,
        dir: Node,
        name: &[u8],
        now: Time,
    ) -> Result<Linked, FsError> {
        todo!()
    }

    /// Removes a name.
    pub fn remove(
        &self,
        who: &Credentials,
        dir: Node,
        name: &[u8],
        what: RemoveKind,
        now: Time,
    ) -> Result<Removed, FsError> {
        todo!()
    }

    /// Renames, replacing what has the new name when kinds allow (rename(2)). Atomic.
    pub fn rename(
        &self,
        who: &Credentials,
        from: Node,
        name: &[u8],
        to: Node,
        new_name: &[u8],
        now: Time,
    ) -> Result<Renamed, FsError> {
        todo!()
    }

    /// Content of a symbolic link.
    pub fn read_link(&self, file: Node, now: Time, visit: &mut dyn FnMut(&[u8])) -> Result<Attr, FsError> {
        todo!()
    }

    /// Calls `visit` for the entries after `cookie` (0: from the start) until it returns `false`. "." and ".." are not
    /// among them; cookies are greater than 2 and stay valid while other entries come and go. Returns whether the end was
    /// reached. `want_attr` false saves looking into each inode. The directory's lock is held while visiting.
    pub fn read_dir(
        &self,
        who: &Credentials,
        dir: Node,
        cookie: u64,
        want_attr: bool,
        now: Time,
        visit: &mut dyn FnMut(&DirEntry<'_>) -> bool,
    ) -> Result<bool, FsError> {
        todo!()
    }

    /// Verifier of this directory's cookies: changes only when cookies lose their meaning.
    pub fn cookie_verifier(&self, dir: Node) -> Result<u64, FsError> {
        todo!()
    }

    /// Keeps an unlinked file alive (an open of NFSv4); each hold needs one [`FileSystem::release`].
    pub fn hold(&self, file: Node) -> Result<(), FsError> {
        todo!()
    }

    /// Ends one [`FileSystem::hold`].
    pub fn release(&self, file: Node) {
        todo!()
    }

    /// Space and file counts.
    pub fn stat(&self) -> FsStat {
        todo!()
    }

    /// Reserves space (ALLOCATE, RFC 7862 §15.1): extends the file when needed.
    pub fn allocate(
        &self,
        who: &Credentials,
        file: Node,
        offset: u64,
        len: u64,
        now: Time,
    ) -> Result<Changed, FsError> {
        todo!()
    }

    /// Makes a hole (DEALLOCATE): the range reads as zeros; the size stays.
    pub fn deallocate(
        &self,
        who: &Credentials,
        file: Node,
        offset: u64,
        len: u64,
        now: Time,
    ) -> Result<Changed, FsError> {
        todo!()
    }

    /// First data (or hole) at or after `offset`; `None`: there is none before the end of file.
    /// [`FsError::NoSuchRange`] when `offset` is at or after the end.
    pub fn seek(&self, file: Node, offset: u64, what: SeekKind) -> Result<Option<u64>, FsError> {
        todo!()
    }

    /// Copies a range within this file system, sharing pages where it can; `len` 0 means to the end of `from`.
    /// Returns the number of bytes.
    pub fn copy_range(
        &self,
        who: &Credentials,
        from: Node,
        from_offset: u64,
        to: Node,
        to_offset: u64,
        len: u64,
        now: Time,
    ) -> Result<(u64, Changed), FsError> {
        todo!()
    }

    /// Value of an extended attribute.
    pub fn xattr(&self, file: Node, name: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<(), FsError> {
        todo!()
    }

    /// Sets an extended attribute.
    pub fn set_xattr(
        &self,
        file: Node,
        name: &[u8],
        value: &[u8],
        how: XattrSet,
        now: Time,
    ) -> Result<Changed, FsError> {
        todo!()
    }

    /// Removes an extended attribute.
    pub fn remove_xattr(&self, file: Node, name: &[u8], now: Time) -> Result<Changed, FsError> {
        todo!()
    }

    /// Names of extended attributes after `cookie` (0: from the start), with the cookie after each, until `visit` returns
    /// `false`. Returns whether the end was reached.
    pub fn list_xattrs(
        &self,
        file: Node,
        cookie: u64,
        visit: &mut dyn FnMut(u64, &[u8]) -> bool,
    ) -> Result<bool, FsError> {
        todo!()
    }
}
