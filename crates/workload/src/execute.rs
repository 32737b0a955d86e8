//! Executing one workload: prepare, warm up, measure, tear down.

use benchmaster_record::phase::Phase;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use benchmaster_clock::is_virtual;
use serde::{Deserialize, Serialize};

use crate::area::{AreaError, Location, Preparation, Ready, WorkArea};
use crate::cache::{self, CacheControl, CacheError};
use crate::conduct::{Conductor, Share, Step, Stopped};
use crate::files::FileTable;
use crate::ledger::{Header, Ledger};
use crate::model::{OperationKind, ParameterError, Workload};
use crate::nfs::SharedMount;
use crate::program::{Access, Effect, Program};
use crate::recording::{CacheAction, FilesetFacts, HostUse, PhaseTiming, Recording, TraceSink, WorkerSeries};
use crate::verify;
use crate::witness;
use benchmaster_clock::{Clock, Ticks};
use benchmaster_record::witness::Witness;

mod coordinator;
mod crew;
mod reactors;
mod wire;
mod workers;

use self::crew::{Ran, Run};
use self::wire::{Traffic, Wire};

/// How to execute a workload.
#[derive(Debug)]
pub struct Options<'a> {
    /// Clients of the run that this process is: each does the whole workload with workers of its own.
    pub share: Share,
    /// From the start of one client to the start of the next; all end together.
    pub stagger: Duration,
    /// Processes of the run on this host; while there are fewer processors than workers, these do not spin before a start.
    pub neighbours: u32,
    /// Seed of everything random in this run.
    pub seed: u64,
    /// Seed of the files' sizes and contents; the same for all runs that shall share filesets.
    pub fileset_seed: u64,
    /// Length of an interval.
    pub interval_ns: u64,
    /// What to do to the page cache before the measured phase.
    pub cache: CacheControl,
    /// Shell command to run then, and how long it may take.
    pub hook: Option<(&'a str, Duration)>,
    /// A worker gives up after so many errors in a row.
    pub max_errors: u64,
    /// Where the ledger of a durability witness is kept meanwhile: a directory outside the target.
    pub ledgers: &'a Path,
    /// Ends the run early when set.
    pub stop: &'a AtomicBool,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// `prepare`, `warm-up`, `measure`, `verify`, `tear-down`.
    pub phase: Phase,
    /// Time since the phase began.
    pub elapsed: Duration,
    /// Its length, if it is limited by time.
    pub length: Option<Duration>,
    /// What was done so far (a little behind).
    pub done: Done,
    /// What this moment is, when it is one at which counters of others are to be read.
    pub edge: Option<Edge>,
}

/// What workers did in a phase so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Done {
    /// Operations finished.
    pub operations: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Operations that failed; they are not among [`Self::operations`].
    pub errors: u64,
    /// Latencies of [`Self::operations`] in nanoseconds, added up.
    pub latency_ns: u64,
}

impl std::iter::Sum for Done {
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |a, b| Self {
            operations: a.operations + b.operations,
            bytes: a.bytes + b.bytes,
            errors: a.errors + b.errors,
            latency_ns: a.latency_ns.saturating_add(b.latency_ns),
        })
    }
}

/// A moment of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// All workers wait, and the measured phase is about to begin.
    Begin,
    /// All workers have left the measured phase, and tear-down is about to begin.
    End,
    /// The server is to be cut, if this is who does it; files are open. Only of workloads with a durability witness.
    Cut,
}

/// Why a workload could not be executed.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// The workload cannot be compiled.
    #[error("the workload cannot be executed: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Workload(Vec<ParameterError>),
    /// Filesets could not be prepared.
    #[error(transparent)]
    Area(AreaError),
    /// Caches could not be put into the state asked for.
    #[error(transparent)]
    Cache(CacheError),
    /// A worker could not open its files.
    #[error("a worker of group `{group}` could not be set up: {problem}")]
    SetUp { group: String, problem: String },
    /// A client of an NFS target could not be started.
    #[error("{0}")]
    Client(String),
    /// A thread could not be started.
    #[error(
        "cannot start a thread for worker {worker} of {workers}: {source}; use fewer workers or raise the limit \
         (`ulimit -u`)"
    )]
    Thread { worker: u32, workers: u32, source: io::Error },
    /// The trace could not be written.
    #[error("the trace could not be written: {0}")]
    Trace(io::Error),
    /// Written data could not be read back.
    #[error("{0}")]
    ReadBack(io::Error),
    /// The ledger of a durability witness could not be kept.
    #[error("the ledger `{}` cannot be written: {source}; it needs a directory with space outside the target", path.display())]
    Ledger { path: PathBuf, source: io::Error },
    /// A worker ended unexpectedly.
    #[error("a worker of group `{group}` ended unexpectedly (internal error; please report it)")]
    WorkerLost { group: String },
    /// The run was stopped.
    #[error("the run was stopped")]
    Stopped,
}

impl From<AreaError> for ExecuteError {
    fn from(error: AreaError) -> Self {
        match error {
            AreaError::Stopped => Self::Stopped,
            error => Self::Area(error),
        }
    }
}

impl From<Stopped> for ExecuteError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<CacheError> for ExecuteError {
    fn from(error: CacheError) -> Self {
        match error {
            CacheError::Stopped => Self::Stopped,
            error => Self::Cache(error),
        }
    }
}

/// Executes `workload`, called `name` in the study, in `area`, in step with the other processes that `conductor` speaks
/// for. `observe` is called several times a second. Every call of the measured phase goes to `trace` if there is one.
///
/// # Errors
/// See [`ExecuteError`]. Failed operations are no error here: they are in the recording.
pub fn execute(
    area: &mut WorkArea,
    name: &str,
    workload: &Workload,
    options: &Options<'_>,
    conductor: &mut dyn Conductor,
    trace: Option<&mut dyn TraceSink>,
    observe: &mut dyn FnMut(Progress),
) -> Result<Recording, ExecuteError> {
    let access = match area.place() {
        Location::Directory(_) => Access::System,
        Location::Nfs(_) => Access::Nfs,
    };
    let program = Program::compile_for(workload, access).map_err(ExecuteError::Workload)?;
    let mut wire = Wire::begin(area);
    let clock = Clock::new();
    let began = clock.now();
    let mut run = Execution { area, workload, program: &program, options, clock: &clock };
    let prepared = run.prepare(access, conductor, observe)?;
    wire.prepared(run.area, options.hook.is_some());
    let ledger = run.begin_ledger(name, &prepared.ready)?;
    let end_of_preparation = clock.now();

    let workers =
        Run { area: run.area, workload, program: &program, ready: &prepared.ready, options, clock: &clock };
    let ran = workers::run(&workers, &mut wire, conductor, trace, observe)?;
    conductor.meet(Step::TornDown)?;

    let verifying = clock.now();
    let (free_after, witness) = run.verify(&prepared.ready, &ran, ledger, observe)?;
    ran.teardown.report(Phase::TearDown, &ran.collector);
    let traffic = wire.finish(run.area, &ran, options.share.count);
    for problem in traffic.iter().flat_map(|(rpc, _)| &rpc.problems) {
        ran.collector.note(problem.clone());
    }
    let times = Times { prepare: (began, end_of_preparation), verify: verifying };
    let recording = run.recording(name, prepared, ran, times, (free_after, traffic));
    Ok(Recording { witness, ..recording })
}

/// A workload that is being executed.
struct Execution<'e> {
    area: &'e mut WorkArea,
    workload: &'e Workload,
    program: &'e Program,
    options: &'e Options<'e>,
    clock: &'e Clock,
}

/// Filesets and caches, ready for the workers.
struct Prepared {
    ready: Vec<Ready>,
    cache: CacheAction,
    filesets: Vec<FilesetFacts>,
    null_rate: Option<f64>,
    free_before: Option<u64>,
    read_ahead_kib: Option<u64>,
}

/// What is noted of the acknowledged, and since when.
struct Noted {
    ledger: Arc<Ledger>,
    begun: Ticks,
}

/// Boundaries of phases that the coordinator of the workers does not see.
struct Times {
    prepare: (Ticks, Ticks),
    verify: Ticks,
}

impl Execution<'_> {
    fn progress(&self, phase: Phase, since: Ticks, bytes: u64) -> Progress {
        Progress {
            phase,
            elapsed: Duration::from_nanos(self.clock.nanos(since, self.clock.now())),
            length: None,
            done: Done { bytes, ..Done::default() },
            edge: None,
        }
    }

    /// Prepares filesets, controls caches and measures the executor alone.
    fn prepare(
        &mut self,
        access: Access,
        conductor: &mut dyn Conductor,
        observe: &mut dyn FnMut(Progress),
    ) -> Result<Prepared, ExecuteError> {
        let Self { workload, program, options, clock, .. } = *self;
        let began = clock.now();
        observe(self.progress(Phase::Prepare, began, 0));
        let preparation =
            Preparation { share: options.share, seed: options.fileset_seed, stop: options.stop };
        let shared = SharedMount::default();
        let prepared = self.area.prepare(workload, program, &preparation, &shared, conductor, &mut |bytes| {
            let elapsed = Duration::from_nanos(clock.nanos(began, clock.now()));
            observe(Progress {
                phase: Phase::Prepare,
                elapsed,
                length: None,
                done: Done { bytes, ..Done::default() },
                edge: None,
            });
        });
        // A hook changes the free space, and may do anything to the server: another mount looks after it.
        let free_prepared = match (&prepared, access, options.hook) {
            (Ok(_), Access::Nfs, None) => self.area.free_bytes(&shared),
            _ => None,
        };
        let ended = self.area.end_jobs(shared);
        let mut ready = prepared?;
        ended?;
        if let Some(replay) = &program.replay {
            // The workers of a replay make its files, with the engine that they replay with.
            let (files, bytes) = replay.plan.files();
            let clients = u64::from(options.share.count);
            ready
                .iter_mut()
                .for_each(|ready| (ready.files, ready.bytes) = (files * clients, bytes * clients));
        }
        let (cache, filesets) = settle(self.area, program, &ready, options, conductor)?;
        let null_rate = self.calibrate(&ready);
        let free_before = match free_prepared {
            Some(free) => Some(free),
            None => {
                let shared = SharedMount::default();
                let free = self.area.free_bytes(&shared);
                self.area.end_jobs(shared)?;
                free
            }
        };
        let read_ahead_kib = self.area.read_ahead_kib();
        Ok(Prepared { ready, cache, filesets, null_rate, free_before, read_ahead_kib })
    }

    /// Begins to note what is acknowledged as stable, if the workload asks for that: first what is there.
    fn begin_ledger(&self, name: &str, ready: &[Ready]) -> Result<Option<Noted>, ExecuteError> {
        let Self { area, workload, program, options, clock } = self;
        if !program.witnessed {
            return Ok(None);
        }
        let share = options.share;
        let header = Header {
            ledger: Header::FORMAT,
            target: area.target().to_string(),
            directory: area.name(),
            name: name.to_owned(),
            workload: (*workload).clone(),
            fileset_seed: options.fileset_seed,
            clients: (share.first, share.count),
        };
        let file = format!("{name}-{}-{}.ledger", share.first, std::process::id());
        let path = options.ledgers.join(file);
        let ledger =
            Ledger::create(&path, &header).map_err(|source| ExecuteError::Ledger { path, source })?;
        let ledger = Arc::new(ledger);
        area.flush()?;
        for (number, table) in (0u32..).zip(ready.iter().flat_map(Ready::distinct)) {
            table.witness(area.rules(), Some(ledger.clone()), number);
            table.promise_all();
        }
        Ok(Some(Noted { ledger, begun: clock.now() }))
    }

    /// Operations per second of the executor alone. On virtual time it takes none, and a replay runs no flow.
    fn calibrate(&mut self, ready: &[Ready]) -> Option<f64> {
        if self.program.replay.is_some() || is_virtual() {
            return None;
        }
        let tables: Vec<_> = ready.iter().filter_map(|fileset| fileset.tables.first().cloned()).collect();
        self.area.null_rates().of(self.program, self.workload, &tables)
    }

    /// Reads back what was written, if the workload asks for it; returns the free space before that, and the verdict of a
    /// witness.
    fn verify(
        &mut self,
        ready: &[Ready],
        ran: &Ran,
        noted: Option<Noted>,
        observe: &mut dyn FnMut(Progress),
    ) -> Result<(Option<u64>, Option<Witness>), ExecuteError> {
        let Self { program, options, clock, .. } = *self;
        let shared = SharedMount::default();
        let free = self.area.free_bytes(&shared);
        let began = clock.now();
        let (mut read_back, mut verdict) = (None, None);
        if let Some(block) = program.verify_block {
            observe(self.progress(Phase::Verify, began, 0));
            let mut observe = |bytes| observe(self.progress(Phase::Verify, began, bytes));
            if noted.is_some() {
                let tables: Vec<&FileTable> = ready.iter().flat_map(Ready::distinct).collect();
                verdict =
                    Some(witness::judge(self.area, &shared, &tables, block, options.stop, &mut observe));
            } else {
                // Files shared by all clients are read back by one process.
                let written = |(ready, effect): &(&Ready, &Effect)| {
                    **effect >= Effect::Data && (options.share.lead || !ready.is_shared())
                };
                let written = ready.iter().zip(&program.effects).filter(written);
                let tables: Vec<&FileTable> = written.flat_map(|(ready, _)| ready.distinct()).collect();
                read_back =
                    Some(verify::read_back(self.area, &shared, &tables, block, options.stop, &mut observe));
            }
        }
        self.area.end_jobs(shared)?;
        if options.stop.load(Ordering::Relaxed) {
            return Err(ExecuteError::Stopped);
        }
        let failed = |error: verify::ReadBackError| ExecuteError::ReadBack(error.0);
        if let Some(back) = read_back.transpose().map_err(failed)? {
            ran.collector.verified(back.verified);
            if let Some(corruption) = back.corruption {
                ran.collector.corruption(corruption);
            }
        }
        let mut verdict = verdict.transpose().map_err(failed)?;
        if let Some(Noted { ledger, begun }) = noted {
            ready.iter().flat_map(Ready::distinct).for_each(FileTable::end_witness);
            self.area.note_failure();
            ledger.end().map_err(|(path, source)| ExecuteError::Ledger { path, source })?;
            let start = ran.window.start;
            let begun = clock.nanos(start, begun).cast_signed() - clock.nanos(begun, start).cast_signed();
            let broken = verdict.iter_mut().flat_map(|verdict| &mut verdict.broken);
            broken.for_each(|broken| broken.at_ns += begun);
        }
        Ok((free, verdict))
    }

    /// Puts the recording together.
    fn recording(
        &self,
        name: &str,
        prepared: Prepared,
        ran: Ran,
        times: Times,
        (free_after, traffic): (Option<u64>, Option<Traffic>),
    ) -> Recording {
        let Self { workload, program, options, clock, .. } = *self;
        let Prepared { cache, filesets, null_rate, free_before, read_ahead_kib, .. } = prepared;
        let start = ran.window.start;
        // One of the two differences is 0.
        let relative =
            |time: Ticks| clock.nanos(start, time).cast_signed() - clock.nanos(time, start).cast_signed();
        let phase = |phase: Phase, from: Ticks, to: Ticks, operations: u64, errors: u64| PhaseTiming {
            phase,
            start_ns: relative(from),
            end_ns: relative(to),
            operations,
            errors,
        };
        let mut collected = ran.collector.finish();
        let (rpc, connections) = traffic.unzip();
        collected.parts.extend(connections.into_iter().flatten());
        for (number, series) in (0u32..).zip(&mut collected.series) {
            let parts = ran.workers.iter().flat_map(|worker| &worker.series);
            series.span = span(parts.filter(|part| part.series == number));
        }
        let made = filesets.iter().filter(|facts| !facts.reused).map(|facts| facts.files).sum();
        let mut phases = vec![phase(Phase::Prepare, times.prepare.0, times.prepare.1, made, 0)];
        if let Some((window, counter)) = &ran.warm_up {
            phases.push(phase(Phase::WarmUp, window.start, start, counter.operations, counter.errors));
        }
        let totals = collected.series.iter().map(|series| &series.total);
        let (done, failed) = totals.fold((0, 0), |(done, failed), t| (done + t.count, failed + t.errors));
        phases.push(phase(Phase::Measure, start, ran.end, done, failed));
        phases.push(phase(
            Phase::TearDown,
            ran.end,
            ran.torn_down,
            ran.teardown.operations,
            ran.teardown.errors,
        ));
        if program.verify_block.is_some() {
            phases.push(phase(Phase::Verify, times.verify, clock.now(), 0, 0));
        }
        Recording {
            workload: name.into(),
            timed: workload.until.duration.is_some(),
            started_unix_ns: ran.started_unix_ns,
            length_ns: ran.last_end.max(1),
            interval_ns: options.interval_ns,
            cut_ns: 0,
            cut_reason: "nothing was cut".into(),
            series: collected.series,
            workers: ran.workers,
            parts: collected.parts,
            slow: collected.slow,
            phases,
            filesets,
            cache,
            host: HostUse { free_before, free_after, null_rate, read_ahead_kib, ..ran.host },
            error_details: collected.details,
            verified_bytes: program.verify_block.map(|_| collected.verified),
            corruption: collected.corruption,
            witness: None,
            rpc,
            agents: Vec::new(),
            start: None,
            samples: Vec::new(),
            collected: Vec::new(),
            replay: ran.replay,
        }
    }
}

/// From the start of the first operation of a series to the end of the last one, of all workers' parts of it.
fn span<'a>(parts: impl Iterator<Item = &'a WorkerSeries> + Clone) -> Option<(u64, u64)> {
    let first = parts.clone().filter_map(|part| part.first_start_ns).min()?;
    let last = parts.filter_map(|part| part.last_end_ns).max()?;
    Some((first, last.max(first)))
}

/// Controls caches, and looks how much of the filesets is cached after that.
fn settle(
    area: &mut WorkArea,
    program: &Program,
    ready: &[Ready],
    options: &Options<'_>,
    conductor: &mut dyn Conductor,
) -> Result<(CacheAction, Vec<FilesetFacts>), ExecuteError> {
    let tables: Vec<&FileTable> = ready.iter().flat_map(Ready::distinct).collect();
    let mut done = match area.place() {
        Location::Directory(_) => cache::control(options.cache, area.path(), &tables, options.stop)?,
        Location::Nfs(nfs) => cache::of_client(options.cache, &nfs.target().options),
    };
    let mut requested = match options.cache {
        CacheControl::Keep => "keep".to_owned(),
        CacheControl::Drop => "drop".to_owned(),
        CacheControl::Fadvise => "fadvise".to_owned(),
    };
    if let Some((command, timeout)) = options.hook {
        // A mounted target cannot be unmounted while anybody on this host holds a directory of it open.
        area.release();
        conductor.meet(Step::Released)?;
        if options.share.first_on_host {
            let target = area.target().place();
            let hooked = cache::run_hook(command, &target, timeout, options.stop)?;
            done = format!("{done}; {hooked}");
        }
        conductor.meet(Step::Settled)?;
        area.reopen()?;
        requested = format!("{requested}, then the hook `{command}`");
    }
    let reads = program.series.iter().any(|series| series.operation == OperationKind::Read);
    // The user-space client does not use this host's page cache. Looking opens files: on NFS that takes delegations and
    // fresh attributes, so that fewer RPCs would be counted than the workload needs.
    let looks = reads && matches!(area.place(), Location::Directory(_)) && !cache::is_nfs(area.path());
    let facts = |ready: &Ready| FilesetFacts {
        name: ready.name.clone(),
        files: ready.files,
        bytes: ready.bytes,
        reused: ready.reused,
        cached_bytes: if looks { cache::cached_bytes(area.path(), &ready.distinct()) } else { None },
    };
    Ok((CacheAction { requested, done }, ready.iter().map(facts).collect()))
}
