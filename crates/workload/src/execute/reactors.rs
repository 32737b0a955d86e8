//! The threads of an NFS target: each has some of the clients, and runs all workers of these as tasks.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{Builder, Scope};
use std::time::Duration;

use benchmaster_nfs_client::counters::Snapshot;
use benchmaster_nfs_client::mount::Mount;
use benchmaster_nfs_client::reactor::Reactor;

use super::ExecuteError;
use super::crew::{Assignment, ClientReport, Crew, Run, ThreadReport};
use crate::area::NfsArea;
use crate::files::FileTable;
use crate::lane::{Lane, MIN_BUFFER, Stream, WorkerContext, nap_of_many_ns};
use crate::nfs::{run_all, unmount};
use crate::replay::stage::Stage;
use crate::task::{Client, TaskWorker, Thread};
use crate::trace::{TraceSender, TraceSource};
use crate::worker::{Finished, Report, Reports, RunContext, Worker, wake_on_time};

/// Memory for the buffers of all streams together, where these need not be larger: thousands of workers must fit.
const BUFFERS: usize = 32 << 20;

/// Starts the threads of an NFS target.
#[derive(Clone, Copy)]
pub(super) struct Reactors<'s> {
    pub(super) run: &'s Run<'s>,
    pub(super) area: &'s NfsArea,
    pub(super) context: &'s RunContext<'s>,
    pub(super) places: &'s [Assignment<'s>],
    /// By client and fileset.
    pub(super) tables: &'s [Vec<Arc<FileTable>>],
}

impl<'s> Reactors<'s> {
    pub(super) fn start<'scope>(
        self,
        scope: &'scope Scope<'scope, 's>,
        source: Option<TraceSource>,
        sender: Reports,
    ) -> Result<Crew<'scope>, ExecuteError> {
        let share = self.run.options.share;
        let count = self.area.target().threads_for(share.count);
        let mut threads = Vec::with_capacity(count as usize);
        for number in 0..count {
            let (sender, trace) = (sender.clone(), source.as_ref().map(TraceSource::sender));
            let clients = share.clients().filter(|client| client % count == number).collect();
            let body = move || OnThread { reactors: self, clients, reports: sender }.run(trace);
            let builder = Builder::new().name(format!("reactor-{number}"));
            match builder.spawn_scoped(scope, body) {
                Ok(thread) => threads.push(thread),
                Err(source) => {
                    self.context.abort.store(0, Ordering::Relaxed);
                    self.context.gate.abort();
                    return Err(ExecuteError::Thread { worker: number, workers: count, source });
                }
            }
        }
        Ok(Crew::Reactors(threads, self.places.iter().map(|place| (place.client % count) as usize).collect()))
    }
}

/// How long workers may take to come to an end after the run was aborted.
const GRACE: Duration = Duration::from_secs(1);

/// How the workers of a thread ended.
enum Ended {
    Regularly,
    /// Some waited for a server that does not answer.
    GivenUp,
}

/// One thread at work.
struct OnThread<'s> {
    reactors: Reactors<'s>,
    clients: Vec<u32>,
    reports: Reports,
}

impl<'s> OnThread<'s> {
    fn run(&self, trace: Option<TraceSender>) -> ThreadReport {
        wake_on_time();
        let workers = self.places().count();
        let mut report = ThreadReport {
            workers: Vec::with_capacity(workers),
            clients: Vec::new(),
            cpu_ns: (0, 0),
            stalled_ns: 0,
        };
        let reactor = match Reactor::new() {
            Ok(reactor) => reactor,
            Err(error) => {
                self.refuse(&format!("cannot wait for sockets: {error}"));
                return report;
            }
        };
        let _ends = reactor.ends_background();
        self.reactors.context.gate.listen(&reactor);
        if let Some(rendezvous) = self.reactors.context.rendezvous {
            rendezvous.listen(&reactor);
        }
        let (mounts, failed) = self.mount(&reactor);
        if let Some(problem) = failed {
            self.refuse(&problem);
            report.clients = self.leave(&reactor, mounts.into_iter().map(|mount| (mount, Vec::new())));
            return report;
        }
        let thread = Thread::new(reactor, self.reactors.context, workers as u32, trace);
        let own = |client: u32| self.places().filter(|(_, place)| place.client == client).count() as u32;
        let clients = mounts.into_iter().zip(&self.clients);
        let clients: Vec<Client> = clients.map(|(mount, client)| Client::new(mount, own(*client))).collect();
        let tasks: Vec<TaskWorker<'_, '_>> = self
            .places()
            .map(|(number, place)| {
                let client = &clients[self.own_number(place.client)];
                TaskWorker::new(self.worker(number, place), &thread, client, &self.reports)
            })
            .collect();
        let ran = self.run_tasks(&thread, &tasks);
        if matches!(ran, Ok(Ended::GivenUp)) {
            // To unmount would take as long as what was given up.
            return report;
        }
        report.workers = self.places().map(|(number, _)| number).zip(finished(tasks)).collect();
        report.cpu_ns = thread.cpu_ns();
        report.stalled_ns = thread.stalled_ns();
        report.clients = self.leave(&thread.reactor, clients.into_iter().map(Client::into_parts));
        if let Err(error) = ran
            && let Some(client) = report.clients.first_mut()
        {
            client.problems.push(format!("the reactor failed: {error}"));
        }
        report
    }

    /// Workers of this thread's clients, with their numbers in the run.
    fn places(&self) -> impl Iterator<Item = (u32, &'s Assignment<'s>)> {
        let own = |place: &Assignment<'_>| self.clients.contains(&place.client);
        (0u32..).zip(self.reactors.places).filter(move |(_, place)| own(place))
    }

    fn own_number(&self, client: u32) -> usize {
        self.clients.iter().position(|own| *own == client).unwrap_or(0)
    }

    /// No worker of this thread can be set up.
    fn refuse(&self, problem: &str) {
        for (number, _) in self.places() {
            // The coordinator is only gone when the run is over.
            let _ = self.reports.send((number, Report::NoClient(problem.to_owned())));
        }
    }

    /// Mounts for all clients at once; those that were made, and why one was not.
    fn mount(&self, reactor: &Reactor) -> (Vec<Mount>, Option<String>) {
        let area = self.reactors.area;
        let mount = |client: &u32| {
            let identity = area.identity(&client.to_string());
            async move { Mount::connect(reactor, &area.target().options, &identity).await }
        };
        let results = match run_all(reactor, self.clients.iter().map(mount), self.abandoned(reactor)) {
            Ok(results) => results,
            Err(error) => return (Vec::new(), Some(format!("cannot wait for sockets: {error}"))),
        };
        let (mut mounts, mut failed) = (Vec::new(), None);
        for result in results {
            match result {
                Some(Ok(mount)) => mounts.push(mount),
                Some(Err(error)) => {
                    failed.get_or_insert(error.to_string());
                }
                None => {
                    failed.get_or_insert("mounting was given up".into());
                }
            }
        }
        (mounts, failed)
    }

    fn worker(&self, number: u32, place: &Assignment<'s>) -> Worker<'s> {
        let Reactors { run, context, places, tables, .. } = self.reactors;
        let (at, of) = place.group.place(place.client, run.options.share.total);
        Worker {
            run: context,
            context: WorkerContext {
                clock: run.clock,
                tables: &tables[(place.client - run.options.share.first) as usize],
                client: place.client,
                place: at,
                places: of,
                worker: place.worker,
                workers: place.group.workers,
                verify: run.program.verify_block,
                max_failures: run.options.max_errors,
                rendezvous: context.rendezvous,
                nap_ns: nap_of_many_ns(number, places.len()),
            },
            group: place.group,
            number,
            trace: None,
        }
    }

    /// Ends some time after the run was aborted.
    async fn abandoned(&self, reactor: &Reactor) {
        self.reactors.context.gate.aborted(reactor).await;
        reactor.sleep(GRACE).await;
    }

    fn run_tasks(&self, thread: &Thread<'s>, tasks: &[TaskWorker<'_, 's>]) -> io::Result<Ended> {
        let Reactors { run, area, context, places, .. } = self.reactors;
        let streams: u64 = places.iter().map(|place| u64::from(place.group.queue_depth)).sum();
        let buffer = (BUFFERS / usize::try_from(streams.max(1)).unwrap_or(usize::MAX)).min(MIN_BUFFER);
        let stage = |_| self.reactors.context.replay.as_ref().map(|replay| Stage::new(replay.clone()));
        let stages: Vec<_> = self.clients.iter().map(stage).collect();
        // Beside their tasks: a task would hold its stream twice.
        let mut lanes: Vec<_> = tasks
            .iter()
            .zip(self.places())
            .flat_map(|(task, (number, place))| {
                let stage = &stages[self.own_number(place.client)];
                let depth = place.group.queue_depth;
                let buffer = if depth == 1 { buffer } else { 0 };
                (0..depth).map(move |lane| {
                    let stream = Stream::new(context.workers_before + number, lane, depth);
                    let lane = Lane::new(
                        run.options.seed,
                        stream,
                        place.group.max_io,
                        buffer,
                        area.directory().as_bytes(),
                    );
                    (task, lane.on_stage(stage.clone()))
                })
            })
            .collect();
        let lanes = lanes.iter_mut().map(|(task, lane)| task.run(lane));
        let ended = run_all(&thread.reactor, lanes, self.abandoned(&thread.reactor))?;
        Ok(if ended.iter().all(Option::is_some) { Ended::Regularly } else { Ended::GivenUp })
    }

    fn leave(
        &self,
        reactor: &Reactor,
        mounts: impl Iterator<Item = (Mount, Vec<Snapshot>)>,
    ) -> Vec<ClientReport> {
        let leaving = |(client, (mount, marks)): (u32, (Mount, Vec<Snapshot>))| async move {
            let left = unmount(reactor, mount).await;
            let zero = Snapshot::zero();
            let ends = marks.iter().chain([&left.counters]);
            let phases =
                ends.clone().zip([&zero].into_iter().chain(ends)).map(|(end, begin)| end.since(begin));
            ClientReport { client, phases: phases.collect(), facts: left.facts, problems: left.problems }
        };
        let leaving = self.clients.iter().copied().zip(mounts).map(leaving);
        let left = run_all(reactor, leaving, self.abandoned(reactor)).unwrap_or_default();
        left.into_iter().flatten().collect()
    }
}

fn finished(tasks: Vec<TaskWorker<'_, '_>>) -> impl Iterator<Item = Option<Finished>> {
    tasks.into_iter().map(TaskWorker::into_finished)
}
