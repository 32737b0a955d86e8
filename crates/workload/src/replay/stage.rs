//! What the workers of one client share while they replay a trace: open files, how far each thread is, and the tally.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hdrhistogram::Histogram;

use super::plan::{After, NONE, Plan};
use crate::counts::LatencyCounts;
use crate::model::OperationKind;
use crate::recording::{EncodedHistogram, ReplayFacts, latency_histogram};

/// Parts into which the table of open files is divided, so that threads seldom wait for each other.
const PARTS: usize = 16;

/// The value of a thread's progress when it does nothing more.
const DONE: u32 = u32::MAX;

/// A replay that is on, over all clients of this process.
#[derive(Debug)]
pub(crate) struct ReplayRun {
    pub(crate) plan: Arc<Plan>,
    /// How much faster than recorded; infinite for as fast as possible.
    pub(crate) speed: f64,
    tally: Mutex<Tally>,
}

#[derive(Debug)]
struct Tally {
    calls: u64,
    differing: u64,
    late: Histogram<u64>,
}

impl ReplayRun {
    pub(crate) fn new(plan: Arc<Plan>, speed: f64) -> Self {
        let tally = Tally { calls: 0, differing: 0, late: latency_histogram() };
        Self { plan, speed, tally: Mutex::new(tally) }
    }

    /// Adds what a worker did.
    pub(crate) fn add(&self, calls: u64, differing: u64, late: &LatencyCounts) {
        let mut tally = lock(&self.tally);
        tally.calls += calls;
        tally.differing += differing;
        late.add_to(&mut tally.late);
    }

    /// What is to be told about it.
    pub(crate) fn facts(&self) -> ReplayFacts {
        let tally = lock(&self.tally);
        let left_out = |matters: bool| {
            let chosen = self.plan.left_out.iter().filter(move |(what, _)| what.why.matters() == matters);
            chosen.map(|(what, count)| (format!("{} ({})", what.call, what.why.text()), *count))
        };
        ReplayFacts {
            calls: tally.calls,
            differing: tally.differing,
            left_out: left_out(true).collect(),
            passed_over: left_out(false).map(|(_, count)| count).sum(),
            length_ns: if self.speed.is_finite() {
                (self.plan.span_ns as f64 / self.speed) as u64
            } else {
                0
            },
            late: EncodedHistogram::encode(&tally.late),
        }
    }
}

/// One client's part of a replay. `H` is an engine's open file.
#[derive(Debug)]
pub(crate) struct Stage<H> {
    pub(crate) run: Arc<ReplayRun>,
    /// Series of each kind of operation, by its number.
    series: Vec<u16>,
    handles: Vec<Mutex<HashMap<u32, Arc<H>>>>,
    /// Calls that each thread has done.
    progress: Vec<AtomicU32>,
    /// Workers that have made their part of what must exist; directories are made before by one of them.
    pub(crate) prepared: AtomicU32,
    pub(crate) directories: AtomicU32,
    /// Files that have been taken to be made.
    pub(crate) next_file: AtomicU64,
}

impl<H> Stage<H> {
    pub(crate) fn new(run: Arc<ReplayRun>) -> Arc<Self> {
        let kinds = run.plan.kinds();
        let place = |kind: &OperationKind| kinds.iter().position(|known| known == kind).unwrap_or(0) as u16;
        let progress = run.plan.threads.iter().map(|_| AtomicU32::new(0)).collect();
        Arc::new(Self {
            series: OperationKind::ALL.iter().map(place).collect(),
            handles: (0..PARTS).map(|_| Mutex::new(HashMap::new())).collect(),
            progress,
            run,
            prepared: AtomicU32::new(0),
            directories: AtomicU32::new(0),
            next_file: AtomicU64::new(0),
        })
    }

    pub(crate) fn series(&self, kind: OperationKind) -> u16 {
        let at = OperationKind::ALL.iter().position(|known| *known == kind).unwrap_or(0);
        self.series.get(at).copied().unwrap_or(0)
    }

    fn part(&self, handle: u32) -> MutexGuard<'_, HashMap<u32, Arc<H>>> {
        lock(&self.handles[handle as usize % PARTS])
    }

    pub(crate) fn put(&self, handle: u32, open: H) {
        self.part(handle).insert(handle, Arc::new(open));
    }

    pub(crate) fn get(&self, handle: u32) -> Option<Arc<H>> {
        self.part(handle).get(&handle).cloned()
    }

    pub(crate) fn take(&self, handle: u32) -> Option<Arc<H>> {
        self.part(handle).remove(&handle)
    }

    /// Everything that is still open.
    pub(crate) fn drain(&self) -> Vec<Arc<H>> {
        self.handles.iter().flat_map(|part| std::mem::take(&mut *lock(part)).into_values()).collect()
    }

    /// Thread `thread` has done so many calls.
    pub(crate) fn advance(&self, thread: u32, calls: usize) {
        if let Some(progress) = self.progress.get(thread as usize) {
            progress.store(u32::try_from(calls).unwrap_or(DONE - 1), Ordering::Release);
        }
    }

    /// Thread `thread` does nothing more.
    pub(crate) fn leave(&self, thread: u32) {
        if let Some(progress) = self.progress.get(thread as usize) {
            progress.store(DONE, Ordering::Release);
        }
    }

    /// Whether another thread's call is over.
    pub(crate) fn is_over(&self, after: After) -> bool {
        let progress = self.progress.get(after.thread as usize);
        after.thread == NONE || progress.is_none_or(|progress| progress.load(Ordering::Acquire) > after.call)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is complete in itself.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
