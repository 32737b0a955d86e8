//! What happened around the runs: commands that were run, attempts that failed.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::RunKey;

/// A command of the study that was run at one of its steps, once per host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookRecord {
    /// The session in which it was run.
    pub session: u32,
    /// The run it belongs to; `None` for steps of the whole study.
    pub run: Option<RunKey>,
    /// The step: its name in the study (`server.mkfs`, `clients.mount`, …).
    pub step: String,
    /// Where it ran: name of the agent, or `controller`.
    pub agent: String,
    pub command: String,
    pub started: Timestamp,
    /// How long it took, in nanoseconds.
    pub elapsed_ns: u64,
    /// How it ended: `exit status 0`, `killed after 30s`, or why it could not be run.
    pub ended: String,
    /// Whether that is success.
    pub succeeded: bool,
    /// The end of what it printed.
    pub output: String,
}

/// An attempt at a run that failed before the one that is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryRecord {
    pub started: Timestamp,
    /// How long it took until it failed, in nanoseconds.
    pub elapsed_ns: u64,
    /// The agent that was lost or failed; `None` when it was none of them.
    pub agent: Option<String>,
    /// Why it failed.
    pub reason: String,
}
