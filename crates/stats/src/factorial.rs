//! Effects of balanced 2^k·r factorial designs (Jain 1991, chapters 17 and 18).

use crate::error::{StatsError, check_confidence, check_values};
use crate::interval::t_factor;

/// The analysis of a balanced 2^k·r design.
///
/// Effects are *half effects* q, the coefficients on −1/+1 columns: a factor's change from its first to its second
/// level changes the response by 2q.
#[derive(Debug, Clone, PartialEq)]
pub struct FactorialEffects {
    /// Number of factors k.
    pub factors: u32,
    /// Replicates r of each cell.
    pub replicates: usize,
    /// Confidence level of the intervals.
    pub confidence: f64,
    /// All 2^k terms; the index is the term: bit j is set if factor j takes part, and term 0 is the mean.
    pub terms: Vec<Effect>,
    /// Sum of the squared responses.
    pub ssy: f64,
    /// Part of it due to the mean.
    pub ss0: f64,
    /// Total variation around the mean.
    pub sst: f64,
    /// Variation between replicates: the experimental error.
    pub sse: f64,
    /// Percent of the total variation that is error; `None` when nothing varies.
    pub percent_error: Option<f64>,
    /// Degrees of freedom of the error, 2^k·(r − 1).
    pub df: usize,
    /// Standard deviation of the error; `None` when r = 1.
    pub s_e: Option<f64>,
    /// Standard deviation of every q; `None` when r = 1.
    pub s_q: Option<f64>,
}

/// One term of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Effect {
    /// Which factors take part: bit j for factor j.
    pub term: u32,
    /// Half effect.
    pub q: f64,
    /// Half the width of its confidence interval; `None` when r = 1.
    pub half_width: Option<f64>,
    /// Variation explained by the term. For the mean it is SS0.
    pub sum_of_squares: f64,
    /// Percent of the total variation; `None` for the mean, and when nothing varies.
    pub percent: Option<f64>,
    /// Whether the interval excludes 0; `None` when r = 1.
    pub significant: Option<bool>,
}

/// An estimate with its standard deviation and interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Value.
    pub value: f64,
    /// Its standard deviation.
    pub standard_deviation: f64,
    /// Half the width of its confidence interval.
    pub half_width: f64,
}

/// How the variance of the fitted response is counted in a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leverage {
    /// Least squares: parameters/runs.
    LeastSquares,
    /// Jain's more cautious (1 + parameters)/runs.
    Jain,
}

const WHAT: &str = "a factorial design";

/// Analyses the cells of a two-level design in standard order (the first factor fastest), each with the same number of
/// replicates.
pub fn effects(cells: &[Vec<f64>], confidence: f64) -> Result<FactorialEffects, StatsError> {
    let replicates = cells.first().map_or(0, Vec::len);
    for (cell, values) in cells.iter().enumerate() {
        if values.len() != replicates {
            return Err(StatsError::Unbalanced { cell, expected: replicates, found: values.len() });
        }
    }
    analyse(cells.iter().map(Vec::as_slice), replicates, confidence)
}

/// The half effects of the means of 2^k cells in standard order, by the fast transform: entry T is the half effect of
/// term T.
pub fn effects_of_means(means: Vec<f64>) -> Result<Vec<f64>, StatsError> {
    check_values(WHAT, &means, 2)?;
    check_two_level(means.len())?;
    Ok(half_effects(means))
}

fn check_two_level(cells: usize) -> Result<(), StatsError> {
    if cells < 2 || !cells.is_power_of_two() || cells > 1 << 30 {
        return Err(StatsError::NotTwoLevel(cells));
    }
    Ok(())
}

/// Cells are slices of `replicates` values each.
fn analyse<'a>(
    cells: impl ExactSizeIterator<Item = &'a [f64]> + Clone,
    replicates: usize,
    confidence: f64,
) -> Result<FactorialEffects, StatsError> {
    check_confidence(confidence)?;
    let count = cells.len();
    check_two_level(count)?;
    for cell in cells.clone() {
        check_values(WHAT, cell, 1)?;
    }
    let runs = (count * replicates) as f64;
    let means: Vec<_> = cells.clone().map(|cell| cell.iter().sum::<f64>() / replicates as f64).collect();
    let squares_around = |center: f64, cell: &[f64]| cell.iter().map(|y| (y - center).powi(2)).sum::<f64>();
    let ssy: f64 = cells.clone().map(|cell| squares_around(0.0, cell)).sum();
    let sse: f64 = cells.clone().zip(&means).map(|(cell, &mean)| squares_around(mean, cell)).sum();
    let qs = half_effects(means);
    let sst: f64 = cells.map(|cell| squares_around(qs[0], cell)).sum();
    if !ssy.is_finite() {
        return Err(StatsError::Overflow { what: WHAT });
    }
    let percent = |part: f64| (sst > 0.0).then(|| 100.0 * part / sst);

    let df = count * (replicates - 1);
    let s_e = (df > 0).then(|| (sse / df as f64).sqrt());
    let s_q = s_e.map(|s| s / runs.sqrt());
    let half_width = s_q.map(|s| t_factor(confidence, df as f64) * s);
    let effect = |(term, q): (usize, f64)| {
        let sum_of_squares = runs * q * q;
        let percent = if term == 0 { None } else { percent(sum_of_squares) };
        let significant = half_width.map(|half_width| q.abs() > half_width);
        Effect { term: term as u32, q, half_width, sum_of_squares, percent, significant }
    };
    let terms: Vec<_> = qs.into_iter().enumerate().map(effect).collect();
    Ok(FactorialEffects {
        factors: count.ilog2(),
        replicates,
        confidence,
        ss0: terms[0].sum_of_squares,
        terms,
        ssy,
        sst,
        sse,
        percent_error: percent(sse),
        df,
        s_e,
        s_q,
    })
}

impl FactorialEffects {
    /// A linear combination Σ h·q of terms whose coefficients h add up to 0. `Ok(None)` when r = 1, which has no
    /// error estimate.
    pub fn contrast(
        &self,
        coefficients: &[(u32, f64)],
        confidence: f64,
    ) -> Result<Option<Estimate>, StatsError> {
        check_confidence(confidence)?;
        let sum: f64 = coefficients.iter().map(|(_, h)| h).sum();
        let size: f64 = coefficients.iter().map(|(_, h)| h.abs()).sum();
        if sum.is_nan() || sum.abs() > 1e-9 * size {
            return Err(StatsError::NotAContrast(sum));
        }
        let mut value = 0.0;
        for &(term, h) in coefficients {
            value += h * self.term(term)?.q;
        }
        let norm = coefficients.iter().map(|(_, h)| h * h).sum::<f64>().sqrt();
        Ok(self.s_q.map(|s_q| self.estimate(value, s_q * norm, confidence)))
    }

    /// The response predicted for a cell of the design by the full model, as the mean of `future_runs` further runs,
    /// or of infinitely many (`None`). `Ok(None)` when r = 1.
    pub fn predict(
        &self,
        cell: u32,
        future_runs: Option<u32>,
        leverage: Leverage,
        confidence: f64,
    ) -> Result<Option<Estimate>, StatsError> {
        check_confidence(confidence)?;
        self.term(cell)?;
        // A term's column is −1 where an odd number of its factors is at the first level.
        let sign = |term: u32| if (term & !cell).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
        let value = self.terms.iter().map(|effect| sign(effect.term) * effect.q).sum();
        let parameters = self.terms.len() as f64;
        let runs = parameters * self.replicates as f64;
        let fitted = match leverage {
            Leverage::LeastSquares => parameters / runs,
            Leverage::Jain => (1.0 + parameters) / runs,
        };
        let future = future_runs.map_or(0.0, |m| 1.0 / f64::from(m.max(1)));
        Ok(self.s_e.map(|s_e| self.estimate(value, s_e * (fitted + future).sqrt(), confidence)))
    }

    fn term(&self, term: u32) -> Result<&Effect, StatsError> {
        let missing = StatsError::NoSuchTerm { term, factors: self.factors };
        self.terms.get(term as usize).ok_or(missing)
    }

    fn estimate(&self, value: f64, standard_deviation: f64, confidence: f64) -> Estimate {
        let half_width = t_factor(confidence, self.df as f64) * standard_deviation;
        Estimate { value, standard_deviation, half_width }
    }
}

/// The fast Walsh-Hadamard transform of the cell means, in place: after it, entry T is the half effect of term T.
fn half_effects(mut means: Vec<f64>) -> Vec<f64> {
    let count = means.len();
    let mut half = 1;
    while half < count {
        for block in means.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for (a, b) in low.iter_mut().zip(high) {
                (*a, *b) = (*a + *b, *b - *a);
            }
        }
        half *= 2;
    }
    means.iter_mut().for_each(|q| *q /= count as f64);
    means
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_replicate_has_no_intervals() {
        let found = effects(&[vec![15.0], vec![45.0], vec![25.0], vec![75.0]], 0.95).unwrap();
        assert_eq!((found.factors, found.replicates, found.df), (2, 1, 0));
        assert_eq!((found.s_e, found.s_q), (None, None));
        assert!(found.terms.iter().all(|t| t.half_width.is_none() && t.significant.is_none()));
        assert_eq!(found.contrast(&[(1, 1.0), (2, -1.0)], 0.95), Ok(None));
        assert_eq!(found.predict(0, None, Leverage::Jain, 0.95), Ok(None));
    }

    #[test]
    fn unusable_designs_are_refused() {
        let cells = |sizes: &[usize]| sizes.iter().map(|&n| vec![1.0; n]).collect::<Vec<_>>();
        assert_eq!(effects(&cells(&[2, 2, 2]), 0.95), Err(StatsError::NotTwoLevel(3)));
        assert_eq!(effects(&cells(&[2]), 0.95), Err(StatsError::NotTwoLevel(1)));
        assert_eq!(effects(&[], 0.95), Err(StatsError::NotTwoLevel(0)));
        assert!(matches!(effects(&cells(&[0, 0]), 0.95), Err(StatsError::TooFew { .. })));
        assert_eq!(
            effects(&cells(&[2, 1]), 0.95).unwrap_err().to_string(),
            "cell 2 has 1 replicate where the first has 2; use the replicates that all cells have"
        );
        assert!(matches!(effects(&[vec![1.0], vec![f64::NAN]], 0.95), Err(StatsError::NotFinite { .. })));
        assert!(matches!(effects(&[vec![1e200], vec![0.0]], 0.95), Err(StatsError::Overflow { .. })));
        let constant = effects(&cells(&[2, 2]), 0.95).unwrap();
        assert_eq!((constant.terms[1].percent, constant.percent_error), (None, None));
    }

    #[test]
    fn means_alone_give_the_same_effects() {
        let cells = vec![vec![15.0, 18.0], vec![45.0, 48.0], vec![25.0, 28.0], vec![75.0, 75.0]];
        let means = cells.iter().map(|c| (c[0] + c[1]) / 2.0).collect();
        let qs: Vec<_> = effects(&cells, 0.9).unwrap().terms.iter().map(|t| t.q).collect();
        assert_eq!(effects_of_means(means), Ok(qs));
        assert_eq!(effects_of_means(vec![1.0; 3]), Err(StatsError::NotTwoLevel(3)));
        assert!(effects_of_means(vec![1.0, f64::NAN]).is_err());
    }

    #[test]
    fn contrasts_are_checked() {
        let found = effects(&[vec![1.0, 2.0], vec![3.0, 5.0]], 0.95).unwrap();
        assert_eq!(found.contrast(&[(0, 1.0), (1, 1.0)], 0.95), Err(StatsError::NotAContrast(2.0)));
        let missing = found.contrast(&[(0, 1.0), (2, -1.0)], 0.95);
        assert_eq!(missing, Err(StatsError::NoSuchTerm { term: 2, factors: 1 }));
        assert!(found.predict(2, None, Leverage::Jain, 0.95).is_err());
    }

    fn designs(replicates: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Vec<f64>>> {
        (1u32..5, replicates).prop_flat_map(|(factors, replicates)| {
            prop::collection::vec(prop::collection::vec(-1e3..1e3f64, replicates), 1usize << factors)
        })
    }

    proptest! {
        #[test]
        fn the_transform_is_the_sign_table(cells in designs(1..4)) {
            let found = effects(&cells, 0.95).unwrap();
            for effect in &found.terms {
                let product = |cell: usize| {
                    (0..found.factors)
                        .filter(|j| effect.term >> j & 1 == 1)
                        .map(|j| if cell >> j & 1 == 1 { 1.0 } else { -1.0 })
                        .product::<f64>()
                };
                let means = cells.iter().map(|c| c.iter().sum::<f64>() / c.len() as f64);
                let q = means.enumerate().map(|(i, mean)| product(i) * mean).sum::<f64>() / cells.len() as f64;
                prop_assert!((q - effect.q).abs() < 1e-9);
            }
        }

        #[test]
        fn the_variation_adds_up(cells in designs(1..4)) {
            let found = effects(&cells, 0.95).unwrap();
            let explained: f64 = found.terms[1..].iter().map(|t| t.sum_of_squares).sum();
            let scale = found.ssy.max(1.0);
            prop_assert!((found.sst - explained - found.sse).abs() < 1e-9 * scale);
            prop_assert!((found.ssy - found.ss0 - found.sst).abs() < 1e-9 * scale);
        }

        #[test]
        fn the_full_model_predicts_every_cell_mean(cells in designs(2..4)) {
            let found = effects(&cells, 0.95).unwrap();
            for (cell, values) in cells.iter().enumerate() {
                let predicted = found.predict(cell as u32, None, Leverage::LeastSquares, 0.95).unwrap().unwrap();
                let interval = found.s_e.unwrap() / (values.len() as f64).sqrt();
                prop_assert!((predicted.value - values.iter().sum::<f64>() / values.len() as f64).abs() < 1e-8);
                prop_assert!((predicted.standard_deviation - interval).abs() < 1e-9);
            }
        }
    }
}
