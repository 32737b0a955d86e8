//! Changed, the same, or undecided: an interval against a band of differences that do not matter.

/// What an interval says about a difference, given the differences that do not matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The whole interval is outside the band: there is a difference, and it matters.
    Changed,
    /// The whole interval is within the band: a difference, if there is one, does not matter.
    Same,
    /// Neither: the interval is too wide.
    Undecided,
}

/// Compares an interval with a band, both (lower, upper). Ends that are no numbers decide nothing.
///
/// A 1 − 2α interval within the band is the test of two one-sided hypotheses (TOST) at level α; a 1 − α interval, which
/// is wider, decides for *same* more carefully than that.
pub fn verdict(interval: (f64, f64), band: (f64, f64)) -> Verdict {
    if interval.0 > band.1 || interval.1 < band.0 {
        Verdict::Changed
    } else if interval.0 >= band.0 && interval.1 <= band.1 {
        Verdict::Same
    } else {
        Verdict::Undecided
    }
}

/// The band of ratios that corresponds to ±`share`, symmetric for growth and its reverse: (1/(1 + share), 1 + share).
pub fn ratio_band(share: f64) -> (f64, f64) {
    (1.0 / (1.0 + share), 1.0 + share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict() {
        let band = ratio_band(0.25);
        assert_eq!(band, (0.8, 1.25));
        assert_eq!(verdict((1.3, 1.4), band), Verdict::Changed);
        assert_eq!(verdict((0.5, 0.79), band), Verdict::Changed);
        assert_eq!(verdict((0.8, 1.25), band), Verdict::Same);
        assert_eq!(verdict((1.2, 1.4), band), Verdict::Undecided);
        assert_eq!(verdict((0.5, 2.0), band), Verdict::Undecided);
        assert_eq!(verdict((f64::NAN, f64::NAN), band), Verdict::Undecided);
        // No band: any interval that leaves out 1 is a change, and nothing is ever the same but a point.
        assert_eq!(verdict((1.01, 1.02), ratio_band(0.0)), Verdict::Changed);
        assert_eq!(verdict((0.99, 1.02), ratio_band(0.0)), Verdict::Undecided);
    }
}
