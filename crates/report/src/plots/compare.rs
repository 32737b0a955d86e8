//! Ratios of two results, and a series of results with its changes.

use std::ops::Range;

use benchmaster_analysis::compare::{Comparison, Direction, HistorySeries, ResponseComparison, Verdict};
use benchmaster_record::results::Unit;

use super::figure::{Axis, Figure, Line, Mode, View, axis_unit, short};
use crate::document::change_text;
use crate::format;

pub(crate) fn named(cell: &str) -> &str {
    if cell.is_empty() { "all" } else { cell }
}

pub(crate) fn name_of(series: &HistorySeries) -> String {
    let cell = series.cell.as_ref().map_or(String::new(), |cell| format!(", {cell}"));
    format!("{}{cell}", series.response)
}

/// Ratios of all cells of a response with their intervals, and the band of negligible differences.
pub(crate) fn ratios(
    comparison: &Comparison,
    response: &ResponseComparison,
    number: usize,
) -> Option<Figure> {
    let cells = response.cells.iter().filter_map(|cell| {
        let found = cell.ratio.as_ref()?;
        Some((named(&cell.cell).to_owned(), found.ratio, found.interval, cell.verdict, cell.direction))
    });
    let overall = response.overall.iter().map(|overall| {
        let name = format!("mean of {} cells", overall.cells);
        (name, overall.ratio, overall.ratio_interval, overall.verdict, overall.direction)
    });
    let all: Vec<_> = cells.chain(overall).filter(|(_, ratio, ..)| ratio.is_finite()).collect();
    if all.is_empty() {
        return None;
    }
    // The first on top.
    let place = |at: usize| (all.len() - 1 - at) as f64;
    let ticks = all.iter().enumerate().map(|(at, (name, ..))| (place(at), name.clone())).collect();
    let groups: [(&str, usize, &str); 4] = [
        ("better", 2, "circle"),
        ("worse, or changed", 3, "diamond"),
        ("the same", 0, "square"),
        ("undecided", 1, "circle-open"),
    ];
    let group = |verdict: Verdict, direction: Option<Direction>| match (verdict, direction) {
        (Verdict::Changed, Some(Direction::Better)) => 0,
        (Verdict::Changed, _) => 1,
        (Verdict::Same, _) => 2,
        (Verdict::Undecided, _) => 3,
    };
    let lines = groups.iter().enumerate().filter_map(|(number, &(name, color, symbol))| {
        let found: Vec<_> =
            all.iter().enumerate().filter(|(_, cell)| group(cell.3, cell.4) == number).collect();
        if found.is_empty() {
            return None;
        }
        let reach = |ratio: f64, interval: Option<[f64; 2]>| {
            interval.map(|[low, high]| (short(ratio - low), short(high - ratio)))
        };
        Some(Line {
            error_x: Some(found.iter().map(|(_, cell)| reach(cell.1, cell.2)).collect()),
            symbol,
            size: Some(9),
            text: found.iter().map(|(_, cell)| cell.0.clone()).collect(),
            ..Line::through(name, color, Mode::Markers, found.iter().map(|(at, cell)| (cell.1, place(*at))))
        })
    });
    let lines: Vec<Line> = lines.collect();
    let band = comparison.band;
    Some(Figure {
        id: format!("ratio-{number}"),
        title: format!("{}: B over A", response.response),
        note: format!(
            "Ratio of the means of B and A in every cell, with its {} interval; the number of runs is in the \
             table above; 1 means \
             no change. Between the dashed lines, within ±{}, differences are negligible: an interval outside of them is a change, \
             one within them is none, and one across them is undecided.",
            format::percent(comparison.confidence),
            format::exact_percent(band)
        ),
        height: 150 + 34 * all.len(),
        x: Axis::titled("B/A"),
        y: Axis { ticks, reversed: true, range: Some((-0.6, all.len() as f64 - 0.4)), ..Axis::default() },
        views: vec![View {
            label: "ratios".into(),
            lines,
            // Labels of the others would lie upon each other.
            marks: vec![
                (short(1.0 / (1.0 + band)), String::new()),
                (1.0, String::new()),
                (short(1.0 + band), format!("±{}", format::exact_percent(band))),
            ],
            ..View::default()
        }],
        ..Figure::default()
    })
}

/// The parts of a series between its changes, with the mean of each.
pub(crate) fn parts(series: &HistorySeries) -> Vec<(Range<usize>, f64)> {
    let starts = || std::iter::once(0).chain(series.changes.iter().map(|change| change.index));
    let parts = starts().zip(starts().skip(1).chain([series.points.len()]));
    let mean = |part: Range<usize>| {
        let values: Vec<f64> = series.points[part.clone()].iter().map(|point| point.value).collect();
        Some((part, benchmaster_stats::mean(&values)?))
    };
    parts.filter_map(|(start, end)| mean(start..end)).collect()
}

/// The values, the means between changes, and the changes.
pub(crate) fn of_history(series: &HistorySeries, number: usize) -> Figure {
    let (factor, unit) = axis_unit(series.unit.unwrap_or(Unit::Ratio));
    let place = |at: usize| at as f64 + 1.0;
    let places = series.points.iter().enumerate().map(|(at, point)| (place(at), point.value * factor));
    let points = Line {
        size: Some(7),
        text: series.points.iter().map(|point| point.label.clone()).collect(),
        ..Line::through("result", 0, Mode::Markers, places)
    };
    let mut lines = vec![points];
    for (number, (part, mean)) in parts(series).into_iter().enumerate() {
        let ends = [place(part.start) - 0.4, place(part.end) - 0.6].map(|x| (x, mean * factor));
        lines.push(Line {
            group: Some("mean".into()),
            unlisted: number > 0,
            ..Line::through("mean between changes", 1, Mode::Lines, ends)
        });
    }
    let changes = series.changes.iter().map(|change| {
        let by = change.relative.map_or("from 0".into(), change_text);
        (place(change.index) - 0.5, by)
    });
    let runs: Vec<usize> = series.points.iter().map(|point| point.runs).collect();
    let (least, most) = (runs.iter().min().copied().unwrap_or(0), runs.iter().max().copied().unwrap_or(0));
    let n = if least == most { least.to_string() } else { format!("{least} to {most}") };
    Figure {
        id: format!("history-{number}"),
        title: name_of(series),
        note: format!(
            "{}, in order; each is a mean over runs (n = {n}). Vertical lines mark changes and their sizes. {}",
            format::plural(series.points.len(), "result"),
            series.sentences.join(" ")
        ),
        height: 380,
        x: Axis::titled("result"),
        y: Axis { title: series.response.clone(), unit, zero: true, ..Axis::default() },
        views: vec![View { label: "history".into(), lines, marks: changes.collect(), ..View::default() }],
        ..Figure::default()
    }
}
