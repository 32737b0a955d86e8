//! Mean, deviation, median.

/// The arithmetic mean; `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    let (&first, rest) = values.split_first()?;
    // Deviations from the first value keep digits when all values are large and close together.
    let shift: f64 = rest.iter().map(|v| v - first).sum();
    Some(first + shift / values.len() as f64)
}

/// The standard deviation of a sample (n − 1 in the denominator); `None` of fewer than two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The median, the mean of the middle two if their number is even; `None` of nothing.
pub fn median(values: &[f64]) -> Option<f64> {
    median_of_sorted(&sorted(values))
}

pub(crate) fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

pub(crate) fn median_of_sorted(sorted: &[f64]) -> Option<f64> {
    let middle = sorted.len() / 2;
    let upper = *sorted.get(middle)?;
    Some(if sorted.len() % 2 == 1 { upper } else { sorted[middle - 1].midpoint(upper) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_samples() {
        assert_eq!((mean(&[]), median(&[]), standard_deviation(&[1.0])), (None, None, None));
        assert_eq!(mean(&[3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(standard_deviation(&[2.0, 4.0]), Some(2f64.sqrt()));
    }

    #[test]
    fn a_large_offset_does_not_drown_the_deviation() {
        let values = [1e12 + 1.0, 1e12 + 2.0, 1e12 + 3.0];
        assert_eq!(mean(&values), Some(1e12 + 2.0));
        assert_eq!(standard_deviation(&values), Some(1.0));
    }
}
