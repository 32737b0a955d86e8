//! The io_uring engine: many reads and writes of one thread outstanding at once; everything else is done by system
//! calls, as in the [POSIX engine](super::posix).
//!
//! Streams of a worker are futures. The [`Ring`] polls those whose operation has completed, collects what they submit,
//! and enters the kernel once for all of it.
//!
//! # Latencies
//!
//! Requests are submitted in batches and completions are taken in batches, but none is waited for on behalf of another: the
//! kernel is asked to return with the first completion, and what else is complete by then is taken with it. An operation
//! ends when its stream is polled, which is the next thing that happens to it.
//!
//! Some file systems cannot tell whether an operation would block (tmpfs, the kernel's NFS client): the kernel tries each in
//! vain before a thread of its own carries it out. Requests for such files are marked to go to the thread at once.
//!
//! # Soundness
//!
//! Between submission and completion the kernel reads or writes a buffer that belongs to a future of a stream, through a
//! descriptor that the future borrows. Both must stay, and Rust must not touch the buffer:
//!
//! * While the future awaits [`UringEngine::submit`] it holds the borrows of buffer and descriptor, so that nothing else
//!   can use or free them as long as the future lives and stays where it is (it is pinned).
//! * A future with an operation outstanding is not dropped: [`Ring::run`] polls every stream to its end, and when it is
//!   left early, by an error or a panic in a stream, [`Drain`] waits for all completions before the caller, who owns the
//!   streams, gets the chance to drop them.
//! * A stream must not drop the engine's futures itself once they were polled (no timeout around a read). The compiler does
//!   not check this and the former, which is why [`UringEngine::new`] is unsafe.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::{Future, poll_fn};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue, types};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::engine::Engine;
use crate::engine::posix::PosixEngine;
use crate::operation_error::OperationError;
use crate::rendezvous::Bell;
use benchmaster_clock::{Clock, Ticks};

/// Time before the end of a sleep in which the thread spins, because the kernel wakes it late by some tens of
/// microseconds.
const SPIN_NS: u64 = 50_000;

/// Time between two looks of a stream that waits for others, which must not keep the thread's other streams waiting.
const LOOK_NS: u64 = 500_000;

/// One thread's ring and the state of its streams.
pub(crate) struct Ring {
    ring: RefCell<IoUring>,
    slots: Box<[Cell<State>]>,
    /// Streams whose operation has completed.
    ready: RefCell<Vec<u32>>,
    /// Operations pushed whose completions have not arrived.
    outstanding: Cell<usize>,
    /// Nanoseconds until the first of the streams polled last wants to go on, if it sleeps.
    sleep_ns: Cell<Option<u64>>,
    /// Whether the kernel can wait for completions and a time at once (5.11).
    timed_wait: bool,
    /// Whether the files' operations always go to the kernel's threads; looked at once.
    hands_over: OnceCell<bool>,
}

/// What one stream waits for.
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
    /// A ring for `streams` streams, each with at most one operation outstanding. It belongs to the calling thread.
    ///
    /// # Errors
    /// When the kernel has no io_uring or does not allow it.
    pub(crate) fn new(streams: u32) -> io::Result<Self> {
        // Completions are best handled when this thread asks for them, and by nobody else; kernels before 6.1 cannot defer
        // them so, and those before 6.0 know neither flag.
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .build(streams.max(1))
            .or_else(|_| IoUring::builder().setup_coop_taskrun().setup_taskrun_flag().build(streams.max(1)))
            .or_else(|_| IoUring::new(streams.max(1)))?;
        Ok(Self {
            timed_wait: ring.params().is_feature_ext_arg(),
            ring: RefCell::new(ring),
            slots: (0..streams).map(|_| Cell::default()).collect(),
            ready: RefCell::new(Vec::with_capacity(streams as usize)),
            outstanding: Cell::new(0),
            sleep_ns: Cell::new(None),
            hands_over: OnceCell::new(),
        })
    }

    /// Runs all streams to their ends; returns their results in order. `streams[i]` must use an engine made for
    /// stream `i` of this ring.
    ///
    /// # Errors
    /// When the kernel refuses to take or wait for operations.
    pub(crate) fn run<F: Future>(&self, streams: &mut [Pin<Box<F>>]) -> io::Result<Vec<F::Output>> {
        let _drain = Drain(self);
        let mut results: Vec<Option<F::Output>> = streams.iter().map(|_| None).collect();
        let mut context = Context::from_waker(Waker::noop());
        let mut left = streams.len();
        let mut turn: Vec<u32> = (0..streams.len() as u32).collect();
        let mut sleepers: Vec<u32> = Vec::with_capacity(streams.len());
        while left > 0 {
            let mut soonest: Option<u64> = None;
            for &number in &turn {
                let at = number as usize;
                self.sleep_ns.set(None);
                match streams[at].as_mut().poll(&mut context) {
                    Poll::Ready(result) => {
                        results[at] = Some(result);
                        left -= 1;
                    }
                    Poll::Pending => {
                        if let Some(nanos) = self.sleep_ns.get() {
                            soonest = Some(soonest.map_or(nanos, |other| other.min(nanos)));
                            sleepers.push(number);
                        }
                    }
                }
            }
            turn.clear();
            if left == 0 {
                break;
            }
            turn.append(&mut sleepers);
            match soonest.map(|nanos| nanos.saturating_sub(SPIN_NS)) {
                None => self.enter(Wait::Completion)?,
                Some(0) => self.enter(Wait::No)?,
                Some(nanos) if self.outstanding.get() == 0 => std::thread::sleep(Duration::from_nanos(nanos)),
                Some(nanos) if self.timed_wait => self.enter(Wait::CompletionOrTime(nanos))?,
                Some(_) => self.enter(Wait::No)?,
            }
            turn.append(&mut self.ready.borrow_mut());
        }
        Ok(results.into_iter().flatten().collect())
    }

    /// Submits what was pushed, waits, and notes which streams can go on.
    fn enter(&self, wait: Wait) -> io::Result<()> {
        if self.outstanding.get() == 0 {
            return Ok(());
        }
        let mut ring = self.ring.borrow_mut();
        loop {
            let entered = match wait {
                Wait::No => ring.submit(),
                Wait::Completion => ring.submit_and_wait(1),
                Wait::CompletionOrTime(nanos) => {
                    let time = Timespec::from(Duration::from_nanos(nanos));
                    ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
                }
            };
            match entered {
                Ok(_) => break,
                Err(error) => match error.raw_os_error() {
                    // The time is over.
                    Some(libc::ETIME) => break,
                    Some(libc::EINTR | libc::EAGAIN | libc::EBUSY) => {}
                    _ => return Err(error),
                },
            }
        }
        let mut ready = self.ready.borrow_mut();
        for completion in ring.completion() {
            let stream = completion.user_data() as u32;
            if let Some(slot) = self.slots.get(stream as usize) {
                slot.set(State::Done(completion.result()));
                self.outstanding.set(self.outstanding.get() - 1);
                ready.push(stream);
            }
        }
        Ok(())
    }

    /// # Safety
    /// The buffer and the descriptor in `entry` must stay valid until the stream's slot says `Done`.
    unsafe fn push(&self, stream: u32, entry: &squeue::Entry) -> Result<(), OperationError> {
        let entry = entry.clone().user_data(stream.into());
        let mut ring = self.ring.borrow_mut();
        // SAFETY: passed on to the caller.
        let pushed = unsafe { ring.submission().push(&entry) };
        // The queue has one place per stream, and a stream has one operation outstanding.
        pushed.map_err(|_| OperationError::Os(libc::EBUSY))?;
        self.slots[stream as usize].set(State::Submitted);
        self.outstanding.set(self.outstanding.get() + 1);
        Ok(())
    }
}

/// What [`Ring::enter`] waits for.
#[derive(Debug, Clone, Copy)]
enum Wait {
    No,
    Completion,
    /// At most so many nanoseconds.
    CompletionOrTime(u64),
}

/// Waits for everything outstanding when [`Ring::run`] is left early, by an error or a panic: the kernel may still
/// write into the streams' buffers.
struct Drain<'a>(&'a Ring);

impl Drop for Drain<'_> {
    fn drop(&mut self) {
        while self.0.outstanding.get() > 0 {
            if self.0.enter(Wait::Completion).is_err() {
                // Nothing can make the buffers safe to free; the run in flight is repeated after a restart.
                std::process::abort();
            }
        }
        self.0.ready.borrow_mut().clear();
    }
}

/// One stream's engine on a [`Ring`].
#[derive(Debug)]
pub(crate) struct UringEngine<'a> {
    ring: &'a Ring,
    stream: u32,
    posix: PosixEngine<'a>,
}

impl<'a> UringEngine<'a> {
    /// The engine of stream number `stream`.
    ///
    /// # Safety
    /// Futures of this engine's `read` and `write` must only be polled by [`Ring::run`] of the same ring, as a part of
    /// the stream of this number, and must not be dropped before they are ready once they were polled, unless by dropping
    /// the stream after [`Ring::run`] has returned or unwound.
    pub(crate) unsafe fn new(ring: &'a Ring, stream: u32, posix: PosixEngine<'a>) -> Self {
        Self { ring, stream, posix }
    }

    async fn submit(&self, file: &OwnedFd, entry: squeue::Entry) -> Result<usize, OperationError> {
        let hands_over = *self.ring.hands_over.get_or_init(|| always_blocks(file));
        let flags = if hands_over { squeue::Flags::ASYNC } else { squeue::Flags::empty() };
        let entry = entry.flags(flags);
        let slot = &self.ring.slots[self.stream as usize];
        loop {
            // SAFETY: the entry's buffer and descriptor are borrowed by the caller's future, which by the contract of
            // `new` outlives the operation.
            unsafe { self.ring.push(self.stream, &entry)? };
            let result = poll_fn(|_| match slot.get() {
                State::Done(result) => Poll::Ready(result),
                State::Idle | State::Submitted => Poll::Pending,
            })
            .await;
            slot.set(State::Idle);
            match usize::try_from(result) {
                Ok(done) => return Ok(done),
                Err(_) if result == -libc::EINTR => {}
                Err(_) => return Err(OperationError::Os(-result)),
            }
        }
    }
}

/// Whether the kernel takes every operation on a file for one that may block: it knows no other way for it. All files of a
/// worker are on one file system as a rule; where they are not, the answer for the first one costs or saves some time.
fn always_blocks(file: &OwnedFd) -> bool {
    let mut byte = [0];
    let read = preadv2(file, &mut [IoSliceMut::new(&mut byte)], 0, ReadWriteFlags::NOWAIT);
    // A file that is not open for reading gives another error, and nothing is known of it.
    read == Err(Errno::OPNOTSUPP)
}

impl<'a> Engine for UringEngine<'a> {
    type Handle = OwnedFd;
    type Files = PosixEngine<'a>;

    fn files(&self) -> &PosixEngine<'a> {
        &self.posix
    }

    #[inline]
    async fn read(&self, handle: &OwnedFd, buffer: &mut [u8], offset: u64) -> Result<usize, OperationError> {
        let length = u32::try_from(buffer.len()).map_err(|_| OperationError::Os(libc::EINVAL))?;
        let fd = types::Fd(handle.as_raw_fd());
        self.submit(handle, opcode::Read::new(fd, buffer.as_mut_ptr(), length).offset(offset).build()).await
    }
    #[inline]
    async fn write(&self, handle: &OwnedFd, buffer: &[u8], offset: u64) -> Result<usize, OperationError> {
        let length = u32::try_from(buffer.len()).map_err(|_| OperationError::Os(libc::EINVAL))?;
        let fd = types::Fd(handle.as_raw_fd());
        self.submit(handle, opcode::Write::new(fd, buffer.as_ptr(), length).offset(offset).build()).await
    }

    async fn listen(&self, bell: &Bell, seen: u64, clock: &Clock, time: Ticks) {
        match self.ring.slots.len() {
            // Nothing else is outstanding on this thread.
            0 | 1 => self.posix.listen(bell, seen, clock, time).await,
            _ => self.sleep_until(clock, time.min(clock.after(clock.now(), LOOK_NS))).await,
        }
    }

    async fn sleep_until(&self, clock: &Clock, time: Ticks) {
        poll_fn(|_| {
            let now = clock.now();
            if now >= time {
                return Poll::Ready(());
            }
            self.ring.sleep_ns.set(Some(clock.nanos(now, time)));
            Poll::Pending
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    /// `None` where the kernel does not allow io_uring (containers often do not).
    fn ring(streams: u32) -> Option<Ring> {
        Ring::new(streams).ok()
    }

    #[test]
    fn an_error_in_one_stream_waits_for_the_operations_of_the_others() {
        let Some(ring) = ring(2) else { return };
        let directory = tempfile::tempdir().unwrap();
        let root = OwnedFd::from(std::fs::File::open(directory.path()).unwrap());
        let (reader, mut writer) = io::pipe().unwrap();
        let reader = OwnedFd::from(reader);
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let (ring, reader) = (&ring, &reader);
            let stream = |number: u32| {
                let root = root.as_fd();
                Box::pin(async move {
                    // SAFETY: the stream awaits the engine's futures and is polled by `Ring::run` alone.
                    let engine = unsafe { UringEngine::new(ring, number, PosixEngine::new(root)) };
                    if number == 1 {
                        std::panic::resume_unwind(Box::new("a defect"));
                    }
                    let mut buffer = [0; 4];
                    engine.read(reader, &mut buffer, u64::MAX).await
                })
            };
            let mut streams: Vec<_> = (0..2).map(stream).collect();
            // The read of stream 0 completes only now: leaving must wait for it.
            let later = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                io::Write::write_all(&mut writer, b"data").unwrap();
            });
            let result = ring.run(&mut streams);
            later.join().unwrap();
            result.map(|_| ())
        }));
        assert!(unwound.is_err());
        assert_eq!(ring.outstanding.get(), 0);
        assert_eq!(ring.slots[0].get(), State::Done(4), "the data had arrived before anything was freed");
    }

    /// Reads and writes a file in this directory through a ring; whether its operations went to the kernel's threads at once.
    fn hands_over(directory: &std::path::Path) -> Option<bool> {
        let ring = ring(2)?;
        let path = directory.join("file");
        let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        let root = OwnedFd::from(std::fs::File::open(directory).unwrap());
        std::fs::remove_file(&path).unwrap();
        let file = OwnedFd::from(file);
        let stream = |number: u32| {
            let (ring, root, file) = (&ring, root.as_fd(), &file);
            Box::pin(async move {
                // SAFETY: the stream awaits the engine's futures and is polled by `Ring::run` alone.
                let engine = unsafe { UringEngine::new(ring, number, PosixEngine::new(root)) };
                for value in 0..50 {
                    let (data, mut back) = ([value; 4096], [0; 4096]);
                    let offset = u64::from(number) * 4096;
                    assert_eq!(engine.write(file, &data, offset).await, Ok(4096));
                    assert_eq!(engine.read(file, &mut back, offset).await, Ok(4096));
                    assert_eq!(back, data);
                }
            })
        };
        ring.run(&mut [stream(0), stream(1)]).unwrap();
        ring.hands_over.get().copied()
    }

    #[test]
    fn what_always_blocks_goes_to_the_kernels_threads_at_once() {
        use rustix::fs::statfs;
        const EXT4: i64 = 0xef53;
        for parent in [std::path::PathBuf::from("/dev/shm"), std::env::temp_dir()] {
            let Ok(directory) = tempfile::tempdir_in(&parent) else { continue };
            match (hands_over(directory.path()), statfs(directory.path()).unwrap().f_type) {
                (None, _) => return,
                (Some(hands_over), EXT4) => assert!(!hands_over, "{}", parent.display()),
                _ => {}
            }
        }
    }

    #[test]
    fn a_stream_that_sleeps_does_not_keep_others_from_finishing() {
        let Some(ring) = ring(2) else { return };
        let directory = tempfile::tempdir().unwrap();
        let root = OwnedFd::from(std::fs::File::open(directory.path()).unwrap());
        let file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut &file, &[7; 64]).unwrap();
        let (file, clock) = (OwnedFd::from(file), Clock::new());
        let stream = |number: u32| {
            let (ring, root, file, clock) = (&ring, root.as_fd(), &file, &clock);
            Box::pin(async move {
                // SAFETY: the stream awaits the engine's futures and is polled by `Ring::run` alone.
                let engine = unsafe { UringEngine::new(ring, number, PosixEngine::new(root)) };
                if number == 0 {
                    engine.sleep_until(clock, clock.after(clock.now(), 30_000_000)).await;
                }
                let mut buffer = [0; 64];
                for _ in 0..100 {
                    assert_eq!(engine.read(file, &mut buffer, 0).await, Ok(64));
                    assert_eq!(buffer, [7; 64]);
                }
                clock.now()
            })
        };
        let mut streams: Vec<_> = (0..2).map(stream).collect();
        let ends = ring.run(&mut streams).unwrap();
        assert!(ends[1] < ends[0], "the second stream was done while the first slept");
        assert_eq!(ring.outstanding.get(), 0);
    }
}
