//! What two results say of the same thing, side by side.

use benchmaster_analysis::compare::Difference;
use benchmaster_analysis::{
    Analysis, LatencyKind, LatencySummary, RpcRowSummary, RpcSummary, TreatmentSummary,
};
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::finding::Finding;
use benchmaster_record::phase::Phase;
use benchmaster_record::results::{Severity, Unit};

use super::Compared;
use crate::document::{Cell, Table};
use crate::format::{self, rounded};
use crate::overview;
use crate::sections::results::operation;

/// Rows of a table.
const ROWS: usize = 400;

/// Treatments with the same label.
fn pairs<'a>(
    a: &'a Analysis,
    b: &'a Analysis,
) -> impl Iterator<Item = (&'a TreatmentSummary, &'a TreatmentSummary)> {
    let of_b = |label: &str| b.treatments.iter().find(|treatment| treatment.label == label);
    let alone = a.treatments.len() == 1 && b.treatments.len() == 1;
    a.treatments.iter().filter_map(move |treatment| {
        // A study's only treatment is called like the study.
        let other = if alone { b.treatments.first() } else { of_b(&treatment.label) };
        Some((treatment, other?))
    })
}

/// Percentiles of every operation.
pub(super) fn latencies(a: Compared<'_>, b: Compared<'_>) -> Option<Table> {
    let head = [
        "treatment",
        "workload",
        "operation",
        "#p50 A",
        "#p50 B",
        "#B/A",
        "#p99 A",
        "#p99 B",
        "#B/A",
        "#p99.9 A",
        "#p99.9 B",
        "#B/A",
    ];
    let mut table = Table::new("Latency of every operation", &head);
    for (of_a, of_b) in pairs(a.analysis, b.analysis) {
        for latency in of_a.latencies.iter().filter(|latency| latency.kind != LatencyKind::Service) {
            let same = |other: &&LatencySummary| {
                (&other.workload, &other.series, other.kind)
                    == (&latency.workload, &latency.series, latency.kind)
            };
            let Some(other) = of_b.latencies.iter().find(same) else { continue };
            let mut row =
                vec![Cell::text(&of_a.label), Cell::text(&latency.workload), Cell::text(operation(latency))];
            for percentile in ["p50", "p99", "p99.9"] {
                let [a, b] = [latency, other].map(|one| one.percentile(percentile).map(|ns| ns as f64));
                row.extend([time(a), time(b), quotient(a, b)]);
            }
            table.row(row);
        }
    }
    table.note = "Of all operations of the runs that count, merged. A ratio of percentiles has no interval here: whether a latency \
                  changed is told by comparing its response, with `--response all`."
        .into();
    table.cap(ROWS);
    (!table.rows.is_empty()).then_some(table)
}

/// Calls of the measured phase per client, and their round trips.
pub(super) fn calls(a: Compared<'_>, b: Compared<'_>) -> Option<Table> {
    let head = [
        "treatment",
        "workload",
        "call",
        "#per client A",
        "#per client B",
        "#B/A",
        "#RTT A",
        "#RTT B",
        "#B/A",
    ];
    let mut table = Table::new("Calls while it was measured", &head);
    let measured = |treatment: &'_ TreatmentSummary, workload: &str| -> Option<RpcSummary> {
        treatment.rpcs.iter().find(|s| s.phase == Phase::Measure && s.workload == workload).cloned()
    };
    for (of_a, of_b) in pairs(a.analysis, b.analysis) {
        for summary in of_a.rpcs.iter().filter(|summary| summary.phase == Phase::Measure) {
            let Some(other) = measured(of_b, &summary.workload) else { continue };
            for kind in overview::kinds([summary, &other].into_iter()) {
                let of = |summary: &RpcSummary| -> Option<RpcRowSummary> {
                    let same = |row: &&RpcRowSummary| (&row.program, &row.operation) == (&kind.0, &kind.1);
                    summary.rows.iter().find(same).cloned()
                };
                let rows = [(summary, of(summary)), (&other, of(&other))];
                let [of_a_calls, of_b_calls] = rows.each_ref().map(|(summary, row)| {
                    row.as_ref().map(|row| row.ops.mean / f64::from(summary.clients.max(1)))
                });
                let [rtt_a, rtt_b] =
                    rows.each_ref().map(|(_, row)| Some(row.as_ref()?.rtt_ns.as_ref()?.mean));
                table.row([
                    Cell::text(&of_a.label),
                    Cell::text(&summary.workload),
                    Cell::text(overview::kind_text(&kind)),
                    count(of_a_calls),
                    count(of_b_calls),
                    quotient(of_a_calls, of_b_calls),
                    time(rtt_a),
                    time(rtt_b),
                    quotient(rtt_a, rtt_b),
                ]);
            }
        }
    }
    table.note = "Means over the runs that count.".into();
    table.cap(ROWS);
    (!table.rows.is_empty()).then_some(table)
}

fn time(ns: Option<f64>) -> Cell {
    ns.map_or_else(Cell::none, |ns| Cell::number(format::time(ns), ns))
}

fn count(n: Option<f64>) -> Cell {
    let show = |n: f64| match n.fract() == 0.0 {
        true => format::count(n as u64),
        false => rounded(n, None, Unit::Count, None).text(true),
    };
    n.map_or_else(|| Cell::number("0", 0.0), |n| Cell::number(show(n), n))
}

/// B over A.
fn quotient(a: Option<f64>, b: Option<f64>) -> Cell {
    match a.zip(b).filter(|(a, _)| *a > 0.0) {
        Some((a, b)) => Cell::number(format!("{:.2}", b / a), b / a),
        None => Cell::none(),
    }
}

/// Findings that appeared, that went, and that stayed.
pub(super) fn findings(a: &Diagnosis, b: &Diagnosis) -> Vec<Table> {
    let key = |finding: &Finding| (finding.id, finding.at.as_ref().and_then(|at| at.workload.clone()));
    let in_other = |finding: &Finding, other: &Diagnosis| {
        other.findings.iter().find(|one| key(one) == key(finding)).cloned()
    };
    let head = ["finding", "what", "where", "#costs A", "#costs B", "what to do"];
    let mut appeared = Table::new("Appeared: only in B", &head);
    let mut went = Table::new("Went: only in A", &head);
    let mut stayed = Table::new("Stayed: in both, told of B", &head);
    let cost = |finding: Option<&Finding>| {
        let cost = finding.and_then(|finding| finding.cost.as_ref());
        cost.map_or_else(Cell::none, |cost| Cell::number(format::percent(cost.share), cost.share))
    };
    let row = |finding: &Finding, of_a: Option<&Finding>, of_b: Option<&Finding>, severity| {
        let command =
            finding.remedy.command.as_ref().map_or(String::new(), |command| format!(" ({command})"));
        vec![
            Cell::text(finding.id).marked(severity),
            super::told(&finding.what),
            Cell::text(&finding.place),
            cost(of_a),
            cost(of_b),
            super::told(&format!("{}{command}", finding.remedy.text)),
        ]
    };
    for finding in &b.findings {
        match in_other(finding, a) {
            Some(before) => stayed.row(row(finding, Some(&before), Some(finding), None)),
            None => appeared.row(row(finding, None, Some(finding), Some(Severity::Warning))),
        }
    }
    for finding in a.findings.iter().filter(|finding| in_other(finding, b).is_none()) {
        went.row(row(finding, Some(finding), None, Some(Severity::Note)));
    }
    let mut tables: Vec<Table> =
        [appeared, went, stayed].into_iter().filter(|table| !table.rows.is_empty()).collect();
    if let Some(last) = tables.last_mut() {
        last.note = "Costs are estimates, as shares of time, calls or throughput; `benchmaster diagnose` tells of what.".into();
    }
    tables
}

/// What is not the same.
pub(super) fn conditions(title: &str, differences: &[Difference]) -> Option<Table> {
    let mut table = Table::new(title, &["what", "A", "B"]);
    for difference in differences {
        table.row([Cell::text(&difference.key), Cell::text(&difference.a), Cell::text(&difference.b)]);
    }
    (!differences.is_empty()).then_some(table)
}
