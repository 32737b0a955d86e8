//! How evenly clients or workers shared.

/// Jain's fairness index (Σx)²/(n·Σx²): 1 when all get the same, 1/n when one gets all.
///
/// `None` for no values, when one is negative or not finite, and when all are 0.
pub fn jain(values: &[f64]) -> Option<f64> {
    let largest = largest_of_shares(values)?;
    // Scaled by the largest, so that no square overflows or vanishes.
    let (sum, squares) = values
        .iter()
        .map(|v| v / largest)
        .fold((0.0, 0.0), |(sum, squares), share| (sum + share, squares + share * share));
    Some(sum * sum / (values.len() as f64 * squares))
}

/// The largest value divided by the smallest; infinite when the smallest is 0.
///
/// `None` for no values, when one is negative or not finite, and when all are 0.
pub fn max_min_ratio(values: &[f64]) -> Option<f64> {
    let largest = largest_of_shares(values)?;
    Some(largest / values.iter().copied().fold(largest, f64::min).abs())
}

/// Values divided into two groups.
#[derive(Debug, Clone, PartialEq)]
pub struct TwoClusters {
    /// Indices of the smaller values.
    pub losers: Vec<usize>,
    /// Indices of the larger values.
    pub winners: Vec<usize>,
    /// Mean of the smaller values.
    pub losers_mean: f64,
    /// Mean of the larger values.
    pub winners_mean: f64,
    /// The larger of the two coefficients of variation within the groups; 0 for groups of one value.
    pub variation: f64,
}

impl TwoClusters {
    /// Mean of the larger values over mean of the smaller.
    pub fn ratio(&self) -> f64 {
        self.winners_mean / self.losers_mean
    }

    /// Whether the groups are winners and losers, and not only the upper and lower part of a spread: the ratio is at least
    /// 1.5, and the values of a group vary by at most 10 %.
    pub fn is_pattern(&self) -> bool {
        self.ratio() >= 1.5 && self.variation <= 0.1
    }
}

/// The division into two groups with the least sum of squares within them (optimal 2-means in one dimension).
///
/// `None` for fewer than two values, when one is negative or not finite, and when all are the same.
pub fn two_clusters(values: &[f64]) -> Option<TwoClusters> {
    largest_of_shares(values)?;
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    if order.len() < 2 || values[order[0]] == values[order[order.len() - 1]] {
        return None;
    }
    let of = |part: &[usize]| -> (f64, f64) {
        let mean = part.iter().map(|&i| values[i]).sum::<f64>() / part.len() as f64;
        (mean, part.iter().map(|&i| (values[i] - mean).powi(2)).sum())
    };
    let within = |cut: usize| of(&order[..cut]).1 + of(&order[cut..]).1;
    let cut = (1..order.len()).min_by(|&a, &b| within(a).total_cmp(&within(b)))?;
    let (losers, winners) = order.split_at(cut);
    let variation = |part: &[usize]| {
        let (mean, squares) = of(part);
        if squares == 0.0 { 0.0 } else { (squares / (part.len() - 1) as f64).sqrt() / mean }
    };
    let sorted = |part: &[usize]| {
        let mut part = part.to_vec();
        part.sort_unstable();
        part
    };
    Some(TwoClusters {
        losers_mean: of(losers).0,
        winners_mean: of(winners).0,
        variation: variation(losers).max(variation(winners)),
        losers: sorted(losers),
        winners: sorted(winners),
    })
}

fn largest_of_shares(values: &[f64]) -> Option<f64> {
    let valid = values.iter().all(|v| v.is_finite() && *v >= 0.0);
    let largest = values.iter().copied().fold(0.0, f64::max);
    (valid && largest > 0.0).then_some(largest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn extremes() {
        assert_eq!(jain(&[0.0, 0.0, 7.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[1e300, 1e300]), Some(1.0));
        assert_eq!(max_min_ratio(&[12.0, 36.0]), Some(3.0));
        assert_eq!(max_min_ratio(&[-0.0, 36.0]), Some(f64::INFINITY));
        for undefined in [&[][..], &[0.0, 0.0], &[1.0, -1.0], &[1.0, f64::NAN]] {
            assert_eq!((jain(undefined), max_min_ratio(undefined)), (None, None));
        }
    }

    /// Fig 4 of the first paper: two of five clients share a queue.
    #[test]
    fn winners_and_losers() {
        let found = two_clusters(&[14.0, 28.0, 14.1, 28.2, 27.9]).unwrap();
        assert_eq!((found.losers.as_slice(), found.winners.as_slice()), (&[0, 2][..], &[1, 3, 4][..]));
        assert!((found.ratio() - 28.033_333 / 14.05).abs() < 1e-6 && found.is_pattern());
        // An even spread has an upper and a lower part as well, but those vary in themselves.
        let spread = two_clusters(&[10.0, 14.0, 18.0, 22.0, 26.0, 30.0]).unwrap();
        assert!(spread.ratio() > 1.5 && !spread.is_pattern());
        assert!(!two_clusters(&[20.0, 21.0, 24.0]).unwrap().is_pattern());
        let one_starves = two_clusters(&[25.0, 1.3, 25.0, 25.0]).unwrap();
        assert_eq!((one_starves.losers.as_slice(), one_starves.variation), (&[1][..], 0.0));
        assert_eq!(
            (two_clusters(&[5.0]), two_clusters(&[5.0; 3]), two_clusters(&[1.0, -1.0])),
            (None, None, None)
        );
    }

    proptest! {
        #[test]
        fn the_index_stays_in_its_range(values in prop::collection::vec(0.0..1e12f64, 1..50)) {
            prop_assume!(values.iter().any(|v| *v > 0.0));
            let index = jain(&values).unwrap();
            prop_assert!(index >= 1.0 / values.len() as f64 - 1e-12 && index <= 1.0 + 1e-12, "{index}");
        }
    }
}
