//! Which runs count, and the mean over them.

use benchmaster_record::results::{RunRecord, Severity};
use benchmaster_stats::{StatsError, interval};
use serde::Serialize;

/// Whether a run's numbers count: it did not fail, and no check found it invalid.
pub fn counts(run: &RunRecord) -> bool {
    run.failure.is_none() && !is_invalid(run)
}

/// Whether a check found the run invalid.
pub fn is_invalid(run: &RunRecord) -> bool {
    run.checks.iter().any(|c| c.severity == Severity::Invalid)
}

/// A mean with its uncertainty, or with the reason why that is not known.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    pub n: usize,
    pub mean: f64,
    /// `None` for a single value.
    pub standard_deviation: Option<f64>,
    /// Half width of the Student-t interval of the mean.
    pub half_width: Option<f64>,
    /// Why there is no interval.
    pub no_interval: Option<String>,
}

impl Estimate {
    /// The mean of values, one per run, with its interval.
    ///
    /// # Errors
    /// Without values, with values that are not finite, and with a confidence level that is not one.
    pub fn of(values: &[f64], confidence: f64) -> Result<Self, StatsError> {
        let mean = interval::mean_interval(values, confidence)?;
        Ok(Self {
            n: mean.n,
            mean: mean.mean,
            standard_deviation: mean.standard_deviation,
            half_width: mean.half_width,
            no_interval: mean
                .half_width
                .is_none()
                .then(|| "one run tells nothing about the spread between runs".into()),
        })
    }
}
