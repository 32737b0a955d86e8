//! Engines: the file operations a flow is made of, carried out by system calls or by nothing.
//!
//! One trait, monomorphised into the executor: no dynamic dispatch, allocation or lock per operation. Methods are
//! asynchronous so that one flow serves engines that block (their futures are ready at once) and engines that keep many
//! operations outstanding on one thread.
//!
//! This module and [`crate::lane`] name each other: a lane runs on an engine, and an engine says whether it replays traces by
//! taking the lane ([`Engine::replay`]), so that the code of replays is compiled only for engines that have it.

use std::future::Future;
use std::ops::Range;
use std::time::{Duration, Instant};

use benchmaster_nfs_client::buffer::Buffer;
use benchmaster_nfs_client::reactor::Reactor;

use crate::files::PathBuffer;
use crate::lane::{Job, Lane, Outcome};
use crate::model::{LockKind, OperationKind};
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

/// What an operation by name works on. Paths are relative to the working directory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names<'a> {
    pub(crate) path: &'a PathBuffer,
    /// Of renames, links and copies: what the file is called afterwards, or the one that is made.
    pub(crate) other: &'a PathBuffer,
    /// Where a symbolic link leads, or the value of the extended attribute.
    pub(crate) content: &'a [u8],
    pub(crate) mode: u32,
}

impl<'a> Names<'a> {
    pub(crate) fn new(path: &'a PathBuffer, other: &'a PathBuffer) -> Self {
        Self { path, other, content: &[], mode: 0 }
    }
}

/// The operations on names and open files that move no data, as one stream of a worker issues them.
pub(crate) trait Files {
    type Handle;

    /// Opens a file, which is made if `create`.
    fn open(
        &self,
        path: &PathBuffer,
        flags: OpenFlags,
        create: bool,
    ) -> impl Future<Output = Result<Self::Handle, OperationError>>;
    fn close(&self, handle: Self::Handle) -> impl Future<Output = Result<(), OperationError>>;
    /// An operation on an open file. `amount` is the size that `truncate` sets, or a number of bytes from the start of the
    /// file: those that become allocated, or those that are locked (waiting for it) or unlocked, of which 0 means all.
    fn on_open(
        &self,
        kind: OperationKind,
        handle: &Self::Handle,
        lock: LockKind,
        amount: u64,
    ) -> impl Future<Output = Result<(), OperationError>>;
    /// An operation by name that opens nothing. Those on extended attributes are on [`XATTR`].
    fn by_name(
        &self,
        kind: OperationKind,
        names: &Names<'_>,
    ) -> impl Future<Output = Result<(), OperationError>>;
}

/// The kind of operation is none of those that are done in this way.
const INVALID: OperationError = OperationError::Os(libc::EINVAL);

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
    /// The same with bytes of a buffer, to which the engine may refer for longer.
    #[inline]
    fn write_buffer(
        &self,
        handle: &Self::Handle,
        buffer: &Buffer,
        bytes: Range<usize>,
        offset: u64,
    ) -> impl Future<Output = Result<usize, OperationError>> {
        self.write(handle, &buffer[bytes], offset)
    }
    /// Before a buffer is changed: one that the engine refers to may be replaced by another with any content.
    #[inline]
    fn renew(&self, _: &mut Buffer) {}
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
