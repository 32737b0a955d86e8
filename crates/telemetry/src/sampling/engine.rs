//! The thread that reads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::budget::{self, Turn};
use super::series::Recorder;
use super::{Cost, Sampler, SamplerCost, SamplerProblem, Samples, SamplingConfig, registry};
use benchmaster_clock::{monotonic_ns, nanoseconds};

/// Sampling that goes on until it is stopped; dropping it stops it too, and what was read is lost.
#[derive(Debug)]
pub struct Sampling {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Which tick it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edge {
    First,
    Between,
    Last,
}

/// What costs too much is looked at after each of so many ticks at the beginning,
const FIRST_SHARED: u32 = 3;
/// and then again and again after so many.
const SHARED_AGAIN: u32 = 8;

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    stopped: AtomicBool,
}

#[derive(Debug)]
struct State {
    stations: Vec<Station>,
    /// Names that were asked for and are unknown.
    problems: Vec<SamplerProblem>,
    ticks: u32,
    late: u32,
    cpu_ns: u64,
    started_ns: i64,
    ended_ns: i64,
    interval: Duration,
}

/// A sampler, and what it gave.
struct Station {
    sampler: Box<dyn Sampler>,
    recorder: Recorder,
    cost: SamplerCost,
    turn: Turn,
    /// Ticks in which it was not read because it costs too much.
    left_out: u32,
    /// It panicked: nobody knows in what state it is.
    broken: bool,
}

impl std::fmt::Debug for Station {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Station").field("sampler", &self.sampler.name()).field("cost", &self.cost).finish()
    }
}

impl Sampling {
    /// Begins to sample; the first reading has been taken when it returns. `extra` are read beside those of this crate,
    /// whatever names the configuration lists.
    pub fn start(config: &SamplingConfig, extra: Vec<Box<dyn Sampler>>) -> Self {
        let interval = config.interval.max(SamplingConfig::SHORTEST);
        let (mut samplers, problems) = registry::wanted(config);
        samplers.extend(extra);
        let station = |sampler: Box<dyn Sampler>| Station {
            recorder: Recorder::new(sampler.name()),
            turn: Turn::new(sampler.least_interval(), interval),
            sampler,
            cost: SamplerCost::default(),
            left_out: 0,
            broken: false,
        };
        let started_ns = monotonic_ns();
        let mut state = State {
            stations: samplers.into_iter().map(station).collect(),
            problems,
            ticks: 0,
            late: 0,
            cpu_ns: 0,
            started_ns,
            ended_ns: started_ns,
            interval,
        };
        state.tick(Edge::First);
        let shared = Arc::new(Shared { state: Mutex::new(state), stopped: AtomicBool::new(false) });
        let own = Arc::clone(&shared);
        let spawned =
            thread::Builder::new().name("sampling".into()).spawn(move || own.run(started_ns, interval));
        let thread = match spawned {
            Ok(thread) => Some(thread),
            Err(error) => {
                let problem = format!("no thread could be started ({error}): only two readings are taken");
                shared.state().problems.push(SamplerProblem { sampler: "sampling".into(), problem });
                None
            }
        };
        Self { shared, thread }
    }

    /// Takes the last reading now, and ends.
    pub fn stop(mut self) -> Samples {
        self.end();
        let mut state = self.shared.state();
        state.tick(Edge::Last);
        state.finish()
    }

    fn end(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // It cannot panic: what samplers do is caught.
            let _ = thread.join();
        }
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, started_ns: i64, interval: Duration) {
        let interval = i64::try_from(interval.as_nanos()).unwrap_or(i64::MAX);
        let mut next = started_ns.saturating_add(interval);
        loop {
            let now = loop {
                if self.stopped.load(Ordering::Acquire) {
                    return;
                }
                let now = monotonic_ns();
                if now >= next {
                    break now;
                }
                thread::park_timeout(Duration::from_nanos((next - now).unsigned_abs()));
            };
            // Ticks stay where they would have been: those that have passed already are left out.
            let missed = (now - next) / interval;
            next = next.saturating_add(interval.saturating_mul(missed + 1));
            let mut state = self.state();
            state.late = state.late.saturating_add(u32::try_from(missed).unwrap_or(u32::MAX));
            state.tick(Edge::Between);
        }
    }
}

impl State {
    fn tick(&mut self, edge: Edge) {
        let before = thread_cpu_ns();
        let mut last = before;
        for station in &mut self.stations {
            // All are read at both ends.
            let due = station.turn.is_due() || edge != Edge::Between;
            station.left_out += u32::from(!due && station.turn.stride > station.turn.least_stride);
            if !station.broken && due {
                station.read();
                let now = thread_cpu_ns();
                let took = now.saturating_sub(last);
                station.cost.cpu_ns += took;
                // The first time files are opened and memory is had: that says nothing of the next.
                if edge == Edge::Between {
                    station.turn.took(took);
                }
                last = now;
            }
        }
        if edge == Edge::Between && (self.ticks <= FIRST_SHARED || self.ticks.is_multiple_of(SHARED_AGAIN)) {
            let turns = self.stations.iter_mut().map(|station| &mut station.turn);
            budget::share(turns, budget::of_tick(self.interval));
        }
        self.ticks = self.ticks.saturating_add(1);
        self.cpu_ns += last.saturating_sub(before);
        self.ended_ns = monotonic_ns();
    }

    fn finish(&mut self) -> Samples {
        let mut samples = Samples {
            ticks: self.ticks,
            late: self.late,
            problems: std::mem::take(&mut self.problems),
            cost: Cost {
                cpu_ns: self.cpu_ns,
                elapsed_ns: (self.ended_ns - self.started_ns).unsigned_abs(),
                ..Cost::default()
            },
            ..Samples::default()
        };
        for mut station in self.stations.drain(..) {
            // A tick now and then, when something else kept a reading up, is not worth a word.
            if !station.broken && station.left_out > self.ticks / 10 {
                station.recorder.problem(format!(
                    "it was read in {} of {} ticks only: a reading takes {:.0} µs of CPU time, and sampling may take 0.5 % of one \
                     processor at ten ticks per second",
                    station.cost.reads,
                    self.ticks,
                    station.turn.cost_ns.unwrap_or(0.0) / 1e3
                ));
            }
            samples.cost.samplers.insert(station.sampler.name().to_owned(), station.cost);
            let (series, problems) = station.recorder.finish();
            samples.series.extend(series);
            samples.problems.extend(problems);
        }
        samples
    }
}

impl Station {
    fn read(&mut self) {
        self.cost.reads += 1;
        let mut reading = self.recorder.reading(monotonic_ns());
        match catch_unwind(AssertUnwindSafe(|| self.sampler.read(&mut reading))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => reading.problem(&error),
            Err(_) => {
                self.broken = true;
                self.recorder
                    .problem("it panicked and is not asked any more: this is an error of Benchmaster".into());
            }
        }
    }
}

fn thread_cpu_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::ThreadCPUTime)).unsigned_abs()
}

#[cfg(test)]
mod tests;
