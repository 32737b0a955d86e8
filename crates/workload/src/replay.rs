//! Replaying recorded traces: those of earlier runs, and those of system calls by `strace`.
//!
//! A trace becomes a [`Plan`]: the calls of each of its threads on paths and open files, what must exist before, and which
//! calls have to wait for others. One worker replays each thread, at the recorded times or as fast as possible.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::model::{Group, ParameterError, Replay, ReplaySpeed, Workload};
use crate::program::{Access, Effect, GroupProgram, Instruction, Program};
use crate::recording::SeriesKey;
use benchmaster_trace::TraceError;

pub(crate) mod plan;
mod records;
pub(crate) mod stage;
pub mod strace;
mod world;

pub use plan::{LeftOut, Plan, ReplayProgram, Why};
pub use strace::Where;

/// The name of a small trace that is always there: two threads that read sources and write a program.
pub const EXAMPLE: &str = "example";

/// Reads and writes that were larger are done in pieces of this size.
const LARGEST: usize = 16 << 20;

/// Why a trace cannot be replayed.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file system refused.
    #[error("cannot read the trace `{}`: {source}", .path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// It is not a trace of system calls.
    #[error("`{}` is not a trace: {source}", .path.display())]
    Strace { path: PathBuf, source: strace::StraceError },
    /// The trace of an earlier run is damaged.
    #[error(transparent)]
    Trace(TraceError),
    /// The trace of an earlier run does not say which files its operations were on.
    #[error("the trace `{}` does not say which files its operations were on: it was recorded by an older version", .0.display())]
    NoFiles(PathBuf),
    /// There is nothing in it that can be replayed.
    #[error("nothing in the trace `{}` can be replayed: it has no call on files below `{root}`", .path.display())]
    Empty {
        path: PathBuf,
        /// What was asked for.
        root: String,
    },
}

/// What was read last: a study reads a trace to plan, and again for every run.
static LAST: Mutex<Vec<(Key, Arc<Plan>)>> = Mutex::new(Vec::new());
/// How many are kept.
const KEPT: usize = 2;

/// A file as it was read.
#[derive(Debug, Clone, PartialEq)]
struct Key {
    path: PathBuf,
    place: Where,
    length: Option<u64>,
    modified: Option<SystemTime>,
}

/// Reads a trace: a Parquet file of an earlier run, or the output of `strace -f -ttt -T`. The form is found out by what the
/// file begins with.
///
/// # Errors
/// See [`ReplayError`].
pub fn load(path: &Path, place: &Where) -> Result<Arc<Plan>, ReplayError> {
    let io = |source| ReplayError::Io { path: path.into(), source };
    let facts = if path == Path::new(EXAMPLE) { None } else { Some(path.metadata().map_err(io)?) };
    let key = Key {
        path: path.into(),
        place: place.clone(),
        length: facts.as_ref().map(std::fs::Metadata::len),
        modified: facts.and_then(|facts| facts.modified().ok()),
    };
    // Whoever comes second waits for the first one's result.
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, plan)) = last.iter().find(|(known, _)| *known == key) {
        return Ok(plan.clone());
    }
    let plan = read(path, place)?;
    if plan.calls.is_empty() {
        let root = place.root().unwrap_or_else(|| "/".into());
        return Err(ReplayError::Empty { path: path.into(), root });
    }
    let plan = Arc::new(plan);
    last.truncate(KEPT - 1);
    last.insert(0, (key, plan.clone()));
    Ok(plan)
}

fn read(path: &Path, place: &Where) -> Result<Plan, ReplayError> {
    if path == Path::new(EXAMPLE) {
        let text = include_bytes!("replay/example.strace");
        return strace::read(&text[..], place)
            .map_err(|source| ReplayError::Strace { path: path.into(), source });
    }
    let io = |source| ReplayError::Io { path: path.into(), source };
    let mut begin = [0; 4];
    let mut file = File::open(path).map_err(io)?;
    let length = file.read(&mut begin).map_err(io)?;
    if &begin[..length] == b"PAR1" {
        return records::read(path);
    }
    let file = BufReader::with_capacity(1 << 20, File::open(path).map_err(io)?);
    strace::read(file, place).map_err(|source| match source {
        strace::StraceError::Read(source) => io(source),
        source => ReplayError::Strace { path: path.into(), source },
    })
}

/// The replay that a workload is, if it is one.
pub fn of(workload: &Workload) -> Option<&Replay> {
    match &workload.groups[..] {
        [Group { flow, .. }] => match &flow[..] {
            [step] => step.replay.as_ref(),
            _ => None,
        },
        _ => None,
    }
}

/// Reads the trace of a replay.
///
/// # Errors
/// Why it cannot be replayed, at the parameter that mends it.
fn plan(replay: &Replay) -> Result<Arc<Plan>, ParameterError> {
    let place = Where::new(replay.root.as_deref(), replay.cwd.as_deref())?;
    load(Path::new(&replay.trace), &place).map_err(|error| {
        let fix = match &error {
            ReplayError::Io { .. } => "name a file that every host of the run has under this path",
            ReplayError::Empty { .. } => "use another `root`, or none",
            _ => "record it with `strace -f -ttt -T -o FILE COMMAND`, name `traces/*.parquet` of a run, or use \"example\"",
        };
        ParameterError::new("trace", error.to_string(), fix)
    })
}

/// What a replay needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Paths that the trace names, at least one.
    pub files: u64,
    /// Threads that the trace has.
    pub threads: u32,
}

/// Reads the trace of a replay, and notes its fingerprint in it.
///
/// # Errors
/// Why it cannot be replayed, at the parameter that mends it.
pub fn survey(replay: &mut Replay) -> Result<Extent, ParameterError> {
    let plan = plan(replay)?;
    replay.fingerprint = Some(fingerprint(&plan));
    let threads = u32::try_from(plan.threads()).unwrap_or(u32::MAX);
    Ok(Extent { files: (plan.paths.len() as u64).max(1), threads })
}

/// What tells the traces of a run's hosts apart.
fn fingerprint(plan: &Plan) -> String {
    format!("{:016x}", plan.fingerprint())
}

/// Compiles a workload that is a replay.
///
/// # Errors
/// Everything that cannot be done, each with its path.
pub(crate) fn compile(
    workload: &Workload,
    replay: &Replay,
    _: Access,
) -> Result<Program, Vec<ParameterError>> {
    let plan = plan(replay).map_err(|error| vec![error])?;
    let mut errors = Vec::new();
    let mut require = |holds: bool, path: &str, message: String, fix: &str| {
        if !holds {
            errors.push(ParameterError::new(path, message, fix));
        }
    };
    let found = fingerprint(&plan);
    require(
        replay.fingerprint.as_ref().is_none_or(|expected| *expected == found),
        "trace",
        format!("the trace `{}` is not the one that the study was planned with", replay.trace),
        "give every host of the run the same file under this path",
    );
    let speed = match replay.speed {
        ReplaySpeed::Times(times) => times,
        ReplaySpeed::Word(_) => f64::INFINITY,
    };
    require(
        speed > 0.0 && !speed.is_nan(),
        "speed",
        "`speed` must be above 0".into(),
        "use 1.0 for the recorded times, 2.0 for twice as fast, or \"max\"",
    );
    let [group] = &workload.groups[..] else { return Err(errors) };
    require(
        group.workers as usize == plan.threads(),
        "groups[0].workers",
        format!("the trace has {} threads, each of which needs a worker", plan.threads()),
        "use as many workers",
    );
    let alone = group.queue_depth == 1
        && group.rate.is_none()
        && group.setup.is_empty()
        && group.teardown.is_empty()
        && !workload.verify.is_on()
        && workload.warm_up.nanos() == 0
        && workload.filesets.len() == 1;
    require(
        alone,
        "groups[0].flow[0]",
        "a replay has one fileset, and no `setup`, `teardown`, `rate`, `queue_depth`, `verify` or `warm_up`"
            .into(),
        "use the workload `replay`",
    );
    if !errors.is_empty() {
        return Err(errors);
    }
    let key = |operation: crate::model::OperationKind| SeriesKey {
        group: group.name.clone(),
        label: operation.name().into(),
        operation,
    };
    let series: Vec<SeriesKey> = plan.kinds().into_iter().map(key).collect();
    Ok(Program {
        measured: series.len(),
        series,
        filesets: workload.filesets.keys().cloned().collect(),
        effects: vec![Effect::Names],
        groups: vec![GroupProgram {
            name: group.name.clone(),
            clients: group.clients,
            workers: group.workers,
            queue_depth: 1,
            io: group.io,
            rate: None,
            setup: vec![Instruction::PrepareReplay],
            flow: vec![Instruction::Replay],
            teardown: Vec::new(),
            max_io: plan.largest().min(LARGEST),
        }],
        verify_block: None,
        witnessed: false,
        grows: vec![false],
        meetings: Vec::new(),
        counters: Vec::new(),
        replay: Some(ReplayProgram { plan, speed }),
    })
}
