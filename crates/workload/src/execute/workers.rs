//! Starting the workers of a run and gathering what they bring home.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use super::coordinator::{Coordinator, Place};
use super::{ExecuteError, Options, Progress};
use crate::area::{Ready, WorkArea};
use crate::clock::{Clock, Ticks};
use crate::files::FileTable;
use crate::gate::{Gate, Window};
use crate::lane::WorkerContext;
use crate::model::Workload;
use crate::program::Program;
use crate::recorder::{Collector, PhaseCounter};
use crate::recording::{HostUse, TraceSink, WorkerRecording};
use crate::trace::{self, TraceSource};
use crate::worker::{Finished, Reports, RunContext, Worker};

/// What is to be run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'r> {
    pub(super) area: &'r WorkArea,
    pub(super) workload: &'r Workload,
    pub(super) program: &'r Program,
    pub(super) ready: &'r [Ready],
    pub(super) options: &'r Options<'r>,
    pub(super) clock: &'r Clock,
}

/// What the workers of a run did.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) collector: Collector,
    pub(super) workers: Vec<WorkerRecording>,
    pub(super) window: Window,
    pub(super) warm_up: Option<(Window, PhaseCounter)>,
    pub(super) started_unix_ns: i64,
    pub(super) end: Ticks,
    pub(super) torn_down: Ticks,
    /// End of the last operation in nanoseconds after the start.
    pub(super) last_end: u64,
    pub(super) teardown: PhaseCounter,
    pub(super) host: HostUse,
}

/// Runs all workers through all phases.
///
/// # Errors
/// When a worker cannot be started or set up or is lost, the trace cannot be written, or the run is stopped.
pub(super) fn run(
    run: &Run<'_>,
    sink: Option<&mut dyn TraceSink>,
    observe: &mut dyn FnMut(Progress),
) -> Result<Ran, ExecuteError> {
    let Run { workload, program, options, clock, .. } = *run;
    let places: Vec<Place<'_>> = (0..options.clients)
        .flat_map(|client| program.groups.iter().map(move |group| (client, group)))
        .flat_map(|(client, group)| (0..group.workers).map(move |worker| Place { client, worker, group }))
        .collect();
    raise_file_limit();
    let open_loop = program.groups.iter().any(|group| group.rate.is_some());
    let collector = Collector::new(program.measured_series(), options.interval_ns, open_loop);
    let warms = workload.warm_up.nanos() > 0;
    let deadlines: Vec<AtomicU64> =
        (0..if warms { 2 } else { 1 }).map(|_| AtomicU64::new(u64::MAX)).collect();
    let (gate, abort) = (Gate::default(), AtomicU64::new(u64::MAX));
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    let context = RunContext {
        root: run.area.root()?,
        gate: &gate,
        collector: &collector,
        deadlines: &deadlines,
        abort: &abort,
        until: workload.until,
        seed: options.seed,
        spin_ns: if places.len() <= processors { 50_000 } else { 0 },
    };
    let tables: Vec<Vec<_>> = (0..options.clients as usize)
        .map(|client| run.ready.iter().map(|fileset| fileset.tables[client].clone()).collect())
        .collect();
    let (source, writer) = sink.is_some().then(|| trace::pipe(places.len())).unzip();
    let trace_failed = source.as_ref().map(TraceSource::failed);

    let (phases, finished) = std::thread::scope(|scope| -> Result<_, ExecuteError> {
        let writing = writer.zip(sink).map(|(writer, sink)| scope.spawn(move || writer.run(sink)));
        let (sender, reports) = channel();
        let starter = Starter { run, context: &context, places: &places, tables: &tables };
        let coordinated = starter.start(scope, source, sender).and_then(|threads| {
            let failed = trace_failed.as_deref();
            let mut coordinator = Coordinator {
                run,
                context: &context,
                places: &places,
                threads: &threads,
                reports,
                failed,
                observe,
            };
            let result = coordinator.phases();
            if result.is_err() {
                deadlines.iter().chain([&abort]).for_each(|deadline| deadline.store(0, Ordering::Relaxed));
                gate.abort();
            }
            let finished: Vec<_> = threads.into_iter().map(ScopedJoinHandle::join).collect();
            result.map(|phases| (phases, finished))
        });
        // The writer ends when the last worker has.
        match writing.map(ScopedJoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(Err(error))) => Err(ExecuteError::Trace(error)),
            Some(Ok(Ok(()))) | None => coordinated,
        }
    })?;

    let torn_down = clock.now();
    let mut workers = Vec::with_capacity(places.len());
    let mut teardown = PhaseCounter::default();
    let mut host = phases.host;
    let mut last_end = 0;
    for (place, finished) in places.iter().zip(finished) {
        let finished: Finished = finished.ok().flatten().ok_or_else(|| place.lost())?;
        teardown.add(finished.teardown);
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

/// Starts the threads of the workers.
struct Starter<'s> {
    run: &'s Run<'s>,
    context: &'s RunContext<'s>,
    places: &'s [Place<'s>],
    /// By client and fileset.
    tables: &'s [Vec<Arc<FileTable>>],
}

impl<'s> Starter<'s> {
    fn start<'scope>(
        &self,
        scope: &'scope Scope<'scope, 's>,
        source: Option<TraceSource>,
        sender: Reports,
    ) -> Result<Vec<ScopedJoinHandle<'scope, Option<Finished>>>, ExecuteError> {
        let mut threads = Vec::with_capacity(self.places.len());
        for (number, place) in (0u32..).zip(self.places) {
            let worker = Worker {
                run: self.context,
                context: WorkerContext {
                    clock: self.run.clock,
                    tables: &self.tables[place.client as usize],
                    client: place.client,
                    clients: self.run.options.clients,
                    worker: place.worker,
                    workers: place.group.workers,
                    verify: self.run.program.verify_block,
                    max_failures: self.run.options.max_errors,
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
                    self.context.abort.store(0, Ordering::Relaxed);
                    self.context.gate.abort();
                    let workers = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
                    return Err(ExecuteError::Thread { worker: number, workers, source });
                }
            }
        }
        Ok(threads)
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
