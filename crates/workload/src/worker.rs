//! One worker on a directory: a thread that takes its lanes through set-up, warm-up, measurement and tear-down.

use std::cell::RefCell;
use std::future::Future;
use std::num::NonZeroU64;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use benchmaster_telemetry::process::thread_cpu_time;

use crate::engine::Engine;
use crate::engine::posix::PosixEngine;
use crate::engine::uring::{Ring, UringEngine};
use crate::gate::{Gate, Window};
use crate::lane::{Job, Lane, Limits, MIN_BUFFER, Outcome, Stream, WorkerContext, WorkerShared};
use crate::model::{IoMethod, Until};
use crate::priority::RealTime;
use crate::program::{GroupProgram, Instruction};
use crate::recorder::{Collector, PhaseCounter, Recorder, WorkerRecorder};
use crate::recording::{OperationStream, StopReason, WorkerSeries};
use crate::rendezvous::Rendezvous;
use crate::replay::stage::{ReplayRun, Stage};
use crate::trace::TraceSender;
use benchmaster_clock::Ticks;

/// What a worker tells the coordinator, after its number.
pub(crate) type Reports = Sender<(u32, Report)>;

/// How a worker came out of a phase.
#[derive(Debug)]
pub(crate) enum Report {
    /// Its files are open; or why they are not.
    SetUp(Result<PhaseCounter, String>),
    /// Its client could not be started, and why.
    NoClient(String),
    /// Its warm-up is over.
    Warm(PhaseCounter),
    /// Its measured phase is over.
    Measured,
}

/// Lets the calling thread wake up when it asked to; the kernel else adds up to 50 µs to save power.
pub(crate) fn wake_on_time() {
    // Where it is not allowed, starts are later, which is measured.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// What is the same for all workers of a run.
#[derive(Debug)]
pub(crate) struct RunContext<'a> {
    pub(crate) gate: &'a Gate,
    pub(crate) collector: &'a Collector,
    pub(crate) rendezvous: Option<&'a Rendezvous>,
    /// Ends of the phases; set to 0 to stop a phase.
    pub(crate) deadlines: &'a [AtomicU64],
    /// Never, or 0 to stop set-up and tear-down.
    pub(crate) abort: &'a AtomicU64,
    pub(crate) until: Until,
    pub(crate) seed: u64,
    /// Workers of the clients before those of this process: what its workers draw must not depend on how clients are dealt
    /// out among processes.
    pub(crate) workers_before: u32,
    /// Time spun before the start; 0 when there are more workers than processors.
    pub(crate) spin_ns: u64,
    /// From the start of one client to the start of the next in the measured phase.
    pub(crate) stagger_ns: u64,
    /// The replay that is on, if the workload is one.
    pub(crate) replay: Option<Arc<ReplayRun>>,
}

/// One worker, on a thread of its own or as [tasks](crate::task) of a reactor.
#[derive(Debug)]
pub(crate) struct Worker<'a> {
    pub(crate) run: &'a RunContext<'a>,
    pub(crate) context: WorkerContext<'a>,
    pub(crate) group: &'a GroupProgram,
    /// Number over all clients and groups.
    pub(crate) number: u32,
    pub(crate) trace: Option<TraceSender>,
}

/// How a worker ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) start: Ticks,
    pub(crate) end: Ticks,
    pub(crate) window: Window,
    pub(crate) cpu_ns: Option<(u64, u64)>,
    pub(crate) stop: StopReason,
    pub(crate) series: Vec<WorkerSeries>,
    pub(crate) stream: OperationStream,
    pub(crate) stalled_ns: u64,
    pub(crate) teardown: PhaseCounter,
}

/// Carries out code on all lanes of a worker.
trait Drive {
    /// Runs `part` on every lane.
    fn drive(&mut self, part: &Part<'_>, record: &RefCell<Recorder<'_>>) -> Result<Outcome, String>;
    /// Whether a lane has a lock that it could not give up.
    fn holds_lock(&self) -> bool;
    /// Closes what the lanes have open.
    fn close_all(&mut self, context: &WorkerContext<'_>) -> Result<(), String>;
}

/// A piece of work for all lanes.
#[derive(Debug)]
pub(crate) struct Part<'p> {
    pub(crate) code: &'p [Instruction],
    pub(crate) repeat: bool,
    pub(crate) context: &'p WorkerContext<'p>,
    pub(crate) shared: &'p WorkerShared,
    pub(crate) limits: Limits<'p>,
}

impl Part<'_> {
    pub(crate) async fn run<E: Engine>(
        &self,
        lane: &mut Lane<E::Handle>,
        engine: &E,
        record: &RefCell<Recorder<'_>>,
    ) -> Outcome {
        let job = Job { engine, context: self.context, shared: self.shared, limits: &self.limits, record };
        if self.repeat {
            Outcome::Stop(lane.repeat(&job, self.code).await)
        } else {
            let outcome = lane.run(&job, self.code, 0, false).await;
            lane.leave(self.context, self.code, false);
            outcome
        }
    }
}

/// Polls a future of a blocking engine, which is ready at once.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
        std::hint::spin_loop();
    }
}

struct Blocking<E: Engine> {
    engine: E,
    lane: Lane<E::Handle>,
}

impl<E: Engine> Drive for Blocking<E> {
    fn drive(&mut self, part: &Part<'_>, record: &RefCell<Recorder<'_>>) -> Result<Outcome, String> {
        Ok(block_on(part.run(&mut self.lane, &self.engine, record)))
    }

    fn holds_lock(&self) -> bool {
        self.lane.holds_lock()
    }

    fn close_all(&mut self, context: &WorkerContext<'_>) -> Result<(), String> {
        block_on(self.lane.close_all(self.engine.files(), context)).map_err(|error| format!("close: {error}"))
    }
}

struct OnRing<'a> {
    ring: Ring,
    engine: PosixEngine<'a>,
    lanes: Vec<Lane<OwnedFd>>,
}

impl Drive for OnRing<'_> {
    fn drive(&mut self, part: &Part<'_>, record: &RefCell<Recorder<'_>>) -> Result<Outcome, String> {
        let (ring, posix) = (&self.ring, self.engine);
        let stream = |(number, lane)| {
            Box::pin(async move {
                // SAFETY: the stream is polled by `ring.run` below as number `number`, lanes await every future of the
                // engine where they make it, and the streams are dropped after `ring.run`.
                let engine = unsafe { UringEngine::new(ring, number, posix) };
                part.run(lane, &engine, record).await
            })
        };
        let mut streams: Vec<Pin<Box<_>>> = (0u32..).zip(&mut self.lanes).map(stream).collect();
        let outcomes = ring.run(&mut streams).map_err(|error| format!("io_uring: {error}"))?;
        Ok(outcomes.into_iter().max_by_key(Outcome::gravity).unwrap_or(Outcome::Finished))
    }

    fn holds_lock(&self) -> bool {
        self.lanes.iter().any(Lane::holds_lock)
    }

    fn close_all(&mut self, context: &WorkerContext<'_>) -> Result<(), String> {
        let engine = &self.engine;
        let close = |lane: &mut Lane<OwnedFd>| block_on(lane.close_all(engine, context));
        self.lanes.iter_mut().map(close).fold(Ok(()), Result::and).map_err(|error| format!("close: {error}"))
    }
}

impl Worker<'_> {
    /// Runs the worker on files below `root`; `None` when the run was aborted before the measured phase.
    pub(crate) fn run(
        self,
        root: BorrowedFd<'_>,
        stage: Option<Arc<Stage<OwnedFd>>>,
        reports: &Reports,
    ) -> Option<Finished> {
        wake_on_time();
        let depth = self.group.queue_depth;
        let buffer = if depth == 1 { MIN_BUFFER } else { 0 };
        let lane = |number| {
            let stream = Stream::new(self.run.workers_before + self.number, number, depth);
            Lane::new(self.run.seed, stream, self.group.max_io, buffer, b"").on_stage(stage.clone())
        };
        let makes_links = stage.as_ref().is_some_and(|stage| stage.run.plan.makes_links());
        let engine = if makes_links { PosixEngine::beneath(root) } else { PosixEngine::new(root) };
        match self.group.io {
            IoMethod::Sync => {
                let lane = lane(0);
                self.phases(&mut Blocking { engine, lane }, reports)
            }
            IoMethod::IoUring => match Ring::new(depth) {
                Ok(ring) => {
                    let lanes = (0..depth).map(lane).collect();
                    self.phases(&mut OnRing { ring, engine, lanes }, reports)
                }
                Err(error) => {
                    let text = format!(
                        "cannot create an io_uring with {depth} entries ({error}); use `io = \"sync\"`, or allow it \
                         (sysctl kernel.io_uring_disabled, ulimit -l)"
                    );
                    let _ = reports.send((self.number, Report::SetUp(Err(text))));
                    None
                }
            },
        }
    }

    fn phases(mut self, drive: &mut dyn Drive, reports: &Reports) -> Option<Finished> {
        let shared = WorkerShared::new(self.context.tables.len());
        let report = |report| {
            // The coordinator is only gone when the run is over.
            let _ = reports.send((self.number, report));
        };
        let set_up = self.once(drive, &shared, &self.group.setup);
        let set_up = set_up.and_then(|mut counter| match counter.first_error.take() {
            Some(error) => Err(error),
            None => Ok(counter),
        });
        report(Report::SetUp(set_up));

        let last = self.run.deadlines.len() - 1;
        for phase in 0..last {
            let window = self.enter(phase)?;
            let counter = RefCell::new(Recorder::default());
            let limits = self.limits(phase, window, Until::default());
            let outcome = self.repeat(drive, &shared, limits, &counter);
            let mut counter = counter.into_inner().into_counter();
            if let Err(error) = outcome {
                counter.error(error);
            }
            report(Report::Warm(counter));
        }

        let window = self.enter(last)?;
        let trace = self.trace.take();
        let recorder =
            WorkerRecorder::new(self.run.collector, self.context.clock, window.start, self.number, trace);
        let recorder = RefCell::new(Recorder::Worker(recorder));
        let limits = self.limits(last, window, self.run.until);
        let cpu = thread_cpu_time();
        let start = self.context.clock.now();
        let outcome = self.repeat(drive, &shared, limits, &recorder);
        let end = self.context.clock.now();
        let cpu_after = thread_cpu_time();
        let cpu_ns = Some((cpu_after.0.saturating_sub(cpu.0), cpu_after.1.saturating_sub(cpu.1)));
        let (series, stalled_ns) = recorder.into_inner().finish();
        let stream = shared.stream.get();
        let _ = reports.send((self.number, Report::Measured));
        // What is counted of the measured phase must not contain what others do after it. A lock that could not be given
        // up ends with its file, and others may wait for it.
        if !drive.holds_lock() {
            self.run.gate.wait(last + 1);
        }

        let torn_down = self.once(drive, &shared, &self.group.teardown);
        let mut teardown = torn_down.unwrap_or_else(|error| {
            let mut counter = PhaseCounter::default();
            counter.error(error);
            counter
        });
        if let Err(error) = drive.close_all(&self.context) {
            teardown.error(error);
        }
        let stop = match outcome {
            Ok(Outcome::Stop(reason)) => reason,
            Ok(_) => StopReason::Work,
            Err(error) => {
                teardown.error(error);
                StopReason::Errors
            }
        };
        Some(Finished { start, end, window, cpu_ns, stop, series, stream, stalled_ns, teardown })
    }

    fn enter(&self, phase: usize) -> Option<Window> {
        let window = self.run.gate.wait(phase)?;
        let (clock, begins) = (self.context.clock, self.begins(phase, window));
        while let Some(nap) = self.nap(phase, begins) {
            std::thread::sleep(nap);
        }
        if self.run.deadlines[phase].load(Ordering::Relaxed) != 0 {
            let _ahead = RealTime::take();
            clock.wait_until(begins, self.run.spin_ns);
        }
        Some(window)
    }

    /// How long to sleep until it is to be looked again whether the run was stopped; `None` when the start of a phase is
    /// near or was called off.
    pub(crate) fn nap(&self, phase: usize, begins: Ticks) -> Option<Duration> {
        const LOOK: Duration = Duration::from_millis(100);
        let clock = self.context.clock;
        let left = Duration::from_nanos(clock.nanos(clock.now(), begins));
        (left > 2 * LOOK && self.run.deadlines[phase].load(Ordering::Relaxed) != 0).then_some(LOOK)
    }

    /// When this worker begins a phase: its client's turn comes in the measured phase.
    pub(crate) fn begins(&self, phase: usize, window: Window) -> Ticks {
        if phase + 1 == self.run.deadlines.len() {
            let stagger = self.run.stagger_ns.saturating_mul(self.context.client.into());
            self.context.clock.after(window.start, stagger)
        } else {
            window.start
        }
    }

    pub(crate) fn limits(&self, phase: usize, window: Window, until: Until) -> Limits<'_> {
        Limits {
            start: self.begins(phase, window),
            deadline: &self.run.deadlines[phase],
            iterations: until.iterations.unwrap_or(u64::MAX),
            bytes: until.bytes.map_or(u64::MAX, |bytes| bytes.0),
            period_ns: self.group.rate.map(|rate| 1e9 * f64::from(self.group.workers) / rate),
        }
    }

    fn repeat(
        &self,
        drive: &mut dyn Drive,
        shared: &WorkerShared,
        limits: Limits<'_>,
        record: &RefCell<Recorder<'_>>,
    ) -> Result<Outcome, String> {
        shared.begin_phase();
        drive.drive(
            &Part { code: &self.group.flow, repeat: true, context: &self.context, shared, limits },
            record,
        )
    }

    fn once(
        &self,
        drive: &mut dyn Drive,
        shared: &WorkerShared,
        code: &[Instruction],
    ) -> Result<PhaseCounter, String> {
        if self.run.abort.load(Ordering::Relaxed) == 0 {
            return Ok(PhaseCounter::default());
        }
        let counter = RefCell::new(Recorder::default());
        let limits = Limits::until(self.run.abort);
        let outcome =
            drive.drive(&Part { code, repeat: false, context: &self.context, shared, limits }, &counter)?;
        let mut counter = counter.into_inner().into_counter();
        if outcome == Outcome::Stop(StopReason::Work) {
            counter.error("there is no file to pick".into());
        }
        Ok(counter)
    }
}
