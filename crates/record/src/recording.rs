//! What one workload of one run leaves behind: counts, histograms, interval series, workers.
//!
//! All times are nanoseconds. Times within a run count from the common start instant of its measured phase on a
//! monotonic clock; only [`Recording::started_unix_ns`] is wall-clock time.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::model::OperationKind;
use crate::phase::Phase;
use crate::samples::Samples;
use crate::witness::Witness;

mod agents;
mod histogram;
mod rpc;

pub use agents::{AgentRecording, ClockFacts, Collected, StartFacts};
pub use histogram::{EncodedHistogram, HistogramError};
pub use rpc::{ConnectionFacts, RpcCounters, RpcPhase, RpcRecording, RpcRow, RpcSource};

/// The smallest and largest latency a histogram keeps apart; larger ones are counted at the limit (1 hour).
pub const HISTOGRAM_RANGE_NS: (u64, u64) = (1, 3_600_000_000_000);
/// Significant decimal digits of every latency histogram: values are kept to within 1 %.
pub const HISTOGRAM_DIGITS: u8 = 2;

/// An empty latency histogram in the one shape used everywhere, so that any two can be merged.
pub fn latency_histogram() -> Histogram<u64> {
    let (low, high) = HISTOGRAM_RANGE_NS;
    match Histogram::new_with_bounds(low, high, HISTOGRAM_DIGITS) {
        Ok(histogram) => histogram,
        Err(_) => unreachable!("the constant bounds are valid"),
    }
}

/// Counts and latencies of one series over some time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct OperationStats {
    /// Operations finished without an error.
    pub count: u64,
    /// Bytes moved by them.
    pub bytes: u64,
    /// Operations that failed.
    pub errors: u64,
    /// Sum of the latencies of the successful operations, exact, in nanoseconds.
    pub sum_ns: u64,
    /// Latencies of the successful operations. In an open loop these count from the intended start.
    pub latency: EncodedHistogram,
}

impl OperationStats {
    /// Adds the counts and sums of `other`, but not its latencies, which are merged as histograms.
    pub fn add_counts(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.sum_ns += other.sum_ns;
    }
}

/// [`OperationStats`] of one interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntervalStats {
    /// The interval's number; interval `i` spans `[i, i+1) × interval_ns` since the start. An operation belongs to the
    /// interval in which it ended.
    pub index: u32,
    /// What happened in it.
    pub stats: OperationStats,
}

/// One kind of operation at one place of the flow: what is counted and timed together.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SeriesKey {
    /// The group of workers that runs the flow.
    pub group: String,
    /// The step's label; the operation's name unless the workload says otherwise.
    pub label: String,
    pub operation: OperationKind,
}

/// One series, merged over all workers and clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeriesRecording {
    /// What was recorded.
    pub key: SeriesKey,
    /// Everything from the start to the end of the measured phase, warm-up cut included.
    pub total: OperationStats,
    /// The same by interval, in ascending order; intervals without an operation are absent.
    pub intervals: Vec<IntervalStats>,
    /// Failed operations by error name (`ENOSPC`, `EIO`, `short`, …).
    pub errors: BTreeMap<String, u64>,
    /// Start of the first operation and end of the last one of all workers; `None` when there was none.
    pub span: Option<(u64, u64)>,
    /// In an open loop: latencies from the actual start (service time), whereas `total.latency` counts from the
    /// intended start (response time). `None` in a closed loop, where they are the same.
    pub service: Option<EncodedHistogram>,
}

words! {
    /// What operations, or calls, are divided by to be compared with each other.
    PartOf {
        /// The number of a file in its fileset, modulo [`PartRow::FILES`].
        File = "file",
        /// Bytes of an operation: binary logarithm, rounded up.
        Size = "size",
        /// Calls on one of the connections of each client, from 0.
        Connection = "connection",
    }
}

/// A part of the operations of one series, or of all calls, counted for itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartRow {
    /// What makes it a part.
    pub part: PartOf,
    /// The series' label; empty for calls.
    pub label: String,
    /// Which file, size or connection.
    pub key: u32,
    /// Operations or calls.
    pub count: u64,
    /// Sum of their latencies, or of their round trips.
    pub sum_ns: u64,
}

impl PartRow {
    /// Files that are told apart.
    pub const FILES: usize = 64;
}

/// An operation that took far longer than those of its series before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SlowOperation {
    /// Index into [`Recording::series`].
    pub series: u32,
    /// Index into [`Recording::workers`].
    pub worker: u32,
    /// Its start, or intended start in an open loop, since the start of the measured phase.
    pub start_ns: u64,
    /// Its latency.
    pub latency_ns: u64,
    /// Operations of the series that workers of its thread ended since the slow one before it, itself included; `None` of the
    /// first.
    pub since: Option<u64>,
    /// The same, of its worker alone.
    pub since_own: Option<u64>,
}

impl SlowOperation {
    /// The most that are kept, the earliest ones.
    pub const MOST: usize = 2_000;
    /// An operation is slow that takes this many times the mean so far.
    pub const TIMES: u64 = 4;
    /// Shorter ones are not kept.
    pub const LEAST_NS: u64 = 1_000_000;
}

/// What one worker did in one series.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerSeries {
    /// Index into [`Recording::series`].
    pub series: u32,
    /// Successful operations.
    pub count: u64,
    /// Bytes moved.
    pub bytes: u64,
    /// Failed operations.
    pub errors: u64,
    /// Sum of latencies.
    pub sum_ns: u64,
    /// Latency of the worker's first operation of this series.
    pub first_latency_ns: Option<u64>,
    /// Start of the first operation.
    pub first_start_ns: Option<u64>,
    /// End of the last operation.
    pub last_end_ns: Option<u64>,
}

/// One worker.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WorkerRecording {
    /// The client it belongs to, counted from 0.
    pub client: u32,
    pub group: String,
    /// Its number within client and group, counted from 0.
    pub worker: u32,
    /// When it entered the measured phase.
    pub start_ns: u64,
    /// When it left it.
    pub end_ns: u64,
    /// CPU time of its thread in user mode and in the kernel during the measured phase; `None` where several workers
    /// share a thread.
    pub cpu_ns: Option<(u64, u64)>,
    /// Why it stopped.
    pub stop: StopReason,
    /// Per series.
    pub series: Vec<WorkerSeries>,
    /// What it did.
    pub stream: OperationStream,
}

/// What a worker did in set-up, warm-up and measured phase, as hashes of kind, name of the file, offset and length of every
/// operation. The same seed gives the same on every engine and however clients are dealt out among processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct OperationStream {
    /// How many operations `hash` is of: all, or the first [`Self::FIRST`].
    pub first: u64,
    /// Hash of the first operations in the order in which they began.
    pub hash: u64,
    /// Hash of all operations, whatever their order: it can be added to those of other workers.
    pub all: u64,
}

impl OperationStream {
    /// The most operations of a worker whose order is kept.
    pub const FIRST: u64 = 1024;
}

/// Why a worker stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The duration was over.
    #[default]
    Time,
    /// It had done its iterations, bytes or files.
    Work,
    /// It gave up after errors.
    Errors,
    /// The run was stopped.
    Stopped,
}

/// When a phase ran. `start_ns` and `end_ns` are relative to the start of the measured phase (negative before it).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTiming {
    pub phase: Phase,
    pub start_ns: i64,
    pub end_ns: i64,
    /// Operations done in it (files prepared, operations of the warm-up, …).
    pub operations: u64,
    /// Failed operations in it.
    pub errors: u64,
}

/// A fileset as a workload found or made it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilesetFacts {
    pub name: String,
    /// Files prepared, over all clients.
    pub files: u64,
    /// Bytes of all files that exist when the measured phase starts.
    pub bytes: u64,
    /// Whether the files of an earlier run were used again.
    pub reused: bool,
    /// Bytes of the fileset that were in this host's page cache when the measured phase started, if it can be told.
    pub cached_bytes: Option<u64>,
}

/// What was asked for and what was really done to caches before the measured phase.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CacheAction {
    /// As written in the study.
    pub requested: String,
    /// What happened, in words (`wrote 3 to /proc/sys/vm/drop_caches`, `nothing`).
    pub done: String,
}

/// Use of the generating host while the workload was measured.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct HostUse {
    /// CPU time of this process in user mode.
    pub process_user_ns: u64,
    /// CPU time of this process in the kernel.
    pub process_system_ns: u64,
    /// Share of all processors' time not idle (0 to 1), over the whole host.
    pub host_busy: Option<f64>,
    /// Share of all processors' time stolen by the hypervisor (0 to 1).
    pub host_steal: Option<f64>,
    /// Processors this process may run on.
    pub processors: u32,
    /// Change of wall-clock minus monotonic time during the phase: a step or slew of the clock.
    pub clock_step_ns: i64,
    /// Relative error of the fast clock against the kernel's monotonic clock over the phase.
    pub clock_drift: f64,
    /// Time workers waited because the trace writer could not keep up.
    pub trace_stall_ns: u64,
    /// Free bytes of the target before and after, if the file system tells.
    pub free_before: Option<u64>,
    /// See `free_before`.
    pub free_after: Option<u64>,
    /// Largest readahead in KiB of the target's mount when the measured phase began, after caches and hooks; `None` where it
    /// has none.
    pub read_ahead_kib: Option<u64>,
    /// Bytes that the kernel wrote from its page cache to disks and servers meanwhile, of the whole host.
    pub written_back: Option<u64>,
    /// Operations per second and worker that the executor alone reaches with the same flow (null engine).
    pub null_rate: Option<f64>,
}

impl HostUse {
    /// CPU time of this process.
    pub fn process_ns(&self) -> u64 {
        self.process_user_ns.saturating_add(self.process_system_ns)
    }
}

/// What one workload of one run recorded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recording {
    /// The workload's name in the study.
    pub workload: String,
    /// Whether it ran until a time was over (else: until work was done).
    pub timed: bool,
    /// Wall-clock time of the start of the measured phase, nanoseconds since 1970.
    pub started_unix_ns: i64,
    /// From the start to the end of the last operation.
    pub length_ns: u64,
    /// Length of an interval.
    pub interval_ns: u64,
    /// Start of what counts: the warm-up cut, a multiple of `interval_ns`; 0 = nothing was cut. Set after the run by
    /// rule.
    pub cut_ns: u64,
    /// Why the cut is where it is, in words.
    pub cut_reason: String,
    /// Series in the order of the flow.
    pub series: Vec<SeriesRecording>,
    /// Workers ordered by client, group, number.
    pub workers: Vec<WorkerRecording>,
    /// The same operations by file and size, and calls by connection.
    #[serde(default)]
    pub parts: Vec<PartRow>,
    /// Operations that were slow, by their start.
    #[serde(default)]
    pub slow: Vec<SlowOperation>,
    /// Phases in order.
    pub phases: Vec<PhaseTiming>,
    /// Filesets used.
    pub filesets: Vec<FilesetFacts>,
    /// Cache control.
    pub cache: CacheAction,
    pub host: HostUse,
    /// The first few errors in full: operation, file, offset, reason.
    pub error_details: Vec<String>,
    /// Bytes proved right by verification; `None` when it was off.
    pub verified_bytes: Option<u64>,
    /// First wrong data found: file, offset, what was expected and found. `None` = none found.
    pub corruption: Option<String>,
    /// What of the acknowledged survived; `None` where that was not asked.
    #[serde(default)]
    pub witness: Option<Witness>,
    /// What went over the wire, when the target is an NFS server or lies on an NFS mount.
    pub rpc: Option<RpcRecording>,
    /// The processes that generated the load, and those that looked at a server.
    pub agents: Vec<AgentRecording>,
    /// How well the clients began together; `None` when no client did anything.
    pub start: Option<StartFacts>,
    /// Counters beside the operations, of every host.
    pub samples: Vec<HostSamples>,
    /// Outputs of attached commands.
    pub collected: Vec<Collected>,
    /// How a replay went, if the workload was one. What it tells becomes checks of the run; it is not stored.
    pub replay: Option<ReplayFacts>,
}

/// How the replay of a trace went, over all clients.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ReplayFacts {
    /// Calls that were replayed.
    pub calls: u64,
    /// Those that ended otherwise than when they were recorded; they are counted as errors.
    pub differing: u64,
    /// Calls on files in the trace that were not replayed: what, and how many.
    pub left_out: BTreeMap<String, u64>,
    /// Calls in the trace on other files or on none.
    pub passed_over: u64,
    /// From the first to the last call, at the speed asked for; 0 where that was as fast as possible.
    pub length_ns: u64,
    /// How late calls began; empty where they had no times.
    pub late: EncodedHistogram,
}

impl ReplayFacts {
    /// The facts of two processes' clients together: each replays the same trace.
    pub fn and(self, other: Self) -> Self {
        let late = match (self.late.decode(), other.late.decode()) {
            (Ok(mut all), Ok(more)) => {
                // Both have the one shape.
                let _ = all.add(more);
                EncodedHistogram::encode(&all)
            }
            (Ok(_), Err(_)) => self.late,
            _ => other.late,
        };
        Self { calls: self.calls + other.calls, differing: self.differing + other.differing, late, ..other }
    }
}

/// No recording has more intervals: eleven days of the shortest, 1 ms.
const MOST_INTERVALS: u64 = 1_000_000_000;

impl Recording {
    /// Whether its times and intervals fit together, as those of a file may not.
    pub fn is_coherent(&self) -> bool {
        let count = |ns: u64| ns.checked_div(self.interval_ns).filter(|count| *count <= MOST_INTERVALS);
        let Some(intervals) = count(self.length_ns) else { return false };
        let ends = self.series.iter().filter_map(|series| series.intervals.last());
        self.cut_ns <= self.length_ns.max(1)
            && self.workers.iter().all(|worker| count(worker.end_ns).is_some())
            && ends.into_iter().all(|last| u64::from(last.index) <= intervals)
    }

    /// Whether the agent of this name had clients; those without only looked at a server.
    pub fn has_clients(&self, agent: &str) -> bool {
        self.agents.iter().any(|known| known.name == agent && known.clients > 0)
    }

    /// Whether samples are of a host with clients, as all are where there are no agents.
    pub fn is_of_clients(&self, host: &HostSamples) -> bool {
        self.agents.is_empty() || self.has_clients(&host.agent)
    }

    /// Whether operations began at given times, so that the rate is that which was asked for.
    pub fn is_open_loop(&self) -> bool {
        self.series.iter().any(|series| series.service.is_some())
    }

    /// Hash of all operations of all workers, whatever their order: the same for every run with the same seed. `None` where
    /// it depends on time how much is done: in a run with a duration or a warm-up.
    pub fn operations_hash(&self) -> Option<u64> {
        let warms = self.phases.iter().any(|phase| phase.phase == Phase::WarmUp);
        let add = |hash: u64, worker: &WorkerRecording| hash.wrapping_add(worker.stream.all);
        (!self.timed && !warms).then(|| self.workers.iter().fold(0, add))
    }
}

/// Counters of one host beside the operations.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostSamples {
    /// The agent that read them.
    pub agent: String,
    /// Times are nanoseconds since the common start instant of the measured phase, on the common clock.
    pub samples: Samples,
}

/// One line of a trace: one operation. Fixed size, so that buffers are flat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TraceRecord {
    /// Start since the start of the measured phase (intended start in an open loop).
    pub start_ns: u64,
    /// Latency (from the intended start in an open loop).
    pub latency_ns: u64,
    /// File offset; `u64::MAX` where an operation has none.
    pub offset: u64,
    /// Bytes moved.
    pub bytes: u32,
    /// Worker: index into [`Recording::workers`].
    pub worker: u32,
    /// Number of the file within its fileset; [`NO_FILE`] where an operation is on none.
    pub file: u32,
    /// Series: index into [`Recording::series`].
    pub series: u16,
    /// 0, or the error number (`errno`) of a failed operation.
    pub error: u16,
    /// The file's fileset: its place among the workload's filesets in the order of their names.
    pub fileset: u16,
}

/// The file of an operation on none.
pub const NO_FILE: u32 = u32::MAX;
