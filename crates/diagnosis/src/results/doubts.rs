//! Results that are not what they seem to be.

mod acknowledged;
mod behind_schedule;
mod course_of_study;
mod failed;
pub(crate) mod noisy_host;
pub(crate) mod not_steady;
mod sessions;
mod uncommitted;

use crate::results::rule::{Comparison, Detector};

/// What is looked for in each workload of each run.
pub(super) const DETECTORS: &[Detector] =
    &[acknowledged::DETECTOR, behind_schedule::DETECTOR, uncommitted::DETECTOR];

/// What is looked for in all runs together.
pub(super) const COMPARISONS: &[Comparison] =
    &[failed::CORRUPT, failed::FAILED, course_of_study::DRIFT, course_of_study::OUTLIER, sessions::DETECTOR];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::Verdict;
    use crate::results::testing::Made;

    #[test]
    fn a_healthy_run_gives_no_doubt() {
        for made in
            [Made::new(), Made::new().reading(), Made::served(), Made::spread(), Made::spread().reading()]
        {
            for detector in DETECTORS {
                let verdict = made.verdict(detector);
                assert!(!matches!(verdict, Verdict::Found(_)), "{}: {verdict:?}", detector.id);
            }
        }
    }
}
