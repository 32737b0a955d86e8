//! Results as Markdown for issues and pull requests (GitHub Flavored Markdown): the question, the answer, one table, findings,
//! validity, conditions, and how to measure it again.

mod escape;

use benchmaster_analysis::Analysis;
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::finding::Finding;
use benchmaster_record::results::StudyResults;

use self::escape::{cell, code, code_cell, fenced, text};
use crate::document::{Block, Cell, Head, Table};
use crate::{format, overview, sections};

/// Rows of a table of results up to which all are shown.
const ROWS: usize = 32;
/// Findings that are shown.
const FINDINGS: usize = 10;

/// The text of [`super::Format::Markdown`]. Names and messages are escaped, so that none of them becomes markup.
pub fn markdown(results: &StudyResults, analysis: &Analysis, diagnosis: &Diagnosis) -> String {
    let study = &results.study;
    let mut out = Markdown(format!("## {}\n", text(&study.name)));
    if let Some(description) = &study.description {
        out.paragraph(&text(description));
    }
    out.paragraph(&format!("**{}**", text(&overview::question(results, analysis))));
    out.paragraph(&text(&overview::answer(analysis).join(" ")));
    out.blocks(&sections::results::results(results, analysis));
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
struct Markdown(String);

impl Markdown {
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

    /// A table below its caption, of many rows the first.
    fn table(&mut self, table: &Table) {
        let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let shown = |one: &Cell| match one {
            Cell { is_name: true, text, .. } => code_cell(text),
            // Numbers are no markup.
            Cell { sort: Some(_), text, .. } => text.clone(),
            Cell { text, .. } => cell(text),
        };
        let rule = |head: &Head| if head.number { "--:" } else { ":--" }.to_owned();
        let mut table = table.clone();
        table.cap(ROWS);
        self.paragraph(&format!("**{}**", text(&table.caption)));
        let mut lines = vec![line(table.head.iter().map(|head| cell(&head.text)).collect())];
        lines.push(line(table.head.iter().map(rule).collect()));
        lines.extend(table.rows.iter().map(|row| line(row.iter().map(shown).collect())));
        self.block(&lines.join("\n"));
        if !table.note.is_empty() {
            self.paragraph(&coded(&table.note));
        }
    }

    fn blocks(&mut self, blocks: &[Block]) {
        for block in blocks {
            match block {
                Block::Sentence(sentence) => self.paragraph(&text(sentence)),
                Block::Table(table) => self.table(table),
            }
        }
    }
}

/// A text in which what stands between backticks is code.
fn coded(note: &str) -> String {
    let part = |(at, part): (usize, &str)| if at % 2 == 1 { code(part) } else { within(part) };
    note.split('`').enumerate().map(part).collect()
}

/// Text within a line, whose blanks at its ends stay.
fn within(part: &str) -> String {
    let blank = |is: bool| if is { " " } else { "" };
    let inner = text(part);
    if inner.is_empty() {
        return blank(!part.is_empty()).into();
    }
    format!("{}{inner}{}", blank(part.starts_with(' ')), blank(part.ends_with(' ')))
}

fn findings(out: &mut Markdown, diagnosis: &Diagnosis) {
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

fn validity(out: &mut Markdown, analysis: &Analysis) {
    let objections = overview::objections(analysis);
    if objections.is_empty() {
        out.paragraph(overview::all_well(analysis));
    }
    out.items(objections.iter().map(|objection| match &objection.check {
        Some(check) => format!(
            "**{}** {} ({}): {} *Do:* {}",
            objection.mark,
            code(check.name()),
            text(&objection.seen),
            text(&objection.text),
            text(objection.remedy.as_deref().unwrap_or_default())
        ),
        None => format!("**{}** {}", objection.mark, text(&objection.text)),
    }));
}

fn conditions(out: &mut Markdown, results: &StudyResults, analysis: &Analysis) {
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

fn reproduce(out: &mut Markdown, results: &StudyResults) {
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
