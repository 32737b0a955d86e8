//! What a study asks for that measures load curves.

use serde::{Deserialize, Serialize};

/// What `[load]` asks for. The loads are the levels of a factor of their own, of which only those are run that the curve
/// needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// What is raised.
    pub curve: LoadCurve,
    /// Number of the factor whose levels are the loads, in ascending order.
    pub factor: u32,
    /// The parameter that the load is.
    pub parameter: String,
    /// The workload that is loaded.
    pub workload: String,
    /// The group of its workers whose load is raised.
    pub group: String,
    /// Operations that each worker keeps outstanding.
    pub outstanding: u32,
    /// The series of the group whose operations tell how often the flow was done, and how many of them each time has.
    pub counted: Vec<String>,
    /// See `counted`.
    pub per_flow: f64,
    /// The levels that are run while the load rises, in ascending order.
    pub rise: Vec<u32>,
    /// Share of the requested rate that must be achieved.
    pub achieved: f64,
    /// What is asked of the latency.
    pub goal: Option<LatencyGoal>,
    /// The most runs of one load.
    pub max_replicates: u32,
}

/// What a load curve raises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadCurve {
    /// The rate at which the flow is begun.
    Open,
    /// The number of workers, each of which begins again when it is done.
    Closed,
}

/// What is asked of the latency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyGoal {
    /// What of it.
    pub latency: LatencyMeasure,
    /// The most that it may be, in nanoseconds.
    pub at_most_ns: f64,
}

/// One number of many latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LatencyMeasure {
    /// The arithmetic mean.
    Mean,
    /// The median.
    P50,
    /// Nine of ten are shorter.
    P90,
    /// 99 of 100 are shorter.
    P99,
    /// 999 of 1000 are shorter.
    P999,
    /// The longest.
    Max,
}

impl LatencyMeasure {
    /// The name used in study files and responses.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mean => "mean",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::P999 => "p999",
            Self::Max => "max",
        }
    }

    /// The quantile that it is; `None` for the mean.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Self::Mean => None,
            Self::P50 => Some(0.5),
            Self::P90 => Some(0.9),
            Self::P99 => Some(0.99),
            Self::P999 => Some(0.999),
            Self::Max => Some(1.0),
        }
    }
}
