//! How closely together clients started.

use benchmaster_record::recording::{Recording, StartFacts};
use benchmaster_record::results::StudyResults;

use crate::runs::{Estimate, counts};
use crate::summary::Analysis;

/// The starts of all recordings with several clients, in runs that count.
#[derive(Debug, Clone, PartialEq)]
pub struct Starts {
    /// Fewest and most clients.
    pub clients: (u32, u32),
    /// Time between the first and the last client, in nanoseconds.
    pub spread: Estimate,
    pub largest_ns: u64,
    /// The largest uncertainty of a spread.
    pub bound_ns: u64,
}

/// `None` where no run had several clients.
pub fn starts(results: &StudyResults, analysis: &Analysis) -> Option<Starts> {
    let clients = |recording: &Recording| recording.agents.iter().map(|agent| agent.clients).sum::<u32>();
    let runs = || results.runs.iter().filter(|run| counts(run)).flat_map(|run| &run.recordings);
    let of_many = || runs().filter(|recording| clients(recording) > 1);
    let starts: Vec<StartFacts> = of_many().filter_map(|recording| recording.start).collect();
    let spreads: Vec<f64> = starts.iter().map(|start| start.spread_ns as f64).collect();
    Some(Starts {
        clients: (of_many().map(clients).min()?, of_many().map(clients).max()?),
        spread: Estimate::of(&spreads, analysis.confidence).ok()?,
        largest_ns: starts.iter().map(|start| start.spread_ns).max()?,
        bound_ns: starts.iter().map(|start| start.bound_ns).max()?,
    })
}
