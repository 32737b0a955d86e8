//! What the results of a study say: pure, from what is stored to every number that is shown.
//!
//! A mean is one over runs (one value per run), never over the correlated intervals of one run. Runs with an invalid
//! check are left out of every mean and every latency table, and are counted and listed as left out.

mod clusters;
mod effects;
mod latency;
mod rpc;

use std::collections::BTreeMap;

use benchmaster_record::recording::{Recording, WorkerRecording};
use benchmaster_record::results::{
    Replication, RunKey, RunRecord, Severity, StudyResults, TreatmentRecord, Unit,
};
use benchmaster_stats::{StatsError, fairness, interval, outlier, stopping};
use serde::Serialize;
use thiserror::Error;

use crate::experiment::{ExperimentError, Options};

pub use clusters::ClusterSummary;
pub use effects::{
    ContrastSummary, Effects, FactorSummary, LevelComparison, LevelSummary, LevelsSummary, table,
};
pub use latency::{LatencyKind, LatencySummary, Percentile};
pub use rpc::{RpcRowSummary, RpcSummary};

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
    /// Finished runs.
    pub runs: usize,
    /// Runs that failed as a whole.
    pub failed: usize,
    /// Runs left out of the means because a check found them invalid.
    pub excluded: usize,
    /// Operations that failed, over all runs.
    pub errors: u64,
    /// How often the study was interrupted.
    pub interruptions: usize,
    /// Stored histograms that could not be read: what they would have told is missing.
    pub damage: Vec<String>,
}

/// One treatment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TreatmentSummary {
    /// Its index in standard order.
    pub index: u32,
    /// Its label.
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
    /// Which.
    pub run: RunKey,
    /// Why.
    pub reason: String,
}

/// A mean with its uncertainty, or with the reason why that is not known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Number of values.
    pub n: usize,
    /// Their arithmetic mean.
    pub mean: f64,
    /// Their standard deviation; `None` for a single value.
    pub standard_deviation: Option<f64>,
    /// Half width of the Student-t interval of the mean.
    pub half_width: Option<f64>,
    /// Why there is no interval.
    pub no_interval: Option<String>,
}

impl Estimate {
    /// The mean of values, one per run, with its interval.
    ///
    /// # Errors
    /// Without values, with values that are not finite, and with a confidence level that is not one.
    pub fn of(values: &[f64], confidence: f64) -> Result<Self, StatsError> {
        let mean = interval::mean_interval(values, confidence)?;
        Ok(Self {
            n: mean.n,
            mean: mean.mean,
            standard_deviation: mean.standard_deviation,
            half_width: mean.half_width,
            no_interval: mean
                .half_width
                .is_none()
                .then(|| "one run tells nothing about the spread between runs".into()),
        })
    }
}

/// A response of a treatment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResponseSummary {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// Mean over the runs that count.
    pub estimate: Option<Estimate>,
    /// Why there is no mean.
    pub no_estimate: Option<String>,
    /// One value per run, in order of replicates; excluded ones included and marked.
    pub values: Vec<RunValue>,
}

/// A response of one run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunValue {
    /// Which run.
    pub run: RunKey,
    /// Its value.
    pub value: f64,
    /// Far from the treatment's other values (modified z-score); it still counts.
    pub outlier: bool,
    /// Left out of the mean, because a check found the run invalid.
    pub excluded: bool,
}

/// A validity check that did not pass in some runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WarningSummary {
    /// The check's name.
    pub id: String,
    /// How bad.
    pub severity: Severity,
    /// The workload it is about; `None` = the whole run.
    pub workload: Option<String>,
    /// Runs in which it did not pass.
    pub runs: Vec<RunKey>,
    /// Finished runs of the study.
    pub of: usize,
    /// The message of the first of these runs.
    pub example: String,
    /// The figures behind that message.
    pub evidence: BTreeMap<String, f64>,
}

/// How evenly a workload's workers or clients were served.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FairnessSummary {
    /// The workload.
    pub workload: String,
    /// The group of workers; `None` when clients are compared.
    pub group: Option<String>,
    /// What is compared: `bytes per second` or `operations per second`.
    pub measure: &'static str,
    /// Workers or clients compared.
    pub members: usize,
    /// Jain's index, over runs: 1 = all alike, 1/members = one has all.
    pub jain: Estimate,
    /// Rate of each member, averaged over runs.
    pub rates: Vec<MemberRate>,
    /// The largest of these rates over the smallest; `None` when the smallest is 0.
    pub max_over_min: Option<f64>,
    /// Winners and losers among clients; `None` for workers, and when no run has any.
    pub clusters: Option<ClusterSummary>,
}

/// The rate of a worker or client.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemberRate {
    /// Its client.
    pub client: u32,
    /// Its number; `None` for a client as a whole.
    pub worker: Option<u32>,
    /// Bytes or operations per second while it was active.
    pub rate: f64,
}

/// Whether a run's numbers count: it did not fail, and no check found it invalid.
pub fn counts(run: &RunRecord) -> bool {
    run.failure.is_none() && !is_invalid(run)
}

/// Whether a check found the run invalid.
pub fn is_invalid(run: &RunRecord) -> bool {
    run.checks.iter().any(|c| c.severity == Severity::Invalid)
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
        treatments.push(summarize(results, treatment, &runs, &mut damage));
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

fn summarize(
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

/// The checks that did not pass, by name, severity and workload; the worst and most frequent first.
fn warnings(runs: &[RunRecord]) -> Vec<WarningSummary> {
    let mut all: Vec<WarningSummary> = Vec::new();
    for run in runs {
        for check in &run.checks {
            let same = |w: &&mut WarningSummary| {
                w.id == check.id && w.severity == check.severity && w.workload == check.workload
            };
            match all.iter_mut().find(same) {
                // A run counts once, however often the check fails in it.
                Some(warning) if warning.runs.last() == Some(&run.key) => {}
                Some(warning) => warning.runs.push(run.key),
                None => all.push(WarningSummary {
                    id: check.id.clone(),
                    severity: check.severity,
                    workload: check.workload.clone(),
                    runs: vec![run.key],
                    of: runs.len(),
                    example: check.message.clone(),
                    evidence: check.evidence.clone(),
                }),
            }
        }
    }
    all.sort_by_key(|w| (std::cmp::Reverse(w.severity), std::cmp::Reverse(w.runs.len())));
    all
}

/// Fairness over the workers of each group, and over clients where there are several.
fn fairness_of(runs: &[&RunRecord], confidence: f64) -> Vec<FairnessSummary> {
    let mut summaries = Vec::new();
    let mut workloads: Vec<&str> = Vec::new();
    for recording in runs.iter().flat_map(|r| &r.recordings) {
        if !workloads.contains(&recording.workload.as_str()) {
            workloads.push(&recording.workload);
        }
    }
    for workload in workloads {
        let recordings: Vec<_> =
            runs.iter().flat_map(|r| &r.recordings).filter(|r| r.workload == workload).collect();
        let moves_bytes = recordings.iter().flat_map(|r| &r.series).any(|s| s.total.bytes > 0);
        let mut groups: Vec<&str> = Vec::new();
        for worker in recordings.iter().flat_map(|r| &r.workers) {
            if !groups.contains(&worker.group.as_str()) {
                groups.push(&worker.group);
            }
        }
        // Groups do different things, so only clients, which do the same, are compared over all groups.
        let comparisons = groups.iter().map(|g| Some(*g)).chain([None]);
        for group in comparisons {
            let per_run: Vec<_> = recordings.iter().map(|r| member_rates(r, group, moves_bytes)).collect();
            summaries.extend(compare_members(workload, group, moves_bytes, &per_run, confidence));
        }
    }
    summaries
}

type Member = (u32, Option<u32>);

/// The rate of each worker of a group, or of each client when there is no group.
fn member_rates(recording: &Recording, group: Option<&str>, in_bytes: bool) -> BTreeMap<Member, f64> {
    let mut rates = BTreeMap::new();
    for worker in recording.workers.iter().filter(|w| group.is_none_or(|g| w.group == g)) {
        let member = (worker.client, group.map(|_| worker.worker));
        *rates.entry(member).or_insert(0.0) += worker_rate(worker, in_bytes);
    }
    rates
}

fn worker_rate(worker: &WorkerRecording, in_bytes: bool) -> f64 {
    let work: u64 = worker.series.iter().map(|s| if in_bytes { s.bytes } else { s.count }).sum();
    match worker.end_ns.saturating_sub(worker.start_ns) {
        0 => 0.0,
        active => work as f64 / (active as f64 / 1e9),
    }
}

fn compare_members(
    workload: &str,
    group: Option<&str>,
    in_bytes: bool,
    per_run: &[BTreeMap<Member, f64>],
    confidence: f64,
) -> Option<FairnessSummary> {
    let mut sums: BTreeMap<Member, (f64, usize)> = BTreeMap::new();
    for (member, rate) in per_run.iter().flatten() {
        let sum = sums.entry(*member).or_default();
        *sum = (sum.0 + rate, sum.1 + 1);
    }
    if sums.len() < 2 {
        return None;
    }
    let indices: Vec<f64> =
        per_run.iter().filter_map(|run| fairness::jain(&run.values().copied().collect::<Vec<_>>())).collect();
    let rates: Vec<_> = sums
        .into_iter()
        .map(|((client, worker), (sum, n))| MemberRate { client, worker, rate: sum / n as f64 })
        .collect();
    let (low, high) = rates.iter().fold((f64::INFINITY, 0.0f64), |(l, h), m| (l.min(m.rate), h.max(m.rate)));
    Some(FairnessSummary {
        workload: workload.into(),
        group: group.map(Into::into),
        measure: if in_bytes { "bytes per second" } else { "operations per second" },
        members: rates.len(),
        jain: Estimate::of(&indices, confidence).ok()?,
        rates,
        max_over_min: (low > 0.0).then(|| high / low),
        clusters: group.is_none().then(|| clusters::clusters(per_run)).flatten(),
    })
}

#[cfg(test)]
mod tests {
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
        assert_eq!(analysis.warnings[0].severity, Severity::Invalid);
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
