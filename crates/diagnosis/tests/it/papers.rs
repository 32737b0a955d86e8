//! The numbers that papers print lead to what the papers say of them, and to nothing else with a name.

use benchmaster_analysis::analyze;
use benchmaster_diagnosis::catalogue::explain;
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::explanation::Group;
use benchmaster_diagnosis::finding::Finding;
use benchmaster_diagnosis::results::{Details, diagnose};
use benchmaster_record::results::StudyResults;

mod adversary;
mod evidence;
mod made;
mod paper000;
mod paper001;
mod paper002;
mod paper003;
mod unequal;

/// What is found in results.
fn found(results: &StudyResults, details: &dyn Details) -> Diagnosis {
    let results = &made::with_parameters(results);
    diagnose(results, &analyze(results), details)
}

/// The names of the phenomena that are found, in alphabetical order.
fn phenomena(results: &StudyResults, details: &dyn Details) -> Vec<&'static str> {
    named(&found(results, details))
}

fn named(diagnosis: &Diagnosis) -> Vec<&'static str> {
    let is = |finding: &&Finding| {
        explain(finding.id).is_some_and(|explanation| explanation.group == Group::Phenomenon)
    };
    let mut names: Vec<_> = diagnosis.findings.iter().filter(is).map(|finding| finding.id).collect();
    names.sort_unstable();
    names
}

/// The one finding of this name.
fn one<'a>(diagnosis: &'a Diagnosis, id: &str) -> &'a Finding {
    let mut found = diagnosis.findings.iter().filter(|finding| finding.id == id);
    match (found.next(), found.next()) {
        (Some(finding), None) => finding,
        (None, _) => {
            panic!("no {id} in {:?}", diagnosis.findings.iter().map(|finding| finding.id).collect::<Vec<_>>())
        }
        _ => panic!("{id} twice"),
    }
}
