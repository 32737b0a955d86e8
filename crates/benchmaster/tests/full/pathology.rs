//! Diagnosis measured like a medical test: conditions are planted in studies that are really run, and it is counted what is
//! found of them, what is found beside them, and what is found where nothing is planted.
//!
//! The full tier of the tests runs a quick subset; `just pathology` all of it, which takes half an hour, and writes the confusion
//! matrix. Environment variables:
//!
//! * `BENCHMASTER_PATHOLOGY=all`: everything, with the matrix; arguments are parts of names of scenarios.
//! * `BENCHMASTER_PATHOLOGY_PLACE`: where results are kept; what is there already is diagnosed and not run again.
//! * `BENCHMASTER_PATHOLOGY_RUNNER`: another program that runs the studies.
//! * `UPDATE_PATHOLOGY=1`: the figures of `docs/diagnose.md` are written anew.

mod matrix;
pub(crate) mod scenario;
pub(crate) mod trial;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::{Failed, Trial};

use self::matrix::Matrix;
use self::scenario::{Needs, Scenario};
use self::trial::{missing, trial};

fn scenarios() -> Vec<Scenario> {
    scenario::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/full/pathology/scenarios"))
}

/// Everything, if it is asked for.
pub(crate) fn all() -> Option<ExitCode> {
    let asked = std::env::var("BENCHMASTER_PATHOLOGY").ok()?;
    assert_eq!(asked, "all", "the value of BENCHMASTER_PATHOLOGY");
    Some(measured(&scenarios(), &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/diagnose.md")))
}

/// One case of each scenario that takes a second and does not mind a busy host.
pub(crate) fn quick() -> Vec<Trial> {
    let place = Arc::new(tempfile::tempdir().unwrap());
    let test = |scenario: Scenario| {
        let place = Arc::clone(&place);
        Trial::test(format!("pathology_{}", scenario.name), move || one(&scenario, place.path()))
    };
    scenarios().into_iter().filter(|scenario| scenario.quick).map(test).collect()
}

/// What is planted is found; where nothing is, nothing is found.
fn one(scenario: &Scenario, place: &Path) -> Result<(), Failed> {
    if let Some(why) = missing(scenario.needs) {
        println!("skipped: {}: {why}", scenario.name);
        return Ok(());
    }
    let case = scenario.cases().next().ok_or("a scenario without a case")?;
    let outcome = trial(&case, place)?;
    let wrong: Vec<&str> = outcome.wrong(&case).collect();
    if scenario.is_clean() && !wrong.is_empty() {
        return Err(format!("{} in a clean control", wrong.join(", ")).into());
    }
    if !scenario.is_clean() && !outcome.hit(&case) {
        let found: Vec<&String> = outcome.found.keys().collect();
        return Err(
            format!("{:?} was planted ({}), and {found:?} found", scenario.finds, scenario.planted).into()
        );
    }
    Ok(())
}

fn measured(scenarios: &[Scenario], document: &Path) -> ExitCode {
    let kept = std::env::var_os("BENCHMASTER_PATHOLOGY_PLACE").map(PathBuf::from);
    let made = tempfile::tempdir().unwrap();
    let place = kept.as_deref().unwrap_or(made.path());
    let parts: Vec<String> = std::env::args().skip(1).filter(|part| !part.starts_with('-')).collect();
    let chosen = |one: &&Scenario| parts.is_empty() || parts.iter().any(|part| one.name.contains(&**part));
    let mut can: BTreeMap<String, Option<String>> = BTreeMap::new();
    let mut why_not =
        |needs: Needs| can.entry(format!("{needs:?}")).or_insert_with(|| missing(needs)).clone();
    let mut matrix = Matrix::default();
    for scenario in scenarios.iter().filter(chosen) {
        if let Some(why) = why_not(scenario.needs) {
            matrix.skipped.push((scenario.name.clone(), why));
            continue;
        }
        for case in scenario.cases() {
            match trial(&case, place) {
                Ok(outcome) => {
                    let foreign =
                        outcome.foreign.map_or(String::new(), |n| format!(", others use {n:.1} CPUs"));
                    eprintln!(
                        "{}: {} runs{foreign}; found {:?}",
                        case.name(),
                        outcome.runs,
                        outcome.found.keys().collect::<Vec<_>>()
                    );
                    matrix.outcomes.push((case, outcome));
                }
                Err(why) => {
                    eprintln!("{}: failed: {why}", case.name());
                    matrix.failed.push((case.name(), why));
                }
            }
        }
    }
    println!("{}", matrix.text());
    println!("{}", matrix.csv());
    let whole = parts.is_empty() && matrix.failed.is_empty() && matrix.skipped.is_empty();
    if whole && std::env::var_os("UPDATE_PATHOLOGY").is_some() {
        crate::update(document, "just pathology", &matrix.markdown());
    }
    let reached = matrix.sensitivity().share() >= 0.95
        && matrix.false_alarms().share() <= 0.02
        && matrix.not_crowded().share() >= 1.0;
    if reached && matrix.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
