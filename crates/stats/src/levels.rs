//! Repetitions at several levels, such as operations of a run, runs of a mount, mounts of a server (Kalibera & Jones,
//! ISMM 2013): where the variation comes from, and how many repetitions of each level are worth their time.

use crate::descriptive::mean;
use crate::error::{StatsError, check_confidence, check_values};
use crate::interval::{MeanInterval, t_factor};

/// Variation of values with repetitions at nested levels. Level 1 is the innermost.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    /// Repetitions r of each level, the innermost first.
    pub repetitions: Vec<usize>,
    /// S²: variance of the means of each level within their parent, averaged over parents.
    pub observed: Vec<f64>,
    /// T²: the part of that variance that comes from the level itself; never negative.
    pub own: Vec<f64>,
    /// The mean of all, with its interval from the means of the highest level.
    pub mean: MeanInterval,
}

/// Splits the variance of `values`, which are listed with the innermost repetition running fastest; `repetitions` are
/// the numbers of repetitions, the innermost first.
///
/// S_i² is the variance of the means of level i; T₁² = S₁², T_i² = S_i² − S_{i−1}²/r_{i−1}, negative ones being 0. The
/// interval of the mean is ȳ ± t·√(S_n²/r_n) with r_n − 1 degrees of freedom.
///
/// # Errors
/// With fewer than two repetitions of a level, a number of values that is not their product, and values that are not
/// finite.
pub fn levels(values: &[f64], repetitions: &[usize], confidence: f64) -> Result<Levels, StatsError> {
    const WHAT: &str = "a mean of repetitions at several levels";
    check_confidence(confidence)?;
    let needed = repetitions.iter().try_fold(1usize, |product, r| product.checked_mul(*r));
    let needed = needed.ok_or(StatsError::Overflow { what: WHAT })?;
    check_values(WHAT, values, needed.max(2))?;
    if let Some(&few) = repetitions.iter().find(|r| **r < 2) {
        return Err(StatsError::TooFew { what: "a level", needed: 2, found: few });
    }
    if repetitions.is_empty() || values.len() != needed {
        return Err(StatsError::Argument {
            what: "the number of values",
            value: values.len() as f64,
            range: "the product of the repetitions of all levels",
        });
    }
    let mut observed = Vec::with_capacity(repetitions.len());
    let mut own = Vec::with_capacity(repetitions.len());
    let mut means = values.to_vec();
    let mut from_below = 0.0;
    for &repetitions in repetitions {
        let parents = means.chunks_exact(repetitions);
        let variances: Vec<f64> = parents
            .clone()
            .filter_map(|siblings| Some(crate::standard_deviation(siblings)?.powi(2)))
            .collect();
        let variance =
            mean(&variances).filter(|v| v.is_finite()).ok_or(StatsError::Overflow { what: WHAT })?;
        observed.push(variance);
        own.push((variance - from_below).max(0.0));
        from_below = variance / repetitions as f64;
        means = parents.filter_map(mean).collect();
    }
    let top = repetitions[repetitions.len() - 1];
    let mean = MeanInterval {
        n: top,
        mean: means[0],
        standard_deviation: Some(observed[observed.len() - 1].sqrt()),
        half_width: Some(t_factor(confidence, (top - 1) as f64) * from_below.sqrt()),
        confidence,
    };
    Ok(Levels { repetitions: repetitions.to_vec(), observed, own, mean })
}

impl Levels {
    /// The numbers of repetitions of all levels but the highest that give the tightest interval for their time:
    /// r_i = ⌈√((c_{i+1}/c_i)·(T_i²/T_{i+1}²))⌉, where `costs` c are the times that one repetition of each level adds
    /// by itself, the innermost first.
    ///
    /// `None` for a level above which nothing varies: one repetition of that one is enough, and all effort belongs below.
    ///
    /// # Errors
    /// When there is not one positive cost for each level.
    pub fn optimal_repetitions(&self, costs: &[f64]) -> Result<Vec<Option<usize>>, StatsError> {
        if costs.len() != self.own.len() {
            return Err(StatsError::Argument {
                what: "the number of costs",
                value: costs.len() as f64,
                range: "the number of levels",
            });
        }
        if let Some(&cost) = costs.iter().find(|c| !(c.is_finite() && **c > 0.0)) {
            return Err(StatsError::Argument { what: "a cost", value: cost, range: "a positive number" });
        }
        let pairs = costs.windows(2).zip(self.own.windows(2));
        Ok(pairs
            .map(|(cost, own)| {
                let best = (cost[1] / cost[0] * (own[0] / own[1])).sqrt().ceil();
                (own[1] > 0.0).then_some((best as usize).max(1))
            })
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: groups (1, 3), (5, 7), (3, 5): variances 2 each; means 2, 6, 4 of variance 4.
    #[test]
    fn two_levels() {
        let found = levels(&[1.0, 3.0, 5.0, 7.0, 3.0, 5.0], &[2, 3], 0.95).unwrap();
        assert_eq!((found.mean.mean, found.mean.n), (4.0, 3));
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close(&found.observed, &[2.0, 4.0]), "{found:?}");
        assert!(close(&found.own, &[2.0, 3.0]), "{found:?}");
        let half_width = found.mean.half_width.unwrap();
        assert!((half_width - crate::t_quantile(0.975, 2.0) * (4.0f64 / 3.0).sqrt()).abs() < 1e-12);
        // A mount that takes 60 s, and runs of 5 s: √(12·2/3) = 2.83.
        assert_eq!(found.optimal_repetitions(&[5.0, 60.0]).unwrap(), [Some(3)]);
        assert!(
            found.optimal_repetitions(&[5.0]).is_err() && found.optimal_repetitions(&[0.0, 1.0]).is_err()
        );
    }

    #[test]
    fn three_levels_and_a_negative_part() {
        // Means of the middle level vary less than the values within explain: its own part is 0.
        let values = [0.0, 10.0, 1.0, 9.0, 20.0, 30.0, 21.0, 29.0];
        let found = levels(&values, &[2, 2, 2], 0.9).unwrap();
        assert_eq!(found.own[1], 0.0);
        assert!(found.own[2] > 100.0);
        assert_eq!(found.optimal_repetitions(&[1.0, 1.0, 1.0]).unwrap(), [None, Some(1)]);
    }

    #[test]
    fn one_level_is_a_plain_mean() {
        let values = [3.0, 5.0, 4.0, 7.0];
        let found = levels(&values, &[4], 0.95).unwrap().mean;
        let plain = crate::interval::mean_interval(&values, 0.95).unwrap();
        assert!((found.half_width.unwrap() - plain.half_width.unwrap()).abs() < 1e-12);
        assert_eq!(found.mean, plain.mean);
    }

    #[test]
    fn unusable_input_is_an_error() {
        assert!(matches!(levels(&[1.0, 2.0, 3.0], &[2, 2], 0.95), Err(StatsError::TooFew { .. })));
        assert!(matches!(levels(&[1.0; 5], &[2, 2], 0.95), Err(StatsError::Argument { .. })));
        assert!(matches!(levels(&[1.0; 3], &[1, 3], 0.95), Err(StatsError::TooFew { found: 1, .. })));
        assert!(levels(&[1.0, 2.0], &[], 0.95).is_err());
    }
}
