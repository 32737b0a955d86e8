//! What a validity check is: one rule per kind, with its explanation, its remedy and the finding that follows from it.

use benchmaster_analysis::responses::Course;
use benchmaster_record::environment::Environment;
use benchmaster_record::model::Workload;
use benchmaster_record::recording::Recording;
use benchmaster_record::results::{
    Check, CheckKind, Evidence, RunRecord, ServerUse, ServiceRecord, Severity,
};

use crate::diagnosis::Verdict;
use crate::explanation;
use crate::finding::{Confidence, Finding, Remedy};
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
    /// The condition that the check shows, where that has another name.
    pub(crate) shown_as: Option<&'static str>,
    /// `None`: it passes.
    pub(crate) check: fn(Subject<'_>) -> Option<Check>,
    /// What to do, where that depends on what the check itself knows; else it is in the explanation.
    pub(crate) remedy: Option<fn(&Check) -> Remedy>,
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
    /// Its cost, as the explanation has it.
    pub(crate) cost: fn(Failed<'_>) -> Option<f64>,
}

impl Consequence {
    /// What the check says is certain, and costs nothing that is known: for struct update syntax.
    pub(crate) const CERTAIN: Self = Self {
        confidence: Confidence::Certain,
        could: |_| Could::Yes,
        worth: |_| true,
        numbers: &[],
        cost: |_| None,
    };
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
    /// A rule that finds nothing by itself: for struct update syntax.
    pub(crate) const fn of(kind: CheckKind) -> Self {
        Self { kind, shown_as: None, check: |_| None, remedy: None, finding: Follows::Comparison }
    }

    /// The name of the finding that follows.
    pub(crate) fn id(&self) -> &'static str {
        self.shown_as.unwrap_or(self.kind.name())
    }

    /// What to do about a check of this kind.
    pub(crate) fn advice(&self, check: &Check) -> Remedy {
        let of_explanation =
            || explanation::find(self.id()).map(|one| one.remedy.clone()).unwrap_or_default();
        let own = self.remedy.map(|remedy| remedy(check)).filter(|own| *own != Remedy::default());
        own.unwrap_or_else(of_explanation)
    }

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
        let mut finding = Finding::new(consequence.confidence, &failed.check.message)
            .advised(self.advice(failed.check))
            .with(numbers);
        if let Some(share) = (consequence.cost)(failed) {
            finding = finding.costs(share);
        }
        finding
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

/// All of the run where the check makes it invalid.
pub(crate) fn all_of_it(failed: Failed<'_>) -> Option<f64> {
    (failed.check.severity == Severity::Invalid).then_some(1.0)
}
