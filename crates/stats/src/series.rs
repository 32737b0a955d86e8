//! The mean of values in their order, each of which may resemble the one before.
//!
//! Student's interval takes values as independent. Where each is correlated with the one before by φ, n of them say no more
//! about the mean than n·(1 − φ)/(1 + φ) independent ones do, and φ itself is only estimated.

use crate::descriptive::mean;
use crate::error::{StatsError, check_confidence, check_values};
use crate::quantile::{normal_upper_p, t_two_sided_p};

/// Fewest values from which a correlation with the value before can be recognised.
pub const LEAST: usize = 20;
/// p value of independent values, against a positive correlation, up to which the interval takes it into account.
pub const LEVEL: f64 = 0.1;

/// The mean of a series whose values resemble the ones before them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesMean {
    /// Correlation of each value with the one before, in the sample.
    pub correlation: f64,
    /// Probability of as large a correlation when the values are independent (one-sided).
    pub p: f64,
    /// Number of independent values that would say as much about the mean.
    pub effective_n: f64,
    /// Interval of the mean, lower and upper end.
    pub interval: (f64, f64),
}

/// The interval of the mean of a series in which each value is correlated with the one before (an autoregressive
/// process of order 1). `None` when the values look independent, are fewer than [`LEAST`], or do not vary.
///
/// For each correlation φ the mean has a t distribution around its estimate by generalised least squares. The interval
/// is that of the mixture over φ from 0 to 1, weighted by the restricted likelihood of φ: so the uncertainty of φ is part of it.
/// Where values are correlated in another way (in cycles, or over long times), it may be too narrow.
pub fn series_mean(values: &[f64], confidence: f64) -> Result<Option<SeriesMean>, StatsError> {
    check_confidence(confidence)?;
    check_values("the mean of a series", values, 1)?;
    let Some(found) = Moments::new(values) else { return Ok(None) };
    let n = values.len() as f64;
    let correlation = found.lagged / found.squares;
    // Of independent values the correlation is −1/n on average, with a variance of (n − 2)²/(n²(n − 1)).
    let p = normal_upper_p((correlation + 1.0 / n) * n * (n - 1.0).sqrt() / (n - 2.0));
    if p > LEVEL {
        return Ok(None);
    }
    let parts = found.mixture();
    let effective_n: f64 =
        parts.iter().map(|part| part.weight * n * (1.0 - part.phi) / (1.0 + part.phi)).sum();
    let below = |x: f64| parts.iter().map(|part| part.weight * part.below(x, n - 1.0)).sum::<f64>();
    let tail = (1.0 - confidence) / 2.0;
    let widest = parts.iter().fold(0.0, |a: f64, part| a.max(part.error + part.estimate.abs()));
    let end = |p: f64| found.mean + crossing(widest, |x| below(x) - p);
    let interval = (end(tail), end(1.0 - tail));
    Ok(Some(SeriesMean { correlation, p, effective_n: effective_n.max(1.0), interval }))
}

/// Where a rising function crosses 0, to a part of 10⁻⁹ of `step`, the first guess of its distance from 0: by false
/// position, an end that stays twice being taken for half as far from 0 (Illinois).
fn crossing(step: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-step, step);
    let (mut below, mut above) = (f(low), f(high));
    while below > 0.0 {
        (high, above) = (low, below);
        low *= 2.0;
        below = f(low);
    }
    while above < 0.0 {
        (low, below) = (high, above);
        high *= 2.0;
        above = f(high);
    }
    let mut last_rose = None;
    for _ in 0..MOST_STEPS {
        let middle = (low * above - high * below) / (above - below);
        if high - low <= 1e-9 * step || !middle.is_finite() {
            break;
        }
        let value = f(middle);
        let rose = value < 0.0;
        let again = if last_rose == Some(rose) { 0.5 } else { 1.0 };
        if rose {
            (low, below, above) = (middle, value, above * again);
        } else {
            (high, above, below) = (middle, value, below * again);
        }
        last_rose = Some(rose);
    }
    low.midpoint(high)
}

/// Steps of [`crossing`], of which it takes a dozen.
const MOST_STEPS: u32 = 100;

/// Sums over the distances of the values from their mean.
struct Moments {
    n: f64,
    mean: f64,
    first: f64,
    last: f64,
    squares: f64,
    lagged: f64,
}

/// One φ: its weight, and the distribution of the mean for it.
struct Part {
    phi: f64,
    weight: f64,
    /// Distance of the estimate from the plain mean.
    estimate: f64,
    error: f64,
}

impl Part {
    /// The probability that the mean is less than `x` beyond the plain mean.
    fn below(&self, x: f64, df: f64) -> f64 {
        let t = (x - self.estimate) / self.error;
        let beyond = t_two_sided_p(t, df) / 2.0;
        if t < 0.0 { beyond } else { 1.0 - beyond }
    }
}

impl Moments {
    fn new(values: &[f64]) -> Option<Self> {
        let mean = mean(values).filter(|_| values.len() >= LEAST)?;
        let around: Vec<f64> = values.iter().map(|v| v - mean).collect();
        let squares = around.iter().map(|c| c * c).sum();
        let lagged = around.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let found = Self {
            n: values.len() as f64,
            mean,
            first: around[0],
            last: around[around.len() - 1],
            squares,
            lagged,
        };
        (found.squares > 0.0 && found.squares.is_finite()).then_some(found)
    }

    /// Correlations from 0 to just below 1 with their weights, which add up to 1.
    fn mixture(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = (0..STEPS)
            .map(|step| {
                let phi = (f64::from(step) + 0.5) / f64::from(STEPS);
                let information = (1.0 - phi * phi) + (self.n - 1.0) * (1.0 - phi).powi(2);
                let product = (1.0 - phi * phi) * self.first + (1.0 - phi) * (phi * self.last - self.first);
                let whole = self.squares - 2.0 * phi * self.lagged
                    + phi * phi * (self.squares - self.first * self.first - self.last * self.last);
                let residual = (whole - product * product / information).max(f64::MIN_POSITIVE);
                let log_likelihood = 0.5 * (1.0 - phi * phi).ln()
                    - 0.5 * information.ln()
                    - 0.5 * (self.n - 1.0) * (residual / self.squares).ln();
                let error = (residual / (self.n - 1.0) / information).sqrt();
                Part { phi, weight: log_likelihood, estimate: product / information, error }
            })
            .collect();
        let largest = parts.iter().fold(f64::NEG_INFINITY, |a, part| a.max(part.weight));
        parts.iter_mut().for_each(|part| part.weight = (part.weight - largest).exp());
        parts.retain(|part| part.weight > NEGLIGIBLE);
        let all: f64 = parts.iter().map(|part| part.weight).sum();
        parts.iter_mut().for_each(|part| part.weight /= all);
        parts
    }
}

/// Values of φ that the mixture is made of.
const STEPS: u32 = 100;
/// Weights, as parts of the largest, that are left out.
const NEGLIGIBLE: f64 = 1e-8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Generator;

    #[test]
    fn independent_short_and_constant_values_are_left_to_student() {
        assert_eq!(series_mean(&[3.0; 50], 0.95), Ok(None));
        let rising: Vec<f64> = (0..19).map(f64::from).collect();
        assert_eq!(series_mean(&rising, 0.95), Ok(None));
        let turns: Vec<f64> = (0..40).map(|i| f64::from(i % 2)).collect();
        assert_eq!(series_mean(&turns, 0.95), Ok(None));
        assert!(series_mean(&[f64::NAN; 30], 0.95).is_err());
    }

    #[test]
    fn values_that_resemble_the_ones_before_count_for_fewer() {
        let mut draw = Generator::new(1, "series");
        let mut last = 0.0;
        let values: Vec<f64> = (0..2_000)
            .map(|_| {
                last = 0.8 * last + 0.6 * draw.normal();
                50.0 + last
            })
            .collect();
        let found = series_mean(&values, 0.95).unwrap().unwrap();
        assert!((found.correlation - 0.8).abs() < 0.04 && found.p < 1e-9, "{found:?}");
        // 2000·0.2/1.8 = 222.
        assert!((180.0..270.0).contains(&found.effective_n), "{found:?}");
        let half = (found.interval.1 - found.interval.0) / 2.0;
        // With standard deviation 1: 1.96/sqrt(222) = 0.132.
        assert!((half / 0.132 - 1.0).abs() < 0.15, "{found:?}");
        // Scale and place do not matter.
        let moved: Vec<f64> = values.iter().map(|v| 1e6 + 1e3 * v).collect();
        let other = series_mean(&moved, 0.95).unwrap().unwrap();
        assert!((other.interval.0 - 1e6 - 1e3 * found.interval.0).abs() < 1e-3, "{other:?}");
    }
}
