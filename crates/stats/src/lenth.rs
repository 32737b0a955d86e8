//! Lenth's margin of error for designs without replicates (Lenth 1989).

use crate::descriptive::median;
use crate::error::{StatsError, check_confidence, check_values};
use crate::quantile::t_quantile;

/// What counts as a large effect among the effects themselves, when most of them are nothing but error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lenth {
    /// Number of effects m.
    pub effects: usize,
    /// Pseudo standard error of one effect.
    pub pse: f64,
    /// Degrees of freedom that go with it, m/3.
    pub df: f64,
    /// Margin of error: an effect that was named beforehand is distinguished from 0 when it is larger.
    pub me: f64,
    /// Simultaneous margin of error: with this one all effects may be looked at together.
    pub sme: f64,
    /// Confidence level of both margins.
    pub confidence: f64,
}

impl Lenth {
    /// The t-like ratio of an effect, and its two-sided p value by the margin's distribution.
    pub fn p(&self, effect: f64) -> Option<f64> {
        (self.pse > 0.0).then(|| crate::quantile::t_two_sided_p(effect / self.pse, self.df))
    }
}

/// Lenth's margins from the effects of a design: half effects or full ones, and the margins are of the same kind. The
/// mean is no effect.
pub fn lenth(effects: &[f64], confidence: f64) -> Result<Lenth, StatsError> {
    check_confidence(confidence)?;
    check_values("Lenth's margin of error", effects, LEAST_EFFECTS)?;
    let sizes: Vec<_> = effects.iter().map(|c| c.abs()).collect();
    let first = 1.5 * median(&sizes).unwrap_or(0.0);
    let small: Vec<_> = sizes.iter().copied().filter(|&c| c < 2.5 * first).collect();
    // Nothing is smaller than 0: when half of the effects vanish, so does the error.
    let pse = 1.5 * median(&small).unwrap_or(0.0);
    let m = effects.len() as f64;
    let df = m / 3.0;
    let me = t_quantile(0.5 + confidence / 2.0, df) * pse;
    let sme = t_quantile(0.5 + confidence.powf(1.0 / m) / 2.0, df) * pse;
    Ok(Lenth { effects: effects.len(), pse, df, me, sme, confidence })
}

/// With fewer effects the median of them is itself one of the large ones.
const LEAST_EFFECTS: usize = 3;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_reactor_experiment_without_replicates() {
        // Box, Hunter & Hunter's reactor, the half fraction E = ABCD of its 32 runs: full effects of the 15 columns.
        let y = [
            [61.0, 53.0, 63.0, 61.0, 53.0, 56.0, 54.0, 61.0, 69.0, 61.0, 94.0, 93.0, 66.0, 60.0, 95.0, 98.0],
            [56.0, 63.0, 70.0, 65.0, 59.0, 55.0, 67.0, 65.0, 44.0, 45.0, 78.0, 77.0, 49.0, 42.0, 81.0, 82.0],
        ];
        let half: Vec<_> = (0..16u32)
            .map(|run| vec![y[usize::from(run.count_ones().is_multiple_of(2))][run as usize]])
            .collect();
        let found = crate::factorial::effects(&half, 0.95).unwrap();
        let full: Vec<_> = found.terms[1..].iter().map(|t| 2.0 * t.q).collect();
        assert_eq!(full[0], -2.0);
        assert_eq!(full[1], 20.5);
        let margin = lenth(&full, 0.95).unwrap();
        assert_eq!((margin.effects, margin.df, margin.pse), (15, 5.0, 1.875));
        assert!((margin.me - 4.82).abs() < 0.005 && (margin.sme - 9.78).abs() < 0.005, "{margin:?}");
        let large: Vec<_> = (0..15).filter(|&i| full[i].abs() > margin.me).map(|i| i + 1).collect();
        // B, D, BD, E (= ABCD) and DE (= ABC).
        assert_eq!(large, [2, 7, 8, 10, 15]);
        assert!(margin.p(20.5).unwrap() < 0.001 && margin.p(margin.me).unwrap() > 0.0499);
    }

    #[test]
    fn too_few_effects_have_no_margin() {
        assert!(matches!(lenth(&[1.0, 2.0], 0.95), Err(StatsError::TooFew { needed: 3, found: 2, .. })));
        let zero = lenth(&[0.0, 0.0, 0.0, 5.0], 0.95).unwrap();
        assert_eq!((zero.pse, zero.me, zero.p(5.0)), (0.0, 0.0, None));
    }

    proptest! {
        #[test]
        fn margins_scale_with_the_effects(effects in prop::collection::vec(-9.0..9.0f64, 3..40), scale in 0.1..50.0f64) {
            let (one, other) = (lenth(&effects, 0.95).unwrap(), {
                let scaled: Vec<_> = effects.iter().rev().map(|c| -c * scale).collect();
                lenth(&scaled, 0.95).unwrap()
            });
            prop_assert!((one.pse * scale - other.pse).abs() <= 1e-9 * other.pse);
            prop_assert!(one.sme >= one.me && one.me >= one.pse);
        }
    }
}
