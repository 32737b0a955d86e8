//! What went over the wire.

use benchmaster_record::results::Unit;
use benchmaster_study::analysis::{Analysis, Estimate, RpcSummary, TreatmentSummary};

use super::grid::{Column, Text};
use crate::format::{self, rounded};
use crate::overview;

/// Calls of the measured phase per client: a row per treatment, a column per kind of call.
pub(super) fn calls(text: &mut Text, analysis: &Analysis) {
    for (workload, rows) in overview::measured_rpcs(analysis) {
        let kinds = overview::kinds(rows.iter().map(|(_, summary)| *summary));
        if kinds.is_empty() {
            continue;
        }
        text.section(&format!("{workload}: RPCs per client while it was measured, mean over runs"));
        let labels = rows.iter().map(|(treatment, _)| treatment.label.clone()).collect();
        let mut columns = vec![Column::text("treatment", labels)];
        for kind in &kinds {
            let cells = rows.iter().map(|(_, summary)| calls_cell(summary, kind)).collect();
            columns.push(Column::number(overview::kind_text(kind), cells, 2));
        }
        let total = rows.iter().map(|(_, summary)| {
            let calls: f64 = summary.rows.iter().map(|row| row.ops.mean).sum();
            number(calls / f64::from(summary.clients))
        });
        columns.push(Column::number("total", total.collect(), 0));
        let rtt = rows.iter().map(|(treatment, _)| mean_of(treatment, workload, "rpc_rtt"));
        columns.push(Column::number("mean RTT", rtt.collect(), 1));
        text.table(columns, &[]);
    }
}

fn calls_cell(summary: &RpcSummary, kind: &(String, String)) -> String {
    let row = summary.rows.iter().find(|row| (&row.program, &row.operation) == (&kind.0, &kind.1));
    row.map_or("0".into(), |row| {
        let clients = f64::from(summary.clients);
        with_interval(row.ops.mean / clients, row.ops.half_width.map(|width| width / clients))
    })
}

/// A count without decimals where it is whole, with its interval unless all runs agree.
fn with_interval(mean: f64, half_width: Option<f64>) -> String {
    match half_width.filter(|width| *width > 0.0) {
        None => number(mean),
        half_width => rounded(mean, half_width, Unit::Count, None).text(true),
    }
}

fn number(n: f64) -> String {
    if n.fract() == 0.0 { format::count(n as u64) } else { rounded(n, None, Unit::Count, None).text(true) }
}

fn mean_of(treatment: &TreatmentSummary, workload: &str, what: &str) -> String {
    let response = treatment.response(&format!("{workload}.{what}"));
    match response.and_then(|response| Some((response, response.estimate.as_ref()?))) {
        Some((response, e)) => rounded(e.mean, e.half_width, response.unit, None).text(true),
        None => "-".into(),
    }
}

/// Every kind of call of every phase with the columns of `mountstats`.
pub(super) fn phases(text: &mut Text, analysis: &Analysis) {
    let several = analysis.treatments.len() > 1;
    for treatment in &analysis.treatments {
        for summary in treatment.rpcs.iter().filter(|summary| !summary.rows.is_empty()) {
            let whose = if several { format!(" ({})", treatment.label) } else { String::new() };
            text.section(&format!(
                "{}: RPCs, {}{whose}",
                summary.workload,
                overview::phase_text(summary.phase)
            ));
            let runs = format::plural(summary.runs, "run");
            let clients = format::plural(summary.clients as usize, "client");
            text.wrapped(
                "",
                &format!("{}; of {clients} together, mean over {runs}; times per call", summary.connection),
            );
            let rows = &summary.rows;
            let names =
                rows.iter().map(|row| overview::kind_text(&(row.program.clone(), row.operation.clone())));
            let time = |estimate: &Option<Estimate>| match estimate {
                Some(e) => rounded(e.mean, e.half_width, Unit::Nanoseconds, None).text(true),
                None => "-".into(),
            };
            let columns = vec![
                Column::text("operation", names.collect()),
                Column::number(
                    "ops",
                    rows.iter().map(|r| with_interval(r.ops.mean, r.ops.half_width)).collect(),
                    0,
                ),
                Column::number("trans", rows.iter().map(|r| number(r.transmissions)).collect(), 4),
                Column::number("timeouts", rows.iter().map(|r| number(r.timeouts)).collect(), 5),
                Column::number("sent", rows.iter().map(|r| format::bytes(r.bytes_sent as u64)).collect(), 3),
                Column::number(
                    "received",
                    rows.iter().map(|r| format::bytes(r.bytes_received as u64)).collect(),
                    3,
                ),
                Column::number("queue", rows.iter().map(|r| time(&r.queue_ns)).collect(), 2),
                Column::number("RTT", rows.iter().map(|r| time(&r.rtt_ns)).collect(), 0),
                Column::number("execute", rows.iter().map(|r| time(&r.execute_ns)).collect(), 1),
                Column::number("errors", rows.iter().map(|r| number(r.errors)).collect(), 0),
            ];
            text.table(columns, &[]);
            if let Some(events) = overview::events_text(summary) {
                text.wrapped("", &events);
            }
        }
    }
}
