//! Findings from the validity checks that were made and stored when a run was done.
//!
//! A check has found what it has found, with its own limits; here is what it means, what it takes and what to do.

use benchmaster_record::results::{Check, Severity};

use crate::diagnosis::Verdict;
use crate::explanation::Explanation;
use crate::finding::{Confidence, CostOf, Evidence, Finding, Plot, Remedy};
use crate::results::measured::Measured;
use crate::results::rule::check;

/// What stands behind one kind of check.
pub(in crate::results) struct Stored {
    /// Its name in the results.
    pub(in crate::results) check: &'static str,
    /// What it says; of the same name, or of that of the condition that it shows.
    pub(in crate::results) explanation: Explanation,
    pub(in crate::results) confidence: Confidence,
    /// Whether it could have found something.
    pub(in crate::results) could: fn(&Measured<'_>) -> Could,
    /// Whether what it found is worth a finding; notes often are not.
    pub(in crate::results) worth: fn(Told<'_>) -> bool,
    /// Its evidence: the name in the results, in words, and the unit.
    pub(in crate::results) numbers: &'static [(&'static str, &'static str, &'static str)],
    /// A share, of what, and how it was estimated.
    pub(in crate::results) cost: fn(Told<'_>) -> Option<(f64, CostOf, &'static str)>,
    pub(in crate::results) remedy: fn(Told<'_>) -> Remedy,
    pub(in crate::results) plot: Option<Plot>,
}

/// Whether a check could have found something.
pub(in crate::results) enum Could {
    Yes,
    /// There was nothing of the kind.
    Never,
    /// What it needs was not there; and what would give it.
    Unknown(String),
}

/// What a check told of a workload of a run.
#[derive(Clone, Copy)]
pub(in crate::results) struct Told<'a> {
    pub(in crate::results) check: &'a Check,
    pub(in crate::results) measured: &'a Measured<'a>,
}

impl Told<'_> {
    /// A number of its evidence.
    pub(in crate::results) fn number(self, name: &str) -> Option<f64> {
        self.check.evidence.get(name).copied().filter(|value| value.is_finite())
    }

    /// Whether the run's numbers are left out of all means.
    pub(in crate::results) fn excludes(self) -> bool {
        self.check.severity == Severity::Invalid
    }
}

impl Stored {
    /// What follows from whether the check is there.
    pub(in crate::results) fn look(&self, measured: &Measured<'_>) -> Verdict {
        match (check(measured, self.check), (self.could)(measured)) {
            (Some(check), _) => {
                let told = Told { check, measured };
                if (self.worth)(told) { Verdict::Found(self.finding(told)) } else { Verdict::Clear }
            }
            (None, Could::Yes) => Verdict::Clear,
            (None, Could::Never) => Verdict::Irrelevant,
            (None, Could::Unknown(why)) => Verdict::Unknown(why),
        }
    }

    fn finding(&self, told: Told<'_>) -> Finding {
        let numbers = self.numbers.iter();
        let evidence = numbers.filter_map(|(name, words, unit)| Some((words, told.number(name)?, *unit)));
        let finding = Finding::new(
            &self.explanation,
            self.confidence,
            sentence(&told.check.message),
            (self.remedy)(told),
        )
        .with(evidence.map(|(words, value, unit)| Evidence::new(*words, value, unit)));
        let finding = match (self.cost)(told) {
            Some((share, of, estimate)) => finding.costs(share, of, estimate),
            None => finding,
        };
        match self.plot {
            Some(plot) => finding.shown_by(plot),
            None => finding,
        }
    }
}

/// Words with which a message begins to give advice; the remedy has it.
const ADVICE: [&str; 8] =
    ["use ", "measure ", "trace to ", "begin later", "enter it ", "give them ", "read less ", "it needs "];

/// A message of a check as a sentence, without its advice.
pub(in crate::results) fn sentence(message: &str) -> String {
    let mut told = message.trim().trim_end_matches('.');
    while let Some((before, after)) = told.rsplit_once("; ") {
        if !ADVICE.iter().any(|words| after.starts_with(words)) {
            break;
        }
        told = before;
    }
    let mut letters = told.chars();
    let first = letters.next().map(|letter| letter.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

/// What is told needs nothing but that it was there.
pub(in crate::results) fn always(_: &Measured<'_>) -> Could {
    Could::Yes
}

pub(in crate::results) fn when(could: bool) -> Could {
    if could { Could::Yes } else { Could::Never }
}

/// With several clients.
pub(in crate::results) fn several(measured: &Measured<'_>) -> Could {
    let clients: u32 = measured.recording.agents.iter().map(|agent| agent.clients).sum();
    when(clients > 1)
}

/// In a lab.
pub(in crate::results) fn in_lab(measured: &Measured<'_>) -> Could {
    when(measured.run.lab.is_some())
}

/// Where RPCs were counted.
pub(in crate::results) fn with_rpcs(measured: &Measured<'_>) -> Could {
    when(measured.rpcs().is_some())
}

/// Where counters were read beside the operations.
pub(in crate::results) fn sampled(measured: &Measured<'_>) -> Could {
    if measured.recording.samples.is_empty() {
        Could::Unknown("no counters were read beside the operations: leave `[sampling]` on".into())
    } else {
        Could::Yes
    }
}

pub(in crate::results) fn worth_it(_: Told<'_>) -> bool {
    true
}

/// More than a note.
pub(in crate::results) fn warned(told: Told<'_>) -> bool {
    told.check.severity > Severity::Note
}

pub(in crate::results) fn nothing(_: Told<'_>) -> Option<(f64, CostOf, &'static str)> {
    None
}

/// All of the run where the check makes it invalid.
pub(in crate::results) fn all_of_it(told: Told<'_>) -> Option<(f64, CostOf, &'static str)> {
    told.excludes().then_some((1.0, CostOf::Result, "the run is left out of all means"))
}

/// A detector of what a check told.
macro_rules! stored {
    ($one:path) => {
        $crate::results::rule::Detector {
            explanation: &$one.explanation,
            detect: |measured| $one.look(measured),
        }
    };
}
pub(in crate::results) use stored;

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of checks in the files of a directory or file of the workspace.
    fn checks_in(files: &str, before: &str) -> Vec<String> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let path = root.join(files);
        let files: Vec<_> = if path.is_dir() {
            std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect()
        } else {
            vec![path]
        };
        let texts = files.iter().map(|file| std::fs::read_to_string(file).unwrap());
        let names = |text: String| -> Vec<String> {
            text.split(before).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
        };
        texts.flat_map(names).collect()
    }

    #[test]
    fn every_check_has_its_finding() {
        let mut checks = checks_in("diagnosis/src/validity.rs", "found(s, \"");
        checks.extend(checks_in("diagnosis/src/validity", "found(s, \""));
        checks.extend(checks_in("runner/src/session/lab.rs", "id: \""));
        // Those that a call has in lines of their own.
        checks.extend(["errors", "corruption"].map(str::to_owned));
        checks.sort();
        checks.dedup();
        assert!(checks.len() >= 35, "{checks:?}");
        for check in &checks {
            assert!(crate::catalogue::explain(check).is_some(), "{check} has no finding");
        }
    }

    #[test]
    fn messages_become_sentences_without_their_advice() {
        assert_eq!(
            sentence("only 3 operations were done: percentiles mean little; measure longer"),
            "Only 3 operations were done: percentiles mean little."
        );
        assert_eq!(sentence("a; b; use c; measure longer"), "A; b.");
        assert_eq!(sentence("31 % was cached."), "31 % was cached.");
        assert_eq!(
            sentence("too late; what came first is in order"),
            "Too late; what came first is in order."
        );
        assert_eq!(sentence(""), ".");
    }
}
