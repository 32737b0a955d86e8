//! The operations that every version of NFS has, each one request on the wire (a version that cannot do it in one says
//! so). What lies above (paths, open files, caches) is written once for all versions.
//!
//! Every implementation deals by itself with what its protocol has to recover from: lost replies, DELAY and grace, lost
//! sessions, leases and client ids. What cannot be recovered is an error, and every recovery is
//! [counted](crate::counters::Event).

use std::future::Future;

use crate::error::NfsError;
use crate::types::{
    AccessBits, Attributes, Entry, Handle, Limits, LockKind, OpenHow, Range, Read, SetAttributes, Space,
    Stability, Verifier, Written,
};

/// A file that was opened.
#[derive(Debug)]
pub struct Opened<F> {
    /// The open file: its handle, and stateids in version 4.
    pub file: F,
    /// Attributes after it, where they came.
    pub attributes: Option<Attributes>,
    /// Whether it was created by this (versions that do not tell: whether it was asked for).
    pub created: bool,
}

impl<F> Opened<F> {
    /// The same with another type of file.
    pub(crate) fn map<G>(self, file: impl FnOnce(F) -> G) -> Opened<G> {
        Opened { file: file(self.file), attributes: self.attributes, created: self.created }
    }
}

/// Result of an operation.
pub type NfsResult<T> = Result<T, NfsError>;

/// Said by versions without extended attributes.
pub(crate) const NO_XATTRS: NfsError = NfsError::Unsupported("only version 4.2 has extended attributes");

/// See the [module](self).
pub trait Protocol {
    /// An open file: filehandle and, where the version has them, stateids.
    type File;

    /// Filehandle of the exported directory.
    fn root(&self) -> Handle;
    /// Limits of its file system.
    fn limits(&self) -> Limits;
    /// Filehandle of an open file.
    fn handle(file: &Self::File) -> Handle;

    /// LOOKUP. Attributes of the file found, where they came with it.
    fn lookup(
        &self,
        directory: &Handle,
        name: &[u8],
    ) -> impl Future<Output = NfsResult<(Handle, Option<Attributes>)>>;
    /// GETATTR: attributes of a file.
    fn getattr(&self, file: &Handle) -> impl Future<Output = NfsResult<Attributes>>;
    /// SETATTR; `open` is the file opened for writing, where there is one (its stateid is needed to change the size).
    fn setattr(
        &self,
        file: &Handle,
        open: Option<&Self::File>,
        set: &SetAttributes,
    ) -> impl Future<Output = NfsResult<()>>;
    /// ACCESS: which of the bits are granted. Version 2 computes it from GETATTR.
    fn access(
        &self,
        file: &Handle,
        wanted: AccessBits,
    ) -> impl Future<Output = NfsResult<(AccessBits, Option<Attributes>)>>;
    /// OPEN; in versions 2 and 3 LOOKUP, or CREATE, and SETATTR to truncate.
    fn open(
        &self,
        directory: &Handle,
        name: &[u8],
        how: &OpenHow,
    ) -> impl Future<Output = NfsResult<Opened<Self::File>>>;
    /// CLOSE; nothing in versions 2 and 3. The file's state is gone also when it fails.
    fn close(&self, file: Self::File) -> impl Future<Output = NfsResult<()>>;
    /// READ of at most [`Limits::max_read`] bytes.
    fn read(
        &self,
        file: &Self::File,
        buffer: &mut [u8],
        offset: u64,
    ) -> impl Future<Output = NfsResult<Read>>;
    /// WRITE of at most [`Limits::max_write`] bytes.
    fn write(
        &self,
        file: &Self::File,
        data: &[u8],
        offset: u64,
        stability: Stability,
    ) -> impl Future<Output = NfsResult<Written>>;
    /// COMMIT of everything (`length` 0) or a part. Version 2, where every write is stable, sends nothing.
    fn commit(&self, file: &Self::File, range: Range) -> impl Future<Output = NfsResult<Verifier>>;
    /// LOCK (NLM in versions 2 and 3) for `owner`, a number that tells owners of this client apart. Where another holds
    /// it, waits for it if `wait`, else is `EAGAIN`.
    fn lock(
        &self,
        file: &Self::File,
        owner: u64,
        kind: LockKind,
        range: Range,
        wait: bool,
    ) -> impl Future<Output = NfsResult<()>>;
    /// LOCKU (NLM UNLOCK in versions 2 and 3): releases a range.
    fn unlock(&self, file: &Self::File, owner: u64, range: Range) -> impl Future<Output = NfsResult<()>>;
    /// MKDIR. The filehandle where it came.
    fn mkdir(
        &self,
        directory: &Handle,
        name: &[u8],
        mode: u32,
    ) -> impl Future<Output = NfsResult<Option<Handle>>>;
    /// SYMLINK: makes a symbolic link.
    fn symlink(&self, directory: &Handle, name: &[u8], target: &[u8]) -> impl Future<Output = NfsResult<()>>;
    /// READLINK: the target of a symbolic link.
    fn readlink(&self, link: &Handle) -> impl Future<Output = NfsResult<Vec<u8>>>;
    /// LINK: a hard link to a file.
    fn link(&self, file: &Handle, directory: &Handle, name: &[u8]) -> impl Future<Output = NfsResult<()>>;
    /// REMOVE of anything but a directory.
    fn remove(&self, directory: &Handle, name: &[u8]) -> impl Future<Output = NfsResult<()>>;
    /// RMDIR (REMOVE in version 4): removes an empty directory.
    fn rmdir(&self, directory: &Handle, name: &[u8]) -> impl Future<Output = NfsResult<()>>;
    /// RENAME: moves a name from one directory to another.
    fn rename(&self, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> impl Future<Output = NfsResult<()>>;
    /// READDIR, or READDIRPLUS with `plus` where the version has it: all entries but `.` and `..`, in as many
    /// requests as it takes.
    fn readdir(
        &self,
        directory: &Handle,
        plus: bool,
        visit: &mut dyn FnMut(&Entry<'_>),
    ) -> impl Future<Output = NfsResult<()>>;
    /// FSSTAT, STATFS or the space attributes.
    fn space(&self) -> impl Future<Output = NfsResult<Space>>;
    /// COPY of `length` bytes within the server, from and to these offsets: the bytes copied, which may be fewer, and
    /// are stable. Version 4.2.
    fn copy(
        &self,
        _source: (&Self::File, u64),
        _destination: (&Self::File, u64),
        _length: u64,
    ) -> impl Future<Output = NfsResult<u64>> {
        async { Err(NfsError::Unsupported("only version 4.2 copies within the server")) }
    }
    /// ALLOCATE: reserves space for a range. Version 4.2 only.
    fn allocate(&self, _file: &Self::File, _range: Range) -> impl Future<Output = NfsResult<()>> {
        async { Err(NfsError::Unsupported("only version 4.2 reserves space")) }
    }
    /// SEEK for data: where there are some from this offset on; `None`: nowhere. Version 4.2.
    fn seek_data(&self, _file: &Self::File, _offset: u64) -> impl Future<Output = NfsResult<Option<u64>>> {
        async { Err(NfsError::Unsupported("only version 4.2 reports holes (SEEK)")) }
    }
    /// GETXATTR of a name without its namespace, which is `user`. Version 4.2 (RFC 8276).
    fn get_xattr(&self, _file: &Handle, _name: &[u8]) -> impl Future<Output = NfsResult<Vec<u8>>> {
        async { Err(NO_XATTRS) }
    }
    /// SETXATTR, whether the attribute exists or not.
    fn set_xattr(&self, _file: &Handle, _name: &[u8], _value: &[u8]) -> impl Future<Output = NfsResult<()>> {
        async { Err(NO_XATTRS) }
    }
    /// LISTXATTRS, in as many requests as it takes.
    fn list_xattrs(
        &self,
        _file: &Handle,
        _visit: &mut dyn FnMut(&[u8]),
    ) -> impl Future<Output = NfsResult<()>> {
        async { Err(NO_XATTRS) }
    }
    /// REMOVEXATTR: removes an extended attribute. Version 4.2 only.
    fn remove_xattr(&self, _file: &Handle, _name: &[u8]) -> impl Future<Output = NfsResult<()>> {
        async { Err(NO_XATTRS) }
    }
    /// Ends everything in good order: state, session, client id, mount entry.
    fn unmount(self) -> impl Future<Output = NfsResult<()>>
    where
        Self: Sized;
}
