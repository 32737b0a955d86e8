//! The io_uring engine: many reads and writes of one thread outstanding at once; everything else is done by system
//! calls, as in the [POSIX engine](super::posix).
//!
//! Streams of a worker are futures. The [`Ring`] polls those whose operation has completed, collects what they submit,
//! and enters the kernel once for all of it.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use io_uring::{IoUring, opcode, squeue, types};

use crate::clock::{Clock, Ticks};
use crate::engine::posix::PosixEngine;
use crate::engine::{Engine, OperationError};
use crate::files::PathBuffer;
use crate::model::LockKind;
use crate::program::OpenFlags;

/// One thread's ring and the state of its streams.
pub struct Ring {
    ring: RefCell<IoUring>,
    slots: Box<[Slot]>,
    ready: RefCell<Vec<u32>>,
    outstanding: Cell<usize>,
    sleeping: Cell<u32>,
}

/// What one stream waits for.
#[derive(Debug, Default)]
struct Slot {
    state: Cell<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Idle,
    Submitted,
    Done(i32),
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("slots", &self.slots).finish_non_exhaustive()
    }
}

impl Ring {
    /// A ring for `streams` streams, each with at most one operation outstanding.
    ///
    /// # Errors
    /// When the kernel has no io_uring or does not allow it.
    pub fn new(streams: u32) -> std::io::Result<Self> {
        let ring = IoUring::builder().setup_coop_taskrun().setup_single_issuer().build(streams.max(1)).or_else(|_| {
            // Kernels before 6.0 know neither flag.
            IoUring::new(streams.max(1))
        })?;
        Ok(Self {
            ring: RefCell::new(ring),
            slots: (0..streams).map(|_| Slot::default()).collect(),
            ready: RefCell::new(Vec::with_capacity(streams as usize)),
            outstanding: Cell::new(0),
            sleeping: Cell::new(0),
        })
    }

    /// Runs all streams to their ends; returns their results in order. `streams[i]` must use an engine made for
    /// stream `i` of this ring.
    ///
    /// # Errors
    /// When the kernel refuses to take or wait for operations.
    pub fn run<F: Future>(&self, streams: &mut [Pin<Box<F>>]) -> std::io::Result<Vec<F::Output>> {
        let _drain = Drain(self);
        let mut results: Vec<Option<F::Output>> = streams.iter().map(|_| None).collect();
        let mut context = Context::from_waker(Waker::noop());
        let mut left = streams.len();
        let mut turn: Vec<u32> = (0..streams.len() as u32).collect();
        let mut sleepers: Vec<u32> = Vec::with_capacity(streams.len());
        while left > 0 {
            for &number in &turn {
                let at = number as usize;
                if results[at].is_some() {
                    continue;
                }
                let before = self.sleeping.get();
                match streams[at].as_mut().poll(&mut context) {
                    Poll::Ready(result) => {
                        results[at] = Some(result);
                        left -= 1;
                    }
                    Poll::Pending if self.sleeping.get() > before => sleepers.push(number),
                    Poll::Pending => {}
                }
            }
            turn.clear();
            if left == 0 {
                break;
            }
            self.sleeping.set(0);
            turn.append(&mut sleepers);
            if self.outstanding.get() > 0 {
                // While some stream waits for a time, never block in the kernel.
                self.enter(usize::from(turn.is_empty()))?;
            }
            turn.append(&mut self.ready.borrow_mut());
        }
        Ok(results.into_iter().flatten().collect())
    }

    /// Submits what was pushed, waits for `wait` completions, and notes which streams can go on.
    fn enter(&self, wait: usize) -> std::io::Result<()> {
        let mut ring = self.ring.borrow_mut();
        loop {
            match ring.submit_and_wait(wait) {
                Ok(_) => break,
                Err(error) if matches!(error.raw_os_error(), Some(libc::EINTR | libc::EAGAIN | libc::EBUSY)) => {}
                Err(error) => return Err(error),
            }
        }
        let mut ready = self.ready.borrow_mut();
        for completion in ring.completion() {
            let stream = completion.user_data() as u32;
            if let Some(slot) = self.slots.get(stream as usize) {
                slot.state.set(State::Done(completion.result()));
                self.outstanding.set(self.outstanding.get() - 1);
                ready.push(stream);
            }
        }
        Ok(())
    }

    /// # Safety
    /// The buffer and the descriptor in `entry` must stay valid until the stream's slot says `Done`.
    unsafe fn push(&self, stream: u32, entry: squeue::Entry) -> Result<(), OperationError> {
        let entry = entry.user_data(stream.into());
        let mut ring = self.ring.borrow_mut();
        // SAFETY: passed on to the caller.
        let pushed = unsafe { ring.submission().push(&entry) };
        // The queue has one place per stream, and a stream has one operation outstanding.
        pushed.map_err(|_| OperationError::Os(libc::EBUSY))?;
        self.slots[stream as usize].state.set(State::Submitted);
        self.outstanding.set(self.outstanding.get() + 1);
        Ok(())
    }
}

/// Waits for everything outstanding when [`Ring::run`] is left early, by an error or a panic: the kernel may still
/// write into the streams' buffers.
struct Drain<'a>(&'a Ring);

impl Drop for Drain<'_> {
    fn drop(&mut self) {
        while self.0.outstanding.get() > 0 {
            if self.0.enter(1).is_err() {
                // Nothing can make the buffers safe to free; the run in flight is repeated after a restart.
                std::process::abort();
            }
        }
    }
}

/// One stream's engine on a [`Ring`].
#[derive(Debug)]
pub struct UringEngine<'a> {
    ring: &'a Ring,
    stream: u32,
    posix: PosixEngine<'a>,
}

impl<'a> UringEngine<'a> {
    /// The engine of stream number `stream`.
    pub fn new(ring: &'a Ring, stream: u32, posix: PosixEngine<'a>) -> Self {
        Self { ring, stream, posix }
    }

    async fn submit(&self, entry: squeue::Entry) -> Result<usize, OperationError> {
        let slot = &self.ring.slots[self.stream as usize];
        // SAFETY: the entry's buffer and descriptor are borrowed by the caller's future. [`Ring::run`] polls it to its
        // end, and is not left (see `Drain`) before the completion of this operation has arrived.
        unsafe { self.ring.push(self.stream, entry)? };
        let result = poll_fn(|_| match slot.state.get() {
            State::Done(result) => Poll::Ready(result),
            _ => Poll::Pending,
        })
        .await;
        slot.state.set(State::Idle);
        usize::try_from(result).map_err(|_| OperationError::Os(-result))
    }
}

impl Engine for UringEngine<'_> {
    type Handle = OwnedFd;

    async fn open(&self, path: &PathBuffer, flags: OpenFlags) -> Result<OwnedFd, OperationError> {
        self.posix.open(path, flags).await
    }
    async fn create(&self, path: &PathBuffer, flags: OpenFlags) -> Result<OwnedFd, OperationError> {
        self.posix.create(path, flags).await
    }
    async fn close(&self, handle: OwnedFd) -> Result<(), OperationError> {
        self.posix.close(handle).await
    }
    #[inline]
    async fn read(&self, handle: &OwnedFd, buffer: &mut [u8], offset: u64) -> Result<usize, OperationError> {
        let length = u32::try_from(buffer.len()).map_err(|_| OperationError::Os(libc::EINVAL))?;
        let fd = types::Fd(handle.as_raw_fd());
        self.submit(opcode::Read::new(fd, buffer.as_mut_ptr(), length).offset(offset).build()).await
    }
    #[inline]
    async fn write(&self, handle: &OwnedFd, buffer: &[u8], offset: u64) -> Result<usize, OperationError> {
        let length = u32::try_from(buffer.len()).map_err(|_| OperationError::Os(libc::EINVAL))?;
        let fd = types::Fd(handle.as_raw_fd());
        self.submit(opcode::Write::new(fd, buffer.as_ptr(), length).offset(offset).build()).await
    }
    async fn fsync(&self, handle: &OwnedFd) -> Result<(), OperationError> {
        self.posix.fsync(handle).await
    }
    async fn fdatasync(&self, handle: &OwnedFd) -> Result<(), OperationError> {
        self.posix.fdatasync(handle).await
    }
    async fn lock(&self, handle: &OwnedFd, kind: LockKind, length: u64) -> Result<(), OperationError> {
        self.posix.lock(handle, kind, length).await
    }
    async fn unlock(&self, handle: &OwnedFd, length: u64) -> Result<(), OperationError> {
        self.posix.unlock(handle, length).await
    }
    async fn stat(&self, path: &PathBuffer) -> Result<(), OperationError> {
        self.posix.stat(path).await
    }
    async fn rename(&self, from: &PathBuffer, to: &PathBuffer) -> Result<(), OperationError> {
        self.posix.rename(from, to).await
    }
    async fn unlink(&self, path: &PathBuffer) -> Result<(), OperationError> {
        self.posix.unlink(path).await
    }
    async fn readdir(&self, path: &PathBuffer) -> Result<usize, OperationError> {
        self.posix.readdir(path).await
    }
    async fn mkdir(&self, path: &PathBuffer) -> Result<(), OperationError> {
        self.posix.mkdir(path).await
    }
    async fn rmdir(&self, path: &PathBuffer) -> Result<(), OperationError> {
        self.posix.rmdir(path).await
    }

    async fn sleep_until(&self, clock: &Clock, time: Ticks) {
        poll_fn(|_| match clock.now() >= time {
            true => Poll::Ready(()),
            false => {
                self.ring.sleeping.set(self.ring.sleeping.get() + 1);
                std::hint::spin_loop();
                Poll::Pending
            }
        })
        .await;
    }
}
