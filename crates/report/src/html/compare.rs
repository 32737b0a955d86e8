//! Pages of more than one result: two side by side, and a series of them.

mod differences;
mod history;

use benchmaster_analysis::Analysis;
use benchmaster_analysis::compare::{
    CellComparison, Comparison, Direction, ResponseComparison, Side, Verdict,
};
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_record::results::{StudyResults, Unit};
use benchmaster_store::record::Severity;
use serde::Serialize;

use super::figure::{Axis, Figure, Line, Mode, Values, View, short};
use super::page::{PlotHead, head};
use super::{HtmlError, document};
use crate::document::{Cell, Style, Table};
use crate::format::{self, rounded};

pub use history::history;

/// One of two results that are compared, with what it says.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// What it is called: its directory.
    pub name: &'a str,
    /// What was stored.
    pub results: &'a StudyResults,
    /// What the numbers say.
    pub analysis: &'a Analysis,
    /// What was found in the runs.
    pub diagnosis: &'a Diagnosis,
}

/// All that the template shows.
#[derive(Debug, Serialize)]
struct Page {
    brand: &'static str,
    title: String,
    facts: Vec<String>,
    answer: Vec<String>,
    alerts: Vec<Alert>,
    sections: Vec<Section>,
    version: &'static str,
}

/// Something that speaks against the comparison.
#[derive(Debug, Serialize)]
struct Alert {
    class: &'static str,
    title: String,
    text: String,
}

#[derive(Debug, Default, Serialize)]
struct Section {
    id: &'static str,
    title: &'static str,
    text: Vec<String>,
    plots: Vec<PlotHead>,
    tables: Vec<Table>,
}

impl Section {
    fn new(id: &'static str, title: &'static str) -> Self {
        Self { id, title, ..Self::default() }
    }
}

impl Page {
    fn render(mut self, figures: &[&Figure]) -> Result<String, HtmlError> {
        let empty = |section: &Section| {
            section.text.is_empty() && section.plots.is_empty() && section.tables.is_empty()
        };
        self.sections.retain(|section| !empty(section));
        document("compare.html", &self.title, figures, &self)
    }
}

/// Makes the page of a comparison: what changed, what is the same and what is undecided; then treatments, latencies, calls,
/// findings and conditions side by side.
///
/// # Errors
/// Only on defects of this program.
pub fn compare(comparison: &Comparison, a: Compared<'_>, b: Compared<'_>) -> Result<String, HtmlError> {
    let figures: Vec<Figure> =
        comparison.responses.iter().enumerate().filter_map(|(i, r)| ratios(comparison, r, i)).collect();
    let mut verdicts = Section::new("verdicts", "What changed");
    verdicts.tables = verdict_tables(comparison);
    let mut plots = Section::new("ratios", "B against A");
    plots.plots = figures.iter().map(head).collect();
    let mut latencies = Section::new("latencies", "Latencies");
    latencies.tables.extend(differences::latencies(a, b));
    let mut calls = Section::new("calls", "Calls over the wire");
    calls.tables.extend(differences::calls(a, b));
    let mut found = Section::new("findings", "Findings");
    found.tables = differences::findings(a.diagnosis, b.diagnosis);
    found.text.extend(found.tables.is_empty().then(|| "Nothing was found in either result.".into()));
    let mut conditions = Section::new("conditions", "Conditions that differ");
    let listed = [
        ("What should be the same and is not", &comparison.forced),
        ("What differs besides", &comparison.noted),
    ];
    conditions.tables =
        listed.into_iter().filter_map(|(title, list)| differences::conditions(title, list)).collect();
    conditions
        .text
        .extend(conditions.tables.is_empty().then(|| "No condition that is stored differs.".into()));
    let page = Page {
        brand: "Benchmaster comparison",
        title: format!("{} against {}", b.name, a.name),
        facts: vec![
            side("A", a.name, &comparison.a),
            side("B", b.name, &comparison.b),
            format!(
                "{} intervals; differences within ±{} do not matter",
                format::percent(comparison.confidence),
                format::exact_percent(comparison.band)
            ),
        ],
        answer: answer(comparison),
        alerts: alerts(comparison),
        sections: vec![verdicts, plots, latencies, calls, found, conditions],
        version: env!("CARGO_PKG_VERSION"),
    };
    page.render(&figures.iter().collect::<Vec<_>>())
}

fn side(letter: &str, name: &str, side: &Side) -> String {
    let started =
        side.started.map_or("never run".into(), |t| t.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    let left_out = if side.left_out > 0 { format!(", {} left out", side.left_out) } else { String::new() };
    format!(
        "{letter}: {name} ({}, Benchmaster {}), {}{left_out}, {started}",
        side.study,
        side.version,
        format::plural(side.runs, "run")
    )
}

/// What changed, then how many comparisons there were and what limits them.
fn answer(comparison: &Comparison) -> Vec<String> {
    let changed = comparison.responses.iter().flat_map(|response| {
        let cells = response.cells.iter().filter(|cell| cell.verdict == Verdict::Changed);
        cells.map(|cell| format!("{}, {}: {}", response.response, named(&cell.cell), cell.sentence))
    });
    let mut sentences: Vec<String> = changed.take(3).collect();
    sentences.extend(comparison.sentences.iter().cloned());
    sentences
}

fn named(cell: &str) -> &str {
    if cell.is_empty() { "all" } else { cell }
}

fn alerts(comparison: &Comparison) -> Vec<Alert> {
    let mut alerts = Vec::new();
    if !comparison.forced.is_empty() {
        alerts.push(Alert {
            class: "invalid",
            title: "The comparison was forced".into(),
            text: format!(
                "{} that should be the same differ: a difference of the results need not come from what was changed.",
                format::plural(comparison.forced.len(), "condition")
            ),
        });
    }
    for (cells, whose) in [(&comparison.only_a, "A"), (&comparison.only_b, "B")] {
        if !cells.is_empty() {
            alerts.push(Alert {
                class: "note",
                title: format!("Only in {whose}, and not compared"),
                text: cells.join(", "),
            });
        }
    }
    alerts
}

/// A table of what changed, one of what cannot be told, one of what is the same.
fn verdict_tables(comparison: &Comparison) -> Vec<Table> {
    let kinds =
        [(Verdict::Changed, "Changed"), (Verdict::Same, "The same"), (Verdict::Undecided, "Undecided")];
    let tables = kinds.into_iter().map(|(verdict, title)| {
        let head = ["response", "cell", "#A", "#B", "#B/A", "#p", "#runs", "verdict", "what it says"];
        // Of a single one the title tells.
        let (shown_from, title) = match comparison.responses.as_slice() {
            [only] => (1, format!("{title}: {}", only.response)),
            _ => (0, title.to_owned()),
        };
        let mut table = Table::new(title, &head[shown_from..]);
        for response in &comparison.responses {
            for cell in response.cells.iter().filter(|cell| cell.verdict == verdict) {
                table.row(row(response, cell).into_iter().skip(shown_from));
            }
            if let Some(overall) = response.overall.as_ref().filter(|overall| overall.verdict == verdict) {
                let cells = [
                    Cell::text(&response.response),
                    Cell::text(format!("mean of {} cells", overall.cells)),
                    amount(overall.a, None, response.unit),
                    amount(overall.b, None, response.unit),
                    ratio(overall.ratio, overall.ratio_interval),
                    p(overall.p_holm),
                    Cell::none(),
                    word(overall.verdict, overall.direction),
                    told(&overall.sentence),
                ];
                table.row(cells.into_iter().skip(shown_from));
            }
        }
        table
    });
    let mut tables: Vec<Table> = tables.filter(|table| !table.rows.is_empty()).collect();
    if let Some(last) = tables.last_mut() {
        last.note = format!(
            "A, B: mean ± half width over runs. B/A: ratio of the means with its interval. p: Welch's test, by Holm's \
             correction for {}.",
            format::plural(comparison.family, "test")
        );
    }
    tables
}

fn row(response: &ResponseComparison, cell: &CellComparison) -> Vec<Cell> {
    let estimate = |of: &Option<benchmaster_analysis::Estimate>| match of {
        Some(e) => amount(e.mean, e.half_width, response.unit),
        None => Cell::none(),
    };
    vec![
        Cell::text(&response.response),
        Cell::text(named(&cell.cell)),
        estimate(&cell.a),
        estimate(&cell.b),
        cell.ratio.as_ref().map_or_else(Cell::none, |found| ratio(found.ratio, found.interval)),
        cell.welch.as_ref().map_or_else(Cell::none, |welch| p(welch.p_holm)),
        Cell::text(format!("{} + {}", cell.a_values.len(), cell.b_values.len())),
        word(cell.verdict, cell.direction),
        told(&cell.sentence),
    ]
}

fn word(verdict: Verdict, direction: Option<Direction>) -> Cell {
    let (word, severity) = match (verdict, direction) {
        (Verdict::Changed, Some(Direction::Better)) => ("better", Some(Severity::Note)),
        (Verdict::Changed, Some(Direction::Worse)) => ("worse", Some(Severity::Invalid)),
        (Verdict::Changed, None) => ("changed", Some(Severity::Invalid)),
        (Verdict::Undecided, _) => ("undecided", Some(Severity::Warning)),
        (Verdict::Same, _) => ("the same", None),
    };
    Cell::text(word).marked(severity)
}

/// A sentence, in a column that is wide enough for it.
fn told(sentence: &str) -> Cell {
    Cell { style: Style::Sentence, ..Cell::text(sentence) }
}

fn amount(mean: f64, half_width: Option<f64>, unit: Unit) -> Cell {
    Cell::number(rounded(mean, half_width, unit, None).text(true), mean)
}

fn ratio(ratio: f64, interval: Option<[f64; 2]>) -> Cell {
    match interval {
        Some([low, high]) => Cell::number(format!("{ratio:.3} ({low:.3} to {high:.3})"), ratio),
        None if ratio.is_finite() => Cell::number(format!("{ratio:.3}"), ratio),
        None => Cell::none(),
    }
}

fn p(p: f64) -> Cell {
    Cell::number(if p < 0.0001 { "< 0.0001".into() } else { format!("{p:.4}") }, p)
}

/// Ratios of all cells of a response with their intervals, and the band of differences that do not matter.
fn ratios(comparison: &Comparison, response: &ResponseComparison, number: usize) -> Option<Figure> {
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
            ..Line::new(name, color, Mode::Markers, Values::numbers(found.iter().map(|(at, _)| place(*at))))
                .at(Values::numbers(found.iter().map(|(_, cell)| cell.1)))
        })
    });
    let lines: Vec<Line> = lines.collect();
    let band = comparison.band;
    Some(Figure {
        id: format!("ratio-{number}"),
        workload: String::new(),
        title: format!("{}: B over A", response.response),
        note: format!(
            "Ratio of the means of B and A in every cell, with its {} interval; the number of runs is in the table above. 1 is no \
             change. Between the dashed lines differences of ±{} do not matter: an interval outside of them is a change, one \
             within them none, and one across them leaves it open.",
            format::percent(comparison.confidence),
            format::exact_percent(band)
        ),
        choice: "",
        height: 150 + 34 * all.len(),
        x: Axis { title: "B/A".into(), ..Axis::default() },
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
    })
}
