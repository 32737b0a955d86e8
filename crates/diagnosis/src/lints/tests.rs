use benchmaster_analysis::analyze;
use benchmaster_record::results::{NetworkRecord, Response, StudyResults, Unit};
use benchmaster_testkit::{fail, serve, spread, study_results};

use super::*;

/// Treatments that are drawn.
const DRAWN: usize = 120;

fn all(results: &StudyResults) -> Vec<Lint> {
    lints(&Whole { results, analysis: &analyze(results) }, DRAWN)
}

fn outcome(results: &StudyResults, number: usize) -> Outcome {
    all(results)[number - 1].outcome.clone()
}

fn broken(results: &StudyResults, number: usize) -> bool {
    matches!(outcome(results, number), Outcome::Broken(_))
}

/// Two runs with a response of their own.
fn with_values(name: &str, unit: Unit, values: [f64; 2]) -> StudyResults {
    let mut results = study_results(1, 1, 2);
    for (run, value) in results.runs.iter_mut().zip(values) {
        run.responses.push(Response { name: name.into(), value, unit });
    }
    results
}

#[test]
fn there_are_twelve_and_each_says_how_or_where() {
    for results in [study_results(7, 4, 5), study_results(1, 1, 1), {
        let mut none = study_results(1, 2, 2);
        none.runs.clear();
        none.sessions.clear();
        none
    }] {
        let all = all(&results);
        assert_eq!(all.iter().map(|lint| lint.number).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>());
        assert!(all.iter().all(|lint| lint.outcome.text().len() > 10), "{all:?}");
    }
}

#[test]
fn one_run_has_no_interval_and_cannot_be_compared() {
    let one = study_results(7, 1, 1);
    assert!(broken(&one, 5) && broken(&one, 6));
    assert!(matches!(outcome(&one, 7), Outcome::NotNeeded(_)));
    let many = study_results(7, 4, 5);
    assert!(!broken(&many, 5) && !broken(&many, 7));
    assert!(broken(&study_results(7, 2, 1), 5));
}

#[test]
fn rates_of_runs_of_equal_work_are_held_against_their_harmonic_mean() {
    let name = "write.extra";
    let mut near = with_values(name, Unit::OperationsPerSecond, [100.0, 101.0]);
    let mut far = with_values(name, Unit::OperationsPerSecond, [100.0, 101.0]);
    for results in [&mut near, &mut far] {
        results.runs.iter_mut().flat_map(|run| &mut run.recordings).for_each(|r| r.timed = false);
    }
    assert!(!broken(&near, 3));
    // With many runs the interval is narrow, so that the kind of mean matters.
    let one = far.runs[0].clone();
    far.runs = (0..200)
        .map(|replicate| {
            let mut run = one.clone();
            run.key.replicate = replicate;
            run.responses.retain(|response| response.name != name);
            let value = if replicate % 2 == 0 { 10.0 } else { 90.0 };
            run.responses.push(Response { name: name.into(), value, unit: Unit::OperationsPerSecond });
            run
        })
        .collect();
    let Outcome::Broken(text) = outcome(&far, 3) else { panic!("not seen") };
    assert!(text.contains("arithmetic mean 50.00 ops/s, harmonic mean 18.00 ops/s"), "{text}");
    // Runs of equal length may be averaged.
    far.runs.iter_mut().flat_map(|run| &mut run.recordings).for_each(|r| r.timed = true);
    assert!(!broken(&far, 3));
}

#[test]
fn means_of_ratios_are_held_against_geometric_ones() {
    assert!(!broken(&with_values("write.share", Unit::Ratio, [0.5, 0.51]), 4));
    let mut far = with_values("write.share", Unit::Ratio, [0.5, 0.5]);
    let one = far.runs[0].clone();
    far.runs = (0..200)
        .map(|replicate| {
            let mut run = one.clone();
            run.key.replicate = replicate;
            if let Some(last) = run.responses.last_mut() {
                last.value = if replicate % 2 == 0 { 0.01 } else { 1.0 };
            }
            run
        })
        .collect();
    assert!(broken(&far, 4));
}

#[test]
#[ignore = "full tier: thousands of treatments"]
fn what_is_missing_is_reported() {
    let mut results = study_results(7, 2, 3);
    assert!(broken(&results, 11), "a directory has no bound");
    serve(&mut results);
    spread(&mut results);
    assert!(!broken(&results, 11) && !broken(&results, 10), "{:?}", all(&results));
    results.baselines.clear();
    for run in &mut results.runs {
        if let Some(service) = &mut run.service {
            service.network = NetworkRecord::default();
        }
    }
    assert!(broken(&results, 11));
    assert!(!broken(&results, 9));
    results.sessions[0].environment.clear();
    assert!(broken(&results, 9));
    fail(&mut results.runs[0], "gone");
    assert!(matches!(outcome(&results, 2), Outcome::Held(text) if text.contains("left out")));
    results.runs.truncate(2);
    results.sessions.iter_mut().for_each(|session| session.ended = None);
    assert!(broken(&results, 2));
    assert!(broken(&study_results(7, 500, 1), 12));
}
