//! The POSIX engine: system calls on a directory. Every call blocks its thread.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, IntoRawFd as _, OwnedFd};
use std::time::Duration;

use rustix::fs::{
    self, Access, AtFlags, FallocateFlags, Mode, OFlags, SeekFrom, Timespec, Timestamps, XattrFlags,
};
use rustix::io::Errno;

use crate::engine::{Engine, Files};
use crate::files::PathBuffer;
use crate::lane::{Job, Lane, Outcome};
use crate::model::LockKind;
use crate::operation_error::OperationError;
use crate::program::Instruction;
use crate::program::flags::OpenFlags;
use crate::rendezvous::Bell;
use benchmaster_clock::{Clock, Ticks};

mod beneath;
#[cfg(test)]
mod tests;

use beneath::Resolved;

/// O_DSYNC. What rustix calls so is O_SYNC on Linux, which flushes metadata as well.
const DSYNC: OFlags = OFlags::from_bits_retain(libc::O_DSYNC.cast_unsigned());

/// The longest extended attribute, and list of their names, on Linux.
const LONGEST_XATTR: usize = 64 << 10;
/// The attribute by its full name.
const XATTR_NAME: &CStr = c"user.benchmaster";
/// Bytes asked for by one `copy_file_range`, which may do less.
const COPY_AT_ONCE: usize = 1 << 30;

/// See the [module](self). All paths are relative to `root`, so that a path is never resolved from the top again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PosixEngine<'a> {
    root: BorrowedFd<'a>,
    /// Whether the tree has symbolic links that may lead out of it.
    has_links: bool,
}

impl<'a> PosixEngine<'a> {
    /// An engine on an open directory.
    pub(crate) fn new(root: BorrowedFd<'a>) -> Self {
        Self { root, has_links: false }
    }

    /// An engine on an open directory that no path leaves, whatever links are made in it. Paths cost a system call more.
    pub(crate) fn beneath(root: BorrowedFd<'a>) -> Self {
        Self { root, has_links: true }
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
        self.open_at(path, bits, Mode::from_raw_mode(0o644))
    }

    fn open_at(&self, path: &PathBuffer, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        if self.has_links {
            return beneath::open(self.root, path, flags, mode);
        }
        retry(|| fs::openat(self.root, path.as_c_str(), flags, mode))
    }

    /// Where a path is, for calls that do not follow a link at its end.
    #[inline]
    fn entry<'p>(&'p self, path: &'p PathBuffer) -> Result<Resolved<'p>, Errno> {
        if self.has_links { Resolved::entry(self.root, path) } else { Ok(Resolved::plain(self.root, path)) }
    }

    /// What a path leads to, for calls that follow links.
    #[inline]
    fn object<'p>(&'p self, path: &'p PathBuffer) -> Result<Resolved<'p>, Errno> {
        if self.has_links { Resolved::object(self.root, path) } else { Ok(Resolved::plain(self.root, path)) }
    }
}

impl PosixEngine<'_> {
    /// Lists a directory and visits every entry but `.` and `..`; returns the number of all.
    fn list(
        &self,
        path: &PathBuffer,
        visit: impl Fn(&OwnedFd, &CStr) -> Result<(), Errno>,
    ) -> Result<usize, OperationError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = self.open_at(path, flags, Mode::empty())?;
        let mut buffer = [MaybeUninit::<u8>::uninit(); 32 << 10];
        let mut entries = fs::RawDir::new(directory.as_fd(), &mut buffer);
        let mut count = 0;
        while let Some(entry) = entries.next() {
            let entry = entry?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                visit(&directory, entry.file_name())?;
            }
            count += 1;
        }
        Ok(count)
    }
}

impl Files for PosixEngine<'_> {
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
        let at = self.entry(path)?;
        fs::statat(&at, at.name(), AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(())
    }

    async fn rename(&self, from: &PathBuffer, to: &PathBuffer) -> Result<(), OperationError> {
        let (from, to) = (self.entry(from)?, self.entry(to)?);
        Ok(fs::renameat(&from, from.name(), &to, to.name())?)
    }

    async fn unlink(&self, path: &PathBuffer) -> Result<(), OperationError> {
        let at = self.entry(path)?;
        Ok(fs::unlinkat(&at, at.name(), AtFlags::empty())?)
    }

    async fn readdir(&self, path: &PathBuffer) -> Result<usize, OperationError> {
        self.list(path, |_, _| Ok(()))
    }

    async fn mkdir(&self, path: &PathBuffer) -> Result<(), OperationError> {
        let at = self.entry(path)?;
        Ok(fs::mkdirat(&at, at.name(), Mode::from_raw_mode(0o755))?)
    }

    async fn rmdir(&self, path: &PathBuffer) -> Result<(), OperationError> {
        let at = self.entry(path)?;
        Ok(fs::unlinkat(&at, at.name(), AtFlags::REMOVEDIR)?)
    }

    async fn truncate(&self, handle: &OwnedFd, size: u64) -> Result<(), OperationError> {
        Ok(retry(|| fs::ftruncate(handle, size))?)
    }

    async fn allocate(&self, handle: &OwnedFd, length: u64) -> Result<(), OperationError> {
        Ok(retry(|| fs::fallocate(handle, FallocateFlags::empty(), 0, length))?)
    }

    async fn seek_data(&self, handle: &OwnedFd) -> Result<(), OperationError> {
        match fs::seek(handle, SeekFrom::Data(0)) {
            // There are none.
            Ok(_) | Err(Errno::NXIO) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    async fn fstat(&self, handle: &OwnedFd) -> Result<(), OperationError> {
        fs::fstat(handle)?;
        Ok(())
    }

    async fn chmod(&self, path: &PathBuffer, mode: u32) -> Result<(), OperationError> {
        let at = self.object(path)?;
        Ok(fs::chmodat(&at, at.name(), Mode::from_raw_mode(mode), AtFlags::empty())?)
    }

    async fn utimes(&self, path: &PathBuffer) -> Result<(), OperationError> {
        let now = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW };
        let times = Timestamps { last_access: now, last_modification: now };
        let at = self.object(path)?;
        Ok(fs::utimensat(&at, at.name(), &times, AtFlags::empty())?)
    }

    async fn access(&self, path: &PathBuffer) -> Result<(), OperationError> {
        let wanted = Access::READ_OK | Access::WRITE_OK;
        let at = self.object(path)?;
        Ok(fs::accessat(&at, at.name(), wanted, AtFlags::empty())?)
    }

    async fn symlink(&self, target: &[u8], path: &PathBuffer) -> Result<(), OperationError> {
        let at = self.entry(path)?;
        Ok(fs::symlinkat(target, &at, at.name())?)
    }

    async fn readlink(&self, path: &PathBuffer) -> Result<(), OperationError> {
        let mut target = [MaybeUninit::<u8>::uninit(); 4096];
        let at = self.entry(path)?;
        fs::readlinkat_raw(&at, at.name(), &mut target[..])?;
        Ok(())
    }

    async fn link(&self, from: &PathBuffer, to: &PathBuffer) -> Result<(), OperationError> {
        let (from, to) = (self.entry(from)?, self.entry(to)?);
        Ok(fs::linkat(&from, from.name(), &to, to.name(), AtFlags::empty())?)
    }

    async fn copy(&self, from: &PathBuffer, to: &PathBuffer) -> Result<(), OperationError> {
        let source = self.open_file(from, OpenFlags::default(), false)?;
        let flags = OpenFlags { write: true, write_only: true, truncate: true, ..OpenFlags::default() };
        let copy = self.open_file(to, flags, true)?;
        let copied = loop {
            match retry(|| fs::copy_file_range(&source, None, &copy, None, COPY_AT_ONCE)) {
                Ok(0) => break Ok(()),
                Ok(_) => {}
                Err(error) => break Err(error.into()),
            }
        };
        copied.and(self.close(copy).await)
    }

    async fn set_xattr(&self, path: &PathBuffer, value: &[u8]) -> Result<(), OperationError> {
        let at = self.entry(path)?;
        Ok(fs::lsetxattr(at.absolute().as_c_str(), XATTR_NAME, value, XattrFlags::empty())?)
    }

    async fn get_xattr(&self, path: &PathBuffer) -> Result<usize, OperationError> {
        let mut value = [MaybeUninit::<u8>::uninit(); LONGEST_XATTR];
        let at = self.entry(path)?;
        Ok(fs::lgetxattr(at.absolute().as_c_str(), XATTR_NAME, &mut value[..])
            .map(|(value, _)| value.len())?)
    }

    async fn list_xattrs(&self, path: &PathBuffer) -> Result<usize, OperationError> {
        let mut names = [MaybeUninit::<u8>::uninit(); LONGEST_XATTR];
        let at = self.entry(path)?;
        Ok(fs::llistxattr(at.absolute().as_c_str(), &mut names[..]).map(|(names, _)| names.len())?)
    }

    async fn remove_xattr(&self, path: &PathBuffer) -> Result<(), OperationError> {
        let at = self.entry(path)?;
        Ok(fs::lremovexattr(at.absolute().as_c_str(), XATTR_NAME)?)
    }

    async fn readdir_stat(&self, path: &PathBuffer) -> Result<usize, OperationError> {
        self.list(path, |directory, name| {
            fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
            Ok(())
        })
    }
}

impl Engine for PosixEngine<'_> {
    type Handle = OwnedFd;
    type Files = Self;

    fn files(&self) -> &Self {
        self
    }

    #[inline]
    async fn read(&self, handle: &OwnedFd, buffer: &mut [u8], offset: u64) -> Result<usize, OperationError> {
        Ok(retry(|| rustix::io::pread(handle, &mut *buffer, offset))?)
    }

    #[inline]
    async fn write(&self, handle: &OwnedFd, buffer: &[u8], offset: u64) -> Result<usize, OperationError> {
        Ok(retry(|| rustix::io::pwrite(handle, buffer, offset))?)
    }

    async fn listen(&self, bell: &Bell, seen: u64, clock: &Clock, time: Ticks) {
        bell.wait(seen, Duration::from_nanos(clock.nanos(clock.now(), time)));
    }

    async fn sleep_until(&self, clock: &Clock, time: Ticks) {
        clock.wait_until(time, 50_000);
    }

    async fn replay(
        &self,
        lane: &mut Lane<OwnedFd>,
        job: &Job<'_, '_, Self>,
        instruction: &Instruction,
    ) -> Outcome {
        lane.replay(job, instruction).await
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
