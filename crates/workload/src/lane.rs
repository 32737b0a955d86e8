//! One stream of operations of a worker: interprets a compiled flow on an engine.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::content::{self, BLOCK};
use crate::engine::{Engine, Files};
use crate::files::{Cursor, FileTable, Part, PathBuffer, Picked, Seen};
use crate::model::{LockKind, OperationKind};
use crate::operation_error::OperationError;
use crate::program::{Instruction, MAX_HANDLES, MAX_LOOPS};
use crate::random::{Random, Zipfs, mix};
use crate::recorder::Recorder;
use crate::recording::StopReason;
use crate::rendezvous::Rendezvous;
use crate::replay::stage::Stage;
use benchmaster_clock::{Clock, Ticks};
use benchmaster_nfs_client::buffer::Buffer;

mod more;
mod operation;
mod pick;
mod position;
mod replay;
mod stream;
mod wait;

pub(crate) use self::stream::StreamHash;

/// Bytes a buffer has at least, so that successive small writes differ.
pub(crate) const MIN_BUFFER: usize = 256 << 10;

/// Longest sleep before a stream looks again whether its phase was ended early.
pub(crate) const NAP_NS: u64 = 50_000_000;

/// The same of one of many workers that share threads: thousands that look often would be a load of their own, and if they
/// looked at the same instants they would hold each other up.
pub(crate) fn nap_of_many_ns(worker: u32, workers: usize) -> u64 {
    let nap = NAP_NS + 100_000 * workers as u64;
    nap + (nap as f64 * f64::from(worker) / workers.max(1) as f64) as u64
}

/// What the streams of one worker share.
#[derive(Debug)]
pub(crate) struct WorkerShared {
    /// Sequential position per handle.
    positions: [Cell<u64>; MAX_HANDLES],
    /// Bytes moved in this phase, and being moved.
    moved: Cell<u64>,
    /// Repetitions of the flow begun in this phase.
    iterations: Cell<u64>,
    /// Operations that failed since the last one that did not.
    failures: Cell<u64>,
    cursors: Box<[Cursor]>,
    /// What it has done so far.
    pub(crate) stream: StreamHash,
}

impl WorkerShared {
    /// Those of a worker with so many filesets.
    pub(crate) fn new(filesets: usize) -> Self {
        Self {
            positions: std::array::from_fn(|_| Cell::new(0)),
            moved: Cell::new(0),
            iterations: Cell::new(0),
            failures: Cell::new(0),
            cursors: (0..filesets).map(|_| Cursor::default()).collect(),
            stream: StreamHash::default(),
        }
    }

    /// Starts counting towards the limits of a phase.
    pub(crate) fn begin_phase(&self) {
        self.moved.set(0);
        self.iterations.set(0);
        self.failures.set(0);
    }
}

/// What does not change while a worker runs.
#[derive(Debug, Clone)]
pub(crate) struct WorkerContext<'a> {
    pub(crate) clock: &'a Clock,
    /// Tables of this worker's client, by number of the fileset.
    pub(crate) tables: &'a [Arc<FileTable>],
    pub(crate) client: u32,
    /// Its number among the clients that are in the group, and how many these are.
    pub(crate) place: u32,
    pub(crate) places: u32,
    /// Number within the client and group, and how many there are.
    pub(crate) worker: u32,
    pub(crate) workers: u32,
    /// Block size of stamped data.
    pub(crate) verify: Option<usize>,
    pub(crate) max_failures: u64,
    /// What workers do together; `None` where they do nothing so, or this one runs alone for a measurement of the executor.
    pub(crate) rendezvous: Option<&'a Rendezvous>,
    /// Longest sleep before a stream looks again whether its phase was ended early.
    pub(crate) nap_ns: u64,
}

impl WorkerContext<'_> {
    /// This worker's number among all of its group that use the files of a table, and how many these are.
    #[inline]
    pub(crate) fn part(&self, table: &FileTable) -> Part {
        let (worker, workers) = (u64::from(self.worker), u64::from(self.workers));
        if table.is_shared() { self.part_of(self.place) } else { Part { index: worker, of: workers } }
    }

    /// The number among all workers of the group that the worker with this one's number has in another client.
    pub(crate) fn part_of(&self, place: u32) -> Part {
        let (worker, workers) = (u64::from(self.worker), u64::from(self.workers));
        Part { index: u64::from(place) * workers + worker, of: u64::from(self.places) * workers }
    }
}

/// When a phase ends for a worker.
#[derive(Debug)]
pub(crate) struct Limits<'a> {
    /// Start of the phase.
    pub(crate) start: Ticks,
    /// End of the phase in ticks; set to 0 to stop at once.
    pub(crate) deadline: &'a AtomicU64,
    pub(crate) iterations: u64,
    pub(crate) bytes: u64,
    /// Nanoseconds between repetitions of this worker in an open loop.
    pub(crate) period_ns: Option<f64>,
}

impl<'a> Limits<'a> {
    /// No limit but the deadline.
    pub(crate) fn until(deadline: &'a AtomicU64) -> Self {
        Self { start: 0, deadline, iterations: u64::MAX, bytes: u64::MAX, period_ns: None }
    }

    #[inline(always)]
    fn deadline(&self) -> Ticks {
        self.deadline.load(Ordering::Relaxed)
    }
}

/// What a lane works with in one phase.
#[derive(Debug)]
pub(crate) struct Job<'j, 'r, E> {
    pub(crate) engine: &'j E,
    pub(crate) context: &'j WorkerContext<'j>,
    pub(crate) shared: &'j WorkerShared,
    pub(crate) limits: &'j Limits<'j>,
    pub(crate) record: &'j RefCell<Recorder<'r>>,
}

#[derive(Debug)]
struct Open<H> {
    handle: H,
    fileset: u16,
    file: u64,
    /// Stands for its name in hashes.
    name: u64,
    /// Up to where it is read and written.
    size: u64,
    /// What is written changes how long the file is taken to be.
    grows: bool,
    /// Every write is synced.
    synced: bool,
    /// Where a sequential position ends: the size, unless the file is used in segments.
    end: u64,
    /// Which of the streams that share the file in segments.
    turn: Turn,
    /// Positions for random I/O of a length: dividing for every operation would show.
    places: (u64, u64),
}

/// One of several workers that share a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Turn {
    index: u64,
    /// How many there are.
    of: u64,
}

#[derive(Debug)]
pub(crate) struct Lane<H> {
    handles: [Option<Open<H>>; MAX_HANDLES],
    loops: [u64; MAX_LOOPS],
    buffer: Buffer,
    /// Where in the buffer the next write takes its data from.
    window: usize,
    /// Source of what makes the next block written unique.
    unique: u64,
    random: Random,
    zipfs: Zipfs,
    /// What the random numbers of the worker's repetitions come from, where several streams share these.
    base: u64,
    path: PathBuffer,
    other: PathBuffer,
    last: Option<(u16, Picked)>,
    round: u64,
    lane: u32,
    lanes: u32,
    max_io: u64,
    /// An operation of this repetition has been done.
    worked: bool,
    /// When the next operation should have started in an open loop; else [`Ticks::MAX`].
    intended: Ticks,
    /// End of the last operation, if nothing has been done since that takes time: the next one's start.
    carry: Ticks,
    /// Handles with a lock, by bit.
    locked: u32,
    /// The deadline is over, and the repetition goes on because a lock is held.
    overdue: bool,
    /// Where the flow was left when the last phase ended.
    resume: usize,
    /// How often the meeting at which the last phase ended must have been held for this stream to go on.
    awaited: Option<u64>,
    /// Takes no further part in meetings.
    gone: bool,
    /// What a replay shares with the other workers of the client.
    stage: Option<Arc<Stage<H>>>,
    seen: Vec<Seen>,
    /// Made when it is first needed.
    scratch: Option<Box<[u8; BLOCK]>>,
}

/// A stream's part of a worker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stream {
    /// Tells its random numbers and data apart from all others of the run.
    pub(crate) number: u64,
    /// Which of the worker's streams.
    pub(crate) lane: u32,
    pub(crate) lanes: u32,
}

impl Stream {
    /// Stream `lane` of `lanes` of worker number `worker` of the run.
    pub(crate) fn new(worker: u32, lane: u32, lanes: u32) -> Self {
        Self { number: (u64::from(worker) << 16) | u64::from(lane), lane, lanes }
    }
}

/// How a piece of code ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Finished,
    /// An operation failed; the rest was skipped.
    Failed,
    Stop(StopReason),
}

impl Outcome {
    /// The outcome of one lane that stands for all is the one that needs most attention.
    pub(crate) fn gravity(&self) -> u8 {
        match self {
            Self::Finished => 0,
            Self::Stop(StopReason::Time) => 1,
            Self::Stop(StopReason::Work) => 2,
            Self::Stop(StopReason::Stopped) => 3,
            Self::Failed => 4,
            Self::Stop(StopReason::Errors) => 5,
        }
    }
}

impl<H> Lane<H> {
    /// A stream whose largest read or write has `max_io` bytes, with a buffer of at least `buffer` bytes. Its paths lie
    /// below `directory`.
    pub(crate) fn new(seed: u64, stream: Stream, max_io: usize, buffer: usize, directory: &[u8]) -> Self {
        let Stream { number: stream, lane, lanes } = stream;
        let length = if max_io == 0 { 0 } else { max_io.max(buffer) };
        let mut buffer = Buffer::new(length.next_multiple_of(BLOCK));
        content::fill_random(&mut buffer, seed, stream);
        Self {
            handles: std::array::from_fn(|_| None),
            loops: [0; MAX_LOOPS],
            buffer,
            window: 0,
            unique: mix(seed, stream, 2),
            random: Random::new(seed, stream),
            zipfs: Zipfs::default(),
            base: mix(seed, stream >> 16, 6),
            path: PathBuffer::below(directory),
            other: PathBuffer::below(directory),
            last: None,
            round: 0,
            lane,
            lanes,
            max_io: max_io as u64,
            worked: false,
            intended: Ticks::MAX,
            carry: 0,
            locked: 0,
            overdue: false,
            resume: 0,
            awaited: None,
            gone: false,
            stage: None,
            seen: Vec::new(),
            scratch: None,
        }
    }

    /// The stream as a part of a replay.
    pub(crate) fn on_stage(self, stage: Option<Arc<Stage<H>>>) -> Self {
        Self { stage, ..self }
    }

    /// Repeats `code` until a limit is reached. A repetition that the end of an earlier phase cut short is taken up where
    /// it was left: begun anew it would find its file created already.
    pub(crate) async fn repeat<E>(&mut self, job: &Job<'_, '_, E>, code: &[Instruction]) -> StopReason
    where
        E: Engine<Handle = H>,
    {
        (self.carry, self.locked, self.overdue, self.intended) = (0, 0, false, Ticks::MAX);
        let reason = loop {
            if code.is_empty() {
                break StopReason::Work;
            }
            let from = std::mem::take(&mut self.resume);
            if from == 0
                && let Err(reason) = self.next_repetition(job).await
            {
                break reason;
            }
            self.worked = false;
            match self.run(job, code, from, true).await {
                // Operations look at the time; here there was none.
                Outcome::Finished if !self.worked && job.context.clock.now() >= job.limits.deadline() => {
                    break StopReason::Time;
                }
                Outcome::Finished | Outcome::Failed if self.overdue => break StopReason::Time,
                Outcome::Finished => {}
                Outcome::Failed if job.shared.failures.get() < job.context.max_failures => {}
                Outcome::Failed => break StopReason::Errors,
                Outcome::Stop(reason) => break reason,
            }
        };
        self.unlock_all(job.engine.files()).await;
        if reason != StopReason::Time {
            self.leave(job.context, code, true);
        }
        reason
    }

    /// Begins a repetition if the limits allow one; in an open loop at its time.
    async fn next_repetition<E>(&mut self, job: &Job<'_, '_, E>) -> Result<(), StopReason>
    where
        E: Engine<Handle = H>,
    {
        let Job { context, shared, limits, .. } = job;
        let iteration = shared.iterations.get();
        if iteration >= limits.iterations || shared.moved.get() >= limits.bytes {
            return Err(StopReason::Work);
        }
        shared.iterations.set(iteration + 1);
        self.begin_repetition(iteration);
        let Some(period) = limits.period_ns else { return Ok(()) };
        let share = f64::from(context.worker) / f64::from(context.workers);
        let time = context.clock.after(limits.start, ((iteration as f64 + share) * period) as u64);
        self.carry = 0;
        self.intended = time;
        if sleep_until(job.engine, context, time, limits).await { Ok(()) } else { Err(StopReason::Time) }
    }

    /// Begins the next repetition of a closed loop without leaving [`Self::run`]: what `next_repetition` does, where
    /// nothing is to be waited for or looked at.
    #[inline]
    fn goes_on<E>(&mut self, job: &Job<'_, '_, E>) -> bool {
        let Job { shared, limits, .. } = job;
        let iteration = shared.iterations.get();
        let limited = iteration >= limits.iterations || shared.moved.get() >= limits.bytes;
        if limited || limits.period_ns.is_some() || !self.worked || self.overdue {
            return false;
        }
        shared.iterations.set(iteration + 1);
        self.begin_repetition(iteration);
        self.worked = false;
        true
    }

    /// Which of a worker's streams does a repetition is a matter of time; what is done in it must not be.
    #[inline]
    fn begin_repetition(&mut self, repetition: u64) {
        if self.lanes > 1 {
            self.random.begin_repetition(self.base, repetition);
        }
    }

    /// Runs `code` from instruction `from` on, once or, with `again`, as long as nothing has to be waited for.
    ///
    /// What an operation needs before and after the engine is called is done by functions that are not asynchronous: every
    /// variable that lives while something is awaited costs a store and a load per operation.
    pub(crate) async fn run<E>(
        &mut self,
        job: &Job<'_, '_, E>,
        code: &[Instruction],
        from: usize,
        again: bool,
    ) -> Outcome
    where
        E: Engine<Handle = H>,
    {
        let mut at = from;
        loop {
            let Some(instruction) = code.get(at) else {
                if again && self.goes_on(job) {
                    at = 0;
                    continue;
                }
                return Outcome::Finished;
            };
            at += 1;
            let outcome = match instruction {
                Instruction::Operation(op) => match self.begin_transfer(job, op) {
                    Some(transfer) => {
                        let result = match &self.handles[usize::from(op.slot)] {
                            Some(open) if op.kind == OperationKind::Read => {
                                let buffer = &mut self.buffer[..transfer.length];
                                job.engine.read(&open.handle, buffer, transfer.offset).await
                            }
                            Some(open) => {
                                let bytes = transfer.window..transfer.window + transfer.length;
                                job.engine
                                    .write_buffer(&open.handle, &self.buffer, bytes, transfer.offset)
                                    .await
                            }
                            None => Err(OperationError::Os(libc::EBADF)),
                        };
                        self.end_transfer(job, op, &transfer, result)
                    }
                    None => self.operation(job, op).await,
                },
                Instruction::Pause(nanos) => self.pause(job, *nanos).await,
                Instruction::Meet(_) | Instruction::Post { .. } | Instruction::Take { .. } => {
                    let outcome = self.wait_for_others(job, instruction, again).await;
                    // To be waited for once more.
                    at -= usize::from(outcome == Outcome::Stop(StopReason::Time));
                    outcome
                }
                Instruction::PrepareReplay | Instruction::Replay => {
                    job.engine.replay(self, job, instruction).await
                }
                other => {
                    at = self.jump(job, other, at);
                    Outcome::Finished
                }
            };
            if outcome != Outcome::Finished {
                if outcome == Outcome::Failed
                    && again
                    && job.shared.failures.get() < job.context.max_failures
                    && let Some(meeting) = self.next_meeting(job, code, at)
                {
                    at = meeting;
                    continue;
                }
                if outcome == Outcome::Stop(StopReason::Time) {
                    self.resume = at;
                }
                return outcome;
            }
        }
    }

    /// The instruction after one that only directs the flow; `next` is the one that follows it in the code.
    fn jump<E>(&mut self, job: &Job<'_, '_, E>, instruction: &Instruction, next: usize) -> usize {
        let shared = job.shared;
        let (leaves, target) = match instruction {
            Instruction::LoopBegin { counter, times, exit } => {
                self.loops[usize::from(*counter)] = *times;
                (*times == 0, *exit)
            }
            Instruction::LoopEnd { counter, body } => {
                let left = &mut self.loops[usize::from(*counter)];
                *left -= 1;
                (*left > 0, *body)
            }
            Instruction::FileBegin { slot, exit } => {
                shared.positions[usize::from(*slot)].set(0);
                (self.at_end(shared, *slot), *exit)
            }
            Instruction::FileEnd { slot, body } => (!self.at_end(shared, *slot), *body),
            Instruction::TimeBegin { counter, nanos } => {
                let clock = job.context.clock;
                self.loops[usize::from(*counter)] = clock.after(clock.now(), *nanos);
                (false, 0)
            }
            Instruction::TimeEnd { counter, body } => {
                let end = self.loops[usize::from(*counter)].min(job.limits.deadline());
                (job.context.clock.now() < end, *body)
            }
            Instruction::Choose { targets } => {
                let drawn = self.random.unit();
                let chosen = targets.iter().find(|(below, _)| drawn < *below).or(targets.last());
                (chosen.is_some(), chosen.map_or(0, |(_, target)| *target))
            }
            Instruction::Jump(target) => (true, *target),
            Instruction::Operation(_)
            | Instruction::Pause(_)
            | Instruction::PrepareReplay
            | Instruction::Replay
            | Instruction::Meet(_)
            | Instruction::Post { .. }
            | Instruction::Take { .. } => (false, 0),
        };
        if leaves { target as usize } else { next }
    }

    async fn pause<E>(&mut self, job: &Job<'_, '_, E>, nanos: u64) -> Outcome
    where
        E: Engine<Handle = H>,
    {
        let clock = job.context.clock;
        self.carry = 0;
        let end = clock.after(clock.now(), nanos);
        if sleep_until(job.engine, job.context, end, job.limits).await {
            Outcome::Finished
        } else {
            Outcome::Stop(StopReason::Time)
        }
    }

    /// Gives up locks that the flow has left: a worker that waits for the next phase must not keep the others from
    /// reaching it. Where unlocking fails, closing will do it.
    async fn unlock_all<F: Files<Handle = H>>(&mut self, files: &F) {
        for (slot, open) in self.handles.iter().enumerate() {
            if self.locked & (1 << slot) != 0
                && let Some(open) = open
                && files.on_open(OperationKind::Unlock, &open.handle, LockKind::Read, 0).await.is_ok()
            {
                self.locked &= !(1 << slot);
            }
        }
    }

    /// Whether a lock could not be given up: others may wait for it until the file is closed.
    pub(crate) fn holds_lock(&self) -> bool {
        self.locked != 0
    }

    /// Closes everything still open.
    ///
    /// # Errors
    /// The first close that failed.
    pub(crate) async fn close_all<F>(
        &mut self,
        files: &F,
        context: &WorkerContext<'_>,
    ) -> Result<(), OperationError>
    where
        F: Files<Handle = H>,
    {
        let mut result = self.close_stage(files).await;
        for open in &mut self.handles {
            if let Some(open) = open.take() {
                context.tables[usize::from(open.fileset)].release(open.file);
                result = result.and(operation::close(files, context, open).await);
            }
        }
        result
    }

    fn at_end(&self, shared: &WorkerShared, slot: u8) -> bool {
        match &self.handles[usize::from(slot)] {
            Some(open) => shared.positions[usize::from(slot)].get() >= open.end,
            None => true,
        }
    }
}

/// Sleeps until `time`; `false` when the phase ends before.
async fn sleep_until<E: Engine>(
    engine: &E,
    context: &WorkerContext<'_>,
    time: Ticks,
    limits: &Limits<'_>,
) -> bool {
    let clock = context.clock;
    loop {
        let (now, deadline) = (clock.now(), limits.deadline());
        if now >= time.min(deadline) {
            return time < deadline;
        }
        // The deadline may be moved while this sleeps.
        engine.sleep_until(clock, time.min(deadline).min(clock.after(now, context.nap_ns))).await;
    }
}
