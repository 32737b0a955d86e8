//! The POSIX engine: system calls on a directory. Every call blocks its thread.

use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, IntoRawFd as _, OwnedFd};
use std::time::Duration;

use rustix::fs::{
    self, Access, AtFlags, FallocateFlags, Mode, OFlags, SeekFrom, Timespec, Timestamps, XattrFlags,
};
use rustix::io::Errno;

use crate::engine::{Engine, Files, INVALID, Names};
use crate::files::PathBuffer;
use crate::lane::{Job, Lane, Outcome};
use crate::model::{LockKind, OperationKind};
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

// Calls with large buffers are apart: their stack frames are not those of calls that only need a name.
impl PosixEngine<'_> {
    /// Lists a directory and visits every entry but `.` and `..`; returns the number of all.
    #[inline(never)]
    fn list(
        &self,
        path: &PathBuffer,
        visit: impl Fn(&OwnedFd, &CStr) -> Result<(), Errno>,
    ) -> Result<usize, Errno> {
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

    fn copy(&self, from: &PathBuffer, to: &PathBuffer) -> Result<(), OperationError> {
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
        copied.and(close(copy))
    }
}

/// Reads the value of the extended attribute.
#[inline(never)]
fn get_xattr(at: &Resolved<'_>) -> Result<usize, Errno> {
    let mut value = [MaybeUninit::<u8>::uninit(); LONGEST_XATTR];
    fs::lgetxattr(at.absolute().as_c_str(), XATTR_NAME, &mut value[..]).map(|(value, _)| value.len())
}

#[inline(never)]
fn list_xattrs(at: &Resolved<'_>) -> Result<usize, Errno> {
    let mut names = [MaybeUninit::<u8>::uninit(); LONGEST_XATTR];
    fs::llistxattr(at.absolute().as_c_str(), &mut names[..]).map(|(names, _)| names.len())
}

#[inline(never)]
fn readlink(at: &Resolved<'_>) -> Result<usize, Errno> {
    let mut target = [MaybeUninit::<u8>::uninit(); 4096];
    fs::readlinkat_raw(at, at.name(), &mut target[..]).map(|(target, _)| target.len())
}

fn close(handle: OwnedFd) -> Result<(), OperationError> {
    // An NFS client reports failed writes at close, so its result must not be lost as `drop` would.
    // SAFETY: the descriptor is owned, given up by `into_raw_fd`, and closed exactly once here.
    match unsafe { libc::close(handle.into_raw_fd()) } {
        0 => Ok(()),
        _ => Err(last_error()),
    }
}

impl Files for PosixEngine<'_> {
    type Handle = OwnedFd;

    async fn open(
        &self,
        path: &PathBuffer,
        flags: OpenFlags,
        create: bool,
    ) -> Result<OwnedFd, OperationError> {
        Ok(self.open_file(path, flags, create)?)
    }

    async fn close(&self, handle: OwnedFd) -> Result<(), OperationError> {
        close(handle)
    }

    async fn on_open(
        &self,
        kind: OperationKind,
        handle: &OwnedFd,
        lock: LockKind,
        amount: u64,
    ) -> Result<(), OperationError> {
        match kind {
            OperationKind::Fsync => retry(|| fs::fsync(handle))?,
            OperationKind::Fdatasync => retry(|| fs::fdatasync(handle))?,
            OperationKind::Lock => match lock {
                LockKind::Read => set_lock(handle, libc::F_RDLCK, amount)?,
                LockKind::Write => set_lock(handle, libc::F_WRLCK, amount)?,
            },
            OperationKind::Unlock => set_lock(handle, libc::F_UNLCK, amount)?,
            OperationKind::Truncate => retry(|| fs::ftruncate(handle, amount))?,
            OperationKind::Allocate => retry(|| fs::fallocate(handle, FallocateFlags::empty(), 0, amount))?,
            OperationKind::SeekData => match fs::seek(handle, SeekFrom::Data(0)) {
                // There are none.
                Ok(_) | Err(Errno::NXIO) => {}
                Err(error) => return Err(error.into()),
            },
            OperationKind::Fstat => _ = fs::fstat(handle)?,
            _ => return Err(INVALID),
        }
        Ok(())
    }

    async fn by_name(&self, kind: OperationKind, names: &Names<'_>) -> Result<(), OperationError> {
        let Names { path, other, content, mode } = *names;
        let at = match kind {
            OperationKind::Readdir => return Ok(self.list(path, |_, _| Ok(())).map(drop)?),
            OperationKind::ReaddirStat => {
                let stat = |directory: &OwnedFd, name: &CStr| {
                    match fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                        // Another worker has removed it since the directory was read.
                        Err(Errno::NOENT) => Ok(()),
                        found => found.map(drop),
                    }
                };
                return Ok(self.list(path, stat).map(drop)?);
            }
            OperationKind::Copy => return self.copy(path, other),
            // These follow links.
            OperationKind::Chmod | OperationKind::Utimes | OperationKind::Access => self.object(path)?,
            _ => self.entry(path)?,
        };
        match kind {
            OperationKind::Stat => _ = fs::statat(&at, at.name(), AtFlags::SYMLINK_NOFOLLOW)?,
            OperationKind::Rename => {
                let to = self.entry(other)?;
                fs::renameat(&at, at.name(), &to, to.name())?;
            }
            OperationKind::Link => {
                let to = self.entry(other)?;
                fs::linkat(&at, at.name(), &to, to.name(), AtFlags::empty())?;
            }
            OperationKind::Unlink => fs::unlinkat(&at, at.name(), AtFlags::empty())?,
            OperationKind::Mkdir => fs::mkdirat(&at, at.name(), Mode::from_raw_mode(0o755))?,
            OperationKind::Rmdir => fs::unlinkat(&at, at.name(), AtFlags::REMOVEDIR)?,
            OperationKind::Chmod => {
                fs::chmodat(&at, at.name(), Mode::from_raw_mode(mode), AtFlags::empty())?;
            }
            OperationKind::Utimes => {
                let now = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_NOW };
                let times = Timestamps { last_access: now, last_modification: now };
                fs::utimensat(&at, at.name(), &times, AtFlags::empty())?;
            }
            OperationKind::Access => {
                fs::accessat(&at, at.name(), Access::READ_OK | Access::WRITE_OK, AtFlags::empty())?;
            }
            OperationKind::Symlink => fs::symlinkat(content, &at, at.name())?,
            OperationKind::Readlink => _ = readlink(&at)?,
            OperationKind::Setxattr => {
                fs::lsetxattr(at.absolute().as_c_str(), XATTR_NAME, content, XattrFlags::empty())?;
            }
            OperationKind::Getxattr => _ = get_xattr(&at)?,
            OperationKind::Listxattr => _ = list_xattrs(&at)?,
            OperationKind::Removexattr => fs::lremovexattr(at.absolute().as_c_str(), XATTR_NAME)?,
            _ => return Err(INVALID),
        }
        Ok(())
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
