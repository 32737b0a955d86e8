//! The tables of what went over the wire.

use benchmaster_record::phase::Phase;
use benchmaster_record::results::Unit;
use benchmaster_study::analysis::{Analysis, Estimate};

use super::super::table::{Cell, Table};
use crate::format::{self, rounded};
use crate::overview;

/// One table per workload and phase, with the columns of `mountstats`.
pub(super) fn rpcs(analysis: &Analysis) -> Vec<Table> {
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
        "#ops per client",
        "#transmissions",
        "#timeouts",
        "#sent",
        "#received",
        "#queue",
        "#RTT",
        "#execute",
        "#errors",
    ];
    let mut table = Table::new(format!("{workload}: {}", overview::phase_text(phase)), &head);
    let mut notes =
        vec!["Means over the runs that count, of all clients together; times are per call.".to_owned()];
    for treatment in &analysis.treatments {
        let of_phase = treatment.rpcs.iter().filter(|s| s.workload == workload && s.phase == phase);
        for summary in of_phase {
            for row in &summary.rows {
                let clients = f64::from(summary.clients);
                table.row([
                    Cell::text(&treatment.label),
                    Cell::text(overview::kind_text(&(row.program.clone(), row.operation.clone()))),
                    counted(row.ops.mean, row.ops.half_width),
                    counted(row.ops.mean / clients, row.ops.half_width.map(|width| width / clients)),
                    counted(row.transmissions, None),
                    counted(row.timeouts, None),
                    Cell::number(format::bytes(row.bytes_sent as u64), row.bytes_sent),
                    Cell::number(format::bytes(row.bytes_received as u64), row.bytes_received),
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
    table
}

fn counted(mean: f64, half_width: Option<f64>) -> Cell {
    let text = match half_width.filter(|width| *width > 0.0) {
        None if mean.fract() == 0.0 => format::count(mean as u64),
        half_width => rounded(mean, half_width, Unit::Count, None).text(true),
    };
    Cell::number(text, mean)
}

fn time(estimate: Option<&Estimate>) -> Cell {
    let show = |e: &Estimate| rounded(e.mean, e.half_width, Unit::Nanoseconds, None).text(true);
    estimate.map_or_else(Cell::none, |e| Cell::number(show(e), e.mean))
}
