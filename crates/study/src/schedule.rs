//! Which run comes next: a pure function of the plan and of what is done, so that a study can be resumed anywhere.

use std::collections::{HashMap, HashSet};

use benchmaster_design::{Order, round_order, run_order};
use benchmaster_stats::stopping::{Decision, Rule};
use benchmaster_store::record::{Replication, RunKey, StudyRecord};

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// This run.
    Run {
        /// Which.
        key: RunKey,
        /// Its position in the order of execution, from 0.
        position: u32,
    },
    /// Nothing: the study is complete.
    Done {
        /// How it ended for each treatment, in standard order.
        decisions: Vec<TreatmentDecision>,
    },
}

/// Why a treatment is not run any more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreatmentDecision {
    /// Index of the treatment.
    pub treatment: u32,
    /// Runs done, failed ones included.
    pub runs: u32,
    /// Runs that failed; they have no value and are not repeated.
    pub failed: u32,
    /// The decision of the stopping rule: tight or not tight. `None` when replication is fixed.
    pub decision: Option<Decision>,
}

/// The run that comes next after those that are `done`, each with the value of the primary response or `None` when it
/// failed.
///
/// The fixed or least number of replicates is done first, in the study's order. Then come rounds of one replicate of every
/// treatment whose interval is not tight yet; whether it is tight is decided once per round, by the rounds before, so that
/// the order in which runs of a round finish does not matter.
pub fn next(study: &StudyRecord, done: &[(RunKey, Option<f64>)]) -> Next {
    let progress = Progress::new(study, done);
    let run = |key| Next::Run { key, position: done.len() as u32 };
    let count = study.treatments.len() as u32;
    let order = order_of(study);
    let (least, most) = match study.replicates {
        Replication::Fixed(n) => (n, n),
        Replication::Sequential { min, max, .. } => (min, max),
    };
    let key = |(treatment, replicate)| RunKey { treatment, replicate };
    let first = run_order(count, least, order, study.seed);
    if let Some(next) = first.into_iter().map(key).find(|key| !progress.has(*key)) {
        return run(next);
    }
    for replicate in least..most {
        let open: Vec<_> = (0..count).filter(|&treatment| progress.is_open(treatment, replicate)).collect();
        if open.is_empty() {
            break;
        }
        let round = round_order(&open, replicate, order, study.seed);
        if let Some(next) = round.into_iter().map(key).find(|key| !progress.has(*key)) {
            return run(next);
        }
    }
    Next::Done { decisions: (0..count).map(|treatment| progress.decision(treatment, least, most)).collect() }
}

/// The order of a stored study.
pub(crate) fn order_of(study: &StudyRecord) -> Order {
    match study.order == Order::Listed.name() {
        true => Order::Listed,
        false => Order::Random,
    }
}

struct Progress {
    done: HashSet<RunKey>,
    /// Per treatment, in ascending order of replicates.
    values: HashMap<u32, Vec<(u32, Option<f64>)>>,
    rule: Option<Rule>,
}

impl Progress {
    fn new(study: &StudyRecord, done: &[(RunKey, Option<f64>)]) -> Self {
        let mut values: HashMap<u32, Vec<_>> = HashMap::new();
        for (key, value) in done {
            values.entry(key.treatment).or_default().push((key.replicate, *value));
        }
        values.values_mut().for_each(|values| values.sort_by_key(|(replicate, _)| *replicate));
        let rule = match study.replicates {
            Replication::Fixed(_) => None,
            Replication::Sequential { min, max, relative_half_width } => Some(Rule {
                min: min as usize,
                max: max as usize,
                relative_half_width,
                confidence: study.confidence,
            }),
        };
        Self { done: done.iter().map(|(key, _)| *key).collect(), values, rule }
    }

    fn has(&self, key: RunKey) -> bool {
        self.done.contains(&key)
    }

    /// The values of the replicates before this one.
    fn before(&self, treatment: u32, replicate: u32) -> Vec<f64> {
        let values = self.values.get(&treatment).map_or(&[][..], Vec::as_slice);
        values.iter().filter(|(r, _)| *r < replicate).filter_map(|(_, value)| *value).collect()
    }

    /// Whether a treatment is still run in the round of this replicate.
    fn is_open(&self, treatment: u32, replicate: u32) -> bool {
        let decide = |rule: &Rule| rule.decide(&self.before(treatment, replicate));
        matches!(self.rule.as_ref().map(decide), Some(Decision::Continue { .. }))
    }

    fn decision(&self, treatment: u32, least: u32, most: u32) -> TreatmentDecision {
        let values = self.values.get(&treatment).map_or(&[][..], Vec::as_slice);
        let decision = self.rule.as_ref().map(|rule| {
            // The decision that stopped it is that of the first round which it was not in any more.
            let stop = (least..most).find(|&replicate| !self.is_open(treatment, replicate)).unwrap_or(most);
            match rule.decide(&self.before(treatment, stop)) {
                // Failed runs leave fewer values than there were runs.
                Decision::Continue { n, relative_half_width } => {
                    Decision::NotTight { n, relative_half_width }
                }
                decision => decision,
            }
        });
        TreatmentDecision {
            treatment,
            runs: values.len() as u32,
            failed: values.iter().filter(|(_, value)| value.is_none()).count() as u32,
            decision,
        }
    }
}
