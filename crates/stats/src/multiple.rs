//! Several tests at once.

/// Holm's adjusted p values, in the order given: with them compared to α, the probability of one or more false findings
/// in the whole family is at most α, whatever depends on what (Holm 1979).
///
/// A p value that is not a number stays one, and does not count as a member of the family.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).filter(|&i| !p[i].is_nan()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let members = order.len();
    let mut adjusted = p.to_vec();
    let mut largest = 0.0f64;
    for (rank, index) in order.into_iter().enumerate() {
        largest = largest.max((members - rank) as f64 * p[index]).min(1.0);
        adjusted[index] = largest;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")` in R.
    #[test]
    fn as_r_adjusts() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - expected).abs() < 1e-15, "{adjusted:?}");
        }
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.4, 0.9]), [0.8, 0.9]);
        assert_eq!(holm(&[0.6, 0.9]), [1.0, 1.0]);
    }

    #[test]
    fn what_has_no_p_is_no_member() {
        let adjusted = holm(&[0.01, f64::NAN, 0.02]);
        assert_eq!((adjusted[0], adjusted[2]), (0.02, 0.02));
        assert!(adjusted[1].is_nan());
    }

    proptest! {
        #[test]
        fn adjusted_values_are_no_smaller_keep_the_order_and_stay_below_bonferroni(
            p in prop::collection::vec(0.0..=1.0f64, 1..30)
        ) {
            let adjusted = holm(&p);
            for (i, (&raw, &held)) in p.iter().zip(&adjusted).enumerate() {
                prop_assert!(held >= raw && held <= (raw * p.len() as f64).min(1.0) + 1e-15);
                for (j, &other) in p.iter().enumerate() {
                    prop_assert!(raw > other || adjusted[i] <= adjusted[j] + 1e-15);
                }
            }
        }
    }
}
