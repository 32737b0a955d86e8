//! Load curves.

use benchmaster_analysis::load::{CurveSummary, LoadAnalysis, PointSummary, Verdict};
use benchmaster_analysis::{Analysis, Estimate};
use benchmaster_record::results::{LoadCurve, Severity, Unit};

use super::grid::{Column, Text};
use crate::format::rounded;

/// A table and the answer of every curve.
pub(super) fn curves(text: &mut Text, analysis: &Analysis) {
    let Some(load) = &analysis.load else { return };
    for curve in &load.curves {
        let place = if curve.label.is_empty() { String::new() } else { format!(", {}", curve.label) };
        text.section(&format!("load curve of {}{place}", load.workload));
        points(text, load, curve);
        text.raw_line("");
        curve.sentences.iter().for_each(|sentence| text.wrapped("", sentence));
    }
}

fn points(text: &mut Text, load: &LoadAnalysis, curve: &CurveSummary) {
    let cells = |cell: &dyn Fn(&PointSummary) -> String| curve.points.iter().map(cell).collect::<Vec<_>>();
    let estimate = |estimate: &Option<Estimate>, unit: Unit| match estimate {
        Some(estimate) => rounded(estimate.mean, estimate.half_width, unit, None).text(true),
        None => "-".into(),
    };
    let first = match load.curve {
        LoadCurve::Open => Column::number("requested", cells(&requested), 0),
        LoadCurve::Closed => Column::number("workers", cells(&|point| point.load.to_string()), 0),
    };
    let n = |point: &PointSummary| point.achieved.as_ref().map_or(0, |achieved| achieved.n).to_string();
    let achieved = |point: &PointSummary| estimate(&point.achieved, Unit::OperationsPerSecond);
    let response = |point: &PointSummary| estimate(&point.response, Unit::Nanoseconds);
    let mut columns = vec![
        first,
        Column::number("n", cells(&n), 3),
        Column::number("achieved", cells(&achieved), 0),
        Column::number("response time", cells(&response), 0),
    ];
    if let Some(goal) = load.goal {
        let judged = |point: &PointSummary| estimate(&point.judged, Unit::Nanoseconds);
        columns.push(Column::number(goal.latency.name(), cells(&judged), 0));
    }
    columns.push(Column::text("", cells(&|point| word(&point.verdict).into())));
    let severities: Vec<_> = curve.points.iter().map(|point| severity(&point.verdict)).collect();
    text.table(columns, &severities);
}

fn requested(point: &PointSummary) -> String {
    format!("{}/s", point.requested.unwrap_or(point.load))
}

/// A verdict in a word or two.
pub(crate) fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Kept => "kept",
        Verdict::Undecided { .. } => "not decided",
        Verdict::Broken { .. } => "broken",
        Verdict::Client { .. } => "client's limit",
        Verdict::Failed => "failed",
    }
}

fn severity(verdict: &Verdict) -> Option<Severity> {
    match verdict {
        Verdict::Kept | Verdict::Broken { .. } => None,
        Verdict::Undecided { .. } => Some(Severity::Note),
        Verdict::Client { .. } => Some(Severity::Warning),
        Verdict::Failed => Some(Severity::Invalid),
    }
}
