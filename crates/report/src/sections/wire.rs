//! What went over the wire.

use benchmaster_analysis::{Analysis, Estimate};
use benchmaster_analysis::{RpcSummary, TreatmentSummary};
use benchmaster_record::phase::Phase;
use benchmaster_record::results::Unit;

use crate::document::{Cell, Table};
use crate::format;
use crate::overview;

/// Calls of the measured phase per client: a row per treatment, a column per kind of call.
pub(crate) fn calls(analysis: &Analysis) -> Vec<Table> {
    let of_workload = |(workload, rows): (&str, Vec<(&TreatmentSummary, &RpcSummary)>)| {
        let kinds = overview::kinds(rows.iter().map(|(_, summary)| *summary));
        let mut table =
            Table::of(format!("{workload}: RPCs per client in the measured phase, mean over runs"), rows)
                .column("treatment", |(treatment, _)| Cell::name(&treatment.label));
        for kind in &kinds {
            let head = format!("#{}|2", overview::kind_text(kind));
            table = table.column(&head, |(_, summary)| calls_of(summary, kind));
        }
        let total = |summary: &RpcSummary| summary.rows.iter().map(|row| row.ops.mean).sum::<f64>();
        let table = table
            .column("#total", |(_, summary)| counted(total(summary) / f64::from(summary.clients), None))
            .column("#mean RTT|1", |(treatment, _)| round_trip(treatment, workload));
        table.filled().filter(|_| !kinds.is_empty())
    };
    overview::measured_rpcs(analysis).into_iter().filter_map(of_workload).collect()
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
    let summaries = analysis.treatments.iter().flat_map(|treatment| {
        let of_phase = treatment.rpcs.iter().filter(|s| s.workload == workload && s.phase == phase);
        of_phase.map(move |summary| (treatment, summary))
    });
    let mut note = "Means over the runs that count, of all clients together; times are per call.".to_owned();
    for (treatment, summary) in summaries.clone() {
        note += &format!(" {}: {}, {} clients.", treatment.label, summary.connection, summary.clients);
        note += &overview::events_text(summary).map_or_else(String::new, |events| format!(" {events}"));
    }
    let rows = summaries.flat_map(|(treatment, summary)| {
        summary.rows.iter().map(move |row| (treatment, f64::from(summary.clients), row))
    });
    Table::of(format!("{workload}: RPCs, {}", overview::phase_text(phase)), rows)
        .column_if(analysis.treatments.len() > 1, "treatment", |(treatment, ..)| Cell::name(&treatment.label))
        .column("operation", |(.., row)| {
            Cell::text(overview::kind_text(&(row.program.clone(), row.operation.clone())))
        })
        .column("#ops", |(.., row)| counted(row.ops.mean, row.ops.half_width))
        .column("#ops per client|6", |(_, clients, row)| {
            counted(row.ops.mean / clients, row.ops.half_width.map(|width| width / clients))
        })
        .column("#transmissions|4", |(.., row)| counted(row.transmissions, None))
        .column("#timeouts|5", |(.., row)| counted(row.timeouts, None))
        .column("#sent|3", |(.., row)| Cell::number(format::bytes(row.bytes_sent), row.bytes_sent))
        .column("#received|3", |(.., row)| {
            Cell::number(format::bytes(row.bytes_received), row.bytes_received)
        })
        .column("#queue|2", |(.., row)| time(row.queue_ns.as_ref()))
        .column("#RTT", |(.., row)| time(row.rtt_ns.as_ref()))
        .column("#execute|1", |(.., row)| time(row.execute_ns.as_ref()))
        .column("#errors", |(.., row)| counted(row.errors, None))
        .note(note)
        .table()
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
