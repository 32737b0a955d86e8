//! The words and tables of the page.

mod answer;
mod conditions;
mod course;
mod findings;

use benchmaster_analysis::Analysis;
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::lints::{Outcome, lints};
use benchmaster_diagnosis::results::Whole;
use benchmaster_diagnosis::validity::remedy;
use benchmaster_record::results::{Severity, StudyResults};
use serde::Serialize;

use super::figure::Figure;
use super::stack::Drawn;
use crate::document::{Block, Cell, Table, class};
use crate::{format, overview, sections};

/// All that the template shows, as text.
#[derive(Debug, Serialize)]
pub(super) struct Page {
    title: String,
    description: Option<String>,
    /// What was measured where.
    facts: Vec<String>,
    /// What was asked.
    question: String,
    /// The answer in a sentence or two.
    answer: Vec<String>,
    /// What else is to be said of it.
    more: Vec<String>,
    validity: Validity,
    findings: findings::Findings,
    results: Vec<Block>,
    effects: Vec<Block>,
    replicates: Table,
    operations: Vec<Table>,
    responses: Vec<Table>,
    rpcs: Vec<Table>,
    fairness: Vec<Block>,
    clients: Vec<Table>,
    networks: Vec<Table>,
    sampling: Vec<Table>,
    course: Vec<Table>,
    printed: Vec<course::Printed>,
    effect_plots: Vec<PlotHead>,
    plots: Vec<PlotSection>,
    environment: Vec<Table>,
    plan: conditions::Plan,
    conditions: Table,
    checks: Option<Table>,
    lints: Rules,
    reproduce: conditions::Reproduce,
    version: String,
}

/// Whether the numbers may be believed.
#[derive(Debug, Serialize)]
struct Validity {
    class: &'static str,
    /// In a sentence.
    text: String,
    /// What is too bad to be folded away.
    first: Vec<Alert>,
    /// The rest.
    more: Vec<Alert>,
}

/// The twelve rules.
#[derive(Debug, Serialize)]
struct Rules {
    held: usize,
    broken: usize,
    table: Table,
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

/// What stands around a plot.
#[derive(Debug, Serialize)]
pub(super) struct PlotHead {
    id: String,
    title: String,
    note: String,
    choice: &'static str,
    height: usize,
    /// As wide as the page, on large screens too.
    wide: bool,
    views: Vec<String>,
}

pub(super) fn page(
    results: &StudyResults,
    analysis: &Analysis,
    diagnosis: &Diagnosis,
    effects: &[Figure],
    figures: &[Figure],
    drawn: &[Drawn],
    problems: Vec<String>,
) -> Page {
    let study = &results.study;
    let mut facts = overview::place_lines(results);
    facts.extend(overview::lab_lines(results));
    facts.extend(overview::network_lines(results));
    facts.extend(overview::start_line(results, analysis));
    facts.push(overview::design_line(study));
    facts.push(overview::progress_line(results, analysis));
    let told: Vec<String> = overview::answer(analysis);
    let mut page = Page {
        title: study.name.clone(),
        description: study.description.clone(),
        facts,
        question: overview::question(results, analysis),
        more: answer::more(results, analysis, &told),
        answer: told,
        validity: validity(analysis, problems),
        lints: rules(results, analysis),
        findings: findings::findings(diagnosis, &effects.iter().chain(figures).collect::<Vec<_>>()),
        results: sections::results::results(results, analysis),
        effects: sections::effects::effects(analysis),
        replicates: sections::results::replicates(analysis),
        operations: sections::results::operations(results, analysis),
        responses: sections::results::responses(results, analysis),
        rpcs: sections::wire::calls(analysis).into_iter().chain(sections::wire::phases(analysis)).collect(),
        fairness: sections::results::fairness(analysis),
        clients: sections::clients::clients(results, analysis),
        networks: sections::clients::networks(results, analysis),
        sampling: course::sampling(results),
        course: course::course(results),
        printed: course::printed(results, drawn),
        effect_plots: effects.iter().map(head).collect(),
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
        cap_all(tables_of(&mut self.results), ROWS);
        cap_all(&mut self.operations, ROWS);
        cap_all(&mut self.responses, RESPONSE_ROWS);
        cap_all(&mut self.rpcs, ROWS);
        cap_all(&mut self.clients, ROWS);
        cap_all(&mut self.networks, ROWS);
        cap_all(&mut self.course, ROWS);
        cap_all(&mut self.sampling, ROWS);
        [&mut self.replicates, &mut self.plan.runs, &mut self.conditions]
            .into_iter()
            .chain(&mut self.findings.absent)
            .chain(&mut self.findings.limits)
            .chain(tables_of(&mut self.fairness))
            .chain(&mut self.checks)
            .for_each(|t| t.cap(ROWS));
    }
}

/// Cuts tables to about so many rows together.
fn cap_all<'t>(tables: impl IntoIterator<Item = &'t mut Table>, rows: usize) {
    let mut tables: Vec<_> = tables.into_iter().collect();
    if tables.iter().map(|t| t.rows.len()).sum::<usize>() > rows {
        let each = rows / tables.len();
        tables.iter_mut().for_each(|t| t.cap(each));
    }
}

fn tables_of(blocks: &mut [Block]) -> impl Iterator<Item = &mut Table> {
    blocks.iter_mut().filter_map(|block| match block {
        Block::Table(table) => Some(table),
        Block::Sentence(_) => None,
    })
}

/// Failures, damage and checks that did not pass, the worst first.
fn alerts(analysis: &Analysis, problems: Vec<String>) -> Vec<Alert> {
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
    let damage = analysis.damage.iter().cloned().chain(problems);
    alerts.extend(damage.map(|text| Alert {
        class: "invalid",
        title: "Stored results are damaged".into(),
        text,
    }));
    for warning in &analysis.warnings {
        let (word, left_out) = match class(warning.check.severity) {
            "invalid" => ("Invalid", "; left out of all means"),
            "warning" => ("Warning", ""),
            _ => ("Note", ""),
        };
        let about = warning.check.workload.as_ref().map(|w| format!(" in {w}")).unwrap_or_default();
        alerts.push(Alert {
            class: class(warning.check.severity),
            title: format!(
                "{word}: {}{about} ({} of {}{left_out})",
                warning.check.kind,
                warning.runs.len(),
                format::plural(warning.of, "run")
            ),
            text: format!("{} {}", warning.check.message, remedy(&warning.check).text),
        });
    }
    alerts
}

/// Alerts that are shown before the rest is folded away.
const ALERTS: usize = 3;

/// Whether the numbers may be believed, in a sentence, and what speaks against it.
fn validity(analysis: &Analysis, problems: Vec<String>) -> Validity {
    let mut first = alerts(analysis, problems);
    let more = first.split_off(first.len().min(ALERTS));
    if first.is_empty() {
        let class = if analysis.runs == 0 { "note" } else { "ok" };
        return Validity { class, text: overview::all_well(analysis).into(), first, more };
    }
    let all = || first.iter().chain(&more);
    let count = |class: &str| all().filter(|alert| alert.class == class).count();
    let (invalid, warnings) = (count("invalid"), count("warning"));
    let class = match (invalid, warnings) {
        (0, 0) => "note",
        (0, _) => "warning",
        _ => "invalid",
    };
    let left = analysis.failed + analysis.excluded;
    let counted = format!("{} of {} count", analysis.runs - left, format::plural(analysis.runs, "run"));
    let parts = [(invalid, "failure or invalid check"), (warnings, "warning"), (count("note"), "note")];
    let named = parts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| match (n, what) {
        (1, _) => format!("1 {what}"),
        (n, "failure or invalid check") => format!("{n} failures or invalid checks"),
        (n, _) => format!("{n} {what}s"),
    });
    let text = format!("{counted}: {}.", named.collect::<Vec<_>>().join(", "));
    Validity { class, text, first, more }
}

/// The twelve rules of good measurement, and whether this report keeps them.
fn rules(results: &StudyResults, analysis: &Analysis) -> Rules {
    let mut table = Table::new(
        "The twelve rules of Hoefler and Belli (SC '15)",
        &["#rule", "what it asks for", "here", "how, or where not"],
    );
    let lints = lints(&Whole { results, analysis }, crate::html::TREATMENTS_DRAWN);
    for lint in &lints {
        let severity = matches!(lint.outcome, Outcome::Broken(_)).then_some(Severity::Warning);
        table.row([
            Cell::count(lint.number as usize),
            Cell::text(lint.rule),
            Cell::text(lint.outcome.word()).marked(severity),
            Cell::text(lint.outcome.text()),
        ]);
    }
    let count = |wanted: fn(&Outcome) -> bool| lints.iter().filter(|lint| wanted(&lint.outcome)).count();
    Rules {
        held: count(|outcome| !matches!(outcome, Outcome::Broken(_))),
        broken: count(|outcome| matches!(outcome, Outcome::Broken(_))),
        table,
    }
}

/// The words of a figure.
pub(super) fn head(figure: &Figure) -> PlotHead {
    PlotHead {
        id: figure.id.clone(),
        title: figure.title.clone(),
        note: figure.note.clone(),
        choice: figure.choice,
        height: figure.views.first().and_then(|view| view.height).unwrap_or(figure.height),
        wide: figure.views.iter().any(|view| !view.panels.is_empty() || view.turns),
        views: figure.views.iter().map(|v| v.label.clone()).collect(),
    }
}

fn sections(figures: &[Figure]) -> Vec<PlotSection> {
    let mut sections: Vec<PlotSection> = Vec::new();
    for figure in figures {
        match sections.iter_mut().find(|s| s.workload == figure.workload) {
            Some(section) => section.figures.push(head(figure)),
            None => {
                sections.push(PlotSection { workload: figure.workload.clone(), figures: vec![head(figure)] });
            }
        }
    }
    sections
}
