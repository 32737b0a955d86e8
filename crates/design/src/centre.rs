//! Centre points: runs in the middle of all factors, which distinguish a curved response from a straight one.
//!
//! With two numeric levels per factor a factorial design cannot see curvature. Runs with every factor at the mean of its
//! two values can: their mean differs from that of the factorial runs when the response is curved, and their scatter is an
//! estimate of the error without replicates of the design.

/// The level number of every factor in a centre treatment: one more than a two-level factor has.
pub const LEVEL: u32 = 2;

/// The treatment in the centre of all factors.
pub fn row(factors: usize) -> Vec<u32> {
    vec![LEVEL; factors]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_centre_is_in_the_middle_of_all_factors() {
        assert_eq!(row(3), [2, 2, 2]);
    }
}
