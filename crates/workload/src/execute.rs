//! Executing one workload: prepare, warm up, measure, tear down.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use benchmaster_telemetry::clock::realtime_minus_monotonic_ns;
use benchmaster_telemetry::fs::free_bytes;
use benchmaster_telemetry::host::{CpuTimes, busy_share, steal_share};
use benchmaster_telemetry::process::cpu_time;

use crate::area::{AreaError, Ready, WorkArea};
use crate::cache::{self, CacheControl, CacheError};
use crate::calibrate;
use crate::clock::{Clock, Ticks};
use crate::files::FileTable;
use crate::gate::{Gate, Window};
use crate::lane::WorkerContext;
use crate::model::{ParameterError, Workload};
use crate::program::{Effect, GroupProgram, Program};
use crate::recorder::{Collector, PhaseCounter};
use crate::recording::{
    CacheAction, FilesetFacts, HostUse, PhaseTiming, Recording, StopReason, TraceSink, WorkerRecording,
};
use crate::trace::{self, TraceSource};
use crate::verify;
use crate::worker::{Finished, Report, RunContext, Worker};

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
    Area(#[from] AreaError),
    /// Caches could not be put into the state asked for.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A worker could not open its files.
    #[error("a worker of group `{group}` could not be set up: {problem}")]
    SetUp {
        /// The group.
        group: String,
        /// Why.
        problem: String,
    },
    /// A thread could not be started.
    #[error("cannot start a thread for worker {worker} of {workers}: {source}; use fewer workers or raise the limit (`ulimit -u`)")]
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
    let progress = |phase| Progress { phase, elapsed: Duration::ZERO, length: None, operations: 0, bytes: 0 };
    observe(progress("prepare"));
    let ready = area.prepare(workload, &program, options.clients, options.fileset_seed, options.stop)?;
    let (cache, filesets) = settle(area, &program, &ready, options)?;
    let null_rate = calibrate::null_rate(&program, workload, CALIBRATION);
    let free_before = free_bytes(area.path()).ok();
    let prepared = clock.now();

    let ran = run_workers(area, workload, &program, &ready, options, trace, &clock, observe)?;
    let free_after = free_bytes(area.path()).ok();

    let mut collected = ran.collector.finish();
    let mut verified = collected.verified;
    let verifying = clock.now();
    if let Some(block) = program.verify_block {
        observe(progress("verify"));
        let written = ready.iter().zip(&program.effects).filter(|(_, effect)| **effect >= Effect::Data);
        let tables: Vec<&FileTable> = written.flat_map(|(ready, _)| distinct(ready)).collect();
        let back = verify::read_back(area.path(), &tables, block, options.stop).map_err(ExecuteError::ReadBack)?;
        verified += back.verified;
        collected.corruption = collected.corruption.or(back.corruption);
    }
    if options.stop.load(Ordering::Relaxed) {
        return Err(ExecuteError::Stopped);
    }

    let start = ran.window.start;
    // One of the two differences is 0.
    let relative = |time: Ticks| clock.nanos(start, time).cast_signed() - clock.nanos(time, start).cast_signed();
    let phase = |phase: &str, from: Ticks, to: Ticks, operations: u64, errors: u64| PhaseTiming {
        phase: phase.into(),
        start_ns: relative(from),
        end_ns: relative(to),
        operations,
        errors,
    };
    let files = filesets.iter().filter(|facts| !facts.reused).map(|facts| facts.files).sum();
    let (done, failed) = collected.series.iter().fold((0, 0), |(done, failed), series| {
        (done + series.total.count, failed + series.total.errors)
    });
    let mut phases = vec![phase("prepare", began, prepared, files, 0)];
    if let Some((window, counter)) = &ran.warm_up {
        phases.push(phase("warm-up", window.start, start, counter.operations, counter.errors));
    }
    phases.push(phase("measure", start, ran.end, done, failed));
    phases.push(phase("tear-down", ran.end, ran.torn_down, ran.teardown.operations, ran.teardown.errors));
    if program.verify_block.is_some() {
        phases.push(phase("verify", verifying, clock.now(), 0, 0));
    }
    if let Some(problem) = ran.teardown.first_error {
        collected.details.push(format!("tear-down: {problem}"));
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
            clock_drift: clock.drift(),
            free_before: free_before.map(|space| space.free),
            free_after: free_after.map(|space| space.free),
            null_rate,
            ..ran.host
        },
        error_details: collected.details,
        verified_bytes: program.verify_block.map(|_| verified),
        corruption: collected.corruption,
    })
}

/// How long the executor alone is measured before every workload.
const CALIBRATION: Duration = Duration::from_millis(20);

fn distinct(ready: &Ready) -> Vec<&FileTable> {
    let mut seen = BTreeSet::new();
    ready.tables.iter().filter(|table| seen.insert(std::sync::Arc::as_ptr(table))).map(|table| &**table).collect()
}

/// Controls caches, and looks how much of the filesets is cached after that.
fn settle(
    area: &mut WorkArea,
    program: &Program,
    ready: &[Ready],
    options: &Options<'_>,
) -> Result<(CacheAction, Vec<FilesetFacts>), ExecuteError> {
    let tables: Vec<&FileTable> = ready.iter().flat_map(distinct).collect();
    let mut done = cache::control(options.cache, area.path(), &tables)?;
    let mut requested = match options.cache {
        CacheControl::Keep => "keep".to_owned(),
        CacheControl::Drop => "drop".to_owned(),
        CacheControl::Fadvise => "fadvise".to_owned(),
    };
    if let Some((command, timeout)) = options.hook {
        area.release()?;
        let target = area.target().to_owned();
        let result = cache::run_hook(command, &target, timeout);
        area.reopen()?;
        done = format!("{done}; {}", result?);
        requested = format!("{requested}, then the hook `{command}`");
    }
    let reads = program.series.iter().any(|series| series.operation == crate::model::OperationKind::Read);
    let facts = |ready: &Ready| FilesetFacts {
        name: ready.name.clone(),
        files: ready.files,
        bytes: ready.bytes,
        reused: ready.reused,
        cached_bytes: if reads { cache::cached_bytes(area.path(), &distinct(ready)) } else { None },
    };
    let facts = ready.iter().map(facts).collect();
    Ok((CacheAction { requested, done }, facts))
}

/// What the workers of a run did.
struct Ran {
    collector: Collector,
    workers: Vec<WorkerRecording>,
    window: Window,
    warm_up: Option<(Window, PhaseCounter)>,
    started_unix_ns: i64,
    end: Ticks,
    torn_down: Ticks,
    /// Relative to the start.
    last_end: u64,
    teardown: PhaseCounter,
    host: HostUse,
}

/// A worker's place: client, number within group and client, group.
struct Place<'a> {
    client: u32,
    worker: u32,
    group: &'a GroupProgram,
}

#[allow(clippy::too_many_arguments)]
fn run_workers(
    area: &WorkArea,
    workload: &Workload,
    program: &Program,
    ready: &[Ready],
    options: &Options<'_>,
    sink: Option<&mut dyn TraceSink>,
    clock: &Clock,
    observe: &mut dyn FnMut(Progress),
) -> Result<Ran, ExecuteError> {
    let places: Vec<Place<'_>> = (0..options.clients)
        .flat_map(|client| program.groups.iter().map(move |group| (client, group)))
        .flat_map(|(client, group)| (0..group.workers).map(move |worker| Place { client, worker, group }))
        .collect();
    raise_file_limit();
    let open_loop = program.groups.iter().any(|group| group.rate.is_some());
    let collector = Collector::new(program.series[..program.measured].to_vec(), places.len(), options.interval_ns, open_loop);
    let warms = workload.warm_up.nanos() > 0;
    let deadlines: Vec<AtomicU64> = (0..if warms { 2 } else { 1 }).map(|_| AtomicU64::new(u64::MAX)).collect();
    let tables: Vec<Vec<_>> = (0..options.clients as usize)
        .map(|client| ready.iter().map(|fileset| fileset.tables[client].clone()).collect())
        .collect();
    let gate = Gate::default();
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    let context = RunContext {
        root: area.root().as_fd(),
        gate: &gate,
        collector: &collector,
        deadlines: &deadlines,
        until: workload.until,
        seed: options.seed,
        spin_ns: if places.len() <= processors { 50_000 } else { 0 },
    };
    let (source, writer) = match &sink {
        Some(_) => {
            let (source, writer) = trace::pipe(places.len());
            (Some(source), Some(writer))
        }
        None => (None, None),
    };

    let outcome = std::thread::scope(|scope| -> Result<_, ExecuteError> {
        let writing = writer.zip(sink).map(|(writer, sink)| scope.spawn(move || writer.run(sink)));
        let (sender, reports) = channel();
        let started = start_threads(scope, &places, &tables, &context, program, options, clock, source, sender);
        let coordinated = started.and_then(|threads| {
            let mut coordinator = Coordinator { clock, gate: &gate, collector: &collector, options, observe, reports };
            let result = coordinator.phases(workload, &deadlines, &threads, &places);
            if result.is_err() {
                deadlines.iter().for_each(|deadline| deadline.store(0, Ordering::Relaxed));
                gate.abort();
            }
            let finished: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
            result.map(|phases| (phases, finished))
        });
        if coordinated.is_err() {
            gate.abort();
        }
        let written = writing.map(|thread| thread.join());
        let coordinated = coordinated?;
        match written {
            Some(Ok(Err(error))) => return Err(ExecuteError::Trace(error)),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(Ok(()))) | None => {}
        }
        Ok(coordinated)
    })?;

    let (phases, finished) = outcome;
    let torn_down = clock.now();
    let mut workers = Vec::with_capacity(places.len());
    let mut teardown = PhaseCounter::default();
    let mut host = phases.host;
    let mut last_end = 0;
    for (place, finished) in places.iter().zip(finished) {
        let lost = || ExecuteError::WorkerLost { group: place.group.name.clone() };
        let finished: Finished = finished.map_err(|_| lost())?.ok_or_else(lost)?;
        teardown.operations += finished.teardown.operations;
        teardown.errors += finished.teardown.errors;
        teardown.first_error = teardown.first_error.take().or(finished.teardown.first_error);
        host.trace_stall_ns += finished.stalled_ns;
        let start = finished.window.start;
        let ends = finished.series.iter().filter_map(|series| series.last_end_ns);
        last_end = ends.fold(last_end, u64::max);
        workers.push(WorkerRecording {
            client: place.client,
            group: place.group.name.clone(),
            worker: place.worker,
            start_ns: clock.nanos(start, finished.start),
            end_ns: clock.nanos(start, finished.end),
            cpu_ns: finished.cpu_ns,
            stop: finished.stop,
            series: finished.series,
        });
    }
    Ok(Ran {
        collector,
        workers,
        window: phases.window,
        warm_up: phases.warm_up,
        started_unix_ns: phases.started_unix_ns,
        end: phases.end,
        torn_down,
        last_end,
        teardown,
        host,
    })
}

#[allow(clippy::too_many_arguments)]
fn start_threads<'scope, 'env>(
    scope: &'scope std::thread::Scope<'scope, 'env>,
    places: &'env [Place<'env>],
    tables: &'env [Vec<std::sync::Arc<FileTable>>],
    context: &'env RunContext<'env>,
    program: &'env Program,
    options: &'env Options<'env>,
    clock: &'env Clock,
    source: Option<TraceSource>,
    sender: Sender<Report>,
) -> Result<Vec<ScopedJoinHandle<'scope, Option<Finished>>>, ExecuteError> {
    let mut threads = Vec::with_capacity(places.len());
    for (number, place) in (0u32..).zip(places) {
        let worker = Worker {
            run: context,
            context: WorkerContext {
                clock,
                tables: &tables[place.client as usize],
                worker: place.worker,
                workers: place.group.workers,
                verify: program.verify_block,
                max_failures: options.max_errors,
            },
            group: place.group,
            number,
            trace: source.as_ref().map(TraceSource::sender),
        };
        let sender = sender.clone();
        let builder = Builder::new().name(format!("worker-{number}")).stack_size(512 << 10);
        match builder.spawn_scoped(scope, move || worker.run(&sender)) {
            Ok(thread) => threads.push(thread),
            Err(source) => {
                context.gate.abort();
                return Err(ExecuteError::Thread { worker: number, workers: places.len() as u32, source });
            }
        }
    }
    Ok(threads)
}

/// Takes all workers through the phases.
struct Coordinator<'c> {
    clock: &'c Clock,
    gate: &'c Gate,
    collector: &'c Collector,
    options: &'c Options<'c>,
    observe: &'c mut dyn FnMut(Progress),
    reports: Receiver<Report>,
}

struct Phases {
    window: Window,
    warm_up: Option<(Window, PhaseCounter)>,
    started_unix_ns: i64,
    end: Ticks,
    host: HostUse,
}

impl Coordinator<'_> {
    fn phases(
        &mut self,
        workload: &Workload,
        deadlines: &[AtomicU64],
        threads: &[ScopedJoinHandle<'_, Option<Finished>>],
        places: &[Place<'_>],
    ) -> Result<Phases, ExecuteError> {
        let group = |at: usize| places[at].group.name.clone();
        let mut failed = None;
        self.gather("prepare", None, threads, None, &mut |at, report| {
            if let Report::SetUp(Err(problem)) = report {
                failed.get_or_insert(ExecuteError::SetUp { group: group(at), problem });
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }

        let mut warm_up = None;
        if let [first, _] = deadlines {
            let window = self.window(Some(workload.warm_up.nanos()), places.len());
            first.store(window.deadline, Ordering::Relaxed);
            self.gate.open(window);
            let mut total = PhaseCounter::default();
            self.gather("warm-up", Some(workload.warm_up.0), threads, Some(first), &mut |_, report| {
                if let Report::Warm(counter) = report {
                    total.operations += counter.operations;
                    total.errors += counter.errors;
                }
            })?;
            warm_up = Some((window, total));
        }

        let Some(deadline) = deadlines.last() else { return Err(ExecuteError::Stopped) };
        let window = self.window(workload.until.duration.map(|duration| duration.nanos()), places.len());
        deadline.store(window.deadline, Ordering::Relaxed);
        let (cpu, process, step) = (CpuTimes::read().ok(), cpu_time(), realtime_minus_monotonic_ns());
        let now_unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64);
        let started_unix_ns = now_unix + self.clock.nanos(self.clock.now(), window.start).cast_signed();
        self.gate.open(window);
        let length = workload.until.duration.map(|duration| duration.0);
        self.gather("measure", length, threads, Some(deadline), &mut |_, _| {})?;
        let end = self.clock.now();
        let (cpu_after, process_after) = (CpuTimes::read().ok(), cpu_time());
        let shares = cpu.zip(cpu_after);
        let host = HostUse {
            process_user_ns: process_after.0.saturating_sub(process.0),
            process_system_ns: process_after.1.saturating_sub(process.1),
            host_busy: shares.and_then(|(a, b)| busy_share(a, b)),
            host_steal: shares.and_then(|(a, b)| steal_share(a, b)),
            processors: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            clock_step_ns: realtime_minus_monotonic_ns() - step,
            ..HostUse::default()
        };
        Ok(Phases { window, warm_up, started_unix_ns, end, host })
    }

    /// A window that begins late enough for every worker to wake up for it.
    fn window(&self, length: Option<u64>, workers: usize) -> Window {
        let start = self.clock.after(self.clock.now(), 2_000_000 + 20_000 * workers as u64);
        Window { start, deadline: length.map_or(u64::MAX, |length| self.clock.after(start, length)) }
    }

    /// Waits for one report of every worker.
    fn gather(
        &mut self,
        phase: &'static str,
        length: Option<Duration>,
        threads: &[ScopedJoinHandle<'_, Option<Finished>>],
        deadline: Option<&AtomicU64>,
        handle: &mut dyn FnMut(usize, Report),
    ) -> Result<(), ExecuteError> {
        let began = self.clock.now();
        let mut left = threads.len();
        while left > 0 {
            match self.reports.recv_timeout(Duration::from_millis(100)) {
                Ok(report) => {
                    handle(threads.len() - left, report);
                    left -= 1;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.lost()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.options.stop.load(Ordering::Relaxed) {
                match deadline {
                    Some(deadline) => deadline.store(0, Ordering::Relaxed),
                    None => return Err(ExecuteError::Stopped),
                }
            }
            // A worker only ends after its tear-down, which comes after all reports.
            if phase != "measure" && threads.iter().any(ScopedJoinHandle::is_finished) {
                return Err(self.lost());
            }
            let (operations, bytes) = self.collector.progress();
            let elapsed = Duration::from_nanos(self.clock.nanos(began, self.clock.now()));
            (self.observe)(Progress { phase, elapsed, length, operations, bytes });
        }
        match self.options.stop.load(Ordering::Relaxed) {
            true => Err(ExecuteError::Stopped),
            false => Ok(()),
        }
    }

    fn lost(&self) -> ExecuteError {
        ExecuteError::WorkerLost { group: "unknown".into() }
    }
}

/// Every worker holds files open; the default limit of 1024 is often too low.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Where this is not allowed, opening fails later with EMFILE, which is reported.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Whether `path` can be measured at all, without creating anything.
///
/// # Errors
/// When it is not a directory.
pub fn check_target(path: &Path) -> Result<(), AreaError> {
    match path.is_dir() {
        true => Ok(()),
        false => Err(AreaError::NotADirectory { path: path.into() }),
    }
}

/// Whether the workers of a recording all ended by the rule of their workload.
pub fn ended_early(recording: &Recording) -> impl Iterator<Item = &WorkerRecording> {
    recording.workers.iter().filter(|worker| worker.stop == StopReason::Errors)
}
