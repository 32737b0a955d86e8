//! One operation of a lane: on data, on a handle, or by name.

use super::pick::{Hold, Pick};
use super::position::{Position, end_of, turn_of};
use super::{Job, Lane, Open, Outcome, WorkerContext, WorkerShared, sleep_until};
use crate::content::{self, BLOCK};
use crate::engine::{Engine, Files};
use crate::files::{NameState, PathBuffer, Picked};
use crate::model::{OffsetPick, OperationKind};
use crate::operation_error::OperationError;
use crate::program::Operation;
use crate::recorder::{Spot, Timing};
use crate::recording::StopReason;
use benchmaster_clock::Ticks;
use benchmaster_record::witness::Promise;

/// Pause before a stream asks again for what another one holds.
const RETRY_NS: u64 = 20_000;

/// Up to this size a write is prepared faster than the clock is read.
const SMALL: usize = 4 * BLOCK;

/// What an operation did.
struct Done {
    start: Ticks,
    end: Ticks,
    spot: Spot,
    /// Bytes moved, and those that should have been.
    bytes: u64,
    asked: u64,
    result: Result<(), OperationError>,
}

impl Done {
    fn plain(start: Ticks, end: Ticks, spot: Spot, result: Result<(), OperationError>) -> Self {
        Self { start, end, spot, bytes: 0, asked: 0, result }
    }

    #[inline]
    fn moved(
        start: Ticks,
        end: Ticks,
        spot: Spot,
        asked: usize,
        result: Result<usize, OperationError>,
    ) -> Self {
        let (bytes, result) = match result {
            Ok(done) if done == asked => (done as u64, Ok(())),
            Ok(done) => (0, Err(OperationError::Short { asked, done })),
            Err(error) => (0, Err(error)),
        };
        Self { start, end, spot, bytes, asked: asked as u64, result }
    }

    /// The handle is not open, because the operation that should have opened it failed.
    #[cold]
    fn not_open(context: &WorkerContext<'_>) -> Self {
        let now = context.clock.now();
        Self::plain(now, now, Spot::NONE, Err(OperationError::Os(libc::EBADF)))
    }
}

/// A read or write that is about to begin.
pub(super) struct Transfer {
    start: Ticks,
    /// 0 where the file system decides.
    pub(super) offset: u64,
    pub(super) length: usize,
    /// Where in the buffer the data of a write are.
    pub(super) window: usize,
}

/// Closes a file, which promises its data where that flushes them.
pub(super) async fn close<F: Files>(
    files: &F,
    context: &WorkerContext<'_>,
    open: Open<F::Handle>,
) -> Result<(), OperationError> {
    let table = &context.tables[usize::from(open.fileset)];
    let flushing = if table.close_flushes() { table.flushing(context.client, open.file) } else { None };
    let result = files.close(open.handle).await;
    if result.is_ok() {
        table.flushed(open.file, flushing, Promise::Close);
    }
    result
}

impl<H> Lane<H> {
    /// The way of most operations: prepares a read or write on an open handle, without verification. `None` for anything
    /// else.
    #[inline(always)]
    pub(super) fn begin_transfer<E>(&mut self, job: &Job<'_, '_, E>, op: &Operation) -> Option<Transfer>
    where
        E: Engine<Handle = H>,
    {
        let Job { context, shared, limits, .. } = job;
        let reads = op.kind == OperationKind::Read;
        if !(reads || op.kind == OperationKind::Write)
            || context.verify.is_some() && (reads || op.offset != OffsetPick::Append)
            || shared.moved.get() >= limits.bytes
        {
            return None;
        }
        let Position::At(offset, length) = self.place(shared, op) else { return None };
        let mut window = 0;
        job.engine.renew(&mut self.buffer);
        if !reads {
            // Walk through the buffer, so that successive writes differ in more than their first bytes.
            if self.window + length > self.buffer.len() {
                self.window = 0;
            }
            window = self.window;
            self.window += length.next_multiple_of(BLOCK);
            content::make_unique(&mut self.buffer[window..window + length], &mut self.unique);
        }
        // To prepare a large write takes time that is none of the write's.
        let carried = self.carry > 0 && (reads || length <= SMALL);
        let start = if carried { self.carry } else { context.clock.now() };
        Some(Transfer { start, offset, length, window })
    }

    /// Records a read or write.
    #[inline(always)]
    pub(super) fn end_transfer<E>(
        &mut self,
        job: &Job<'_, '_, E>,
        op: &Operation,
        transfer: &Transfer,
        result: Result<usize, OperationError>,
    ) -> Outcome {
        let end = job.context.clock.now();
        self.carry = end;
        let offset = if op.offset == OffsetPick::Append { u64::MAX } else { transfer.offset };
        if op.kind == OperationKind::Write
            && let Ok(bytes) = result
        {
            self.grow(job.context, op, transfer.offset, bytes);
        }
        let spot = self.spot(op, offset);
        let asked = self.asked(op, transfer.length, result.as_ref().ok());
        self.record(job, op, Done::moved(transfer.start, end, spot, asked, result))
    }

    /// Where in which file a read or write of an open handle is.
    #[inline(always)]
    fn spot(&self, op: &Operation, offset: u64) -> Spot {
        match &self.handles[usize::from(op.slot)] {
            Some(open) => Spot { offset, ..Spot::file(open.fileset, open.file) },
            None => Spot { offset, ..Spot::NONE },
        }
    }

    /// How much a read or write should have moved. Where files grow while others write them, their ends are not known for
    /// certain: a read that ends early has met one.
    #[inline(always)]
    fn asked(&self, op: &Operation, length: usize, done: Option<&usize>) -> usize {
        match (&self.handles[usize::from(op.slot)], done) {
            (Some(open), Some(done)) if open.grows && op.kind == OperationKind::Read => length.min(*done),
            _ => length,
        }
    }

    /// Notes how long a file is now, where that is not given.
    #[inline(always)]
    fn grow(&self, context: &WorkerContext<'_>, op: &Operation, offset: u64, bytes: usize) {
        if let Some(open) = &self.handles[usize::from(op.slot)]
            && open.grows
        {
            let offset = (op.offset != OffsetPick::Append).then_some(offset);
            context.tables[usize::from(open.fileset)].wrote(open.file, offset, bytes as u64);
        }
    }

    /// Records what an operation did, and says how to go on.
    #[inline(always)]
    fn record<E>(&mut self, job: &Job<'_, '_, E>, op: &Operation, done: Done) -> Outcome {
        let intended = std::mem::replace(&mut self.intended, Ticks::MAX).min(done.start);
        let timing = Timing { intended, start: done.start, end: done.end };
        self.worked = true;
        let outcome = match done.result {
            Ok(()) => {
                if !job.record.borrow_mut().success(op.series, timing, done.bytes, done.spot) {
                    self.carry = 0;
                }
                job.shared.failures.set(0);
                Outcome::Finished
            }
            Err(error) => self.failed(job, op, timing, &done, error),
        };
        if done.end < job.limits.deadline() { outcome } else { self.deadline_over(job, outcome) }
    }

    #[cold]
    fn failed<E>(
        &mut self,
        job: &Job<'_, '_, E>,
        op: &Operation,
        timing: Timing,
        done: &Done,
        error: OperationError,
    ) -> Outcome {
        let Job { context, shared, record, .. } = job;
        self.carry = 0;
        shared.moved.set(shared.moved.get() - done.asked);
        record.borrow_mut().failure(op.series, timing, done.spot, error, &|| self.name_of(context, op));
        shared.failures.set(shared.failures.get() + 1);
        Outcome::Failed
    }

    #[cold]
    fn deadline_over<E>(&mut self, job: &Job<'_, '_, E>, outcome: Outcome) -> Outcome {
        if self.locked == 0 || job.limits.deadline() == 0 {
            return Outcome::Stop(StopReason::Time);
        }
        // Others may be waiting for the lock, and would wait beyond the end of the phase.
        self.overdue = true;
        outcome
    }

    pub(super) async fn operation<E>(&mut self, job: &Job<'_, '_, E>, op: &Operation) -> Outcome
    where
        E: Engine<Handle = H>,
    {
        self.carry = 0;
        let done = if op.kind.moves_data() {
            if job.shared.moved.get() >= job.limits.bytes {
                return Outcome::Stop(StopReason::Work);
            }
            match (job.context.verify, self.place(job.shared, op)) {
                (_, Position::Nowhere) => return Outcome::Stop(StopReason::Work),
                (Some(block), Position::At(offset, length)) if op.kind == OperationKind::Read => {
                    self.verified_read(job, op, block, (offset, length)).await
                }
                (Some(block), Position::At(offset, length)) => {
                    self.verified_write(job, op, block, (offset, length)).await
                }
                (_, _) => Done::not_open(job.context),
            }
        } else if op.kind.needs_handle() {
            self.on_handle(job.engine.files(), job.context, job.shared, op).await
        } else {
            match self.pick_in_time(job, op).await {
                Ok(pick) => self.by_name(job.engine.files(), job.context, job.shared, op, pick).await,
                Err(reason) => return Outcome::Stop(reason),
            }
        };
        self.record(job, op, done)
    }

    async fn verified_read<E>(
        &mut self,
        job: &Job<'_, '_, E>,
        op: &Operation,
        block: usize,
        (offset, length): (u64, usize),
    ) -> Done
    where
        E: Engine<Handle = H>,
    {
        let Job { engine, context, .. } = job;
        let Some(open) = &self.handles[usize::from(op.slot)] else { return Done::not_open(context) };
        let table = &context.tables[usize::from(open.fileset)];
        table.see(open.file, offset, length, block, &mut self.seen);
        engine.renew(&mut self.buffer);
        let start = context.clock.now();
        let result = engine.read(&open.handle, &mut self.buffer[..length], offset).await;
        let end = context.clock.now();
        if let Ok(read) = result {
            // Of a read that ended early the last block is not whole.
            let whole = if read < length { read - read % block } else { read };
            self.check(job, op, offset, whole, block);
        }
        let asked = self.asked(op, length, result.as_ref().ok());
        Done::moved(start, end, self.spot(op, offset), asked, result)
    }

    async fn verified_write<E>(
        &mut self,
        job: &Job<'_, '_, E>,
        op: &Operation,
        block: usize,
        (offset, length): (u64, usize),
    ) -> Done
    where
        E: Engine<Handle = H>,
    {
        let Job { engine, context, .. } = job;
        let Some(open) = &self.handles[usize::from(op.slot)] else { return Done::not_open(context) };
        let table = &context.tables[usize::from(open.fileset)];
        engine.renew(&mut self.buffer);
        let claim = loop {
            if let Some(claim) = table.begin_write(open.file, offset, &mut self.buffer[..length], block) {
                break claim;
            }
            // Another stream writes this block; only one of the two writes could be proved.
            let soon = context.clock.after(context.clock.now(), RETRY_NS);
            engine.sleep_until(context.clock, soon).await;
        };
        let emptied = table.before_write(open.file);
        let start = context.clock.now();
        let result = engine.write_buffer(&open.handle, &self.buffer, 0..length, offset).await;
        let end = context.clock.now();
        let whole = result == Ok(length);
        claim.end(whole);
        table.after_write(context.client, open.file, emptied, (offset, length), whole.then_some(open.synced));
        if let Ok(bytes) = result {
            self.grow(context, op, offset, bytes);
        }
        Done::moved(start, end, self.spot(op, offset), length, result)
    }

    /// Proves what was read.
    #[cold]
    fn check<E>(&mut self, job: &Job<'_, '_, E>, op: &Operation, offset: u64, read: usize, block: usize) {
        self.carry = 0;
        let Some(open) = &self.handles[usize::from(op.slot)] else { return };
        let table = &job.context.tables[usize::from(open.fileset)];
        let scratch = self.scratch.get_or_insert_with(|| Box::new([0; BLOCK]));
        let proved = table.prove(open.file, offset, &self.buffer[..read], block, &self.seen, scratch);
        let mut record = job.record.borrow_mut();
        match proved {
            Ok(bytes) => record.verified(bytes),
            Err(what) => record.corruption(format!("{}, {what}", self.name_of(job.context, op))),
        }
    }

    async fn on_handle<F>(
        &mut self,
        files: &F,
        context: &WorkerContext<'_>,
        shared: &WorkerShared,
        op: &Operation,
    ) -> Done
    where
        F: Files<Handle = H>,
    {
        let (slot, clock) = (usize::from(op.slot), context.clock);
        if op.kind == OperationKind::Close {
            let Some(open) = self.handles[slot].take() else { return Done::not_open(context) };
            shared.stream.note(op.kind, open.name, u64::MAX, 0);
            self.locked &= !(1 << slot);
            let table = &context.tables[usize::from(open.fileset)];
            self.last = Some((open.fileset, table.at(open.file)));
            let spot = Spot::file(open.fileset, open.file);
            let file = open.file;
            let start = clock.now();
            let result = close(files, context, open).await;
            let end = clock.now();
            table.release(file);
            return Done::plain(start, end, spot, result);
        }
        let Some(open) = &self.handles[slot] else { return Done::not_open(context) };
        shared.stream.note(op.kind, open.name, u64::MAX, op.length);
        let table = &context.tables[usize::from(open.fileset)];
        let promise = match op.kind {
            OperationKind::Fsync => Some(Promise::Fsync),
            OperationKind::Fdatasync => Some(Promise::Fdatasync),
            OperationKind::Truncate => {
                table.forget_content(open.file);
                None
            }
            _ => None,
        };
        let flushing = promise.and_then(|_| table.flushing(context.client, open.file));
        let start = clock.now();
        let result = files.on_open(op.kind, &open.handle, op.lock, op.length).await;
        let end = clock.now();
        if let (Some(promise), Ok(())) = (promise, &result) {
            table.flushed(open.file, flushing, promise);
        }
        match op.kind {
            OperationKind::Lock if result.is_ok() => self.locked |= 1 << slot,
            OperationKind::Unlock => self.locked &= !(1 << slot),
            OperationKind::Truncate if result.is_ok() => self.cut(context, slot, op.length),
            OperationKind::Allocate if result.is_ok() => {
                context.tables[usize::from(open.fileset)].wrote(open.file, Some(0), op.length);
            }
            _ => {}
        }
        Done::plain(start, end, self.spot(op, u64::MAX), result)
    }

    /// Picks a file, waiting for one while all are claimed by other streams.
    #[inline]
    async fn pick_in_time<E>(&mut self, job: &Job<'_, '_, E>, op: &Operation) -> Result<Pick, StopReason>
    where
        E: Engine<Handle = H>,
    {
        let clock = job.context.clock;
        loop {
            match self.pick(job.context, job.shared, op) {
                Ok(Some(pick)) => return Ok(pick),
                Ok(None) => return Err(StopReason::Work),
                Err(super::pick::Busy) => {
                    let soon = clock.after(clock.now(), RETRY_NS);
                    if !sleep_until(job.engine, job.context, soon, job.limits).await {
                        return Err(StopReason::Time);
                    }
                }
            }
        }
    }

    async fn by_name<F>(
        &mut self,
        files: &F,
        context: &WorkerContext<'_>,
        shared: &WorkerShared,
        op: &Operation,
        pick: Pick,
    ) -> Done
    where
        F: Files<Handle = H>,
    {
        let (table, clock) = (&*context.tables[usize::from(op.fileset)], context.clock);
        let file = pick.picked.file;
        self.last = Some((op.fileset, pick.picked));
        shared.stream.note(op.kind, table.name_hash(pick.picked), u64::MAX, 0);
        if op.kind.is_of_directory() {
            table.directory_path(table.directory_of(file), &mut self.path);
            if matches!(op.kind, OperationKind::Mkdir | OperationKind::Rmdir) {
                self.path.push(b"/d");
                self.path.push_number(file, 8);
            }
        } else {
            table.file_path(pick.picked, &mut self.path);
        }
        if let Some(beside) = op.of {
            self.path.push(beside.suffix().as_bytes());
        }
        let empties = op.kind == OperationKind::Unlink && op.of.is_none() || op.flags.truncate;
        if empties {
            table.forget_content(file);
        }
        if op.kind.opens() {
            return self.open(files, context, shared, op, pick).await;
        }
        let renamed = Picked { renamed: !pick.picked.renamed, ..pick.picked };
        let moves = op.kind == OperationKind::Unlink && op.of.is_none() || op.kind == OperationKind::Rename;
        if moves {
            table.name_changes(file);
        }
        if op.kind == OperationKind::Rename {
            table.file_path(renamed, &mut self.other);
        } else {
            self.name_beside(op, table, pick.picked);
        }
        let start = clock.now();
        let result = files.by_name(op.kind, &self.names(op)).await;
        let end = clock.now();
        match op.kind {
            OperationKind::Unlink if op.of.is_some() => pick.let_go(table, op.kind),
            OperationKind::Unlink if result.is_ok() => {
                table.name_changed(file, NameState::Absent, Promise::Unlink);
                table.set_absent(file);
            }
            OperationKind::Rename if result.is_ok() => {
                table.name_changed(file, NameState::of(renamed), Promise::Rename);
                table.set_present(renamed);
                self.last = Some((op.fileset, renamed));
            }
            kind => pick.let_go(table, kind),
        }
        Done::plain(start, end, Spot::file(op.fileset, file), result)
    }

    /// Opens or creates the picked file into the operation's handle.
    async fn open<F>(
        &mut self,
        files: &F,
        context: &WorkerContext<'_>,
        shared: &WorkerShared,
        op: &Operation,
        pick: Pick,
    ) -> Done
    where
        F: Files<Handle = H>,
    {
        let table = &*context.tables[usize::from(op.fileset)];
        let (slot, file) = (usize::from(op.slot), pick.picked.file);
        let mut start = context.clock.now();
        if let Some(left) = self.handles[slot].take() {
            // A flow that opens into a handle in use gives the old file up. This is not an operation of the flow, but an error
            // (a network file system may report lost writes now) must not be lost.
            self.locked &= !(1 << slot);
            let left_file = left.file;
            let left_table = &context.tables[usize::from(left.fileset)];
            let closed = close(files, context, left).await;
            left_table.release(left_file);
            let now = context.clock.now();
            if closed.is_err() {
                pick.let_go(table, op.kind);
                return Done::plain(start, now, Spot::file(op.fileset, file), closed);
            }
            start = now;
        }
        // Before it is opened: what others append later may not be seen through this handle.
        let length = table.length(file);
        let creates = op.kind == OperationKind::Create;
        if creates {
            table.name_changes(file);
        }
        let opened = files.open(&self.path, op.flags, creates).await;
        let end = context.clock.now();
        let result = match opened {
            Ok(handle) => {
                if creates {
                    table.name_changed(file, NameState::of(pick.picked), Promise::Create);
                }
                if pick.hold != Hold::Used {
                    table.set_used(pick.picked);
                }
                if op.flags.truncate || creates && pick.hold == Hold::Claimed {
                    table.set_empty(file);
                }
                let name = table.name_hash(pick.picked);
                // What is created is to become as long as the fileset says; what is there is as long as it is.
                let size = if creates || op.flags.truncate { table.size(file) } else { length };
                let (grows, synced) = (table.keeps_lengths(), op.flags.sync || op.flags.dsync);
                let turn = turn_of(context, op, table);
                if self.lane == 0 {
                    shared.positions[slot].set(self.first_position(op, turn, size));
                }
                let end = end_of(op, turn, size);
                let fileset = op.fileset;
                self.handles[slot] = Some(Open {
                    handle,
                    fileset,
                    file,
                    name,
                    size,
                    grows,
                    synced,
                    end,
                    turn,
                    places: (0, 0),
                });
                Ok(())
            }
            Err(error) => {
                pick.let_go(table, op.kind);
                Err(error)
            }
        };
        Done::plain(start, end, Spot::file(op.fileset, file), result)
    }

    /// Name of the file an operation works on, for messages.
    #[cold]
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
