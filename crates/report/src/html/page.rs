//! The words and tables of the page.

mod answer;
mod conditions;
mod tables;

use benchmaster_store::record::StudyResults;
use benchmaster_study::analysis::Analysis;
use serde::Serialize;

use super::figure::Figure;
use super::table::{Table, class};
use crate::overview;

/// All that the template shows, as text.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    title: String,
    description: Option<String>,
    /// What was measured where.
    facts: Vec<String>,
    answer: Vec<String>,
    alerts: Vec<Alert>,
    results: Vec<Table>,
    effects: tables::Effects,
    replicates: Table,
    operations: Vec<Table>,
    responses: Vec<Table>,
    fairness: Option<Table>,
    plots: Vec<PlotSection>,
    environment: Vec<Table>,
    plan: conditions::Plan,
    conditions: Table,
    checks: Option<Table>,
    reproduce: conditions::Reproduce,
    version: String,
}

/// Something that speaks against the numbers.
#[derive(Debug, Serialize)]
struct Alert {
    class: &'static str,
    title: String,
    text: String,
}

#[derive(Debug, Serialize)]
struct PlotSection {
    workload: String,
    figures: Vec<PlotHead>,
}

#[derive(Debug, Serialize)]
struct PlotHead {
    id: String,
    title: String,
    note: String,
    choice: &'static str,
    height: usize,
    views: Vec<String>,
}

pub(super) fn page(
    results: &StudyResults,
    analysis: &Analysis,
    figures: &[Figure],
    trace_problems: Vec<String>,
) -> Page {
    let study = &results.study;
    let mut facts = overview::place_lines(results);
    facts.push(overview::design_line(study));
    facts.push(overview::progress_line(results, analysis));
    let mut page = Page {
        title: study.name.clone(),
        description: study.description.clone(),
        facts,
        answer: answer::answer(results, analysis),
        alerts: alerts(analysis, trace_problems),
        results: tables::results(results, analysis),
        effects: tables::effects(analysis),
        replicates: tables::replicates(analysis),
        operations: tables::operations(results, analysis),
        responses: tables::responses(results, analysis),
        fairness: tables::fairness(analysis),
        plots: sections(figures),
        environment: conditions::environment(results),
        plan: conditions::plan(results),
        conditions: conditions::conditions(results),
        checks: conditions::checks(results),
        reproduce: conditions::reproduce(results),
        version: study.version.clone(),
    };
    page.cap();
    page
}

/// Rows of one kind of table over the whole page, so that it stays small.
const ROWS: usize = 800;
/// The same for responses, whose rows are short.
const RESPONSE_ROWS: usize = 1_000;

impl Page {
    fn cap(&mut self) {
        cap_all(&mut self.results, ROWS);
        cap_all(&mut self.operations, ROWS);
        cap_all(&mut self.responses, RESPONSE_ROWS);
        [&mut self.replicates, &mut self.plan.runs, &mut self.conditions]
            .into_iter()
            .chain(&mut self.fairness)
            .chain(&mut self.checks)
            .for_each(|t| t.cap(ROWS));
    }
}

/// Cuts tables to about so many rows together.
fn cap_all(tables: &mut [Table], rows: usize) {
    if tables.iter().map(|t| t.rows.len()).sum::<usize>() > rows {
        let each = rows / tables.len();
        tables.iter_mut().for_each(|t| t.cap(each));
    }
}

/// Failures, damage and checks that did not pass, the worst first.
fn alerts(analysis: &Analysis, trace_problems: Vec<String>) -> Vec<Alert> {
    let mut alerts = Vec::new();
    for treatment in &analysis.treatments {
        for failed in &treatment.failed {
            alerts.push(Alert {
                class: "invalid",
                title: format!("Run failed: {}, replicate {}", treatment.label, failed.run.replicate + 1),
                text: failed.reason.clone(),
            });
        }
    }
    let damage = analysis.damage.iter().cloned().chain(trace_problems);
    alerts.extend(damage.map(|text| Alert {
        class: "invalid",
        title: "Stored results are damaged".into(),
        text,
    }));
    for warning in &analysis.warnings {
        let (word, left_out) = match class(warning.severity) {
            "invalid" => ("Invalid", "; left out of all means"),
            "warning" => ("Warning", ""),
            _ => ("Note", ""),
        };
        let about = warning.workload.as_ref().map(|w| format!(" in {w}")).unwrap_or_default();
        alerts.push(Alert {
            class: class(warning.severity),
            title: format!(
                "{word}: {}{about} ({} of {} runs{left_out})",
                warning.id,
                warning.runs.len(),
                warning.of
            ),
            text: warning.example.clone(),
        });
    }
    if alerts.is_empty() {
        let class = if analysis.runs == 0 { "note" } else { "ok" };
        alerts.push(Alert { class, title: overview::all_well(analysis).into(), text: String::new() });
    }
    alerts
}

fn sections(figures: &[Figure]) -> Vec<PlotSection> {
    let mut sections: Vec<PlotSection> = Vec::new();
    for figure in figures {
        let head = PlotHead {
            id: figure.id.clone(),
            title: figure.title.clone(),
            note: figure.note.clone(),
            choice: figure.choice,
            height: figure.height,
            views: figure.views.iter().map(|v| v.label.clone()).collect(),
        };
        match sections.iter_mut().find(|s| s.workload == figure.workload) {
            Some(section) => section.figures.push(head),
            None => sections.push(PlotSection { workload: figure.workload.clone(), figures: vec![head] }),
        }
    }
    sections
}
