//! Why a fleet could not do something.

use crate::launch::LaunchError;
use crate::merge::MergeError;
use crate::protocol::FailureKind;

/// Why a fleet could not do something.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    #[error("{0}")]
    Config(
        /// Why, and what helps.
        String,
    ),
    /// An agent could not be started, or is not one for us.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// An agent died, hangs or cannot be reached any more: the fleet is of no use for another run.
    #[error("agent `{agent}` was lost: {reason}")]
    Lost {
        /// Its name in the study.
        agent: String,
        /// How it ended, and its last words.
        reason: String,
    },
    /// What an agent was asked to do failed there.
    #[error("agent `{agent}`: {text}")]
    Job {
        /// Its name in the study.
        agent: String,
        text: String,
        kind: FailureKind,
    },
    /// The recordings of the agents are not of one workload.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// The trace could not be written.
    #[error("the trace could not be written: {0}")]
    Trace(#[source] std::io::Error),
    /// The controller's own resources.
    #[error("the controller cannot run: {0}")]
    Controller(#[source] std::io::Error),
    #[error("the run was stopped")]
    Stopped,
}
