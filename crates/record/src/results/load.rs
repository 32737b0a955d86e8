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

words! {
    /// What a load curve raises.
    #[derive(schemars::JsonSchema)]
    LoadCurve {
        /// The rate at which operations are begun, whether or not earlier ones are done.
        Open = "open",
        /// The number of workers, each of which begins its next operation when the last one is done.
        Closed = "closed",
    }
}

/// What is asked of the latency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LatencyGoal {
    /// What of it.
    pub latency: LatencyMeasure,
    /// The most that it may be, in nanoseconds.
    pub at_most_ns: f64,
}

words! {
    /// One number of many latencies.
    #[derive(schemars::JsonSchema)]
    LatencyMeasure {
        /// The arithmetic mean.
        Mean = "mean",
        /// The median.
        P50 = "p50",
        /// Nine of ten are shorter.
        P90 = "p90",
        /// 99 of 100 are shorter.
        P99 = "p99",
        /// 999 of 1000 are shorter.
        P999 = "p999",
        /// The longest.
        Max = "max",
    }
}

impl LatencyMeasure {
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
