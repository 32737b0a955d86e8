//! What a rule on counters of mounts is.

use super::observed::Observed;
use crate::diagnosis::Verdict;
use crate::finding::Finding;

/// Looks for one condition.
pub(crate) struct Detector {
    pub(crate) id: &'static str,
    pub(crate) detect: fn(&Observed) -> Verdict,
}

/// Looks for one condition in all mounts together.
pub(super) struct Comparison {
    pub(super) id: &'static str,
    pub(super) compare: fn(&[Observed]) -> Vec<Finding>,
}
