//! What went over the wire.

use benchmaster_analysis::{Analysis, Estimate};
use benchmaster_analysis::{RpcSummary, TreatmentSummary};
use benchmaster_record::phase::Phase;
use benchmaster_record::results::Unit;

use super::by_treatment;
use crate::document::{Cell, Table};
use crate::format;
use crate::overview;

/// Calls of the measured phase per client: a row per treatment, a column per kind of call.
pub(crate) fn calls(analysis: &Analysis) -> Vec<Table> {
    let mut tables = Vec::new();
    for (workload, rows) in overview::measured_rpcs(analysis) {
        let kinds = overview::kinds(rows.iter().map(|(_, summary)| *summary));
        if kinds.is_empty() {
            continue;
        }
        let names: Vec<String> = kinds.iter().map(|kind| format!("#{}", overview::kind_text(kind))).collect();
        let head: Vec<&str> = std::iter::once("treatment")
            .chain(names.iter().map(String::as_str))
            .chain(["#total", "#mean RTT|1"])
            .collect();
        let caption = format!("{workload}: RPCs per client in the measured phase, mean over runs");
        let mut table = Table::new(caption, &head);
        table.head.iter_mut().skip(1).take(kinds.len()).for_each(|head| head.rank = 2);
        for (treatment, summary) in rows {
            let clients = f64::from(summary.clients);
            let total = summary.rows.iter().map(|row| row.ops.mean).sum::<f64>() / clients;
            let mut row = vec![Cell::name(&treatment.label)];
            row.extend(kinds.iter().map(|kind| calls_of(summary, kind)));
            row.extend([counted(total, None), round_trip(treatment, workload)]);
            table.row(row);
        }
        tables.push(table);
    }
    tables
}

fn calls_of(summary: &RpcSummary, (program, operation): &(String, String)) -> Cell {
    let clients = f64::from(summary.clients);
    let row = summary.rows.iter().find(|row| (&row.program, &row.operation) == (program, operation));
    row.map_or_else(
        || Cell::count(0),
        |row| counted(row.ops.mean / clients, row.ops.half_width.map(|width| width / clients)),
    )
}

fn round_trip(treatment: &TreatmentSummary, workload: &str) -> Cell {
    let response = treatment.response(&format!("{workload}.rpc_rtt"));
    time(response.and_then(|response| response.estimate.as_ref()))
}

/// One table per workload and phase, with the columns of `mountstats`.
pub(crate) fn phases(analysis: &Analysis) -> Vec<Table> {
    let mut phases: Vec<(&str, Phase)> = Vec::new();
    for summary in analysis.treatments.iter().flat_map(|treatment| &treatment.rpcs) {
        let phase = (summary.workload.as_str(), summary.phase);
        if !phases.contains(&phase) && !summary.rows.is_empty() {
            phases.push(phase);
        }
    }
    // What was measured comes before what was done around it.
    phases.sort_by_key(|(_, phase)| *phase != Phase::Measure);
    phases.into_iter().map(|(workload, phase)| table(analysis, workload, phase)).collect()
}

fn table(analysis: &Analysis, workload: &str, phase: Phase) -> Table {
    let head = [
        "treatment",
        "operation",
        "#ops",
        "#ops per client|6",
        "#transmissions|4",
        "#timeouts|5",
        "#sent|3",
        "#received|3",
        "#queue|2",
        "#RTT",
        "#execute|1",
        "#errors",
    ];
    let mut table = Table::new(format!("{workload}: RPCs, {}", overview::phase_text(phase)), &head);
    let mut notes =
        vec!["Means over the runs that count, of all clients together; times are per call.".to_owned()];
    for treatment in &analysis.treatments {
        let of_phase = treatment.rpcs.iter().filter(|s| s.workload == workload && s.phase == phase);
        for summary in of_phase {
            for row in &summary.rows {
                let clients = f64::from(summary.clients);
                table.row([
                    Cell::name(&treatment.label),
                    Cell::text(overview::kind_text(&(row.program.clone(), row.operation.clone()))),
                    counted(row.ops.mean, row.ops.half_width),
                    counted(row.ops.mean / clients, row.ops.half_width.map(|width| width / clients)),
                    counted(row.transmissions, None),
                    counted(row.timeouts, None),
                    Cell::number(format::bytes(row.bytes_sent), row.bytes_sent),
                    Cell::number(format::bytes(row.bytes_received), row.bytes_received),
                    time(row.queue_ns.as_ref()),
                    time(row.rtt_ns.as_ref()),
                    time(row.execute_ns.as_ref()),
                    counted(row.errors, None),
                ]);
            }
            let events =
                overview::events_text(summary).map_or_else(String::new, |events| format!(" {events}"));
            notes.push(format!(
                "{}: {}, {} clients.{events}",
                treatment.label, summary.connection, summary.clients
            ));
        }
    }
    table.note = notes.join(" ");
    by_treatment(&mut table, analysis);
    table
}

fn counted(mean: f64, half_width: Option<f64>) -> Cell {
    let text = match half_width.filter(|width| *width > 0.0) {
        None if mean.fract() == 0.0 => format::count(mean as u64),
        half_width => format::estimate(mean, half_width, Unit::Count, None),
    };
    Cell::number(text, mean)
}

fn time(estimate: Option<&Estimate>) -> Cell {
    estimate.map_or_else(Cell::none, |e| Cell::estimate(e.mean, e.half_width, Unit::Nanoseconds, None))
}
