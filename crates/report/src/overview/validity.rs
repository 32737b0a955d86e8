//! What speaks against the numbers, in lines.

use benchmaster_analysis::{Analysis, WarningSummary};
use benchmaster_diagnosis::validity::remedy;
use benchmaster_record::results::{CheckKind, Severity};

use crate::format;

/// Something that speaks against the numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Objection {
    /// How bad it is.
    pub(crate) severity: Severity,
    /// The same in a word: `FAILED`, `DAMAGED`, `INVALID`, `warning`, `note`.
    pub(crate) mark: &'static str,
    /// The check, for those that are one.
    pub(crate) check: Option<CheckKind>,
    /// In how many runs of which workloads, for those that are a check.
    pub(crate) seen: String,
    /// What is wrong.
    pub(crate) text: String,
    /// What to do, for those that are a check.
    pub(crate) remedy: Option<String>,
}

/// Failed runs, damage, and checks that did not pass, each check and severity once.
pub(crate) fn objections(analysis: &Analysis) -> Vec<Objection> {
    let invalid = |mark, text| Objection {
        severity: Severity::Invalid,
        mark,
        check: None,
        seen: String::new(),
        text,
        remedy: None,
    };
    let failures = analysis.treatments.iter().flat_map(|t| t.failed.iter().map(move |f| (t, f)));
    let failures = failures
        .map(|(t, f)| format!("{}, replicate {}: {}", t.label, f.run.replicate + 1, f.reason))
        .map(|text| invalid("FAILED", text));
    let damage = analysis.damage.iter().map(|damage| invalid("DAMAGED", damage.clone()));
    failures.chain(damage).chain(by_check(&analysis.warnings).iter().filter_map(|g| of_check(g))).collect()
}

fn of_check(group: &[&WarningSummary]) -> Option<Objection> {
    let check = &group.first()?.check;
    let where_seen = |warning: &&WarningSummary| {
        let runs = format!("{} of {}", warning.runs.len(), format::plural(warning.of, "run"));
        warning.check.workload.as_ref().map_or(runs.clone(), |workload| format!("{workload}, {runs}"))
    };
    let seen = group.iter().map(where_seen).collect::<Vec<_>>().join("; ");
    let left_out = if check.severity == Severity::Invalid { ", left out of all means" } else { "" };
    let example = if group.len() > 1 { format!("Example: {}", check.message) } else { check.message.clone() };
    Some(Objection {
        severity: check.severity,
        mark: match check.severity {
            Severity::Invalid => "INVALID",
            Severity::Warning => "warning",
            Severity::Note => "note",
        },
        check: Some(check.kind),
        seen: format!("{seen}{left_out}"),
        text: example,
        remedy: Some(remedy(check).text),
    })
}

/// Warnings of the same check and severity together, in the order of the first of each.
fn by_check(warnings: &[WarningSummary]) -> Vec<Vec<&WarningSummary>> {
    let mut groups: Vec<Vec<&WarningSummary>> = Vec::new();
    for warning in warnings {
        let same = |group: &&mut Vec<&WarningSummary>| {
            let key = |warning: &WarningSummary| (warning.check.severity, warning.check.kind);
            group.first().is_some_and(|first| key(first) == key(warning))
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(warning),
            None => groups.push(vec![warning]),
        }
    }
    groups
}
