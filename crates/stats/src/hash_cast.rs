//! Winners and losers when flows are hashed to queues: the null model of unfair shares among clients.
//!
//! Every one of n flows goes to one of q queues, uniformly and independently of the others. Queues are served alike, so
//! a flow that shares its queue with few others wins. The **load** of a queue is the number of its flows; the **ratio**
//! is the largest load divided by the smallest that is not 0, and so the rate of the fastest flow over the slowest.

use std::collections::BTreeMap;

use statrs::function::factorial::ln_factorial;

use crate::error::StatsError;
use crate::random::Generator;

/// Most flows for which the whole distribution of loads is worked out.
pub const MAX_FLOWS: u32 = 256;

/// Most queues.
pub const MAX_QUEUES: u32 = 4096;

/// Probability of a pair of smallest and largest load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    /// Smallest load of the queues that have a flow.
    pub min: u32,
    /// Largest load.
    pub max: u32,
    /// Probability.
    pub probability: f64,
}

/// The exact distribution of the smallest (not 0) and largest load, by load; pairs below 1e-13 are left out.
///
/// # Errors
/// Without flows or queues, or with more than [`MAX_FLOWS`] or [`MAX_QUEUES`].
pub fn distribution(flows: u32, queues: u32) -> Result<Vec<Outcome>, StatsError> {
    check(flows, queues)?;
    let mut outcomes = Vec::new();
    for min in 1..=flows {
        let any = loads_within(flows, queues, min, flows);
        if any <= ROUNDING {
            break;
        }
        let mut rest = any - if min < flows { loads_within(flows, queues, min + 1, flows) } else { 0.0 };
        // P(min ≤ loads ≤ max) and P(min < loads ≤ max), of those with one less at most.
        let (mut before, mut before_above) = (0.0, 0.0);
        for max in min..=flows {
            if rest <= ROUNDING {
                break;
            }
            let within = loads_within(flows, queues, min, max);
            let above = if min < max { loads_within(flows, queues, min + 1, max) } else { 0.0 };
            let probability = within - above - (before - before_above);
            (before, before_above) = (within, above);
            rest -= probability;
            if probability > ROUNDING {
                outcomes.push(Outcome { min, max, probability });
            }
        }
    }
    Ok(outcomes)
}

/// What differences of probabilities near 1 cannot distinguish from 0.
const ROUNDING: f64 = 1e-13;

/// The probability that the largest load is at least `ratio` times the smallest that is not 0.
///
/// # Errors
/// Without flows or queues, with more than [`MAX_FLOWS`] or [`MAX_QUEUES`], and for a ratio that is not a number.
pub fn probability_of_ratio(flows: u32, queues: u32, ratio: f64) -> Result<f64, StatsError> {
    check(flows, queues)?;
    if ratio.is_nan() {
        return Err(StatsError::Argument { what: "the ratio", value: ratio, range: "a number" });
    }
    if ratio <= 1.0 {
        return Ok(1.0);
    }
    let mut smaller = 0.0;
    for min in 1..=flows {
        // The largest load below ratio·min, though 1.1·10 is a little more than 11.
        let limit = (f64::from(min) * ratio * (1.0 - 1e-12)).ceil() - 1.0;
        let max = limit.clamp(f64::from(min), f64::from(flows)) as u32;
        let above = if min < max { loads_within(flows, queues, min + 1, max) } else { 0.0 };
        smaller += loads_within(flows, queues, min, max) - above;
    }
    Ok((1.0 - smaller).clamp(0.0, 1.0))
}

/// The probability that the queues have these loads, in any order. Loads of 0 may be left out.
///
/// # Errors
/// Without flows or queues, or with more than [`MAX_FLOWS`] or [`MAX_QUEUES`].
pub fn probability_of_loads(loads: &[u32], queues: u32) -> Result<f64, StatsError> {
    let flows = loads.iter().fold(0u32, |sum, load| sum.saturating_add(*load));
    check(flows, queues)?;
    let mut times = BTreeMap::new();
    for load in loads.iter().filter(|l| **l > 0) {
        *times.entry(*load).or_insert(0u32) += 1;
    }
    let used: u32 = times.values().sum();
    let Some(empty) = queues.checked_sub(used) else { return Ok(0.0) };
    let ln = |n: u32| ln_factorial(u64::from(n));
    let places = ln(queues) - ln(empty) - times.values().map(|t| ln(*t)).sum::<f64>();
    let flows_there = ln(flows) - times.iter().map(|(load, t)| f64::from(*t) * ln(*load)).sum::<f64>();
    Ok((places + flows_there - f64::from(flows) * f64::from(queues).ln()).exp())
}

/// Trials of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Simulated {
    /// How many.
    pub trials: u64,
    /// How often each pair of smallest (not 0) and largest load came.
    pub counts: BTreeMap<(u32, u32), u64>,
}

impl Simulated {
    /// Share of the trials with a ratio of at least so much.
    pub fn share_of_ratio(&self, ratio: f64) -> f64 {
        let reached = |(min, max): (u32, u32)| f64::from(max) >= f64::from(min) * ratio * (1.0 - 1e-12);
        let times: u64 = self.counts.iter().filter(|(loads, _)| reached(**loads)).map(|(_, n)| n).sum();
        times as f64 / self.trials as f64
    }
}

/// Throws the flows into the queues `trials` times.
///
/// # Errors
/// As [`distribution`], and without a trial.
pub fn simulate(flows: u32, queues: u32, trials: u64, seed: u64) -> Result<Simulated, StatsError> {
    check(flows, queues)?;
    if trials == 0 {
        return Err(StatsError::Argument { what: "the number of trials", value: 0.0, range: "1 or more" });
    }
    let mut generator = Generator::new(seed, "hash-cast");
    let mut counts = BTreeMap::new();
    let mut loads = vec![0u32; queues as usize];
    for _ in 0..trials {
        loads.fill(0);
        for _ in 0..flows {
            loads[generator.below(queues as usize)] += 1;
        }
        let used = loads.iter().copied().filter(|l| *l > 0);
        let (min, max) = used.fold((u32::MAX, 0), |(min, max), load| (min.min(load), max.max(load)));
        *counts.entry((min, max)).or_insert(0) += 1;
    }
    Ok(Simulated { trials, counts })
}

/// P(every load is 0 or within min..=max).
///
/// For some queues w(m) is the probability for m flows in them. Of m flows in two groups of a and b queues, the first has a
/// binomial(m, a/(a + b)) number, so w of both together is a sum of products. Groups are doubled until they are all queues.
/// All terms are positive, so nothing cancels.
fn loads_within(flows: u32, queues: u32, min: u32, max: u32) -> f64 {
    if u64::from(max) * u64::from(queues) < u64::from(flows) {
        return 0.0;
    }
    let n = flows as usize;
    let one = (0..=flows).map(|load| if load == 0 || (min..=max).contains(&load) { 1.0 } else { 0.0 });
    let mut power = Group { queues: 1, within: one.collect() };
    let mut all: Option<Group> = None;
    let mut rest = queues;
    loop {
        if rest % 2 == 1 {
            all = Some(match &all {
                // Of the last group only w(n) is needed.
                Some(some) => some.with(&power, if rest == 1 { n } else { 0 }),
                None => power.clone(),
            });
        }
        rest /= 2;
        if rest == 0 {
            return all.map_or(0.0, |all| all.within[n]);
        }
        power = power.with(&power, if rest == 1 && all.is_none() { n } else { 0 });
    }
}

#[derive(Clone)]
struct Group {
    queues: u32,
    /// w(m) for m = 0..=n.
    within: Vec<f64>,
}

impl Group {
    /// Both groups together, for m from `from` on.
    fn with(&self, other: &Self, from: usize) -> Self {
        let queues = self.queues + other.queues;
        let share = f64::from(self.queues) / f64::from(queues);
        let odds = share / (1.0 - share);
        let mut within = vec![0.0; self.within.len()];
        for (m, sum) in within.iter_mut().enumerate().skip(from) {
            // P(binomial(m, share) = here), from 0 up.
            let mut probability = (1.0 - share).powi(m as i32);
            for here in 0..=m {
                *sum += probability * self.within[here] * other.within[m - here];
                probability *= odds * (m - here) as f64 / (here + 1) as f64;
            }
        }
        Self { queues, within }
    }
}

fn check(flows: u32, queues: u32) -> Result<(), StatsError> {
    for (what, value, most, range) in [
        ("the number of flows", flows, MAX_FLOWS, "1 to 256"),
        ("the number of queues", queues, MAX_QUEUES, "1 to 4096"),
    ] {
        if value == 0 || value > most {
            return Err(StatsError::Argument { what, value: f64::from(value), range });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_flows() {
        let found = distribution(2, 8).unwrap();
        assert_eq!(found.len(), 2);
        assert!((found[0].probability - 7.0 / 8.0).abs() < 1e-15 && (found[0].min, found[0].max) == (1, 1));
        assert!((found[1].probability - 1.0 / 8.0).abs() < 1e-15 && (found[1].min, found[1].max) == (2, 2));
        assert_eq!(probability_of_ratio(2, 8, 2.0).unwrap(), 0.0);
        assert_eq!(probability_of_ratio(2, 8, 1.0).unwrap(), 1.0);
        assert!((probability_of_loads(&[1, 1, 0], 8).unwrap() - 7.0 / 8.0).abs() < 1e-12);
        assert_eq!(probability_of_loads(&[1, 1], 1).unwrap(), 0.0);
    }

    #[test]
    fn one_queue_takes_all() {
        let found = distribution(5, 1).unwrap();
        assert_eq!(found, [Outcome { min: 5, max: 5, probability: 1.0 }]);
        assert_eq!(probability_of_ratio(5, 1, 1.5).unwrap(), 0.0);
        // Numbers of queues that are no power of two, and more queues than flows: all apart, by the birthday problem.
        for queues in [3u32, 6, 7, 365, 4096] {
            let apart: f64 = (0..3).map(|i| 1.0 - f64::from(i) / f64::from(queues)).product();
            let found = distribution(3, queues).unwrap();
            assert!((found[0].probability - apart).abs() < 1e-13, "{queues}: {found:?}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        let message = distribution(0, 8).unwrap_err().to_string();
        assert_eq!(message, "the number of flows is 0; it must be 1 to 256");
        assert!(probability_of_ratio(300, 8, 2.0).is_err());
        assert!(probability_of_ratio(3, 8, f64::NAN).is_err());
        assert!(simulate(3, 8, 0, 1).is_err());
    }

    #[test]
    fn simulation_and_exact_distribution_agree() {
        let simulated = simulate(12, 8, 20_000, 7).unwrap();
        for outcome in distribution(12, 8).unwrap() {
            let times = simulated.counts.get(&(outcome.min, outcome.max)).copied().unwrap_or(0);
            let error = (outcome.probability * (1.0 - outcome.probability) / 20_000.0).sqrt();
            let share = times as f64 / 20_000.0;
            assert!((share - outcome.probability).abs() < 4.5 * error + 1e-4, "{outcome:?}: {share}");
        }
        let exact = probability_of_ratio(12, 8, 2.0).unwrap();
        assert!((simulated.share_of_ratio(2.0) - exact).abs() < 0.01);
    }

    proptest! {
        #[test]
        fn probabilities_add_up(flows in 1u32..25, queues in 1u32..12, ratio in 1.0..6.0f64) {
            let found = distribution(flows, queues).unwrap();
            let total: f64 = found.iter().map(|o| o.probability).sum();
            prop_assert!((total - 1.0).abs() < 1e-11, "{total}");
            let reached: f64 = found
                .iter()
                .filter(|o| f64::from(o.max) >= ratio * f64::from(o.min))
                .map(|o| o.probability)
                .sum();
            prop_assert!((probability_of_ratio(flows, queues, ratio).unwrap() - reached).abs() < 1e-10);
        }
    }
}
