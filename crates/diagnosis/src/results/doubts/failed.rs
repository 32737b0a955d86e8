//! Runs that failed as a whole: wrong data, lost clients, errors of set-up.

use std::collections::BTreeMap;

use benchmaster_record::results::RunKey;

use crate::prelude::*;
use crate::results::rule::label;
use crate::validity::data::wrong_data;

pub(super) const CORRUPT: Comparison = Comparison { id: "corruption", compare: corrupt };

fn is_corrupt(run: &RunRecord) -> bool {
    run.checks.iter().any(|check| check.kind == CheckKind::Corruption && check.severity == Severity::Invalid)
        || run.recordings.iter().any(|recording| recording.corruption.is_some())
}

/// Runs with wrong data have failed, and no detector of runs sees them.
fn corrupt(whole: &Whole<'_>) -> Compared {
    let runs: Vec<&RunRecord> = whole.results.runs.iter().filter(|run| is_corrupt(run)).collect();
    let Some(first) = runs.first() else {
        let verified =
            whole.results.runs.iter().flat_map(|run| &run.recordings).any(|one| one.verified_bytes.is_some());
        return Compared::nothing(verified);
    };
    let recording = first.recordings.iter().find(|recording| recording.corruption.is_some());
    let check = first.checks.iter().find(|check| check.kind == CheckKind::Corruption);
    let what = match (check, recording.and_then(|recording| recording.corruption.as_deref())) {
        (Some(check), _) => check.message.clone(),
        (None, Some(corruption)) => wrong_data(corruption),
        (None, None) => "Wrong data were read.".into(),
    };
    let mut finding = Finding::new(Confidence::Certain, what)
        .with([Evidence::number("runs in which wrong data were read", runs.len() as f64)])
        .costs(1.0);
    finding.place = format!("{} of {}", runs.len(), plural(whole.results.runs.len(), "run"));
    finding.at = Some(at(whole, &runs, recording.map(|recording| recording.workload.clone())));
    Compared::found(vec![finding])
}

/// These runs, by treatment.
fn at(whole: &Whole<'_>, runs: &[&RunRecord], workload: Option<String>) -> At {
    let mut treatments: BTreeMap<u32, Vec<RunKey>> = BTreeMap::new();
    for run in runs {
        treatments.entry(run.key.treatment).or_default().push(run.key);
    }
    let of = |treatment: u32| whole.results.runs.iter().filter(|run| run.key.treatment == treatment).count();
    let places = treatments.into_iter().map(|(treatment, runs)| AtTreatment {
        treatment,
        label: label(whole.results, treatment),
        runs,
        of: of(treatment),
        cost: None,
    });
    At { workload, treatments: places.collect(), shown: runs.first().map(|run| run.key), ..At::default() }
}

pub(super) const FAILED: Comparison = Comparison { id: "failed-runs", compare: failed };

fn failed(whole: &Whole<'_>) -> Compared {
    let runs = &whole.results.runs;
    let failed: Vec<&RunRecord> =
        runs.iter().filter(|run| run.failure.is_some() && !is_corrupt(run)).collect();
    let retried: Vec<&RunRecord> =
        runs.iter().filter(|run| run.failure.is_none() && !run.retries.is_empty()).collect();
    let lost: usize = runs.iter().map(|run| run.retries.len()).sum();
    let (what, concerned) = match (failed.first(), retried.first()) {
        (None, None) => return Compared::default(),
        (Some(first), _) => {
            let reason = first.failure.as_deref().unwrap_or_default().trim_end_matches('.');
            let again = if lost > 0 {
                format!(" {} before them failed as well.", plural(lost, "attempt"))
            } else {
                String::new()
            };
            (
                format!(
                    "{} of {} failed. The first: {reason}.{again}",
                    failed.len(),
                    plural(runs.len(), "run")
                ),
                failed.clone(),
            )
        }
        (None, Some(first)) => {
            let reason = first.retries.first().map_or("", |retry| retry.reason.trim_end_matches('.'));
            let agent = first.retries.first().and_then(|retry| retry.agent.as_deref());
            let agent = agent.map_or(String::new(), |agent| format!(" ({agent})"));
            let what = format!(
                "{} had to be repeated: the first time {reason}{agent}.",
                plural(retried.len(), "run")
            );
            (what, retried.clone())
        }
    };
    let mut finding = Finding::new(Confidence::Certain, what).with([
        Evidence::number("runs that failed", failed.len() as f64),
        Evidence::number("attempts that failed before", lost as f64),
    ]);
    if !failed.is_empty() {
        finding = finding.costs(failed.len() as f64 / runs.len() as f64);
    }
    finding.place = format!("{} of {}", concerned.len(), plural(runs.len(), "run"));
    finding.at = Some(at(whole, &concerned, None));
    Compared::found(vec![finding])
}

#[cfg(test)]
mod tests {
    use benchmaster_analysis::analyze;
    use benchmaster_record::results::RetryRecord;
    use benchmaster_testkit::{fail, study_results};

    use super::*;

    fn looked(results: &StudyResults, compare: fn(&Whole<'_>) -> Compared) -> Compared {
        compare(&Whole { results, analysis: &analyze(results) })
    }

    #[test]
    fn runs_that_failed_are_told_with_the_first_reason() {
        let mut results = study_results(1, 2, 3);
        assert!(looked(&results, failed).found.is_empty());
        fail(&mut results.runs[2], "workload `read`: c2 gave no sign of life for 5 s");
        let found = looked(&results, failed).found;
        assert!(
            found[0].what.starts_with("1 of 6 runs failed. The first: workload `read`"),
            "{}",
            found[0].what
        );
        assert!((found[0].cost.as_ref().unwrap().share - 1.0 / 6.0).abs() < 1e-9);
        assert!(looked(&results, corrupt).found.is_empty());
    }

    #[test]
    fn a_run_that_was_repeated_is_told_without_a_cost() {
        let mut results = study_results(1, 1, 2);
        let retry = RetryRecord {
            started: results.runs[0].started,
            elapsed_ns: 1,
            agent: Some("c2".into()),
            reason: "no sign of life for 5 s".into(),
        };
        results.runs[0].retries.push(retry);
        let found = looked(&results, failed).found;
        assert_eq!(found[0].what, "1 run had to be repeated: the first time no sign of life for 5 s (c2).");
        assert_eq!(found[0].cost, None);
    }

    #[test]
    fn wrong_data_are_found_in_runs_that_failed_by_them() {
        let mut results = study_results(1, 2, 2);
        fail(&mut results.runs[1], "workload `read`: wrong data were read");
        results.runs[1].recordings[0].corruption = Some("file 3 at 4096: 0x17 where 0x71 belongs".into());
        let found = looked(&results, corrupt).found;
        assert_eq!((found.len(), CORRUPT.id), (1, "corruption"));
        assert!(found[0].what.contains("0x17"), "{}", found[0].what);
        assert!(looked(&results, failed).found.is_empty());
        let mut results = study_results(1, 1, 1);
        results.runs[0].recordings.iter_mut().for_each(|recording| recording.verified_bytes = None);
        assert!(looked(&results, corrupt).irrelevant);
    }
}
