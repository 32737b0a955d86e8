//! Centre points: runs in the middle of all factors, which distinguish a curved response from a straight one.
//!
//! With two numeric levels per factor a factorial design cannot see curvature. Runs with every factor at the mean of its
//! two values can: their mean differs from that of the factorial runs when the response is curved, and their scatter is an
//! estimate of the error without replicates of the design.

use crate::design::DesignError;

/// The level number of every factor in a centre treatment: one more than a two-level factor has.
pub const LEVEL: u32 = 2;

/// The treatment in the centre of all factors.
pub fn row(factors: usize) -> Vec<u32> {
    vec![LEVEL; factors]
}

/// Whether a row of a two-level design is a centre treatment.
pub fn is_centre(row: &[u32]) -> bool {
    !row.is_empty() && row.iter().all(|&level| level == LEVEL)
}

/// The value of a factor in the centre: the mean of its two values.
pub fn value(low: f64, high: f64) -> f64 {
    low / 2.0 + high / 2.0
}

/// Whether a design can have centre points. `numeric` says of each factor whether its levels are numbers.
///
/// # Errors
/// The first factor that does not have two levels, or levels that are no numbers.
pub fn check(levels: &[u32], numeric: &[bool]) -> Result<(), DesignError> {
    let without = levels.iter().zip(numeric).position(|(&levels, &numeric)| levels != 2 || !numeric);
    match without {
        Some(factor) => Err(DesignError::NoCentre { factor, levels: levels[factor] }),
        None => Ok(()),
    }
}

/// The block of each centre point, from 0: spread as evenly as possible, so that every block shows its own drift.
pub fn blocks(points: u32, blocks: u32) -> Vec<u32> {
    (0..points).map(|point| point % blocks.max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_centre_is_in_the_middle_of_all_factors() {
        assert_eq!(row(3), [2, 2, 2]);
        assert!(is_centre(&row(3)));
        assert!(!is_centre(&[2, 1]) && !is_centre(&[]));
        assert_eq!(value(-1.0, 4.0), 1.5);
        assert_eq!(value(f64::MAX, f64::MAX), f64::MAX);
        assert_eq!(blocks(5, 2), [0, 1, 0, 1, 0]);
    }

    #[test]
    fn factors_without_a_centre_are_named() {
        assert_eq!(check(&[2, 2], &[true, true]), Ok(()));
        let text = |levels: &[u32], numeric: &[bool]| check(levels, numeric).unwrap_err().to_string();
        assert_eq!(
            text(&[2, 2], &[true, false]),
            "centre points need two numeric levels of every factor, and factor 2 has levels that are no numbers; leave \
             the centre points out, or make it a factor of two numbers"
        );
        assert!(text(&[3, 2], &[true, true]).contains("factor 1 has 3 levels;"));
    }
}
