//! Engines: the file operations a flow is made of, carried out by system calls or by nothing.
//!
//! One trait, monomorphised into the executor: no dynamic dispatch, allocation or lock per operation. Methods are
//! asynchronous so that one flow serves engines that block (their futures are ready at once) and engines that keep many
//! operations outstanding on one thread.

use std::future::Future;

use crate::clock::{Clock, Ticks};
use crate::files::PathBuffer;
use crate::model::LockKind;
use crate::program::OpenFlags;

pub mod null;
pub mod posix;
pub(crate) mod uring;

/// Why an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum OperationError {
    /// The system said so.
    #[error("{}", std::io::Error::from_raw_os_error(*.0))]
    Os(
        /// `errno`.
        i32,
    ),
    /// Fewer bytes than asked for, before the end of the file.
    #[error("only {done} of {asked} bytes were moved")]
    Short {
        /// Bytes asked for.
        asked: usize,
        /// Bytes moved.
        done: usize,
    },
}

impl OperationError {
    /// A short name to count by: `ENOSPC`, `short`.
    pub fn name(self) -> String {
        match self {
            Self::Short { .. } => "short".into(),
            Self::Os(number) => errno_name(number).map_or_else(|| format!("errno {number}"), str::to_owned),
        }
    }

    /// The error number for traces; short transfers are `EIO`.
    pub fn number(self) -> u16 {
        match self {
            Self::Short { .. } => libc::EIO as u16,
            Self::Os(number) => u16::try_from(number).unwrap_or(u16::MAX),
        }
    }
}

impl From<rustix::io::Errno> for OperationError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Os(errno.raw_os_error())
    }
}

fn errno_name(number: i32) -> Option<&'static str> {
    macro_rules! names {
        ($($name:ident)*) => { match number { $(libc::$name => Some(stringify!($name)),)* _ => None } };
    }
    names!(EPERM ENOENT EINTR EIO ENXIO EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR
        EINVAL ENFILE EMFILE ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS
        ENOTEMPTY ELOOP ENODATA ETIME EREMOTE ECOMM EPROTO EOVERFLOW EOPNOTSUPP ENETDOWN ENETUNREACH ECONNRESET
        ECONNREFUSED EHOSTDOWN EHOSTUNREACH ETIMEDOUT ESTALE EDQUOT EREMOTEIO)
}

/// The operations of a file system, as one stream of a worker issues them. Paths are relative to the working directory.
pub trait Engine {
    /// An open file.
    type Handle;

    /// Opens an existing file.
    fn open(
        &self,
        path: &PathBuffer,
        flags: OpenFlags,
    ) -> impl Future<Output = Result<Self::Handle, OperationError>>;
    /// Creates a file and opens it.
    fn create(
        &self,
        path: &PathBuffer,
        flags: OpenFlags,
    ) -> impl Future<Output = Result<Self::Handle, OperationError>>;
    /// Closes a file.
    fn close(&self, handle: Self::Handle) -> impl Future<Output = Result<(), OperationError>>;
    /// Reads at an offset.
    fn read(
        &self,
        handle: &Self::Handle,
        buffer: &mut [u8],
        offset: u64,
    ) -> impl Future<Output = Result<usize, OperationError>>;
    /// Writes at an offset (at the end of a file opened to append).
    fn write(
        &self,
        handle: &Self::Handle,
        buffer: &[u8],
        offset: u64,
    ) -> impl Future<Output = Result<usize, OperationError>>;
    /// Makes data and metadata of a file stable.
    fn fsync(&self, handle: &Self::Handle) -> impl Future<Output = Result<(), OperationError>>;
    /// Makes data of a file stable.
    fn fdatasync(&self, handle: &Self::Handle) -> impl Future<Output = Result<(), OperationError>>;
    /// Takes a byte-range lock from the start of the file, waiting for it. `length` 0: the whole file.
    fn lock(
        &self,
        handle: &Self::Handle,
        kind: LockKind,
        length: u64,
    ) -> impl Future<Output = Result<(), OperationError>>;
    /// Releases it.
    fn unlock(&self, handle: &Self::Handle, length: u64) -> impl Future<Output = Result<(), OperationError>>;
    /// Reads the attributes of a file.
    fn stat(&self, path: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Gives a file another name.
    fn rename(&self, from: &PathBuffer, to: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Removes a file.
    fn unlink(&self, path: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Lists a directory; returns the number of entries.
    fn readdir(&self, path: &PathBuffer) -> impl Future<Output = Result<usize, OperationError>>;
    /// Makes a directory.
    fn mkdir(&self, path: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Removes a directory.
    fn rmdir(&self, path: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Waits until `time` on the given clock.
    fn sleep_until(&self, clock: &Clock, time: Ticks) -> impl Future<Output = ()>;
}
