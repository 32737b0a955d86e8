//! What the controller asks of agents, as plain data.

use std::path::PathBuf;
use std::time::Duration;

use benchmaster_record::model::Workload;
use benchmaster_telemetry::sampling::SamplingConfig;
use benchmaster_workload::cache::CacheControl;
use serde::{Deserialize, Serialize};

/// One workload of one run, the same for all agents.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Job {
    /// The workload's name in the study.
    pub name: String,
    /// What is to be done.
    pub workload: Workload,
    /// Planned delay from the start of one client to the start of the next.
    pub stagger: Duration,
    /// Seed of everything random in this run.
    pub seed: u64,
    /// Seed of the files' sizes and contents.
    pub fileset_seed: u64,
    /// Length of an interval of the series.
    pub interval_ns: u64,
    /// What is done to the page cache before the measured phase.
    pub cache: CacheControl,
    /// Shell command to run on every host before the measured phase.
    pub hook: Option<HookSpec>,
    /// A worker gives up after this many errors in a row.
    pub max_errors: u64,
    /// Directory for the ledgers of durability witnesses, outside the target; absent: the host's for temporary files.
    #[serde(default)]
    pub ledgers: Option<PathBuf>,
    /// Whether every call is recorded.
    pub trace: bool,
    /// Counters that are read beside the measured phase; `None`: none.
    pub sampling: Option<SamplingConfig>,
    /// Commands that run beside the measured phase.
    pub collect: Vec<CollectSpec>,
}

/// A command that is run at a step of a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookSpec {
    /// For `sh -c`.
    pub command: String,
    /// It is stopped after this time, and has failed.
    pub timeout: Duration,
    /// Variables of its environment, beside those of the agent.
    pub environment: Vec<(String, String)>,
}

/// A command that runs while the measured phase does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CollectSpec {
    /// Its name in the study.
    pub name: String,
    /// For `sh -c`. It is started before the phase begins and gets SIGINT when the phase is over.
    pub command: String,
    pub on: Side,
    /// Most bytes of its output that are kept.
    pub limit: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Every host with clients.
    Clients,
    Server,
}
