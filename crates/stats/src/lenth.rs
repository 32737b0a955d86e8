//! Lenth's margin of error for designs without replicates (Lenth 1989).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::descriptive::{median_of_sorted, sorted};
use crate::error::{StatsError, check_confidence, check_values};
use crate::quantile::t_quantile;
use crate::random::Generator;

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
    /// Simultaneous margin of error, by Lenth's approximation with a t quantile. With few effects it is far too wide.
    pub sme: f64,
    /// What the largest of as many effects of normal noise stays below, with the confidence level as probability: by
    /// simulation of the noise, as Ye and Hamada (2000) proposed. With this one all effects may be looked at together.
    pub simultaneous: f64,
    /// Confidence level of both margins.
    pub confidence: f64,
}

impl Lenth {
    /// The t-like ratio of an effect, and its two-sided p value by the margin's distribution.
    pub fn p(&self, effect: f64) -> Option<f64> {
        (self.pse > 0.0).then(|| crate::quantile::t_two_sided_p(effect / self.pse, self.df))
    }

    /// The probability that the largest of as many effects of noise is as large as this, compared with their own pseudo
    /// standard error. By simulation, so that it is never less than one in the number of [`trials`].
    pub fn p_largest(&self, effect: f64) -> Option<f64> {
        (self.pse > 0.0).then(|| {
            let largest = largest_of_noise(self.effects);
            let ratio = effect.abs() / self.pse;
            let beyond = largest.len() - largest.partition_point(|&of_noise| of_noise < ratio);
            (beyond + 1) as f64 / (largest.len() + 1) as f64
        })
    }
}

/// Lenth's margins from the effects of a design: half effects or full ones, and the margins are of the same kind. The
/// mean is no effect.
pub fn lenth(effects: &[f64], confidence: f64) -> Result<Lenth, StatsError> {
    check_confidence(confidence)?;
    check_values("Lenth's margin of error", effects, LEAST_EFFECTS)?;
    // Nothing is smaller than 0: when half of the effects vanish, so does the error.
    let pse = pseudo_standard_error(&sorted(&effects.iter().map(|c| c.abs()).collect::<Vec<_>>()));
    let m = effects.len() as f64;
    let df = m / 3.0;
    let me = t_quantile(0.5 + confidence / 2.0, df) * pse;
    let sme = t_quantile(0.5 + confidence.powf(1.0 / m) / 2.0, df) * pse;
    let largest = largest_of_noise(effects.len());
    let place = ((largest.len() + 1) as f64 * confidence).ceil() as usize;
    let simultaneous = largest[place.clamp(1, largest.len()) - 1] * pse;
    Ok(Lenth { effects: effects.len(), pse, df, me, sme, simultaneous, confidence })
}

/// 1.5 times the median of the sizes below 2.5 times 1.5 times the median of all.
fn pseudo_standard_error(sorted: &[f64]) -> f64 {
    let first = 1.5 * median_of_sorted(sorted).unwrap_or(0.0);
    let small = &sorted[..sorted.partition_point(|&size| size < 2.5 * first)];
    1.5 * median_of_sorted(small).unwrap_or(0.0)
}

/// Simulated experiments of this many effects: enough for a standard error of 0.0016 at 5 % up to 50 effects.
pub fn trials(effects: usize) -> usize {
    (1_000_000 / effects.max(1)).clamp(2_000, 20_000)
}

/// The largest ratio of an effect to the pseudo standard error in experiments of this many effects that are all normal
/// noise, ascending. Always the same ones: the seed is a constant.
fn largest_of_noise(effects: usize) -> Arc<[f64]> {
    static KNOWN: Mutex<BTreeMap<usize, Arc<[f64]>>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known().get(&effects) {
        return Arc::clone(found);
    }
    let mut generator = Generator::new(effects as u64, "largest effect of noise");
    let mut one = || {
        let mut sizes: Vec<f64> = (0..effects).map(|_| generator.normal().abs()).collect();
        sizes.sort_unstable_by(f64::total_cmp);
        sizes[effects - 1] / pseudo_standard_error(&sizes)
    };
    let mut largest: Vec<f64> = (0..trials(effects)).map(|_| one()).collect();
    largest.sort_unstable_by(f64::total_cmp);
    let largest: Arc<[f64]> = largest.into();
    known().insert(effects, Arc::clone(&largest));
    largest
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

    /// Noise drawn with another seed exceeds the simultaneous margin as often as promised: 5 % of 4,000, ± 0.35 %.
    #[test]
    fn the_largest_of_noise_stays_below_the_simultaneous_margin() {
        for m in [7, 15, 31] {
            let mut draw = Generator::new(m, "another seed");
            let mut beyond = 0;
            for _ in 0..4_000 {
                let effects: Vec<f64> = (0..m).map(|_| draw.normal()).collect();
                let found = lenth(&effects, 0.95).unwrap();
                let largest = effects.iter().fold(0.0, |a: f64, e| a.max(e.abs()));
                beyond += u32::from(largest > found.simultaneous);
                assert_eq!(largest > found.simultaneous, found.p_largest(largest).unwrap() <= 0.05);
            }
            assert!((152..=248).contains(&beyond), "{m}: {beyond} of 4000");
        }
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
            prop_assert!(one.sme >= one.me && one.me >= one.pse && one.simultaneous >= one.pse);
        }
    }
}
