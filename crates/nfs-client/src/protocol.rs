//! The operations that every version of NFS has, each one request on the wire (a version that cannot do it in one says
//! so). What lies above (paths, open files, caches) is written once for all versions.
//!
//! Every implementation deals by itself with what its protocol has to recover from: lost replies, DELAY and grace, lost
//! sessions, leases and client ids. What cannot be recovered is an error, and every recovery is
//! [counted](crate::counters::Event).

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

pub(crate) const NO_COPY: NfsError = NfsError::Unsupported("only version 4.2 copies within the server");
pub(crate) const NO_ALLOCATE: NfsError = NfsError::Unsupported("only version 4.2 reserves space");
pub(crate) const NO_SEEK: NfsError = NfsError::Unsupported("only version 4.2 reports holes (SEEK)");
pub(crate) const NO_XATTRS: NfsError = NfsError::Unsupported("only version 4.2 has extended attributes");

/// See the [module](self).
#[allow(async_fn_in_trait, reason = "the tasks of a reactor stay on its thread")]
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
    async fn lookup(&self, directory: &Handle, name: &[u8]) -> NfsResult<(Handle, Option<Attributes>)>;
    /// GETATTR: attributes of a file.
    async fn getattr(&self, file: &Handle) -> NfsResult<Attributes>;
    /// SETATTR; `open` is the file opened for writing, where there is one (its stateid is needed to change the size).
    async fn setattr(&self, file: &Handle, open: Option<&Self::File>, set: &SetAttributes) -> NfsResult<()>;
    /// ACCESS: which of the bits are granted. Version 2 computes it from GETATTR.
    async fn access(&self, file: &Handle, wanted: AccessBits) -> NfsResult<(AccessBits, Option<Attributes>)>;
    /// OPEN; in versions 2 and 3 LOOKUP, or CREATE, and SETATTR to truncate.
    async fn open(&self, directory: &Handle, name: &[u8], how: &OpenHow) -> NfsResult<Opened<Self::File>>;
    /// CLOSE; nothing in versions 2 and 3. The file's state is gone also when it fails.
    async fn close(&self, file: Self::File) -> NfsResult<()>;
    /// READ of at most [`Limits::max_read`] bytes.
    async fn read(&self, file: &Self::File, buffer: &mut [u8], offset: u64) -> NfsResult<Read> {
        self.read_noting(file, buffer, offset, None).await
    }
    /// The same; attributes after it go into `after`, where the version has them.
    async fn read_noting(
        &self,
        file: &Self::File,
        buffer: &mut [u8],
        offset: u64,
        after: Option<&mut Option<Attributes>>,
    ) -> NfsResult<Read>;
    /// WRITE of at most [`Limits::max_write`] bytes.
    async fn write(
        &self,
        file: &Self::File,
        data: &[u8],
        offset: u64,
        stability: Stability,
    ) -> NfsResult<Written>;
    /// COMMIT of everything (`length` 0) or a part. Version 2, where every write is stable, sends nothing.
    async fn commit(&self, file: &Self::File, range: Range) -> NfsResult<Verifier>;
    /// LOCK (NLM in versions 2 and 3) for `owner`, a number that tells owners of this client apart. Where another holds
    /// it, waits for it if `wait`, else is `EAGAIN`. The attributes where they came.
    async fn lock(
        &self,
        file: &Self::File,
        owner: u64,
        kind: LockKind,
        range: Range,
        wait: bool,
    ) -> NfsResult<Option<Attributes>>;
    /// LOCKU (NLM UNLOCK in versions 2 and 3): releases a range.
    async fn unlock(&self, file: &Self::File, owner: u64, range: Range) -> NfsResult<()>;
    /// MKDIR. The filehandle where it came.
    async fn mkdir(&self, directory: &Handle, name: &[u8], mode: u32) -> NfsResult<Option<Handle>>;
    /// SYMLINK: makes a symbolic link.
    async fn symlink(&self, directory: &Handle, name: &[u8], target: &[u8]) -> NfsResult<()>;
    /// READLINK: the target of a symbolic link.
    async fn readlink(&self, link: &Handle) -> NfsResult<Vec<u8>>;
    /// LINK: a hard link to a file.
    async fn link(&self, file: &Handle, directory: &Handle, name: &[u8]) -> NfsResult<()>;
    /// REMOVE of anything but a directory.
    async fn remove(&self, directory: &Handle, name: &[u8]) -> NfsResult<()>;
    /// RMDIR (REMOVE in version 4): removes an empty directory.
    async fn rmdir(&self, directory: &Handle, name: &[u8]) -> NfsResult<()>;
    /// RENAME: moves a name from one directory to another.
    async fn rename(&self, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> NfsResult<()>;
    /// READDIR, or READDIRPLUS with `plus` where the version has it: all entries but `.` and `..`, in as many
    /// requests as it takes.
    async fn readdir(
        &self,
        directory: &Handle,
        plus: bool,
        visit: &mut dyn FnMut(&Entry<'_>),
    ) -> NfsResult<()>;
    /// FSSTAT, STATFS or the space attributes.
    async fn space(&self) -> NfsResult<Space>;
    /// COPY of `length` bytes within the server, from and to these offsets: the bytes copied, which may be fewer, and
    /// are stable. Version 4.2.
    async fn copy(
        &self,
        _source: (&Self::File, u64),
        _destination: (&Self::File, u64),
        _length: u64,
    ) -> NfsResult<u64> {
        Err(NO_COPY)
    }
    /// ALLOCATE: reserves space for a range. Version 4.2 only.
    async fn allocate(&self, _file: &Self::File, _range: Range) -> NfsResult<()> {
        Err(NO_ALLOCATE)
    }
    /// SEEK for data: where there are some from this offset on; `None`: nowhere. Version 4.2.
    async fn seek_data(&self, _file: &Self::File, _offset: u64) -> NfsResult<Option<u64>> {
        Err(NO_SEEK)
    }
    /// GETXATTR of a name without its namespace, which is `user`. Version 4.2 (RFC 8276).
    async fn get_xattr(&self, _file: &Handle, _name: &[u8]) -> NfsResult<Vec<u8>> {
        Err(NO_XATTRS)
    }
    /// SETXATTR, whether the attribute exists or not.
    async fn set_xattr(&self, _file: &Handle, _name: &[u8], _value: &[u8]) -> NfsResult<()> {
        Err(NO_XATTRS)
    }
    /// LISTXATTRS, in as many requests as it takes.
    async fn list_xattrs(&self, _file: &Handle, _visit: &mut dyn FnMut(&[u8])) -> NfsResult<()> {
        Err(NO_XATTRS)
    }
    /// REMOVEXATTR: removes an extended attribute. Version 4.2 only.
    async fn remove_xattr(&self, _file: &Handle, _name: &[u8]) -> NfsResult<()> {
        Err(NO_XATTRS)
    }
    /// Ends everything in good order: state, session, client id, mount entry.
    async fn unmount(self) -> NfsResult<()>
    where
        Self: Sized;
}
