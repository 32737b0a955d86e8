//! What `run` and `report` print at their end: the question, the answer, the costliest findings, validity. In 80 columns it
//! fits a screen of [`LINES`] lines; everything else is in the analysis and the report.

use benchmaster_analysis::{Analysis, TreatmentSummary};
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::finding::Finding;
use benchmaster_record::results::{Replication, Severity, StudyResults, WorkloadRecord};

use super::grid::Text;
use super::{TextOptions, cost, remedy};
use crate::document::Head;
use crate::sections::results::{directions_table, result_tables, stopping, workload_table};
use crate::sections::{answer, validity};
use crate::{format, overview};
const LINES: usize = 30;
/// Treatments up to which each has its row; of more the best and the worst.
const ROWS: usize = 8;
/// Of more treatments: the number of the best, and of the worst.
const ENDS: (usize, usize) = (4, 3);
const FINDINGS: usize = 3;
pub fn summary(
    results: &StudyResults,
    analysis: &Analysis,
    diagnosis: &Diagnosis,
    options: &TextOptions,
) -> String {
    let mut head = Text::new(options);
    let study = &results.study;
    let scaled = study.design_details.scale.map_or_else(String::new, |scale| format!(", scaled by {scale}"));
    head.clipped("", &format!("{}{scaled}: {}", study.name, overview::progress_line(results, analysis)), 1);
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
    // As many lines as a table of the most rows leaves.
    let lines = if analysis.treatments.len() < ROWS { 2 } else { 1 };
    head.clipped("", &format!("{}{also}", answer::short_question(results, analysis)), lines);
    for sentence in answer::answer(results, analysis) {
        head.clipped("  ", &sentence, 4);
    }
    table(&mut head, results, analysis);
    if matches!(study.replicates, Replication::Sequential { .. }) {
        stopping(analysis).iter().for_each(|line| head.clipped("  ", line, 2));
    }
    let mut tail = Text::new(options);
    objections(&mut tail, analysis);
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

/// The table: of one treatment its workloads, else the treatments with the workload that is asked about.
fn table(text: &mut Text, results: &StudyResults, analysis: &Analysis) {
    text.raw_line("");
    let (treatments, missing) = ends(analysis);
    let asked = asked(results, analysis);
    let directions = asked.and_then(|asked| directions_table(results, analysis, &treatments, asked));
    let one = analysis.treatments.len() == 1;
    let (mut table, note) = match (directions, asked) {
        (Some(table), _) if !one || results.study.workloads.len() == 1 => (table, missing),
        (_, Some(workload)) if !one => (workload_table(results, analysis, &treatments, workload), missing),
        (_, None) if !one => return,
        _ => {
            let mut table = result_tables(results, analysis).remove(0);
            let more = table.rows.len().saturating_sub(ROWS);
            table.rows.truncate(ROWS);
            let note = match more {
                0 => String::new(),
                more => format!("and {}", format::plural(more, "more workload")),
            };
            (table, note)
        }
    };
    // Those that a screen has room for: errors where there are some, and of several rates the first.
    let is_spare = |head: &Head| head.rank > 2;
    for at in (0..table.head.len()).rev().filter(|at| is_spare(&table.head[*at])).collect::<Vec<_>>() {
        table.leave_out(at);
    }
    table.note.clear();
    text.table(&table);
    if !note.is_empty() {
        text.clipped("", &note, 1);
    }
}

/// The workload that is asked about.
fn asked<'a>(results: &'a StudyResults, analysis: &Analysis) -> Option<&'a WorkloadRecord> {
    results.study.workloads.get(overview::asked(results, analysis))
}

/// The workloads that the table of several treatments does not have, each with the range of its means.
fn others(results: &StudyResults, analysis: &Analysis) -> Vec<String> {
    if analysis.treatments.len() == 1 {
        return Vec::new();
    }
    let asked = asked(results, analysis).map(|workload| workload.name.as_str());
    let names = results.study.workloads.iter().map(|workload| workload.name.as_str());
    let others = names.filter(|name| Some(*name) != asked);
    let range = |workload: &str| {
        let (name, unit) = overview::rates(&results.study, analysis, workload).into_iter().next()?;
        let means =
            analysis.treatments.iter().filter_map(|t| Some(t.response(&name)?.estimate.as_ref()?.mean));
        let means: Vec<f64> = means.collect();
        let low = means.iter().copied().reduce(f64::min)?;
        let high = means.iter().copied().reduce(f64::max)?;
        let scale = format::Scale::common(unit, means);
        let [low, high] = [low, high].map(|mean| format::rounded(mean, None, unit, scale));
        Some(if low == high {
            format!("{name} {}", high.text(true))
        } else {
            format!("{name} {} to {}", low.value, high.text(true))
        })
    };
    others.map(|workload| range(workload).unwrap_or_else(|| workload.to_owned())).collect()
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
    (treatments, format!("the best {best} and the worst {last}; {between} more are between"))
}

/// The costliest findings in this number of lines; no fewer than two for each.
fn findings(text: &mut Text, diagnosis: &Diagnosis, room: usize) {
    let directory = text.options.directory.clone();
    let directory = directory.map_or_else(|| "DIR".into(), |directory| directory.display().to_string());
    // Of each condition the costliest: it may be the same in every workload.
    let mut chosen: Vec<(usize, &Finding)> = Vec::new();
    for (number, finding) in (1..).zip(&diagnosis.findings) {
        if chosen.len() < FINDINGS && chosen.iter().all(|(_, one)| one.id != finding.id) {
            chosen.push((number, finding));
        }
    }
    let shown = chosen.len();
    let more = diagnosis.findings.len() - shown;
    let unknown = diagnosis.absent.len();
    let unknown = match unknown {
        0 => String::new(),
        n => format!("{} could not be checked", format::plural(n, "condition")),
    };
    if shown == 0 {
        let checked = format::plural(diagnosis.clear.len(), "condition");
        let unknown = if unknown.is_empty() { unknown } else { format!("; {unknown}") };
        let line = format!("findings: none, {checked} checked{unknown} (benchmaster diagnose {directory})");
        text.raw_line("");
        text.clipped("  ", &line, 2);
        return;
    }
    let more = if more > 0 { format!("{more} more") } else { "with their evidence".into() };
    let unknown = if unknown.is_empty() { unknown } else { format!(", {unknown}") };
    let heads = [(unknown.as_str(), directory.as_str()), ("", &directory), ("", "DIR")];
    let heads = heads.map(|(unknown, directory)| {
        format!("findings, most important first ({more}{unknown}: benchmaster diagnose {directory})")
    });
    let fits = |head: &&String| head.chars().count() <= text.options.width;
    let head = heads.iter().find(fits).or(heads.last()).cloned().unwrap_or_default();
    text.section(&head);
    // Of what is left after an empty line and the heading.
    let each = (room.saturating_sub(2) / shown).max(2);
    for (number, finding) in chosen {
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

/// Failures and failed checks, in a line or two for each severity; notes only where there is nothing worse.
fn objections(text: &mut Text, analysis: &Analysis) {
    let notes = validity::notes(analysis, &[]);
    if notes.is_empty() {
        text.clipped("  ", &format!("validity: {}", validity::all_well(analysis)), 1);
        return;
    }
    let worse = notes.iter().any(|note| note.severity != Some(Severity::Note));
    let shown = notes.iter().filter(|note| !worse || note.severity != Some(Severity::Note));
    for alike in shown.collect::<Vec<_>>().chunk_by(|a, b| a.mark == b.mark) {
        let line = alike.iter().map(|note| match &note.check {
            Some(check) => format!("{check} ({})", note.seen),
            None => note.text.clone(),
        });
        let line = line.collect::<Vec<_>>().join("; ");
        let severity = alike[0].severity;
        let lines = if severity == Some(Severity::Invalid) || !worse { 2 } else { 1 };
        text.marked_in(severity, alike[0].mark, &line, lines);
    }
}
