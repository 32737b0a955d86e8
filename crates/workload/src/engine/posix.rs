//! The POSIX engine: system calls on a directory. Every call blocks its thread.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::clock::{Clock, Ticks};
use crate::engine::{Engine, OperationError};
use crate::files::PathBuffer;
use crate::model::LockKind;
use crate::program::OpenFlags;

/// O_DSYNC. What rustix calls so is O_SYNC on Linux, which flushes metadata as well.
const DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC.cast_unsigned());

/// See the [module](self). All paths are relative to `root`, so that a path is never resolved from the top again.
#[derive(Debug, Clone, Copy)]
pub struct PosixEngine<'a> {
    root: BorrowedFd<'a>,
}

impl<'a> PosixEngine<'a> {
    /// An engine on an open directory.
    pub fn new(root: BorrowedFd<'a>) -> Self {
        Self { root }
    }

    pub(crate) fn open_file(
        &self,
        path: &PathBuffer,
        flags: OpenFlags,
        create: bool,
    ) -> Result<OwnedFd, Errno> {
        let mut bits = match (flags.write_only, flags.write) {
            (true, _) => OFlags::WRONLY,
            (false, true) => OFlags::RDWR,
            (false, false) => OFlags::RDONLY,
        } | OFlags::CLOEXEC;
        let chosen = [
            (create, OFlags::CREATE),
            (flags.sync, OFlags::SYNC),
            (flags.dsync, DSYNC),
            (flags.direct, OFlags::DIRECT),
            (flags.append, OFlags::APPEND),
            (flags.truncate, OFlags::TRUNC),
            (flags.exclusive && create, OFlags::EXCL),
        ];
        for (wanted, flag) in chosen {
            bits.set(flag, bits.contains(flag) || wanted);
        }
        retry(|| fs::openat(self.root, path.as_c_str(), bits, Mode::from_raw_mode(0o644)))
    }
}

impl Engine for PosixEngine<'_> {
    type Handle = OwnedFd;

    async fn open(&self, path: &PathBuffer, flags: OpenFlags) -> Result<OwnedFd, OperationError> {
        Ok(self.open_file(path, flags, false)?)
    }

    async fn create(&self, path: &PathBuffer, flags: OpenFlags) -> Result<OwnedFd, OperationError> {
        Ok(self.open_file(path, flags, true)?)
    }

    async fn close(&self, handle: OwnedFd) -> Result<(), OperationError> {
        // An NFS client reports failed writes at close, so its result must not be lost as `drop` would.
        // SAFETY: the descriptor is owned, given up by `into_raw_fd`, and closed exactly once here.
        match unsafe { libc::close(handle.into_raw_fd()) } {
            0 => Ok(()),
            _ => Err(last_error()),
        }
    }

    #[inline]
    async fn read(&self, handle: &OwnedFd, buffer: &mut [u8], offset: u64) -> Result<usize, OperationError> {
        Ok(retry(|| rustix::io::pread(handle, &mut *buffer, offset))?)
    }

    #[inline]
    async fn write(&self, handle: &OwnedFd, buffer: &[u8], offset: u64) -> Result<usize, OperationError> {
        Ok(retry(|| rustix::io::pwrite(handle, buffer, offset))?)
    }

    async fn fsync(&self, handle: &OwnedFd) -> Result<(), OperationError> {
        Ok(retry(|| fs::fsync(handle))?)
    }

    async fn fdatasync(&self, handle: &OwnedFd) -> Result<(), OperationError> {
        Ok(retry(|| fs::fdatasync(handle))?)
    }

    async fn lock(&self, handle: &OwnedFd, kind: LockKind, length: u64) -> Result<(), OperationError> {
        let kind = match kind {
            LockKind::Read => libc::F_RDLCK,
            LockKind::Write => libc::F_WRLCK,
        };
        set_lock(handle, kind, length)
    }

    async fn unlock(&self, handle: &OwnedFd, length: u64) -> Result<(), OperationError> {
        set_lock(handle, libc::F_UNLCK, length)
    }

    async fn stat(&self, path: &PathBuffer) -> Result<(), OperationError> {
        fs::statat(self.root, path.as_c_str(), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    }

    async fn rename(&self, from: &PathBuffer, to: &PathBuffer) -> Result<(), OperationError> {
        Ok(fs::renameat(self.root, from.as_c_str(), self.root, to.as_c_str())?)
    }

    async fn unlink(&self, path: &PathBuffer) -> Result<(), OperationError> {
        Ok(fs::unlinkat(self.root, path.as_c_str(), AtFlags::empty())?)
    }

    async fn readdir(&self, path: &PathBuffer) -> Result<usize, OperationError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = retry(|| fs::openat(self.root, path.as_c_str(), flags, Mode::empty()))?;
        let mut buffer = [MaybeUninit::<u8>::uninit(); 32 << 10];
        let mut entries = fs::RawDir::new(directory.as_fd(), &mut buffer);
        let mut count = 0;
        while let Some(entry) = entries.next() {
            entry?;
            count += 1;
        }
        Ok(count)
    }

    async fn mkdir(&self, path: &PathBuffer) -> Result<(), OperationError> {
        Ok(fs::mkdirat(self.root, path.as_c_str(), Mode::from_raw_mode(0o755))?)
    }

    async fn rmdir(&self, path: &PathBuffer) -> Result<(), OperationError> {
        Ok(fs::unlinkat(self.root, path.as_c_str(), AtFlags::REMOVEDIR)?)
    }

    async fn sleep_until(&self, clock: &Clock, time: Ticks) {
        clock.wait_until(time, 50_000);
    }
}

fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

fn last_error() -> OperationError {
    OperationError::Os(std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO))
}

/// Sets a lock owned by the open file description, so that workers of one process exclude each other as processes do.
fn set_lock(handle: &OwnedFd, kind: libc::c_int, length: u64) -> Result<(), OperationError> {
    let request = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: i64::try_from(length).map_err(|_| OperationError::Os(libc::EOVERFLOW))?,
        l_pid: 0,
    };
    loop {
        // SAFETY: the descriptor is open and `request` is a valid `struct flock` that outlives the call.
        let result = unsafe { libc::fcntl(handle.as_raw_fd(), libc::F_OFD_SETLKW, &raw const request) };
        match result {
            0 => return Ok(()),
            _ => match last_error() {
                OperationError::Os(libc::EINTR) => {}
                error => return Err(error),
            },
        }
    }
}
