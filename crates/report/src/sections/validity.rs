//! Failures, damage and failed checks; the rules of good measurement.

use benchmaster_analysis::{Analysis, WarningSummary};
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::lints::{Outcome, lints};
use benchmaster_diagnosis::results::Whole;
use benchmaster_diagnosis::validity::remedy;
use benchmaster_record::results::{Severity, StudyResults};

use crate::document::{Block, Cell, Note, Section, Table, word};
use crate::format;
use crate::overview::grouped;
use crate::plots::CHOICES;

/// Notes that the page does not fold away.
const FIRST: usize = 3;

/// Reasons to distrust the numbers, and the rules of good measurement that are broken.
pub(super) fn section(
    results: &StudyResults,
    analysis: &Analysis,
    diagnosis: &Diagnosis,
    problems: &[String],
) -> Section {
    // What is a finding was said there.
    let once = |mut note: Note| {
        let is_found = |id: &str| diagnosis.findings.iter().position(|finding| finding.id == id);
        if let Some(at) = note.check.and_then(|check| is_found(check.name())) {
            note.text = format!("See finding {}.", at + 1);
            note.remedy.clear();
        }
        Block::from(note)
    };
    let mut first: Vec<Block> = notes(analysis, problems).into_iter().map(once).collect();
    let more = first.split_off(first.len().min(FIRST));
    let more = (!more.is_empty()).then(|| Block::Fold(format::plural(more.len(), "further note"), more));
    let lints = lints(&Whole { results, analysis }, CHOICES);
    let broken = lints.iter().filter(|lint| is_broken(&lint.outcome)).count();
    let kept = lints.len() - broken;
    let broken = match broken {
        0 => String::new(),
        1 => ", 1 is broken".into(),
        n => format!(", {n} are broken"),
    };
    Section::new("validity", "Validity")
        .brief(first)
        .brief(more)
        .full([format!("{kept} of {} rules of good measurement are kept{broken}.", lints.len())])
}

/// How many runs count, and the number of failures, warnings and notes.
pub(super) fn verdict(analysis: &Analysis, problems: &[String]) -> Note {
    let notes = notes(analysis, problems);
    let of = |severity, text| Note { severity, text, ..Note::default() };
    let Some(worst) = notes.iter().filter_map(|note| note.severity).max() else {
        let severity = (analysis.runs == 0).then_some(Severity::Note);
        return of(severity, all_well(analysis).into());
    };
    let count = |severity| notes.iter().filter(|note| note.severity == Some(severity)).count();
    let named = [
        (count(Severity::Invalid), "failure or invalid check", "failures or invalid checks"),
        (count(Severity::Warning), "warning", "warnings"),
        (count(Severity::Note), "note", "notes"),
    ];
    let named = named.into_iter().filter(|(n, ..)| *n > 0);
    let named: Vec<_> =
        named.map(|(n, one, many)| if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }).collect();
    let left = analysis.runs - analysis.failed - analysis.excluded;
    let counted = format!("{left} of {} count", format::plural(analysis.runs, "run"));
    of(Some(worst), format!("{counted}: {}.", named.join(", ")))
}

/// The sentence where no check failed.
pub(crate) fn all_well(analysis: &Analysis) -> &'static str {
    match analysis.runs {
        0 => "No run is finished, so nothing was checked.",
        _ => "All validity checks passed in every run.",
    }
}

/// The twelve rules of good measurement, and whether this report keeps them.
pub(super) fn rules(results: &StudyResults, analysis: &Analysis) -> Section {
    let table = Table::of(
        "The twelve rules of Hoefler and Belli (SC '15)",
        lints(&Whole { results, analysis }, CHOICES),
    )
    .column("#rule", |lint| Cell::count(lint.number as usize))
    .column("requirement", |lint| Cell::text(lint.rule))
    .column("here", |lint| {
        Cell::text(lint.outcome.word()).marked(is_broken(&lint.outcome).then_some(Severity::Warning))
    })
    .column("how, or why not", |lint| Cell::text(lint.outcome.text()))
    .table();
    Section::new("rules", "Rules of good measurement")
        .page(["Calculated from what this report shows."])
        .page([table])
}

fn is_broken(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Broken(_))
}

/// Failed runs, damage, and failed checks, each check and severity once.
pub(crate) fn notes(analysis: &Analysis, problems: &[String]) -> Vec<Note> {
    let invalid = |mark, text| Note { severity: Some(Severity::Invalid), mark, text, ..Note::default() };
    let failures = analysis.treatments.iter().flat_map(|t| t.failed.iter().map(move |f| (t, f)));
    let failures = failures
        .map(|(t, f)| format!("{}, replicate {}: {}", t.label, f.run.replicate + 1, f.reason))
        .map(|text| invalid("FAILED", text));
    let damage = analysis.damage.iter().chain(problems).map(|damage| invalid("DAMAGED", damage.clone()));
    let key = |warning: &WarningSummary| (warning.check.severity, warning.check.kind);
    let checks = grouped(analysis.warnings.iter().map(|warning| (key(warning), warning)));
    failures.chain(damage).chain(checks.iter().filter_map(|(_, group)| of_check(group))).collect()
}

fn of_check(group: &[&WarningSummary]) -> Option<Note> {
    let check = &group.first()?.check;
    let where_seen = |warning: &&WarningSummary| {
        let runs = format!("{} of {}", warning.runs.len(), format::plural(warning.of, "run"));
        warning.check.workload.as_ref().map_or(runs.clone(), |workload| format!("{workload}, {runs}"))
    };
    let seen = group.iter().map(where_seen).collect::<Vec<_>>().join("; ");
    let left_out = if check.severity == Severity::Invalid { ", excluded" } else { "" };
    let example = if group.len() > 1 { format!("Example: {}", check.message) } else { check.message.clone() };
    Some(Note {
        severity: Some(check.severity),
        mark: match check.severity {
            Severity::Invalid => "INVALID",
            severity => word(severity),
        },
        check: Some(check.kind),
        seen: format!("{seen}{left_out}"),
        text: example,
        remedy: remedy(check).text,
    })
}
