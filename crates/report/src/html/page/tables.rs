//! The tables of numbers.

use benchmaster_store::record::{StudyResults, Unit};
use benchmaster_study::analysis::{
    self, Analysis, Estimate, FactorSummary, FactorialSummary, LatencyKind, LatencySummary, ResponseSummary,
    TreatmentSummary,
};
use serde::Serialize;

use super::super::table::{Cell, Table};
use crate::format::{self, Scale, rounded};
use crate::{overview, terminal};

const PERCENTILES: [&str; 4] = ["p50", "p99", "p99.9", "max"];

/// The effects of factors, in words and tables.
#[derive(Debug, Serialize)]
pub(super) struct Effects {
    text: Vec<String>,
    tables: Vec<Table>,
}

/// The main table of each workload; one over all workloads when there is one treatment.
pub(super) fn results(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let workloads = &results.study.workloads;
    if let [treatment] = analysis.treatments.as_slice() {
        let rates: Vec<_> =
            workloads.iter().map(|w| overview::rates(&results.study, analysis, &w.name)).collect();
        let mut table = Table::new("All workloads", &["workload", "response", "#mean ± half width", "#n"]);
        extend_head(&mut table);
        for (workload, rates) in workloads.iter().zip(&rates) {
            let name = rates.first().map(|(name, _)| name.as_str());
            let response = name.and_then(|n| treatment.response(n));
            let mut row = vec![
                Cell::text(&workload.name),
                Cell::text(name.map_or("–", |n| overview::short_name(n, &workload.name))),
                estimate_cell(response, None),
                runs_cell(treatment, response),
            ];
            extend_row(&mut row, results, treatment, &workload.name);
            table.row(row);
        }
        table.note = latency_note("main operation of each workload");
        return vec![table];
    }
    workloads.iter().map(|w| workload_table(results, analysis, &w.name, &w.use_name)).collect()
}

fn workload_table(results: &StudyResults, analysis: &Analysis, workload: &str, use_name: &str) -> Table {
    let rates = overview::rates(&results.study, analysis, workload);
    let rates = &rates[..rates.len().min(4)];
    let mut head = vec!["treatment".to_owned()];
    head.extend(rates.iter().map(|(name, _)| format!("#{}", overview::short_name(name, workload))));
    head.push("#n".into());
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(format!("{workload} ({use_name}): mean ± half width"), &head);
    extend_head(&mut table);
    let scales: Vec<_> = rates
        .iter()
        .map(|(name, unit)| {
            let means = analysis.treatments.iter().filter_map(|t| t.response(name)?.estimate.as_ref());
            Scale::common(*unit, means.map(|e| e.mean))
        })
        .collect();
    for treatment in &analysis.treatments {
        let mut row = vec![Cell::text(&treatment.label)];
        for ((name, _), scale) in rates.iter().zip(&scales) {
            row.push(estimate_cell(treatment.response(name), *scale));
        }
        row.push(runs_cell(treatment, rates.first().and_then(|(name, _)| treatment.response(name))));
        extend_row(&mut row, results, treatment, workload);
        table.row(row);
    }
    let main = analysis.treatments.iter().find_map(|t| overview::main_latency(results, t, workload));
    table.note = latency_note(&main.map_or("main operation".into(), terminal::operation));
    table
}

fn latency_note(of: &str) -> String {
    format!(
        "Percentiles are latencies of the {of}, over all operations of the runs that count, merged; they have no \
         interval. – = too few operations to tell. n = runs that count / runs finished."
    )
}

fn extend_head(table: &mut Table) {
    let more = Table::new("", &["#p50", "#p99", "#p99.9", "#max", "#errors", "validity"]);
    table.head.extend(more.head);
}

fn extend_row(row: &mut Vec<Cell>, results: &StudyResults, treatment: &TreatmentSummary, workload: &str) {
    let latency = overview::main_latency(results, treatment, workload);
    row.extend(PERCENTILES.map(|p| latency_cell(latency.and_then(|l| l.percentile(p)).map(|ns| ns as f64))));
    let errors = treatment.errors_by_workload.get(workload).copied().unwrap_or(0);
    row.push(Cell::number(format::count(errors), errors as f64));
    let (word, severity) = overview::validity(results, treatment, workload);
    row.push(Cell::text(word).marked(severity));
}

fn latency_cell(ns: Option<f64>) -> Cell {
    ns.map_or_else(Cell::none, |ns| Cell::number(format::latency(ns, true), ns))
}

fn estimate_cell(response: Option<&ResponseSummary>, scale: Option<Scale>) -> Cell {
    match response.and_then(|r| Some((r, r.estimate.as_ref()?))) {
        Some((response, estimate)) => show(estimate, response.unit, scale),
        None => Cell::none(),
    }
}

fn show(estimate: &Estimate, unit: Unit, scale: Option<Scale>) -> Cell {
    let mut text = rounded(estimate.mean, estimate.half_width, unit, scale).text(true);
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
pub(super) fn replicates(analysis: &Analysis) -> Table {
    let caption = format!("Replicates, decided by {}", analysis.primary_response);
    let mut table = Table::new(caption, &["treatment", "#n", "replicates"]);
    for treatment in &analysis.treatments {
        table.row([
            Cell::text(&treatment.label),
            runs_cell(treatment, treatment.response(&analysis.primary_response)),
            Cell::text(treatment.stopping.as_deref().unwrap_or("no run counts")),
        ]);
    }
    table
}

/// Every operation of every workload.
pub(super) fn operations(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let head = [
        "treatment",
        "operation",
        "#count",
        "#mean",
        "#p50",
        "#p90",
        "#p99",
        "#p99.9",
        "#p99.99",
        "#max",
        "#first call",
        "#errors",
    ];
    let mut tables = Vec::new();
    for workload in &results.study.workloads {
        let mut table = Table::new(format!("{}: latency of every operation", workload.name), &head);
        for treatment in &analysis.treatments {
            for latency in treatment.latencies.iter().filter(|l| l.workload == workload.name) {
                table.row(operation_row(treatment, latency));
            }
        }
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
        Cell::text(&treatment.label),
        Cell::text(terminal::operation(latency)),
        Cell::number(format::count(latency.count), latency.count as f64),
        latency_cell(latency.mean_ns),
    ];
    let percentiles = ["p50", "p90", "p99", "p99.9", "p99.99", "max"];
    row.extend(percentiles.map(|p| latency_cell(latency.percentile(p).map(|ns| ns as f64))));
    row.push(latency_cell(latency.first_ns));
    row.push(match latency.kind {
        LatencyKind::Service => Cell::none(),
        _ => Cell::number(format::count(latency.errors), latency.errors as f64),
    });
    row
}

/// Every response with its interval, or why it has none.
pub(super) fn responses(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let head = ["treatment", "response", "#mean ± half width", "#standard deviation", "#n", "remarks"];
    let mut tables = Vec::new();
    for workload in &results.study.workloads {
        let prefix = format!("{}.", workload.name);
        let mut table = Table::new(format!("{}: every response", workload.name), &head);
        for treatment in &analysis.treatments {
            for response in treatment.responses.iter().filter(|r| r.name.starts_with(&prefix)) {
                let estimate = response.estimate.as_ref();
                let deviation = estimate.and_then(|e| e.standard_deviation);
                table.row([
                    Cell::text(&treatment.label),
                    Cell::text(overview::short_name(&response.name, &workload.name)),
                    estimate_cell(Some(response), None),
                    deviation.map_or_else(Cell::none, |d| {
                        Cell::number(rounded(d, None, response.unit, None).text(true), d)
                    }),
                    Cell::count(estimate.map_or(0, |e| e.n)),
                    Cell::text(terminal::remarks(response)),
                ]);
            }
        }
        if !table.rows.is_empty() {
            tables.push(table);
        }
    }
    tables
}

/// Jain's index over workers and clients.
pub(super) fn fairness(analysis: &Analysis) -> Option<Table> {
    let head = ["treatment", "workload", "over", "#Jain's index", "#n", "#largest / smallest rate"];
    let mut table = Table::new("Fairness", &head);
    for treatment in &analysis.treatments {
        for fairness in &treatment.fairness {
            let over = match &fairness.group {
                Some(group) => format!("{} workers of {group}", fairness.members),
                None => format!("{} clients", fairness.members),
            };
            table.row([
                Cell::text(&treatment.label),
                Cell::text(&fairness.workload),
                Cell::text(over),
                show(&fairness.jain, Unit::Ratio, None),
                Cell::count(fairness.jain.n),
                fairness.max_over_min.map_or_else(Cell::none, |r| Cell::number(format!("{r:.3}"), r)),
            ]);
        }
    }
    table.note = "1 = all had the same rate; 1/members = one had all. Mean ± half width over runs.".into();
    (!table.rows.is_empty()).then_some(table)
}

pub(super) fn effects(analysis: &Analysis) -> Effects {
    match &analysis.effects {
        analysis::Effects::None { reason } => {
            Effects { text: vec![format!("None can be told: {reason}.")], tables: vec![] }
        }
        analysis::Effects::Factorial(found) => factorial(found, analysis),
        analysis::Effects::Levels { note, factors, .. } => {
            let unit = analysis.primary_unit.unwrap_or(Unit::Ratio);
            Effects {
                text: vec![note.clone(), terminal::comparison_note(analysis.confidence)],
                tables: factors.iter().map(|f| level_table(f, unit)).collect(),
            }
        }
    }
}

fn factorial(found: &FactorialSummary, analysis: &Analysis) -> Effects {
    let scale = Scale::common(found.unit, [found.mean]);
    let show = |value: f64, half| Cell::number(rounded(value, half, found.unit, scale).text(true), value);
    let levels: Vec<_> = found
        .factors
        .iter()
        .map(|(factor, [low, high])| format!("{factor}: low {low}, high {high}"))
        .collect();
    let mut text = vec![format!(
        "2^k·r factorial with r = {}. Shown is the half effect q: from the low to the high level the response changes \
         by 2q. Levels: {}. Mean over all treatments: {}.",
        found.replicates,
        levels.join("; "),
        show(found.mean, found.mean_half_width).text
    )];
    match (&found.no_interval, found.error_percent) {
        (Some(reason), _) => text.push(format!("No intervals: {reason}.")),
        (None, Some(error)) => text.push(format!(
            "{error:.1} % of the variation is between replicates. ±: half width of the {} interval of q.",
            format::percent(analysis.confidence)
        )),
        (None, None) => text.push("The response does not vary at all.".into()),
    }
    let mut table = Table::new(
        format!("Effects on {}", analysis.primary_response),
        &["term", "#half effect q", "#variation explained", "differs from 0"],
    );
    for term in &found.terms {
        table.row([
            Cell::text(&term.name),
            show(term.half_effect, term.half_width),
            term.variation_percent.map_or_else(Cell::none, |p| Cell::number(format!("{p:.1} %"), p)),
            Cell::text(match term.told_apart {
                Some(true) => "yes",
                Some(false) => "cannot be told apart from noise",
                None => "not known (no interval)",
            }),
        ]);
    }
    Effects { text, tables: vec![table] }
}

fn level_table(factor: &FactorSummary, unit: Unit) -> Table {
    let scale = Scale::common(unit, factor.levels.iter().filter_map(|l| l.estimate.as_ref()).map(|e| e.mean));
    let head = ["level", "#mean ± half width", "#n", "#difference from base", "#relative", "verdict"];
    let mut table = Table::new(format!("Factor {}", factor.factor), &head);
    for (i, level) in factor.levels.iter().enumerate() {
        let mean = match &level.estimate {
            Some(estimate) => show(estimate, unit, scale),
            None => Cell::text("no run counts"),
        };
        let mut row =
            vec![Cell::text(&level.level), mean, Cell::count(level.estimate.as_ref().map_or(0, |e| e.n))];
        match &level.against_base {
            Some(contrast) => row.extend([
                Cell::number(
                    rounded(contrast.difference, contrast.half_width, unit, scale).text(true),
                    contrast.difference,
                ),
                contrast
                    .relative
                    .map_or_else(Cell::none, |r| Cell::number(format!("{:+.1} %", r * 100.0), r)),
                Cell::text(terminal::verdict(contrast)),
            ]),
            None => row.extend([Cell::text(if i == 0 { "base" } else { "–" }), Cell::none(), Cell::text("")]),
        }
        table.row(row);
    }
    table
}
