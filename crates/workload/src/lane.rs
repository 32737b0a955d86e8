//! One stream of operations of a worker: interprets a compiled flow on an engine.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aligned_vec::{AVec, ConstAlign};

use crate::clock::{Clock, Ticks};
use crate::content::{self, BLOCK};
use crate::engine::{Engine, OperationError};
use crate::files::{FileTable, PathBuffer, Picked, Seen};
use crate::model::OperationKind;
use crate::program::{Instruction, MAX_HANDLES, MAX_LOOPS};
use crate::random::{Random, mix};
use crate::recorder::Record;
use crate::recording::StopReason;

mod operation;
mod pick;

/// An I/O buffer aligned for O_DIRECT.
type Buffer = AVec<u8, ConstAlign<4096>>;

/// Bytes a buffer has at least, so that successive small writes differ.
const MIN_BUFFER: usize = 256 << 10;

/// Longest sleep before a stream looks again whether its phase was ended early.
const NAP_NS: u64 = 50_000_000;

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
}

impl WorkerShared {
    pub(crate) fn new() -> Self {
        Self {
            positions: std::array::from_fn(|_| Cell::new(0)),
            moved: Cell::new(0),
            iterations: Cell::new(0),
            failures: Cell::new(0),
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
    pub(crate) clients: u32,
    /// Number within the client and group, and how many there are.
    pub(crate) worker: u32,
    pub(crate) workers: u32,
    /// Block size of stamped data.
    pub(crate) verify: Option<usize>,
    pub(crate) max_failures: u64,
}

/// When a phase ends for a worker.
#[derive(Debug)]
pub(crate) struct Limits<'a> {
    /// Start of the phase.
    pub(crate) start: Ticks,
    /// End of the phase in ticks; set to 0 to stop at once.
    pub(crate) deadline: &'a AtomicU64,
    /// Repetitions.
    pub(crate) iterations: u64,
    /// Bytes.
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
pub(crate) struct Job<'j, E, R> {
    pub(crate) engine: &'j E,
    pub(crate) context: &'j WorkerContext<'j>,
    pub(crate) shared: &'j WorkerShared,
    pub(crate) limits: &'j Limits<'j>,
    pub(crate) record: &'j RefCell<R>,
}

/// An open file.
#[derive(Debug)]
struct Open<H> {
    handle: H,
    fileset: u16,
    file: u64,
    size: u64,
    /// Positions for random I/O of a length: dividing for every operation would show.
    places: (u64, u64),
}

/// One stream.
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
    path: PathBuffer,
    other: PathBuffer,
    last: Option<(u16, Picked)>,
    /// Picks of `next`.
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
    seen: Vec<Seen>,
    scratch: Box<[u8; BLOCK]>,
}

/// How a piece of code ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// At its end.
    Finished,
    /// An operation failed; the rest was skipped.
    Failed,
    /// The worker stops.
    Stop(StopReason),
}

impl<H> Lane<H> {
    /// `stream` tells this lane's random numbers and data apart from all others of the run.
    pub(crate) fn new(seed: u64, stream: u64, lane: u32, lanes: u32, max_io: usize) -> Self {
        let length = match (max_io, lanes) {
            (0, _) => 0,
            (_, 1) => max_io.max(MIN_BUFFER),
            _ => max_io,
        };
        let mut buffer = Buffer::from_iter(4096, std::iter::repeat_n(0, length.next_multiple_of(BLOCK)));
        content::fill_random(&mut buffer, seed, stream);
        Self {
            handles: std::array::from_fn(|_| None),
            loops: [0; MAX_LOOPS],
            buffer,
            window: 0,
            unique: mix(seed, stream, 2),
            random: Random::new(seed, stream),
            path: PathBuffer::new(),
            other: PathBuffer::new(),
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
            seen: Vec::new(),
            scratch: Box::new([0; BLOCK]),
        }
    }

    /// Repeats `code` until a limit is reached. A repetition that the end of an earlier phase cut short is taken up where
    /// it was left: begun anew it would find its file created already.
    pub(crate) async fn repeat<E, R>(&mut self, job: &Job<'_, E, R>, code: &[Instruction]) -> StopReason
    where
        E: Engine<Handle = H>,
        R: Record,
    {
        (self.carry, self.locked, self.overdue, self.intended) = (0, 0, false, Ticks::MAX);
        let reason = loop {
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
        self.unlock_all(job.engine).await;
        reason
    }

    /// Begins a repetition if the limits allow one; in an open loop at its time.
    async fn next_repetition<E, R>(&mut self, job: &Job<'_, E, R>) -> Result<(), StopReason>
    where
        E: Engine<Handle = H>,
    {
        let Job { context, shared, limits, .. } = job;
        let iteration = shared.iterations.get();
        if iteration >= limits.iterations || shared.moved.get() >= limits.bytes {
            return Err(StopReason::Work);
        }
        shared.iterations.set(iteration + 1);
        let Some(period) = limits.period_ns else { return Ok(()) };
        let share = f64::from(context.worker) / f64::from(context.workers);
        let time = context.clock.after(limits.start, ((iteration as f64 + share) * period) as u64);
        self.carry = 0;
        self.intended = time;
        match sleep_until(job.engine, context.clock, time, limits).await {
            true => Ok(()),
            false => Err(StopReason::Time),
        }
    }

    /// Begins the next repetition of a closed loop without leaving [`Self::run`]: what `next_repetition` does, where
    /// nothing is to be waited for or looked at.
    #[inline]
    fn goes_on<E, R>(&mut self, job: &Job<'_, E, R>) -> bool {
        let Job { shared, limits, .. } = job;
        let iteration = shared.iterations.get();
        let limited = iteration >= limits.iterations || shared.moved.get() >= limits.bytes;
        if limited || limits.period_ns.is_some() || !self.worked || self.overdue {
            return false;
        }
        shared.iterations.set(iteration + 1);
        self.worked = false;
        true
    }

    /// Runs `code` from instruction `from` on, once or, with `again`, as long as nothing has to be waited for.
    ///
    /// What an operation needs before and after the engine is called is done by functions that are not asynchronous: every
    /// variable that lives while something is awaited costs a store and a load per operation.
    pub(crate) async fn run<E, R>(
        &mut self,
        job: &Job<'_, E, R>,
        code: &[Instruction],
        from: usize,
        again: bool,
    ) -> Outcome
    where
        E: Engine<Handle = H>,
        R: Record,
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
                                let buffer = &self.buffer[transfer.window..transfer.window + transfer.length];
                                job.engine.write(&open.handle, buffer, transfer.offset).await
                            }
                            None => Err(OperationError::Os(libc::EBADF)),
                        };
                        self.end_transfer(job, op, &transfer, result)
                    }
                    None => self.operation(job, op).await,
                },
                Instruction::Pause(nanos) => self.pause(job, *nanos).await,
                other => {
                    at = self.jump(job.shared, other, at);
                    Outcome::Finished
                }
            };
            if outcome != Outcome::Finished {
                if outcome == Outcome::Stop(StopReason::Time) {
                    self.resume = at;
                }
                return outcome;
            }
        }
    }

    /// The instruction after one that only directs the flow; `next` is the one that follows it in the code.
    fn jump(&mut self, shared: &WorkerShared, instruction: &Instruction, next: usize) -> usize {
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
            Instruction::Choose { targets } => {
                let drawn = self.random.unit();
                let chosen = targets.iter().find(|(below, _)| drawn < *below).or(targets.last());
                (chosen.is_some(), chosen.map_or(0, |(_, target)| *target))
            }
            Instruction::Jump(target) => (true, *target),
            Instruction::Operation(_) | Instruction::Pause(_) => (false, 0),
        };
        if leaves { target as usize } else { next }
    }

    async fn pause<E, R>(&mut self, job: &Job<'_, E, R>, nanos: u64) -> Outcome
    where
        E: Engine<Handle = H>,
    {
        let clock = job.context.clock;
        self.carry = 0;
        let end = clock.after(clock.now(), nanos);
        match sleep_until(job.engine, clock, end, job.limits).await {
            true => Outcome::Finished,
            false => Outcome::Stop(StopReason::Time),
        }
    }

    /// Gives up locks that the flow has left: a worker that waits for the next phase must not keep the others from
    /// reaching it. Where unlocking fails, closing will do it.
    async fn unlock_all<E: Engine<Handle = H>>(&mut self, engine: &E) {
        for (slot, open) in self.handles.iter().enumerate() {
            if self.locked & (1 << slot) != 0
                && let Some(open) = open
            {
                let _ = engine.unlock(&open.handle, 0).await;
            }
        }
        self.locked = 0;
    }

    /// Closes everything still open.
    ///
    /// # Errors
    /// The first close that failed.
    pub(crate) async fn close_all<E>(
        &mut self,
        engine: &E,
        tables: &[Arc<FileTable>],
    ) -> Result<(), OperationError>
    where
        E: Engine<Handle = H>,
    {
        let mut result = Ok(());
        for open in &mut self.handles {
            if let Some(open) = open.take() {
                tables[usize::from(open.fileset)].release(open.file);
                result = result.and(engine.close(open.handle).await);
            }
        }
        result
    }

    fn at_end(&self, shared: &WorkerShared, slot: u8) -> bool {
        match &self.handles[usize::from(slot)] {
            Some(open) => shared.positions[usize::from(slot)].get() >= open.size,
            None => true,
        }
    }
}

/// Sleeps until `time`; `false` when the phase ends before.
async fn sleep_until<E: Engine>(engine: &E, clock: &Clock, time: Ticks, limits: &Limits<'_>) -> bool {
    loop {
        let (now, deadline) = (clock.now(), limits.deadline());
        if now >= time.min(deadline) {
            return time < deadline;
        }
        // The deadline may be moved while this sleeps.
        engine.sleep_until(clock, time.min(deadline).min(clock.after(now, NAP_NS))).await;
    }
}
