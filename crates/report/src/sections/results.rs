//! What was measured: results, operations, responses, fairness.

use benchmaster_analysis::{
    Analysis, Estimate, LatencyKind, LatencySummary, ResponseSummary, TreatmentSummary,
};
use benchmaster_record::results::{StudyResults, Unit, WorkloadRecord};

use super::by_treatment;
use crate::document::{Block, Cell, Table};
use crate::format::{self, Scale, rounded};
use crate::overview;

const PERCENTILES: [&str; 4] = ["p50", "p99", "p99.9", "max"];
/// Cells of a line of bars.
const BARS: usize = 12;

/// The main table of each workload, or one over all workloads when there is one treatment; and what the intervals are.
pub(crate) fn results(results: &StudyResults, analysis: &Analysis) -> Vec<Block> {
    let mut blocks: Vec<Block> = result_tables(results, analysis).into_iter().map(Block::Table).collect();
    blocks.push(Block::Hint(interval_note(analysis)));
    blocks
}

pub(crate) fn result_tables(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let workloads = &results.study.workloads;
    let treatments: Vec<_> = analysis.treatments.iter().collect();
    if let [treatment] = analysis.treatments.as_slice() {
        let rates: Vec<_> =
            workloads.iter().map(|w| overview::rates(&results.study, analysis, &w.name)).collect();
        let head = ["workload", "response|4", "#mean ± half width", "#n", "latency of|1"];
        let mut table = Table::new("All workloads", &head);
        extend_head(&mut table, None);
        for (workload, rates) in workloads.iter().zip(&rates) {
            let name = rates.first().map(|(name, _)| name.as_str());
            let response = name.and_then(|n| treatment.response(n));
            let mut row = vec![
                Cell::name(&workload.name),
                name.map_or_else(Cell::none, |n| Cell::name(overview::short_name(n, &workload.name))),
                estimate_cell(response, None),
                runs_cell(treatment, response),
                overview::main_latency(results, analysis, treatment, &workload.name)
                    .map_or_else(Cell::none, |latency| Cell::text(&latency.series.label)),
            ];
            extend_row(&mut row, results, analysis, treatment, &workload.name);
            table.row(row);
        }
        keep_errors(&mut table);
        table.note = latency_note("the main operation of each workload");
        return vec![table];
    }
    workloads.iter().map(|w| workload_table(results, analysis, &treatments, w)).collect()
}

pub(crate) fn workload_table(
    results: &StudyResults,
    analysis: &Analysis,
    treatments: &[&TreatmentSummary],
    workload: &WorkloadRecord,
) -> Table {
    let use_name = &workload.use_name;
    let workload = workload.name.as_str();
    let rates = overview::rates(&results.study, analysis, workload);
    let rates = &rates[..rates.len().min(4)];
    let mut head = vec!["treatment".to_owned()];
    head.extend(rates.iter().map(|(name, _)| format!("#{}", overview::short_name(name, workload))));
    head.push("#n".into());
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(format!("{workload} ({use_name}): mean ± half width"), &head);
    let main = treatments.iter().find_map(|t| overview::main_latency(results, analysis, t, workload));
    // Of several operations the percentiles name theirs.
    let of = main.map(|main| main.series.label.as_str());
    let is_other = |l: &LatencySummary| l.workload == workload && Some(l.series.label.as_str()) != of;
    let several = treatments.iter().flat_map(|t| &t.latencies).any(is_other);
    extend_head(&mut table, of.filter(|_| several));
    // The first rate stands for the workload.
    table.head.iter_mut().skip(2).take(rates.len().saturating_sub(1)).for_each(|head| head.rank = 7);
    let scales: Vec<_> = rates
        .iter()
        .map(|(name, unit)| {
            let means = treatments.iter().filter_map(|t| t.response(name)?.estimate.as_ref());
            Scale::common(*unit, means.map(|e| e.mean))
        })
        .collect();
    for treatment in treatments {
        let mut row = vec![Cell::name(&treatment.label)];
        for ((name, _), scale) in rates.iter().zip(&scales) {
            row.push(estimate_cell(treatment.response(name), *scale));
        }
        row.push(runs_cell(treatment, rates.first().and_then(|(name, _)| treatment.response(name))));
        extend_row(&mut row, results, analysis, treatment, workload);
        table.row(row);
    }
    keep_errors(&mut table);
    table.note = latency_note(
        &main.map_or("the main operation".into(), |main| format!("operation {}", operation(main))),
    );
    table
}

fn latency_note(of: &str) -> String {
    format!(
        "Percentiles are latencies of {of}, merged over all runs that count, without intervals. –: too few \
         operations. n: runs that count / finished runs."
    )
}

/// `of` names the operation whose latencies they are.
fn extend_head(table: &mut Table, of: Option<&str>) {
    let of = of.map_or_else(String::new, |of| format!("{of} "));
    let latencies = [("p50", 2), ("p99", 1), ("p99.9", 4), ("max", 3)];
    let latencies = latencies.map(|(what, rank)| format!("#{of}{what}|{rank}"));
    let more = latencies.iter().map(String::as_str).chain(["#errors|5", "over time|6", "validity"]);
    table.head.extend(Table::new("", &more.collect::<Vec<_>>()).head);
}

/// Errors are never left out where there are some.
fn keep_errors(table: &mut Table) {
    let Some(at) = table.head.iter().position(|head| head.text == "errors") else { return };
    if table.rows.iter().any(|row| row.get(at).and_then(|cell| cell.sort).is_some_and(|errors| errors > 0.0))
    {
        table.head[at].rank = 0;
    }
}

fn extend_row(
    row: &mut Vec<Cell>,
    results: &StudyResults,
    analysis: &Analysis,
    treatment: &TreatmentSummary,
    workload: &str,
) {
    let latency = overview::main_latency(results, analysis, treatment, workload);
    row.extend(PERCENTILES.map(|p| Cell::time(latency.and_then(|l| l.percentile(p)).map(|ns| ns as f64))));
    let errors = treatment.errors_by_workload.get(workload).copied().unwrap_or(0);
    row.push(Cell::number(format::count(errors), errors as f64));
    let bars = over_time(results, analysis, treatment, workload);
    row.push(if bars.is_empty() { Cell::none() } else { Cell::text(bars) });
    let (word, severity) = overview::validity(results, treatment, workload);
    row.push(Cell::text(word).marked(severity));
}

fn estimate_cell(response: Option<&ResponseSummary>, scale: Option<Scale>) -> Cell {
    match response.and_then(|r| Some((r, r.estimate.as_ref()?))) {
        Some((response, estimate)) => show(estimate, response.unit, scale),
        None => Cell::none(),
    }
}

pub(crate) fn show(estimate: &Estimate, unit: Unit, scale: Option<Scale>) -> Cell {
    let mut text = format::estimate(estimate.mean, estimate.half_width, unit, scale);
    if estimate.no_interval.is_some() {
        text += " (no interval)";
    }
    Cell::number(text, estimate.mean)
}

fn runs_cell(treatment: &TreatmentSummary, response: Option<&ResponseSummary>) -> Cell {
    let n = response.and_then(|r| r.estimate.as_ref()).map_or(0, |e| e.n);
    let text = if n == treatment.runs { n.to_string() } else { format!("{n}/{}", treatment.runs) };
    Cell::number(text, n as f64)
}

/// Whether there were enough replicates.
pub(crate) fn replicates(analysis: &Analysis) -> Block {
    let decided = format!("Replicates, decided by {}", analysis.primary_response);
    Block::Fold(decided, vec![Block::List(stopping(analysis))])
}

/// Whether there were enough replicates; one line for the treatments that have the same answer.
pub(crate) fn stopping(analysis: &Analysis) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for treatment in &analysis.treatments {
        let decided = treatment.stopping.as_deref().unwrap_or("no run counts");
        match groups.iter_mut().find(|(known, _)| *known == decided) {
            Some((_, members)) => members.push(&treatment.label),
            None => groups.push((decided, vec![&treatment.label])),
        }
    }
    let all = groups.len() == 1;
    let line = |(decided, members): (&str, Vec<&str>)| match members.as_slice() {
        [one] => format!("{one}: {decided}"),
        _ if all => format!("every treatment: {decided}"),
        many => format!("{} ({} treatments): {decided}", many.join(", "), many.len()),
    };
    groups.into_iter().map(line).collect()
}

pub(crate) fn operations(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let head = [
        "treatment",
        "operation",
        "#count|3",
        "#mean|4",
        "#p50|1",
        "#p90|8",
        "#p99|1",
        "#p99.9|5",
        "#p99.99|7",
        "#max|2",
        "#first call|6",
        "#errors",
    ];
    let mut tables = Vec::new();
    for workload in &results.study.workloads {
        let caption = format!("{}: latency of every operation", workload.name);
        let mut table = Table::new(caption, &head);
        for treatment in &analysis.treatments {
            for latency in treatment.latencies.iter().filter(|l| l.workload == workload.name) {
                table.row(operation_row(treatment, latency));
            }
        }
        by_treatment(&mut table, analysis);
        if !table.rows.is_empty() {
            table.note = "Over all operations of the runs that count, merged, after the warm-up cut; no interval. \
                          First call: mean over workers and runs. Service times, from the actual start of a call, \
                          include the warm-up."
                .into();
            tables.push(table);
        }
    }
    tables
}

fn operation_row(treatment: &TreatmentSummary, latency: &LatencySummary) -> Vec<Cell> {
    let mut row = vec![
        Cell::name(&treatment.label),
        Cell::text(operation(latency)),
        Cell::number(format::count(latency.count), latency.count as f64),
        Cell::time(latency.mean_ns),
    ];
    let percentiles = ["p50", "p90", "p99", "p99.9", "p99.99", "max"];
    row.extend(percentiles.map(|p| Cell::time(latency.percentile(p).map(|ns| ns as f64))));
    row.push(Cell::time(latency.first_ns));
    row.push(match latency.kind {
        LatencyKind::Service => Cell::none(),
        _ => Cell::number(format::count(latency.errors), latency.errors as f64),
    });
    row
}

/// Every response with its interval, or why it has none.
pub(crate) fn responses(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let head = ["treatment", "response", "#mean ± half width", "#standard deviation|2", "#n", "remarks|1"];
    let mut tables = Vec::new();
    for workload in &results.study.workloads {
        let prefix = format!("{}.", workload.name);
        let mut table = Table::new(format!("{}: every response", workload.name), &head);
        for treatment in &analysis.treatments {
            for response in treatment.responses.iter().filter(|r| r.name.starts_with(&prefix)) {
                let estimate = response.estimate.as_ref();
                let deviation = estimate.and_then(|e| e.standard_deviation);
                table.row([
                    Cell::name(&treatment.label),
                    Cell::text(overview::short_name(&response.name, &workload.name)),
                    estimate_cell(Some(response), None),
                    Cell::some(deviation, |d| rounded(d, None, response.unit, None).text(true)),
                    Cell::count(estimate.map_or(0, |e| e.n)),
                    Cell::text(remarks(response)),
                ]);
            }
        }
        by_treatment(&mut table, analysis);
        if !table.rows.is_empty() {
            tables.push(table);
        }
    }
    tables
}

/// Jain's index over workers and clients.
pub(crate) fn fairness(analysis: &Analysis) -> Vec<Block> {
    let head = ["treatment", "workload", "over", "#Jain's index", "#n|1", "#largest / smallest rate"];
    let mut table = Table::new("Fairness (Jain's index)", &head);
    let mut clusters = Vec::new();
    for treatment in &analysis.treatments {
        for fairness in &treatment.fairness {
            let over = match &fairness.group {
                Some(group) => format!("{} workers of {group}", fairness.members),
                None => format!("{} clients", fairness.members),
            };
            table.row([
                Cell::name(&treatment.label),
                Cell::text(&fairness.workload),
                Cell::text(over),
                show(&fairness.jain, Unit::Ratio, None),
                Cell::count(fairness.jain.n),
                Cell::fixed(fairness.max_over_min, 3),
            ]);
            clusters.extend(fairness.clusters.as_ref().map(|clusters| {
                format!("{}, {}: {}.", treatment.label, fairness.workload, clusters.sentence)
            }));
        }
    }
    table.note =
        "1: all had the same rate; 1/members: one had all of it. Mean ± half width over runs.".into();
    if table.rows.is_empty() {
        return Vec::new();
    }
    by_treatment(&mut table, analysis);
    let clusters = clusters.into_iter().map(Block::Sentence);
    std::iter::once(Block::Table(table)).chain(clusters).collect()
}

/// What the numbers after ± are, and what has none.
fn interval_note(analysis: &Analysis) -> String {
    let level = format::percent(analysis.confidence);
    let estimates = || analysis.treatments.iter().filter_map(|t| t.responses.first()?.estimate.as_ref());
    let single = estimates().any(|e| e.half_width.is_none());
    let several = estimates().any(|e| e.half_width.is_some());
    let mut note = String::new();
    if several {
        note += &format!("±: half width of the {level} Student-t interval of the mean over n runs.");
    }
    if single {
        let space = if several { " " } else { "" };
        note += space;
        note += "n = 1: no interval, because one run does not show the spread between runs.";
    }
    if !several && !single {
        note += "No run counts, so there is no mean.";
    }
    note
}

/// The rate over time, averaged over the runs that count, from 0 to the row's largest.
fn over_time(
    results: &StudyResults,
    analysis: &Analysis,
    treatment: &TreatmentSummary,
    workload: &str,
) -> String {
    let in_bytes = overview::is_in_bytes(&results.study, analysis, workload);
    let series: Vec<_> = overview::counted_runs(results, treatment.index)
        .flat_map(|r| &r.recordings)
        .filter(|r| r.workload == workload)
        .map(|r| overview::interval_rates(r, in_bytes))
        .collect();
    let length = series.iter().map(Vec::len).min().unwrap_or(0);
    let means: Vec<f64> =
        (0..length).map(|i| series.iter().map(|s| s[i]).sum::<f64>() / series.len() as f64).collect();
    sparkline(&means, BARS)
}

/// A line of bars: each the mean of its part, the highest bar the largest part. Empty for fewer than four values.
fn sparkline(values: &[f64], cells: usize) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    if values.len() < 4 {
        return String::new();
    }
    let cells = cells.min(values.len());
    let parts: Vec<f64> = (0..cells)
        .map(|i| {
            let part = &values[i * values.len() / cells..(i + 1) * values.len() / cells];
            part.iter().sum::<f64>() / part.len() as f64
        })
        .collect();
    let highest = parts.iter().copied().fold(0.0, f64::max);
    if highest <= 0.0 {
        return String::new();
    }
    parts.iter().map(|v| HEIGHTS[((v / highest * 8.0).ceil() as usize).clamp(1, 8) - 1]).collect()
}

/// The operation's label, and what its latency counts from where that matters.
pub(crate) fn operation(latency: &LatencySummary) -> String {
    match latency.kind {
        LatencyKind::Latency => latency.series.label.clone(),
        LatencyKind::Response => format!("{} (response)", latency.series.label),
        LatencyKind::Service => format!("{} (service)", latency.series.label),
    }
}

/// Why there is no interval; outliers; runs left out.
pub(crate) fn remarks(response: &ResponseSummary) -> String {
    let mut remarks = Vec::new();
    match &response.estimate {
        Some(estimate) => {
            remarks.extend(estimate.no_interval.is_some().then(|| "one run: no interval".into()))
        }
        None => remarks.extend(response.no_estimate.clone()),
    }
    let outliers = response.values.iter().filter(|v| v.outlier).count();
    if outliers > 0 {
        remarks.push(format!("{} (kept)", format::plural(outliers, "outlier")));
    }
    let excluded = response.values.iter().filter(|v| v.excluded).count();
    if excluded > 0 {
        remarks.push(format!("{excluded} excluded"));
    }
    remarks.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparklines_start_at_zero_and_show_stalls() {
        assert_eq!(sparkline(&[1.0, 1.0, 0.0, 2.0], 8), "▄▄▁█");
        assert_eq!(sparkline(&[5.0; 24], 12), "█".repeat(12));
        assert_eq!(sparkline(&[1.0; 3], 12), "");
        assert_eq!(sparkline(&[0.0; 9], 12), "");
    }
}
