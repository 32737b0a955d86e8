//! The table of results in the summary, which fits a screen.

use benchmaster_analysis::{Analysis, LatencySummary, ResponseSummary, TreatmentSummary};
use benchmaster_record::results::{StudyResults, Unit};

use super::grid::{Column, Text};
use crate::format::{self, Scale, rounded};
use crate::overview;

/// A row of the table of results: a workload under a treatment.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) treatment: &'a TreatmentSummary,
    pub(super) workload: &'a str,
}

/// Adds the rate, its runs, latencies, errors and validity of each row to its first columns.
pub(super) fn brief(
    text: &mut Text,
    results: &StudyResults,
    analysis: &Analysis,
    rows: &[Row<'_>],
    mut columns: Vec<Column>,
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
    let errors: Vec<u64> = rows
        .iter()
        .map(|row| row.treatment.errors_by_workload.get(row.workload).copied().unwrap_or(0))
        .collect();
    let validity: Vec<_> =
        rows.iter().map(|row| overview::validity(results, row.treatment, row.workload)).collect();
    columns.push(rate_column(&responses, rows));
    columns.push(Column::number("n", rows.iter().zip(&responses).map(|(r, s)| n(r, *s)).collect(), 0));
    for (percentile, rank) in [("p50", 2), ("p99", 1)] {
        let cell = |latency: &Option<&LatencySummary>| {
            let ns = latency.and_then(|latency| latency.percentile(percentile));
            ns.map_or("-".into(), |ns| format::time(ns as f64).replace(' ', ""))
        };
        columns.push(Column::number(percentile, latencies.iter().map(cell).collect(), rank));
    }
    if errors.iter().any(|errors| *errors > 0) {
        columns.push(Column::number("errors", errors.iter().map(|e| format::count(*e)).collect(), 0));
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
        Some(scale) if !scale.unit.is_empty() => Column::number(format!("{name} {}", scale.unit), cells, 0),
        _ => Column::number(name, cells, 0),
    }
}

fn short_kind(unit: Unit) -> &'static str {
    if unit == Unit::BytesPerSecond { "throughput" } else { "rate" }
}
