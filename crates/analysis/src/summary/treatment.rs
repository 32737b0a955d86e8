//! What the runs of one treatment say.

use std::collections::BTreeMap;

use benchmaster_record::results::{
    Replication, RunKey, RunRecord, Severity, StudyResults, TreatmentRecord, Unit,
};
use benchmaster_stats::{outlier, stopping};
use serde::Serialize;

use super::fairness::{FairnessSummary, fairness_of};
use super::latency::{self, LatencySummary};
use super::rpc::{self, RpcSummary};
use crate::runs::{Estimate, counts, is_invalid};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreatmentSummary {
    /// Its index in standard order.
    pub index: u32,
    pub label: String,
    /// Finished runs, failed ones included.
    pub runs: usize,
    /// Runs that failed, with the reason.
    pub failed: Vec<FailedRun>,
    /// Runs left out because a check found them invalid.
    pub excluded: Vec<RunKey>,
    /// Runs that count and have a warning.
    pub warned: usize,
    /// Responses, the primary one first, the others in the order in which runs have them.
    pub responses: Vec<ResponseSummary>,
    /// Whether there are enough replicates, by the study's rule for the primary response; `None` when no run counts.
    pub stopping: Option<String>,
    /// Latencies per workload and series.
    pub latencies: Vec<LatencySummary>,
    /// How evenly workers and clients were served.
    pub fairness: Vec<FairnessSummary>,
    /// RPCs by workload and phase, where they were counted.
    pub rpcs: Vec<RpcSummary>,
    /// Operations that failed, over all its runs.
    pub errors: u64,
    /// The same by workload, for workloads with errors.
    pub errors_by_workload: BTreeMap<String, u64>,
}

impl TreatmentSummary {
    /// The response of this name.
    pub fn response(&self, name: &str) -> Option<&ResponseSummary> {
        self.responses.iter().find(|r| r.name == name)
    }
}

/// A run that failed as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedRun {
    pub run: RunKey,
    pub reason: String,
}

/// A response of a treatment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResponseSummary {
    pub name: String,
    pub unit: Unit,
    /// Mean over the runs that count: over all of them, or none when some have no value.
    pub estimate: Option<Estimate>,
    /// Why there is no mean.
    pub no_estimate: Option<String>,
    /// One value per run, in order of replicates; excluded ones included and marked.
    pub values: Vec<RunValue>,
}

/// A response of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunValue {
    pub run: RunKey,
    pub value: f64,
    /// Far from the treatment's other values (modified z-score); it still counts.
    pub outlier: bool,
    /// Left out of the mean, because a check found the run invalid.
    pub excluded: bool,
}

pub(super) fn summarize(
    results: &StudyResults,
    treatment: &TreatmentRecord,
    runs: &[&RunRecord],
    damage: &mut Vec<String>,
) -> TreatmentSummary {
    let study = &results.study;
    let counted: Vec<_> = runs.iter().copied().filter(|r| counts(r)).collect();
    let mut responses = responses(runs, study.confidence);
    responses.sort_by_key(|r| r.name != study.primary_response);
    let primary = responses.iter().find(|r| r.name == study.primary_response);
    let mut errors_by_workload = BTreeMap::new();
    for recording in runs.iter().flat_map(|r| &r.recordings) {
        let errors: u64 = recording.series.iter().map(|s| s.total.errors).sum();
        if errors > 0 {
            *errors_by_workload.entry(recording.workload.clone()).or_default() += errors;
        }
    }
    TreatmentSummary {
        index: treatment.index,
        label: treatment.label.clone(),
        runs: runs.len(),
        failed: runs
            .iter()
            .filter_map(|r| Some(FailedRun { run: r.key, reason: r.failure.clone()? }))
            .collect(),
        excluded: runs.iter().filter(|r| r.failure.is_none() && is_invalid(r)).map(|r| r.key).collect(),
        warned: counted.iter().filter(|r| r.checks.iter().any(|c| c.severity == Severity::Warning)).count(),
        stopping: primary.and_then(|p| stopping(study.replicates, study.confidence, p)),
        latencies: latency::latencies(&counted, damage),
        fairness: fairness_of(&counted, study.confidence),
        rpcs: rpc::rpcs(&counted, study.confidence),
        errors: errors_by_workload.values().sum(),
        errors_by_workload,
        responses,
    }
}

/// Values from which outliers are flagged: the median deviation of fewer is too uncertain, and every third value of
/// three would be one.
const OUTLIERS_FROM: usize = 6;

/// Every response of a treatment's runs, in the order in which they first appear.
fn responses(runs: &[&RunRecord], confidence: f64) -> Vec<ResponseSummary> {
    let counting = runs.iter().filter(|run| counts(run)).count();
    let mut all: Vec<ResponseSummary> = Vec::new();
    let mut places = BTreeMap::new();
    for run in runs {
        for response in &run.responses {
            let place = *places.entry(response.name.as_str()).or_insert_with(|| {
                all.push(ResponseSummary {
                    name: response.name.clone(),
                    unit: response.unit,
                    estimate: None,
                    no_estimate: None,
                    values: Vec::new(),
                });
                all.len() - 1
            });
            let value = response.value;
            all[place].values.push(RunValue { run: run.key, value, outlier: false, excluded: !counts(run) });
        }
    }
    for response in &mut all {
        let counted: Vec<f64> = response.values.iter().filter(|v| !v.excluded).map(|v| v.value).collect();
        match Estimate::of(&counted, confidence) {
            // Which runs have a high percentile depends on how fast they were: a mean over those alone is biased.
            Ok(_) if counted.len() < counting => {
                response.no_estimate =
                    Some(format!("only {} of {counting} runs have it, and not by chance", counted.len()));
            }
            Ok(estimate) => response.estimate = Some(estimate),
            Err(_) if counted.is_empty() => response.no_estimate = Some("no run counts".into()),
            Err(problem) => response.no_estimate = Some(problem.to_string()),
        }
        let flags = if counted.len() < OUTLIERS_FROM { vec![] } else { outlier::flags(&counted) };
        for (value, outlier) in response.values.iter_mut().filter(|v| !v.excluded).zip(flags) {
            value.outlier = outlier;
        }
    }
    all
}

/// Whether a treatment has enough replicates, in words; `None` when no run counts.
fn stopping(replication: Replication, confidence: f64, response: &ResponseSummary) -> Option<String> {
    let values: Vec<f64> = response.values.iter().filter(|v| !v.excluded).map(|v| v.value).collect();
    let n = response.estimate.as_ref()?.n;
    Some(match replication {
        Replication::Sequential { min, max, relative_half_width } => {
            let (min, max) = (min as usize, max as usize);
            stopping::Rule { min, max, relative_half_width, confidence }.decide(&values).label()
        }
        Replication::Fixed(planned) if n < planned as usize => format!("{n} of {planned} planned runs count"),
        Replication::Fixed(planned) if n > planned as usize => {
            format!("{n} runs, {planned} as planned beforehand and {} added", n - planned as usize)
        }
        Replication::Fixed(planned) => {
            format!("{planned} {}, as planned beforehand", if planned == 1 { "run" } else { "runs" })
        }
    })
}
