//! One stream of operations of a worker: interprets a compiled flow on an engine.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aligned_vec::{AVec, ConstAlign};

use crate::clock::{Clock, Ticks};
use crate::content::{self, BLOCK};
use crate::engine::{Engine, OperationError};
use crate::files::{FileTable, PathBuffer, Picked};
use crate::model::{FilePick, OffsetPick, OperationKind};
use crate::program::{Instruction, MAX_HANDLES, MAX_LOOPS, Operation};
use crate::random::Random;
use crate::recorder::{Record, Timing};
use crate::recording::StopReason;

/// An I/O buffer aligned for O_DIRECT.
pub(crate) type Buffer = AVec<u8, ConstAlign<4096>>;

/// Bytes a buffer has at least, so that successive small writes differ.
const MIN_BUFFER: usize = 256 << 10;

/// What the streams of one worker share.
#[derive(Debug)]
pub(crate) struct WorkerShared {
    /// Sequential position per handle.
    pub(crate) positions: [Cell<u64>; MAX_HANDLES],
    /// Bytes moved in this phase.
    pub(crate) moved: Cell<u64>,
    /// Repetitions of the flow begun in this phase.
    pub(crate) iterations: Cell<u64>,
    /// Operations that failed since the last one that did not.
    pub(crate) failures: Cell<u64>,
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
}

/// What does not change while a worker runs.
#[derive(Debug, Clone)]
pub(crate) struct WorkerContext<'a> {
    pub(crate) clock: &'a Clock,
    /// Tables of this worker's client, by number of the fileset.
    pub(crate) tables: &'a [Arc<FileTable>],
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
    window: usize,
    scratch: Box<[u8; BLOCK]>,
    random: Random,
    path: PathBuffer,
    other: PathBuffer,
    last: Option<(u16, Picked)>,
    round: u64,
    writer: u64,
    written: u64,
    lane: u32,
    lanes: u32,
    first: bool,
    /// End of the last operation, if nothing has been done since that takes time: the next one's start.
    carry: Ticks,
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
        let length = match lanes {
            1 => max_io.max(if max_io == 0 { 0 } else { MIN_BUFFER }),
            _ => max_io,
        };
        let mut buffer = Buffer::from_iter(4096, std::iter::repeat_n(0, length.next_multiple_of(BLOCK)));
        content::fill_random(&mut buffer, seed, stream);
        Self {
            handles: std::array::from_fn(|_| None),
            loops: [0; MAX_LOOPS],
            buffer,
            window: 0,
            scratch: Box::new([0; BLOCK]),
            random: Random::new(seed, stream),
            path: PathBuffer::new(),
            other: PathBuffer::new(),
            last: None,
            round: 0,
            writer: stream,
            written: 0,
            lane,
            lanes,
            first: false,
            carry: 0,
        }
    }

    /// Repeats `code` until a limit is reached.
    pub(crate) async fn repeat<E: Engine<Handle = H>>(
        &mut self,
        engine: &E,
        context: &WorkerContext<'_>,
        shared: &WorkerShared,
        code: &[Instruction],
        limits: &Limits<'_>,
        record: &RefCell<impl Record>,
    ) -> StopReason {
        self.carry = 0;
        loop {
            let iteration = shared.iterations.get();
            if iteration >= limits.iterations {
                return StopReason::Work;
            }
            shared.iterations.set(iteration + 1);
            let mut intended = None;
            if let Some(period) = limits.period_ns {
                let share = f64::from(context.worker) / f64::from(context.workers);
                let time = context.clock.after(limits.start, ((iteration as f64 + share) * period) as u64);
                let deadline = limits.deadline.load(Ordering::Relaxed);
                if time >= deadline {
                    engine.sleep_until(context.clock, deadline).await;
                    return StopReason::Time;
                }
                engine.sleep_until(context.clock, time).await;
                self.carry = 0;
                intended = Some(time);
            }
            self.first = true;
            let outcome = self.run(engine, context, shared, code, limits, intended, record).await;
            match outcome {
                Outcome::Finished => {}
                Outcome::Failed if shared.failures.get() < context.max_failures => {}
                Outcome::Failed => return StopReason::Errors,
                Outcome::Stop(reason) => return reason,
            }
        }
    }

    /// Runs `code` once.
    #[allow(clippy::too_many_arguments)]
    pub(crate) async fn run<E: Engine<Handle = H>>(
        &mut self,
        engine: &E,
        context: &WorkerContext<'_>,
        shared: &WorkerShared,
        code: &[Instruction],
        limits: &Limits<'_>,
        intended: Option<Ticks>,
        record: &RefCell<impl Record>,
    ) -> Outcome {
        let mut at = 0;
        while let Some(instruction) = code.get(at) {
            at += 1;
            match instruction {
                Instruction::Operation(operation) => {
                    let scheduled = if self.first { intended } else { None };
                    self.first = false;
                    let outcome = self.operation(engine, context, shared, operation, limits, scheduled, record).await;
                    if outcome != Outcome::Finished {
                        return outcome;
                    }
                }
                Instruction::LoopBegin { counter, times, exit } => {
                    self.loops[usize::from(*counter)] = *times;
                    if *times == 0 {
                        at = *exit as usize;
                    }
                }
                Instruction::LoopEnd { counter, body } => {
                    let left = &mut self.loops[usize::from(*counter)];
                    *left -= 1;
                    if *left > 0 {
                        at = *body as usize;
                    }
                }
                Instruction::FileBegin { slot, exit } => {
                    shared.positions[usize::from(*slot)].set(0);
                    if self.at_end(shared, *slot) {
                        at = *exit as usize;
                    }
                }
                Instruction::FileEnd { slot, body } => {
                    if !self.at_end(shared, *slot) {
                        at = *body as usize;
                    }
                }
                Instruction::Choose { targets } => {
                    let drawn = self.random.unit();
                    let chosen = targets.iter().find(|(below, _)| drawn < *below).or(targets.last());
                    at = chosen.map_or(at, |(_, target)| *target as usize);
                }
                Instruction::Jump(target) => at = *target as usize,
                Instruction::Pause(nanos) => {
                    self.carry = 0;
                    let end = context.clock.after(context.clock.now(), *nanos);
                    let deadline = limits.deadline.load(Ordering::Relaxed);
                    engine.sleep_until(context.clock, end.min(deadline)).await;
                    if end >= deadline {
                        return Outcome::Stop(StopReason::Time);
                    }
                }
            }
        }
        Outcome::Finished
    }

    /// Closes everything still open; errors of these closes count as failures.
    pub(crate) async fn close_all<E: Engine<Handle = H>>(&mut self, engine: &E) -> Result<(), OperationError> {
        let mut result = Ok(());
        for open in &mut self.handles {
            if let Some(open) = open.take() {
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

    #[allow(clippy::too_many_arguments)]
    #[inline]
    async fn operation<E: Engine<Handle = H>>(
        &mut self,
        engine: &E,
        context: &WorkerContext<'_>,
        shared: &WorkerShared,
        op: &Operation,
        limits: &Limits<'_>,
        intended: Option<Ticks>,
        record: &RefCell<impl Record>,
    ) -> Outcome {
        let done = match op.kind {
            OperationKind::Read | OperationKind::Write => self.transfer(engine, context, shared, op, record).await,
            kind if kind.needs_handle() => {
                self.carry = 0;
                self.on_handle(engine, context, op).await
            }
            _ => match self.pick(context, op) {
                Some(picked) => self.by_name(engine, context, shared, op, picked).await,
                None => return Outcome::Stop(StopReason::Work),
            },
        };
        let timing = Timing { intended: intended.unwrap_or(done.start).min(done.start), start: done.start, end: done.end };
        match done.result {
            Ok(()) => {
                record.borrow_mut().success(op.series, timing, done.bytes, done.offset);
                shared.failures.set(0);
                if done.bytes > 0 {
                    shared.moved.set(shared.moved.get() + done.bytes);
                    if shared.moved.get() >= limits.bytes {
                        return Outcome::Stop(StopReason::Work);
                    }
                }
            }
            Err(error) => {
                let file = || self.name_of(context, op);
                record.borrow_mut().failure(op.series, timing, done.offset, error, &file);
                shared.failures.set(shared.failures.get() + 1);
                if done.end < limits.deadline.load(Ordering::Relaxed) {
                    return Outcome::Failed;
                }
            }
        }
        match done.end >= limits.deadline.load(Ordering::Relaxed) {
            true => Outcome::Stop(StopReason::Time),
            false => Outcome::Finished,
        }
    }

    #[inline]
    async fn transfer<E: Engine<Handle = H>>(
        &mut self,
        engine: &E,
        context: &WorkerContext<'_>,
        shared: &WorkerShared,
        op: &Operation,
        record: &RefCell<impl Record>,
    ) -> Done {
        let Some(open) = &mut self.handles[usize::from(op.slot)] else { return Done::not_open(context) };
        let position = &shared.positions[usize::from(op.slot)];
        let offset = match op.offset {
            OffsetPick::Random => {
                if open.places.0 != op.length {
                    open.places = (op.length, (open.size / op.length).max(1));
                }
                self.random.below(open.places.1) * op.length
            }
            OffsetPick::Sequential => {
                let now = position.get();
                let from = if now >= open.size { 0 } else { now };
                position.set(from + op.length);
                from
            }
            OffsetPick::Append => open.size,
        };
        let mut length = op.length as usize;
        if op.offset != OffsetPick::Append && open.size > 0 {
            length = length.min((open.size - offset) as usize);
        }
        let table = &context.tables[usize::from(open.fileset)];
        if op.kind == OperationKind::Read {
            let buffer = &mut self.buffer[..length];
            let before = context.verify.map(|block| (block, table.finished(open.file, offset, length, block)));
            let start = if self.carry > 0 { self.carry } else { context.clock.now() };
            let result = engine.read(&open.handle, buffer, offset).await;
            let end = context.clock.now();
            self.carry = if before.is_none() { end } else { 0 };
            if let (Some((block, before)), Ok(read)) = (before, result) {
                let data = &self.buffer[..read];
                let proved = table.prove(open.file, offset, data, block, &before, &mut self.scratch);
                let mut record = record.borrow_mut();
                match proved {
                    Ok(bytes) => record.verified(bytes),
                    Err(what) => record.corruption(format!("{}, {what}", self.name_of(context, op))),
                }
            }
            Done::moved(start, end, offset, length, result)
        } else if let Some(block) = context.verify {
            let buffer = &mut self.buffer[..length];
            while !table.begin_write(open.file, offset, buffer, block) {
                // Another worker writes this block; only one of the two writes could be proved.
                let soon = context.clock.after(context.clock.now(), 20_000);
                engine.sleep_until(context.clock, soon).await;
            }
            let start = context.clock.now();
            let result = engine.write(&open.handle, buffer, offset).await;
            let end = context.clock.now();
            table.end_write(open.file, offset, length, block, result == Ok(length));
            Done::moved(start, end, offset, length, result)
        } else {
            // Walk through the buffer, so that successive writes differ in more than their first bytes.
            if self.window + length > self.buffer.len() {
                self.window = 0;
            }
            let buffer = &mut self.buffer[self.window..self.window + length];
            self.window += length.next_multiple_of(BLOCK);
            content::make_unique(buffer, self.writer, &mut self.written);
            let start = if self.carry > 0 { self.carry } else { context.clock.now() };
            let result = engine.write(&open.handle, buffer, offset).await;
            let end = context.clock.now();
            self.carry = end;
            Done::moved(start, end, offset, length, result)
        }
    }

    async fn on_handle<E: Engine<Handle = H>>(
        &mut self,
        engine: &E,
        context: &WorkerContext<'_>,
        op: &Operation,
    ) -> Done {
        let slot = &mut self.handles[usize::from(op.slot)];
        if op.kind == OperationKind::Close {
            let Some(open) = slot.take() else { return Done::not_open(context) };
            self.last = Some((open.fileset, context.tables[usize::from(open.fileset)].at(open.file)));
            let start = context.clock.now();
            let result = engine.close(open.handle).await;
            return Done::plain(start, context.clock.now(), result);
        }
        let Some(open) = slot else { return Done::not_open(context) };
        let start = context.clock.now();
        let result = match op.kind {
            OperationKind::Fsync => engine.fsync(&open.handle).await,
            OperationKind::Fdatasync => engine.fdatasync(&open.handle).await,
            OperationKind::Lock => engine.lock(&open.handle, op.lock, op.length).await,
            _ => engine.unlock(&open.handle, op.length).await,
        };
        Done::plain(start, context.clock.now(), result)
    }

    async fn by_name<E: Engine<Handle = H>>(
        &mut self,
        engine: &E,
        context: &WorkerContext<'_>,
        shared: &WorkerShared,
        op: &Operation,
        picked: Picked,
    ) -> Done {
        let table = &context.tables[usize::from(op.fileset)];
        self.last = Some((op.fileset, picked));
        match op.kind {
            OperationKind::Readdir | OperationKind::Mkdir | OperationKind::Rmdir => {
                table.directory_path(table.directory_of(picked.file), &mut self.path);
                if op.kind != OperationKind::Readdir {
                    self.path.push(b"/d");
                    self.path.push_number(picked.file, 8);
                }
            }
            _ => table.file_path(picked, &mut self.path),
        }
        match op.kind {
            OperationKind::Open | OperationKind::Create => {
                let slot = usize::from(op.slot);
                if let Some(left) = self.handles[slot].take() {
                    // A flow that opens into a handle in use gives the old file up; this is not an operation of the flow.
                    let _ = engine.close(left.handle).await;
                }
                let start = context.clock.now();
                let result = match op.kind {
                    OperationKind::Open => engine.open(&self.path, op.flags).await,
                    _ => engine.create(&self.path, op.flags).await,
                };
                let end = context.clock.now();
                let result = result.map(|handle| {
                    let size = table.size(picked.file);
                    let open = Open { handle, fileset: op.fileset, file: picked.file, size, places: (0, 0) };
                    self.handles[slot] = Some(open);
                    if self.lane == 0 {
                        shared.positions[slot].set(self.first_position(context, op, size));
                    }
                });
                if op.kind == OperationKind::Create {
                    match result {
                        Ok(()) => table.set_present(picked),
                        Err(_) if op.pick == FilePick::New => table.set_absent(picked.file),
                        Err(_) => {}
                    }
                }
                Done::plain(start, end, result)
            }
            OperationKind::Unlink => {
                let claimed = table.claim_existing(picked);
                let start = context.clock.now();
                let result = engine.unlink(&self.path).await;
                let end = context.clock.now();
                match result {
                    Ok(()) => table.set_absent(picked.file),
                    Err(_) if claimed => table.set_present(picked),
                    Err(_) => {}
                }
                Done::plain(start, end, result)
            }
            OperationKind::Rename => {
                let claimed = table.claim_existing(picked);
                let to = Picked { renamed: !picked.renamed, ..picked };
                table.file_path(to, &mut self.other);
                let start = context.clock.now();
                let result = engine.rename(&self.path, &self.other).await;
                let end = context.clock.now();
                match result {
                    Ok(()) => {
                        table.set_present(to);
                        self.last = Some((op.fileset, to));
                    }
                    Err(_) if claimed => table.set_present(picked),
                    Err(_) => {}
                }
                Done::plain(start, end, result)
            }
            kind => {
                let start = context.clock.now();
                let result = match kind {
                    OperationKind::Stat => engine.stat(&self.path).await,
                    OperationKind::Readdir => engine.readdir(&self.path).await.map(drop),
                    OperationKind::Mkdir => engine.mkdir(&self.path).await,
                    _ => engine.rmdir(&self.path).await,
                };
                Done::plain(start, context.clock.now(), result)
            }
        }
    }

    /// Workers that share a file start at different places of it.
    fn first_position(&self, context: &WorkerContext<'_>, op: &Operation, size: u64) -> u64 {
        let table = &context.tables[usize::from(op.fileset)];
        let sharers = u64::from(context.workers).div_ceil(table.files().max(1));
        if op.pick != FilePick::Own || sharers < 2 {
            return 0;
        }
        let turn = u64::from(context.worker) / table.files().max(1);
        let blocks = size / BLOCK as u64;
        turn * blocks / sharers * BLOCK as u64
    }

    fn pick(&mut self, context: &WorkerContext<'_>, op: &Operation) -> Option<Picked> {
        self.carry = 0;
        let table = &context.tables[usize::from(op.fileset)];
        let worker = u64::from(context.worker);
        match op.pick {
            FilePick::Own => Some(table.at(worker % table.files())),
            FilePick::Random => table.random(&mut self.random),
            FilePick::Next => {
                let turn = self.round * u64::from(self.lanes) + u64::from(self.lane);
                self.round += 1;
                let from = (worker + turn * u64::from(context.workers)) % table.files();
                match op.kind {
                    OperationKind::Create => Some(table.at(from)),
                    _ => table.existing_from(from),
                }
            }
            FilePick::New => table.claim_new().map(|file| Picked { file, renamed: false }),
            FilePick::Once => table.once(),
            FilePick::Same => match self.last {
                Some((fileset, picked)) if fileset == op.fileset => Some(picked),
                _ => table.random(&mut self.random),
            },
        }
    }

    fn name_of(&self, context: &WorkerContext<'_>, op: &Operation) -> String {
        let open = self.handles[usize::from(op.slot)].as_ref().filter(|_| op.kind.needs_handle());
        match open {
            Some(open) => {
                let table = &context.tables[usize::from(open.fileset)];
                let mut path = PathBuffer::new();
                table.file_path(table.at(open.file), &mut path);
                path.text()
            }
            None => self.path.text(),
        }
    }
}

/// What an operation did.
struct Done {
    start: Ticks,
    end: Ticks,
    offset: u64,
    bytes: u64,
    result: Result<(), OperationError>,
}

impl Done {
    fn plain(start: Ticks, end: Ticks, result: Result<(), OperationError>) -> Self {
        Self { start, end, offset: u64::MAX, bytes: 0, result }
    }

    #[inline]
    fn moved(start: Ticks, end: Ticks, offset: u64, asked: usize, result: Result<usize, OperationError>) -> Self {
        let (bytes, result) = match result {
            Ok(done) if done == asked => (done as u64, Ok(())),
            Ok(done) => (0, Err(OperationError::Short { asked, done })),
            Err(error) => (0, Err(error)),
        };
        Self { start, end, offset, bytes, result }
    }

    /// The handle is not open, because the operation that should have opened it failed.
    #[cold]
    fn not_open(context: &WorkerContext<'_>) -> Self {
        let now = context.clock.now();
        Self::plain(now, now, Err(OperationError::Os(libc::EBADF)))
    }
}
