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

/// What is printed of a table that is not empty.
fn capped(mut table: Table) -> Option<Table> {
    table.cap(ROWS);
    (!table.rows.is_empty()).then_some(table)
}

pub(super) fn latencies(a: Compared<'_>, b: Compared<'_>) -> Option<Table> {
    let rows = pairs(a.analysis, b.analysis).flat_map(|(of_a, of_b)| {
        let shown = of_a.latencies.iter().filter(|latency| latency.kind != LatencyKind::Service);
        shown.filter_map(move |latency| {
            let same = |other: &&LatencySummary| {
                (&other.workload, &other.series, other.kind)
                    == (&latency.workload, &latency.series, latency.kind)
            };
            Some((of_a, latency, of_b.latencies.iter().find(same)?))
        })
    });
    let mut table = Table::of("Latency of every operation", rows)
        .column("treatment", |(treatment, ..)| Cell::text(&treatment.label))
        .column("workload", |(_, latency, _)| Cell::text(&latency.workload))
        .column("operation", |(_, latency, _)| Cell::text(operation(latency)));
    for percentile in ["p50", "p99", "p99.9"] {
        let at = |latency: &LatencySummary| latency.percentile(percentile).map(|ns| ns as f64);
        table = table
            .column(&format!("#{percentile} A"), |(_, a, _)| Cell::time(at(a)))
            .column(&format!("#{percentile} B"), |(.., b)| Cell::time(at(b)))
            .column("#B/A", |(_, a, b)| quotient([at(a), at(b)]));
    }
    let table = table.note(
        "Of all operations of the runs that count, merged. These ratios have no interval; to judge whether a \
         latency changed, compare its response with `--response all`.",
    );
    capped(table.table())
}

/// A kind of call of the measured phase of a workload, in both results.
struct Calls<'a> {
    treatment: &'a TreatmentSummary,
    summaries: [&'a RpcSummary; 2],
    kind: (String, String),
}

impl Calls<'_> {
    fn rows(&self) -> [Option<&RpcRowSummary>; 2] {
        let same = |row: &&RpcRowSummary| (&row.program, &row.operation) == (&self.kind.0, &self.kind.1);
        self.summaries.map(|summary| summary.rows.iter().find(same))
    }

    fn per_client(&self) -> [Option<f64>; 2] {
        let [a, b] = self.rows();
        let each = |row: Option<&RpcRowSummary>, summary: &RpcSummary| {
            Some(row?.ops.mean / f64::from(summary.clients.max(1)))
        };
        [each(a, self.summaries[0]), each(b, self.summaries[1])]
    }

    fn round_trips(&self) -> [Option<f64>; 2] {
        self.rows().map(|row| Some(row?.rtt_ns.as_ref()?.mean))
    }
}

/// Calls of the measured phase per client, and their round trips.
pub(super) fn calls(a: Compared<'_>, b: Compared<'_>) -> Option<Table> {
    fn measured(treatment: &TreatmentSummary) -> impl Iterator<Item = &RpcSummary> {
        treatment.rpcs.iter().filter(|summary| summary.phase == Phase::Measure)
    }
    let rows = pairs(a.analysis, b.analysis).flat_map(|(treatment, of_b)| {
        let both = measured(treatment).filter_map(|summary| {
            Some([summary, measured(of_b).find(|other| other.workload == summary.workload)?])
        });
        both.flat_map(move |summaries| {
            let kinds = overview::kinds(summaries.into_iter()).into_iter();
            kinds.map(move |kind| Calls { treatment, summaries, kind })
        })
    });
    let table = Table::of("RPCs of the measured phase", rows)
        .column("treatment", |row| Cell::text(&row.treatment.label))
        .column("workload", |row| Cell::text(&row.summaries[0].workload))
        .column("call", |row| Cell::text(overview::kind_text(&row.kind)))
        .column("#per client A", |row| count(row.per_client()[0]))
        .column("#per client B", |row| count(row.per_client()[1]))
        .column("#B/A", |row| quotient(row.per_client()))
        .column("#RTT A", |row| Cell::time(row.round_trips()[0]))
        .column("#RTT B", |row| Cell::time(row.round_trips()[1]))
        .column("#B/A", |row| quotient(row.round_trips()))
        .note("Means over the runs that count.");
    capped(table.table())
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
fn quotient([a, b]: [Option<f64>; 2]) -> Cell {
    Cell::fixed(a.zip(b).filter(|(a, _)| *a > 0.0).map(|(a, b)| b / a), 2)
}

/// Findings that appeared, that went, and that stayed.
pub(super) fn findings(a: &Diagnosis, b: &Diagnosis) -> Vec<Block> {
    fn is_same(a: &Finding, b: &Finding) -> bool {
        let of_none = a.workloads().next().is_none() && b.workloads().next().is_none();
        a.id == b.id && (of_none || a.workloads().any(|one| b.workloads().any(|other| one == other)))
    }
    fn in_other<'d>(finding: &Finding, other: &'d Diagnosis) -> Option<&'d Finding> {
        other.findings.iter().find(|one| is_same(one, finding))
    }
    let cost = |finding: Option<&Finding>| {
        Cell::percent(finding.and_then(|finding| finding.cost.as_ref()).map(|cost| cost.share))
    };
    // A finding of A, and one of B.
    type Row<'a> = (Option<&'a Finding>, Option<&'a Finding>);
    let table = |caption: &str, rows: Vec<Row<'_>>, severity| {
        Table::of(caption, rows.iter().filter_map(|row| Some((row.1.or(row.0)?, row))))
            .column("finding", |(finding, _)| Cell::text(finding.id).marked(severity))
            .column("what", |(finding, _)| Cell::sentence(&finding.what))
            .column("where", |(finding, _)| Cell::text(&finding.place))
            .column("#cost in A", |(_, row)| cost(row.0))
            .column("#cost in B", |(_, row)| cost(row.1))
            .column("remedy", |(finding, _)| {
                let remedy = &finding.remedy;
                let command =
                    remedy.command.as_ref().map_or(String::new(), |command| format!(" ({command})"));
                Cell::sentence(format!("{}{command}", remedy.text))
            })
            .filled()
    };
    let of_b = b.findings.iter().map(|finding| (in_other(finding, a), Some(finding)));
    let (stayed, appeared): (Vec<_>, Vec<_>) = of_b.partition(|(before, _)| before.is_some());
    let gone = a.findings.iter().filter(|finding| in_other(finding, b).is_none());
    let tables = [
        table("New: only in B", appeared, Some(Severity::Warning)),
        table("Gone: only in A", gone.map(|finding| (Some(finding), None)).collect(), Some(Severity::Note)),
        table("In both, as described in B", stayed, None),
    ];
    let mut tables: Vec<Table> = tables.into_iter().flatten().collect();
    if let Some(last) = tables.last_mut() {
        last.note =
            "Costs are estimated shares of time, calls or throughput; `benchmaster diagnose` names which."
                .into();
    }
    let none = tables.is_empty().then(|| Block::from("No findings in either result."));
    none.into_iter().chain(tables.into_iter().map(Block::from)).collect()
}
