//! Replaying a trace: the calls of one of its threads, at their times.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Job, Lane, Outcome, WorkerContext, sleep_until};
use crate::content;
use crate::counts::LatencyCounts;
use crate::engine::{Engine, Files, Names};
use crate::files::PathBuffer;
use crate::model::OperationKind;
use crate::operation_error::OperationError;
use crate::program::Instruction;
use crate::program::flags::OpenFlags;
use crate::recorder::{Spot, Timing};
use crate::recording::StopReason;
use crate::replay::plan::{Call, Flags, NONE};
use crate::replay::stage::Stage;
use benchmaster_clock::Ticks;

/// First and longest pause before a stream looks again for what it waits for.
const PAUSES_NS: (u64, u64) = (20_000, 1_000_000);

/// Bytes of a file's content that are written at once before the replay.
const FILL: usize = 1 << 20;

/// How a call went.
struct Went {
    start: Ticks,
    end: Ticks,
    bytes: u64,
    result: Result<(), OperationError>,
}

/// What a worker's replay adds up to.
struct Tally {
    calls: u64,
    differing: u64,
    late: LatencyCounts,
}

impl<H> Lane<H> {
    /// Carries out an instruction of a replay.
    pub(crate) async fn replay<E>(&mut self, job: &Job<'_, '_, E>, instruction: &Instruction) -> Outcome
    where
        E: Engine<Handle = H>,
    {
        if matches!(instruction, Instruction::PrepareReplay) {
            self.prepare_replay(job).await
        } else {
            self.replay_thread(job).await
        }
    }

    /// Makes what must exist before the first call, and opens what was open: all workers of a client together.
    async fn prepare_replay<E>(&mut self, job: &Job<'_, '_, E>) -> Outcome
    where
        E: Engine<Handle = H>,
    {
        let Some(stage) = self.stage.clone() else { return Outcome::Finished };
        let mut result = self.make_initial(job, &stage).await;
        // Those who wait must not wait for one who failed.
        stage.directories.store(1, Ordering::Release);
        stage.prepared.fetch_add(1, Ordering::AcqRel);
        if result.is_ok() {
            result = self.open_before(job, &stage).await;
        }
        match result {
            Ok(()) => Outcome::Finished,
            Err((path, error)) => {
                let now = job.context.clock.now();
                let timing = Timing { intended: now, start: now, end: now };
                let name = format!(
                    "{} (before the replay)",
                    String::from_utf8_lossy(stage.run.plan.paths.get(path))
                );
                job.record.borrow_mut().failure(0, timing, Spot::NONE, error, &|| name.clone());
                Outcome::Failed
            }
        }
    }

    async fn make_initial<E>(
        &mut self,
        job: &Job<'_, '_, E>,
        stage: &Arc<Stage<H>>,
    ) -> Result<(), (u32, OperationError)>
    where
        E: Engine<Handle = H>,
    {
        let Job { engine, context, .. } = job;
        let plan = &stage.run.plan;
        let directories = plan.initial.iter().take_while(|initial| initial.directory).count();
        if context.worker == 0 {
            for initial in &plan.initial[..directories] {
                self.name(context, plan.paths.get(initial.path));
                let names = Names::new(&self.path, &self.other);
                engine
                    .files()
                    .by_name(OperationKind::Mkdir, &names)
                    .await
                    .map_err(|error| (initial.path, error))?;
            }
            stage.directories.store(1, Ordering::Release);
        }
        if !wait_for(job, || stage.directories.load(Ordering::Acquire) > 0).await {
            return Ok(());
        }
        let mut chunk = Vec::new();
        while let Some(initial) =
            plan.initial.get(directories + stage.next_file.fetch_add(1, Ordering::Relaxed) as usize)
        {
            if chunk.is_empty() {
                chunk = vec![0; FILL];
                content::fill_random(&mut chunk, 0x7261_6365, self.unique);
            }
            self.name(context, plan.paths.get(initial.path));
            self.make(job, initial.size, &mut chunk).await.map_err(|error| (initial.path, error))?;
        }
        Ok(())
    }

    /// Opens what was open before the first call of this worker's thread. The one that opens a file may not be the one
    /// that made it.
    async fn open_before<E>(
        &mut self,
        job: &Job<'_, '_, E>,
        stage: &Arc<Stage<H>>,
    ) -> Result<(), (u32, OperationError)>
    where
        E: Engine<Handle = H>,
    {
        let Job { engine, context, .. } = job;
        let plan = &stage.run.plan;
        let made = || stage.prepared.load(Ordering::Acquire) >= context.workers;
        if plan.opened.is_empty() || !wait_for(job, made).await {
            return Ok(());
        }
        for opened in plan.opened.iter().filter(|opened| opened.thread == context.worker) {
            self.name(context, plan.paths.get(opened.path));
            let handle = engine.files().open(&self.path, opened.flags.open(), false).await;
            stage.put(opened.handle, handle.map_err(|error| (opened.path, error))?);
        }
        Ok(())
    }

    /// Makes the file that `path` names.
    async fn make<E>(
        &mut self,
        job: &Job<'_, '_, E>,
        size: u64,
        chunk: &mut [u8],
    ) -> Result<(), OperationError>
    where
        E: Engine<Handle = H>,
    {
        let flags = OpenFlags { write: true, ..OpenFlags::default() };
        let handle = job.engine.files().open(&self.path, flags, true).await?;
        let mut at = 0;
        while at < size {
            let length = usize::try_from(size - at).unwrap_or(usize::MAX).min(chunk.len());
            content::make_unique(&mut chunk[..length], &mut self.unique);
            at += match job.engine.write(&handle, &chunk[..length], at).await? {
                0 => return Err(OperationError::Short { asked: length, done: 0 }),
                done => done as u64,
            };
        }
        job.engine.files().close(handle).await
    }

    /// Replays the calls of this worker's thread.
    async fn replay_thread<E>(&mut self, job: &Job<'_, '_, E>) -> Outcome
    where
        E: Engine<Handle = H>,
    {
        let Some(stage) = self.stage.clone() else { return Outcome::Stop(StopReason::Work) };
        let mut tally = Tally { calls: 0, differing: 0, late: LatencyCounts::new() };
        let reason = self.replay_calls(job, &stage, &mut tally).await;
        stage.leave(job.context.worker);
        stage.run.add(tally.calls, tally.differing, &tally.late);
        Outcome::Stop(reason)
    }

    async fn replay_calls<E>(
        &mut self,
        job: &Job<'_, '_, E>,
        stage: &Arc<Stage<H>>,
        tally: &mut Tally,
    ) -> StopReason
    where
        E: Engine<Handle = H>,
    {
        let Job { engine, context, limits, shared, .. } = job;
        let (plan, speed, clock) = (stage.run.plan.clone(), stage.run.speed, context.clock);
        let Some(thread) = plan.threads.get(context.worker as usize) else { return StopReason::Work };
        for (number, call) in plan.calls[thread.calls.clone()].iter().enumerate() {
            let mut intended = Ticks::MAX;
            if speed.is_finite() && call.kind.is_some() {
                intended = clock.after(limits.start, (call.at_ns as f64 / speed) as u64);
                if !sleep_until(*engine, context, intended, limits).await {
                    return StopReason::Time;
                }
            }
            if !stage.is_over(call.after) && !wait_for(job, || stage.is_over(call.after)).await {
                return StopReason::Time;
            }
            if let Some(kind) = call.kind {
                let went = self.perform(job, stage, call, kind).await;
                self.worked = true;
                tally.calls += 1;
                let timing = Timing { intended: intended.min(went.start), start: went.start, end: went.end };
                if intended != Ticks::MAX {
                    tally.late.record(clock.nanos(timing.intended, went.start));
                }
                let path = if call.on_handle() { NONE } else { call.object };
                let spot = Spot { offset: call.offset, file: path, fileset: 0 };
                let series = stage.series(kind);
                match as_recorded(call, went.result) {
                    Ok(()) => {
                        let _ = job.record.borrow_mut().success(series, timing, went.bytes, spot);
                        shared.failures.set(0);
                    }
                    Err(error) => {
                        tally.differing += 1;
                        let name = || self.describe(stage, call, &thread.name, number);
                        job.record.borrow_mut().failure(series, timing, spot, error, &name);
                        shared.failures.set(shared.failures.get() + 1);
                        if shared.failures.get() >= context.max_failures {
                            return StopReason::Errors;
                        }
                    }
                }
                if went.end >= limits.deadline() {
                    return StopReason::Time;
                }
            }
            stage.advance(context.worker, number + 1);
        }
        StopReason::Work
    }

    #[cold]
    fn describe(&self, stage: &Stage<H>, call: &Call, thread: &str, number: usize) -> String {
        let recorded = match call.error {
            0 => "it succeeded".to_owned(),
            error => format!("it failed with {}", OperationError::Os(error.into()).name()),
        };
        let object = if call.on_handle() {
            format!("open file {}", call.object)
        } else {
            String::from_utf8_lossy(stage.run.plan.paths.get(call.object)).into_owned()
        };
        format!("{object} (call {number} of thread {thread}; when recorded, {recorded})")
    }

    /// Puts a path of the trace below the client's directory.
    fn name(&mut self, context: &WorkerContext<'_>, path: &[u8]) {
        name(context, &mut self.path, path);
    }

    async fn perform<E>(
        &mut self,
        job: &Job<'_, '_, E>,
        stage: &Arc<Stage<H>>,
        call: &Call,
        kind: OperationKind,
    ) -> Went
    where
        E: Engine<Handle = H>,
    {
        let clock = job.context.clock;
        if call.on_handle() {
            let open = match kind {
                OperationKind::Close => stage.take(call.object),
                _ => stage.get(call.object),
            };
            let Some(open) = open else {
                // Its open failed, or it is closed already.
                let now = clock.now();
                return Went { start: now, end: now, bytes: 0, result: Err(OperationError::Os(libc::EBADF)) };
            };
            return self.on_open(job, call, kind, open).await;
        }
        let paths = &stage.run.plan.paths;
        self.name(job.context, paths.get(call.object));
        if call.other != NONE && !matches!(kind, OperationKind::Open | OperationKind::Create) {
            name(job.context, &mut self.other, paths.get(call.other));
        }
        let start = clock.now();
        if !kind.opens() {
            let result = self.by_path(job.engine.files(), call, kind).await;
            return Went { start, end: clock.now(), bytes: 0, result };
        }
        let files = job.engine.files();
        let opened = files.open(&self.path, call.flags.open(), kind == OperationKind::Create).await;
        let end = clock.now();
        let result = match opened {
            Ok(handle) if call.other == NONE => files.close(handle).await,
            Ok(handle) => {
                stage.put(call.other, handle);
                Ok(())
            }
            Err(error) => Err(error),
        };
        Went { start, end, bytes: 0, result }
    }

    /// A call by name that opens nothing.
    async fn by_path<F>(&self, files: &F, call: &Call, kind: OperationKind) -> Result<(), OperationError>
    where
        F: Files<Handle = H>,
    {
        if kind == OperationKind::Truncate {
            // No engine does it by name.
            let flags = OpenFlags { write: true, ..OpenFlags::default() };
            let handle = files.open(&self.path, flags, false).await?;
            let cut = files.on_open(kind, &handle, call.flags.lock(), call.offset).await;
            return cut.and(files.close(handle).await);
        }
        let content = match (kind, &self.stage) {
            (OperationKind::Symlink, Some(stage)) => stage.run.plan.paths.get(call.other).to_vec(),
            (OperationKind::Setxattr, _) => vec![b'x'; call.length as usize],
            _ => Vec::new(),
        };
        let names = Names { content: &content, mode: call.length, ..Names::new(&self.path, &self.other) };
        // What is done to an open file, and is known by name only, shows that the file is there.
        let kind = if kind.needs_handle() { OperationKind::Stat } else { kind };
        files.by_name(kind, &names).await
    }

    async fn on_open<E>(
        &mut self,
        job: &Job<'_, '_, E>,
        call: &Call,
        kind: OperationKind,
        open: Arc<H>,
    ) -> Went
    where
        E: Engine<Handle = H>,
    {
        let (files, clock) = (job.engine.files(), job.context.clock);
        if kind.moves_data() {
            return self.transfer(job, call, kind, &open).await;
        }
        let mut start = clock.now();
        let result = match kind {
            OperationKind::Close => match sole(job, open).await {
                Some(handle) => {
                    start = clock.now();
                    files.close(handle).await
                }
                None => Err(OperationError::Os(libc::EBUSY)),
            },
            _ => {
                let amount = match kind {
                    OperationKind::Truncate => call.offset,
                    OperationKind::Allocate => call.offset.saturating_add(call.length.into()),
                    _ => call.length.into(),
                };
                files.on_open(kind, &open, call.flags.lock(), amount).await
            }
        };
        Went { start, end: clock.now(), bytes: 0, result }
    }

    /// A read or write; one that is larger than the buffer in several pieces.
    async fn transfer<E>(
        &mut self,
        job: &Job<'_, '_, E>,
        call: &Call,
        kind: OperationKind,
        open: &Arc<H>,
    ) -> Went
    where
        E: Engine<Handle = H>,
    {
        let (engine, clock) = (job.engine, job.context.clock);
        let reads = kind == OperationKind::Read;
        // A write that was cut short is written as far as it went.
        let asked = if reads || call.error != 0 { call.length } else { call.moved } as usize;
        let appends = call.flags.0 & Flags::APPENDS != 0;
        engine.renew(&mut self.buffer);
        if !reads {
            let length = asked.min(self.buffer.len());
            content::make_unique(&mut self.buffer[..length], &mut self.unique);
        }
        let start = clock.now();
        let mut done = 0;
        let result = loop {
            let length = (asked - done).min(self.buffer.len());
            let offset = if appends { 0 } else { call.offset.saturating_add(done as u64) };
            let moved = if reads {
                engine.read(open, &mut self.buffer[..length], offset).await
            } else {
                engine.write_buffer(open, &self.buffer, 0..length, offset).await
            };
            match moved {
                Ok(moved) => done += moved,
                Err(error) => break Err(error),
            }
            if moved != Ok(length) || done >= asked {
                break Ok(());
            }
        };
        let end = clock.now();
        let recorded = call.moved as usize;
        let result = match result {
            Ok(()) if done < recorded => Err(OperationError::Short { asked: recorded, done }),
            result => result,
        };
        Went { start, end, bytes: done as u64, result }
    }

    /// Closes what a replay has left open.
    pub(super) async fn close_stage<F>(&mut self, files: &F) -> Result<(), OperationError>
    where
        F: Files<Handle = H>,
    {
        let mut result = Ok(());
        let Some(stage) = &self.stage else { return result };
        for open in stage.drain() {
            if let Some(handle) = Arc::into_inner(open) {
                result = result.and(files.close(handle).await);
            }
        }
        result
    }
}

fn name(context: &WorkerContext<'_>, buffer: &mut PathBuffer, path: &[u8]) {
    if let Some(table) = context.tables.first() {
        table.directory_path(0, buffer);
    }
    if !path.is_empty() {
        buffer.push(b"/");
        buffer.push(path);
    }
}

/// Whether a call ended as it did when it was recorded.
fn as_recorded(call: &Call, result: Result<(), OperationError>) -> Result<(), OperationError> {
    match (result, i32::from(call.error)) {
        (Ok(()), 0) => Ok(()),
        (Ok(()), recorded) => Err(OperationError::Succeeded { recorded }),
        (Err(OperationError::Os(error)), recorded) if error == recorded => Ok(()),
        (Err(error), _) => Err(error),
    }
}

/// Waits until others no longer use a file; `None` when the phase ends before.
async fn sole<E: Engine>(job: &Job<'_, '_, E>, open: Arc<E::Handle>) -> Option<E::Handle> {
    wait_for(job, || Arc::strong_count(&open) == 1).await;
    Arc::into_inner(open)
}

/// Waits until something holds; `false` when the phase ends before.
async fn wait_for<E: Engine>(job: &Job<'_, '_, E>, holds: impl Fn() -> bool) -> bool {
    let Job { engine, context, limits, .. } = job;
    let mut pause = PAUSES_NS.0;
    loop {
        if holds() {
            return true;
        }
        let now = context.clock.now();
        if now >= limits.deadline() {
            return false;
        }
        engine.sleep_until(context.clock, context.clock.after(now, pause)).await;
        pause = (2 * pause).min(PAUSES_NS.1);
    }
}
