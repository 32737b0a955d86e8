//! In which order runs are done.

use serde::{Deserialize, Serialize};

use crate::random::Generator;
use crate::stream_seed;

/// How the runs of a design follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Completely randomised from a seed: drift and disturbances fall on all treatments alike.
    #[default]
    Random,
    /// Replicate by replicate, the treatments as listed. Drift over time is then mixed up with the treatments.
    Listed,
}

impl Order {
    /// `random` or `listed`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Listed => "listed",
        }
    }
}

/// The order of all `treatments` × `replicates` runs, each as (treatment, replicate), both from 0.
///
/// A random order shuffles all runs together. The replicates of a treatment are numbered as they come, so that they
/// always appear in ascending order.
pub fn run_order(treatments: u32, replicates: u32, order: Order, seed: u64) -> Vec<(u32, u32)> {
    let mut runs: Vec<_> = (0..replicates)
        .flat_map(|replicate| (0..treatments).map(move |treatment| (treatment, replicate)))
        .collect();
    if order == Order::Random {
        Generator::new(seed).shuffle(&mut runs);
        let mut done = vec![0; treatments as usize];
        for (treatment, replicate) in &mut runs {
            let next = &mut done[*treatment as usize];
            *replicate = *next;
            *next += 1;
        }
    }
    runs
}

/// The order of one further round: one more replicate of each of `treatments`, as sequential replication needs it.
///
/// Every round is shuffled by a stream of its own, derived from the study's seed and the number of the replicate; a
/// resumed study therefore finds the same order again.
pub fn round_order(treatments: &[u32], replicate: u32, order: Order, seed: u64) -> Vec<(u32, u32)> {
    let mut runs: Vec<_> = treatments.iter().map(|&treatment| (treatment, replicate)).collect();
    if order == Order::Random {
        Generator::new(stream_seed(seed, &format!("round {replicate}"))).shuffle(&mut runs);
    }
    runs
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn listed_order_goes_replicate_by_replicate() {
        assert_eq!(run_order(2, 2, Order::Listed, 7), [(0, 0), (1, 0), (0, 1), (1, 1)]);
        assert_eq!(round_order(&[3, 1], 5, Order::Listed, 7), [(3, 5), (1, 5)]);
    }

    /// Results directories are resumed by later versions: these orders must never change.
    #[test]
    fn random_orders_are_pinned() {
        assert_eq!(
            run_order(4, 3, Order::Random, 7),
            PINNED_RUNS,
            "the order of seed 7 changed: studies could not be resumed or repeated"
        );
        let treatments_of = |replicate| {
            let runs = round_order(&[0, 1, 2, 5], replicate, Order::Random, 7);
            runs.into_iter().map(|run| run.0).collect::<Vec<_>>()
        };
        let rounds: Vec<_> = (3..6).map(treatments_of).collect();
        assert_eq!(rounds, PINNED_ROUNDS.map(Vec::from));
    }

    const PINNED_RUNS: [(u32, u32); 12] =
        [(0, 0), (1, 0), (3, 0), (2, 0), (3, 1), (2, 1), (0, 1), (3, 2), (2, 2), (0, 2), (1, 1), (1, 2)];
    const PINNED_ROUNDS: [[u32; 4]; 3] = [[1, 5, 0, 2], [5, 0, 2, 1], [0, 2, 1, 5]];

    #[test]
    fn every_position_is_equally_likely() {
        // 6 runs, 6000 seeds: run 0 is expected 1000 times at each position, with a standard deviation of 29.
        let mut times = [0u32; 6];
        for seed in 0..6000 {
            let order = run_order(6, 1, Order::Random, seed);
            let position = order.iter().position(|run| run.0 == 0).unwrap();
            times[position] += 1;
        }
        assert!(times.iter().all(|&n| (880..1120).contains(&n)), "{times:?}");
    }

    proptest! {
        #[test]
        fn every_run_appears_once_in_ascending_replicates(
            treatments in 0u32..20, replicates in 0u32..12, seed: u64, random: bool,
        ) {
            let order = if random { Order::Random } else { Order::Listed };
            let runs = run_order(treatments, replicates, order, seed);
            prop_assert_eq!(runs.len() as u32, treatments * replicates);
            prop_assert_eq!(runs.iter().collect::<BTreeSet<_>>().len(), runs.len());
            for treatment in 0..treatments {
                let own: Vec<_> = runs.iter().filter(|run| run.0 == treatment).map(|run| run.1).collect();
                prop_assert_eq!(own, (0..replicates).collect::<Vec<_>>());
            }
            prop_assert_eq!(&runs, &run_order(treatments, replicates, order, seed));
        }

        #[test]
        fn a_round_is_a_permutation_of_its_treatments(
            treatments in prop::collection::btree_set(0u32..100, 0..20), replicate: u32, seed: u64,
        ) {
            let treatments: Vec<_> = treatments.into_iter().collect();
            let mut runs = round_order(&treatments, replicate, Order::Random, seed);
            prop_assert_eq!(&runs, &round_order(&treatments, replicate, Order::Random, seed));
            runs.sort_unstable();
            prop_assert_eq!(runs, round_order(&treatments, replicate, Order::Listed, seed));
        }
    }
}
