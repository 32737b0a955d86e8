//! What a validity check is: one rule per kind, with its explanation, its remedy and the finding that follows from it.

use benchmaster_analysis::responses::Course;
use benchmaster_record::environment::Environment;
use benchmaster_record::model::Workload;
use benchmaster_record::recording::Recording;
use benchmaster_record::results::{
    Check, CheckKind, Evidence, RunRecord, ServerUse, ServiceRecord, Severity,
};

use crate::diagnosis::Verdict;
use crate::explanation::Explanation;
use crate::finding::{Confidence, CostOf, Finding, Plot, Remedy};
use crate::measured::Measured;
use crate::validity::machines::LabLook;

/// What is judged while a run is made: one workload of it, when it is done.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// What was to be done.
    pub workload: &'a Workload,
    /// What was recorded.
    pub recording: &'a Recording,
    /// The host that did it.
    pub environment: &'a Environment,
    /// What MSER-5 found, when it was asked.
    pub course: Course,
    /// Who served it and what lay between, if the target is an export.
    pub service: Option<&'a ServiceRecord>,
    /// What the embedded server, or the kernel's of a lab, did meanwhile.
    pub server: Option<&'a ServerUse>,
    /// The state of a lab's machines.
    pub lab: Option<&'a LabLook>,
}

/// Everything about one kind of validity check.
pub(crate) struct Rule {
    pub(crate) kind: CheckKind,
    /// Of the finding, which has the same name or that of the condition that the check shows.
    pub(crate) explanation: Explanation,
    /// `None`: it passes.
    pub(crate) check: fn(Subject<'_>) -> Option<Check>,
    /// What to do, by what the check itself knows.
    pub(crate) remedy: fn(&Check) -> Remedy,
    pub(crate) finding: Follows,
}

/// How the finding is made once all is stored.
pub(crate) enum Follows {
    /// From the check alone.
    Finding(Consequence),
    /// By a detector that sees more than the check.
    Detector(fn(&Measured<'_>) -> Verdict),
    /// By a comparison of all runs.
    Comparison,
}

/// A finding that follows from a failed check.
pub(crate) struct Consequence {
    pub(crate) confidence: Confidence,
    /// Whether the check could have failed.
    pub(crate) could: fn(&Measured<'_>) -> Could,
    /// Whether it is worth a finding; notes often are not.
    pub(crate) worth: fn(Failed<'_>) -> bool,
    /// Its evidence: the name in the check, and in words.
    pub(crate) numbers: &'static [(&'static str, &'static str)],
    /// A share, of what, and how it was estimated.
    pub(crate) cost: fn(Failed<'_>) -> Option<(f64, CostOf, &'static str)>,
    pub(crate) plot: Option<Plot>,
}

/// Whether a check could have failed.
pub(crate) enum Could {
    Yes,
    /// There was nothing of the kind.
    Never,
    /// What it needs is missing; and what would provide it.
    Unknown(String),
}

/// A check that a workload of a run did not pass.
#[derive(Clone, Copy)]
pub(crate) struct Failed<'a> {
    pub(crate) check: &'a Check,
    pub(crate) measured: &'a Measured<'a>,
}

impl Failed<'_> {
    /// A number of its evidence.
    pub(crate) fn number(self, name: &str) -> Option<f64> {
        self.check.number(name)
    }
}

impl Rule {
    /// What follows for a workload of a run.
    pub(crate) fn judge(&self, measured: &Measured<'_>) -> Verdict {
        match &self.finding {
            Follows::Finding(consequence) => self.follows(consequence, measured),
            Follows::Detector(detect) => detect(measured),
            Follows::Comparison => Verdict::Irrelevant,
        }
    }

    /// What follows from whether the check was stored.
    pub(crate) fn follows(&self, consequence: &Consequence, measured: &Measured<'_>) -> Verdict {
        match (stored(measured, self.kind), (consequence.could)(measured)) {
            (Some(check), _) => {
                let failed = Failed { check, measured };
                if (consequence.worth)(failed) {
                    Verdict::Found(self.finding(consequence, failed))
                } else {
                    Verdict::Clear
                }
            }
            (None, Could::Yes) => Verdict::Clear,
            (None, Could::Never) => Verdict::Irrelevant,
            (None, Could::Unknown(why)) => Verdict::Unknown(why),
        }
    }

    fn finding(&self, consequence: &Consequence, failed: Failed<'_>) -> Finding {
        let numbers = consequence.numbers.iter().filter_map(|(name, words)| {
            let evidence = failed.check.evidence.iter().find(|evidence| evidence.name == *name)?;
            Some(Evidence { name: (*words).into(), ..evidence.clone() })
        });
        let (what, remedy) = (failed.check.message.clone(), (self.remedy)(failed.check));
        let mut finding = Finding::new(&self.explanation, consequence.confidence, what, remedy).with(numbers);
        if let Some((share, of, estimate)) = (consequence.cost)(failed) {
            finding = finding.costs(share, of, estimate);
        }
        match consequence.plot {
            Some(plot) => finding.shown_by(plot),
            None => finding,
        }
    }
}

/// The check that was stored with the run for this workload, or for the whole run.
pub(crate) fn stored<'a>(measured: &'a Measured<'_>, kind: CheckKind) -> Option<&'a Check> {
    of_workload(measured.run, kind, &measured.recording.workload)
}

fn of_workload<'a>(run: &'a RunRecord, kind: CheckKind, workload: &str) -> Option<&'a Check> {
    run.checks
        .iter()
        .find(|check| check.kind == kind && check.workload.as_deref().is_none_or(|of| of == workload))
}

/// A check that this workload does not pass. Numbers that are not known are left out.
pub(crate) fn failed(
    s: Subject<'_>,
    kind: CheckKind,
    severity: Severity,
    message: String,
    evidence: impl IntoIterator<Item = Evidence>,
) -> Option<Check> {
    Some(Check {
        kind,
        severity,
        workload: Some(s.recording.workload.clone()),
        message,
        evidence: evidence.into_iter().filter(|evidence| evidence.value.is_finite()).collect(),
    })
}

/// Nothing but the check is needed.
pub(crate) fn always(_: &Measured<'_>) -> Could {
    Could::Yes
}

pub(crate) fn when(could: bool) -> Could {
    if could { Could::Yes } else { Could::Never }
}

/// With several clients.
pub(crate) fn several(measured: &Measured<'_>) -> Could {
    let clients: u32 = measured.recording.agents.iter().map(|agent| agent.clients).sum();
    when(clients > 1)
}

/// In a lab.
pub(crate) fn in_lab(measured: &Measured<'_>) -> Could {
    when(measured.run.lab.is_some())
}

/// Where RPCs were counted.
pub(crate) fn with_rpcs(measured: &Measured<'_>) -> Could {
    when(measured.rpcs().is_some())
}

pub(crate) fn any(_: Failed<'_>) -> bool {
    true
}

pub(crate) fn nothing(_: Failed<'_>) -> Option<(f64, CostOf, &'static str)> {
    None
}

/// All of the run where the check makes it invalid.
pub(crate) fn all_of_it(failed: Failed<'_>) -> Option<(f64, CostOf, &'static str)> {
    let invalid = failed.check.severity == Severity::Invalid;
    invalid.then_some((1.0, CostOf::Result, "the run is left out of all means"))
}
