//! The workers of a run: what they are to do, their threads, and what these bring home.

use std::thread::ScopedJoinHandle;

use benchmaster_nfs_client::counters::Snapshot;

use super::{ExecuteError, Options};
use crate::area::{Ready, WorkArea};
use crate::gate::Window;
use crate::model::Workload;
use crate::nfs::Facts;
use crate::program::{GroupProgram, Program};
use crate::recorder::{Collector, PhaseCounter};
use crate::recording::{HostUse, ReplayFacts, WorkerRecording};
use crate::worker::Finished;
use benchmaster_clock::{Clock, Ticks};

/// What a worker is assigned to: client, number within group and client, group.
#[derive(Debug)]
pub(super) struct Assignment<'a> {
    pub(super) client: u32,
    pub(super) worker: u32,
    pub(super) group: &'a GroupProgram,
}

impl Assignment<'_> {
    /// This worker is gone.
    pub(super) fn lost(&self) -> ExecuteError {
        ExecuteError::WorkerLost { group: self.group.name.clone() }
    }
}

/// What is to be run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run<'r> {
    pub(super) area: &'r WorkArea,
    pub(super) workload: &'r Workload,
    pub(super) program: &'r Program,
    pub(super) ready: &'r [Ready],
    pub(super) options: &'r Options<'r>,
    pub(super) clock: &'r Clock,
}

/// What the workers of a run did.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) collector: Collector,
    pub(super) workers: Vec<WorkerRecording>,
    pub(super) window: Window,
    pub(super) warm_up: Option<(Window, PhaseCounter)>,
    pub(super) started_unix_ns: i64,
    pub(super) end: Ticks,
    pub(super) torn_down: Ticks,
    /// End of the last operation in nanoseconds after the start.
    pub(super) last_end: u64,
    pub(super) teardown: PhaseCounter,
    pub(super) host: HostUse,
    /// How a replay went.
    pub(super) replay: Option<ReplayFacts>,
    /// Of an NFS target: what its threads brought home.
    pub(super) reactors: Vec<ThreadReport>,
}

/// The threads of a run.
#[derive(Debug)]
pub(super) enum Crew<'scope> {
    Workers(Vec<ScopedJoinHandle<'scope, Option<Finished>>>),
    /// Threads with many workers each, and for each worker the thread that it is on.
    Reactors(Vec<ScopedJoinHandle<'scope, ThreadReport>>, Vec<usize>),
}

impl Crew<'_> {
    /// Whether the thread of each worker has ended.
    pub(super) fn ended(&self) -> Vec<bool> {
        match self {
            Self::Workers(threads) => threads.iter().map(ScopedJoinHandle::is_finished).collect(),
            Self::Reactors(threads, of) => {
                let ended: Vec<bool> = threads.iter().map(ScopedJoinHandle::is_finished).collect();
                of.iter().map(|&thread| ended.get(thread).copied().unwrap_or(true)).collect()
            }
        }
    }

    /// Whether workers that wait for a server can be given up. (Threads that wait in the kernel cannot.)
    pub(super) fn can_be_given_up(&self) -> bool {
        matches!(self, Self::Reactors(..))
    }

    /// Waits for all; how each worker ended (`None`: it was lost or never got to the measured phase), and what reactor
    /// threads brought home.
    pub(super) fn join(self) -> (Vec<Option<Finished>>, Vec<ThreadReport>) {
        match self {
            Self::Workers(threads) => {
                let join = |thread: ScopedJoinHandle<'_, _>| thread.join().ok().flatten();
                (threads.into_iter().map(join).collect(), Vec::new())
            }
            Self::Reactors(threads, of) => {
                let mut finished: Vec<Option<Finished>> = of.iter().map(|_| None).collect();
                let joined = threads.into_iter().map(ScopedJoinHandle::join);
                let mut reports: Vec<ThreadReport> = joined.filter_map(Result::ok).collect();
                for (number, worker) in reports.iter_mut().flat_map(|report| report.workers.drain(..)) {
                    finished[number as usize] = worker;
                }
                (finished, reports)
            }
        }
    }
}

/// What a thread brings home.
#[derive(Debug)]
pub(super) struct ThreadReport {
    /// How each of its workers ended, by number.
    pub(super) workers: Vec<(u32, Option<Finished>)>,
    pub(super) clients: Vec<ClientReport>,
    /// CPU time in the measured phase: in user mode, in the kernel.
    pub(super) cpu_ns: (u64, u64),
    /// Time for which it waited for the trace writer.
    pub(super) stalled_ns: u64,
}

/// What a client did on the wire.
#[derive(Debug)]
pub(super) struct ClientReport {
    pub(super) client: u32,
    /// By phase: set-up, warm-up if there is one, measure, tear-down. Fewer when the run was aborted.
    pub(super) phases: Vec<Snapshot>,
    pub(super) facts: Facts,
    pub(super) problems: Vec<String>,
}
