//! Change points of a series: where its values begin to be others than before.
//!
//! Places are found by the energy distance of the values before and after, and tested by permutation (E-divisive, Matteson &
//! James 2014, α = 1). For values that are independent and looked at once; for others see [`monitor`](crate::monitor).

use crate::descriptive::mean;
use crate::error::{StatsError, check_values};
use crate::random::Generator;

/// A place where a series changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after the change, from 0.
    pub index: usize,
    /// p value of "nothing changes here".
    pub p: f64,
    /// Scaled energy distance Q of the two sides when the place was found.
    pub q: f64,
    /// Mean of the segment before, from the previous change point on.
    pub mean_before: f64,
    /// Mean of the segment after, up to the next change point.
    pub mean_after: f64,
}

impl ChangePoint {
    /// Change relative to the mean before, such as −0.2 for a fifth less; not finite when that is 0.
    pub fn relative(&self) -> f64 {
        self.mean_after / self.mean_before - 1.0
    }
}

/// The best place to divide a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Split {
    /// Index of the first value of the second part.
    pub index: usize,
    /// End of the second part (exclusive): the length of the series, unless an earlier one was searched for.
    pub end: usize,
    /// Q = nm/(n + m)·(2·mean|x − y| − mean|x − x′| − mean|y − y′|).
    pub q: f64,
}

/// How E-divisive decides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EDivisive {
    /// Permutations per test.
    pub permutations: usize,
    /// Largest p of a change point. With B permutations no p is smaller than 1/(B + 1).
    pub p_max: f64,
    /// Fewest values between change points, at least 1.
    pub min_segment: usize,
    /// Seed of the permutations.
    pub seed: u64,
}

impl Default for EDivisive {
    fn default() -> Self {
        Self { permutations: 999, p_max: 0.05, min_segment: 2, seed: 0 }
    }
}

/// What E-divisive found.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// Change points, by index.
    pub points: Vec<ChangePoint>,
    /// The place at which it stopped, with the p that was too large.
    pub rejected: Option<ChangePoint>,
}

/// Largest series for which all distances are looked at.
pub const MAX_VALUES: usize = 5_000;

/// Change points by hierarchical division: the best split of all segments is kept if its Q is among the largest when the
/// values are permuted within their segments, p = (#{Q* ≥ Q} + 1)/(B + 1), until one is not.
///
/// # Errors
/// For an empty series, one above [`MAX_VALUES`], values that are not finite, and without permutations.
pub fn e_divisive(values: &[f64], options: &EDivisive) -> Result<Changes, StatsError> {
    check_series(values)?;
    let EDivisive { permutations, p_max, min_segment, seed } = *options;
    if permutations == 0 {
        return Err(StatsError::Argument {
            what: "the number of permutations",
            value: 0.0,
            range: "1 or more",
        });
    }
    let least = min_segment.max(1);
    let mut generator = Generator::new(seed, "e-divisive");
    let mut bounds = vec![0, values.len()];
    let mut found: Vec<(Split, f64)> = Vec::new();
    let mut rejected = None;
    while let Some(best) = best_of_segments(values, &bounds, least) {
        let mut as_large = 0;
        let mut permuted = values.to_vec();
        for _ in 0..permutations {
            for bound in bounds.windows(2) {
                generator.shuffle(&mut permuted[bound[0]..bound[1]]);
            }
            let q = best_of_segments(&permuted, &bounds, least).map_or(0.0, |s| s.q);
            // A sum in another order may be a little less.
            as_large += usize::from(q >= best.q * (1.0 - 1e-12));
        }
        let p = (as_large + 1) as f64 / (permutations + 1) as f64;
        let place = bounds.partition_point(|b| *b < best.index);
        if p > p_max {
            rejected = Some(change_point(values, bounds[place - 1], best.index, bounds[place], p, best.q));
            break;
        }
        bounds.insert(place, best.index);
        found.push((best, p));
    }
    found.sort_by_key(|(split, _)| split.index);
    let points = found
        .iter()
        .zip(bounds.windows(3))
        .map(|((split, p), bound)| change_point(values, bound[0], split.index, bound[2], *p, split.q))
        .collect();
    Ok(Changes { points, rejected })
}

/// The best split of a whole series, both parts having `min_segment` values or more; `None` when it is too short.
///
/// With `search_end` the second part may end before the series does, as in the paper and in Otava, so that a short change
/// is not hidden by what comes after.
///
/// # Errors
/// As [`e_divisive`].
pub fn best_split(values: &[f64], min_segment: usize, search_end: bool) -> Result<Option<Split>, StatsError> {
    check_series(values)?;
    let least = min_segment.max(1);
    Ok(if search_end { split_with_end(values, least) } else { split(values, least) })
}

fn change_point(values: &[f64], from: usize, index: usize, to: usize, p: f64, q: f64) -> ChangePoint {
    let of = |part: &[f64]| mean(part).unwrap_or(f64::NAN);
    ChangePoint { index, p, q, mean_before: of(&values[from..index]), mean_after: of(&values[index..to]) }
}

/// The segment and place with the largest Q.
fn best_of_segments(values: &[f64], bounds: &[usize], least: usize) -> Option<Split> {
    let splits = bounds.windows(2).filter_map(|bound| {
        let found = split(&values[bound[0]..bound[1]], least)?;
        Some(Split { index: bound[0] + found.index, end: bound[1], q: found.q })
    });
    splits.reduce(|best, other| if other.q > best.q { other } else { best })
}

/// The best place when the second part ends with the series.
///
/// Moving a value from the second part to the first changes the sums of distances by its own distances only, and those
/// are known from its rank among the values before: n·log n in all but the insertion.
fn split(values: &[f64], least: usize) -> Option<Split> {
    let n = values.len();
    if n < 2 * least {
        return None;
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
    // Σ|v − w| over all other w, from the ranks.
    let total: f64 = values.iter().map(|v| v - values[0]).sum();
    let mut to_all = vec![0.0; n];
    let mut rank = vec![0; n];
    let mut below = 0.0;
    for (place, &index) in order.iter().enumerate() {
        let value = values[index] - values[0];
        to_all[index] =
            value * place as f64 - below + (total - below - value) - value * (n - place - 1) as f64;
        below += value;
        rank[index] = place;
    }
    // Sums and counts of the first part by rank, in a Fenwick tree.
    let mut tree = vec![(0.0f64, 0usize); n + 1];
    let (mut first_sum, mut within_first) = (0.0, 0.0);
    let mut within_second: f64 = to_all.iter().sum::<f64>() / 2.0;
    let mut between = 0.0;
    let mut best: Option<Split> = None;
    for index in 0..n - least {
        let value = values[index] - values[0];
        let (mut lower_sum, mut lower_count) = (0.0, 0);
        let mut node = rank[index] + 1;
        while node > 0 {
            lower_sum += tree[node].0;
            lower_count += tree[node].1;
            node &= node - 1;
        }
        let higher = (index - lower_count) as f64;
        let to_first = value * lower_count as f64 - lower_sum + (first_sum - lower_sum) - value * higher;
        let to_second = to_all[index] - to_first;
        let mut node = rank[index] + 1;
        while node <= n {
            tree[node].0 += value;
            tree[node].1 += 1;
            node += node & node.wrapping_neg();
        }
        first_sum += value;
        within_first += to_first;
        within_second -= to_second;
        between += to_second - to_first;
        let size = index + 1;
        if size >= least {
            let q = scaled(between, within_first, within_second, size, n - size);
            if best.is_none_or(|b| q > b.q) {
                best = Some(Split { index: size, end: n, q });
            }
        }
    }
    best
}

/// The best place and end of the second part, by sums of all distances.
fn split_with_end(values: &[f64], least: usize) -> Option<Split> {
    let n = values.len();
    let to = |j: usize, i: usize| (values[i] - values[j]).abs();
    let mut best: Option<Split> = None;
    let mut within_first = 0.0;
    for index in 1..n {
        within_first += (0..index - 1).map(|i| to(index - 1, i)).sum::<f64>();
        let (mut between, mut within_second) = (0.0, 0.0);
        for end in index + 1..=n {
            let added = end - 1;
            between += (0..index).map(|i| to(added, i)).sum::<f64>();
            within_second += (index..added).map(|i| to(added, i)).sum::<f64>();
            if index < least || end - index < least {
                continue;
            }
            let q = scaled(between, within_first, within_second, index, end - index);
            if best.is_none_or(|b| q > b.q) {
                best = Some(Split { index, end, q });
            }
        }
    }
    best
}

fn scaled(between: f64, within_first: f64, within_second: f64, first: usize, second: usize) -> f64 {
    let pairs = |n: f64| (n * (n - 1.0) / 2.0).max(1.0);
    let (n, m) = (first as f64, second as f64);
    n * m / (n + m) * (2.0 * between / (n * m) - within_first / pairs(n) - within_second / pairs(m))
}

fn check_series(values: &[f64]) -> Result<(), StatsError> {
    check_values("a series", values, 1)?;
    if values.len() > MAX_VALUES {
        let value = values.len() as f64;
        return Err(StatsError::Argument { what: "the length of the series", value, range: "at most 5000" });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn noisy(levels: &[(f64, usize)], seed: u64) -> Vec<f64> {
        let mut generator = Generator::new(seed, "series");
        levels.iter().flat_map(|&(level, n)| vec![level; n]).map(|v| v + generator.normal()).collect()
    }

    #[test]
    fn steps_are_found() {
        let series = noisy(&[(100.0, 25), (106.0, 20), (95.0, 30)], 3);
        let places = |points: &[ChangePoint]| points.iter().map(|p| p.index).collect::<Vec<_>>();
        let found = e_divisive(&series, &EDivisive::default()).unwrap();
        assert_eq!(places(&found.points), [25, 45]);
        assert!(found.points.iter().all(|p| p.p == 0.001), "{found:?}");
        assert!(found.rejected.unwrap().p > 0.05);
    }

    #[test]
    fn a_series_without_a_change_has_none() {
        let mut false_alarms = 0;
        for seed in 0..40 {
            let series = noisy(&[(100.0, 40)], seed);
            let options = EDivisive { permutations: 199, seed, ..EDivisive::default() };
            false_alarms += usize::from(!e_divisive(&series, &options).unwrap().points.is_empty());
        }
        assert!(false_alarms <= 6, "{false_alarms} of 40 at a level of 5 %");
        for flat in [&[5.0; 30][..], &[5.0], &[1.0, 2.0]] {
            assert_eq!(e_divisive(flat, &EDivisive::default()).unwrap().points, []);
        }
    }

    #[test]
    fn a_step_without_noise_is_certain() {
        let series = [vec![1.0; 10], vec![2.0; 10]].concat();
        let found = e_divisive(&series, &EDivisive::default()).unwrap();
        assert_eq!((found.points.len(), found.points[0].index, found.points[0].p), (1, 10, 0.001));
        assert_eq!((found.points[0].mean_before, found.points[0].mean_after), (1.0, 2.0));
    }

    #[test]
    fn a_short_change_has_an_end() {
        let series = noisy(&[(100.0, 30), (110.0, 10), (100.0, 40)], 1);
        let found = best_split(&series, 1, true).unwrap().unwrap();
        assert_eq!((found.index, found.end), (30, 40));
        assert!(found.q > best_split(&series, 1, false).unwrap().unwrap().q);
    }

    #[test]
    fn unusable_input_is_an_error() {
        assert!(matches!(e_divisive(&[], &EDivisive::default()), Err(StatsError::TooFew { .. })));
        assert!(e_divisive(&[1.0, f64::NAN], &EDivisive::default()).is_err());
        assert!(e_divisive(&[1.0; MAX_VALUES + 1], &EDivisive::default()).is_err());
        let none = EDivisive { permutations: 0, ..EDivisive::default() };
        assert!(e_divisive(&[1.0, 2.0], &none).is_err());
    }

    proptest! {
        #[test]
        fn the_fast_split_is_the_definition(values in prop::collection::vec(-50i32..50, 2..30), least in 1usize..4) {
            let values: Vec<f64> = values.into_iter().map(|v| f64::from(v) / 4.0).collect();
            let n = values.len();
            let mean_of = |a: &[f64], b: &[f64], pairs: f64| {
                a.iter().flat_map(|x| b.iter().map(move |y| (x - y).abs())).sum::<f64>() / pairs
            };
            let q = |at: usize| {
                let (x, y) = values.split_at(at);
                let (n, m) = (x.len() as f64, y.len() as f64);
                let inner = |v: &[f64], n: f64| mean_of(v, v, (n * (n - 1.0)).max(1.0));
                n * m / (n + m) * (2.0 * mean_of(x, y, n * m) - inner(x, n) - inner(y, m))
            };
            let found = best_split(&values, least, false).unwrap();
            prop_assert_eq!(found.is_some(), n >= 2 * least);
            if let Some(found) = found {
                prop_assert!((found.q - q(found.index)).abs() < 1e-9);
                let best = (least..=n - least).map(q).fold(f64::NEG_INFINITY, f64::max);
                prop_assert!((found.q - best).abs() < 1e-9);
                let with_end = best_split(&values, least, true).unwrap().unwrap();
                prop_assert!(with_end.q >= found.q - 1e-9);
            }
        }
    }
}
