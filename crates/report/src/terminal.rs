//! What `run` and `analyze` print: plain text, made for 80 columns and better in more.

mod compare;
mod effects;
mod findings;
mod grid;
mod load;
mod summary;
mod tables;

use std::path::PathBuf;

use benchmaster_analysis::Analysis;
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_record::results::StudyResults;

use crate::{overview, sections};
use grid::Text;

pub use compare::{comparison_text, history_text};
pub use effects::{experiment_text, sample_text};
pub use grid::wrap;
pub(crate) use load::word as load_word;
pub use summary::summary;

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
    /// The results directory, for commands that tell more.
    pub directory: Option<PathBuf>,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { width: 80, color: false, unicode: true, report: None, directory: None }
    }
}

/// Everything: what was measured, the results with their uncertainty, every operation, every response, the effects of the
/// factors, findings, and all that speaks against the numbers.
pub fn analysis_text(
    results: &StudyResults,
    analysis: &Analysis,
    diagnosis: &Diagnosis,
    options: &TextOptions,
) -> String {
    let mut text = Text::new(options);
    head(&mut text, results, analysis);
    text.blocks(&sections::results::results(results, analysis));
    text.tables(&sections::wire::calls(analysis));
    text.tables(&sections::results::operations(results, analysis));
    text.tables(&sections::results::responses(results, analysis));
    text.tables(&sections::wire::phases(analysis));
    text.blocks(&sections::results::fairness(analysis));
    text.tables(&sections::clients::clients(results, analysis));
    text.tables(&sections::clients::networks(results, analysis));
    text.tables(&sections::clients::retries(results));
    text.section(&format!("effects on {}", analysis.effects_on));
    text.blocks(&sections::effects::effects(analysis));
    load::curves(&mut text, analysis);
    adaptive(&mut text, analysis);
    findings::findings(&mut text, diagnosis);
    trouble(&mut text, analysis);
    stopping(&mut text, analysis);
    text.finish()
}

/// What a study that decides by its results found.
fn adaptive(text: &mut Text, analysis: &Analysis) {
    let lines = overview::adaptive_lines(analysis);
    if !lines.is_empty() {
        text.section("answer");
        lines.iter().for_each(|line| text.wrapped("", line));
    }
}

fn head(text: &mut Text, results: &StudyResults, analysis: &Analysis) {
    text.bold_line(&results.study.name);
    for line in overview::place_lines(results) {
        text.wrapped("", &line);
    }
    for line in overview::lab_lines(results).into_iter().chain(overview::network_lines(results)) {
        text.wrapped("", &line);
    }
    if let Some(line) = overview::start_line(results, analysis) {
        text.wrapped("", &line);
    }
    text.wrapped("", &overview::design_line(&results.study));
    text.wrapped("", &overview::progress_line(results, analysis));
}

/// Checks that did not pass, each once; failed runs; damage.
fn trouble(text: &mut Text, analysis: &Analysis) {
    text.section("validity");
    let objections = overview::objections(analysis);
    if objections.is_empty() {
        text.wrapped("", overview::all_well(analysis));
    }
    for objection in objections {
        let line = match &objection.check {
            Some(check) => format!("{check} ({}). {}", objection.seen, objection.text),
            None => objection.text,
        };
        text.marked(objection.severity, objection.mark, &line);
        if let Some(remedy) = objection.remedy {
            text.wrapped_after("   ", &format!("do: {remedy}"));
        }
    }
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
