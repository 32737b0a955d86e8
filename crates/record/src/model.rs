//! A workload in full: filesets, groups of workers, and the flow of operations each worker repeats.
//!
//! Every built-in workload expands to this form, and a study may write it directly. It has one shape for everything
//! from a sequential write to Filebench's File Server: files are *picked* from filesets, opened into a handle, and
//! operated on; steps may be repeated or chosen at random by weight.

mod fileset;
mod forms;
mod operation;
mod step;
mod verify;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use benchmaster_units::{ByteSize, Rate, TimeSpan};

pub use fileset::{Fileset, Sharing, Size, SizeDistribution, Tree, WeightedSize};
pub use operation::{Beside, OperationKind};
pub use step::{
    Choice, FilePick, LockKind, OffsetPick, OpenFlag, Repeat, RepeatFor, RepeatUntil, Replay, ReplaySpeed,
    ReplayWord, Step, leaves,
};
pub use verify::Verify;

/// A value that is well-formed but cannot be meant, at a place within a workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}; {fix}")]
pub struct ParameterError {
    /// Path below the workload's table: `io_size`, `groups[0].flow[2].offset`. Empty for the table itself.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub fix: String,
}

impl ParameterError {
    /// An error of the parameter at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), fix: fix.into() }
    }
}

/// A workload in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The sets of files the workload works on, by name. Workloads of one study that name the same fileset, with the
    /// same description, share its files: a later one reads what an earlier one wrote.
    pub filesets: BTreeMap<String, Fileset>,
    /// Groups of workers. All groups run at the same time.
    pub groups: Vec<Group>,
    /// When each worker stops.
    #[serde(default)]
    pub until: Until,
    /// Time for which the flow runs before anything is measured.
    #[serde(default)]
    pub warm_up: TimeSpan,
    /// Stamp every block written with file, offset and generation, and check every block read; `"durability"`: check also
    /// that what was acknowledged as stable survives a cut of the server.
    #[serde(default)]
    pub verify: Verify,
    /// Record every call of the measured phase.
    #[serde(default)]
    pub trace: bool,
    /// Whether the result is meant to be the storage's (reads should not come from this host's page cache) or may come
    /// from the cache.
    #[serde(default)]
    pub claims: Claim,
}

/// What the reads of a workload are meant to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// The file system and what is behind it: a data set that fits the page cache is a validity warning.
    #[default]
    Device,
    /// The client's cache as well.
    Cache,
}

/// When a worker stops: at whichever limit is reached first. Without any, it stops when no file is left to pick.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Length of the measured phase.
    pub duration: Option<TimeSpan>,
    /// Repetitions of the flow by each worker.
    pub iterations: Option<u64>,
    /// Bytes read and written by each worker.
    pub bytes: Option<ByteSize>,
}

/// A group of workers with one flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// The clients that do it; all of them if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<ClientRange>,
    /// Workers per client.
    #[serde(default = "one_worker")]
    pub workers: u32,
    /// Operations each worker keeps outstanding.
    #[serde(default = "one_worker")]
    pub queue_depth: u32,
    /// How reads and writes are issued; means nothing where the target is an `nfs://` URL.
    #[serde(default)]
    pub io: IoMethod,
    /// Start operations at this rate (flow repetitions per second over all workers of a client) instead of as fast as the last ones
    /// finish; latencies then count from the intended start.
    pub rate: Option<Rate>,
    /// Steps done once by every worker before the measured phase.
    #[serde(default)]
    pub setup: Vec<Step>,
    /// Steps repeated during the measured phase. Without any the workers hold what their `setup` opened until all others
    /// have left the measured phase.
    pub flow: Vec<Step>,
    /// Steps done once by every worker after the measured phase. Open handles are closed in any case.
    #[serde(default)]
    pub teardown: Vec<Step>,
}

/// Clients by number, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientRange {
    /// The first.
    #[serde(default)]
    pub first: u32,
    /// The last; if absent, the last one of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u32>,
}

impl ClientRange {
    /// Whether a client is among them.
    pub fn contains(self, client: u32) -> bool {
        self.first <= client && self.last.is_none_or(|last| client <= last)
    }
}

fn one_worker() -> u32 {
    1
}

/// How reads and writes reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IoMethod {
    /// `pread` and `pwrite`.
    #[default]
    Sync,
    /// io_uring.
    IoUring,
}
