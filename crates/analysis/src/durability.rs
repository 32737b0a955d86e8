//! What results are worth after a failure of the server.

use benchmaster_record::results::StudyResults;
use benchmaster_record::witness::Durability;

use crate::runs::counts;

/// The worst that the runs that count of a treatment say, of one workload or of all; without a witness nothing was tested.
pub fn durability(results: &StudyResults, treatment: u32, workload: Option<&str>) -> Durability {
    let runs = results.runs.iter().filter(|run| run.key.treatment == treatment && counts(run));
    let recordings = runs.flat_map(|run| &run.recordings);
    let asked = recordings.filter(|recording| workload.is_none_or(|name| recording.workload == name));
    let told = asked.filter_map(|recording| recording.witness.as_ref());
    told.map(|witness| witness.durability()).max().unwrap_or(Durability::Untested)
}
