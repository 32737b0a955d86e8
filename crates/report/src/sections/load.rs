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
    let first = match load.curve {
        LoadCurve::Open => "#requested",
        LoadCurve::Closed => "#workers",
    };
    let judged = load.goal.as_ref().map(|goal| format!("#{}", goal.latency.name()));
    let mut head = vec![first, "#n|3", "#achieved", "#response time"];
    head.extend(judged.as_deref());
    head.push("verdict");
    let caption = format!("Load curve of {}{place}", load.workload);
    let mut table = Table::new(caption, &head);
    let estimate = |estimate: &Option<Estimate>, unit| match estimate {
        Some(estimate) => Cell::estimate(estimate.mean, estimate.half_width, unit, None),
        None => Cell::none(),
    };
    for point in &curve.points {
        let mut row = vec![
            match load.curve {
                LoadCurve::Open => {
                    let rate = point.requested.unwrap_or(point.load);
                    Cell::number(format!("{rate}/s"), rate)
                }
                LoadCurve::Closed => Cell::number(point.load.to_string(), point.load),
            },
            Cell::count(point.achieved.as_ref().map_or(0, |achieved| achieved.n)),
            estimate(&point.achieved, Unit::OperationsPerSecond),
            estimate(&point.response, Unit::Nanoseconds),
        ];
        if load.goal.is_some() {
            row.push(estimate(&point.judged, Unit::Nanoseconds));
        }
        row.push(verdict(point));
        table.row(row);
    }
    table
}

fn verdict(point: &PointSummary) -> Cell {
    let severity = match point.verdict {
        Verdict::Kept | Verdict::Broken { .. } => None,
        Verdict::Undecided { .. } => Some(Severity::Note),
        Verdict::Client { .. } => Some(Severity::Warning),
        Verdict::Failed => Some(Severity::Invalid),
    };
    Cell::text(word(&point.verdict)).marked(severity)
}
