//! Confidence intervals of a mean, of the difference of two means, and of a median.

use statrs::function::factorial::ln_binomial;

use crate::descriptive::{mean, median_of_sorted, sorted, standard_deviation};
use crate::error::{StatsError, check_confidence, check_values};
use crate::quantile::{t_quantile, t_two_sided_p};

/// A mean with its Student-t confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeanInterval {
    /// Number of values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation of the sample; `None` for one value.
    pub standard_deviation: Option<f64>,
    /// Half the width of the interval; `None` for one value, which has no interval.
    pub half_width: Option<f64>,
    /// Confidence level, such as 0.95.
    pub confidence: f64,
}

impl MeanInterval {
    /// Half width divided by the absolute mean. `None` without an interval, and when the mean is 0 but the values vary.
    pub fn relative_half_width(&self) -> Option<f64> {
        match self.half_width? {
            0.0 => Some(0.0),
            half_width => Some(half_width / self.mean.abs()).filter(|r| r.is_finite()),
        }
    }

    /// Lower end of the interval.
    pub fn lower(&self) -> Option<f64> {
        Some(self.mean - self.half_width?)
    }

    /// Upper end of the interval.
    pub fn upper(&self) -> Option<f64> {
        Some(self.mean + self.half_width?)
    }
}

/// The mean of independent values and its Student-t interval. One value has a mean, but no deviation and no interval.
pub fn mean_interval(values: &[f64], confidence: f64) -> Result<MeanInterval, StatsError> {
    const WHAT: &str = "a mean";
    check_confidence(confidence)?;
    check_values(WHAT, values, 1)?;
    let n = values.len();
    let mean = finite(WHAT, mean(values).unwrap_or(f64::NAN))?;
    let standard_deviation = standard_deviation(values).map(|s| finite(WHAT, s)).transpose()?;
    let half_width = standard_deviation.map(|s| t_factor(confidence, (n - 1) as f64) * s / (n as f64).sqrt());
    let half_width = half_width.map(|h| finite(WHAT, h)).transpose()?;
    Ok(MeanInterval { n, mean, standard_deviation, half_width, confidence })
}

/// Welch's test of two means with unequal variances.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Welch {
    /// Mean of the first sample minus mean of the second.
    pub difference: f64,
    /// Test statistic.
    pub t: f64,
    /// Degrees of freedom (Welch-Satterthwaite).
    pub df: f64,
    /// Two-sided p value of equal means.
    pub p: f64,
    /// Half the width of the confidence interval of the difference.
    pub half_width: f64,
}

/// Compares the means of two independent samples of at least two values each.
pub fn welch(a: &[f64], b: &[f64], confidence: f64) -> Result<Welch, StatsError> {
    const WHAT: &str = "a comparison of means";
    check_confidence(confidence)?;
    let mut moments = [(0.0, 0.0, 0.0); 2];
    for (values, moment) in [a, b].into_iter().zip(&mut moments) {
        check_values(WHAT, values, 2)?;
        let interval = mean_interval(values, confidence)?;
        let n = values.len() as f64;
        *moment = (interval.mean, interval.standard_deviation.unwrap_or(f64::NAN) / n.sqrt(), n - 1.0);
    }
    let [(mean_a, error_a, df_a), (mean_b, error_b, df_b)] = moments;
    let difference = finite(WHAT, mean_a - mean_b)?;
    let standard_error = error_a.hypot(error_b);
    if standard_error == 0.0 {
        return Err(StatsError::NoVariation);
    }
    let (share_a, share_b) = ((error_a / standard_error).powi(2), (error_b / standard_error).powi(2));
    let df = 1.0 / (share_a.powi(2) / df_a + share_b.powi(2) / df_b);
    let t = difference / standard_error;
    let half_width = finite(WHAT, t_factor(confidence, df) * standard_error)?;
    Ok(Welch { difference, t, df, p: t_two_sided_p(t, df), half_width })
}

/// A median with its distribution-free interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianInterval {
    /// Number of values.
    pub n: usize,
    /// Median.
    pub median: f64,
    /// The interval; `None` when there are too few values for one (fewer than 6 at 95 %).
    pub interval: Option<RankInterval>,
    /// Confidence level asked for.
    pub confidence: f64,
}

/// An interval between two order statistics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankInterval {
    /// Lower end: the value of the lower rank.
    pub lower: f64,
    /// Upper end: the value of the upper rank.
    pub upper: f64,
    /// Ranks of the two ends among the sorted values, from 1.
    pub ranks: (usize, usize),
    /// Probability with which such an interval covers the median; at least the confidence level asked for.
    pub coverage: f64,
}

/// The median and its interval by order statistics: the narrowest symmetric pair of ranks that the binomial
/// distribution allows.
pub fn median_interval(values: &[f64], confidence: f64) -> Result<MedianInterval, StatsError> {
    const WHAT: &str = "a median";
    check_confidence(confidence)?;
    check_values(WHAT, values, 1)?;
    let sorted = sorted(values);
    let n = sorted.len();
    let median = finite(WHAT, median_of_sorted(&sorted).unwrap_or(f64::NAN))?;
    let interval = outer_ranks(n, confidence).map(|(rank, tail)| RankInterval {
        lower: sorted[rank - 1],
        upper: sorted[n - rank],
        ranks: (rank, n + 1 - rank),
        coverage: 1.0 - 2.0 * tail,
    });
    Ok(MedianInterval { n, median, interval, confidence })
}

/// The t quantile that a two-sided interval multiplies its standard error with.
pub(crate) fn t_factor(confidence: f64, df: f64) -> f64 {
    t_quantile(0.5 + confidence / 2.0, df)
}

/// The largest rank with P(binomial(n, ½) < rank) ≤ (1 − confidence)/2, and that probability.
fn outer_ranks(n: usize, confidence: f64) -> Option<(usize, f64)> {
    let allowed = (1.0 - confidence) / 2.0;
    let ln_total = n as f64 * std::f64::consts::LN_2;
    let mut tail = 0.0;
    let mut found = None;
    for below in 0..n / 2 {
        tail += (ln_binomial(n as u64, below as u64) - ln_total).exp();
        if tail > allowed {
            break;
        }
        found = Some((below + 1, tail));
    }
    found
}

fn finite(what: &'static str, value: f64) -> Result<f64, StatsError> {
    if value.is_finite() { Ok(value) } else { Err(StatsError::Overflow { what }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_value_has_no_interval() {
        let one = mean_interval(&[505.0], 0.95).unwrap();
        assert_eq!((one.n, one.mean), (1, 505.0));
        assert_eq!((one.standard_deviation, one.half_width), (None, None));
        assert_eq!((one.relative_half_width(), one.lower(), one.upper()), (None, None, None));
    }

    #[test]
    fn the_relative_half_width_needs_a_mean() {
        let around_zero = mean_interval(&[-1.0, 1.0], 0.95).unwrap();
        assert_eq!(around_zero.relative_half_width(), None);
        assert_eq!(mean_interval(&[0.0; 3], 0.95).unwrap().relative_half_width(), Some(0.0));
        let negative = mean_interval(&[-9.0, -11.0], 0.95).unwrap();
        assert!(negative.relative_half_width().unwrap() > 0.0);
    }

    #[test]
    fn unusable_input_is_an_error() {
        assert_eq!(
            mean_interval(&[], 0.95).unwrap_err().to_string(),
            "a mean needs 1 or more values, but there are 0; measure more runs"
        );
        assert_eq!(
            mean_interval(&[1.0, f64::INFINITY], 0.95).unwrap_err().to_string(),
            "value 2 of a mean is inf; only finite numbers can be analysed"
        );
        assert_eq!(mean_interval(&[1.0], 1.0), Err(StatsError::Confidence(1.0)));
        assert!(matches!(mean_interval(&[1.0], f64::NAN), Err(StatsError::Confidence(_))));
        assert_eq!(mean_interval(&[1e200, -1e200], 0.95), Err(StatsError::Overflow { what: "a mean" }));
        assert_eq!(welch(&[1.0, 1.0], &[2.0, 2.0], 0.95), Err(StatsError::NoVariation));
        assert!(matches!(welch(&[1.0], &[2.0, 3.0], 0.95), Err(StatsError::TooFew { needed: 2, .. })));
    }

    #[test]
    fn a_median_has_an_interval_from_six_values_on() {
        let five = median_interval(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.95).unwrap();
        assert_eq!((five.median, five.interval), (3.0, None));
        let six = median_interval(&[6.0, 1.0, 2.0, 5.0, 3.0, 4.0], 0.95).unwrap();
        assert_eq!(six.median, 3.5);
        let interval = six.interval.unwrap();
        assert_eq!((interval.lower, interval.upper, interval.ranks), (1.0, 6.0, (1, 6)));
        assert!((interval.coverage - (1.0 - 2.0 / 64.0)).abs() < 1e-12);
    }

    #[test]
    fn ranks_are_those_of_the_published_tables() {
        // Le Boudec, Performance Evaluation, table A.1 (95 %): n → lower rank.
        for (n, rank) in [(6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6), (30, 10), (50, 18), (70, 27)] {
            assert_eq!(outer_ranks(n, 0.95).map(|(rank, _)| rank), Some(rank), "n = {n}");
        }
        // Far beyond where 2⁻ⁿ can be represented.
        let (rank, tail) = outer_ranks(10_000, 0.95).unwrap();
        assert!((rank as i64 - 4902).abs() <= 1 && tail <= 0.025, "{rank} {tail}");
    }

    proptest! {
        #[test]
        fn shifting_and_scaling_carry_over(
            values in prop::collection::vec(-1e3..1e3f64, 2..30), shift in -1e3..1e3f64, scale in 0.1..10.0f64,
        ) {
            let plain = mean_interval(&values, 0.9).unwrap();
            let moved: Vec<_> = values.iter().map(|v| v * scale + shift).collect();
            let moved = mean_interval(&moved, 0.9).unwrap();
            prop_assert!((moved.mean - (plain.mean * scale + shift)).abs() < 1e-8);
            prop_assert!((moved.half_width.unwrap() - plain.half_width.unwrap() * scale).abs() < 1e-7);
        }

        #[test]
        fn exchanging_the_samples_turns_the_sign(
            a in prop::collection::vec(-1e3..1e3f64, 2..20), b in prop::collection::vec(-1e3..1e3f64, 2..20),
        ) {
            prop_assume!(standard_deviation(&a) > Some(0.0) || standard_deviation(&b) > Some(0.0));
            let (there, back) = (welch(&a, &b, 0.95).unwrap(), welch(&b, &a, 0.95).unwrap());
            prop_assert!((there.t + back.t).abs() < 1e-9 && (there.p - back.p).abs() < 1e-9);
            // The interval excludes 0 exactly when the test rejects.
            prop_assert_eq!(there.difference.abs() > there.half_width, there.p < 0.05);
        }

        #[test]
        fn a_median_interval_contains_its_median(values in prop::collection::vec(-1e3..1e3f64, 1..60)) {
            let median = median_interval(&values, 0.95).unwrap();
            prop_assert_eq!(median.interval.is_some(), values.len() >= 6);
            if let Some(interval) = median.interval {
                prop_assert!(interval.lower <= median.median && median.median <= interval.upper);
                prop_assert!(interval.coverage >= 0.95);
            }
        }
    }
}
