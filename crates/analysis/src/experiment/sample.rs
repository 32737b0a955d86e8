//! Values without a model: one sample, or two groups.

use serde::Serialize;

use super::ranged::Ranged;

/// One sample of a response.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    pub n: usize,
    /// Values that are missing.
    pub missing: usize,
    /// Whether the logarithm was analysed: the mean is then the geometric one, and its intervals are those of the mean
    /// logarithm; standard deviation and standard error are of the natural logarithms.
    pub log: bool,
    pub mean: f64,
    /// Standard deviation; `None` for one value.
    pub standard_deviation: Option<f64>,
    /// Standard error of the mean.
    pub standard_error: Option<f64>,
    /// Interval of the mean: Student's, or where values resemble the ones before, one that takes that into account.
    pub interval: Option<[f64; 2]>,
    /// How values resemble the ones before; `None` when they look independent, or are fewer than 20.
    pub correlation: Option<SampleCorrelation>,
    /// Degrees of freedom of Student's interval.
    pub df: Option<u32>,
    /// Student's t of a mean of 0.
    pub t: Option<f64>,
    /// Its two-sided p value.
    pub p: Option<f64>,
    pub min: f64,
    pub max: f64,
    pub median: f64,
    /// Interval of the median by order statistics; `None` for fewer than 6 values at 95 %.
    pub median_interval: Option<[f64; 2]>,
    /// Bootstrap intervals of the mean; `None` for one value and for more than 20,000.
    pub bootstrap: Option<BootstrapSummary>,
    /// Bootstrap intervals of the median.
    pub bootstrap_median: Option<BootstrapSummary>,
    /// Where the values become steady, in their order (MSER-5); `None` for fewer than 50 values.
    pub steady: Option<Steady>,
    /// Changes of the level in the order of the values, when asked for.
    pub changes: Option<ChangesSummary>,
    /// The answer in words.
    pub sentences: Vec<String>,
}

/// Values that resemble the ones before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SampleCorrelation {
    /// Correlation of each value with the one before.
    pub lag_1: f64,
    /// Probability of as large a correlation of independent values.
    pub p: f64,
    /// Number of independent values that say as much about the mean.
    pub effective_n: f64,
    /// Student's interval, which takes values as independent.
    pub student_interval: Option<[f64; 2]>,
}

/// Intervals by resampling.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BootstrapSummary {
    pub resamples: usize,
    /// Mean of the resamples minus the estimate.
    pub bias: f64,
    /// Standard deviation of the resamples.
    pub standard_error: f64,
    pub percentile: [f64; 2],
    pub basic: [f64; 2],
    pub normal: [f64; 2],
    /// Bias-corrected and accelerated interval.
    pub bca: Option<[f64; 2]>,
    /// Bias correction z0 of that.
    pub bias_correction: Option<f64>,
    /// Acceleration of that.
    pub acceleration: Option<f64>,
    /// Whether there are enough values.
    pub reliable: bool,
}

/// Where a series becomes steady.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Steady {
    /// Whether it does, in its first half.
    pub steady: bool,
    /// Values before.
    pub cut: usize,
    /// The statistic that is smallest there.
    pub statistic: f64,
}

/// Changes of a level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangesSummary {
    /// The method: `e-divisive`.
    pub method: &'static str,
    pub permutations: usize,
    /// Change points in order.
    pub points: Vec<ChangeSummary>,
    /// The most likely further one, which is not significant.
    pub rejected: Option<ChangeSummary>,
}

/// A change of a level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ChangeSummary {
    /// First value after it, from 0.
    pub index: usize,
    pub p: f64,
    pub q: f64,
    /// Mean before, since the change before.
    pub mean_before: f64,
    /// Mean after, until the next change.
    pub mean_after: f64,
    /// The change relative to the mean before.
    pub relative: f64,
}

/// Two groups compared: the levels of the one factor there is. Differences are first minus second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TwoGroups {
    pub factor: String,
    pub first: Group,
    pub second: Group,
    /// Welch's t test; `None` for groups of one value or without variation.
    pub welch: Option<WelchSummary>,
    /// Ranks compared; `None` for more than 25 million pairs of runs.
    pub mann_whitney: Option<RankSummary>,
    /// Mean of the first over mean of the second by Fieller; the interval is missing where it is unbounded.
    pub ratio: Option<Ranged>,
    /// The same with a t quantile for each mean, as published (Kalibera & Jones 2013): wider with few runs.
    pub ratio_kalibera_jones: Option<Ranged>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    pub level: String,
    pub n: usize,
    pub mean: f64,
    /// Student's interval of the mean, from this group alone.
    pub interval: Option<[f64; 2]>,
    pub standard_deviation: Option<f64>,
    pub median: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WelchSummary {
    /// Mean of the first group minus mean of the second.
    pub difference: f64,
    /// Interval of that.
    pub interval: [f64; 2],
    pub t: f64,
    pub df: f64,
    /// Two-sided p value.
    pub p: f64,
}

/// A rank test and the shift that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankSummary {
    /// Mann and Whitney's U of the first group (R calls it W).
    pub u: f64,
    /// `exact` or `normal`.
    pub method: &'static str,
    /// Two-sided p value.
    pub p: f64,
    /// p value of the first group being larger.
    pub p_greater: f64,
    /// p value of the first group being smaller.
    pub p_less: f64,
    /// The smallest two-sided p value that this many runs can reach.
    pub smallest_p: f64,
    /// Hodges and Lehmann's shift: first minus second.
    pub shift: f64,
    pub shift_interval: [f64; 2],
    /// Probability with which such an interval covers the shift.
    pub shift_coverage: f64,
    /// Cliff's δ: how much more often a value of the first group is larger than smaller, −1 to 1.
    pub cliffs_delta: f64,
}
