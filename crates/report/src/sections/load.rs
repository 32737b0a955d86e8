//! Load curves.

use benchmaster_analysis::load::{CurveSummary, LoadAnalysis, PointSummary, Verdict};
use benchmaster_analysis::{Analysis, Estimate};
use benchmaster_record::results::{LoadCurve, Severity, Unit};

use crate::document::{Block, Cell, Section, Table};
use crate::plots::figure::Figure;
use crate::plots::load::word;

/// A table and the answer of every curve, with their plots.
pub(super) fn section(analysis: &Analysis, plots: Vec<Figure>) -> Section {
    let section = Section::new("load", "Load curves");
    let Some(load) = &analysis.load else { return section };
    let of_curve = |curve: &CurveSummary| {
        let sentences = curve.sentences.iter().map(|sentence| Block::Sentence(sentence.clone()));
        std::iter::once(Block::Table(points(load, curve))).chain(sentences).collect::<Vec<_>>()
    };
    section.brief(load.curves.iter().flat_map(of_curve)).page(plots)
}

fn points(load: &LoadAnalysis, curve: &CurveSummary) -> Table {
    let place = if curve.label.is_empty() { String::new() } else { format!(", {}", curve.label) };
    let estimate = |estimate: &Option<Estimate>, unit| match estimate {
        Some(estimate) => Cell::estimate(estimate.mean, estimate.half_width, unit, None),
        None => Cell::none(),
    };
    let table = Table::of(format!("Load curve of {}{place}", load.workload), &curve.points);
    let table = match load.curve {
        LoadCurve::Open => table.column("#requested", |point| {
            let rate = point.requested.unwrap_or(point.load);
            Cell::number(format!("{rate}/s"), rate)
        }),
        LoadCurve::Closed => {
            table.column("#workers", |point| Cell::number(point.load.to_string(), point.load))
        }
    };
    let judged = load.goal.as_ref().map_or_else(String::new, |goal| format!("#{}", goal.latency.name()));
    table
        .column("#n|3", |point| Cell::count(point.achieved.as_ref().map_or(0, |achieved| achieved.n)))
        .column("#achieved", |point| estimate(&point.achieved, Unit::OperationsPerSecond))
        .column("#response time", |point| estimate(&point.response, Unit::Nanoseconds))
        .column_if(load.goal.is_some(), &judged, |point| estimate(&point.judged, Unit::Nanoseconds))
        .column("verdict", verdict)
        .table()
}

fn verdict(point: &&PointSummary) -> Cell {
    let severity = match point.verdict {
        Verdict::Kept | Verdict::Broken { .. } => None,
        Verdict::Undecided { .. } => Some(Severity::Note),
        Verdict::Client { .. } => Some(Severity::Warning),
        Verdict::Failed => Some(Severity::Invalid),
    };
    Cell::text(word(&point.verdict)).marked(severity)
}
