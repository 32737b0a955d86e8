//! The tables of results.

use benchmaster_analysis::{Analysis, LatencyKind, LatencySummary, ResponseSummary, TreatmentSummary};
use benchmaster_record::results::{StudyResults, Unit};

use super::grid::{Column, Text};
use crate::format::{self, Scale, rounded};
use crate::overview;

/// Cells of a sparkline.
const SPARKLINE: usize = 12;

/// A row of the table of results: a workload under a treatment.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) treatment: &'a TreatmentSummary,
    pub(super) workload: &'a str,
}

/// The main table: one per workload, or one over all workloads when there is one treatment.
pub(super) fn results(text: &mut Text, results: &StudyResults, analysis: &Analysis) {
    let workloads = &results.study.workloads;
    match analysis.treatments.as_slice() {
        [treatment] => {
            let rows: Vec<_> = workloads.iter().map(|w| Row { treatment, workload: &w.name }).collect();
            text.section("results by workload");
            table(text, results, analysis, &rows, "workload");
        }
        treatments => {
            for workload in workloads {
                let rows: Vec<_> =
                    treatments.iter().map(|treatment| Row { treatment, workload: &workload.name }).collect();
                text.section(&format!("{} ({})", workload.name, workload.use_name));
                table(text, results, analysis, &rows, "treatment");
            }
        }
    }
    text.raw_line("");
    text.wrapped("", &interval_note(analysis));
    if analysis.treatments.iter().any(|t| !t.latencies.is_empty()) {
        text.wrapped(
            "",
            "Percentiles: all operations of the runs that count, merged (no interval); - = too few operations to tell.",
        );
    }
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
        note += &format!(
            "{space}n = 1: no interval, because one run tells nothing about the spread between runs."
        );
    }
    if !several && !single {
        note += "No run counts, so there is no mean.";
    }
    note
}

fn table(text: &mut Text, results: &StudyResults, analysis: &Analysis, rows: &[Row<'_>], first: &str) {
    let label = |row: &Row<'_>| match first {
        "workload" => row.workload.to_owned(),
        _ => row.treatment.label.clone(),
    };
    let columns = vec![Column::text(first, rows.iter().map(label).collect())];
    of_rows(text, results, analysis, rows, columns, true);
}

/// The same after other first columns, with less: no line over time, no rare percentiles.
pub(super) fn brief(
    text: &mut Text,
    results: &StudyResults,
    analysis: &Analysis,
    rows: &[Row<'_>],
    first: Vec<Column>,
) {
    of_rows(text, results, analysis, rows, first, false);
}

fn of_rows(
    text: &mut Text,
    results: &StudyResults,
    analysis: &Analysis,
    rows: &[Row<'_>],
    mut columns: Vec<Column>,
    whole: bool,
) {
    let responses: Vec<_> = rows
        .iter()
        .map(|row| {
            let (name, _) = overview::rates(&results.study, analysis, row.workload).into_iter().next()?;
            row.treatment.response(&name)
        })
        .collect();
    let latencies: Vec<_> =
        rows.iter().map(|row| overview::main_latency(results, row.treatment, row.workload)).collect();
    let of = series_of(&latencies);
    let errors: Vec<u64> = rows
        .iter()
        .map(|row| row.treatment.errors_by_workload.get(row.workload).copied().unwrap_or(0))
        .collect();
    let validity: Vec<_> =
        rows.iter().map(|row| overview::validity(results, row.treatment, row.workload)).collect();

    let of = of.filter(|_| whole);
    let mut rate = rate_column(&responses, rows);
    if !whole {
        rate.header = rate.header.replace('\n', " ");
    }
    columns.push(rate);
    columns.push(Column::number("n", rows.iter().zip(&responses).map(|(r, s)| n(r, *s)).collect(), 0));
    let percentiles = [("p50", 2), ("p99", 1), ("p99.9", 4), ("max", 3)];
    for (percentile, rank) in &percentiles[..if whole { percentiles.len() } else { 2 }] {
        columns.push(latency_column(&latencies, percentile, &of, *rank));
    }
    let no_errors = errors.iter().all(|e| *e == 0);
    if whole || !no_errors {
        let rank = if no_errors { 5 } else { 0 };
        columns.push(Column::number("errors", errors.iter().map(|e| format::count(*e)).collect(), rank));
    }
    if whole && text.options.unicode {
        let lines: Vec<_> = rows.iter().map(|row| over_time(results, analysis, row)).collect();
        if lines.iter().any(|l| !l.is_empty()) {
            columns.push(Column { rank: 6, ..Column::text("over time", lines) });
        }
    }
    columns.push(Column::text("validity", validity.iter().map(|(word, _)| word.clone()).collect()));
    let severities: Vec<_> = validity.iter().map(|(_, severity)| *severity).collect();
    text.table(columns, &severities);
}

/// Runs that count, of those finished: `5`, `4/5`.
fn n(row: &Row<'_>, response: Option<&ResponseSummary>) -> String {
    let counted = response.and_then(|r| r.estimate.as_ref()).map_or(0, |e| e.n);
    if counted == row.treatment.runs {
        counted.to_string()
    } else {
        format!("{counted}/{}", row.treatment.runs)
    }
}

fn rate_column(responses: &[Option<&ResponseSummary>], rows: &[Row<'_>]) -> Column {
    let found = || responses.iter().flatten();
    let mut units: Vec<Unit> = found().map(|r| r.unit).collect();
    units.dedup();
    let scale = match units.as_slice() {
        [unit] => Scale::common(*unit, found().filter_map(|r| r.estimate.as_ref()).map(|e| e.mean)),
        _ => None,
    };
    let cells =
        responses.iter().map(|response| match response.and_then(|r| Some((r, r.estimate.as_ref()?))) {
            Some((response, estimate)) => {
                let mut value = rounded(estimate.mean, estimate.half_width, response.unit, scale);
                if scale.is_some() {
                    value.unit = "";
                }
                value.text(true)
            }
            None => "-".into(),
        });
    let cells = cells.collect();
    let name = match (found().next(), units.len()) {
        (Some(response), 1) => {
            let workload = rows.first().map_or("", |r| r.workload);
            let short = overview::short_name(&response.name, workload);
            let same = rows.iter().all(|r| r.workload == workload);
            (if same { short } else { short_kind(response.unit) }).to_owned()
        }
        _ => "rate".into(),
    };
    match scale {
        Some(scale) if !scale.unit.is_empty() => Column::number(format!("{name}\n{}", scale.unit), cells, 0),
        _ => Column::number(name, cells, 0),
    }
}

fn short_kind(unit: Unit) -> &'static str {
    if unit == Unit::BytesPerSecond { "throughput" } else { "rate" }
}

/// The operation whose latencies a table shows, if it is the same in all rows.
fn series_of(latencies: &[Option<&LatencySummary>]) -> Option<String> {
    let mut labels = latencies.iter().flatten().map(|l| l.series.label.as_str());
    let first = labels.next()?;
    labels.all(|l| l == first).then(|| first.to_owned())
}

fn latency_column(
    latencies: &[Option<&LatencySummary>],
    percentile: &str,
    of: &Option<String>,
    rank: u8,
) -> Column {
    let cell = |latency: &Option<&LatencySummary>| {
        latency.and_then(|l| l.percentile(percentile)).map_or("-".into(), |ns| compact(ns as f64))
    };
    let header = match of {
        Some(series) => format!("{percentile}\n{series}"),
        None => percentile.to_owned(),
    };
    Column::number(header, latencies.iter().map(cell).collect(), rank)
}

/// A latency without a blank, to save room.
fn compact(ns: f64) -> String {
    format::time(ns).replace(' ', "")
}

/// The rate over time, averaged over the runs that count, from 0 to the row's largest.
fn over_time(results: &StudyResults, analysis: &Analysis, row: &Row<'_>) -> String {
    let in_bytes = overview::told_in_bytes(&results.study, analysis, row.workload);
    let series: Vec<_> = overview::counted_runs(results, row.treatment.index)
        .flat_map(|r| &r.recordings)
        .filter(|r| r.workload == row.workload)
        .map(|r| overview::interval_rates(r, in_bytes))
        .collect();
    let length = series.iter().map(Vec::len).min().unwrap_or(0);
    let means: Vec<f64> =
        (0..length).map(|i| series.iter().map(|s| s[i]).sum::<f64>() / series.len() as f64).collect();
    sparkline(&means, SPARKLINE)
}

/// A line of bars: each the mean of its part, the highest bar the largest part. Empty for fewer than four values.
pub(super) fn sparkline(values: &[f64], cells: usize) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
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
    parts.iter().map(|v| BARS[((v / highest * 8.0).ceil() as usize).clamp(1, 8) - 1]).collect()
}

/// Every operation of every workload: rate with its interval, latencies.
pub(super) fn operations(text: &mut Text, results: &StudyResults, analysis: &Analysis) {
    for workload in &results.study.workloads {
        let rows: Vec<_> = analysis
            .treatments
            .iter()
            .flat_map(|t| t.latencies.iter().filter(|l| l.workload == workload.name).map(move |l| (t, l)))
            .collect();
        if rows.is_empty() {
            continue;
        }
        text.section(&format!("{}: every operation", workload.name));
        let mut columns = Vec::new();
        if analysis.treatments.len() > 1 {
            columns.push(Column::text("treatment", rows.iter().map(|(t, _)| t.label.clone()).collect()));
        }
        columns.push(Column::text("operation", rows.iter().map(|(_, l)| operation(l)).collect()));
        columns.push(Column::number("count", rows.iter().map(|(_, l)| format::count(l.count)).collect(), 3));
        let mean = |l: &LatencySummary| l.mean_ns.map_or("-".into(), compact);
        columns.push(Column::number("mean", rows.iter().map(|(_, l)| mean(l)).collect(), 4));
        let latencies: Vec<_> = rows.iter().map(|(_, l)| Some(*l)).collect();
        for (percentile, rank) in [("p50", 1), ("p99", 1), ("p99.9", 5), ("max", 2)] {
            columns.push(latency_column(&latencies, percentile, &None, rank));
        }
        let first = |l: &LatencySummary| l.first_ns.map_or("-".into(), compact);
        columns.push(Column::number("first", rows.iter().map(|(_, l)| first(l)).collect(), 6));
        let errors = |l: &LatencySummary| match l.kind {
            LatencyKind::Service => "-".into(),
            _ => format::count(l.errors),
        };
        columns.push(Column::number("errors", rows.iter().map(|(_, l)| errors(l)).collect(), 0));
        text.table(columns, &[]);
    }
}

/// The operation's label, and what its latency counts from where that matters.
pub(crate) fn operation(latency: &LatencySummary) -> String {
    match latency.kind {
        LatencyKind::Latency => latency.series.label.clone(),
        LatencyKind::Response => format!("{} (response)", latency.series.label),
        LatencyKind::Service => format!("{} (service)", latency.series.label),
    }
}

/// Every response with its interval, or why it has none.
pub(super) fn responses(text: &mut Text, results: &StudyResults, analysis: &Analysis) {
    let several = analysis.treatments.len() > 1;
    for workload in &results.study.workloads {
        let prefix = format!("{}.", workload.name);
        let rows: Vec<_> = analysis
            .treatments
            .iter()
            .flat_map(|t| t.responses.iter().filter(|r| r.name.starts_with(&prefix)).map(move |r| (t, r)))
            .collect();
        if rows.is_empty() {
            continue;
        }
        text.section(&format!("{}: every response, mean over runs", workload.name));
        let mut columns = Vec::new();
        if several {
            columns.push(Column::text("treatment", rows.iter().map(|(t, _)| t.label.clone()).collect()));
        }
        let name = |r: &ResponseSummary| overview::short_name(&r.name, &workload.name).to_owned();
        columns.push(Column::text("response", rows.iter().map(|(_, r)| name(r)).collect()));
        let mean = |r: &ResponseSummary| match &r.estimate {
            Some(e) => rounded(e.mean, e.half_width, r.unit, None).text(true),
            None => "-".into(),
        };
        columns.push(Column::number("mean ± half width", rows.iter().map(|(_, r)| mean(r)).collect(), 0));
        let runs = |r: &ResponseSummary| r.estimate.as_ref().map_or(0, |e| e.n).to_string();
        columns.push(Column::number("n", rows.iter().map(|(_, r)| runs(r)).collect(), 0));
        columns.push(Column {
            rank: 1,
            ..Column::text("notes", rows.iter().map(|(_, r)| remarks(r)).collect())
        });
        text.table(columns, &[]);
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
        remarks.push(format!("{excluded} left out"));
    }
    remarks.join(", ")
}

/// Jain's index over workers and clients.
pub(super) fn fairness(text: &mut Text, analysis: &Analysis) {
    let rows: Vec<_> =
        analysis.treatments.iter().flat_map(|t| t.fairness.iter().map(move |f| (t, f))).collect();
    if rows.is_empty() {
        return;
    }
    text.section("fairness (Jain's index: 1 = all alike)");
    let mut columns = Vec::new();
    if analysis.treatments.len() > 1 {
        columns.push(Column::text("treatment", rows.iter().map(|(t, _)| t.label.clone()).collect()));
    }
    let over = rows.iter().map(|(_, f)| match &f.group {
        Some(group) => format!("{}: {} workers of {group}", f.workload, f.members),
        None => format!("{}: {} clients", f.workload, f.members),
    });
    columns.push(Column::text("over", over.collect()));
    let jain =
        |e: &benchmaster_analysis::Estimate| rounded(e.mean, e.half_width, Unit::Ratio, None).text(true);
    columns.push(Column::number("Jain", rows.iter().map(|(_, f)| jain(&f.jain)).collect(), 0));
    columns.push(Column::number("n", rows.iter().map(|(_, f)| f.jain.n.to_string()).collect(), 1));
    let ratio = |r: Option<f64>| r.map_or("-".into(), |r| format!("{r:.2}"));
    columns.push(Column::number("max/min", rows.iter().map(|(_, f)| ratio(f.max_over_min)).collect(), 0));
    text.table(columns, &[]);
    for (treatment, fairness) in &rows {
        if let Some(clusters) = &fairness.clusters {
            text.wrapped(
                "  ",
                &format!("{}, {}: {}.", treatment.label, fairness.workload, clusters.sentence),
            );
        }
    }
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
