//! Taking all workers through the phases of a run.

use benchmaster_record::phase::Phase;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use benchmaster_clock::realtime_minus_monotonic_ns;
use benchmaster_telemetry::host::{CpuTimes, busy_share, steal_share, written_back_bytes};
use benchmaster_telemetry::process::cpu_time;

use super::crew::{Assignment, Crew, Run};
use super::wire::Wire;
use super::{Edge, ExecuteError, Progress};
use crate::conduct::{Conductor, Start, Step};
use crate::gate::Window;
use crate::recorder::PhaseCounter;
use crate::recording::HostUse;
use crate::worker::{Report, RunContext};
use benchmaster_clock::{Clock, Ticks};

/// How long workers that were stopped may take to finish the operation they are in.
const PATIENCE_NS: u64 = 5_000_000_000;

/// Takes all workers through the phases.
pub(super) struct Coordinator<'c> {
    pub(super) run: &'c Run<'c>,
    pub(super) context: &'c RunContext<'c>,
    pub(super) places: &'c [Assignment<'c>],
    pub(super) crew: &'c Crew<'c>,
    pub(super) reports: Receiver<(u32, Report)>,
    /// Set when the trace cannot be written, so that going on is in vain.
    pub(super) failed: Option<&'c AtomicBool>,
    pub(super) wire: &'c mut Wire,
    pub(super) conductor: &'c mut dyn Conductor,
    pub(super) observe: &'c mut dyn FnMut(Progress),
}

/// How the phases went.
#[derive(Debug)]
pub(super) struct Phases {
    pub(super) window: Window,
    pub(super) warm_up: Option<(Window, PhaseCounter)>,
    pub(super) started_unix_ns: i64,
    pub(super) end: Ticks,
    pub(super) host: HostUse,
}

/// A phase, how long it will take, and what ends it early when set to 0.
struct Planned<'p> {
    phase: Phase,
    length: Option<Duration>,
    end: &'p AtomicU64,
}

impl Coordinator<'_> {
    pub(super) fn phases(&mut self) -> Result<Phases, ExecuteError> {
        let Run { workload, clock, .. } = *self.run;
        let (context, places) = (self.context, self.places);
        let mut failed = None;
        let mut total = PhaseCounter::default();
        let set_up = Planned { phase: Phase::Prepare, length: None, end: context.abort };
        self.gather(&set_up, &mut |worker, report| match report {
            Report::SetUp(Ok(counter)) => total.add(counter),
            Report::SetUp(Err(problem)) => {
                let group = places[worker].group.name.clone();
                failed.get_or_insert(ExecuteError::SetUp { group, problem });
            }
            Report::NoClient(problem) => {
                failed.get_or_insert(ExecuteError::Client(problem));
            }
            Report::Warm(_) | Report::Measured => {}
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        total.report(Phase::SetUp, context.collector);
        self.wire.between_phases();

        let mut warm_up = None;
        if let [end, _] = context.deadlines {
            let window = self.open(Start::WarmUp, end, Some(workload.warm_up.0))?;
            let mut total = PhaseCounter::default();
            let phase = Planned { phase: Phase::WarmUp, length: Some(workload.warm_up.0), end };
            self.gather(&phase, &mut |_, report| {
                if let Report::Warm(counter) = report {
                    total.add(counter);
                }
            })?;
            total.report(Phase::WarmUp, context.collector);
            self.wire.between_phases();
            warm_up = Some((window, total));
        }

        let Some(end) = context.deadlines.last() else { return Err(ExecuteError::Stopped) };
        let length = workload.until.duration.map(|duration| duration.0);
        self.edge(Edge::Begin);
        let before = Usage::now(clock);
        let now_unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as i64);
        let now = clock.now();
        let window = self.open(Start::Measure, end, length)?;
        let started_unix_ns = now_unix + clock.nanos(now, window.start).cast_signed();
        self.gather(&Planned { phase: Phase::Measure, length, end }, &mut |_, _| {})?;
        // Clients that hold files open for those of other processes take part until these have done.
        self.conductor.meet(Step::Measured)?;
        let end = clock.now();
        let host = before.until_now(clock);
        self.wire.between_phases();
        self.edge(Edge::End);
        if self.run.program.witnessed {
            self.conductor.meet(Step::Cut)?;
            self.edge(Edge::Cut);
        }
        // Tear-down.
        context.gate.open(Window { start: end, deadline: Ticks::MAX });
        Ok(Phases { window, warm_up, started_unix_ns, end, host })
    }

    /// Waits until all threads have ended, after the phases. Those that wait for a server that does not answer are given
    /// up some time after the run was stopped.
    pub(super) fn wait_for_threads(&mut self) {
        let clock = self.run.clock;
        let mut stopping = None;
        loop {
            match self.reports.recv_timeout(Duration::from_millis(100)) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) if self.run.options.stop.load(Ordering::Relaxed) => {
                    self.context.abort.store(0, Ordering::Relaxed);
                    let since = *stopping.get_or_insert(clock.now());
                    if clock.nanos(since, clock.now()) > PATIENCE_NS {
                        self.context.gate.abort();
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Tells of the beginning or end of the measured phase.
    fn edge(&mut self, edge: Edge) {
        let done = self.context.collector.progress();
        let edge = Some(edge);
        let (elapsed, length) = (Duration::ZERO, None);
        (self.observe)(Progress { phase: Phase::Measure, elapsed, length, done, edge });
    }

    /// Lets the workers into the next phase, which begins everywhere at the same instant, late enough for all of them to
    /// wake up for it.
    fn open(
        &mut self,
        phase: Start,
        deadline: &AtomicU64,
        length: Option<Duration>,
    ) -> Result<Window, ExecuteError> {
        let clock = self.run.clock;
        let lead = Duration::from_nanos(2_000_000 + 20_000 * self.places.len() as u64);
        let start = clock.at_kernel(self.conductor.start(phase, lead)?);
        let nanos = length.map(|length| u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
        let window = Window { start, deadline: nanos.map_or(u64::MAX, |nanos| clock.after(start, nanos)) };
        deadline.store(window.deadline, Ordering::Relaxed);
        self.context.gate.open(window);
        Ok(window)
    }

    /// Waits for one report of every worker.
    fn gather(
        &mut self,
        phase: &Planned<'_>,
        handle: &mut dyn FnMut(usize, Report),
    ) -> Result<(), ExecuteError> {
        let Run { clock, options, .. } = *self.run;
        let began = clock.now();
        let mut missing = vec![true; self.places.len()];
        let mut left = missing.len();
        let mut stopping = None;
        while left > 0 {
            // Looked at before the reports: a worker sends its report before it ends.
            let ended = self.crew.ended();
            let mut next = self.reports.recv_timeout(Duration::from_millis(100));
            while let Ok((worker, report)) = next {
                handle(worker as usize, report);
                missing[worker as usize] = false;
                left -= 1;
                next = self.reports.try_recv().map_err(|_| RecvTimeoutError::Timeout);
            }
            if let Some(lost) = (0..missing.len()).find(|&worker| missing[worker] && ended[worker]) {
                return Err(self.places[lost].lost());
            }
            if options.stop.load(Ordering::Relaxed) || self.failed.is_some_and(|f| f.load(Ordering::Relaxed))
            {
                phase.end.store(0, Ordering::Relaxed);
                let since = *stopping.get_or_insert(clock.now());
                if self.crew.can_be_given_up() && clock.nanos(since, clock.now()) > PATIENCE_NS {
                    return Err(ExecuteError::Stopped);
                }
            }
            let done = self.context.collector.progress();
            let elapsed = Duration::from_nanos(clock.nanos(began, clock.now()));
            let (phase, length) = (phase.phase, phase.length);
            (self.observe)(Progress { phase, elapsed, length, done, edge: None });
        }
        if options.stop.load(Ordering::Relaxed) { Err(ExecuteError::Stopped) } else { Ok(()) }
    }
}

/// Use of the host up to a moment.
struct Usage {
    cpu: Option<CpuTimes>,
    process: (u64, u64),
    written_back: Option<u64>,
    wall_minus_monotonic: i64,
    clock: (Ticks, Duration),
}

impl Usage {
    fn now(clock: &Clock) -> Self {
        Self {
            cpu: CpuTimes::read().ok(),
            process: cpu_time(),
            written_back: written_back_bytes().ok(),
            wall_minus_monotonic: realtime_minus_monotonic_ns(),
            clock: clock.with_kernel(),
        }
    }

    /// The use since then.
    fn until_now(self, clock: &Clock) -> HostUse {
        let now = Self::now(clock);
        let shares = self.cpu.zip(now.cpu);
        HostUse {
            process_user_ns: now.process.0.saturating_sub(self.process.0),
            process_system_ns: now.process.1.saturating_sub(self.process.1),
            host_busy: shares.and_then(|(a, b)| busy_share(a, b)),
            host_steal: shares.and_then(|(a, b)| steal_share(a, b)),
            processors: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            clock_step_ns: now.wall_minus_monotonic - self.wall_minus_monotonic,
            clock_drift: clock.drift(self.clock, now.clock),
            written_back: self.written_back.zip(now.written_back).map(|(then, now)| now.saturating_sub(then)),
            ..HostUse::default()
        }
    }
}
