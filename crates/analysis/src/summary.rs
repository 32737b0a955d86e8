//! What the results of a study say: pure, from what is stored to every number that is shown.
//!
//! A mean is one over runs (one value per run), never over the correlated intervals of one run. Runs with an invalid
//! check are left out of every mean and every latency table, and are counted and listed as left out.

mod clusters;
mod effects;
mod fairness;
mod latency;
mod rpc;
mod treatment;

use benchmaster_record::results::{Check, RunKey, RunRecord, StudyResults, Unit};
use serde::Serialize;
use thiserror::Error;

use crate::experiment::{ExperimentError, Options};
use crate::runs::is_invalid;

pub use clusters::ClusterSummary;
pub use effects::{
    ContrastSummary, Effects, FactorSummary, LevelComparison, LevelSummary, LevelsSummary, table,
};
pub use fairness::{FairnessSummary, MemberRate};
pub use latency::{LatencyKind, LatencySummary, Percentile};
pub use rpc::{RpcRowSummary, RpcSummary};
pub use treatment::{FailedRun, ResponseSummary, RunValue, TreatmentSummary};

/// What the results of a study say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    /// The response that decides about replicates and shows first.
    pub primary_response: String,
    /// Its unit; `None` when no run has it.
    pub primary_unit: Option<Unit>,
    /// Confidence level of every interval.
    pub confidence: f64,
    /// Treatments in standard order, those without a finished run included.
    pub treatments: Vec<TreatmentSummary>,
    /// The response that the effects are on: the primary one, unless another was asked for.
    pub effects_on: String,
    /// Its unit; `None` when no run has it.
    pub effects_unit: Option<Unit>,
    /// How the factors change it.
    pub effects: Effects,
    /// Its means at each level, against the base level; `None` where `effects` has them, and without factors.
    pub levels: Option<LevelsSummary>,
    /// What a study found that decides by its results what to run; `None` for other studies.
    pub adaptive: Option<crate::adaptive::Answer>,
    /// The load curves of a study that measures some; `None` for other studies.
    pub load: Option<crate::load::LoadAnalysis>,
    /// Validity checks that did not pass, each once, worst first.
    pub warnings: Vec<WarningSummary>,
    pub runs: usize,
    /// Runs that failed as a whole.
    pub failed: usize,
    /// Runs left out of the means because a check found them invalid.
    pub excluded: usize,
    /// Operations that failed, over all runs.
    pub errors: u64,
    /// How often the study was interrupted.
    pub interruptions: usize,
    /// Stored histograms that could not be read: their numbers are missing.
    pub damage: Vec<String>,
}

/// A validity check that did not pass in some runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WarningSummary {
    /// As it was in the first of these runs.
    #[serde(flatten)]
    pub check: Check,
    /// Runs in which it did not pass.
    pub runs: Vec<RunKey>,
    /// Finished runs of the study.
    pub of: usize,
}

/// Why an analysis cannot be made as asked.
#[derive(Debug, Error)]
pub enum AnalysisError {
    /// No run has the response.
    #[error("no run has the response `{name}`; there are {}", known.join(", "))]
    UnknownResponse {
        /// The name as written.
        name: String,
        /// Responses that there are.
        known: Vec<String>,
    },
    /// The effects cannot be analysed as asked.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
}

/// Analyses a study's results, finished or not.
pub fn analyze(results: &StudyResults) -> Analysis {
    let options = Options { confidence: results.study.confidence, ..Options::default() };
    summary(results, &results.study.primary_response, |treatments, response| {
        let found = effects::effects(results, treatments, response, &options);
        found.unwrap_or_else(|problem| (Effects::None { reason: problem.to_string() }, None))
    })
}

/// The same, with the effects on any response, analysed as asked. The confidence level of everything else is the study's.
///
/// # Errors
/// A response that no run has, and terms, levels and scales that there are not.
pub fn analyze_with(
    results: &StudyResults,
    response: Option<&str>,
    options: &Options,
) -> Result<Analysis, AnalysisError> {
    let response = response.unwrap_or(&results.study.primary_response);
    let mut known: Vec<String> = Vec::new();
    for found in results.runs.iter().flat_map(|r| &r.responses) {
        if !known.contains(&found.name) {
            known.push(found.name.clone());
        }
    }
    if !known.is_empty() && !known.iter().any(|name| name == response) {
        return Err(AnalysisError::UnknownResponse { name: response.to_owned(), known });
    }
    let mut problem = None;
    let analysis = summary(results, response, |treatments, response| {
        effects::effects(results, treatments, response, options).unwrap_or_else(|error| {
            let reason = error.to_string();
            problem = Some(error);
            (Effects::None { reason }, None)
        })
    });
    match problem {
        Some(problem) => Err(problem.into()),
        None => Ok(analysis),
    }
}

fn summary(
    results: &StudyResults,
    effects_on: &str,
    effects: impl FnOnce(&[TreatmentSummary], &str) -> (Effects, Option<LevelsSummary>),
) -> Analysis {
    let study = &results.study;
    let mut damage = Vec::new();
    let mut treatments = Vec::with_capacity(study.treatments.len());
    for treatment in &study.treatments {
        let mut runs: Vec<_> = results.runs.iter().filter(|r| r.key.treatment == treatment.index).collect();
        runs.sort_by_key(|r| r.key);
        treatments.push(treatment::summarize(results, treatment, &runs, &mut damage));
    }
    let unit = |name: &str| {
        let all = results.runs.iter().flat_map(|r| &r.responses);
        all.into_iter().find(|r| r.name == name).map(|r| r.unit)
    };
    let (effects, levels) = effects(&treatments, effects_on);
    Analysis {
        primary_response: study.primary_response.clone(),
        primary_unit: unit(&study.primary_response),
        confidence: study.confidence,
        effects_on: effects_on.to_owned(),
        effects_unit: unit(effects_on),
        effects,
        levels,
        adaptive: crate::adaptive::answer(results),
        load: crate::load::analysis(results),
        warnings: warnings(&results.runs),
        runs: results.runs.len(),
        failed: results.runs.iter().filter(|r| r.failure.is_some()).count(),
        excluded: results.runs.iter().filter(|r| r.failure.is_none() && is_invalid(r)).count(),
        errors: treatments.iter().map(|t| t.errors).sum(),
        interruptions: results.interruptions(),
        treatments,
        damage,
    }
}

/// The checks that did not pass, by name, severity and workload; the worst and most frequent first.
fn warnings(runs: &[RunRecord]) -> Vec<WarningSummary> {
    let mut all: Vec<WarningSummary> = Vec::new();
    for run in runs {
        for check in &run.checks {
            let same = |w: &&mut WarningSummary| {
                let same = (w.check.kind, w.check.severity) == (check.kind, check.severity);
                same && w.check.workload == check.workload
            };
            match all.iter_mut().find(same) {
                // A run counts once, however often the check fails in it.
                Some(warning) if warning.runs.last() == Some(&run.key) => {}
                Some(warning) => warning.runs.push(run.key),
                None => {
                    all.push(WarningSummary { check: check.clone(), runs: vec![run.key], of: runs.len() })
                }
            }
        }
    }
    all.sort_by_key(|w| (std::cmp::Reverse(w.check.severity), std::cmp::Reverse(w.runs.len())));
    all
}

#[cfg(test)]
mod tests {
    use benchmaster_record::results::Severity;
    use benchmaster_testkit::{fail, study_results};

    use super::*;

    #[test]
    fn invalid_and_failed_runs_are_left_out_and_counted() {
        let mut results = study_results(1, 2, 3);
        fail(&mut results.runs[1], "the disk is gone");
        let analysis = analyze(&results);
        assert_eq!((analysis.runs, analysis.failed, analysis.excluded), (6, 1, 1));
        assert_eq!((analysis.errors, analysis.interruptions), (3, 1));
        let counted: usize = analysis
            .treatments
            .iter()
            .map(|t| t.response("write.throughput").unwrap().estimate.as_ref().unwrap().n)
            .sum();
        assert_eq!(counted, 4);
        let values = analysis.treatments.iter().flat_map(|t| &t.response("write.throughput").unwrap().values);
        assert_eq!(values.filter(|v| v.excluded).count(), 1);
        assert!(analysis.treatments.iter().flat_map(|t| &t.latencies).all(|l| l.runs <= 3));
        assert_eq!(analysis.warnings[0].check.severity, Severity::Invalid);
        assert_eq!((analysis.warnings[0].runs.len(), analysis.warnings[0].of), (1, 6));
    }

    #[test]
    fn a_single_run_has_no_interval_and_says_why() {
        let analysis = analyze(&study_results(1, 1, 1));
        for response in &analysis.treatments[0].responses {
            let estimate = response.estimate.as_ref().unwrap();
            assert_eq!((estimate.n, estimate.half_width), (1, None));
            assert!(estimate.no_interval.is_some());
        }
        assert_eq!(analysis.treatments[0].stopping.as_deref(), Some("1 run, as planned beforehand"));
        assert_eq!(analysis.effects, Effects::None { reason: "the study has no factors".into() });
    }

    #[test]
    fn every_mean_has_an_interval_or_a_reason() {
        let mut results = study_results(5, 4, 2);
        results.runs.retain(|r| r.key.treatment != 3);
        results.runs[0].responses[0].value = f64::NAN;
        for response in analyze(&results).treatments.iter().flat_map(|t| &t.responses) {
            match &response.estimate {
                Some(estimate) => assert_ne!(estimate.half_width.is_some(), estimate.no_interval.is_some()),
                None => assert!(response.no_estimate.is_some()),
            }
        }
    }

    #[test]
    fn outliers_are_flagged_and_still_count() {
        let mut results = study_results(2, 1, 8);
        results.runs.iter_mut().for_each(|r| r.checks.clear());
        results.runs[3].responses[0].value *= 0.2;
        let outlier = results.runs[3].key;
        let analysis = analyze(&results);
        let response = &analysis.treatments[0].responses[0];
        let flagged: Vec<_> = response.values.iter().filter(|v| v.outlier).map(|v| v.run).collect();
        assert_eq!(flagged, [outlier]);
        assert_eq!(response.estimate.as_ref().unwrap().n, 8);
    }

    #[test]
    fn workers_and_clients_are_compared() {
        let mut results = study_results(2, 1, 2);
        results.runs.iter_mut().for_each(|r| r.checks.clear());
        let by_workers = analyze(&results).treatments[0].fairness.clone();
        assert_eq!(by_workers.len(), 2);
        assert_eq!((by_workers[0].members, by_workers[0].group.as_deref()), (4, Some("main")));
        assert!(by_workers[0].jain.mean > 0.99 && by_workers[0].jain.mean <= 1.0);
        for worker in results.runs.iter_mut().flat_map(|r| &mut r.recordings).flat_map(|r| &mut r.workers) {
            worker.client = u32::from(worker.worker == 0);
        }
        let clients = analyze(&results).treatments[0].fairness[1].clone();
        assert_eq!((clients.members, clients.group), (2, None));
        assert!((clients.max_over_min.unwrap() - 3.0).abs() < 0.1);
        assert!((clients.jain.mean - 0.8).abs() < 0.02, "{}", clients.jain.mean);
    }

    #[test]
    fn it_serializes_without_histograms() {
        let text = serde_json::to_string(&analyze(&study_results(1, 4, 2))).unwrap();
        assert!(text.contains(r#""method":"experiment""#), "{text}");
        assert!(text.len() < 100_000, "{}", text.len());
    }
}
