//! Runs to add to a study, and why none can be chosen.

use benchmaster_record::results::StageKind;
use benchmaster_stats::StatsError;
use thiserror::Error;

/// How often runs are added to separate effects, and how often to make them precise: what is unresolved then is reported.
pub(super) const MOST_ROUNDS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addition {
    pub kind: StageKind,
    /// Why they are needed, for people.
    pub reason: String,
    /// The treatments, each by the number of every factor's level; those that were run already are run again.
    pub rows: Vec<Vec<u32>>,
    /// How often each is run.
    pub replicates: u32,
}

/// Why there is no next step.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum AdaptiveError {
    #[error("the study has no factors, so there is nothing to screen; add [factors]")]
    NoFactors,
    #[error(
        "no run of the study has a value of {response} that counts, so nothing can be decided; look at the failures"
    )]
    NoRuns { response: String },
    /// The statistics refuse the data.
    #[error(transparent)]
    Stats(#[from] StatsError),
}
