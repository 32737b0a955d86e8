//! Starting the workers of a run and gathering what they bring home.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::thread::{Builder, Scope, ScopedJoinHandle};

use super::coordinator::Coordinator;
use super::crew::{Assignment, Crew, Ran, Run};
use super::reactors::Reactors;
use super::wire::Wire;
use super::{ExecuteError, Progress};
use crate::area::Location;
use crate::conduct::Conductor;
use crate::files::FileTable;
use crate::gate::Gate;
use crate::lane::{NAP_NS, WorkerContext};
use crate::recorder::{Collector, PhaseCounter};
use crate::recording::{TraceSink, WorkerRecording};
use crate::rendezvous::Rendezvous;
use crate::replay::stage::{ReplayRun, Stage};
use crate::trace::{self, TraceSource};
use crate::worker::{Finished, Reports, RunContext, Worker};

/// Runs all workers through all phases.
///
/// # Errors
/// When a worker cannot be started or set up or is lost, the trace cannot be written, or the run is stopped.
pub(super) fn run(
    run: &Run<'_>,
    wire: &mut Wire,
    conductor: &mut dyn Conductor,
    sink: Option<&mut dyn TraceSink>,
    observe: &mut dyn FnMut(Progress),
) -> Result<Ran, ExecuteError> {
    let Run { workload, program, options, clock, .. } = *run;
    let share = options.share;
    let places: Vec<Assignment<'_>> = share
        .clients()
        .flat_map(|client| program.groups.iter().map(move |group| (client, group)))
        .filter(|(client, group)| group.contains(*client))
        .flat_map(|(client, group)| {
            (0..group.workers).map(move |worker| Assignment { client, worker, group })
        })
        .collect();
    raise_file_limit();
    let timed = program.replay.as_ref().is_some_and(|replay| replay.speed.is_finite());
    let open_loop = timed || program.groups.iter().any(|group| group.rate.is_some());
    let collector = Collector::new(program.measured_series(), options.interval_ns, open_loop);
    let warms = workload.warm_up.nanos() > 0;
    let deadlines: Vec<AtomicU64> =
        (0..if warms { 2 } else { 1 }).map(|_| AtomicU64::new(u64::MAX)).collect();
    let rendezvous = Rendezvous::new(program, share.clients()).map(Arc::new);
    if let Some(rendezvous) = &rendezvous {
        rendezvous.connect(conductor);
    }
    let replay = program.replay.as_ref().map(|r| Arc::new(ReplayRun::new(r.plan.clone(), r.speed)));
    let (gate, abort) = (Gate::default(), AtomicU64::new(u64::MAX));
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    let context = RunContext {
        gate: &gate,
        collector: &collector,
        rendezvous: rendezvous.as_deref(),
        replay: replay.clone(),
        deadlines: &deadlines,
        abort: &abort,
        until: workload.until,
        seed: options.seed,
        workers_before: (0..share.first).map(|client| program.workers_of(client)).sum(),
        spin_ns: if places.len() * options.neighbours.max(1) as usize <= processors { 50_000 } else { 0 },
        stagger_ns: u64::try_from(options.stagger.as_nanos()).unwrap_or(u64::MAX),
    };
    let tables: Vec<Vec<_>> = (0..share.count as usize)
        .map(|client| run.ready.iter().map(|fileset| fileset.tables[client].clone()).collect())
        .collect();
    let (source, writer) = sink.is_some().then(|| trace::pipe(places.len())).unzip();
    let trace_failed = source.as_ref().map(TraceSource::failed);

    let (phases, (finished, reactors)) = std::thread::scope(|scope| -> Result<_, ExecuteError> {
        let writing = writer.zip(sink).map(|(writer, sink)| scope.spawn(move || writer.run(sink)));
        let (sender, reports) = channel();
        let crew = match run.area.place() {
            Location::Directory(directory) => directory.root().map_err(ExecuteError::from).and_then(|root| {
                let starter = Starter { run, root, context: &context, places: &places, tables: &tables };
                starter.start(scope, source, sender)
            }),
            Location::Nfs(area) => {
                let reactors = Reactors { run, area, context: &context, places: &places, tables: &tables };
                reactors.start(scope, source, sender)
            }
        };
        let coordinated = crew.and_then(|crew| {
            let failed = trace_failed.as_deref();
            let mut coordinator = Coordinator {
                run,
                context: &context,
                places: &places,
                crew: &crew,
                reports,
                failed,
                wire,
                conductor,
                observe,
            };
            let result = coordinator.phases();
            if result.is_err() {
                deadlines.iter().chain([&abort]).for_each(|deadline| deadline.store(0, Ordering::Relaxed));
                gate.abort();
            }
            coordinator.wait_for_threads();
            let joined = crew.join();
            result.map(|phases| (phases, joined))
        });
        // The writer ends when the last worker has.
        match writing.map(ScopedJoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(Err(error))) => Err(ExecuteError::Trace(error)),
            Some(Ok(Ok(()))) | None => coordinated,
        }
    })?;

    let torn_down = clock.now();
    if options.stop.load(Ordering::Relaxed) {
        return Err(ExecuteError::Stopped);
    }
    let mut workers = Vec::with_capacity(places.len());
    let mut teardown = PhaseCounter::default();
    let mut host = phases.host;
    host.trace_stall_ns += reactors.iter().map(|thread| thread.stalled_ns).sum::<u64>();
    let mut last_end = 0;
    for (place, finished) in places.iter().zip(finished) {
        let finished: Finished = finished.ok_or_else(|| place.lost())?;
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
            stream: finished.stream,
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
        replay: replay.map(|replay| replay.facts()),
        reactors,
    })
}

/// Starts the threads of the workers.
struct Starter<'s> {
    run: &'s Run<'s>,
    root: BorrowedFd<'s>,
    context: &'s RunContext<'s>,
    places: &'s [Assignment<'s>],
    /// By client and fileset.
    tables: &'s [Vec<Arc<FileTable>>],
}

impl<'s> Starter<'s> {
    fn start<'scope>(
        &self,
        scope: &'scope Scope<'scope, 's>,
        source: Option<TraceSource>,
        sender: Reports,
    ) -> Result<Crew<'scope>, ExecuteError> {
        let mut threads = Vec::with_capacity(self.places.len());
        let stage = |_| self.context.replay.as_ref().map(|replay| Stage::new(replay.clone()));
        let stages: Vec<_> = self.tables.iter().map(stage).collect();
        for (number, place) in (0u32..).zip(self.places) {
            let (at, of) = place.group.place(place.client, self.run.options.share.total);
            let worker = Worker {
                run: self.context,
                context: WorkerContext {
                    clock: self.run.clock,
                    tables: &self.tables[(place.client - self.run.options.share.first) as usize],
                    client: place.client,
                    place: at,
                    places: of,
                    worker: place.worker,
                    workers: place.group.workers,
                    verify: self.run.program.verify_block,
                    max_failures: self.run.options.max_errors,
                    rendezvous: self.context.rendezvous,
                    nap_ns: NAP_NS,
                },
                group: place.group,
                number,
                trace: source.as_ref().map(TraceSource::sender),
            };
            let (sender, root) = (sender.clone(), self.root);
            let stage = stages[(place.client - self.run.options.share.first) as usize].clone();
            let builder = Builder::new().name(format!("worker-{number}")).stack_size(512 << 10);
            match builder.spawn_scoped(scope, move || worker.run(root, stage, &sender)) {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    self.context.abort.store(0, Ordering::Relaxed);
                    self.context.gate.abort();
                    let workers = u32::try_from(self.places.len()).unwrap_or(u32::MAX);
                    return Err(ExecuteError::Thread { worker: number, workers, source });
                }
            }
        }
        Ok(Crew::Workers(threads))
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
