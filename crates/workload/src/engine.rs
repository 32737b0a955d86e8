//! Engines: the file operations a flow is made of, carried out by system calls or by nothing.
//!
//! One trait, monomorphised into the executor: no dynamic dispatch, allocation or lock per operation. Methods are
//! asynchronous so that one flow serves engines that block (their futures are ready at once) and engines that keep many
//! operations outstanding on one thread.
//!
//! This module and [`crate::lane`] name each other: a lane runs on an engine, and an engine says whether it replays traces by
//! taking the lane ([`Engine::replay`]), so that the code of replays is compiled only for engines that have it.

use std::future::Future;
use std::time::{Duration, Instant};

use benchmaster_nfs_client::reactor::Reactor;

use crate::files::PathBuffer;
use crate::lane::{Job, Lane, Outcome};
use crate::model::LockKind;
use crate::operation_error::OperationError;
use crate::program::Instruction;
use crate::program::flags::OpenFlags;
use crate::recording::StopReason;
use crate::rendezvous::Bell;
use benchmaster_clock::{Clock, Ticks};

pub(crate) mod nfs;
pub(crate) mod null;
pub(crate) mod posix;
pub(crate) mod uring;

/// The extended attribute that workloads use, in the namespace `user`.
pub(crate) const XATTR: &str = "benchmaster";

/// The operations on names and open files that move no data, as one stream of a worker issues them. Paths are relative to
/// the working directory.
pub(crate) trait Files {
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
    fn close(&self, handle: Self::Handle) -> impl Future<Output = Result<(), OperationError>>;
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
    fn unlock(&self, handle: &Self::Handle, length: u64) -> impl Future<Output = Result<(), OperationError>>;
    /// Reads the attributes of a file.
    fn stat(&self, path: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Gives a file another name.
    fn rename(&self, from: &PathBuffer, to: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    fn unlink(&self, path: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Lists a directory; returns the number of entries.
    fn readdir(&self, path: &PathBuffer) -> impl Future<Output = Result<usize, OperationError>>;
    fn mkdir(&self, path: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    fn rmdir(&self, path: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Sets the size of an open file.
    fn truncate(&self, handle: &Self::Handle, size: u64) -> impl Future<Output = Result<(), OperationError>>;
    /// Reserves space for the first bytes of a file, which becomes at least as long.
    fn allocate(
        &self,
        handle: &Self::Handle,
        length: u64,
    ) -> impl Future<Output = Result<(), OperationError>>;
    /// Looks for the first data of a file; that there are none is no error.
    fn seek_data(&self, handle: &Self::Handle) -> impl Future<Output = Result<(), OperationError>>;
    /// Reads the attributes of an open file.
    fn fstat(&self, handle: &Self::Handle) -> impl Future<Output = Result<(), OperationError>>;
    fn chmod(&self, path: &PathBuffer, mode: u32) -> impl Future<Output = Result<(), OperationError>>;
    /// Sets both times to now.
    fn utimes(&self, path: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Asks whether a file may be read and written.
    fn access(&self, path: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Makes a symbolic link.
    fn symlink(&self, target: &[u8], path: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Reads where a symbolic link leads.
    fn readlink(&self, path: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Gives a file another name.
    fn link(&self, from: &PathBuffer, to: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Copies a file, over one that is there, without moving its data through this host.
    fn copy(&self, from: &PathBuffer, to: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Sets the extended attribute [`XATTR`].
    fn set_xattr(&self, path: &PathBuffer, value: &[u8]) -> impl Future<Output = Result<(), OperationError>>;
    /// Reads it; returns its length.
    fn get_xattr(&self, path: &PathBuffer) -> impl Future<Output = Result<usize, OperationError>>;
    /// Lists the extended attributes; returns the bytes of their names.
    fn list_xattrs(&self, path: &PathBuffer) -> impl Future<Output = Result<usize, OperationError>>;
    /// Removes the attribute [`XATTR`].
    fn remove_xattr(&self, path: &PathBuffer) -> impl Future<Output = Result<(), OperationError>>;
    /// Lists a directory and reads the attributes of all that is in it; returns the number of entries.
    fn readdir_stat(&self, path: &PathBuffer) -> impl Future<Output = Result<usize, OperationError>>;
}

/// What a stream of a worker runs on: data transfer, waiting, and the [`Files`] operations, whose code engines can share.
pub(crate) trait Engine: Sized {
    type Handle;
    /// What carries out all operations but reads and writes.
    type Files: Files<Handle = Self::Handle>;

    fn files(&self) -> &Self::Files;
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
    /// Waits until `time` on the given clock.
    fn sleep_until(&self, clock: &Clock, time: Ticks) -> impl Future<Output = ()>;
    /// Waits until `bell` has rung more than `seen` times, or until `time`, or for a shorter time.
    fn listen(&self, bell: &Bell, seen: u64, clock: &Clock, time: Ticks) -> impl Future<Output = ()>;
    /// Carries out an instruction of a replay. Only engines on which traces are replayed do anything.
    async fn replay(
        &self,
        _: &mut Lane<Self::Handle>,
        _: &Job<'_, '_, Self>,
        instruction: &Instruction,
    ) -> Outcome {
        if matches!(instruction, Instruction::PrepareReplay) {
            Outcome::Finished
        } else {
            Outcome::Stop(StopReason::Work)
        }
    }
}

/// Waits as a task.
pub(super) async fn sleep_until(reactor: &Reactor, clock: &Clock, time: Ticks) {
    // The reactor's clock is the kernel's, of which ours may differ by a little.
    loop {
        let (now, instant) = (clock.now(), Instant::now());
        if now >= time {
            return;
        }
        reactor.sleep_until(instant + Duration::from_nanos(clock.nanos(now, time))).await;
    }
}
