//! Findings from the stored results of a study: of every run, and of all runs together.
//!
//! A detector of runs looks at one workload of one run; what it finds in several runs becomes one finding, with means over
//! runs. A detector of studies looks at all runs together, without their samples, which may be larger than memory.

mod conditions;
mod doubts;
mod limits;
mod measured;
mod merge;
mod phenomena;
mod slope;
mod stored;
#[cfg(test)]
mod testing;

use benchmaster_analysis::{Analysis, analyze};
use benchmaster_store::record::{Check, RunRecord, Severity, StudyResults};
use benchmaster_study::plan::Plan;
use benchmaster_workload::recording::TraceRecord;

use crate::diagnosis::{Absent, Diagnosis, Verdict};
use crate::explanation::Explanation;
use crate::finding::Finding;

pub use self::measured::Measured;
use self::merge::Merge;
pub(crate) use self::stored::finding_of_check;

/// Where the details of runs come from: what is too large to be held for all runs at once.
pub trait Details {
    /// Hands the trace of a workload of a run to `take`, batch by batch. `None` when there is none; `Some(Err)` with the
    /// reason when it cannot be read.
    fn trace(
        &self,
        run: &RunRecord,
        workload: &str,
        take: &mut dyn FnMut(&[TraceRecord]),
    ) -> Option<Result<(), String>>;

    /// The run with its samples and collected outputs. `None` when there is nothing more than `run` has.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    fn whole(&self, run: &RunRecord) -> Result<Option<RunRecord>, String> {
        let _ = run;
        Ok(None)
    }
}

/// All runs of a study together.
#[derive(Debug, Clone, Copy)]
pub struct Whole<'a> {
    /// What was stored.
    pub results: &'a StudyResults,
    /// What the numbers say.
    pub analysis: &'a Analysis,
    /// What was asked for; `None` when this version of the program cannot read the stored study file.
    pub plan: Option<&'a Plan>,
}

/// Looks for one condition in a workload of a run.
struct Detector {
    explanation: &'static Explanation,
    detect: fn(&Measured<'_>) -> Verdict,
}

/// Looks for one condition in all runs together.
struct Comparison {
    explanation: &'static Explanation,
    compare: fn(&Whole<'_>) -> Compared,
}

/// What a comparison says: nothing found and nothing unknown is clear.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    found: Vec<Finding>,
    /// What it would need, and what would give it.
    unknown: Option<String>,
    /// There is nothing of the kind to compare.
    irrelevant: bool,
}

fn detectors() -> impl Iterator<Item = &'static Detector> {
    limits::DETECTORS.iter().chain(doubts::DETECTORS).chain(phenomena::DETECTORS).chain(conditions::DETECTORS)
}

fn comparisons() -> impl Iterator<Item = &'static Comparison> {
    limits::COMPARISONS
        .iter()
        .chain(doubts::COMPARISONS)
        .chain(phenomena::COMPARISONS)
        .chain(conditions::COMPARISONS)
}

/// What can be found.
pub(crate) fn explanations() -> impl Iterator<Item = &'static Explanation> {
    let of_runs = detectors().map(|detector| detector.explanation);
    of_runs
        .chain(comparisons().map(|comparison| comparison.explanation))
        .chain(limits::EXPLANATIONS.iter().copied())
}

/// What results say, and what is found in them.
pub fn found(results: &StudyResults, details: &dyn Details) -> (Analysis, Diagnosis) {
    let analysis = analyze(results);
    let diagnosis = diagnose(results, &analysis, details);
    (analysis, diagnosis)
}

/// Looks for everything that can be found. Of runs that failed only why is a finding, if their checks say it: their numbers are of
/// a part of the run.
pub fn diagnose(results: &StudyResults, analysis: &Analysis, details: &dyn Details) -> Diagnosis {
    let mut diagnosis = Diagnosis::default();
    let plan = match Plan::of_results(&results.study) {
        Ok(plan) => Some(plan),
        Err(error) => {
            diagnosis.damage.push(format!("what the study asked for is not known: {error}"));
            None
        }
    };
    let mut merge = Merge::default();
    for run in &results.runs {
        let read = details.whole(run).unwrap_or_else(|why| {
            let shown = format!("treatment {}, replicate {}", run.key.treatment, run.key.replicate + 1);
            diagnosis.damage.push(format!("samples of {shown} cannot be read: {why}"));
            None
        });
        let run = read.as_ref().unwrap_or(run);
        for recording in &run.recordings {
            let measured = Measured::new(results, plan.as_ref(), run, recording, details);
            for detector in
                detectors().filter(|detector| !fails_for_another_reason(run, detector.explanation))
            {
                merge.add(detector.explanation, &measured, (detector.detect)(&measured));
            }
        }
    }
    merge.finish(results, &mut diagnosis);
    let whole = Whole { results, analysis, plan: plan.as_ref() };
    for Comparison { explanation, compare } in comparisons() {
        let Compared { found, unknown, irrelevant } = compare(&whole);
        if found.is_empty() && unknown.is_none() && !irrelevant {
            diagnosis.clear.push(explanation.id);
        }
        diagnosis.findings.extend(found);
        let place = "all runs".to_owned();
        diagnosis.absent.extend(unknown.map(|why| Absent { id: explanation.id, place, why }));
    }
    diagnosis.sort();
    limits::choose(&whole, &mut diagnosis);
    diagnosis
}

/// Whether a run failed, and no check of it that makes it invalid is of this condition.
fn fails_for_another_reason(run: &RunRecord, explanation: &Explanation) -> bool {
    let is_why =
        |check: &Check| check.severity == Severity::Invalid && finding_of_check(&check.id) == explanation.id;
    run.failure.is_some() && !run.checks.iter().any(is_why)
}

/// Whether a check of this name was stored with the run for this workload, or the whole run.
pub(crate) fn check<'a>(measured: &'a Measured<'_>, id: &str) -> Option<&'a Check> {
    measured.run.checks.iter().find(|check| {
        check.id == id
            && check.workload.as_ref().is_none_or(|workload| *workload == measured.recording.workload)
    })
}

/// What a treatment is called: its label, or its number where the study does not know it.
fn label(results: &StudyResults, treatment: u32) -> String {
    let record = results.study.treatments.get(treatment as usize);
    record.map_or_else(|| treatment.to_string(), |record| record.label.clone())
}
