//! In which order runs are done: completely randomised, in blocks, in split plots, or as listed.

use std::collections::{BTreeMap, HashMap, HashSet};

use benchmaster_stats::random::{Generator, stream_seed};
use serde::{Deserialize, Serialize};

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
        Generator::of_seed(seed).shuffle(&mut runs);
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
        Generator::of_seed(stream_seed(seed, &format!("round {replicate}"))).shuffle(&mut runs);
    }
    runs
}

/// How the runs of a design are ordered when blocks and hard-to-change factors restrict the randomisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderPlan<'a> {
    /// Number of treatments.
    pub treatments: u32,
    /// Runs of each treatment.
    pub replicates: u32,
    /// Random within the right unit, or as listed.
    pub order: Order,
    /// The study's seed.
    pub seed: u64,
    /// The block of each treatment, from 0, when blocks are confounded with interactions.
    pub block_of: Option<&'a [u32]>,
    /// Whether every replicate is complete before the next begins, and so is a block (or a set of confounded blocks).
    pub replicate_blocks: bool,
    /// The whole plot of each treatment: treatments with one combination of the levels of the hard-to-change factors
    /// share a number.
    pub whole_plot_of: Option<&'a [u32]>,
}

/// A run at its place in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PlannedRun {
    /// Treatment, from 0.
    pub treatment: u32,
    /// Replicate, from 0; those of a treatment appear in ascending order.
    pub replicate: u32,
    /// Block, from 0, in the order of time. With confounded blocks in replicates as blocks it is the replicate times the
    /// number of confounded blocks plus the treatment's block. Without blocks it is 0.
    pub block: u32,
    /// Number of the whole plot in the order of time, from 0. Every plot is set up again, also when the one before had the
    /// same levels: only so is there a whole-plot error to test against. `None` without hard-to-change factors.
    pub whole_plot: Option<u32>,
}

impl OrderPlan<'_> {
    /// Number of confounded blocks in one replicate, at least 1.
    fn blocks(&self) -> u32 {
        self.block_of.and_then(|block_of| block_of.iter().max()).map_or(1, |&last| last + 1)
    }

    fn is_unrestricted(&self) -> bool {
        self.block_of.is_none() && !self.replicate_blocks && self.whole_plot_of.is_none()
    }

    fn block(&self, (treatment, replicate): (u32, u32)) -> u32 {
        let own = self.block_of.map_or(0, |block_of| block_of[treatment as usize]);
        if self.replicate_blocks { replicate * self.blocks() + own } else { own }
    }

    /// Runs of a block in their final order; `plots` counts the whole plots so far.
    fn arrange(&self, block: u32, runs: Vec<(u32, u32)>, label: &str, plots: &mut u32) -> Vec<PlannedRun> {
        let planned =
            |(treatment, replicate), whole_plot| PlannedRun { treatment, replicate, block, whole_plot };
        let mut generator = Generator::of_seed(stream_seed(self.seed, label));
        let mut shuffle = |items: &mut Vec<(u32, u32)>| match self.order {
            Order::Random => generator.shuffle(items),
            Order::Listed => {}
        };
        let Some(plot_of) = self.whole_plot_of else {
            let mut runs = runs;
            shuffle(&mut runs);
            return runs.into_iter().map(|run| planned(run, None)).collect();
        };
        // A plot is one combination of hard-to-change levels in one replicate, in the order of first appearance.
        let plot = |(treatment, replicate): (u32, u32)| (replicate, plot_of[treatment as usize]);
        let mut seen = HashSet::new();
        let mut order: Vec<_> = runs.iter().map(|&run| plot(run)).filter(|&key| seen.insert(key)).collect();
        shuffle(&mut order);
        let mut members: HashMap<_, Vec<_>> = HashMap::new();
        for run in runs {
            members.entry(plot(run)).or_default().push(run);
        }
        let mut arranged = Vec::new();
        for key in order {
            let mut runs = members.remove(&key).unwrap_or_default();
            shuffle(&mut runs);
            arranged.extend(runs.into_iter().map(|run| planned(run, Some(*plots))));
            *plots += 1;
        }
        arranged
    }
}

/// The order of all runs of a design in its blocks and whole plots.
///
/// Blocks follow each other by number, as those of a time of day must. Within a block the whole plots are shuffled, and
/// within a whole plot its runs; a whole plot has one replicate of its treatments. Each block draws from a stream of its
/// own, so that more replicates as blocks do not change the order of the first ones. [`Order::Listed`] keeps blocks, whole
/// plots (by first appearance) and runs as they are listed. Without blocks and whole plots this is [`run_order`].
///
/// # Panics
/// When `block_of` or `whole_plot_of` has fewer entries than there are treatments.
pub fn planned_order(plan: &OrderPlan<'_>) -> Vec<PlannedRun> {
    if plan.is_unrestricted() {
        let runs = run_order(plan.treatments, plan.replicates, plan.order, plan.seed);
        return runs.into_iter().map(unrestricted).collect();
    }
    let runs: Vec<_> = (0..plan.replicates)
        .flat_map(|replicate| (0..plan.treatments).map(move |treatment| (treatment, replicate)))
        .collect();
    let mut planned = in_blocks(plan, runs, "", 0);
    let mut done = vec![0; plan.treatments as usize];
    for run in &mut planned {
        let next = &mut done[run.treatment as usize];
        run.replicate = *next;
        *next += 1;
    }
    planned
}

/// The order of one further round: one more replicate of each of `treatments`, as sequential replication needs it.
///
/// Blocks and whole plots are those of [`planned_order`]; `first_plot` is the number of whole plots before the round.
/// Without blocks and whole plots this is [`round_order`].
///
/// # Panics
/// As [`planned_order`] does.
pub fn planned_round(
    plan: &OrderPlan<'_>,
    treatments: &[u32],
    replicate: u32,
    first_plot: u32,
) -> Vec<PlannedRun> {
    if plan.is_unrestricted() {
        let runs = round_order(treatments, replicate, plan.order, plan.seed);
        return runs.into_iter().map(unrestricted).collect();
    }
    let runs = treatments.iter().map(|&treatment| (treatment, replicate)).collect();
    in_blocks(plan, runs, &format!("round {replicate}, "), first_plot)
}

fn unrestricted((treatment, replicate): (u32, u32)) -> PlannedRun {
    PlannedRun { treatment, replicate, block: 0, whole_plot: None }
}

fn in_blocks(plan: &OrderPlan<'_>, runs: Vec<(u32, u32)>, round: &str, first_plot: u32) -> Vec<PlannedRun> {
    let mut blocks: BTreeMap<u32, Vec<_>> = BTreeMap::new();
    for run in runs {
        blocks.entry(plan.block(run)).or_default().push(run);
    }
    let mut plots = first_plot;
    let arrange = |(block, runs)| plan.arrange(block, runs, &format!("{round}block {block}"), &mut plots);
    blocks.into_iter().flat_map(arrange).collect()
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

    fn plan(treatments: u32, replicates: u32, order: Order) -> OrderPlan<'static> {
        OrderPlan {
            treatments,
            replicates,
            order,
            seed: 7,
            block_of: None,
            replicate_blocks: false,
            whole_plot_of: None,
        }
    }

    fn tuples(runs: Vec<PlannedRun>) -> Vec<(u32, u32, u32, Option<u32>)> {
        runs.into_iter().map(|run| (run.treatment, run.replicate, run.block, run.whole_plot)).collect()
    }

    #[test]
    fn without_restrictions_the_order_is_that_of_all_runs() {
        let runs = planned_order(&plan(4, 3, Order::Random));
        assert_eq!(runs, PINNED_RUNS.map(unrestricted));
        let round = planned_round(&plan(6, 3, Order::Random), &[0, 1, 2, 5], 3, 0);
        assert_eq!(round.iter().map(|run| run.treatment).collect::<Vec<_>>(), PINNED_ROUNDS[0]);
        assert!(round.iter().all(|run| run.replicate == 3 && run.whole_plot.is_none()));
    }

    #[test]
    fn a_listed_order_groups_blocks_and_plots_and_moves_nothing_else() {
        let restricted =
            OrderPlan { block_of: Some(&[0, 1, 1, 0]), replicate_blocks: true, ..plan(4, 2, Order::Listed) };
        assert_eq!(
            tuples(planned_order(&restricted)),
            [0, 3, 1, 2, 0, 3, 1, 2]
                .into_iter()
                .zip([0, 0, 0, 0, 1, 1, 1, 1])
                .zip([0, 0, 1, 1, 2, 2, 3, 3])
                .map(|((treatment, replicate), block)| (treatment, replicate, block, None))
                .collect::<Vec<_>>()
        );
        let plots = OrderPlan { whole_plot_of: Some(&[0, 1, 0, 1]), ..plan(4, 2, Order::Listed) };
        assert_eq!(
            tuples(planned_order(&plots)),
            [0, 2, 1, 3, 0, 2, 1, 3]
                .into_iter()
                .zip([0, 0, 0, 0, 1, 1, 1, 1])
                .zip([0, 0, 1, 1, 2, 2, 3, 3])
                .map(|((treatment, replicate), plot)| (treatment, replicate, 0, Some(plot)))
                .collect::<Vec<_>>()
        );
    }

    /// Results directories are resumed by later versions: these orders must never change.
    #[test]
    fn orders_in_blocks_and_plots_are_pinned() {
        let treatments = |runs: Vec<PlannedRun>| runs.iter().map(|run| run.treatment).collect::<Vec<_>>();
        let blocks = OrderPlan { replicate_blocks: true, ..plan(6, 2, Order::Random) };
        assert_eq!(treatments(planned_order(&blocks)), PINNED_BLOCKS);
        let plots = OrderPlan { whole_plot_of: Some(&[0, 1, 0, 1, 0, 1]), ..plan(6, 2, Order::Random) };
        assert_eq!(treatments(planned_order(&plots)), PINNED_PLOTS);
        assert_eq!(treatments(planned_round(&plots, &[0, 1, 2, 3], 2, 4)), PINNED_PLOT_ROUND);
    }

    const PINNED_BLOCKS: [u32; 12] = [5, 2, 4, 1, 0, 3, 3, 1, 5, 0, 2, 4];
    const PINNED_PLOTS: [u32; 12] = [3, 5, 1, 1, 5, 3, 0, 4, 2, 0, 2, 4];
    const PINNED_PLOT_ROUND: [u32; 4] = [3, 1, 0, 2];

    #[test]
    fn more_replicates_as_blocks_leave_the_first_ones_as_they_are() {
        let blocks = |replicates| OrderPlan { replicate_blocks: true, ..plan(8, replicates, Order::Random) };
        let (few, many) = (planned_order(&blocks(2)), planned_order(&blocks(5)));
        assert_eq!(few, many[..few.len()]);
    }

    #[test]
    fn a_round_continues_blocks_and_plots() {
        let blocks =
            OrderPlan { block_of: Some(&[0, 1, 0, 1]), replicate_blocks: true, ..plan(4, 3, Order::Random) };
        let round = planned_round(&blocks, &[0, 1, 3], 3, 0);
        assert_eq!(round.iter().map(|run| run.block).collect::<Vec<_>>(), [6, 7, 7]);
        let plots = OrderPlan { whole_plot_of: Some(&[0, 1, 0, 1]), ..plan(4, 3, Order::Random) };
        let round = planned_round(&plots, &[0, 1, 3], 3, 6);
        assert!(
            round.iter().all(|run| run.replicate == 3 && matches!(run.whole_plot, Some(6 | 7))),
            "{round:?}"
        );
    }

    proptest! {
        #[test]
        fn every_run_is_planned_once_within_its_block_and_plot(
            replicates in 0u32..5, seed: u64, random: bool, replicate_blocks: bool,
            units in prop::collection::vec((0u32..3, 0u32..4), 0..16), blocked: bool, split: bool,
        ) {
            let (block_of, whole_plot_of): (Vec<_>, Vec<_>) = units.iter().copied().unzip();
            let plan = OrderPlan {
                treatments: units.len() as u32,
                replicates,
                order: if random { Order::Random } else { Order::Listed },
                seed,
                block_of: blocked.then_some(&block_of[..]),
                replicate_blocks,
                whole_plot_of: split.then_some(&whole_plot_of[..]),
            };
            let runs = planned_order(&plan);
            prop_assert_eq!(&runs, &planned_order(&plan));
            let keys: BTreeSet<_> = runs.iter().map(|run| (run.treatment, run.replicate)).collect();
            prop_assert_eq!(keys.len(), runs.len());
            prop_assert_eq!(runs.len() as u32, plan.treatments * replicates);
            // Blocks come by number; whole plots are contiguous, counted in time, of one block and one set of levels,
            // and have each treatment at most once.
            prop_assert!(runs.is_sorted_by_key(|run| run.block));
            for run in &runs {
                prop_assert_eq!(run.block, plan.block((run.treatment, run.replicate)));
                prop_assert_eq!(run.whole_plot.is_some(), split);
            }
            if split {
                prop_assert!(runs.is_sorted_by_key(|run| run.whole_plot));
                for plot in runs.chunk_by(|a, b| a.whole_plot == b.whole_plot) {
                    let treatments: BTreeSet<_> = plot.iter().map(|run| run.treatment).collect();
                    prop_assert_eq!(treatments.len(), plot.len());
                    let levels = |run: &PlannedRun| whole_plot_of[run.treatment as usize];
                    prop_assert!(plot.iter().all(|run| levels(run) == levels(&plot[0]) && run.block == plot[0].block));
                }
            }
            for treatment in 0..plan.treatments {
                let own: Vec<_> = runs.iter().filter(|run| run.treatment == treatment).map(|r| r.replicate).collect();
                prop_assert_eq!(own, (0..replicates).collect::<Vec<_>>());
            }
        }

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
