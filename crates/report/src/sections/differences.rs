//! The same quantities of two results beside each other.

use benchmaster_analysis::{
    Analysis, LatencyKind, LatencySummary, RpcRowSummary, RpcSummary, TreatmentSummary,
};
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::finding::Finding;
use benchmaster_record::phase::Phase;
use benchmaster_record::results::{Severity, StudyResults, Unit};

use super::results::operation;
use crate::document::{Block, Cell, Table};
use crate::format::{self, rounded};
use crate::overview;

/// One of two results that are compared, with what it says.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    pub name: &'a str,
    pub results: &'a StudyResults,
    pub analysis: &'a Analysis,
    pub diagnosis: &'a Diagnosis,
}
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
                row.extend([Cell::time(a), Cell::time(b), quotient(a, b)]);
            }
            table.row(row);
        }
    }
    table.note = "Of all operations of the runs that count, merged. These ratios have no interval; to judge \
     whether a \
                  latency changed, compare its response with `--response all`."
        .into();
    table.cap(ROWS);
    table.filled()
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
    let mut table = Table::new("RPCs of the measured phase", &head);
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
                    Cell::time(rtt_a),
                    Cell::time(rtt_b),
                    quotient(rtt_a, rtt_b),
                ]);
            }
        }
    }
    table.note = "Means over the runs that count.".into();
    table.cap(ROWS);
    table.filled()
}

fn count(n: Option<f64>) -> Cell {
    let n = n.unwrap_or(0.0);
    let whole = n.fract() == 0.0;
    Cell::number(
        if whole { format::count(n as u64) } else { rounded(n, None, Unit::Count, None).text(true) },
        n,
    )
}

/// B over A.
fn quotient(a: Option<f64>, b: Option<f64>) -> Cell {
    Cell::fixed(a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a), 2)
}

/// Findings that appeared, that went, and that stayed.
pub(super) fn findings(a: &Diagnosis, b: &Diagnosis) -> Vec<Block> {
    let same = |a: &Finding, b: &Finding| {
        let of_none = a.workloads().next().is_none() && b.workloads().next().is_none();
        a.id == b.id && (of_none || a.workloads().any(|one| b.workloads().any(|other| one == other)))
    };
    let in_other =
        |finding: &Finding, other: &Diagnosis| other.findings.iter().find(|one| same(one, finding)).cloned();
    let head = ["finding", "what", "where", "#cost in A", "#cost in B", "remedy"];
    let mut appeared = Table::new("New: only in B", &head);
    let mut went = Table::new("Gone: only in A", &head);
    let mut stayed = Table::new("In both, as described in B", &head);
    let cost = |finding: Option<&Finding>| {
        Cell::percent(finding.and_then(|finding| finding.cost.as_ref()).map(|cost| cost.share))
    };
    let row = |finding: &Finding, of_a: Option<&Finding>, of_b: Option<&Finding>, severity| {
        let command =
            finding.remedy.command.as_ref().map_or(String::new(), |command| format!(" ({command})"));
        vec![
            Cell::text(finding.id).marked(severity),
            Cell::sentence(&finding.what),
            Cell::text(&finding.place),
            cost(of_a),
            cost(of_b),
            Cell::sentence(format!("{}{command}", finding.remedy.text)),
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
    let mut tables: Vec<Table> = [appeared, went, stayed].into_iter().filter_map(Table::filled).collect();
    if let Some(last) = tables.last_mut() {
        last.note =
            "Costs are estimated shares of time, calls or throughput; `benchmaster diagnose` names which."
                .into();
    }
    let none = tables.is_empty().then(|| Block::from("No findings in either result."));
    none.into_iter().chain(tables.into_iter().map(Block::from)).collect()
}
