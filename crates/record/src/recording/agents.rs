//! Who generated the load of a run: processes on hosts, their clocks, and how well they began together.

use serde::{Deserialize, Serialize};

use super::HostUse;

/// One process of a run. All times are nanoseconds since the common start instant of the measured phase, on the clock of
/// the controller.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct AgentRecording {
    /// Its name in the study: the host's, with a number where a host has several (`c1`, `local-3`).
    pub name: String,
    /// Host name.
    pub host: String,
    /// Process id there.
    pub pid: u32,
    /// Number of its first client.
    pub first_client: u32,
    /// How many clients it was; 0 for a process that only looks at a server.
    pub clients: u32,
    /// Its clock.
    pub clock: ClockFacts,
    /// Use of its host while it measured.
    pub host_use: HostUse,
}

/// How a clock was compared with the controller's.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct ClockFacts {
    /// Its monotonic clock minus the controller's at the start of the measured phase.
    pub offset_ns: i64,
    /// The offset is right to within this, whatever the paths' asymmetry (half the shortest round trip).
    pub bound_ns: u64,
    /// Exchanges before the run and after it.
    pub exchanges: u32,
    /// Relative difference of rates found by the exchanges before and after the run: 1e-6 is one part in a million, positive
    /// when its clock runs fast. `None` when it was not measured again.
    pub drift: Option<f64>,
}

/// How well the clients of a run began together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StartFacts {
    /// Between the first operation of the first client and that of the last, on the common clock; each counts from its own
    /// planned start when starts are staggered.
    pub spread_ns: u64,
    /// The spread is right to within this: the sum of the two largest bounds of clocks.
    pub bound_ns: u64,
    /// The same spread by the times at which the embedded server received the first request of each connection.
    pub server_spread_ns: Option<u64>,
    /// Planned delay from the start of one client to the start of the next.
    pub stagger_ns: u64,
}

/// What a command that was attached to the measured phase printed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Collected {
    /// Its name in the study.
    pub name: String,
    /// On which host, by name of the agent.
    pub agent: String,
    pub command: String,
    /// How it ended: `exit status 0`, `ended with the window (SIGINT)`, or why it could not be run.
    pub ended: String,
    /// What it printed, standard output and errors in the order of arrival, up to a limit.
    pub output: Vec<u8>,
    /// Bytes beyond the limit.
    pub lost: u64,
    /// When it ran.
    pub start_ns: i64,
    /// See `start_ns`.
    pub end_ns: i64,
}
