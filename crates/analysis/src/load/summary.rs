//! What load curves say.

use benchmaster_record::results::{LatencyGoal, LoadCurve};
use serde::Serialize;

use super::decide::End;
use super::judge::Verdict;
use crate::runs::Estimate;

/// What the load curves of a study say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadAnalysis {
    pub curve: LoadCurve,
    /// The workload that is loaded.
    pub workload: String,
    /// The parameter that the load is.
    pub parameter: String,
    /// What is asked of the latency.
    pub goal: Option<LatencyGoal>,
    /// Share of the requested rate that must be achieved, in an open loop.
    pub achieved: Option<f64>,
    /// A curve for every treatment of the other factors.
    pub curves: Vec<CurveSummary>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurveSummary {
    /// The treatment of the other factors: `version=4.1`; empty without other factors.
    pub label: String,
    /// How it ended; `None` when runs are missing.
    pub end: Option<End>,
    /// The highest load that is known to keep all limits.
    pub kept: Option<f64>,
    /// The lowest load that is known not to.
    pub broken: Option<f64>,
    /// Loads between them that could not be decided with as many runs as are allowed.
    pub undecided: Vec<f64>,
    /// The highest rate that was achieved, per second, of all loads at which the client was not the limit.
    pub peak: Option<Estimate>,
    /// The load at which that was.
    pub peak_load: Option<f64>,
    /// The load at which the rate divided by the response time is greatest.
    pub knee: Option<Knee>,
    /// Area under the response time over the achieved rate from the first load to the peak, divided by the difference of their
    /// rates, in nanoseconds; `None` for a single load.
    pub overall_response_time: Option<WithInterval>,
    /// The loads that were run, in ascending order.
    pub points: Vec<PointSummary>,
    /// The same in words.
    pub sentences: Vec<String>,
}

/// The knee of a curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Knee {
    /// The load, with the interval of those that it is among when runs are resampled.
    #[serde(flatten)]
    pub load: WithInterval,
    /// Whether it is the highest load: the knee may lie beyond.
    pub at_the_end: bool,
}

/// A number with its interval from resampled runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WithInterval {
    pub value: f64,
    /// Its interval; `None` when a load was run once.
    pub interval: Option<[f64; 2]>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointSummary {
    /// The load: a rate, or workers, per client.
    pub load: f64,
    /// Repetitions of the flow that were asked for, per second over all clients; `None` in a closed loop.
    pub requested: Option<f64>,
    /// Repetitions that were done, per second; `None` when no run counts.
    pub achieved: Option<Estimate>,
    /// Mean response time, in nanoseconds.
    pub response: Option<Estimate>,
    /// What the goal is about, in nanoseconds.
    pub judged: Option<Estimate>,
    /// Share of the workers' time within operations.
    pub busy: Option<f64>,
    /// Runs that do not count.
    pub failed: usize,
    /// What is known of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}
