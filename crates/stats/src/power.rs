//! How small an effect a number of runs can show: power by the noncentral t distribution.

use std::ops::Range;

use statrs::function::beta::beta_reg;
use statrs::function::erf::erfc;
use statrs::function::gamma::ln_gamma;

use crate::error::{StatsError, check_confidence};
use crate::f_distribution::f_upper_p;
use crate::quantile::t_quantile;

/// P(T ≤ t) of the noncentral t distribution: T = (Z + `noncentrality`)/√(χ²/df). NaN for degrees of freedom that are not
/// positive, and arguments that are no numbers.
pub fn noncentral_t_cdf(t: f64, df: f64, noncentrality: f64) -> f64 {
    if t.is_nan() || noncentrality.is_nan() || df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    if df > NORMAL_DF {
        return normal_cdf(t - noncentrality);
    }
    // The mean of Φ(t·s − δ) over s = √(χ²/df), by Simpson's rule over ln s, in which the density falls off at both ends.
    let ln_scale = std::f64::consts::LN_2 + 0.5 * df * (0.5 * df).ln() - ln_gamma(0.5 * df);
    let ln_density = |x: f64| ln_scale + df * x - 0.5 * df * (2.0 * x).exp();
    let width = 1.0 / (2.0 * df).sqrt();
    let (from, to) = (-(40.0 / df).max(12.0 * width), (1.0 + 40.0 / df).ln().max(12.0 * width));
    let step = (to - from) / f64::from(STEPS);
    let mut sum = 0.0;
    for i in 0..=STEPS {
        let x = from + step * f64::from(i);
        let weight = if i == 0 || i == STEPS { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
        sum += weight * ln_density(x).exp() * normal_cdf(t * x.exp() - noncentrality);
    }
    (sum * step / 3.0).clamp(0.0, 1.0)
}

/// Steps of the integral; many more than its smooth integrand needs.
const STEPS: u32 = 600;

/// Degrees of freedom beyond which the normal distribution is as good: the difference is below 1e-7.
const NORMAL_DF: f64 = 1e7;

/// The probability that a two-sided t test at this confidence level finds an effect that is `ratio` standard errors of
/// its estimate in size.
///
/// # Errors
/// For a confidence level that is not one, and without degrees of freedom.
pub fn power(ratio: f64, df: f64, confidence: f64) -> Result<f64, StatsError> {
    check_confidence(confidence)?;
    check_df(df)?;
    if !ratio.is_finite() {
        return Err(StatsError::Argument { what: "the effect", value: ratio, range: "a finite number" });
    }
    let critical = t_quantile(0.5 + confidence / 2.0, df);
    let size = ratio.abs();
    // The upper tail is the lower one of the mirrored distribution.
    Ok((noncentral_t_cdf(-critical, df, -size) + noncentral_t_cdf(-critical, df, size)).min(1.0))
}

/// How many standard errors of its estimate an effect must have to be found with probability `power`.
///
/// # Errors
/// As [`power()`], and for a power that is not between 1 − confidence and 1.
pub fn detectable_ratio(df: f64, confidence: f64, wanted: f64) -> Result<f64, StatsError> {
    check_confidence(confidence)?;
    check_df(df)?;
    check_power(wanted, confidence)?;
    crossing(2.0..f64::INFINITY, 1e-9, |ratio| Ok(power(ratio, df, confidence)? < wanted))
}

/// Where a condition that holds for small values ends, relatively as exact as `tolerance`: looked for from the start of the
/// range on, by doubling up to its end, and then by halves.
fn crossing(
    range: Range<f64>,
    tolerance: f64,
    below: impl Fn(f64) -> Result<bool, StatsError>,
) -> Result<f64, StatsError> {
    let (mut low, mut high) = (0.0, range.start);
    while below(high)? && high < range.end {
        (low, high) = (high, 2.0 * high);
    }
    while high - low > tolerance * high {
        let middle = f64::midpoint(low, high);
        if below(middle)? { low = middle } else { high = middle }
    }
    Ok(high)
}

/// The probability that an F test at this confidence level finds a term of `df1` degrees of freedom, whose sum of squares is
/// `noncentrality` times the variance of the error, which has `df2`.
///
/// # Errors
/// For a confidence level that is not one, and without degrees of freedom.
pub fn f_power(noncentrality: f64, df1: usize, df2: usize, confidence: f64) -> Result<f64, StatsError> {
    check_confidence(confidence)?;
    check_df(df1.min(df2) as f64)?;
    let alpha = 1.0 - confidence;
    let high = crossing(1.0..f64::INFINITY, 1e-10, |f| Ok(f_upper_p(f, df1, df2) > alpha))?;
    let (half1, half2, half) = (0.5 * df1 as f64, 0.5 * df2 as f64, 0.5 * noncentrality.abs());
    let at = half1 * high / (half1 * high + half2);
    // A mixture of central distributions with Poisson weights.
    let last = (half + 12.0 * half.sqrt() + 40.0) as u32;
    let below = |j: u32| {
        let j = f64::from(j);
        let ln_weight = if half > 0.0 { j * half.ln() - half - ln_gamma(j + 1.0) } else { -1e9 * j };
        ln_weight.exp() * beta_reg(half1 + j, half2, at)
    };
    Ok((1.0 - (0..=last).map(below).sum::<f64>()).clamp(0.0, 1.0))
}

/// The noncentrality with which an F test finds a term with probability `wanted`. With one degree of freedom it is the
/// square of [`detectable_ratio`].
///
/// # Errors
/// As [`f_power`], and for a power that is not between 1 − confidence and 1.
pub fn detectable_noncentrality(
    df1: usize,
    df2: usize,
    confidence: f64,
    wanted: f64,
) -> Result<f64, StatsError> {
    if df1 == 1 {
        return Ok(detectable_ratio(df2 as f64, confidence, wanted)?.powi(2));
    }
    check_power(wanted, confidence)?;
    crossing(4.0..1e9, 1e-6, |value| Ok(f_power(value, df1, df2, confidence)? < wanted))
}

/// The smallest effect (2q, from the low to the high level) that a balanced two-level design finds with probability
/// `wanted`: of `runs` runs in all, with `df` degrees of freedom for the error, and `standard_deviation` between
/// replicates. The half effect q is half of it. The standard error of 2q is 2·s/√runs.
///
/// # Errors
/// As [`detectable_ratio`], and for a deviation that is negative or not finite.
pub fn smallest_effect(
    standard_deviation: f64,
    runs: usize,
    df: usize,
    confidence: f64,
    wanted: f64,
) -> Result<f64, StatsError> {
    check_deviation(standard_deviation)?;
    if runs == 0 {
        return Err(StatsError::TooFew { what: "an effect", needed: 1, found: 0 });
    }
    Ok(detectable_ratio(df as f64, confidence, wanted)? * 2.0 * standard_deviation / (runs as f64).sqrt())
}

/// The least number of replicates of a two-level design of `treatments` treatments, all its terms being estimated
/// (df = treatments·(r − 1)), with which an effect (2q) of this size is found with probability `wanted`.
///
/// `None` where [`MOST_REPLICATES`] are not enough.
///
/// # Errors
/// As [`smallest_effect`].
pub fn replicates_needed(
    effect: f64,
    standard_deviation: f64,
    treatments: usize,
    confidence: f64,
    wanted: f64,
) -> Result<Option<usize>, StatsError> {
    let found = |replicates: usize| {
        let (runs, df) = (treatments * replicates, treatments * (replicates - 1));
        Ok(smallest_effect(standard_deviation, runs, df, confidence, wanted)? <= effect.abs())
    };
    least(2, found)
}

/// The least number of runs of each of two samples with which a difference of their means is found by the t test with
/// probability `wanted`; `None` where [`MOST_REPLICATES`] are not enough.
///
/// # Errors
/// As [`smallest_effect`].
pub fn runs_of_each_needed(
    difference: f64,
    standard_deviation: f64,
    confidence: f64,
    wanted: f64,
) -> Result<Option<usize>, StatsError> {
    // Two samples are a design of one factor.
    replicates_needed(difference, standard_deviation, 2, confidence, wanted)
}

/// Most replicates that are ever suggested.
pub const MOST_REPLICATES: usize = 100_000;

/// The least number from `from` on for which `enough`, which stays true once it is; `None` where [`MOST_REPLICATES`] are not.
///
/// # Errors
/// Those of `enough`.
pub fn least<E>(from: usize, enough: impl Fn(usize) -> Result<bool, E>) -> Result<Option<usize>, E> {
    let (mut below, mut above) = (from - 1, from);
    while !enough(above)? {
        if above >= MOST_REPLICATES {
            return Ok(None);
        }
        (below, above) = (above, (above * 2).min(MOST_REPLICATES));
    }
    while above - below > 1 {
        let middle = usize::midpoint(below, above);
        if enough(middle)? { above = middle } else { below = middle }
    }
    Ok(Some(above))
}

fn check_power(wanted: f64, confidence: f64) -> Result<(), StatsError> {
    if wanted > 1.0 - confidence && wanted < 1.0 {
        return Ok(());
    }
    let range = "more than 1 minus the confidence level, and less than 1, such as 0.8";
    Err(StatsError::Argument { what: "the power", value: wanted, range })
}

fn check_df(df: f64) -> Result<(), StatsError> {
    if df > 0.0 {
        Ok(())
    } else {
        Err(StatsError::Argument { what: "the degrees of freedom", value: df, range: "positive" })
    }
}

fn check_deviation(deviation: f64) -> Result<(), StatsError> {
    if deviation.is_finite() && deviation >= 0.0 {
        Ok(())
    } else {
        Err(StatsError::Argument {
            what: "the standard deviation",
            value: deviation,
            range: "finite and not negative",
        })
    }
}

fn normal_cdf(z: f64) -> f64 {
    erfc(-z / std::f64::consts::SQRT_2) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64, tolerance: f64) {
        assert!((found - expected).abs() < tolerance, "{found} is not {expected}");
    }

    /// Without a shift it is Student's distribution; with t = 0 it is Φ(−δ).
    #[test]
    fn known_values_of_the_distribution() {
        for df in [1.0, 2.0, 5.0, 30.0, 1_000.0, 1e5] {
            for p in [0.6, 0.9, 0.975, 0.999] {
                close(noncentral_t_cdf(t_quantile(p, df), df, 0.0), p, 1e-9);
            }
            for shift in [-2.0, 0.5, 3.0] {
                close(noncentral_t_cdf(0.0, df, shift), normal_cdf(-shift), 1e-9);
            }
        }
        // By the symmetry of the definition.
        close(noncentral_t_cdf(1.3, 7.0, 0.8) + noncentral_t_cdf(-1.3, 7.0, -0.8), 1.0, 1e-10);
        close(noncentral_t_cdf(2.0, 1e7, 1.0), noncentral_t_cdf(2.0, 1.1e7, 1.0), 1e-6);
        assert!(noncentral_t_cdf(1.0, 0.0, 1.0).is_nan());
    }

    /// `power.t.test(n = 20, delta = 1, sd = 1)` in R: power = 0.8689528, and 0.8689530 with both tails (strict);
    /// `power.t.test(power = .90, delta = 1)`: n = 22.02110.
    #[test]
    fn power_as_in_r() {
        close(power(1.0 / (2.0f64 / 20.0).sqrt(), 38.0, 0.95).unwrap(), 0.868_953_0, 5e-8);
        assert_eq!(runs_of_each_needed(1.0, 1.0, 0.95, 0.9).unwrap(), Some(23));
        close(power(0.0, 10.0, 0.95).unwrap(), 0.05, 1e-9);
        let ratio = detectable_ratio(38.0, 0.95, 0.868_953_0).unwrap();
        close(ratio, 1.0 / (2.0f64 / 20.0).sqrt(), 1e-5);
    }

    /// `power.anova.test(groups = 4, between.var = 1, within.var = 3, power = .80)` in R: n = 11.92613; and 1 and 2 degrees of
    /// freedom by the t test.
    #[test]
    fn f_power_as_in_r_and_as_the_t_test() {
        // n·Σ(mean − grand mean)²/σ² = n·(groups − 1)·between/within.
        let power_of = |n: f64| f_power(n * 3.0 * 1.0 / 3.0, 3, 44, 0.95).unwrap();
        assert!(power_of(12.0) > 0.8 && power_of(11.5) < 0.8, "{} {}", power_of(12.0), power_of(11.5));
        close(f_power(9.0, 1, 20, 0.95).unwrap(), power(3.0, 20.0, 0.95).unwrap(), 1e-7);
        close(f_power(0.0, 3, 20, 0.95).unwrap(), 0.05, 1e-7);
        let found = detectable_noncentrality(2, 30, 0.99, 0.8).unwrap();
        close(f_power(found, 2, 30, 0.99).unwrap(), 0.8, 1e-5);
    }

    #[test]
    fn replicates_suffice_and_one_less_does_not() {
        let n = replicates_needed(0.5, 1.0, 8, 0.95, 0.8).unwrap().unwrap();
        let smallest = |r: usize| smallest_effect(1.0, 8 * r, 8 * (r - 1), 0.95, 0.8).unwrap();
        assert!(smallest(n) <= 0.5 && smallest(n - 1) > 0.5, "{n}");
        assert_eq!(replicates_needed(0.0, 1.0, 8, 0.95, 0.8).unwrap(), None);
        assert_eq!(replicates_needed(1.0, 0.0, 8, 0.95, 0.8).unwrap(), Some(2));
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(matches!(power(1.0, 0.0, 0.95), Err(StatsError::Argument { .. })));
        assert!(matches!(power(f64::INFINITY, 3.0, 0.95), Err(StatsError::Argument { .. })));
        assert!(matches!(detectable_ratio(3.0, 0.95, 0.05), Err(StatsError::Argument { .. })));
        assert!(matches!(detectable_ratio(3.0, 0.95, f64::NAN), Err(StatsError::Argument { .. })));
        assert!(matches!(smallest_effect(-1.0, 4, 2, 0.95, 0.8), Err(StatsError::Argument { .. })));
        assert!(matches!(detectable_ratio(3.0, 2.0, 0.8), Err(StatsError::Confidence(_))));
    }
}
