//! One worker: a thread that takes its lanes through set-up, warm-up, measurement and tear-down.

use std::cell::RefCell;
use std::future::Future;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::pin::{Pin, pin};
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll, Waker};

use benchmaster_telemetry::process::thread_cpu_time;

use crate::clock::Ticks;
use crate::engine::Engine;
use crate::engine::posix::PosixEngine;
use crate::engine::uring::{Ring, UringEngine};
use crate::gate::{Gate, Window};
use crate::lane::{Lane, Limits, Outcome, WorkerContext, WorkerShared};
use crate::model::{IoMethod, Until};
use crate::program::{GroupProgram, Instruction};
use crate::recorder::{Collector, PhaseCounter, Record, WorkerRecorder};
use crate::recording::{StopReason, WorkerSeries};
use crate::trace::TraceSender;

/// What a worker tells the coordinator.
#[derive(Debug)]
pub(crate) enum Report {
    /// Its files are open; or why they are not.
    SetUp(Result<(), String>),
    /// Its warm-up is over.
    Warm(PhaseCounter),
    /// Its measured phase is over.
    Measured,
}

/// What is the same for all workers of a run.
#[derive(Debug)]
pub(crate) struct RunContext<'a> {
    pub(crate) root: BorrowedFd<'a>,
    pub(crate) gate: &'a Gate,
    pub(crate) collector: &'a Collector,
    /// Ends of the phases; set to 0 to stop a phase.
    pub(crate) deadlines: &'a [AtomicU64],
    pub(crate) until: Until,
    pub(crate) seed: u64,
    /// Time spun before the start; 0 when there are more workers than processors.
    pub(crate) spin_ns: u64,
}

/// One worker.
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
    pub(crate) stalled_ns: u64,
    pub(crate) teardown: PhaseCounter,
}

/// Carries out code on all lanes of a worker.
trait Drive {
    /// Runs `code` on every lane, once or repeatedly; the reason of the lane that stopped last.
    fn drive<R: Record>(&mut self, job: &Job<'_>, record: &RefCell<R>) -> Result<Outcome, String>;
    /// Closes what the lanes have open.
    fn close_all(&mut self) -> Result<(), String>;
}

/// A piece of work for all lanes.
#[derive(Debug)]
struct Job<'j> {
    code: &'j [Instruction],
    repeat: bool,
    context: &'j WorkerContext<'j>,
    shared: &'j WorkerShared,
    limits: &'j Limits<'j>,
}

impl Job<'_> {
    async fn run<E: Engine, R: Record>(
        &self,
        lane: &mut Lane<E::Handle>,
        engine: &E,
        record: &RefCell<R>,
    ) -> Outcome {
        match self.repeat {
            true => Outcome::Stop(
                lane.repeat(engine, self.context, self.shared, self.code, self.limits, record).await,
            ),
            false => lane.run(engine, self.context, self.shared, self.code, self.limits, None, record).await,
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
    fn drive<R: Record>(&mut self, job: &Job<'_>, record: &RefCell<R>) -> Result<Outcome, String> {
        Ok(block_on(job.run(&mut self.lane, &self.engine, record)))
    }

    fn close_all(&mut self) -> Result<(), String> {
        block_on(self.lane.close_all(&self.engine)).map_err(|error| format!("close: {error}"))
    }
}

struct OnRing<'a> {
    ring: Ring,
    root: BorrowedFd<'a>,
    lanes: Vec<Lane<OwnedFd>>,
}

impl Drive for OnRing<'_> {
    fn drive<R: Record>(&mut self, job: &Job<'_>, record: &RefCell<R>) -> Result<Outcome, String> {
        let (ring, root) = (&self.ring, self.root);
        let stream = |(number, lane)| {
            Box::pin(async move {
                let engine = UringEngine::new(ring, number, PosixEngine::new(root));
                job.run(lane, &engine, record).await
            })
        };
        let mut streams: Vec<Pin<Box<_>>> = (0u32..).zip(&mut self.lanes).map(stream).collect();
        let outcomes = ring.run(&mut streams).map_err(|error| format!("io_uring: {error}"))?;
        let worse = |a: Outcome, b: Outcome| if matches!(a, Outcome::Finished) { b } else { a };
        Ok(outcomes.into_iter().reduce(worse).unwrap_or(Outcome::Finished))
    }

    fn close_all(&mut self) -> Result<(), String> {
        let engine = PosixEngine::new(self.root);
        let close = |lane: &mut Lane<OwnedFd>| block_on(lane.close_all(&engine));
        self.lanes.iter_mut().map(close).fold(Ok(()), Result::and).map_err(|error| format!("close: {error}"))
    }
}

impl Worker<'_> {
    /// Runs the worker; `None` when the run was aborted before the measured phase.
    pub(crate) fn run(self, reports: &Sender<Report>) -> Option<Finished> {
        let lane = |number| {
            let stream = (u64::from(self.number) << 16) | u64::from(number);
            Lane::new(self.run.seed, stream, number, self.group.queue_depth, self.group.max_io)
        };
        match self.group.io {
            IoMethod::Sync => {
                let engine = PosixEngine::new(self.run.root);
                let lane = lane(0);
                self.phases(Blocking { engine, lane }, reports)
            }
            IoMethod::IoUring => match Ring::new(self.group.queue_depth) {
                Ok(ring) => {
                    let lanes = (0..self.group.queue_depth).map(lane).collect();
                    let root = self.run.root;
                    self.phases(OnRing { ring, root, lanes }, reports)
                }
                Err(error) => {
                    let text = format!("this kernel gives no io_uring ({error}); use `io = \"sync\"`");
                    let _ = reports.send(Report::SetUp(Err(text)));
                    None
                }
            },
        }
    }

    fn phases(mut self, mut drive: impl Drive, reports: &Sender<Report>) -> Option<Finished> {
        let shared = WorkerShared::new();
        let forever = AtomicU64::new(u64::MAX);
        let origin = self.context.clock.now();
        let set_up = self.once(&mut drive, &shared, &self.group.setup, &forever, origin);
        let failed = set_up.as_ref().map_or_else(|e| Some(e.clone()), |counter| counter.first_error.clone());
        let _ = reports.send(Report::SetUp(failed.map_or(Ok(()), Err)));

        let phases = self.run.deadlines.len();
        for phase in 0..phases - 1 {
            let window = self.enter(phase)?;
            let counter = RefCell::new(PhaseCounter::default());
            let limits = self.limits(phase, window, Until::default());
            // A failure of the ring shows again, and ends the run, in the measured phase.
            let _ = self.repeat(&mut drive, &shared, &limits, &counter);
            let _ = reports.send(Report::Warm(counter.into_inner()));
        }

        let window = self.enter(phases - 1)?;
        let recorder = WorkerRecorder::new(self.run.collector, self.context.clock, window.start, self.number, self.trace.take());
        let recorder = RefCell::new(recorder);
        let limits = self.limits(phases - 1, window, self.run.until);
        shared.iterations.set(0);
        shared.moved.set(0);
        let cpu = thread_cpu_time();
        let start = self.context.clock.now();
        let outcome = self.repeat(&mut drive, &shared, &limits, &recorder);
        let end = self.context.clock.now();
        let cpu_after = thread_cpu_time();
        let cpu_ns = Some((cpu_after.0.saturating_sub(cpu.0), cpu_after.1.saturating_sub(cpu.1)));
        let (series, stalled_ns) = recorder.into_inner().finish();
        let _ = reports.send(Report::Measured);

        let mut teardown = self
            .once(&mut drive, &shared, &self.group.teardown, &forever, end)
            .unwrap_or_else(|error| PhaseCounter { errors: 1, first_error: Some(error), ..PhaseCounter::default() });
        if let Err(error) = drive.close_all() {
            teardown.errors += 1;
            teardown.first_error.get_or_insert(error);
        }
        let stop = match outcome {
            Ok(Outcome::Stop(reason)) => reason,
            Ok(_) => StopReason::Work,
            Err(error) => {
                teardown.errors += 1;
                teardown.first_error.get_or_insert(error);
                StopReason::Errors
            }
        };
        Some(Finished { start, end, window, cpu_ns, stop, series, stalled_ns, teardown })
    }

    fn enter(&self, phase: usize) -> Option<Window> {
        let window = self.run.gate.wait(phase)?;
        self.context.clock.wait_until(window.start, self.run.spin_ns);
        Some(window)
    }

    fn limits(&self, phase: usize, window: Window, until: Until) -> Limits<'_> {
        Limits {
            start: window.start,
            deadline: &self.run.deadlines[phase],
            iterations: until.iterations.unwrap_or(u64::MAX),
            bytes: until.bytes.map_or(u64::MAX, |bytes| bytes.0),
            period_ns: self.group.rate.map(|rate| 1e9 * f64::from(self.group.workers) / rate),
        }
    }

    fn repeat<R: Record>(
        &self,
        drive: &mut impl Drive,
        shared: &WorkerShared,
        limits: &Limits<'_>,
        record: &RefCell<R>,
    ) -> Result<Outcome, String> {
        let job = Job { code: &self.group.flow, repeat: true, context: &self.context, shared, limits };
        drive.drive(&job, record)
    }

    fn once(
        &self,
        drive: &mut impl Drive,
        shared: &WorkerShared,
        code: &[Instruction],
        forever: &AtomicU64,
        origin: Ticks,
    ) -> Result<PhaseCounter, String> {
        let limits =
            Limits { start: origin, deadline: forever, iterations: 1, bytes: u64::MAX, period_ns: None };
        let counter = RefCell::new(PhaseCounter::default());
        let job = Job { code, repeat: false, context: &self.context, shared, limits: &limits };
        let outcome = drive.drive(&job, &counter)?;
        let mut counter = counter.into_inner();
        if outcome == Outcome::Stop(StopReason::Work) {
            counter.errors += 1;
            counter.first_error.get_or_insert_with(|| "there is no file to pick".into());
        }
        Ok(counter)
    }
}
