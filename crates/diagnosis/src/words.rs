//! Numbers in sentences.

pub(crate) use benchmaster_units::format::{bytes as size, percent, plural, rate, time};

/// A share of 0 to 1; 0 of nothing.
pub(crate) fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_stay_within_their_range() {
        assert_eq!([share(1.0, 0.0), share(3.0, 2.0), share(1.0, 4.0)], [0.0, 1.0, 0.25]);
    }
}
