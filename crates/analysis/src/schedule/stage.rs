//! The order of the runs of one stage.

use std::collections::BTreeSet;

use benchmaster_design::{Order, OrderPlan, PlannedRun, planned_order, planned_round, stream_seed};
use benchmaster_record::results::{BlocksRecord, Replication, RunKey, StudyRecord, TreatmentRecord};

/// A run and where it belongs in the study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScheduledRun {
    pub key: RunKey,
    /// Its stage; 0 is the design of the study file.
    pub stage: u32,
    /// Its block within the stage, from 0; `None` when runs are not blocked.
    pub block: Option<u32>,
    /// Number of its whole plot within the stage, from 0 in the order of time; `None` when no factor is hard to change.
    pub whole_plot: Option<u32>,
    /// Which part of the stage, from 0 in the order of time, is complete before the next begins. A block with a name is
    /// visited once for each replicate that it gets.
    pub visit: u32,
}

/// A stage of a study: the design of the study file, or what was added later.
pub(super) struct Stage<'a> {
    study: &'a StudyRecord,
    pub(super) number: u32,
    pub(super) replicates: Replication,
    /// The treatments that it runs by replicates, in ascending order.
    pub(super) treatments: Vec<u32>,
    /// The treatment at the centre of every factor, with the number of its runs in each block.
    centre: Option<(u32, u32)>,
    seed: u64,
    block_of: Option<Vec<u32>>,
    whole_plot_of: Option<Vec<u32>>,
    replicate_blocks: bool,
}

impl<'a> Stage<'a> {
    /// All stages of a study, in order.
    pub(super) fn all(study: &'a StudyRecord) -> impl Iterator<Item = Self> {
        let added = study.stages.iter().map(|stage| {
            let treatments = stage.treatments.clone();
            let seed = stream_seed(study.seed, &format!("stage {}", stage.number));
            Self::new(study, stage.number, stage.replicates, treatments, None, seed)
        });
        std::iter::once(Self::first(study)).chain(added)
    }

    /// The design of the study file.
    fn first(study: &'a StudyRecord) -> Self {
        let own = study.treatments.iter().filter(|treatment| treatment.stage == 0);
        let (centre, treatments): (Vec<_>, Vec<_>) = own.partition(|treatment| treatment.centre);
        let runs = study.design_details.centre_points;
        let centre = centre.first().map(|treatment| (treatment.index, runs));
        let treatments = treatments.into_iter().map(|treatment| treatment.index).collect();
        Self::new(study, 0, study.replicates, treatments, centre, study.seed)
    }

    fn new(
        study: &'a StudyRecord,
        number: u32,
        replicates: Replication,
        treatments: Vec<u32>,
        centre: Option<(u32, u32)>,
        seed: u64,
    ) -> Self {
        let of = |what: fn(&TreatmentRecord) -> Option<u32>| -> Option<Vec<u32>> {
            treatments.iter().map(|&treatment| what(study.treatments.get(treatment as usize)?)).collect()
        };
        let blocks = study.design_details.blocks.as_ref();
        // Treatments that were added later belong to no confounded block.
        let confounded = matches!(blocks, Some(BlocksRecord::Confounded { .. }));
        Self {
            study,
            number,
            replicates,
            centre,
            seed,
            block_of: of(|treatment| treatment.block).filter(|_| confounded),
            whole_plot_of: of(|treatment| treatment.whole_plot),
            replicate_blocks: blocks.is_some(),
            treatments,
        }
    }

    /// The least and the most replicates.
    pub(super) fn bounds(&self) -> (u32, u32) {
        match self.replicates {
            Replication::Fixed(n) => (n, n),
            Replication::Sequential { min, max, .. } => (min, max),
        }
    }

    /// The treatment at the centre.
    pub(super) fn centre(&self) -> Option<u32> {
        self.centre.map(|(treatment, _)| treatment)
    }

    fn plan(&self, replicates: u32) -> OrderPlan<'_> {
        OrderPlan {
            treatments: self.treatments.len() as u32,
            replicates,
            order: order_of(self.study),
            seed: self.seed,
            block_of: self.block_of.as_deref(),
            replicate_blocks: self.replicate_blocks,
            whole_plot_of: self.whole_plot_of.as_deref(),
        }
    }

    /// The runs of the least number of replicates. `earlier` says how often earlier stages have run each treatment.
    pub(super) fn first_runs(&self, earlier: &[u32]) -> Vec<ScheduledRun> {
        let planned = planned_order(&self.plan(self.bounds().0));
        let planned = planned.iter().map(|run| self.scheduled(run, earlier)).collect();
        match self.centre {
            Some((treatment, runs)) if runs > 0 => self.with_centre(planned, treatment, runs),
            _ => planned,
        }
    }

    /// One more replicate of each of these treatments.
    pub(super) fn round(&self, treatments: &[u32], replicate: u32, earlier: &[u32]) -> Vec<ScheduledRun> {
        let number = |treatment| self.treatments.binary_search(treatment).ok().map(|index| index as u32);
        let numbers: Vec<_> = treatments.iter().filter_map(number).collect();
        let plots = self.plots_of_a_replicate();
        let centres = self.centre.map_or(0, |(_, runs)| runs.saturating_mul(self.visits()));
        let before = plots.saturating_mul(replicate).saturating_add(centres);
        let planned = planned_round(&self.plan(replicate), &numbers, replicate, before);
        planned.iter().map(|run| self.scheduled(run, earlier)).collect()
    }

    /// Whole plots of one replicate; a combination of levels is set up again in each block.
    fn plots_of_a_replicate(&self) -> u32 {
        let Some(plots) = &self.whole_plot_of else { return 0 };
        let block = |index| self.block_of.as_ref().and_then(|blocks| blocks.get(index).copied());
        let different: BTreeSet<_> =
            plots.iter().enumerate().map(|(index, plot)| (block(index), plot)).collect();
        different.len() as u32
    }

    /// Blocks of the least number of replicates.
    fn visits(&self) -> u32 {
        let blocks = self.block_of.iter().flatten().max().map_or(1, |&last| last + 1);
        if self.replicate_blocks { blocks * self.bounds().0 } else { 1 }
    }

    fn scheduled(&self, run: &PlannedRun, earlier: &[u32]) -> ScheduledRun {
        let treatment = self.treatments[run.treatment as usize];
        let before = earlier.get(treatment as usize).copied().unwrap_or(0);
        ScheduledRun {
            key: RunKey { treatment, replicate: before + run.replicate },
            stage: self.number,
            visit: run.block,
            block: self.block(run.block),
            whole_plot: run.whole_plot,
        }
    }

    /// The block that is visited: blocks with names take turns.
    fn block(&self, visit: u32) -> Option<u32> {
        match self.study.design_details.blocks.as_ref()? {
            BlocksRecord::Replicates | BlocksRecord::Confounded { .. } => Some(visit),
            BlocksRecord::Named { names } => Some(visit % (names.len() as u32).max(1)),
        }
    }

    /// Spreads the centre runs evenly over each block, from its beginning to its end: they also show drift. A whole plot
    /// is not divided by them; each is a whole plot of its own.
    fn with_centre(&self, planned: Vec<ScheduledRun>, treatment: u32, runs: u32) -> Vec<ScheduledRun> {
        let mut all = Vec::with_capacity(planned.len() + runs as usize);
        let mut replicate = 0;
        for block in planned.chunk_by(|a, b| a.visit == b.visit) {
            let divides = |at: usize| {
                at > 0
                    && at < block.len()
                    && block[at].whole_plot.is_some()
                    && block[at - 1].whole_plot == block[at].whole_plot
            };
            // Of one centre run the place is the middle, of several the first is at the beginning and the last at the end.
            let place = |centre: u32| {
                let even = match runs {
                    1 => block.len() / 2,
                    _ => centre as usize * block.len() / (runs as usize - 1),
                };
                (even..=block.len()).find(|&at| !divides(at)).unwrap_or(block.len())
            };
            let mut places = (0..runs).map(place).peekable();
            for (at, run) in block.iter().map(Some).chain([None]).enumerate() {
                while places.next_if(|&place| place <= at).is_some() {
                    let key = RunKey { treatment, replicate };
                    all.extend(block.first().map(|first| ScheduledRun { key, ..*first }));
                    replicate += 1;
                }
                all.extend(run);
            }
        }
        self.number_plots(&mut all, treatment);
        all
    }

    /// Numbers whole plots in the order of time, when others have come between.
    fn number_plots(&self, runs: &mut [ScheduledRun], centre: u32) {
        if self.whole_plot_of.is_none() {
            return;
        }
        let mut before = None;
        let mut number: Option<u32> = None;
        for run in runs {
            let is_centre = run.key.treatment == centre;
            let plot = (!is_centre).then_some(run.whole_plot);
            if is_centre || before != Some(plot) {
                number = Some(number.map_or(0, |number| number + 1));
            }
            before = Some(plot);
            run.whole_plot = number;
        }
    }
}

/// The order of a stored study.
fn order_of(study: &StudyRecord) -> Order {
    if study.order == Order::Listed.name() { Order::Listed } else { Order::Random }
}
