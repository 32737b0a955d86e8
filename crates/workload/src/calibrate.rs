//! The executor's own speed: the same flow on the engine that does nothing, with full recording.

mod crowd;

pub use crowd::{Crowd, CrowdError};

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::engine::null::NullEngine;
use crate::files::FileTable;
use crate::lane::{Job, Lane, Limits, MIN_BUFFER, Stream, WorkerShared};
use crate::model::{Until, Workload};
use crate::program::{GroupProgram, Instruction, Program};
use crate::recorder::{Collector, Recorder, WorkerRecorder};
use crate::worker::block_on;
use benchmaster_clock::Clock;

/// How long the executor alone is measured before a workload.
const DURATION: Duration = Duration::from_millis(20);
/// How long a rate is used for later runs of the same workload: twenty milliseconds are much beside a short run.
const VALID: Duration = Duration::from_secs(60);

/// Rates of the executor alone that were measured lately.
#[derive(Debug, Default)]
pub(crate) struct NullRates {
    known: Vec<(Workload, Instant, Option<f64>)>,
}

impl NullRates {
    /// Operations per second of one worker on the null engine, averaged over the workers of all groups. `tables` are those
    /// of one client; they are not changed. `None` when nothing could be done in the time.
    pub(crate) fn of(
        &mut self,
        program: &Program,
        workload: &Workload,
        tables: &[Arc<FileTable>],
    ) -> Option<f64> {
        self.known.retain(|(_, measured, _)| measured.elapsed() < VALID);
        if let Some((.., rate)) = self.known.iter().find(|(known, ..)| known == workload) {
            return *rate;
        }
        let rate = null_rate(program, workload, tables);
        self.known.push((workload.clone(), Instant::now(), rate));
        rate
    }
}

fn null_rate(program: &Program, workload: &Workload, tables: &[Arc<FileTable>]) -> Option<f64> {
    let share = DURATION / u32::try_from(program.groups.len()).unwrap_or(1).max(1);
    let mut rate = 0.0;
    for number in 0..program.groups.len() {
        let anew = tables
            .iter()
            .zip(workload.filesets.values())
            .map(|(table, fileset)| Arc::new(table.anew(fileset)));
        let mut bench = NullBench::with_tables(program, workload, number, anew.collect())?;
        let (operations, nanos) = bench.run(share);
        rate += f64::from(bench.group.workers) * operations as f64 * 1e9 / (nanos.max(1) as f64);
    }
    let per_worker = rate / f64::from(program.workers().max(1));
    (per_worker > 0.0).then_some(per_worker)
}

/// One worker of a group on the null engine. Pauses and rates of the flow are left out.
#[derive(Debug)]
pub struct NullBench<'p> {
    program: &'p Program,
    group: GroupProgram,
    until: Until,
    tables: Vec<Arc<FileTable>>,
    clock: Clock,
}

impl<'p> NullBench<'p> {
    /// A worker of group number `group`; `None` when there is no such group.
    pub fn new(program: &'p Program, workload: &Workload, group: usize) -> Option<Self> {
        let table = |(name, fileset): (&String, _)| Arc::new(FileTable::new(name, fileset, Some(0), 1, None));
        Self::with_tables(program, workload, group, workload.filesets.iter().map(table).collect())
    }

    fn with_tables(
        program: &'p Program,
        workload: &Workload,
        group: usize,
        tables: Vec<Arc<FileTable>>,
    ) -> Option<Self> {
        let mut group = program.groups.get(group)?.clone();
        tables
            .iter()
            .zip(&program.grows)
            .filter(|(_, grows)| **grows)
            .for_each(|(table, _)| table.keep_lengths());
        for instruction in group.setup.iter_mut().chain(&mut group.flow) {
            if let Instruction::Pause(nanos) = instruction {
                *nanos = 0;
            }
        }
        Some(Self { program, group, until: workload.until, tables, clock: Clock::new() })
    }

    /// Repeats the group's flow for `duration`, or until its work is done (iterations, bytes, files); operations done and
    /// nanoseconds taken.
    pub fn run(&mut self, duration: Duration) -> (u64, u64) {
        let collector = Collector::new(self.program.measured_series(), 1_000_000_000, false);
        let shared = WorkerShared::new(self.tables.len());
        let context = self.context(0, 1);
        let engine = &NullEngine::default();
        let mut lane = Lane::new(1, Stream::new(0, 0, 1), self.group.max_io, MIN_BUFFER, b"");
        let deadline = AtomicU64::new(u64::MAX);
        let counter = RefCell::new(Recorder::default());
        let limits = Limits::until(&deadline);
        let job = Job { engine, context: &context, shared: &shared, limits: &limits, record: &counter };
        block_on(lane.run(&job, &self.group.setup, 0, false));

        shared.begin_phase();
        let start = self.clock.now();
        let limits = Limits {
            start,
            iterations: self.until.iterations.unwrap_or(u64::MAX),
            bytes: self.until.bytes.map_or(u64::MAX, |bytes| bytes.0),
            ..Limits::until(&deadline)
        };
        let end = self.clock.after(start, u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
        deadline.store(end, Ordering::Relaxed);
        let recorder =
            RefCell::new(Recorder::Worker(WorkerRecorder::new(&collector, &self.clock, start, 0, None)));
        let job = Job { engine, context: &context, shared: &shared, limits: &limits, record: &recorder };
        block_on(lane.repeat(&job, &self.group.flow));
        let nanos = self.clock.nanos(start, self.clock.now());
        let (series, _) = recorder.into_inner().finish();
        (series.iter().map(|series| series.count).sum(), nanos)
    }
}
