//! What a results directory holds, as plain data.

use std::collections::BTreeMap;

pub use benchmaster_units::format::Unit;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::environment::Environment;
use crate::model::Workload;
use crate::recording::Recording;

mod check;
mod course;
mod design;
mod lab;
mod load;
mod network;

pub use check::{Check, CheckKind, Evidence, EvidenceUnit, Severity};
pub use course::{HookRecord, RetryRecord};
pub use design::{
    BlocksRecord, DesignRecord, Direction, FactorRecord, GoalRecord, StageKind, StageRecord, TreatmentRecord,
    numeric_values,
};
pub use lab::{LabMachine, LabRecord, LabTime};
pub use load::{LatencyGoal, LatencyMeasure, LoadCurve, LoadRecord};
pub use network::{
    BaselineRecord, Emulator, FlowsBaseline, NetworkAchieved, NetworkRecord, RoundTripBaseline, ServedBy,
};

/// The study and its plan: written once, when the results directory is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StudyRecord {
    /// Name from the study file.
    pub name: String,
    /// Description from the study file.
    pub description: Option<String>,
    /// The study file as run, byte for byte.
    pub text: String,
    /// Random identifier made with the directory; marks the study's files on targets.
    pub id: String,
    /// Seed of everything random.
    pub seed: u64,
    /// Name of the random generator (`ChaCha8`).
    pub generator: String,
    /// Kind of design (`full`, `fractional`, `plackett-burman`, `orthogonal-array`, `one-at-a-time`, `explicit`).
    pub design: String,
    /// What else is known of the design.
    pub design_details: DesignRecord,
    /// `random` or `listed`.
    pub order: String,
    /// Replicates of each treatment.
    pub replicates: Replication,
    /// Confidence level of intervals (0.95).
    pub confidence: f64,
    /// Response whose interval decides about further replicates, and which tables show first.
    pub primary_response: String,
    /// Factors in the order of the study file.
    pub factors: Vec<FactorRecord>,
    /// Treatments: those of the study file in standard order, then those that were added later.
    pub treatments: Vec<TreatmentRecord>,
    /// What was added later, in order; the first has number 1. What the study file asks for is stage 0.
    pub stages: Vec<StageRecord>,
    /// Names of the workloads in the order in which a run does them.
    pub workloads: Vec<WorkloadRecord>,
    /// Version of the program that made the directory.
    pub version: String,
}

/// A workload of the study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkloadRecord {
    /// Its name in the study.
    pub name: String,
    /// The built-in it uses, or `custom`.
    pub use_name: String,
}

/// How often each treatment is run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Replication {
    /// So many times.
    Fixed(u32),
    /// Until the relative half width of the primary response's interval is small enough.
    Sequential {
        /// At least so many.
        min: u32,
        /// At most so many.
        max: u32,
        /// Half width of the confidence interval divided by the mean.
        relative_half_width: f64,
    },
}

/// Which run: a treatment's replicate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RunKey {
    /// Index of the treatment.
    pub treatment: u32,
    /// Replicate, from 0.
    pub replicate: u32,
}

/// One process of `benchmaster run` on this directory. More than one means that the study was resumed.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionRecord {
    /// Number, from 1.
    pub id: u32,
    pub started: Timestamp,
    /// When and how it ended; `None` when it did not end by itself (killed, or still on).
    pub ended: Option<(Timestamp, SessionEnd)>,
    /// The run that was in flight when it was interrupted and had to be repeated.
    pub lost_run: Option<RunKey>,
    /// The command line.
    pub command: String,
    /// The environment of every host, by host name.
    pub environment: BTreeMap<String, Environment>,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionEnd {
    /// All runs were done.
    Complete,
    /// Stopped by the user (SIGINT, SIGTERM).
    Stopped,
    /// Gave up on an error.
    Failed,
}

/// One finished run. It is stored in one transaction, whole or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRecord {
    pub key: RunKey,
    /// Position in the order of execution, from 0, counted over all sessions.
    pub position: u32,
    /// Stage of the study that it belongs to; 0 is the design of the study file.
    pub stage: u32,
    /// Block that it belongs to, from 0 within its stage; `None` when runs are not blocked.
    pub block: Option<u32>,
    /// Whole plot that it belongs to, from 0 in the order in which a stage does them; `None` when no factor is hard to
    /// change.
    pub whole_plot: Option<u32>,
    /// Session in which it was done.
    pub session: u32,
    /// What it was asked to do.
    pub parameters: RunParameters,
    /// Start of its preparation.
    pub started: Timestamp,
    /// Its whole length, preparation and tear-down included, in nanoseconds.
    pub elapsed_ns: u64,
    /// Why the run failed as a whole, if it did: it then has no responses.
    pub failure: Option<String>,
    /// One recording per workload, in the order of the study; fewer when the run failed.
    pub recordings: Vec<Recording>,
    /// Numbers to analyse.
    pub responses: Vec<Response>,
    /// Validity checks that did not pass.
    pub checks: Vec<Check>,
    /// What happened, in order.
    pub events: Vec<Event>,
    /// Trace files, relative to the results directory, by workload.
    pub traces: BTreeMap<String, String>,
    /// Who served it and what lay between, when the target is an NFS export or the network is emulated.
    pub service: Option<ServiceRecord>,
    /// The machines in user space in which it was done, if it was done in such.
    pub lab: Option<LabRecord>,
    /// What the embedded server, or the kernel's of a lab, did while each workload was measured.
    pub server_use: Vec<ServerUse>,
    /// Attempts that failed before this one, in order.
    pub retries: Vec<RetryRecord>,
}

/// What a run was asked to do, as far as its results are explained by it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunParameters {
    /// TCP congestion control of the emulated network; `None` = the host's default.
    pub congestion: Option<String>,
    /// Largest congestion window in the emulated network, in segments; `None` = not limited.
    #[serde(default)]
    pub cwnd_clamp: Option<u32>,
    /// MTU of the emulated network in bytes; `None` = 1500.
    pub mtu: Option<u32>,
    /// Bytes per second of the server's link in the emulated network; `None` = not limited.
    pub server_bandwidth: Option<f64>,
    /// Transmit queues of each host in the emulated network; `None` = not emulated.
    #[serde(default)]
    pub transmit_queues: Option<u32>,
    /// Whether the server grants read delegations; `None` where the study does not start the server.
    pub delegations: Option<bool>,
    /// Slots that the clients of this program ask for; `None` for the kernel's.
    #[serde(default)]
    pub slots_asked: Option<u32>,
    /// Slots that the embedded server grants; `None` for others.
    #[serde(default)]
    pub slots_granted: Option<u32>,
    /// Ends at which Nagle's algorithm holds small segments back: the clients of this program and the embedded server. Not
    /// known of others.
    #[serde(default)]
    pub nagle: NagleEnds,
    /// Its workloads in full, in the order in which it does them.
    pub workloads: Vec<(String, Workload)>,
}

/// Where Nagle's algorithm was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NagleEnds {
    pub clients: bool,
    pub server: bool,
}

impl NagleEnds {
    /// How many ends it is.
    pub fn count(self) -> u32 {
        u32::from(self.clients) + u32::from(self.server)
    }
}

impl RunParameters {
    /// A workload in full.
    pub fn workload(&self, name: &str) -> Option<&Workload> {
        self.workloads.iter().find(|(other, _)| other == name).map(|(_, workload)| workload)
    }
}

/// Who served a run, and what lay between the clients and it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceRecord {
    /// The export and how it was mounted: a URL with `{server}` as host for the embedded server, or `{server}:/export` and
    /// the options of the mount of a lab's machines.
    pub url: String,
    pub server: ServedBy,
    /// What lay between.
    #[serde(flatten)]
    pub network: NetworkRecord,
    /// How well the emulation did it; `None` where it does not tell.
    pub achieved: Option<NetworkAchieved>,
}

/// What the embedded server, or the kernel's of a lab, did while a workload was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerUse {
    pub workload: String,
    /// RPC calls received.
    pub calls: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Repeated requests that were answered without being executed again.
    pub replayed: u64,
    /// CPU time of the server's threads, user and kernel together; `None` when it is not known.
    pub cpu_ns: Option<u64>,
    /// Time for which replies were held back on demand, summed; `None` where that is not known.
    #[serde(default)]
    pub held_ns: Option<u64>,
    /// What was executed, by protocol and operation.
    pub operations: Vec<ServerOperation>,
}

/// One operation of the embedded server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerOperation {
    /// `v2`, `v3`, `v4`, `mount`, `nlm` or `portmap`.
    pub protocol: String,
    /// Name, as in mountstats.
    pub operation: String,
    /// Executions.
    pub ops: u64,
    /// Executions with an error as result.
    pub errors: u64,
    /// Bytes of requests.
    pub bytes_received: u64,
    /// Bytes of replies.
    pub bytes_sent: u64,
    /// Time from decoding to encoded result, summed, in nanoseconds.
    pub service_ns: u64,
}

/// A number of a run that is analysed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// `<workload>.<what>` (`write.throughput`) or `<workload>.<series>.<what>` (`files.close.latency.p99`).
    pub name: String,
    pub value: f64,
    pub unit: Unit,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    pub time: Timestamp,
    /// `prepare`, `cache`, `hook`, `error`, ….
    pub kind: String,
    pub text: String,
}

/// A results directory.
///
/// Loaded as a whole, it has neither the points of its samples nor the outputs of attached commands, which may be larger
/// than memory; the store loads them one run at a time.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyResults {
    /// The study and its plan.
    pub study: StudyRecord,
    /// Finished runs in order of execution.
    pub runs: Vec<RunRecord>,
    /// Sessions in order.
    pub sessions: Vec<SessionRecord>,
    /// Commands of the study that were run, in the order in which they began.
    pub hooks: Vec<HookRecord>,
    /// What the networks are capable of, in the order in which it was measured.
    pub baselines: Vec<BaselineRecord>,
}

impl StudyResults {
    /// How the study ended so far; `None` while it is running, and when it was killed.
    pub fn end(&self) -> Option<SessionEnd> {
        self.sessions.last()?.ended.map(|(_, end)| end)
    }

    /// How often the study was interrupted and resumed: sessions that did not end by themselves or were stopped, and were
    /// followed by another one.
    pub fn interruptions(&self) -> usize {
        let earlier = self.sessions.len().saturating_sub(1);
        self.sessions[..earlier]
            .iter()
            .filter(|s| !matches!(s.ended, Some((_, SessionEnd::Complete))))
            .count()
    }

    /// The baseline that was taken through the same network, the last one where there are several.
    pub fn baseline_of(&self, network: &NetworkRecord) -> Option<&BaselineRecord> {
        let settings = |n: &NetworkRecord| (n.emulator, n.delay_ns, n.jitter_ns, n.bandwidth);
        self.baselines.iter().rfind(|baseline| {
            settings(&baseline.network) == settings(network) && baseline.network.loss == network.loss
        })
    }
}
