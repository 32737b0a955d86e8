//! How two sequences of numbers go together.

/// Ranks from 1; values that differ by no more than rounding share the mean of theirs.
pub fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<_> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let largest = values.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    let mut ranks = vec![0.0; values.len()];
    let mut start = 0;
    while start < order.len() {
        let mut end = start + 1;
        while end < order.len() && values[order[end]] - values[order[end - 1]] <= 1e-12 * largest {
            end += 1;
        }
        order[start..end].iter().for_each(|&i| ranks[i] = (start + end + 1) as f64 / 2.0);
        start = end;
    }
    ranks
}

/// Pearson's correlation of two sequences of the same length; `None` when either does not vary. Of [`ranks`] it is Spearman's.
pub fn correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    let n = a.len() as f64;
    let (mean_a, mean_b) = (a.iter().sum::<f64>() / n, b.iter().sum::<f64>() / n);
    let (mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a - mean_a, b - mean_b);
        (aa, bb, ab) = (aa + a * a, bb + b * b, ab + a * b);
    }
    (aa > 0.0 && bb > 0.0).then(|| (ab / (aa * bb).sqrt()).clamp(-1.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_the_mean_of_their_ranks() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        assert_eq!(ranks(&[]), [0.0; 0]);
    }

    #[test]
    fn correlations_of_lines_and_of_nothing() {
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[5.0, 4.0, 3.0]), Some(-1.0));
        assert_eq!(correlation(&[1.0, 2.0, 3.0], &[1.0, 1.0, 1.0]), None);
        // Σxy = 4, Σx² = 5, Σy² = 5 about the means.
        let found = correlation(&[1.0, 2.0, 3.0, 4.0], &[1.0, 3.0, 2.0, 4.0]).unwrap();
        assert!((found - 0.8).abs() < 1e-12);
    }
}
