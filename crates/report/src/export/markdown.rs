//! Results as Markdown for issues and pull requests (GitHub Flavored Markdown): the question, the answer, one table, findings,
//! validity, conditions, and how to measure it again.

mod escape;

use benchmaster_analysis::{Analysis, LatencySummary, TreatmentSummary};
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::finding::Finding;
use benchmaster_record::results::{StudyResults, Unit};

use self::escape::{cell, code, code_cell, fenced, text};
use crate::format::{self, rounded};
use crate::overview;

/// Rows of a table of results up to which all are shown.
const ROWS: usize = 32;
/// Findings that are shown.
const FINDINGS: usize = 10;

/// The text of [`super::Format::Markdown`]. Names and messages are escaped, so that none of them becomes markup.
pub fn markdown(results: &StudyResults, analysis: &Analysis, diagnosis: &Diagnosis) -> String {
    let study = &results.study;
    let mut out = Document(format!("## {}\n", text(&study.name)));
    if let Some(description) = &study.description {
        out.paragraph(&text(description));
    }
    out.paragraph(&format!("**{}**", text(&overview::question(results, analysis))));
    out.paragraph(&text(&overview::answer(analysis).join(" ")));
    tables(&mut out, results, analysis);
    findings(&mut out, diagnosis);
    out.head("Validity");
    validity(&mut out, analysis);
    out.head("Conditions");
    conditions(&mut out, results, analysis);
    out.head("How to reproduce");
    reproduce(&mut out, results);
    out.0
}

/// Blocks of Markdown, an empty line between them.
struct Document(String);

impl Document {
    fn block(&mut self, block: &str) {
        self.0.push('\n');
        self.0.push_str(block);
        self.0.push('\n');
    }

    fn paragraph(&mut self, paragraph: &str) {
        self.block(paragraph);
    }

    fn head(&mut self, head: &str) {
        self.block(&format!("### {head}"));
    }

    fn items(&mut self, items: impl IntoIterator<Item = String>) {
        let items: Vec<String> = items.into_iter().map(|item| format!("- {item}")).collect();
        if !items.is_empty() {
            self.block(&items.join("\n"));
        }
    }

    /// Cells are escaped already. Columns whose head begins with `#` have numbers.
    fn table(&mut self, head: &[&str], rows: &[Vec<String>]) {
        let line = |cells: Vec<&str>| format!("| {} |", cells.join(" | "));
        let mut lines = vec![line(head.iter().map(|head| head.trim_start_matches('#')).collect())];
        lines.push(line(head.iter().map(|head| if head.starts_with('#') { "--:" } else { ":--" }).collect()));
        lines.extend(rows.iter().map(|row| line(row.iter().map(String::as_str).collect())));
        self.block(&lines.join("\n"));
    }
}

const HEAD: [&str; 8] =
    ["response", "#mean ± half width", "#n", "#p50", "#p99", "#p99.9", "#errors", "validity"];

/// One table per workload; one over all workloads when there is one treatment.
fn tables(out: &mut Document, results: &StudyResults, analysis: &Analysis) {
    let workloads = &results.study.workloads;
    let row = |treatment, workload: &str| row(results, analysis, treatment, workload);
    match analysis.treatments.as_slice() {
        [treatment] => {
            let named = |name: &String| {
                std::iter::once(code_cell(name)).chain(row(treatment, name)).collect::<Vec<String>>()
            };
            let rows: Vec<_> = workloads.iter().map(|workload| named(&workload.name)).collect();
            table(out, "workload", rows);
        }
        treatments => {
            for workload in workloads {
                if workloads.len() > 1 {
                    out.paragraph(&format!("{}:", code(&workload.name)));
                }
                let rows = treatments.iter().map(|treatment| {
                    std::iter::once(code_cell(&treatment.label))
                        .chain(row(treatment, &workload.name))
                        .collect()
                });
                table(out, "treatment", rows.collect());
            }
        }
    }
    let level = format::percent(analysis.confidence);
    out.paragraph(&format!(
        "±: half width of the {level} Student-t interval of the mean over n runs. Percentiles: of all operations of these \
         runs, merged."
    ));
}

fn table(out: &mut Document, first: &str, mut rows: Vec<Vec<String>>) {
    let more = rows.len().saturating_sub(ROWS);
    rows.truncate(ROWS);
    let head: Vec<&str> = std::iter::once(first).chain(HEAD).collect();
    out.table(&head, &rows);
    if more > 0 {
        out.paragraph(&format!("… and {} that the other exports have.", format::plural(more, first)));
    }
}

fn row(
    results: &StudyResults,
    analysis: &Analysis,
    treatment: &TreatmentSummary,
    workload: &str,
) -> Vec<String> {
    let rates = overview::rates(&results.study, analysis, workload);
    let name = rates.first().map(|(name, _)| name.as_str());
    let response = name.and_then(|name| treatment.response(name));
    let estimate = response.and_then(|response| Some((response.unit, response.estimate.as_ref()?)));
    let latency = overview::main_latency(results, treatment, workload);
    let percentile = |label: &str| {
        let ns = latency.and_then(|latency: &LatencySummary| latency.percentile(label));
        ns.map_or("–".into(), |ns| format::time(ns as f64))
    };
    let errors = treatment.errors_by_workload.get(workload).copied().unwrap_or(0);
    vec![
        name.map_or("–".into(), |name| code_cell(overview::short_name(name, workload))),
        estimate.map_or("–".into(), |(unit, e)| shown(e.mean, e.half_width, unit)),
        estimate.map_or(0, |(_, e)| e.n).to_string(),
        percentile("p50"),
        percentile("p99"),
        percentile("p99.9"),
        format::count(errors),
        cell(&overview::validity(results, treatment, workload).0),
    ]
}

fn shown(mean: f64, half_width: Option<f64>, unit: Unit) -> String {
    rounded(mean, half_width, unit, None).text(true)
}

fn findings(out: &mut Document, diagnosis: &Diagnosis) {
    out.head("Findings");
    if diagnosis.findings.is_empty() {
        let looked = format::plural(diagnosis.clear.len(), "condition");
        out.paragraph(&format!("Nothing was found; {looked} were looked for and are not there."));
        return;
    }
    let items: Vec<String> = diagnosis.findings.iter().take(FINDINGS).map(finding).collect();
    let numbered: Vec<String> = (1..).zip(&items).map(|(n, item)| format!("{n}. {item}")).collect();
    out.block(&numbered.join("\n"));
    let more = diagnosis.findings.len().saturating_sub(FINDINGS);
    if more > 0 {
        out.paragraph(&format!("… and {more} more, in the report and by `benchmaster diagnose`."));
    }
}

/// On one line, so that it stays one item of the list.
fn finding(finding: &Finding) -> String {
    let mut line = format!("**{}** ({}", text(finding.id), finding.confidence.word());
    if let Some(cost) = &finding.cost {
        line += &format!(", {} {}", format::percent(cost.share), cost.of.words());
    }
    line += &format!("): {} *Where:* {}.", text(&finding.what), text(&finding.place));
    line += &format!(" *Do:* {}", text(&finding.remedy.text));
    if let Some(command) = &finding.remedy.command {
        line += &format!(" {}", code(command));
    }
    line
}

fn validity(out: &mut Document, analysis: &Analysis) {
    let objections = overview::objections(analysis);
    if objections.is_empty() {
        out.paragraph(overview::all_well(analysis));
    }
    out.items(objections.iter().map(|objection| match &objection.check {
        Some(check) => format!(
            "**{}** {} ({}): {}",
            objection.mark,
            code(check),
            text(&objection.seen),
            text(&objection.text)
        ),
        None => format!("**{}** {}", objection.mark, text(&objection.text)),
    }));
}

fn conditions(out: &mut Document, results: &StudyResults, analysis: &Analysis) {
    let lines = overview::place_lines(results)
        .into_iter()
        .chain(overview::lab_lines(results))
        .chain(overview::network_lines(results))
        .chain(overview::start_line(results, analysis))
        .chain([
            overview::design_line(&results.study),
            overview::progress_line(results, analysis),
            format!("Benchmaster {}", results.study.version),
        ]);
    out.items(lines.map(|line| text(&line)));
}

fn reproduce(out: &mut Document, results: &StudyResults) {
    let study = &results.study;
    let mut commands: Vec<&str> = Vec::new();
    for session in &results.sessions {
        if !commands.contains(&session.command.as_str()) {
            commands.push(&session.command);
        }
    }
    out.block(&fenced("sh", &commands.join("\n")));
    out.paragraph(&format!(
        "Everything random follows from seed {} ({}).",
        study.seed,
        text(&study.generator)
    ));
    out.block(&format!(
        "<details><summary>Study file as run</summary>\n\n{}\n\n</details>",
        fenced("toml", study.text.trim_end())
    ));
}

#[cfg(test)]
mod tests;
