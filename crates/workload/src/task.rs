//! One worker of an NFS target: tasks of a reactor, one for each operation that it keeps outstanding, which go through
//! set-up, warm-up, measurement and tear-down together.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::atomic::Ordering;

use benchmaster_nfs_client::counters::Snapshot;
use benchmaster_nfs_client::mount::{File, Mount};
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_telemetry::process::thread_cpu_time;

use crate::engine::Engine;
use crate::engine::nfs::NfsEngine;
use crate::gate::Window;
use crate::lane::{Lane, Limits, Outcome, WorkerShared};
use crate::model::Until;
use crate::priority::RealTime;
use crate::program::Instruction;
use crate::recorder::{PhaseCounter, Recorder, ThreadRecorder, WorkerRecord};
use crate::recording::StopReason;
use crate::trace::TraceSender;
use crate::worker::{Finished, Part, Report, Reports, RunContext, Worker};
use benchmaster_clock::Ticks;

/// What the workers of one thread share.
#[derive(Debug)]
pub(crate) struct Thread<'a> {
    pub(crate) reactor: Reactor,
    pub(crate) run: &'a RunContext<'a>,
    recorder: OnceCell<ThreadRecorder<'a>>,
    trace: RefCell<Option<TraceSender>>,
    workers: u32,
    /// Workers that have not finished the measured phase.
    left: Cell<u32>,
    /// CPU time at the start of the measured phase.
    cpu_before: Cell<Option<(u64, u64)>>,
    cpu_ns: Cell<(u64, u64)>,
    stalled_ns: Cell<u64>,
}

impl<'a> Thread<'a> {
    /// A thread of so many workers.
    pub(crate) fn new(
        reactor: Reactor,
        run: &'a RunContext<'a>,
        workers: u32,
        trace: Option<TraceSender>,
    ) -> Self {
        Self {
            reactor,
            run,
            recorder: OnceCell::new(),
            trace: RefCell::new(trace),
            workers,
            left: Cell::new(workers),
            cpu_before: Cell::new(None),
            cpu_ns: Cell::new((0, 0)),
            stalled_ns: Cell::new(0),
        }
    }

    /// CPU time in the measured phase: in user mode, in the kernel.
    pub(crate) fn cpu_ns(&self) -> (u64, u64) {
        self.cpu_ns.get()
    }

    /// Time for which the thread waited for the trace writer.
    pub(crate) fn stalled_ns(&self) -> u64 {
        self.stalled_ns.get()
    }

    /// The measured phase begins.
    fn begin(&self) {
        if self.cpu_before.get().is_none() {
            self.cpu_before.set(Some(thread_cpu_time()));
        }
    }

    /// A worker has finished it.
    fn end(&self) {
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0 {
            let (before, after) = (self.cpu_before.get().unwrap_or_default(), thread_cpu_time());
            self.cpu_ns.set((after.0.saturating_sub(before.0), after.1.saturating_sub(before.1)));
            self.stalled_ns.set(self.recorder.get().map_or(0, ThreadRecorder::finish));
        }
    }
}

/// A client: a mount with connections, counters and state of its own.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) mount: Mount,
    /// Counters when each phase began, set-up excepted, and when the measured one ended.
    marks: RefCell<Vec<Snapshot>>,
    /// Workers that have not finished the measured phase.
    left: Cell<u32>,
}

impl Client {
    /// A client of so many workers.
    pub(crate) fn new(mount: Mount, workers: u32) -> Self {
        Self { mount, marks: RefCell::default(), left: Cell::new(workers) }
    }

    /// Phase number `phase` (from 0, after set-up) begins; the first to say so counts.
    fn mark(&self, phase: usize) {
        let mut marks = self.marks.borrow_mut();
        if marks.len() == phase {
            marks.push(self.mount.counters().snapshot());
        }
    }

    /// A worker has finished the measured phase, of this number.
    fn end(&self, phase: usize) {
        self.left.set(self.left.get() - 1);
        if self.left.get() == 0 {
            self.mark(phase + 1);
        }
    }

    /// Counters at the boundaries of the phases, and the mount.
    pub(crate) fn into_parts(self) -> (Mount, Vec<Snapshot>) {
        (self.mount, self.marks.into_inner())
    }
}

/// One worker and how far it is.
#[derive(Debug)]
pub(crate) struct TaskWorker<'t, 'a> {
    worker: Worker<'a>,
    thread: &'t Thread<'a>,
    client: &'t Client,
    reports: &'t Reports,
    shared: WorkerShared,
    /// Its streams, and those that have not ended the phase that is on.
    lanes: u32,
    left: Cell<u32>,
    /// What happened in a phase that is not measured.
    counter: RefCell<Recorder<'static>>,
    /// The outcome of the streams that needs most attention.
    worst: Cell<Outcome>,
    record: OnceCell<RefCell<Recorder<'t>>>,
    window: Cell<Option<Window>>,
    span: Cell<(Ticks, Ticks)>,
    finished: RefCell<Option<Finished>>,
}

impl<'t, 'a> TaskWorker<'t, 'a> {
    pub(crate) fn new(
        worker: Worker<'a>,
        thread: &'t Thread<'a>,
        client: &'t Client,
        reports: &'t Reports,
    ) -> Self {
        let lanes = worker.group.queue_depth;
        let shared = WorkerShared::new(worker.context.tables.len());
        Self {
            worker,
            thread,
            client,
            reports,
            shared,
            lanes,
            left: Cell::new(lanes),
            counter: RefCell::default(),
            worst: Cell::new(Outcome::Finished),
            record: OnceCell::new(),
            window: Cell::new(None),
            span: Cell::new((Ticks::MAX, 0)),
            finished: RefCell::new(None),
        }
    }

    /// How the worker ended; `None` when the run was aborted before the measured phase.
    pub(crate) fn into_finished(self) -> Option<Finished> {
        self.finished.into_inner()
    }

    /// Takes one stream of the worker through all phases.
    pub(crate) async fn run(&self, lane: &mut Lane<File>) {
        let run = self.thread.run;
        let engine = NfsEngine::new(&self.thread.reactor, &self.client.mount).until(run.deadlines);
        let measured = self.phases(&engine, lane).await;
        if let Err(error) = lane.close_all(&engine, &self.worker.context).await {
            self.counter.borrow_mut().error(format!("close: {error}"));
        }
        if let Some((_, teardown)) = self.arrive()
            && measured
        {
            self.finish(teardown);
        }
    }

    /// All phases but the last closing; `false` when the run was aborted before the measured one.
    async fn phases(&self, engine: &NfsEngine<'_>, lane: &mut Lane<File>) -> bool {
        let group = self.worker.group;
        self.once(engine, lane, &group.setup).await;
        if let Some((_, mut counter)) = self.arrive() {
            self.report(Report::SetUp(match counter.first_error.take() {
                Some(error) => Err(error),
                None => Ok(counter),
            }));
        }

        let last = self.worker.run.deadlines.len() - 1;
        for phase in 0..last {
            let Some(window) = self.enter(engine, phase).await else { return false };
            let limits = self.worker.limits(phase, window, Until::default());
            self.part(engine, lane, (&group.flow, true), limits, &self.counter).await;
            if let Some((_, counter)) = self.arrive() {
                self.report(Report::Warm(counter));
            }
        }

        let Some(window) = self.enter(engine, last).await else { return false };
        self.thread.begin();
        let limits = self.worker.limits(last, window, self.worker.run.until);
        let clock = self.worker.context.clock;
        let (start, _) = self.span.get();
        self.span.set((start.min(clock.now()), 0));
        self.window.set(Some(window));
        self.part(engine, lane, (&group.flow, true), limits, self.record(window)).await;
        let mut holds = false;
        if let Some((outcome, _)) = self.arrive() {
            let (start, _) = self.span.get();
            self.span.set((start, clock.now()));
            self.measured(outcome);
            // What a client that holds files open has to do while others are measured is measured as well.
            holds = group.flow.is_empty();
            if !holds {
                self.end(last);
            }
            self.report(Report::Measured);
        }
        // A lock that could not be given up ends with its file, and others may wait for it.
        if !lane.holds_lock() {
            self.worker.run.gate.entered(&self.thread.reactor, last + 1).await;
        }
        if holds {
            self.end(last);
        }
        self.once(engine, lane, &group.teardown).await;
        true
    }

    /// This worker has left the measured phase, which has this number.
    fn end(&self, phase: usize) {
        self.client.end(phase);
        self.thread.end();
    }

    /// Waits for a phase and its start.
    async fn enter(&self, engine: &NfsEngine<'_>, phase: usize) -> Option<Window> {
        let window = self.worker.run.gate.entered(&self.thread.reactor, phase).await?;
        self.client.mark(phase);
        let begins = self.worker.begins(phase, window);
        while let Some(nap) = self.worker.nap(phase, begins) {
            self.thread.reactor.sleep(nap).await;
        }
        if self.worker.run.deadlines[phase].load(Ordering::Relaxed) != 0 {
            // Tasks stay on their thread.
            let _ahead = RealTime::take();
            engine.sleep_until(self.worker.context.clock, begins).await;
        }
        Some(window)
    }

    fn record(&self, window: Window) -> &RefCell<Recorder<'t>> {
        self.record.get_or_init(|| {
            let Thread { run, recorder, trace, .. } = self.thread;
            let clock = self.worker.context.clock;
            let recorder = recorder.get_or_init(|| {
                ThreadRecorder::new(run.collector, clock, window.start, trace.borrow_mut().take())
            });
            RefCell::new(Recorder::Shared(WorkerRecord::new(recorder, self.worker.number)))
        })
    }

    async fn once(&self, engine: &NfsEngine<'_>, lane: &mut Lane<File>, code: &[Instruction]) {
        if self.worker.run.abort.load(Ordering::Relaxed) != 0 {
            let limits = Limits::until(self.worker.run.abort);
            self.part(engine, lane, (code, false), limits, &self.counter).await;
        }
    }

    /// Runs `code` on a stream, repeatedly or once.
    async fn part(
        &self,
        engine: &NfsEngine<'_>,
        lane: &mut Lane<File>,
        (code, repeat): (&[Instruction], bool),
        limits: Limits<'_>,
        record: &RefCell<Recorder<'_>>,
    ) {
        let part = Part { code, repeat, context: &self.worker.context, shared: &self.shared, limits };
        let outcome = part.run(lane, engine, record).await;
        if !repeat && outcome == Outcome::Stop(StopReason::Work) && self.worst.get() != outcome {
            self.counter.borrow_mut().error("there is no file to pick".into());
        }
        if outcome.gravity() >= self.worst.get().gravity() {
            self.worst.set(outcome);
        }
    }

    /// A stream has ended a phase. The last one gets the outcome and what was counted, and makes the worker ready for the
    /// next phase.
    fn arrive(&self) -> Option<(Outcome, PhaseCounter)> {
        self.left.set(self.left.get() - 1);
        if self.left.get() > 0 {
            return None;
        }
        self.left.set(self.lanes);
        self.shared.begin_phase();
        Some((self.worst.replace(Outcome::Finished), self.counter.take().into_counter()))
    }

    fn report(&self, report: Report) {
        // The coordinator is only gone when the run is over.
        let _ = self.reports.send((self.worker.number, report));
    }

    /// Notes how the measured phase went.
    fn measured(&self, outcome: Outcome) {
        let Some(window) = self.window.get() else { return };
        let (start, end) = self.span.get();
        let series = self.record.get().map(|record| record.take().finish().0).unwrap_or_default();
        *self.finished.borrow_mut() = Some(Finished {
            start,
            end,
            window,
            cpu_ns: None,
            stop: match outcome {
                Outcome::Stop(reason) => reason,
                Outcome::Finished | Outcome::Failed => StopReason::Work,
            },
            series,
            stream: self.shared.stream.get(),
            stalled_ns: 0,
            teardown: PhaseCounter::default(),
        });
    }

    fn finish(&self, teardown: PhaseCounter) {
        if let Some(finished) = &mut *self.finished.borrow_mut() {
            finished.teardown = teardown;
            finished.cpu_ns = (self.thread.workers == 1).then(|| self.thread.cpu_ns());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<'t, F>(_: fn(&'t TaskWorker<'t, 't>, &'t mut Lane<File>) -> F) -> usize {
        size_of::<F>()
    }

    /// Ten thousand of them have to come through the processor's cache again and again.
    #[test]
    fn a_task_is_small() {
        let size = size(|worker, lane| worker.run(lane));
        assert!(size <= 12 << 10, "{size} bytes");
    }
}
