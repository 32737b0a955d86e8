//! Outliers are flagged, never removed.

use crate::descriptive::{median_of_sorted, sorted};

/// Values whose modified z score is beyond this are flagged (Iglewicz & Hoaglin).
pub const LIMIT: f64 = 3.5;

/// The modified z score 0.6745·(x − median)/MAD of every value.
///
/// `MAD` is the median absolute deviation from the median. When more than half of the values are the same it is 0,
/// and the mean absolute deviation takes its place: (x − median)/(1.2533·mean deviation). `None` for values that are
/// not finite (the others are judged without them) and when there are fewer than three finite values.
pub fn modified_z(values: &[f64]) -> Vec<Option<f64>> {
    let finite: Vec<_> = values.iter().copied().filter(|v| v.is_finite()).collect();
    let score = scorer(&finite);
    values.iter().map(|v| score.as_ref().filter(|_| v.is_finite()).map(|score| score(*v))).collect()
}

/// Which values are outliers: |modified z| > 3.5. Values that are not finite are not judged.
pub fn flags(values: &[f64]) -> Vec<bool> {
    modified_z(values).into_iter().map(|z| z.is_some_and(|z| z.abs() > LIMIT)).collect()
}

fn scorer(finite: &[f64]) -> Option<impl Fn(f64) -> f64 + use<>> {
    if finite.len() < 3 {
        return None;
    }
    let median = median_of_sorted(&sorted(finite))?;
    let deviations: Vec<_> = finite.iter().map(|v| (v - median).abs()).collect();
    let mad = median_of_sorted(&sorted(&deviations))?;
    let mean_deviation = deviations.iter().sum::<f64>() / deviations.len() as f64;
    let scale = if mad > 0.0 { mad / 0.6745 } else { mean_deviation * 1.253_314 };
    Some(move |value| if value == median { 0.0 } else { (value - median) / scale })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_value_far_off_is_flagged() {
        // Median 10, MAD 1: the score of 16 is 0.6745·6 = 4.047, that of 15 3.3725.
        let values = [9.0, 11.0, 10.0, 9.0, 11.0, 10.0, 16.0];
        assert_eq!(flags(&values), [false, false, false, false, false, false, true]);
        assert!((modified_z(&values)[6].unwrap() - 4.047).abs() < 1e-12);
        assert_eq!(flags(&[9.0, 11.0, 10.0, 9.0, 11.0, 10.0, 15.0]), [false; 7]);
    }

    #[test]
    fn equal_values_do_not_hide_or_make_outliers() {
        assert_eq!(flags(&[5.0; 6]), [false; 6]);
        assert_eq!(modified_z(&[5.0; 3]), [Some(0.0); 3]);
        assert_eq!(flags(&[5.0, 5.0, 5.0, 5.0, 9.0]), [false, false, false, false, true]);
        assert_eq!(flags(&[5.0, 5.0, 9.0]), [false; 3]);
    }

    #[test]
    fn too_few_or_unusable_values_are_not_judged() {
        assert_eq!(modified_z(&[]), []);
        assert_eq!(modified_z(&[1.0, 100.0]), [None, None]);
        let scores = modified_z(&[1.0, f64::NAN, 2.0, 3.0]);
        assert_eq!(scores[1], None);
        assert_eq!(scores[2], Some(0.0));
    }
}
