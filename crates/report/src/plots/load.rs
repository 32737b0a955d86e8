//! Load curves: rate and response time as the load rises.

use benchmaster_analysis::load::{CurveSummary, LoadAnalysis, PointSummary, Verdict};
use benchmaster_analysis::{Analysis, Estimate};
use benchmaster_record::results::LoadCurve;

use super::figure::{Axis, Figure, Line, Mode, View, both_sides};
use crate::format;
use crate::overview::unbroken;

/// Largest over smallest load from which they are drawn on a logarithmic axis.
const LOG_FROM: f64 = 30.0;

/// Both curves of a study that measures some.
pub(super) fn figures(analysis: &Analysis) -> Vec<Figure> {
    let Some(load) = &analysis.load else { return Vec::new() };
    if load.curves.iter().all(|curve| curve.points.is_empty()) {
        return Vec::new();
    }
    vec![achieved(load, analysis.confidence), response(load, analysis.confidence)]
}

/// Where a point stands: the requested rate, or the workers.
fn x(point: &PointSummary) -> f64 {
    point.requested.unwrap_or(point.load)
}

fn achieved(load: &LoadAnalysis, confidence: f64) -> Figure {
    let requested = |curve: &CurveSummary| {
        let all = curve.points.iter().map(|point| (x(point), x(point)));
        Line { quiet: true, ..Line::through("as requested", 9, Mode::Lines, all) }
    };
    let views = views(load, |color, curve| {
        let line = line(curve, color, "achieved", 1.0, |point| point.achieved.as_ref());
        match load.curve {
            LoadCurve::Open => vec![line, requested(curve)],
            LoadCurve::Closed => vec![line],
        }
    });
    let y = Axis { title: "achieved [1/s]".into(), unit: "/s", zero: true, ..Axis::default() };
    figure(load, "achieved", "achieved rate by load", confidence, y, views)
}

fn response(load: &LoadAnalysis, confidence: f64) -> Figure {
    let mut views = views(load, |color, curve| {
        let mut lines = vec![line(curve, color, "mean response time", 1e-9, |point| point.response.as_ref())];
        if let Some(goal) = load.goal {
            lines.push(line(curve, color + 1, goal.latency.name(), 1e-9, |point| point.judged.as_ref()));
        }
        lines
    });
    if let Some(goal) = load.goal {
        views.iter_mut().for_each(|view| view.marks_y.push((goal.at_most_ns * 1e-9, "goal".into())));
    }
    let y = Axis { title: "response time [s]".into(), unit: "s", zero: true, ..Axis::default() };
    figure(load, "response-time", "response time by load", confidence, y, views)
}

fn figure(load: &LoadAnalysis, id: &str, title: &str, confidence: f64, y: Axis, views: Vec<View>) -> Figure {
    let places: Vec<f64> = load.curves.iter().flat_map(|curve| &curve.points).map(x).collect();
    let (low, high) = places.iter().fold((f64::INFINITY, 0.0f64), |(l, h), &v| (l.min(v), h.max(v)));
    let log = low > 0.0 && high / low > LOG_FROM;
    let (what, unit) = match load.curve {
        LoadCurve::Open => ("requested [1/s]", "/s"),
        LoadCurve::Closed => ("workers per client", ""),
    };
    Figure {
        id: format!("load-{id}"),
        workload: load.workload.clone(),
        title: format!("{}: {title}", load.workload),
        note: format!(
            "Means over the runs of each load; error bars are the half widths of their {} Student-t intervals. \
             Vertical marks: the highest load known to keep all limits, the lowest load known to break one, and \
             the knee, where the rate divided by the response time is greatest.",
            unbroken(&format::percent(confidence))
        ),
        choice: "curve",
        height: 380,
        x: Axis { title: what.into(), unit, log, zero: !log, ..Axis::default() },
        y,
        views,
    }
}

/// A view of each curve.
fn views(load: &LoadAnalysis, lines: impl Fn(usize, &CurveSummary) -> Vec<Line>) -> Vec<View> {
    let view = |curve: &CurveSummary| {
        let label = if curve.label.is_empty() { "the curve".to_owned() } else { curve.label.clone() };
        View { label, lines: lines(0, curve), marks: marks(curve), ..View::default() }
    };
    load.curves.iter().filter(|curve| !curve.points.is_empty()).map(view).collect()
}

fn marks(curve: &CurveSummary) -> Vec<(f64, String)> {
    let place = |load: f64| curve.points.iter().find(|point| point.load == load).map_or(load, x);
    let knee = curve.knee.as_ref().filter(|knee| !knee.at_the_end).map(|knee| knee.load.value);
    let marks = [(curve.kept, "kept"), (knee, "knee"), (curve.broken, "broken")];
    marks.into_iter().filter_map(|(load, name)| Some((place(load?), name.to_owned()))).collect()
}

fn line<'c>(
    curve: &'c CurveSummary,
    color: usize,
    name: &str,
    factor: f64,
    of: impl Fn(&'c PointSummary) -> Option<&'c Estimate>,
) -> Line {
    let known: Vec<_> = curve.points.iter().filter_map(|point| Some((point, of(point)?))).collect();
    let error = |estimate: &Estimate| Some(both_sides(estimate.half_width? * factor));
    let places = known.iter().map(|(point, estimate)| (x(point), estimate.mean * factor));
    Line {
        error_y: Some(known.iter().map(|(_, estimate)| error(estimate)).collect()),
        text: known.iter().map(|(point, _)| word(&point.verdict).to_owned()).collect(),
        ..Line::through(name, color, Mode::Joined, places)
    }
}

/// A verdict in a word or two.
pub(crate) fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Kept => "kept",
        Verdict::Undecided { .. } => "undecided",
        Verdict::Broken { .. } => "broken",
        Verdict::Client { .. } => "client's limit",
        Verdict::Failed => "failed",
    }
}
