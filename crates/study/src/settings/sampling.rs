//! The section `[sampling]` and the commands of `[[collect]]`: what is looked at while a workload is measured.

use benchmaster_units::{ByteSize, TimeSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::steps::StepSide;

/// The system's counters that are read beside every measured phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SamplingSettings {
    /// Whether counters are read.
    pub enabled: bool,
    /// Time from one reading to the next, at least 10 ms.
    pub interval: TimeSpan,
    /// Names of the samplers. If absent, all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["cpu", "mountstats", "tcp"]]))]
    pub samplers: Option<Vec<String>>,
}

impl Default for SamplingSettings {
    fn default() -> Self {
        Self { enabled: true, interval: TimeSpan::seconds(1), samplers: None }
    }
}

/// A command that runs while a workload is measured, and whose output is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CollectSettings {
    /// Its name.
    pub name: String,
    /// Shell command. It is started before the measured phase and gets SIGINT when the phase is over.
    #[schemars(extend("examples" = ["perf stat -a", "iostat -x 1"]))]
    pub command: String,
    /// Where it runs: on every host with clients, or on the server's.
    #[serde(default = "clients")]
    pub on: StepSide,
    /// Most bytes of its output that are kept.
    #[serde(default = "limit")]
    pub limit: ByteSize,
}

fn clients() -> StepSide {
    StepSide::Clients
}

fn limit() -> ByteSize {
    ByteSize::mib(16)
}
