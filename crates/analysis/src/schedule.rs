//! Which run comes next: a pure function of the plan and of what is done, so that a study can be resumed anywhere.

mod stage;

use std::collections::{HashMap, HashSet};

use benchmaster_record::results::{
    Replication, RunKey, RunRecord, SessionEnd, SessionRecord, StudyRecord, StudyResults,
};
use benchmaster_stats::stopping::{Decision, Rule};

pub use self::stage::ScheduledRun;
use self::stage::Stage;
use crate::runs::counts;

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    Run {
        key: RunKey,
        /// Its position in the order of execution, from 0.
        position: u32,
        /// Where it belongs.
        run: ScheduledRun,
        /// Whether its block begins with it.
        begins_block: bool,
    },
    /// Nothing: the study is complete.
    Done {
        /// How it ended for each treatment, in the order of the treatments.
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
    /// The decision of the stopping rule of the last stage that runs it: tight or not tight. `None` when replication is
    /// fixed.
    pub decision: Option<Decision>,
}

/// The run that comes next after those that are `done`, each with the value of the primary response or `None` when it
/// failed.
///
/// Stages are done one after the other. In each, the fixed or least number of replicates is done first, in the study's
/// order. Then come rounds of one replicate of every treatment whose interval is not tight yet; whether it is tight is
/// decided once per round, by the rounds before, so that the order in which runs of a round finish does not matter.
pub fn next(study: &StudyRecord, done: &[(RunKey, Option<f64>)]) -> Next {
    let progress = Progress::new(done);
    let mut earlier = vec![0; study.treatments.len()];
    let mut decisions = vec![None; study.treatments.len()];
    let of = |runs: &[ScheduledRun]| {
        let next = *runs.iter().find(|run| !progress.has(run.key))?;
        let begun = |run: &ScheduledRun| run.visit == next.visit && progress.has(run.key);
        let begins_block = !runs.iter().any(begun);
        Some(Next::Run { key: next.key, position: done.len() as u32, run: next, begins_block })
    };
    for stage in Stage::all(study) {
        let (least, most) = stage.bounds();
        let rule = rule(study, stage.replicates);
        let first = stage.first_runs(&earlier);
        if let Some(run) = of(&first) {
            return run;
        }
        let mut open = stage.treatments.clone();
        let mut stops: HashMap<u32, u32> = HashMap::new();
        for replicate in least..most {
            let decide = |treatment: &u32| {
                let values = progress.values(*treatment, earlier[*treatment as usize], replicate);
                matches!(rule.map(|rule| rule.decide(&values)), Some(Decision::Continue { .. }))
            };
            let (still, tight): (Vec<_>, Vec<_>) = open.into_iter().partition(decide);
            stops.extend(tight.into_iter().map(|treatment| (treatment, replicate)));
            open = still;
            if open.is_empty() {
                break;
            }
            if let Some(run) = of(&stage.round(&open, replicate, &earlier)) {
                return run;
            }
        }
        for &treatment in &stage.treatments {
            let index = treatment as usize;
            let stop = stops.get(&treatment).copied().unwrap_or(most);
            let values = progress.values(treatment, earlier[index], stop);
            decisions[index] = rule.map(|rule| match rule.decide(&values) {
                // Failed runs leave fewer values than there were runs.
                Decision::Continue { n, relative_half_width } => {
                    Decision::NotTight { n, relative_half_width }
                }
                decision => decision,
            });
            earlier[index] += stop;
        }
        if let Some(centre) = stage.centre() {
            earlier[centre as usize] += first.iter().filter(|run| run.key.treatment == centre).count() as u32;
        }
    }
    Next::Done { decisions: progress.decisions(decisions) }
}

/// The runs of the fixed or least number of replicates of a study's design in their order: what is known before anything is
/// measured. Stages that were added are not among them.
pub fn first_runs(study: &StudyRecord) -> Vec<ScheduledRun> {
    Stage::all(study).next().map_or_else(Vec::new, |stage| stage.first_runs(&[]))
}

/// The value that the stopping rule sees; runs that failed or must not be used have none.
pub fn primary(name: &str, run: &RunRecord) -> Option<f64> {
    run.responses.iter().find(|response| response.name == name).map(|r| r.value).filter(|_| counts(run))
}

/// The values of finished runs, as [`next`] takes them.
pub fn values(study: &StudyRecord, runs: &[RunRecord]) -> Vec<(RunKey, Option<f64>)> {
    runs.iter().map(|run| (run.key, primary(&study.primary_response, run))).collect()
}

/// Whether all runs are done, those of stages that were added included, and nothing of the study is left on its targets.
pub fn is_complete(results: &StudyResults) -> bool {
    results.sessions.last().is_some_and(|session| !is_interrupted(session))
        && matches!(next(&results.study, &values(&results.study, &results.runs)), Next::Done { .. })
}

/// Whether a session ended before its runs were done.
pub fn is_interrupted(session: &SessionRecord) -> bool {
    !matches!(session.ended, Some((_, SessionEnd::Complete)))
}

fn rule(study: &StudyRecord, replicates: Replication) -> Option<Rule> {
    match replicates {
        Replication::Fixed(_) => None,
        Replication::Sequential { min, max, relative_half_width } => Some(Rule {
            min: min as usize,
            max: max as usize,
            relative_half_width,
            confidence: study.confidence,
        }),
    }
}

struct Progress {
    done: HashSet<RunKey>,
    /// Per treatment, in ascending order of replicates.
    values: HashMap<u32, Vec<(u32, Option<f64>)>>,
}

impl Progress {
    fn new(done: &[(RunKey, Option<f64>)]) -> Self {
        let mut values: HashMap<u32, Vec<_>> = HashMap::new();
        for (key, value) in done {
            values.entry(key.treatment).or_default().push((key.replicate, *value));
        }
        values.values_mut().for_each(|values| values.sort_by_key(|(replicate, _)| *replicate));
        Self { done: done.iter().map(|(key, _)| *key).collect(), values }
    }

    fn has(&self, key: RunKey) -> bool {
        self.done.contains(&key)
    }

    /// The values of this many replicates from the first.
    fn values(&self, treatment: u32, first: u32, replicates: u32) -> Vec<f64> {
        let values = self.values.get(&treatment).map_or(&[][..], Vec::as_slice);
        let within = first..first.saturating_add(replicates);
        values.iter().filter(|(r, _)| within.contains(r)).filter_map(|(_, value)| *value).collect()
    }

    fn decisions(&self, decisions: Vec<Option<Decision>>) -> Vec<TreatmentDecision> {
        let of = |(treatment, decision)| {
            let values = self.values.get(&treatment).map_or(&[][..], Vec::as_slice);
            TreatmentDecision {
                treatment,
                runs: values.len() as u32,
                failed: values.iter().filter(|(_, value)| value.is_none()).count() as u32,
                decision,
            }
        };
        (0..).zip(decisions).map(of).collect()
    }
}
