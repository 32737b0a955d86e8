//! What a rule on stored results is: a detector of one condition in a workload of a run, or a comparison of all runs.

use benchmaster_analysis::Analysis;
use benchmaster_record::results::StudyResults;

use crate::diagnosis::Verdict;
use crate::finding::{Finding, Setup};
use crate::measured::Measured;
use crate::validity::rule::Rule;

/// All runs of a study together.
#[derive(Debug, Clone, Copy)]
pub struct Whole<'a> {
    /// What was stored.
    pub results: &'a StudyResults,
    /// What the numbers say.
    pub analysis: &'a Analysis,
}

/// Looks for one condition in a workload of a run.
pub(crate) struct Detector {
    pub(crate) id: &'static str,
    pub(crate) detect: fn(&Measured<'_>) -> Verdict,
}

/// A detector, or the rule of a validity check.
pub(crate) trait Judge {
    fn id(&self) -> &'static str;
    /// What it says of a workload of a run.
    fn look(&self, measured: &Measured<'_>) -> Verdict;

    /// The same with a remedy that fits the run.
    fn judge(&self, measured: &Measured<'_>) -> Verdict {
        match self.look(measured) {
            Verdict::Found(finding) => Verdict::Found(finding.of(self.id(), Some(&Setup::of(measured)))),
            other => other,
        }
    }
}

impl Judge for Detector {
    fn id(&self) -> &'static str {
        self.id
    }

    fn look(&self, measured: &Measured<'_>) -> Verdict {
        (self.detect)(measured)
    }
}

impl Judge for Rule {
    fn id(&self) -> &'static str {
        Rule::id(self)
    }

    fn look(&self, measured: &Measured<'_>) -> Verdict {
        Rule::judge(self, measured)
    }
}

/// Looks for one condition in all runs together.
pub(crate) struct Comparison {
    pub(crate) id: &'static str,
    pub(crate) compare: fn(&Whole<'_>) -> Compared,
}

/// What a comparison says: nothing found and nothing unknown is clear.
#[derive(Debug, Default)]
pub(crate) struct Compared {
    pub(crate) found: Vec<Finding>,
    /// What it would need, and what would give it.
    pub(crate) unknown: Option<String>,
    /// There is nothing of the kind to compare.
    pub(crate) irrelevant: bool,
}

/// The set-up that a finding of all runs is about: that of the first run in which it was found, else of the first of all.
pub(crate) fn setup(results: &StudyResults, finding: &Finding) -> Option<Setup> {
    let shown = finding.at.as_ref().and_then(|at| at.shown);
    let run = results.runs.iter().find(|run| Some(run.key) == shown).or(results.runs.first())?;
    Some(Setup::of_run(run))
}

/// What a treatment is called: its label, or its number where the study does not know it.
pub(crate) fn label(results: &StudyResults, treatment: u32) -> String {
    let record = results.study.treatments.get(treatment as usize);
    record.map_or_else(|| treatment.to_string(), |record| record.label.clone())
}
