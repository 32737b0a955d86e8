//! Warm-up and steady state of a series.

use crate::descriptive::{mean, standard_deviation};
use crate::f_distribution::f_upper_p;
use crate::rank::mann_whitney;

/// Samples per batch of MSER-5.
pub const MSER_BATCH: usize = 5;
/// Fewest batches that MSER-5 decides from.
pub const MSER_LEAST_BATCHES: usize = 10;
/// Fewest samples that MSER-5 decides from.
pub const MSER_LEAST: usize = MSER_BATCH * MSER_LEAST_BATCHES;
/// p value below which the halves of a series differ: how often a steady series may at most be called "not steady".
pub const MSER_LEVEL: f64 = 0.01;
/// Largest allowed spread of a SNIA window, in percent of its average.
pub const SNIA_RANGE_PCT: f64 = 20.0;
/// Largest allowed excursion of the fitted line over a SNIA window, in percent of its average.
pub const SNIA_SLOPE_PCT: f64 = 10.0;

/// Where the warm-up of a series ends by the MSER-5 rule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mser {
    /// Complete batches of five samples.
    pub batches: usize,
    /// Batches to cut from the start.
    pub truncate_batches: usize,
    /// Samples to cut from the start.
    pub truncate_samples: usize,
    /// The statistic at that cut: the squared standard error of what is left, up to a factor.
    pub statistic: f64,
    /// Whether the series became steady. If not, nothing should be cut.
    pub steady: bool,
}

/// Finds the cut d ≤ k/2 of k batch means that minimises Σ(Zⱼ − Z̄)²/(k − d)² over the batches left.
///
/// The earliest of equally good cuts is taken; samples after the last complete batch are not looked at. A best cut at
/// the limit of the search, the middle, means one of two things. Either the batches of the second half differ from those
/// of the first (Mann and Whitney's exact test, [`MSER_LEVEL`]): then the series was not steady. Or they do not: then the
/// minimum is there by chance, and nothing is cut. So a series of independent values is called "not steady" with a
/// probability of no more than [`MSER_LEVEL`], however long it is.
///
/// `None` for fewer than [`MSER_LEAST`] samples, or when one is no finite number.
pub fn mser5(values: &[f64]) -> Option<Mser> {
    if values.len() < MSER_LEAST || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let means: Vec<_> = values.chunks_exact(MSER_BATCH).filter_map(mean).collect();
    let batches = means.len();
    let limit = batches / 2;
    // Welford's recurrence from the end gives the squares around the mean of every tail.
    let (mut tail_mean, mut squares) = (0.0, 0.0);
    let (mut best, mut whole) = ((f64::INFINITY, limit), f64::INFINITY);
    for (d, batch_mean) in means.iter().enumerate().rev() {
        let left = (batches - d) as f64;
        let deviation = batch_mean - tail_mean;
        tail_mean += deviation / left;
        squares += deviation * (batch_mean - tail_mean);
        whole = squares / (left * left);
        if d <= limit && whole <= best.0 {
            best = (whole, d);
        }
    }
    let (mut statistic, mut truncate_batches) = best;
    let mut steady = true;
    if truncate_batches == limit {
        let (first, second) = means.split_at(limit);
        steady = mann_whitney(first, second).is_ok_and(|test| test.p_two_sided > MSER_LEVEL);
        if steady {
            (statistic, truncate_batches) = (whole, 0);
        }
    }
    let truncate_samples = truncate_batches * MSER_BATCH;
    Some(Mser { batches, truncate_batches, truncate_samples, statistic, steady })
}

/// Steady state of a window of rounds as the SNIA Performance Test Specification 2.0.2 (section 2.1.24) defines it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Snia {
    /// Average of the rounds.
    pub average: f64,
    /// Largest minus smallest round, in percent of the average.
    pub range_pct: f64,
    /// Slope of the least-squares line, per round.
    pub slope: f64,
    /// How far that line rises or falls over the window, in percent of the average.
    pub slope_excursion_pct: f64,
    /// Range within 20 % and excursion within 10 %.
    pub steady: bool,
}

/// Judges a window of rounds (the specification uses five). `None` for fewer than two rounds, for values that are no
/// finite numbers, and for an average of 0.
pub fn snia(window: &[f64]) -> Option<Snia> {
    if window.len() < 2 || window.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let average = mean(window).filter(|average| *average != 0.0)?;
    let percent = |value: f64| 100.0 * value.abs() / average.abs();
    let (low, high) =
        window.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(*v), high.max(*v)));
    let length = (window.len() - 1) as f64;
    let (products, squares) =
        window.iter().enumerate().fold((0.0, 0.0), |(products, squares), (i, value)| {
            let x = i as f64 - length / 2.0;
            (products + x * (value - average), squares + x * x)
        });
    let slope = products / squares;
    let (range_pct, slope_excursion_pct) = (percent(high - low), percent(slope * length));
    let steady = range_pct <= SNIA_RANGE_PCT && slope_excursion_pct <= SNIA_SLOPE_PCT;
    Some(Snia { average, range_pct, slope, slope_excursion_pct, steady })
}

/// p value below which the rounds of a series differ by more than its samples do.
pub const ROUNDS_LEVEL: f64 = 0.01;

/// Divides a series into this many rounds of equal length, each the mean of its samples, and judges them. Beside the
/// judgement: the p value of rounds that differ only as their samples do (one-way F test). Rounds of few scattered samples
/// range beyond 20 % of their average without any change of the rate.
///
/// Rounds are counted back from the end; samples at the start that do not fill a round are not looked at. `None` for
/// fewer than two samples for each round, and as in [`snia`].
pub fn snia_last_rounds(values: &[f64], rounds: usize) -> Option<(Snia, f64)> {
    let length = values.len().checked_div(rounds).filter(|length| *length > 1)?;
    let used = &values[values.len() - length * rounds..];
    let means: Vec<_> = used.chunks_exact(length).filter_map(mean).collect();
    let found = snia(&means)?;
    let variance = |values: &[f64]| standard_deviation(values).map(|deviation| deviation * deviation);
    let within = used.chunks_exact(length).filter_map(variance).sum::<f64>() / rounds as f64;
    let between = length as f64 * variance(&means)?;
    let p = match (between > 0.0, within > 0.0) {
        (false, _) => 1.0,
        (true, false) => 0.0,
        (true, true) => f_upper_p(between / within, rounds - 1, rounds * (length - 1)),
    };
    Some((found, p))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_level_series_needs_no_cut() {
        let level = mser5(&[7.0; 60]).unwrap();
        assert_eq!((level.truncate_samples, level.statistic, level.steady), (0, 0.0, true));
    }

    #[test]
    fn a_series_that_never_settles_is_not_steady() {
        let ramp: Vec<_> = (0..100).map(f64::from).collect();
        let found = mser5(&ramp).unwrap();
        assert_eq!((found.batches, found.truncate_batches, found.steady), (20, 10, false));
        // A change of the level behind the middle is nothing that a cut before it could remove.
        let late: Vec<_> =
            (0..100u32).map(|i| if i < 55 { 50.0 } else { 100.0 + f64::from(i % 3) }).collect();
        assert!(!mser5(&late).unwrap().steady);
    }

    #[test]
    fn short_or_unusable_series_are_not_judged() {
        assert_eq!(mser5(&[1.0; MSER_LEAST - 1]), None);
        assert!(mser5(&[1.0; MSER_LEAST]).is_some());
        let mut broken = [1.0; 60];
        broken[19] = f64::NAN;
        assert_eq!(mser5(&broken), None);
    }

    #[test]
    fn a_window_may_be_unsteady_by_range_or_by_slope() {
        let wide = snia(&[100.0, 130.0, 100.0, 130.0, 100.0]).unwrap();
        assert!(wide.range_pct > 20.0 && wide.slope_excursion_pct < 10.0 && !wide.steady);
        let rising = snia(&[100.0, 104.0, 108.0, 112.0, 116.0]).unwrap();
        assert!(rising.range_pct < 20.0 && rising.slope_excursion_pct > 10.0 && !rising.steady);
        assert_eq!(snia(&[5.0]), None);
        assert_eq!(snia(&[0.0; 5]), None);
        assert_eq!(snia(&[1.0, f64::INFINITY]), None);
    }

    #[test]
    fn rounds_are_counted_from_the_end() {
        // 17 samples make five rounds of three; the first two samples fall away.
        let mut series = vec![1e6, -1e6];
        for round in [100.0, 104.0, 98.0, 101.0, 103.0] {
            series.extend([round - 1.0, round, round + 1.0]);
        }
        let (found, p) = snia_last_rounds(&series, 5).unwrap();
        assert_eq!(Some(found), snia(&[100.0, 104.0, 98.0, 101.0, 103.0]));
        // F = 3·variance of the means over the variance 1 within rounds, by hand: 3·5.7/1 with 4 and 10 degrees.
        assert!((p - f_upper_p(17.1, 4, 10)).abs() < 1e-12, "{p}");
        assert_eq!(snia_last_rounds(&series[..9], 5), None);
        assert_eq!(snia_last_rounds(&series, 0), None);
    }

    proptest! {
        #[test]
        fn the_cut_is_the_best_of_all(values in prop::collection::vec(-100.0..100.0f64, 50..160)) {
            let found = mser5(&values).unwrap();
            let means: Vec<_> = values.chunks_exact(5).map(|b| b.iter().sum::<f64>() / 5.0).collect();
            let statistic = |d: usize| {
                let left = &means[d..];
                let average = left.iter().sum::<f64>() / left.len() as f64;
                left.iter().map(|z| (z - average).powi(2)).sum::<f64>() / (left.len() as f64).powi(2)
            };
            let least = (0..=means.len() / 2).map(statistic).fold(f64::INFINITY, f64::min);
            let at_limit = (statistic(means.len() / 2) - least).abs() < 1e-9;
            prop_assert!((statistic(found.truncate_batches) - found.statistic).abs() < 1e-9);
            prop_assert!((found.statistic - least).abs() < 1e-9 || at_limit && found.truncate_batches == 0);
            prop_assert!(found.truncate_batches < means.len() / 2 || !found.steady);
        }
    }
}
