//! Findings from the stored results of a study: of every run, and of all runs together.
//!
//! A detector of runs looks at one workload of one run; what it finds in several runs becomes one finding, with means over
//! runs. A detector of studies looks at all runs together, without their samples, which may be larger than memory.

pub(crate) mod account;
pub(crate) mod conditions;
pub(crate) mod doubts;
pub(crate) mod limits;
mod link;
mod merge;
pub(crate) mod phenomena;
pub(crate) mod rule;
mod slope;
mod slow;
#[cfg(test)]
pub(crate) mod testing;

use std::collections::BTreeMap;

use benchmaster_analysis::{Analysis, analyze};
use benchmaster_record::results::{Check, RunRecord, Severity, StudyResults};

use crate::diagnosis::{Absent, Diagnosis};

use self::account::Account;
pub use self::account::Part;
use self::merge::Merge;
pub use self::rule::Whole;
use self::rule::{Compared, Comparison, Detector, Judge};
pub use crate::details::Details;
pub use crate::measured::Measured;
use crate::validity;

/// What is looked for in each workload of each run: limits first, then what the validity checks found.
fn judges() -> impl Iterator<Item = &'static dyn Judge> {
    let detectors =
        |all: &'static [Detector]| all.iter().map(|detector: &'static Detector| detector as &dyn Judge);
    detectors(limits::DETECTORS)
        .chain(validity::rules().map(|rule| rule as &dyn Judge))
        .chain(detectors(doubts::DETECTORS))
        .chain(detectors(phenomena::DETECTORS))
        .chain(detectors(conditions::DETECTORS))
}

fn comparisons() -> impl Iterator<Item = &'static Comparison> {
    limits::COMPARISONS
        .iter()
        .chain(doubts::COMPARISONS)
        .chain(phenomena::COMPARISONS)
        .chain(conditions::COMPARISONS)
}

/// What can be found, by name.
#[cfg(test)]
pub(crate) fn ids() -> impl Iterator<Item = &'static str> {
    let compared = comparisons().map(|comparison| comparison.id);
    judges().map(Judge::id).chain(compared).chain([limits::choice::ID])
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
    let mut merge = Merge::default();
    let mut accounts: BTreeMap<(String, u32), Vec<Account>> = BTreeMap::new();
    for run in &results.runs {
        let read = details.whole(run).unwrap_or_else(|why| {
            let shown = format!("treatment {}, replicate {}", run.key.treatment, run.key.replicate + 1);
            diagnosis.damage.push(format!("samples of {shown} cannot be read: {why}"));
            None
        });
        let run = read.as_ref().unwrap_or(run);
        for recording in &run.recordings {
            let measured = Measured::new(results, run, recording, details);
            if let (None, Some(account)) = (&run.failure, Account::of(&measured)) {
                accounts.entry((recording.workload.clone(), run.key.treatment)).or_default().push(account);
            }
            for judge in judges().filter(|judge| !fails_for_another_reason(run, judge.id())) {
                merge.add(judge.id(), &measured, judge.judge(&measured));
            }
        }
    }
    merge.finish(results, &mut diagnosis);
    let whole = Whole { results, analysis };
    for Comparison { id, compare } in comparisons() {
        let Compared { found, unknown, irrelevant } = compare(&whole);
        if found.is_empty() && unknown.is_none() && !irrelevant {
            diagnosis.clear.push(id);
        }
        diagnosis.findings.extend(found.into_iter().map(|finding| {
            let setup = rule::setup(results, &finding);
            finding.of(id, setup.as_ref())
        }));
        let place = "all runs".to_owned();
        diagnosis.absent.extend(unknown.map(|why| Absent { id, place, why }));
    }
    diagnosis.sort();
    limits::choice::choose(&whole, &mut diagnosis);
    for limiting in &mut diagnosis.limits {
        let of_runs = accounts.get(&(limiting.workload.clone(), limiting.treatment));
        limiting.account = of_runs.map(|of_runs| account::shares(of_runs)).unwrap_or_default();
    }
    let of_all_runs: Vec<&str> = comparisons().map(|comparison| comparison.id).collect();
    merge::over_workloads(&mut diagnosis.findings, &of_all_runs);
    diagnosis
}

/// Whether a run failed, and no check of it that makes it invalid is of this condition.
fn fails_for_another_reason(run: &RunRecord, id: &str) -> bool {
    let is_why = |check: &Check| check.severity == Severity::Invalid && validity::rule(check.kind).id() == id;
    run.failure.is_some() && !run.checks.iter().any(is_why)
}
