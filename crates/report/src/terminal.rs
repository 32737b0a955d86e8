//! What `run` and `analyze` print: plain text, made for 80 columns and better in more.

mod effects;
mod grid;
mod tables;

use std::path::PathBuf;

use benchmaster_store::record::{Severity, StudyResults};
use benchmaster_study::analysis::{Analysis, WarningSummary};

use crate::overview;
use grid::Text;

pub(crate) use effects::{comparison_note, verdict};
pub(crate) use tables::{operation, remarks};

/// How text is to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns that fit into a line.
    pub width: usize,
    /// Whether to mark what matters by ANSI colours.
    pub color: bool,
    /// Whether `±`, `µ`, lines and bars may be used; else ASCII only.
    pub unicode: bool,
    /// Where the HTML report is, to be told at the end.
    pub report: Option<PathBuf>,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { width: 80, color: false, unicode: true, report: None }
    }
}

/// The summary of a study: what was measured, the result with its uncertainty, and everything that speaks against it.
pub fn summary(results: &StudyResults, analysis: &Analysis, options: &TextOptions) -> String {
    let mut text = Text::new(options);
    head(&mut text, results, analysis);
    tables::results(&mut text, results, analysis);
    trouble(&mut text, analysis);
    stopping(&mut text, analysis);
    report(&mut text);
    text.finish()
}

/// The summary, with every operation, every response and the effects of the factors.
pub fn analysis_text(results: &StudyResults, analysis: &Analysis, options: &TextOptions) -> String {
    let mut text = Text::new(options);
    head(&mut text, results, analysis);
    tables::results(&mut text, results, analysis);
    tables::operations(&mut text, results, analysis);
    tables::responses(&mut text, results, analysis);
    tables::fairness(&mut text, analysis);
    effects::effects(&mut text, results, analysis);
    trouble(&mut text, analysis);
    stopping(&mut text, analysis);
    report(&mut text);
    text.finish()
}

fn head(text: &mut Text, results: &StudyResults, analysis: &Analysis) {
    text.bold_line(&results.study.name);
    for line in overview::place_lines(results) {
        text.wrapped("", &line);
    }
    text.wrapped("", &overview::design_line(&results.study));
    text.wrapped("", &overview::progress_line(results, analysis));
}

/// Checks that did not pass, each once; failed runs; damage.
fn trouble(text: &mut Text, analysis: &Analysis) {
    let failures = analysis.treatments.iter().flat_map(|t| t.failed.iter().map(move |f| (t, f)));
    let loud = analysis.failed > 0 || !analysis.damage.is_empty();
    if analysis.warnings.is_empty() && !loud {
        text.section("validity");
        text.wrapped("", overview::all_well(analysis));
        return;
    }
    text.section("validity");
    for (treatment, failed) in failures {
        let line = format!("{}, replicate {}: {}", treatment.label, failed.run.replicate + 1, failed.reason);
        text.marked(Severity::Invalid, "FAILED", &line);
    }
    for damage in &analysis.damage {
        text.marked(Severity::Invalid, "DAMAGED", damage);
    }
    for group in by_check(&analysis.warnings) {
        let [first, ..] = group.as_slice() else { continue };
        let mark = match first.severity {
            Severity::Invalid => "INVALID",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let where_seen = |warning: &&WarningSummary| {
            let runs = format!("{} of {} runs", warning.runs.len(), warning.of);
            warning.workload.as_ref().map_or(runs.clone(), |workload| format!("{workload}, {runs}"))
        };
        let seen = group.iter().map(where_seen).collect::<Vec<_>>().join("; ");
        let left_out = if first.severity == Severity::Invalid { ", left out of all means" } else { "" };
        let example =
            if group.len() > 1 { format!("for example {}", first.example) } else { first.example.clone() };
        text.marked(first.severity, mark, &format!("{} ({seen}{left_out}). {example}", first.id));
    }
}

/// Warnings of the same check and severity together, in the order of the first of each.
fn by_check(warnings: &[WarningSummary]) -> Vec<Vec<&WarningSummary>> {
    let mut groups: Vec<Vec<&WarningSummary>> = Vec::new();
    for warning in warnings {
        let same = |group: &&mut Vec<&WarningSummary>| {
            group.first().is_some_and(|first| (first.severity, &first.id) == (warning.severity, &warning.id))
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(warning),
            None => groups.push(vec![warning]),
        }
    }
    groups
}

/// Whether there were enough replicates; one line for treatments that say the same.
fn stopping(text: &mut Text, analysis: &Analysis) {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for treatment in &analysis.treatments {
        let label = treatment.stopping.as_deref().unwrap_or("no run counts");
        match groups.iter_mut().find(|(known, _)| *known == label) {
            Some((_, members)) => members.push(&treatment.label),
            None => groups.push((label, vec![&treatment.label])),
        }
    }
    text.section(&format!("replicates (decided by {})", analysis.primary_response));
    let all = groups.len() == 1;
    for (label, members) in groups {
        let whose = match members.as_slice() {
            [one] => format!("{one}: "),
            _ if all => "every treatment: ".into(),
            many => format!("{} ({} treatments): ", many.join(", "), many.len()),
        };
        text.wrapped("  ", &format!("{whose}{label}"));
    }
}

fn report(text: &mut Text) {
    if let Some(path) = text.options.report.clone() {
        text.section("report");
        // Never wrapped, so that it can be copied.
        text.raw_line(&path.display().to_string());
    }
}
