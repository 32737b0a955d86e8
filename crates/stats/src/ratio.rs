//! The ratio of two means, with its interval.

use crate::descriptive::{mean, standard_deviation};
use crate::error::{StatsError, check_confidence, check_values};
use crate::interval::{t_factor, welch};

/// A ratio of means with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatioInterval {
    /// Mean of the second sample divided by the mean of the first.
    pub ratio: f64,
    /// The interval, (lower, upper); `None` where the first mean is not clearly different from 0, so that the ratio may
    /// be anything.
    pub interval: Option<(f64, f64)>,
}

/// Fieller's interval of mean(`new`)/mean(`old`), each mean with its own t quantile (Kalibera & Jones 2013):
/// with h² = t²s²/n, the ends are (ȳȳ′ ± √((ȳȳ′)² − (ȳ² − h²)(ȳ′² − h′²)))/(ȳ² − h²).
///
/// As each mean has an interval of its own here, it covers somewhat more than asked for with few runs.
///
/// # Errors
/// With fewer than two values in a sample, values that are not finite, and a mean of `old` that is 0.
pub fn fieller(old: &[f64], new: &[f64], confidence: f64) -> Result<RatioInterval, StatsError> {
    let [old, new] = moments(old, new, confidence)?;
    let t = |m: &KnownMean| t_factor(confidence, m.df);
    let (h_old, h_new) = (t(&old) * old.error, t(&new) * new.error);
    solve(&old, &new, h_old, h_new)
}

/// Fieller's interval with one t quantile, whose degrees of freedom are Welch and Satterthwaite's for the difference
/// mean(`new`) − ratio·mean(`old`). It excludes 1 about when Welch's test finds a difference.
///
/// # Errors
/// As [`fieller`].
pub fn fieller_welch(old: &[f64], new: &[f64], confidence: f64) -> Result<RatioInterval, StatsError> {
    let [old, new] = moments(old, new, confidence)?;
    fieller_of_means(&old, &new, confidence)
}

/// [`fieller_welch`] of two means of which only the standard errors and their degrees of freedom are known, such as means
/// over several cells.
///
/// # Errors
/// For a confidence level that is not one, and a mean of `old` that is 0.
pub fn fieller_of_means(
    old: &KnownMean,
    new: &KnownMean,
    confidence: f64,
) -> Result<RatioInterval, StatsError> {
    check_confidence(confidence)?;
    let (a, b) = ((new.mean / old.mean * old.error).powi(2), new.error.powi(2));
    let total = a + b;
    let df = if total > 0.0 {
        1.0 / ((a / total).powi(2) / old.df + (b / total).powi(2) / new.df)
    } else {
        old.df
    };
    let t = t_factor(confidence, df);
    solve(old, new, t * old.error, t * new.error)
}

/// The ratio of geometric means, new over old, with the t interval of the difference of logarithms (Welch).
///
/// # Errors
/// As [`fieller`], with values that are not positive, and when neither sample varies.
pub fn log_t(old: &[f64], new: &[f64], confidence: f64) -> Result<RatioInterval, StatsError> {
    const WHAT: &str = "a ratio of geometric means";
    let logarithms = |values: &[f64]| -> Result<Vec<f64>, StatsError> {
        check_values(WHAT, values, 2)?;
        match values.iter().position(|&v| v <= 0.0) {
            Some(index) => Err(StatsError::NotPositive { what: WHAT, index, value: values[index] }),
            None => Ok(values.iter().map(|v| v.ln()).collect()),
        }
    };
    let found = welch(&logarithms(new)?, &logarithms(old)?, confidence)?;
    let (lower, upper) = (found.difference - found.half_width, found.difference + found.half_width);
    Ok(RatioInterval { ratio: found.difference.exp(), interval: Some((lower.exp(), upper.exp())) })
}

/// A mean whose uncertainty is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownMean {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the standard error.
    pub df: f64,
}

fn moments(old: &[f64], new: &[f64], confidence: f64) -> Result<[KnownMean; 2], StatsError> {
    const WHAT: &str = "a ratio of means";
    check_confidence(confidence)?;
    let of = |values: &[f64]| {
        check_values(WHAT, values, 2)?;
        let n = values.len() as f64;
        let mean = mean(values).filter(|m| m.is_finite()).ok_or(StatsError::Overflow { what: WHAT })?;
        let deviation = standard_deviation(values)
            .filter(|s| s.is_finite())
            .ok_or(StatsError::Overflow { what: WHAT })?;
        Ok(KnownMean { mean, error: deviation / n.sqrt(), df: n - 1.0 })
    };
    let moments = [of(old)?, of(new)?];
    if moments[0].mean == 0.0 { Err(StatsError::ZeroBase) } else { Ok(moments) }
}

fn solve(old: &KnownMean, new: &KnownMean, h_old: f64, h_new: f64) -> Result<RatioInterval, StatsError> {
    // Relative to the old mean, so that no square overflows.
    let ratio = new.mean / old.mean;
    if !ratio.is_finite() {
        return Err(StatsError::ZeroBase);
    }
    let (h_old, h_new) = (h_old / old.mean.abs(), h_new / old.mean.abs());
    let denominator = 1.0 - h_old * h_old;
    let interval = (denominator > 0.0).then(|| {
        // ratio² − (1 − h²)(ratio² − h′²), without the cancellation.
        let root = (h_new * h_new * denominator + (h_old * ratio).powi(2)).sqrt();
        ((ratio - root) / denominator, (ratio + root) / denominator)
    });
    Ok(RatioInterval { ratio, interval })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const OLD: [f64; 5] = [100.0, 104.0, 98.0, 101.0, 97.0];
    const NEW: [f64; 5] = [110.0, 115.0, 108.0, 111.0, 106.0];

    /// The formula as published, with t[0.975; 4] = 2.776445.
    #[test]
    fn fieller_is_the_published_formula() {
        let found = fieller(&OLD, &NEW, 0.95).unwrap();
        let (y, z): (f64, f64) = (100.0, 110.0);
        let t2 = 2.776_445_105_2f64.powi(2);
        let (h2, k2) = (t2 * 7.5 / 5.0, t2 * 11.5 / 5.0);
        let root = ((y * z).powi(2) - (y * y - h2) * (z * z - k2)).sqrt();
        let (lower, upper) = ((y * z - root) / (y * y - h2), (y * z + root) / (y * y - h2));
        let interval = found.interval.unwrap();
        assert_eq!(found.ratio, 1.1);
        assert!((interval.0 - lower).abs() < 1e-10 && (interval.1 - upper).abs() < 1e-10, "{interval:?}");
        let narrower = fieller_welch(&OLD, &NEW, 0.95).unwrap().interval.unwrap();
        assert!(narrower.0 > lower && narrower.1 < upper, "{narrower:?}");
    }

    #[test]
    fn a_mean_that_may_be_zero_has_no_ratio() {
        let around_zero = [-1.0, 2.0, 0.5];
        assert_eq!(fieller(&around_zero, &NEW, 0.95).unwrap().interval, None);
        assert_eq!(fieller(&[-1.0, 1.0], &NEW, 0.95), Err(StatsError::ZeroBase));
        assert!(matches!(fieller(&[1.0], &NEW, 0.95), Err(StatsError::TooFew { .. })));
        assert!(matches!(log_t(&around_zero, &NEW, 0.95), Err(StatsError::NotPositive { index: 0, .. })));
        assert_eq!(fieller(&[2.0, 2.0], &[3.0, 3.0], 0.95).unwrap().interval, Some((1.5, 1.5)));
    }

    #[test]
    fn negative_means_have_a_ratio_too() {
        let minus = OLD.map(|v| -v);
        let found = fieller(&minus, &NEW, 0.95).unwrap();
        let mirrored = fieller(&OLD, &NEW, 0.95).unwrap().interval.unwrap();
        let interval = found.interval.unwrap();
        assert!((interval.0 + mirrored.1).abs() < 1e-12 && (interval.1 + mirrored.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn intervals_scale_and_invert(scale in 1e-6..1e6f64) {
            let scaled = NEW.map(|v| v * scale);
            for method in [fieller, fieller_welch, log_t] {
                let (plain, found) = (method(&OLD, &NEW, 0.95).unwrap(), method(&OLD, &scaled, 0.95).unwrap());
                let (a, b) = (plain.interval.unwrap(), found.interval.unwrap());
                prop_assert!((b.0 / a.0 / scale - 1.0).abs() < 1e-9 && (b.1 / a.1 / scale - 1.0).abs() < 1e-9);
            }
            let (there, back) = (log_t(&OLD, &scaled, 0.95).unwrap(), log_t(&scaled, &OLD, 0.95).unwrap());
            prop_assert!((there.interval.unwrap().0 * back.interval.unwrap().1 - 1.0).abs() < 1e-9);
            let (there, back) = (fieller(&OLD, &scaled, 0.95).unwrap(), fieller(&scaled, &OLD, 0.95).unwrap());
            prop_assert!((there.interval.unwrap().0 * back.interval.unwrap().1 - 1.0).abs() < 1e-9);
        }
    }
}
