//! The tables of numbers.

use benchmaster_analysis::experiment::{Experiment, TermEstimate};
use benchmaster_analysis::{
    self as analysis, Analysis, Estimate, FactorSummary, LatencyKind, LatencySummary, ResponseSummary,
    TreatmentSummary,
};
use benchmaster_record::results::{StudyResults, Unit};
use benchmaster_record::results::{StudyResults, Unit};
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
    ns.map_or_else(Cell::none, |ns| Cell::number(format::time(ns), ns))
}

fn estimate_cell(response: Option<&ResponseSummary>, scale: Option<Scale>) -> Cell {
    match response.and_then(|r| Some((r, r.estimate.as_ref()?))) {
        Some((response, estimate)) => show(estimate, response.unit, scale),
        None => Cell::none(),
    }
}

pub(super) fn show(estimate: &Estimate, unit: Unit, scale: Option<Scale>) -> Cell {
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

/// How the factors change the response, in words and tables.
pub(super) fn effects(analysis: &Analysis) -> Effects {
    let unit = analysis.effects_unit.unwrap_or(Unit::Ratio);
    let mut shown = match &analysis.effects {
        analysis::Effects::None { reason } => {
            Effects { text: vec![format!("None can be told: {reason}.")], tables: vec![] }
        }
        analysis::Effects::Experiment(found) => experiment(found),
        analysis::Effects::OneAtATime(_) => Effects { text: vec![], tables: vec![] },
    };
    let levels = match &analysis.effects {
        analysis::Effects::OneAtATime(levels) => Some(levels),
        _ => analysis.levels.as_ref(),
    };
    if let Some(levels) = levels {
        let mut tables: Vec<_> = levels.factors.iter().map(|f| level_table(f, unit)).collect();
        if let Some(last) = tables.last_mut() {
            last.note = format!("{} {}", levels.note, terminal::comparison_note(analysis.confidence));
        }
        // Level means come first: they are what is looked for first.
        tables.append(&mut shown.tables);
        shown.tables = tables;
    }
    shown
}

/// Rows of a table of effects; the JSON of `benchmaster analyze` has more.
const MOST_EFFECTS: usize = 100;

fn experiment(found: &Experiment) -> Effects {
    let coding: Vec<_> = found
        .factors
        .iter()
        .map(|factor| match (&factor.levels[..], factor.coding) {
            ([low, high], "two-level") => {
                format!("{} {}: low (−1) {low}, high (+1) {high}", factor.letter, factor.name)
            }
            (levels, _) => format!("{} {}: {}", factor.letter, factor.name, levels.join(", ")),
        })
        .collect();
    let mut text = found.sentences.clone();
    text.push(format!(
        "Half effect q: from low to high the response changes by the full effect 2q. {}.",
        coding.join("; ")
    ));
    text.extend(found.residuals.checks.iter().filter(|c| c.fine).map(|c| c.sentence.clone()));
    let mut tables = vec![effect_table(found), variation_table(found)];
    if let Some(chains) = found.aliases.as_ref().filter(|chains| chains.iter().any(|c| c.terms.len() > 1)) {
        let mut table = Table::new("What each estimate is the sum of", &["estimate", "sum of", "by name"]);
        for chain in chains.iter().filter(|c| c.terms.len() > 1).take(MOST_EFFECTS) {
            let first = chain.terms.first().map_or("", String::as_str);
            table.row([Cell::text(first), Cell::text(&chain.text), Cell::text(chain.names.join(", "))]);
        }
        tables.push(table);
    }
    if let Some(reduced) = &found.reduced {
        let caption =
            format!("Reduced model: {}", reduced.equation.as_deref().unwrap_or("terms that matter"));
        let mut table = Table::new(caption, &["term", "#coefficient", "#p"]);
        for term in &reduced.coefficients {
            table.row([Cell::text(term_name(term)), coefficient(found, term), p_value(term.p)]);
        }
        table.note = format!("Dropped as noise: {}.", reduced.dropped.join(", "));
        tables.push(table);
    }
    Effects { text, tables }
}

fn coefficient(found: &Experiment, term: &TermEstimate) -> Cell {
    let unit = if found.is_log() { Unit::Count } else { found.unit.unwrap_or(Unit::Count) };
    Cell::number(rounded(term.coefficient, term.half_width, unit, None).text(true), term.coefficient)
}

fn term_name(term: &TermEstimate) -> String {
    match term.contrast.is_empty() {
        true => term.name.clone(),
        false => format!("{} ({})", term.name, term.contrast),
    }
}

fn p_value(p: Option<f64>) -> Cell {
    p.map_or_else(Cell::none, |value| Cell::number(terminal::p_cell(Some(value)), value))
}

fn percent_cell(share: Option<f64>) -> Cell {
    share.map_or_else(Cell::none, |p| Cell::number(format!("{p:.1} %"), p))
}

fn effect_table(found: &Experiment) -> Table {
    let log = found.is_log();
    let unit = if log { Unit::Count } else { found.unit.unwrap_or(Unit::Count) };
    let scale = Scale::common(unit, found.effects.iter().map(|e| e.coefficient));
    let mut head = vec!["letters", "term", "#half effect q or coefficient", "#full effect 2q"];
    if log {
        head.push("#ratio low to high");
    }
    head.extend(["#t", "#p", "#variation explained", "differs from 0"]);
    let mut table = Table::new(format!("Effects on {}", found.response), &head);
    for term in found.effects.iter().take(MOST_EFFECTS) {
        let show = |value: f64, half| Cell::number(rounded(value, half, unit, scale).text(true), value);
        let mut row = vec![
            Cell::text(&term.term),
            Cell::text(term_name(term)),
            show(term.coefficient, term.half_width),
            term.effect.map_or_else(Cell::none, |full| show(full, term.half_width.map(|h| 2.0 * h))),
        ];
        if log {
            row.push(term.ratio.map_or_else(Cell::none, |r| {
                Cell::number(
                    format!("× {}", terminal::ranged(Some(r.value), r.interval, Unit::Count)),
                    r.value,
                )
            }));
        }
        row.extend([
            term.t.map_or_else(Cell::none, |t| Cell::number(format!("{t:.2}"), t)),
            p_value(term.p),
            percent_cell(term.variation_percent),
            Cell::text(terminal::differs(term)),
        ]);
        table.row(row);
    }
    let log = if log { " Effects are of the natural logarithm of the response." } else { "" };
    let more = match found.effects_total.saturating_sub(MOST_EFFECTS) {
        0 => String::new(),
        more => format!(" {more} smaller effects are not shown."),
    };
    let margin =
        if found.error.df == 0 && found.lenth.is_some() { " by Lenth's margin of error" } else { "" };
    table.note = format!("±: {} interval{margin}.{log}{more}", format::percent(found.confidence));
    table
}

fn variation_table(found: &Experiment) -> Table {
    let head =
        ["source", "#degrees of freedom", "#sum of squares", "#mean square", "#F", "#p", "#share", "#ω²"];
    let mut table = Table::new("Analysis of variance", &head);
    let size = |value: f64| Cell::number(rounded(value, None, Unit::Count, None).text(true), value);
    let number = |value: Option<f64>| value.map_or_else(Cell::none, |v| Cell::number(format!("{v:.4}"), v));
    for line in found.anova.lines.iter().take(MOST_EFFECTS) {
        table.row([
            Cell::text(&line.name),
            Cell::count(line.df as usize),
            size(line.sum_of_squares),
            line.mean_square.map_or_else(Cell::none, size),
            number(line.f),
            p_value(line.p),
            percent_cell(line.variation_percent),
            number(line.omega_squared),
        ]);
    }
    table.note = match found.anova.kind_matters {
        false => "The terms are orthogonal: all kinds of sums of squares are the same.".into(),
        true => format!(
            "Sums of squares of type {}; the data are not balanced, so shares do not add up.",
            found.anova.sums_of_squares
        ),
    };
    table
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
