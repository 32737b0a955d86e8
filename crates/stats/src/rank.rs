//! Comparison of two samples without the assumption of normal values: Mann-Whitney, Hodges-Lehmann, Cliff's delta.

use statrs::function::erf::erfc;
use statrs::function::factorial::ln_binomial;

use crate::descriptive::median;
use crate::error::{StatsError, check_confidence, check_values};
use crate::quantile::normal_quantile;

/// How a p value was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Method {
    /// From the exact distribution of the statistic over all ways to divide the values: fewer than 50 values in each sample
    /// if no two are alike, no more than 50 in both together if some are.
    Exact,
    /// By the normal distribution with correction for ties and for continuity (½).
    Normal,
}

/// Result of the Mann-Whitney test (Wilcoxon's rank-sum test) of a first sample against a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// U of the first sample: pairs in which its value is the larger one, ties counting ½.
    pub u: f64,
    /// How the p values were found.
    pub method: Method,
    /// p value of "neither sample tends to larger values".
    pub p_two_sided: f64,
    /// p value against "the first sample tends to larger values".
    pub p_greater: f64,
    /// p value against "the first sample tends to smaller values".
    pub p_less: f64,
    /// The smallest two-sided p value that samples of these sizes can have: 2/C(n₁ + n₂, n₁). With 3 and 3 values that
    /// is 0.10, however different they are.
    pub smallest_p: f64,
}

/// A shift between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// Hodges-Lehmann estimate: the median of all differences, first minus second.
    pub estimate: f64,
    /// Lower end of its interval: one of the differences.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
    /// Confidence with which the interval covers the shift. By the exact distribution it is usually more than asked for;
    /// it is less where even the interval from the smallest to the largest difference cannot reach the level.
    pub coverage: f64,
    /// How the interval was found.
    pub method: Method,
}

/// The Mann-Whitney test.
///
/// # Errors
/// For an empty sample, and values that are not finite.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Result<MannWhitney, StatsError> {
    let samples = Samples::new(a, b)?;
    let (n, m) = (a.len(), b.len());
    let u = samples.u();
    let smallest_p = smallest_p(n, m);
    if samples.exact() {
        let distribution = Distribution::new(n, m);
        // Without ties U is a whole number.
        let at = u as usize;
        let (p_less, p_greater) = (distribution.at_most(at), distribution.at_least(at));
        let p_two_sided = (2.0 * p_less.min(p_greater)).min(1.0);
        return Ok(MannWhitney { u, method: Method::Exact, p_two_sided, p_greater, p_less, smallest_p });
    }
    if n + m <= MOST_TIED {
        let (p_less, p_greater) = samples.tied_tails();
        let p_two_sided = (2.0 * p_less.min(p_greater)).min(1.0);
        return Ok(MannWhitney { u, method: Method::Exact, p_two_sided, p_greater, p_less, smallest_p });
    }
    let sigma = sigma(n, m, samples.ties());
    let distance = u - (n * m) as f64 / 2.0;
    let upper_tail = |corrected: f64| if sigma > 0.0 { normal_upper(corrected / sigma) } else { 1.0 };
    let toward_the_middle = if distance == 0.0 { 0.0 } else { 0.5f64.copysign(distance) };
    Ok(MannWhitney {
        u,
        method: Method::Normal,
        p_two_sided: (2.0 * upper_tail((distance - toward_the_middle).abs())).min(1.0),
        p_greater: upper_tail(distance - 0.5),
        p_less: upper_tail(-(distance + 0.5)),
        smallest_p,
    })
}

/// The Hodges-Lehmann shift of the first sample against the second, with its interval from the sorted differences:
/// by the exact distribution where [`mann_whitney`] uses it, else by the normal one with both corrections.
///
/// # Errors
/// For an empty sample, values that are not finite, and a confidence level that is not one.
pub fn hodges_lehmann(a: &[f64], b: &[f64], confidence: f64) -> Result<Shift, StatsError> {
    check_confidence(confidence)?;
    let samples = Samples::new(a, b)?;
    let mut differences: Vec<f64> = a.iter().flat_map(|x| b.iter().map(move |y| x - y)).collect();
    if differences.iter().any(|d| !d.is_finite()) {
        return Err(StatsError::Overflow { what: "a shift" });
    }
    differences.sort_unstable_by(f64::total_cmp);
    let estimate = median(&differences).unwrap_or(f64::NAN);
    let alpha = 1.0 - confidence;
    if samples.exact() {
        let distribution = Distribution::new(a.len(), b.len());
        let rank = distribution.quantile(alpha / 2.0).max(1);
        let coverage = 1.0 - 2.0 * distribution.at_most(rank - 1);
        let (lower, upper) = (differences[rank - 1], differences[differences.len() - rank]);
        return Ok(Shift { estimate, lower, upper, coverage, method: Method::Exact });
    }
    let z = normal_quantile(1.0 - alpha / 2.0);
    // Between two differences nothing of the first sample is tied with the second.
    let sigma = sigma(a.len(), b.len(), samples.ties_within());
    let lower = crossing(&differences, sigma, z);
    let upper = crossing(&differences, sigma, -z);
    Ok(Shift { estimate, lower, upper, coverage: confidence, method: Method::Normal })
}

/// Cliff's delta: the share of pairs in which the first value is larger minus the share in which it is smaller, −1..=1.
///
/// # Errors
/// For an empty sample, and values that are not finite.
pub fn cliffs_delta(a: &[f64], b: &[f64]) -> Result<f64, StatsError> {
    let u = Samples::new(a, b)?.u();
    let pairs = (a.len() * b.len()) as f64;
    Ok((2.0 * u - pairs) / pairs)
}

/// The smallest two-sided p value of samples of `n` and `m` values.
pub fn smallest_p(n: usize, m: usize) -> f64 {
    (2.0 * (-ln_binomial((n + m) as u64, n as u64)).exp()).min(1.0)
}

/// Values of both samples up to which ties are counted out exactly.
const MOST_TIED: usize = 50;

struct Samples<'a> {
    a: &'a [f64],
    b: &'a [f64],
}

impl<'a> Samples<'a> {
    fn new(a: &'a [f64], b: &'a [f64]) -> Result<Self, StatsError> {
        check_values("a comparison of ranks", a, 1)?;
        check_values("a comparison of ranks", b, 1)?;
        Ok(Self { a, b })
    }

    /// Pairs in which the first value is larger, and half of the tied ones.
    fn u(&self) -> f64 {
        let mut b = self.b.to_vec();
        b.sort_unstable_by(f64::total_cmp);
        let half_pairs: usize =
            self.a.iter().map(|x| b.partition_point(|y| y < x) + b.partition_point(|y| y <= x)).sum();
        half_pairs as f64 / 2.0
    }

    /// P(U ≤ u) and P(U ≥ u) over all ways to divide these values, some of them alike, into samples of these sizes. Twice
    /// the ranks of tied values are whole numbers, so that sums of them can be counted.
    fn tied_tails(&self) -> (f64, f64) {
        let mut all = [self.a, self.b].concat();
        all.sort_unstable_by(f64::total_cmp);
        let twice_rank = |value: f64| {
            all.partition_point(|&other| other < value) + all.partition_point(|&other| other <= value) + 1
        };
        let own: usize = self.a.iter().map(|&value| twice_rank(value)).sum();
        let largest: usize = all.iter().rev().take(self.a.len()).map(|&value| twice_rank(value)).sum();
        // ways[k][s]: choices of k values with s as the sum of their ranks, twice.
        let mut ways = vec![vec![0.0f64; largest + 1]; self.a.len() + 1];
        ways[0][0] = 1.0;
        for rank in all.iter().map(|&value| twice_rank(value)) {
            for chosen in (1..ways.len()).rev() {
                let (fewer, more) = ways.split_at_mut(chosen);
                for sum in rank..=largest {
                    more[0][sum] += fewer[chosen - 1][sum - rank];
                }
            }
        }
        let counts = &ways[self.a.len()];
        let total: f64 = counts.iter().sum();
        (counts[..=own].iter().sum::<f64>() / total, counts[own..].iter().sum::<f64>() / total)
    }

    fn exact(&self) -> bool {
        self.a.len() < 50 && self.b.len() < 50 && self.ties() == 0.0
    }

    /// Σ(t³ − t) over the groups of equal values.
    fn ties(&self) -> f64 {
        ties([self.a, self.b].concat())
    }

    /// The same for groups within each sample only, as when one of them is shifted a little.
    fn ties_within(&self) -> f64 {
        ties(self.a.to_vec()) + ties(self.b.to_vec())
    }
}

fn ties(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let cubes = |group: &[f64]| (group.len() as f64).powi(3) - group.len() as f64;
    values.chunk_by(|x, y| x == y).map(cubes).sum()
}

/// Standard deviation of U: σ² = nm/12·(N + 1 − Σ(t³ − t)/(N(N − 1))).
fn sigma(n: usize, m: usize, tied: f64) -> f64 {
    let (n, m) = (n as f64, m as f64);
    let all = n + m;
    (n * m / 12.0 * (all + 1.0 - tied / (all * (all - 1.0)))).max(0.0).sqrt()
}

/// P(Z ≥ z).
fn normal_upper(z: f64) -> f64 {
    erfc(z / std::f64::consts::SQRT_2) / 2.0
}

/// The difference at which the standardised statistic of the shifted samples falls from above to below `z`.
fn crossing(differences: &[f64], sigma: f64, z: f64) -> f64 {
    let pairs = differences.len();
    let middle = pairs as f64 / 2.0;
    let above = |larger: usize| {
        let distance = larger as f64 - middle;
        let correction = if distance == 0.0 { 0.0 } else { 0.5f64.copysign(distance) };
        distance - correction > z * sigma
    };
    // After the difference at index i, `pairs − 1 − i` are larger than the shift, if the next one is not the same.
    let beyond = |value: f64| pairs - differences.partition_point(|&d| d <= value);
    let index = differences.partition_point(|&d| above(beyond(d)));
    differences[index.min(pairs - 1)]
}

/// The exact distribution of U for n and m values without ties.
struct Distribution {
    /// P(U ≤ u).
    cumulative: Vec<f64>,
}

impl Distribution {
    fn new(n: usize, m: usize) -> Self {
        // Choices of n of the ranks 0..n+m by their sum of (rank − place), as the coefficients of a Gaussian binomial.
        let largest = n * m;
        let mut ways = vec![vec![0.0; largest + 1]; n + 1];
        ways[0][0] = 1.0;
        for rank in 0..n + m {
            for chosen in (1..=n.min(rank + 1)).rev() {
                let place = chosen - 1;
                let excess = rank - place;
                if excess > m {
                    continue;
                }
                let (fewer, more) = ways.split_at_mut(chosen);
                for u in excess..=largest {
                    more[0][u] += fewer[place][u - excess];
                }
            }
        }
        let total: f64 = ways[n].iter().sum();
        let mut sum = 0.0;
        let cumulative = ways[n]
            .iter()
            .map(|w| {
                sum += w;
                sum / total
            })
            .collect();
        Self { cumulative }
    }

    fn at_most(&self, u: usize) -> f64 {
        self.cumulative[u]
    }

    /// By symmetry.
    fn at_least(&self, u: usize) -> f64 {
        self.cumulative[self.cumulative.len() - 1 - u]
    }

    /// The least u with P(U ≤ u) ≥ p.
    fn quantile(&self, p: f64) -> usize {
        // As in R: equality up to rounding counts as reached.
        let p = p * (1.0 - 64.0 * f64::EPSILON);
        self.cumulative.partition_point(|&c| c < p)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
    }

    #[test]
    fn three_and_three_cannot_reach_the_usual_level() {
        let found = mann_whitney(&[1.0, 2.0, 3.0], &[10.0, 11.0, 12.0]).unwrap();
        assert_eq!((found.u, found.method), (0.0, Method::Exact));
        close(found.p_two_sided, 0.1);
        close(found.smallest_p, 0.1);
        close(found.p_less, 0.05);
        close(found.p_greater, 1.0);
        let shift = hodges_lehmann(&[1.0, 2.0, 3.0], &[10.0, 11.0, 12.0], 0.95).unwrap();
        assert_eq!((shift.lower, shift.estimate, shift.upper), (-11.0, -9.0, -7.0));
        close(shift.coverage, 0.9);
        assert_eq!(cliffs_delta(&[1.0, 2.0], &[3.0]).unwrap(), -1.0);
        // Sizes from which p < 0.05 is possible at all.
        assert!(smallest_p(4, 4) < 0.05 && smallest_p(3, 5) < 0.05 && smallest_p(3, 4) > 0.05);
        close(smallest_p(1, 1), 1.0);
    }

    /// Counts of the distribution for 2 and 3 values, by hand: 1 1 2 2 2 1 1 of 10.
    #[test]
    fn the_exact_distribution() {
        let distribution = Distribution::new(2, 3);
        for (u, count) in [1.0, 2.0, 4.0, 6.0, 8.0, 9.0, 10.0].into_iter().enumerate() {
            close(distribution.at_most(u), count / 10.0);
        }
        close(distribution.at_least(6), 0.1);
        assert_eq!((distribution.quantile(0.1), distribution.quantile(0.11)), (0, 1));
        // Large samples keep their digits.
        let large = Distribution::new(49, 49);
        close(large.at_most(49 * 49), 1.0);
        close(large.at_most(1200) + large.at_most(49 * 49 - 1201), 1.0);
    }

    /// By hand: a = 1, 2, 2, 5 and b = 2, 6, 7 have the ranks 1 3 3 5 and 3 6 7, so that U = 2. Of the 35 choices of four
    /// ranks from 1 3 3 3 5 6 7, these have a sum of no more than 12: 1 3 3 3 (1 way) and 1 3 3 5 (3 ways).
    #[test]
    fn ties_are_counted_out() {
        let (a, b) = ([1.0, 2.0, 2.0, 5.0], [2.0, 6.0, 7.0]);
        let found = mann_whitney(&a, &b).unwrap();
        assert_eq!((found.u, found.method), (2.0, Method::Exact));
        close(found.p_less, 4.0 / 35.0);
        close(found.p_greater, 34.0 / 35.0);
        close(found.p_two_sided, 8.0 / 35.0);
        // Three equal values against three others: 1 of the 20 divisions is as extreme, on either side.
        let constants = mann_whitney(&[5.0; 3], &[6.0; 3]).unwrap();
        close(constants.p_two_sided, 0.1);
        assert!(constants.p_two_sided >= constants.smallest_p - 1e-12);
    }

    /// The same values seven times: σ² = nm/12·(N + 1 − Σ(t³ − t)/(N(N − 1))) with groups of 7, 21, 7, 7, 7.
    #[test]
    fn many_ties_are_corrected_for() {
        let (a, b) = ([1.0, 2.0, 2.0, 5.0].repeat(7), [2.0, 6.0, 7.0].repeat(9));
        let found = mann_whitney(&a, &b).unwrap();
        assert_eq!(found.method, Method::Normal);
        let (u, tied) = (63.0 * 2.0, [7.0, 23.0, 7.0, 9.0, 9.0].iter().map(|t: &f64| t.powi(3) - t).sum());
        close(found.u, u);
        let z = (u - 378.0 + 0.5) / sigma(28, 27, tied);
        close(found.p_two_sided, 2.0 * normal_upper(-z));
        close(found.p_less, normal_upper(-z));
    }

    #[test]
    fn samples_that_are_all_alike_show_nothing() {
        let found = mann_whitney(&[4.0; 5], &[4.0; 6]).unwrap();
        assert_eq!((found.p_two_sided, found.p_greater, found.p_less), (1.0, 1.0, 1.0));
        let shift = hodges_lehmann(&[4.0; 5], &[4.0; 6], 0.95).unwrap();
        assert_eq!((shift.lower, shift.estimate, shift.upper), (0.0, 0.0, 0.0));
        assert!(matches!(mann_whitney(&[], &[1.0]), Err(StatsError::TooFew { .. })));
        assert!(matches!(cliffs_delta(&[f64::NAN], &[1.0]), Err(StatsError::NotFinite { .. })));
    }

    proptest! {
        #[test]
        fn exact_and_normal_agree_for_moderate_samples(seed: u64) {
            let mut generator = crate::random::Generator::new(seed, "rank");
            let a: Vec<f64> = (0..30).map(|_| generator.normal()).collect();
            let b: Vec<f64> = (0..25).map(|_| generator.normal() + 0.5).collect();
            let exact = mann_whitney(&a, &b).unwrap();
            prop_assert_eq!(exact.method, Method::Exact);
            let z = (exact.u - 375.0 - 0.5f64.copysign(exact.u - 375.0)) / sigma(30, 25, 0.0);
            prop_assert!((exact.p_two_sided - (2.0 * normal_upper(z.abs())).min(1.0)).abs() < 0.01);
            // The interval excludes 0 exactly when the test finds a difference.
            let shift = hodges_lehmann(&a, &b, 0.95).unwrap();
            prop_assert_eq!(exact.p_two_sided < 0.05, shift.upper < 0.0 || shift.lower > 0.0);
            prop_assert!(shift.lower <= shift.estimate && shift.estimate <= shift.upper);
            prop_assert!(shift.coverage >= 0.95);
        }

        #[test]
        fn exchanging_the_samples_mirrors_everything(
            a in prop::collection::vec(-9i32..9, 1..12), b in prop::collection::vec(-9i32..9, 1..12)
        ) {
            let (a, b): (Vec<f64>, Vec<f64>) = (a.iter().map(|&v| v.into()).collect(), b.iter().map(|&v| v.into()).collect());
            let (there, back) = (mann_whitney(&a, &b).unwrap(), mann_whitney(&b, &a).unwrap());
            prop_assert!((there.u + back.u - (a.len() * b.len()) as f64).abs() < 1e-12);
            prop_assert!((there.p_two_sided - back.p_two_sided).abs() < 1e-12);
            prop_assert!((there.p_less - back.p_greater).abs() < 1e-12);
            prop_assert!(cliffs_delta(&a, &b).unwrap() == -cliffs_delta(&b, &a).unwrap());
            let (there, back) = (hodges_lehmann(&a, &b, 0.9).unwrap(), hodges_lehmann(&b, &a, 0.9).unwrap());
            prop_assert_eq!(there.estimate, -back.estimate);
        }
    }
}
