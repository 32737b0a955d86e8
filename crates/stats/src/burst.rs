//! Bursts and stalls that alternate in a series of rates.
//!
//! A writer without synchronisation fills a cache at the speed of memory until too much of it is dirty; then it stands
//! still while the cache is written out, and begins again. The mean rate of such a run says little: it depends on how
//! many whole cycles were measured.

use crate::descriptive::{mean, standard_deviation};

/// Fewest samples that are judged.
pub const MIN_SAMPLES: usize = 10;
/// Samples up to this share of the bursts' level are stalls.
pub const STALL_BELOW: f64 = 0.05;
/// Samples from this share of the bursts' level on are bursts. What lies between belongs to the state before it: a sample in
/// which a burst begins or ends holds a part of it only.
pub const BURST_FROM: f64 = 0.25;
/// Least share of the samples, from the first burst on, that must be stalls.
pub const MIN_STALL_SHARE: f64 = 0.2;
/// Fewest stalled samples.
pub const MIN_STALLED: usize = 3;
/// Largest share of samples that may be neither. A rate that merely varies has most of its values there.
pub const MAX_BETWEEN: f64 = 1.0 / 3.0;

/// Samples of one state that follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// Index of the first.
    pub start: usize,
    /// Number of samples.
    pub length: usize,
}

/// Bursts and stalls found in a series.
#[derive(Debug, Clone, PartialEq)]
pub struct BurstAndFlush {
    /// The bursts, in order; the first may follow samples without any rate, which belong to no stall.
    pub bursts: Vec<Stretch>,
    /// The stalls: the first follows the first burst, the last may reach to the end of the series.
    pub stalls: Vec<Stretch>,
    /// Mean of the samples of all bursts.
    pub burst_rate: f64,
    /// Mean of the samples of all stalls.
    pub stall_rate: f64,
    /// Stalled samples divided by all from the first burst on.
    pub stall_share: f64,
    /// Samples of whole cycles (start of a burst to start of the next) that are bursts, divided by all of them; `None`
    /// without a whole cycle.
    pub duty: Option<f64>,
    /// Mean length of a whole cycle in samples; `None` without one.
    pub period: Option<f64>,
    /// Standard deviation of the lengths of whole cycles divided by their mean; `None` with fewer than two.
    pub period_variation: Option<f64>,
}

impl BurstAndFlush {
    /// Number of whole cycles: from the start of a burst to the start of the next.
    pub fn cycles(&self) -> usize {
        self.bursts.len().saturating_sub(1)
    }

    /// Length of the longest stall in samples.
    pub fn longest_stall(&self) -> usize {
        self.stalls.iter().map(|stall| stall.length).max().unwrap_or(0)
    }
}

/// Looks for bursts and stalls in rates sampled at equal distances.
///
/// The level of the bursts is found by dividing the logarithms of the samples in two (Ridler and Calvard's iteration), so that
/// a first burst much higher than the others hides none of them. A series has the pattern if a burst is followed by a
/// stall, stalls are deep ([`STALL_BELOW`]) and take up much of the time ([`MIN_STALL_SHARE`], [`MIN_STALLED`]), and few
/// samples lie between ([`MAX_BETWEEN`]). Whether the burst came back is in [`BurstAndFlush::cycles`].
///
/// `None` where the series has not the pattern, is shorter than [`MIN_SAMPLES`], or has a value that is negative or no
/// finite number.
pub fn burst_and_flush(rates: &[f64]) -> Option<BurstAndFlush> {
    if rates.len() < MIN_SAMPLES || rates.iter().any(|rate| !rate.is_finite() || *rate < 0.0) {
        return None;
    }
    let level = burst_level(rates)?;
    let first = rates.iter().position(|rate| *rate >= BURST_FROM * level)?;
    let (bursts, stalls) = stretches(rates, first, level);
    let stalled: usize = stalls.iter().map(|stall| stall.length).sum();
    let stall_share = stalled as f64 / (rates.len() - first) as f64;
    let between =
        rates[first..].iter().filter(|rate| **rate > STALL_BELOW * level && **rate < BURST_FROM * level);
    let too_many_between = between.count() as f64 > MAX_BETWEEN * (rates.len() - first) as f64;
    if stalled < MIN_STALLED || stall_share < MIN_STALL_SHARE || too_many_between {
        return None;
    }
    let samples = |list: &[Stretch]| -> Vec<f64> {
        list.iter().flat_map(|s| &rates[s.start..s.start + s.length]).copied().collect()
    };
    let cycles: Vec<f64> = bursts.windows(2).map(|pair| (pair[1].start - pair[0].start) as f64).collect();
    let whole: f64 = cycles.iter().sum();
    let bursting: usize = bursts.iter().take(cycles.len()).map(|burst| burst.length).sum();
    let period = mean(&cycles);
    Some(BurstAndFlush {
        burst_rate: mean(&samples(&bursts))?,
        stall_rate: mean(&samples(&stalls))?,
        stall_share,
        duty: period.map(|_| bursting as f64 / whole),
        period,
        period_variation: standard_deviation(&cycles)
            .zip(period)
            .map(|(deviation, period)| deviation / period),
        bursts,
        stalls,
    })
}

/// The mean of the upper of the two classes of samples; `None` when all are 0.
fn burst_level(rates: &[f64]) -> Option<f64> {
    let largest = rates.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return None;
    }
    // A thousandth of the largest is as good as nothing: below it the logarithm would distinguish zeros from trifles.
    let logarithm = |rate: &f64| (rate / largest + 1e-3).ln();
    let class = |threshold: f64, upper: bool| -> Vec<f64> {
        rates.iter().map(logarithm).filter(|value| (*value > threshold) == upper).collect()
    };
    let mut threshold = logarithm(&largest).midpoint(logarithm(&0.0));
    for _ in 0..100 {
        let (Some(low), Some(high)) = (mean(&class(threshold, false)), mean(&class(threshold, true))) else {
            break;
        };
        let next = low.midpoint(high);
        if (next - threshold).abs() < 1e-9 {
            break;
        }
        threshold = next;
    }
    let upper: Vec<f64> = rates.iter().copied().filter(|rate| logarithm(rate) > threshold).collect();
    mean(&upper)
}

/// The bursts and stalls from `first` on, where a burst begins.
fn stretches(rates: &[f64], first: usize, level: f64) -> (Vec<Stretch>, Vec<Stretch>) {
    let (mut bursts, mut stalls): (Vec<Stretch>, Vec<Stretch>) = (Vec::new(), Vec::new());
    let mut in_burst = false;
    for (index, rate) in rates.iter().enumerate().skip(first) {
        let now = if *rate >= BURST_FROM * level {
            true
        } else if *rate <= STALL_BELOW * level {
            false
        } else {
            in_burst
        };
        let list = if now { &mut bursts } else { &mut stalls };
        match list.last_mut().filter(|_| now == in_burst) {
            Some(last) => last.length += 1,
            None => list.push(Stretch { start: index, length: 1 }),
        }
        in_burst = now;
    }
    (bursts, stalls)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::random::Generator;

    fn cycles(burst: usize, stall: usize, times: usize, high: f64, low: f64) -> Vec<f64> {
        let one: Vec<f64> = [vec![high; burst], vec![low; stall]].concat();
        one.repeat(times)
    }

    #[test]
    fn whole_cycles_are_described_by_figures() {
        let found = burst_and_flush(&cycles(4, 12, 5, 800.0, 8.0)).unwrap();
        assert_eq!((found.cycles(), found.bursts.len(), found.stalls.len()), (4, 5, 5));
        assert_eq!((found.burst_rate, found.stall_rate, found.stall_share), (800.0, 8.0, 0.75));
        assert_eq!((found.period, found.duty, found.period_variation), (Some(16.0), Some(0.25), Some(0.0)));
        assert_eq!((found.longest_stall(), found.stalls[1]), (12, Stretch { start: 20, length: 12 }));
    }

    #[test]
    fn seconds_of_memory_speed_and_minutes_of_flushing() {
        // As a writer without O_SYNC over NFS: more than 1 GB/s for some seconds, nothing for up to five minutes, again.
        let mut series = Vec::new();
        for (burst, stall) in [(9, 290), (7, 275), (8, 300)] {
            series.extend((0..burst).map(|i| 1.1e9 + 2e7 * f64::from(i)));
            series.push(1.5e8);
            series.extend((0..stall).map(|i| if i % 7 == 0 { 2e6 } else { 0.0 }));
        }
        let found = burst_and_flush(&series).unwrap();
        assert_eq!((found.bursts.len(), found.stalls.len(), found.longest_stall()), (3, 3, 300));
        assert_eq!(found.bursts[0], Stretch { start: 0, length: 10 });
        assert!(found.burst_rate > 9e8 && found.stall_rate < 1e6 && found.stall_share > 0.95);
        assert_eq!(found.period, Some(291.5));
    }

    #[test]
    fn a_first_burst_far_above_the_others_hides_none() {
        let series = [vec![1000.0; 6], vec![0.0; 10], cycles(5, 10, 4, 120.0, 0.0)].concat();
        let found = burst_and_flush(&series).unwrap();
        assert_eq!((found.bursts.len(), found.stalls.len()), (5, 5));
    }

    #[test]
    fn a_burst_that_did_not_come_back_has_no_period() {
        let found = burst_and_flush(&[vec![0.0; 3], vec![500.0; 10], vec![0.0; 20]].concat()).unwrap();
        assert_eq!((found.cycles(), found.period, found.duty), (0, None, None));
        assert_eq!((found.bursts[0].start, found.stalls.len(), found.stall_share), (3, 1, 20.0 / 30.0));
    }

    #[test]
    fn other_series_have_not_the_pattern() {
        let level = vec![100.0; 60];
        let drop_to_a_tenth = cycles(5, 5, 6, 100.0, 10.0);
        let one_short_stall = [vec![100.0; 40], vec![0.0; 2], vec![100.0; 40]].concat();
        let initial_burst = [vec![1000.0; 5], vec![100.0; 55]].concat();
        let ramp: Vec<f64> = (0..100).map(f64::from).collect();
        let saw: Vec<f64> = (0..100).map(|i| f64::from(i % 10) + 1.0).collect();
        let late_start = [vec![0.0; 30], vec![100.0; 30]].concat();
        for (name, series) in [
            ("level", level),
            ("a tenth is no stall", drop_to_a_tenth),
            ("one short stall", one_short_stall),
            ("an initial burst and a level rate", initial_burst),
            ("ramp", ramp),
            ("saw", saw),
            ("late start", late_start),
            ("nothing at all", vec![0.0; 20]),
        ] {
            assert_eq!(burst_and_flush(&series), None, "{name}");
        }
    }

    #[test]
    fn rates_that_vary_by_chance_have_not_the_pattern() {
        for seed in 0..200 {
            let mut generator = Generator::new(seed, "rates");
            let exponential: Vec<f64> = (0..120).map(|_| -(1.0 - generator.uniform()).ln()).collect();
            let uniform: Vec<f64> = (0..120).map(|_| generator.uniform()).collect();
            assert_eq!(burst_and_flush(&exponential), None, "exponential, seed {seed}");
            assert_eq!(burst_and_flush(&uniform), None, "uniform, seed {seed}");
        }
    }

    #[test]
    fn short_or_unusable_series_are_not_judged() {
        assert_eq!(burst_and_flush(&cycles(2, 2, 2, 9.0, 0.0)), None);
        assert!(burst_and_flush(&cycles(2, 3, 2, 9.0, 0.0)).is_some());
        for bad in [f64::NAN, f64::INFINITY, -1.0] {
            let mut series = cycles(4, 4, 4, 9.0, 0.0);
            series[3] = bad;
            assert_eq!(burst_and_flush(&series), None);
        }
    }

    proptest! {
        #[test]
        fn made_up_cycles_are_found_whatever_their_size(
            burst in 1..30usize, stall in 3..60usize, times in 2..6usize, scale in 1e-3..1e12f64, noise in 0.0..0.4f64, seed: u64,
        ) {
            prop_assume!((burst + stall) * times >= MIN_SAMPLES && stall * 4 > burst + stall);
            let mut generator = Generator::new(seed, "cycles");
            let series: Vec<f64> = cycles(burst, stall, times, 1.0, 0.0)
                .iter()
                .map(|rate| scale * (rate * (1.0 - noise * generator.uniform())))
                .collect();
            let found = burst_and_flush(&series).unwrap();
            prop_assert_eq!((found.bursts.len(), found.stalls.len()), (times, times));
            prop_assert_eq!(found.period, Some((burst + stall) as f64));
            prop_assert!((found.stall_share - stall as f64 / (burst + stall) as f64).abs() < 1e-12);
        }

        #[test]
        fn stretches_cover_the_series_and_alternate(values in prop::collection::vec(prop_oneof![Just(0.0), 0.0..1.0f64], 10..80)) {
            if let Some(found) = burst_and_flush(&values) {
                let mut all = [found.bursts.clone(), found.stalls.clone()].concat();
                all.sort_by_key(|s| s.start);
                prop_assert!(all.windows(2).all(|pair| pair[0].start + pair[0].length == pair[1].start));
                prop_assert_eq!(all.last().map(|s| s.start + s.length), Some(values.len()));
                prop_assert!(found.stalls.len() == found.bursts.len() || found.stalls.len() + 1 == found.bursts.len());
            }
        }
    }
}
