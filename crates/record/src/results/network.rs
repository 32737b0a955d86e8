//! What lay between the clients and the server, and what it is capable of without NFS.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

words! {
    /// What emulates the network between the clients and the server.
    #[derive(Default)]
    Emulator {
        /// The network is as it is.
        #[default]
        None = "none",
        /// A relay of TCP connections: a delay only.
        Relay = "tcp-relay",
        /// A wire in user space between network namespaces.
        Wire = "wire",
        /// The kernel's `tc netem` between network namespaces.
        Netem = "tc-netem",
    }
}

words! {
    /// Who serves a target.
    ServedBy {
        /// The server of this program: in the process of the clients, or in that of the study with machines of a lab.
        Embedded = "embedded",
        /// The kernel's server on a machine of a lab.
        Knfsd = "knfsd",
        /// nfs-ganesha on a machine of a lab.
        Ganesha = "ganesha",
        /// A server that the study does not start.
        External = "external",
        /// A server that steps of the study set up.
        Managed = "managed",
    }
}

/// The network between the clients and the server of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct NetworkRecord {
    #[serde(rename = "network")]
    pub emulator: Emulator,
    /// One-way delay in nanoseconds.
    pub delay_ns: u64,
    /// Standard deviation of the delay in nanoseconds.
    pub jitter_ns: u64,
    /// Bits per second of each client in each direction; `None` = not limited.
    pub bandwidth: Option<u64>,
    /// Share of the packets that are lost on purpose (0 to 1).
    pub loss: f64,
    /// Round trip through the same emulation without any delay, as measured, in nanoseconds.
    pub base_rtt_ns: Option<u64>,
    /// What this emulation is accurate for; empty without one.
    #[serde(rename = "network_note")]
    pub note: String,
}

impl NetworkRecord {
    /// Whether anything was emulated.
    pub fn is_emulated(&self) -> bool {
        self.emulator != Emulator::None
    }
}

/// What an emulated network did during a run, over all clients and both directions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NetworkAchieved {
    /// Packets that went through.
    pub packets: Option<u64>,
    /// Packets lost on purpose.
    pub lost: Option<u64>,
    /// Packets dropped because a queue was full.
    pub overflowed: Option<u64>,
    /// How much later than intended packets left: 99 % less than this, in nanoseconds.
    pub lateness_p99_ns: Option<u64>,
    /// The same of the latest packet.
    pub lateness_max_ns: Option<u64>,
}

/// What the network between a client and a target is capable of without NFS: the round trip and raw TCP, which are
/// printed beside the results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineRecord {
    /// The session in which it was taken.
    pub session: u32,
    pub time: Timestamp,
    /// The client that measured, by name of the agent.
    pub client: String,
    /// What was measured against: the host or export as the study names it.
    pub target: String,
    /// The network between them.
    #[serde(flatten)]
    pub network: NetworkRecord,
    /// Round trips of small messages; `None` when they could not be measured.
    pub round_trip: Option<RoundTripBaseline>,
    /// Throughput of raw TCP, for each number of flows and direction.
    pub flows: Vec<FlowsBaseline>,
    /// The whole result, as JSON.
    pub result: String,
}

/// Round trips of small messages on one connection, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoundTripBaseline {
    /// Round trips measured.
    pub count: u64,
    /// The shortest.
    pub min_ns: u64,
    /// Median.
    pub median_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
}

/// Throughput of raw TCP with a number of flows at once.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FlowsBaseline {
    /// Connections at once.
    pub flows: u32,
    /// `receive` (from the server to the client) or `send`.
    pub direction: String,
    /// Measurements.
    pub count: u32,
    /// Mean of all flows together, in bytes per second.
    pub throughput: f64,
    /// Half width of the mean's 95 % confidence interval; `None` with less than two measurements.
    pub half_width: Option<f64>,
    /// Jain's fairness index of the flows (1 = all alike); `None` with one flow.
    pub fairness: Option<f64>,
    /// Segments sent again by either side; `None` when it is not known.
    pub retransmissions: Option<u64>,
}
