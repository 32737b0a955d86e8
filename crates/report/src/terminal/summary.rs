//! What `run` and `report` print in the end: the question, the answer, the dearest findings, validity. In 80 columns it fits a
//! screen of [`LINES`] lines; everything else is in the analysis and the report.

use benchmaster_analysis::{Analysis, TreatmentSummary};
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::finding::Finding;
use benchmaster_record::results::{Severity, StudyResults};

use super::TextOptions;
use super::findings::{cost, remedy};
use super::grid::{Column, Text};
use super::tables::{self, Row};
use crate::{format, overview};

/// Lines of a screen.
const LINES: usize = 30;
/// Treatments up to which each has its row; of more the best and the worst.
const ROWS: usize = 8;
/// Of more treatments: so many of the best, and of the worst.
const ENDS: (usize, usize) = (4, 3);
/// Findings that are told.
const FINDINGS: usize = 3;

/// The summary of a study.
pub fn summary(
    results: &StudyResults,
    analysis: &Analysis,
    diagnosis: &Diagnosis,
    options: &TextOptions,
) -> String {
    let mut head = Text::new(options);
    let study = &results.study;
    head.clipped("", &format!("{}: {}", study.name, overview::progress_line(results, analysis)), 1);
    let places = overview::place_lines(results);
    if let Some(first) = places.first() {
        let others = places.len() - 1;
        let more =
            if others > 0 { format!("{} more: ", format::plural(others, "host")) } else { String::new() };
        head.clipped("", &format!("{more}{first}"), 1);
    }
    let also = match others(results, analysis).as_slice() {
        [] => String::new(),
        names => format!(" Also measured: {}.", names.join(", ")),
    };
    head.clipped("", &format!("{}{also}", overview::short_question(results, analysis)), 2);
    for sentence in overview::answer(analysis) {
        head.clipped("  ", &sentence, 4);
    }
    table(&mut head, results, analysis);
    let mut tail = Text::new(options);
    validity(&mut tail, analysis);
    if let Some(path) = options.report.clone() {
        // Never wrapped, so that it can be copied.
        tail.raw_line(&format!("report: {}", path.display()));
    }
    // With the empty line after them.
    let room = LINES.saturating_sub(head.lines() + tail.lines() + 1);
    findings(&mut head, diagnosis, room);
    if head.lines() + tail.lines() < LINES {
        head.raw_line("");
    }
    head.finish() + &tail.finish()
}

/// The rows of the table: of one treatment its workloads, else the treatments with the workload that is asked about.
fn table(text: &mut Text, results: &StudyResults, analysis: &Analysis) {
    let study = &results.study;
    text.raw_line("");
    if let [treatment] = analysis.treatments.as_slice() {
        let shown: Vec<_> = study.workloads.iter().map(|w| Row { treatment, workload: &w.name }).collect();
        let (shown, more) = shown.split_at(shown.len().min(ROWS));
        let names = shown.iter().map(|row| row.workload.to_owned()).collect();
        tables::brief(text, results, analysis, shown, vec![Column::text("workload", names)]);
        if !more.is_empty() {
            text.clipped("", &format!("and {}", format::plural(more.len(), "more workload")), 1);
        }
        return;
    }
    let Some(workload) = asked(results, analysis) else { return };
    let (treatments, note) = ends(analysis);
    let rows: Vec<_> = treatments.into_iter().map(|treatment| Row { treatment, workload }).collect();
    tables::brief(text, results, analysis, &rows, levels(results, &rows));
    if !note.is_empty() {
        text.clipped("", &note, 1);
    }
}

/// The workload that is asked about.
fn asked<'a>(results: &'a StudyResults, analysis: &Analysis) -> Option<&'a str> {
    let workloads = &results.study.workloads;
    let of = |workload: &str| {
        analysis.primary_response.strip_prefix(workload).is_some_and(|rest| rest.starts_with('.'))
    };
    let asked = workloads.iter().find(|workload| of(&workload.name)).or(workloads.first());
    asked.map(|workload| workload.name.as_str())
}

/// The workloads that the table of several treatments does not have.
fn others<'a>(results: &'a StudyResults, analysis: &Analysis) -> Vec<&'a str> {
    let asked = asked(results, analysis);
    let names = results.study.workloads.iter().map(|workload| workload.name.as_str());
    match analysis.treatments.len() {
        1 => Vec::new(),
        _ => names.filter(|name| Some(*name) != asked).collect(),
    }
}

/// All treatments; of many the best and the worst by the primary response, and what is missing.
fn ends(analysis: &Analysis) -> (Vec<&TreatmentSummary>, String) {
    let mut treatments: Vec<_> = analysis.treatments.iter().collect();
    if treatments.len() <= ROWS {
        return (treatments, String::new());
    }
    let mean = |treatment: &TreatmentSummary| {
        Some(treatment.response(&analysis.primary_response)?.estimate.as_ref()?.mean)
    };
    let larger = analysis.primary_unit.is_none_or(|unit| unit.larger_is_better());
    let worst = if larger { f64::NEG_INFINITY } else { f64::INFINITY };
    treatments.sort_by(|a, b| {
        let (a, b) = (mean(a).unwrap_or(worst), mean(b).unwrap_or(worst));
        if larger { b.total_cmp(&a) } else { a.total_cmp(&b) }
    });
    let (best, last) = ENDS;
    let between = treatments.len() - best - last;
    treatments.drain(best..best + between);
    (treatments, format!("the best {best} and the worst {last}; {between} more lie between"))
}

/// A column for each factor; labels where the design has no factors.
fn levels(results: &StudyResults, rows: &[Row<'_>]) -> Vec<Column> {
    let study = &results.study;
    if study.factors.is_empty() {
        return vec![Column::text("treatment", rows.iter().map(|row| row.treatment.label.clone()).collect())];
    }
    let level = |row: &Row<'_>, at: usize| {
        let treatment = study.treatments.iter().find(|treatment| treatment.index == row.treatment.index);
        let level = treatment.and_then(|treatment| treatment.levels.get(at).copied());
        level.and_then(|level| study.factors[at].levels.get(level as usize)).cloned().unwrap_or_default()
    };
    let column =
        |at: usize| Column::text(&study.factors[at].name, rows.iter().map(|row| level(row, at)).collect());
    (0..study.factors.len()).map(column).collect()
}

/// The dearest findings in so many lines; no fewer than two for each.
fn findings(text: &mut Text, diagnosis: &Diagnosis, room: usize) {
    let directory = text.options.directory.clone();
    let directory = directory.map_or_else(|| "DIR".into(), |directory| directory.display().to_string());
    // Of each condition the dearest: it may be the same in every workload.
    let mut told: Vec<&Finding> = Vec::new();
    for finding in &diagnosis.findings {
        if told.len() < FINDINGS && told.iter().all(|one| one.id != finding.id) {
            told.push(finding);
        }
    }
    let shown = told.len();
    let more = diagnosis.findings.len() - shown;
    let unknown = diagnosis.absent.len();
    let unknown = match unknown {
        0 => String::new(),
        n => format!("{} could not be looked for", format::plural(n, "condition")),
    };
    if shown == 0 {
        let looked = format::plural(diagnosis.clear.len(), "condition");
        let unknown = if unknown.is_empty() { unknown } else { format!("; {unknown}") };
        let line = format!("findings: none of {looked}{unknown} (benchmaster diagnose {directory})");
        text.raw_line("");
        text.clipped("  ", &line, 2);
        return;
    }
    let more = if more > 0 { format!("{more} more") } else { "with their evidence".into() };
    let unknown = if unknown.is_empty() { unknown } else { format!(", {unknown}") };
    let heads = [(unknown.as_str(), directory.as_str()), ("", &directory), ("", "DIR")];
    let heads = heads.map(|(unknown, directory)| {
        format!("findings, dearest first ({more}{unknown}: benchmaster diagnose {directory})")
    });
    let fits = |head: &&String| head.chars().count() <= text.options.width;
    let head = heads.iter().find(fits).or(heads.last()).cloned().unwrap_or_default();
    text.section(&head);
    // Of what is left after an empty line and the heading.
    let each = (room.saturating_sub(2) / shown).max(2);
    for (number, finding) in (1..).zip(told) {
        let for_remedy = if each >= 4 { 2 } else { 1 };
        let for_sentence = (each - for_remedy).min(4);
        let cost = match for_sentence {
            1 => finding.cost.as_ref().map(|cost| format!(" ({})", format::percent(cost.share))),
            _ => cost(finding).map(|cost| format!(" ({cost})")),
        };
        let sentence = format!("{number}. {}{}: {}", finding.id, cost.unwrap_or_default(), finding.what);
        text.clipped("   ", &sentence, for_sentence);
        text.clipped_after("   ", &format!("do: {}", remedy(finding)), for_remedy);
    }
}

/// Failures and checks that did not pass, in a line or two for each severity; notes only where there is nothing worse.
fn validity(text: &mut Text, analysis: &Analysis) {
    let objections = overview::objections(analysis);
    if objections.is_empty() {
        text.clipped("  ", &format!("validity: {}", overview::all_well(analysis)), 1);
        return;
    }
    let mut marks: Vec<(&str, Severity, Vec<String>)> = Vec::new();
    for objection in &objections {
        let told = match &objection.check {
            Some(check) => format!("{check} ({})", objection.seen),
            None => objection.text.clone(),
        };
        match marks.iter_mut().find(|(mark, ..)| *mark == objection.mark) {
            Some((.., all)) => all.push(told),
            None => marks.push((objection.mark, objection.severity, vec![told])),
        }
    }
    // Beside anything worse, notes are left to the analysis.
    let worse = marks.iter().any(|(_, severity, _)| *severity != Severity::Note);
    marks.retain(|(_, severity, _)| !worse || *severity != Severity::Note);
    for (mark, severity, told) in marks {
        text.marked_in(
            severity,
            mark,
            &told.join("; "),
            if severity == Severity::Invalid || !worse { 2 } else { 1 },
        );
    }
}
