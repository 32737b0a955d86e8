//! The NFS engine: operations on an export by the user-space client. Any number of streams of one thread have operations
//! outstanding at once, each as a task of the thread's reactor.
//!
//! Paths begin at the export, so that they begin with the working directory. `direct` has no meaning: without the client's
//! cache every read and write goes to the server anyway.

use std::future::{Future, poll_fn};
use std::ops::Range as Bytes;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use benchmaster_nfs_client::buffer::Buffer;
use benchmaster_nfs_client::error::NfsError;
use benchmaster_nfs_client::mount::{self, File, Mount};
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::types::{AccessBits, Entry, LockKind as NfsLock, Range, SetAttributes, SetTime};

use crate::engine::{Engine, Files, INVALID, Names, XATTR};
use crate::files::PathBuffer;
use crate::lane::{Job, Lane, Outcome};
use crate::model::{LockKind, OperationKind};
use crate::operation_error::OperationError;
use crate::program::Instruction;
use crate::program::flags::OpenFlags;
use crate::rendezvous::Bell;
use benchmaster_clock::{Clock, Ticks};

#[derive(Debug, Clone, Copy)]
pub(crate) struct NfsEngine<'a> {
    reactor: &'a Reactor,
    mount: &'a Mount,
    /// Ends of the phases; 0 once the run is stopped.
    ends: &'a [AtomicU64],
}

impl<'a> NfsEngine<'a> {
    /// An engine on a mounted export. Its futures are to be polled by `reactor`, which is the mount's.
    pub(crate) fn new(reactor: &'a Reactor, mount: &'a Mount) -> Self {
        Self { reactor, mount, ends: &[] }
    }

    /// The same in a run that can be stopped: one of these is set to 0 then.
    pub(crate) fn until(self, ends: &'a [AtomicU64]) -> Self {
        Self { ends, ..self }
    }
}

/// Carries out an operation that a server can draw out without end: it ends with the run, with EINTR.
async fn unless_stopped<T>(
    ends: &[AtomicU64],
    operation: impl Future<Output = Result<T, NfsError>>,
) -> Result<T, OperationError> {
    let mut operation = pin!(operation);
    poll_fn(|context| {
        if ends.iter().any(|end| end.load(Ordering::Relaxed) == 0) {
            return Poll::Ready(Err(OperationError::Os(libc::EINTR)));
        }
        operation.as_mut().poll(context).map(|result| Ok(result?))
    })
    .await
}

impl From<NfsError> for OperationError {
    fn from(error: NfsError) -> Self {
        match error {
            NfsError::TooManyEntries(most) => Self::TooManyEntries(most),
            error => Self::Os(error.errno()),
        }
    }
}

/// The flags of the client that mean the same.
fn flags_of(flags: OpenFlags, create: bool) -> mount::OpenFlags {
    mount::OpenFlags {
        read: !flags.write_only,
        write: flags.write || flags.write_only,
        create,
        exclusive: flags.exclusive && create,
        truncate: flags.truncate,
        append: flags.append,
        sync: flags.sync,
        dsync: flags.dsync,
        ..mount::OpenFlags::READ
    }
}

impl NfsEngine<'_> {
    /// Lists a directory and reads the attributes of all that is in it.
    async fn readdir_stat(&self, path: &[u8]) -> Result<(), OperationError> {
        let mut without = Vec::new();
        let mut visit = |entry: &Entry<'_>| {
            if entry.attributes.is_none() {
                without.push(entry.name.to_vec());
            }
        };
        unless_stopped(self.ends, self.mount.readdir_plus(path, &mut visit)).await?;
        // Version 2 has no attributes in lists, and other servers may leave some out.
        for name in without {
            match self.mount.stat(&[path, b"/", &name].concat()).await {
                // Another worker has removed it since the directory was read.
                Err(error) if error.errno() == libc::ENOENT => {}
                found => _ = found?,
            }
        }
        Ok(())
    }
}

impl Files for NfsEngine<'_> {
    type Handle = File;

    async fn open(&self, path: &PathBuffer, flags: OpenFlags, create: bool) -> Result<File, OperationError> {
        Ok(self.mount.open(path.bytes(), &flags_of(flags, create)).await?)
    }

    async fn close(&self, handle: File) -> Result<(), OperationError> {
        Ok(self.mount.close(handle).await?)
    }

    async fn on_open(
        &self,
        kind: OperationKind,
        handle: &File,
        lock: LockKind,
        amount: u64,
    ) -> Result<(), OperationError> {
        // It begins at the start of the file; of locks a length of 0 means all of it in both worlds.
        let range = Range { offset: 0, length: amount };
        match kind {
            OperationKind::Fsync => self.mount.fsync(handle).await?,
            OperationKind::Fdatasync => self.mount.fdatasync(handle).await?,
            OperationKind::Lock => {
                let lock = match lock {
                    LockKind::Read => NfsLock::Read,
                    LockKind::Write => NfsLock::Write,
                };
                self.mount.lock(handle, lock, range, true).await?;
            }
            OperationKind::Unlock => self.mount.unlock(handle, range).await?,
            OperationKind::Truncate => self.mount.truncate_file(handle, amount).await?,
            OperationKind::Allocate => self.mount.allocate(handle, range).await?,
            OperationKind::SeekData => _ = self.mount.seek_data(handle, 0).await?,
            OperationKind::Fstat => _ = self.mount.stat_file(handle).await?,
            _ => return Err(INVALID),
        }
        Ok(())
    }

    async fn by_name(&self, kind: OperationKind, names: &Names<'_>) -> Result<(), OperationError> {
        let (path, other, content) = (names.path.bytes(), names.other.bytes(), names.content);
        let unchanged = SetAttributes::default();
        match kind {
            OperationKind::Stat => _ = self.mount.stat(path).await?,
            OperationKind::Rename => self.mount.rename(path, other).await?,
            OperationKind::Unlink => self.mount.remove(path).await?,
            OperationKind::Readdir => {
                unless_stopped(self.ends, self.mount.readdir(path, &mut |_| ())).await?;
            }
            OperationKind::ReaddirStat => self.readdir_stat(path).await?,
            OperationKind::Mkdir => self.mount.mkdir(path, 0o755).await?,
            OperationKind::Rmdir => self.mount.rmdir(path).await?,
            OperationKind::Chmod => {
                let set = SetAttributes { mode: Some(names.mode), ..unchanged };
                self.mount.set_attributes(path, &set).await?;
            }
            OperationKind::Utimes => {
                let now = Some(SetTime::Now);
                let set = SetAttributes { accessed: now, modified: now, ..unchanged };
                self.mount.set_attributes(path, &set).await?;
            }
            OperationKind::Access => {
                let wanted = AccessBits(AccessBits::READ | AccessBits::MODIFY | AccessBits::EXTEND);
                if self.mount.access(path, wanted).await? != wanted {
                    return Err(OperationError::Os(libc::EACCES));
                }
            }
            OperationKind::Symlink => self.mount.symlink(content, path).await?,
            OperationKind::Readlink => _ = self.mount.readlink(path).await?,
            OperationKind::Link => self.mount.link(path, other).await?,
            OperationKind::Copy => _ = self.mount.copy(path, other).await?,
            OperationKind::Setxattr => self.mount.set_xattr(path, XATTR.as_bytes(), content).await?,
            OperationKind::Getxattr => _ = self.mount.get_xattr(path, XATTR.as_bytes()).await?,
            OperationKind::Listxattr => self.mount.list_xattrs(path, &mut |_| ()).await?,
            OperationKind::Removexattr => self.mount.remove_xattr(path, XATTR.as_bytes()).await?,
            _ => return Err(INVALID),
        }
        Ok(())
    }
}

impl Engine for NfsEngine<'_> {
    type Handle = File;
    type Files = Self;

    fn files(&self) -> &Self {
        self
    }

    #[inline]
    async fn read(&self, handle: &File, buffer: &mut [u8], offset: u64) -> Result<usize, OperationError> {
        Ok(self.mount.read(handle, buffer, offset).await?)
    }

    #[inline]
    async fn write(&self, handle: &File, buffer: &[u8], offset: u64) -> Result<usize, OperationError> {
        Ok(self.mount.write(handle, buffer, offset).await?)
    }

    #[inline]
    async fn write_buffer(
        &self,
        handle: &File,
        buffer: &Buffer,
        bytes: Bytes<usize>,
        offset: u64,
    ) -> Result<usize, OperationError> {
        Ok(self.mount.write_buffer(handle, buffer, bytes, offset).await?)
    }

    #[inline]
    fn renew(&self, buffer: &mut Buffer) {
        self.mount.renew(buffer);
    }

    async fn listen(&self, bell: &Bell, seen: u64, clock: &Clock, time: Ticks) {
        if bell.rings() == seen {
            // A ring after this look is only heard by the reactor when no task is polled.
            let end = Instant::now() + Duration::from_nanos(clock.nanos(clock.now(), time));
            self.reactor.until(end, self.reactor.notified()).await;
        }
    }

    async fn sleep_until(&self, clock: &Clock, time: Ticks) {
        super::sleep_until(self.reactor, clock, time).await;
    }

    async fn replay(
        &self,
        lane: &mut Lane<File>,
        job: &Job<'_, '_, Self>,
        instruction: &Instruction,
    ) -> Outcome {
        lane.replay(job, instruction).await
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_listing_without_end_ends_with_the_run() {
        let ends = [AtomicU64::new(u64::MAX), AtomicU64::new(5)];
        let pages = Cell::new(0);
        let endless = poll_fn(|_| {
            pages.set(pages.get() + 1);
            Poll::<Result<(), NfsError>>::Pending
        });
        let mut listing = pin!(unless_stopped(&ends, endless));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..10 {
            assert!(listing.as_mut().poll(&mut context).is_pending());
        }
        ends[0].store(0, Ordering::Relaxed);
        let stopped = Poll::Ready(Err(OperationError::Os(libc::EINTR)));
        assert_eq!((listing.as_mut().poll(&mut context), pages.get()), (stopped, 10));
        let many = OperationError::from(NfsError::TooManyEntries(7));
        assert_eq!(many.to_string(), "the directory has more than 7 entries");
    }
}
