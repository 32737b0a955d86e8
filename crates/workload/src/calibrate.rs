//! The executor's own speed: the same flow on the engine that does nothing, with full recording.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use crate::clock::Clock;
use crate::engine::null::NullEngine;
use crate::files::FileTable;
use crate::lane::{Lane, Limits, WorkerContext, WorkerShared};
use crate::model::Workload;
use crate::program::{GroupProgram, Program};
use crate::recorder::{Collector, PhaseCounter, WorkerRecorder};
use crate::worker::block_on;

/// Operations per second of one worker on the null engine, averaged over the workers of all groups. `None` when nothing
/// could be done in `duration`.
pub fn null_rate(program: &Program, workload: &Workload, duration: Duration) -> Option<f64> {
    let share = duration / u32::try_from(program.groups.len()).unwrap_or(1).max(1);
    let mut rate = 0.0;
    for (number, group) in program.groups.iter().enumerate() {
        let mut bench = NullBench::new(program, workload, number)?;
        let (operations, nanos) = bench.run(share);
        rate += f64::from(group.workers) * operations as f64 * 1e9 / (nanos.max(1) as f64);
    }
    let per_worker = rate / f64::from(program.workers().max(1));
    (per_worker > 0.0).then_some(per_worker)
}

/// One worker of a group on the null engine.
#[derive(Debug)]
pub struct NullBench<'p> {
    program: &'p Program,
    group: GroupProgram,
    tables: Vec<Arc<FileTable>>,
    clock: Clock,
}

impl<'p> NullBench<'p> {
    /// A worker of group number `group`; `None` when there is no such group.
    pub fn new(program: &'p Program, workload: &Workload, group: usize) -> Option<Self> {
        let group = program.groups.get(group)?.clone();
        let tables = workload
            .filesets
            .iter()
            .map(|(name, fileset)| Arc::new(FileTable::new(name, fileset, Some(0), 1, None)))
            .collect();
        Some(Self { program, group, tables, clock: Clock::new() })
    }

    /// Repeats the group's flow for `duration`, or until its work is done; operations done and nanoseconds taken.
    pub fn run(&mut self, duration: Duration) -> (u64, u64) {
        let collector = Collector::new(self.program.series[..self.program.measured].to_vec(), 1, 1_000_000_000, false);
        let shared = WorkerShared::new();
        let context = WorkerContext {
            clock: &self.clock,
            tables: &self.tables,
            worker: 0,
            workers: self.group.workers,
            verify: None,
            max_failures: u64::MAX,
        };
        let mut lane = Lane::new(1, 0, 0, 1, self.group.max_io);
        let deadline = AtomicU64::new(u64::MAX);
        let limits = |start, deadline| Limits { start, deadline, iterations: u64::MAX, bytes: u64::MAX, period_ns: None };
        let start = self.clock.now();
        let counter = RefCell::new(PhaseCounter::default());
        let setup = &self.group.setup;
        block_on(lane.run(&NullEngine, &context, &shared, setup, &limits(start, &deadline), None, &counter));
        let start = self.clock.now();
        let end = self.clock.after(start, u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        let recorder = RefCell::new(WorkerRecorder::new(&collector, &self.clock, start, 0, None));
        deadline.store(end, std::sync::atomic::Ordering::Relaxed);
        block_on(lane.repeat(&NullEngine, &context, &shared, &self.group.flow, &limits(start, &deadline), &recorder));
        let nanos = self.clock.nanos(start, self.clock.now());
        let (series, _) = recorder.into_inner().finish();
        (series.iter().map(|series| series.count).sum(), nanos)
    }
}
