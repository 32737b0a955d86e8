//! The page of a series of results, with its change points.

use benchmaster_analysis::compare::{Direction, History, HistoryMethod, HistorySeries};
use benchmaster_record::results::Unit;
use benchmaster_store::record::Severity;

use super::super::figure::{Axis, Figure, Line, Mode, Values, View, axis_unit};
use super::super::page::head;
use super::{HtmlError, Page, Section, amount, p};
use crate::document::{Cell, Table};
use crate::format;

/// Makes the page of a history: what changed first, then every series with its changes marked.
///
/// # Errors
/// Only on defects of this program.
pub fn history(history: &History) -> Result<String, HtmlError> {
    let figures: Vec<Figure> =
        history.series.iter().enumerate().map(|(n, series)| figure(series, n)).collect();
    let mut changes = Section::new("changes", "Changes");
    changes.tables.extend(changes_of(history));
    let mut series = Section::new("series", "Series");
    series.plots = figures.iter().map(head).collect();
    let mut all = Section::new("results", "All results");
    all.tables.push(results(history));
    let how = match history.method {
        HistoryMethod::EDivisive => format!("E-divisive with permutations (seed {})", history.seed),
        HistoryMethod::TTest => "t tests within windows".into(),
    };
    let first = history.series.first().map_or("", |series| series.response.as_str());
    let several = history.series.iter().any(|series| series.response != first);
    let page = Page {
        brand: "Benchmaster history",
        title: if several { "History".into() } else { format!("History of {first}") },
        facts: vec![
            format!("Change points by {how}, p ≤ {}", history.p_max),
            format!("Changes larger than {}", format::percent(history.min_change)),
        ],
        answer: answer(history),
        alerts: vec![],
        sections: vec![changes, series, all],
        version: env!("CARGO_PKG_VERSION"),
    };
    page.render(&figures.iter().collect::<Vec<_>>())
}

fn named(series: &HistorySeries) -> String {
    let cell = series.cell.as_ref().map_or(String::new(), |cell| format!(", {cell}"));
    format!("{}{cell}", series.response)
}

/// How many series changed, and the sentences of those that did.
fn answer(history: &History) -> Vec<String> {
    let changed: Vec<_> = history.series.iter().filter(|series| !series.changes.is_empty()).collect();
    let all = format!("{} series", history.series.len());
    let mut sentences = vec![match changed.len() {
        0 => format!("Nothing changed in {all}."),
        n => format!("{n} of {all} changed."),
    }];
    let told = if changed.is_empty() { history.series.iter().collect() } else { changed };
    for series in told.into_iter().take(4) {
        sentences.push(format!("{}: {}", named(series), series.sentences.join(" ")));
    }
    sentences
}

/// Every change with the levels around it.
fn changes_of(history: &History) -> Option<Table> {
    let head = ["series", "first result after it", "#from", "#to", "#change", "#p", "which way"];
    let mut table = Table::new("Change points", &head);
    for series in &history.series {
        let unit = series.unit.unwrap_or(Unit::Ratio);
        for change in &series.changes {
            let way = match change.direction {
                Some(Direction::Better) => Cell::text("better").marked(Some(Severity::Note)),
                Some(Direction::Worse) => Cell::text("worse").marked(Some(Severity::Invalid)),
                None => Cell::text("not known"),
            };
            table.row([
                Cell::text(named(series)),
                Cell::text(&change.first),
                amount(change.mean_before, None, unit),
                amount(change.mean_after, None, unit),
                change.relative.map_or_else(Cell::none, |r| Cell::number(format!("{:+.1} %", 100.0 * r), r)),
                p(change.p),
                way,
            ]);
        }
    }
    table.note = "From and to: means of the results since the change before, and until the next one.".into();
    (!table.rows.is_empty()).then_some(table)
}

fn results(history: &History) -> Table {
    let mut table =
        Table::new("Results in order", &["series", "#number", "result", "started (UTC)", "#mean", "#runs"]);
    for series in &history.series {
        for (number, point) in series.points.iter().enumerate() {
            let started = point.started.map(|t| t.strftime("%Y-%m-%d %H:%M:%S").to_string());
            table.row([
                Cell::text(named(series)),
                Cell::count(number + 1),
                Cell::text(&point.label),
                started.map_or_else(Cell::none, Cell::text),
                amount(point.value, None, series.unit.unwrap_or(Unit::Ratio)),
                Cell::count(point.runs),
            ]);
        }
    }
    table.cap(2_000);
    table
}

/// The values, the means between changes, and the changes.
fn figure(series: &HistorySeries, number: usize) -> Figure {
    let (factor, unit) = axis_unit(series.unit.unwrap_or(Unit::Ratio));
    let numbers = |values: Vec<f64>| Values::numbers(values);
    let place = |at: usize| at as f64 + 1.0;
    let points = Line {
        size: Some(7),
        text: series.points.iter().map(|point| point.label.clone()).collect(),
        ..Line::new(
            "result",
            0,
            Mode::Markers,
            numbers(series.points.iter().map(|point| point.value * factor).collect()),
        )
        .at(numbers((0..series.points.len()).map(place).collect()))
    };
    let mut lines = vec![points];
    let starts: Vec<usize> =
        std::iter::once(0).chain(series.changes.iter().map(|change| change.index)).collect();
    let ends = starts.iter().skip(1).copied().chain([series.points.len()]);
    for (segment, (from, to)) in starts.iter().copied().zip(ends).enumerate() {
        let values: Vec<f64> = series.points[from..to].iter().map(|point| point.value * factor).collect();
        let Some(mean) = benchmaster_stats::mean(&values) else { continue };
        lines.push(Line {
            group: Some("mean".into()),
            unlisted: segment > 0,
            ..Line::new("mean between changes", 1, Mode::Lines, numbers(vec![mean, mean]))
                .at(numbers(vec![place(from) - 0.4, place(to) - 0.6]))
        });
    }
    let changes = series.changes.iter().map(|change| {
        let by = change.relative.map_or("from 0".into(), |r| format!("{:+.1} %", 100.0 * r));
        (place(change.index) - 0.5, by)
    });
    let runs: Vec<usize> = series.points.iter().map(|point| point.runs).collect();
    let (least, most) = (runs.iter().min().copied().unwrap_or(0), runs.iter().max().copied().unwrap_or(0));
    let n = if least == most { least.to_string() } else { format!("{least} to {most}") };
    Figure {
        id: format!("history-{number}"),
        workload: String::new(),
        title: named(series),
        note: format!(
            "{}, in order; each is a mean over runs (n = {n}). Vertical lines are changes, with how much. {}",
            format::plural(series.points.len(), "result"),
            series.sentences.join(" ")
        ),
        choice: "",
        height: 380,
        x: Axis { title: "result".into(), ..Axis::default() },
        y: Axis { title: series.response.clone(), unit, zero: true, ..Axis::default() },
        views: vec![View { label: "history".into(), lines, marks: changes.collect(), ..View::default() }],
    }
}
