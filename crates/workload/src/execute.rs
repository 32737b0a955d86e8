//! Executing one workload: prepare, warm up, measure, tear down.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use benchmaster_telemetry::fs::free_bytes;

use crate::area::{AreaError, Preparation, Ready, WorkArea};
use crate::cache::{self, CacheControl, CacheError};
use crate::calibrate;
use crate::clock::{Clock, Ticks};
use crate::files::FileTable;
use crate::model::{OperationKind, ParameterError, Workload};
use crate::program::{Effect, Program};
use crate::recording::{CacheAction, FilesetFacts, HostUse, PhaseTiming, Recording, TraceSink};
use crate::verify;

mod coordinator;
mod workers;

/// How to execute a workload.
#[derive(Debug)]
pub struct Options<'a> {
    /// Clients: each does the whole workload with workers of its own.
    pub clients: u32,
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
    /// Ends the run early when set.
    pub stop: &'a AtomicBool,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// `prepare`, `warm-up`, `measure`, `verify`, `tear-down`.
    pub phase: &'static str,
    /// Time since the phase began.
    pub elapsed: Duration,
    /// Its length, if it is limited by time.
    pub length: Option<Duration>,
    /// Operations finished so far (a little behind).
    pub operations: u64,
    /// Bytes moved so far (a little behind).
    pub bytes: u64,
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
    SetUp {
        /// The group.
        group: String,
        /// Why.
        problem: String,
    },
    /// A thread could not be started.
    #[error(
        "cannot start a thread for worker {worker} of {workers}: {source}; use fewer workers or raise the limit \
         (`ulimit -u`)"
    )]
    Thread {
        /// Which worker.
        worker: u32,
        /// Of how many.
        workers: u32,
        /// Why not.
        source: io::Error,
    },
    /// The trace could not be written.
    #[error("the trace could not be written: {0}")]
    Trace(io::Error),
    /// Written data could not be read back.
    #[error("{0}")]
    ReadBack(io::Error),
    /// A worker ended unexpectedly.
    #[error("a worker of group `{group}` ended unexpectedly; this is a defect of the program")]
    WorkerLost {
        /// The group.
        group: String,
    },
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

impl From<CacheError> for ExecuteError {
    fn from(error: CacheError) -> Self {
        match error {
            CacheError::Stopped => Self::Stopped,
            error => Self::Cache(error),
        }
    }
}

/// Executes `workload`, called `name` in the study, in `area`. `observe` is called several times a second. Every call
/// of the measured phase goes to `trace` if there is one.
///
/// # Errors
/// See [`ExecuteError`]. Failed operations are no error here: they are in the recording.
pub fn execute(
    area: &mut WorkArea,
    name: &str,
    workload: &Workload,
    options: &Options<'_>,
    trace: Option<&mut dyn TraceSink>,
    observe: &mut dyn FnMut(Progress),
) -> Result<Recording, ExecuteError> {
    let program = Program::compile(workload).map_err(ExecuteError::Workload)?;
    let clock = Clock::new();
    let began = clock.now();
    let progress = |phase, since: Ticks, bytes| Progress {
        phase,
        elapsed: Duration::from_nanos(clock.nanos(since, clock.now())),
        length: None,
        operations: 0,
        bytes,
    };
    observe(progress("prepare", began, 0));
    let preparation =
        Preparation { clients: options.clients, seed: options.fileset_seed, stop: options.stop };
    let ready = area.prepare(workload, &program, &preparation, &mut |bytes| {
        observe(progress("prepare", began, bytes));
    })?;
    let (cache, filesets) = settle(area, &program, &ready, options)?;
    let tables: Vec<_> = ready.iter().filter_map(|fileset| fileset.tables.first().cloned()).collect();
    let null_rate = calibrate::null_rate(&program, workload, &tables, CALIBRATION);
    let free_before = free_bytes(area.path()).ok();
    let prepared = clock.now();

    let run = workers::Run { area, workload, program: &program, ready: &ready, options, clock: &clock };
    let ran = workers::run(&run, trace, observe)?;
    let free_after = free_bytes(area.path()).ok();

    let verifying = clock.now();
    if let Some(block) = program.verify_block {
        observe(progress("verify", verifying, 0));
        let written = ready.iter().zip(&program.effects).filter(|(_, effect)| **effect >= Effect::Data);
        let tables: Vec<&FileTable> = written.flat_map(|(ready, _)| ready.distinct()).collect();
        let mut observe = |bytes| observe(progress("verify", verifying, bytes));
        let back = verify::read_back(area.path(), &tables, block, options.stop, &mut observe);
        let back = back.map_err(ExecuteError::ReadBack)?;
        ran.collector.verified(back.verified);
        if let Some(corruption) = back.corruption {
            ran.collector.corruption(corruption);
        }
    }
    if options.stop.load(Ordering::Relaxed) {
        return Err(ExecuteError::Stopped);
    }
    ran.teardown.report("tear-down", &ran.collector);

    let start = ran.window.start;
    // One of the two differences is 0.
    let relative =
        |time: Ticks| clock.nanos(start, time).cast_signed() - clock.nanos(time, start).cast_signed();
    let phase = |phase: &str, from: Ticks, to: Ticks, operations: u64, errors: u64| PhaseTiming {
        phase: phase.into(),
        start_ns: relative(from),
        end_ns: relative(to),
        operations,
        errors,
    };
    let collected = ran.collector.finish();
    let made = filesets.iter().filter(|facts| !facts.reused).map(|facts| facts.files).sum();
    let mut phases = vec![phase("prepare", began, prepared, made, 0)];
    if let Some((window, counter)) = &ran.warm_up {
        phases.push(phase("warm-up", window.start, start, counter.operations, counter.errors));
    }
    let totals = collected.series.iter().map(|series| &series.total);
    let (done, failed) = totals.fold((0, 0), |(done, failed), t| (done + t.count, failed + t.errors));
    phases.push(phase("measure", start, ran.end, done, failed));
    phases.push(phase("tear-down", ran.end, ran.torn_down, ran.teardown.operations, ran.teardown.errors));
    if program.verify_block.is_some() {
        phases.push(phase("verify", verifying, clock.now(), 0, 0));
    }
    Ok(Recording {
        workload: name.into(),
        timed: workload.until.duration.is_some(),
        started_unix_ns: ran.started_unix_ns,
        length_ns: ran.last_end.max(1),
        interval_ns: options.interval_ns,
        cut_ns: 0,
        cut_reason: "nothing was cut".into(),
        series: collected.series,
        workers: ran.workers,
        phases,
        filesets,
        cache,
        host: HostUse {
            free_before: free_before.map(|space| space.free),
            free_after: free_after.map(|space| space.free),
            null_rate,
            ..ran.host
        },
        error_details: collected.details,
        verified_bytes: program.verify_block.map(|_| collected.verified),
        corruption: collected.corruption,
    })
}

/// How long the executor alone is measured before every workload.
const CALIBRATION: Duration = Duration::from_millis(20);

/// Controls caches, and looks how much of the filesets is cached after that.
fn settle(
    area: &mut WorkArea,
    program: &Program,
    ready: &[Ready],
    options: &Options<'_>,
) -> Result<(CacheAction, Vec<FilesetFacts>), ExecuteError> {
    let tables: Vec<&FileTable> = ready.iter().flat_map(Ready::distinct).collect();
    let mut done = cache::control(options.cache, area.path(), &tables, options.stop)?;
    let mut requested = match options.cache {
        CacheControl::Keep => "keep".to_owned(),
        CacheControl::Drop => "drop".to_owned(),
        CacheControl::Fadvise => "fadvise".to_owned(),
    };
    if let Some((command, timeout)) = options.hook {
        // A mounted target cannot be unmounted while we hold a directory of it open.
        area.release();
        let hooked = cache::run_hook(command, area.target(), timeout, options.stop)?;
        area.reopen()?;
        done = format!("{done}; {hooked}");
        requested = format!("{requested}, then the hook `{command}`");
    }
    let reads = program.series.iter().any(|series| series.operation == OperationKind::Read);
    let facts = |ready: &Ready| FilesetFacts {
        name: ready.name.clone(),
        files: ready.files,
        bytes: ready.bytes,
        reused: ready.reused,
        cached_bytes: if reads { cache::cached_bytes(area.path(), &ready.distinct()) } else { None },
    };
    Ok((CacheAction { requested, done }, ready.iter().map(facts).collect()))
}
