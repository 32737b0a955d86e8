//! Which samplers are read in a tick, so that all together stay within what sampling may cost.
//!
//! On most hosts all are read in every tick. Where the kernel takes long to write a file, because there are hundreds of
//! mounts, processors or queues, those that cost most are read in every second, third, … tick only. Those that cost little
//! are not touched.

use std::time::Duration;

/// Share of one processor that sampling plans with at ten ticks per second and fewer. A tenth of the 0.5 % promised is left
/// for the first and the last reading, which are always of everything.
const SHARE: f64 = 0.0045;
/// A tick may always take as much as at ten ticks per second: who wants them closer together pays for it.
const SHORTEST: Duration = Duration::from_millis(100);
/// Weight of the last reading in the mean cost of a sampler.
const WEIGHT: f64 = 0.25;

/// What one tick may cost in nanoseconds, with ticks that far apart.
pub(super) fn of_tick(interval: Duration) -> f64 {
    SHARE * interval.max(SHORTEST).as_nanos() as f64
}

/// When a sampler is read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Turn {
    /// Mean CPU time of a reading in nanoseconds; `None` before the first one that counts.
    pub(super) cost_ns: Option<f64>,
    /// The rest of the time between two readings that it asks for itself, in ticks.
    pub(super) least_stride: u32,
    /// It is read in every so many-th tick.
    pub(super) stride: u32,
    /// Ticks until it is read.
    pub(super) wait: u32,
}

impl Turn {
    /// For a sampler that is read at most every `least` of time.
    pub(super) fn new(least: Duration, interval: Duration) -> Self {
        let stride = least.as_nanos().div_ceil(interval.as_nanos().max(1)).clamp(1, u32::MAX.into()) as u32;
        Self { cost_ns: None, least_stride: stride, stride, wait: 0 }
    }

    /// Whether it is read in this tick.
    pub(super) fn is_due(&mut self) -> bool {
        let due = self.wait == 0;
        self.wait = if due { self.stride.saturating_sub(1) } else { self.wait - 1 };
        due
    }

    /// Takes note of what a reading cost.
    pub(super) fn took(&mut self, cpu_ns: u64) {
        let cost = cpu_ns as f64;
        self.cost_ns = Some(self.cost_ns.map_or(cost, |mean| mean + WEIGHT * (cost - mean)));
    }
}

/// Sets the strides so that the mean cost of a tick is within `budget_ns`, if it can be.
///
/// Every sampler may take the same share. What those that need less leave over goes to the others.
pub(super) fn share<'a>(turns: impl Iterator<Item = &'a mut Turn>, budget_ns: f64) {
    let mut turns: Vec<_> =
        turns.map(|turn| (turn.cost_ns.unwrap_or(0.0) / f64::from(turn.least_stride), turn)).collect();
    turns.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    let (mut left, mut count) = (budget_ns, turns.len());
    for (cost, turn) in turns {
        let fair = (left / count.max(1) as f64).max(1.0);
        let times = (cost / fair).ceil().clamp(1.0, 1e6);
        turn.stride = turn.least_stride.saturating_mul(times as u32);
        turn.wait = turn.wait.min(turn.stride.saturating_sub(1));
        left -= cost / times;
        count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn turns(costs: &[f64]) -> Vec<Turn> {
        let turn = |cost: &f64| Turn { cost_ns: Some(*cost), ..Turn::new(Duration::ZERO, SHORTEST) };
        costs.iter().map(turn).collect()
    }

    fn strides(costs: &[f64], budget: f64) -> Vec<u32> {
        let mut turns = turns(costs);
        share(turns.iter_mut(), budget);
        turns.iter().map(|turn| turn.stride).collect()
    }

    #[test]
    fn a_tick_may_take_its_share_of_the_time_and_never_less_than_at_ten_per_second() {
        assert!((of_tick(Duration::from_millis(100)) - 450e3).abs() < 1.0);
        assert!((of_tick(Duration::from_secs(1)) - 4.5e6).abs() < 1.0);
        assert_eq!(of_tick(Duration::from_millis(10)), of_tick(Duration::from_millis(100)));
    }

    #[test]
    fn only_those_that_cost_most_are_read_more_seldom() {
        assert_eq!(strides(&[10.0, 20.0, 30.0], 100.0), [1, 1, 1]);
        // 97 are left for the last one, which takes 1,000.
        assert_eq!(strides(&[1000.0, 1.0, 2.0], 100.0), [11, 1, 1]);
        assert_eq!(strides(&[80.0, 80.0], 100.0), [2, 2]);
        assert_eq!(strides(&[], 100.0), [0_u32; 0]);
    }

    #[test]
    fn some_ask_for_long_times_themselves() {
        let mut turn = Turn::new(Duration::from_secs(1), Duration::from_millis(300));
        assert_eq!(turn.stride, 4);
        let due: Vec<_> = (0..9).map(|_| turn.is_due()).collect();
        assert_eq!(due, [true, false, false, false, true, false, false, false, true]);
        assert_eq!(Turn::new(Duration::ZERO, Duration::from_secs(1)).stride, 1);
        assert_eq!(Turn::new(Duration::from_secs(1), Duration::from_secs(60)).stride, 1);
    }

    proptest! {
        #[test]
        fn the_budget_is_kept(costs in prop::collection::vec(0.0_f64..1e7, 1..20), budget in 1e3_f64..1e6) {
            let mut turns = turns(&costs);
            share(turns.iter_mut(), budget);
            let spent: f64 = turns.iter().map(|turn| turn.cost_ns.unwrap() / f64::from(turn.stride)).sum();
            prop_assert!(spent <= budget * 1.000_001, "{} {}", spent, budget);
            // Nobody is cut who takes less than an equal share.
            let fair = budget / costs.len() as f64;
            prop_assert!(turns.iter().all(|turn| turn.cost_ns.unwrap() > fair || turn.stride == 1));
        }
    }
}
