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

/// Compares intervals of a difference with a band, all (lower, upper). Ends that are no numbers decide nothing.
///
/// `interval` has the confidence 1 − α and decides for *changed*; `inner` has [`inner_confidence`], 1 − 2α, and decides
/// for *same*: when it is within the band, both one-sided tests (Schuirmann's TOST) refuse at level α that the difference
/// is beyond it.
pub fn verdict(interval: (f64, f64), inner: (f64, f64), band: (f64, f64)) -> Verdict {
    if interval.0 > band.1 || interval.1 < band.0 {
        Verdict::Changed
    } else if inner.0 >= band.0 && inner.1 <= band.1 {
        Verdict::Same
    } else {
        Verdict::Undecided
    }
}

/// The confidence of the interval that two one-sided tests look at: 90 % where intervals have 95 %.
pub fn inner_confidence(confidence: f64) -> f64 {
    2.0 * confidence - 1.0
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
        let of = |interval, band| verdict(interval, interval, band);
        assert_eq!(of((1.3, 1.4), band), Verdict::Changed);
        assert_eq!(of((0.5, 0.79), band), Verdict::Changed);
        assert_eq!(of((0.8, 1.25), band), Verdict::Same);
        assert_eq!(of((1.2, 1.4), band), Verdict::Undecided);
        assert_eq!(of((0.5, 2.0), band), Verdict::Undecided);
        assert_eq!(of((f64::NAN, f64::NAN), band), Verdict::Undecided);
        // Two one-sided tests look at the inner interval.
        assert_eq!(verdict((0.75, 1.3), (0.85, 1.2), band), Verdict::Same);
        assert_eq!(verdict((0.75, 1.3), (0.79, 1.26), band), Verdict::Undecided);
        // No band: any interval that leaves out 1 is a change, and nothing is ever the same but a point.
        assert_eq!(of((1.01, 1.02), ratio_band(0.0)), Verdict::Changed);
        assert_eq!(of((0.99, 1.02), ratio_band(0.0)), Verdict::Undecided);
    }
}
