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

    proptest! {
        #[test]
        fn the_index_stays_in_its_range(values in prop::collection::vec(0.0..1e12f64, 1..50)) {
            prop_assume!(values.iter().any(|v| *v > 0.0));
            let index = jain(&values).unwrap();
            prop_assert!(index >= 1.0 / values.len() as f64 - 1e-12 && index <= 1.0 + 1e-12, "{index}");
        }
    }
}
