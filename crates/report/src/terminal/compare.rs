//! Two results against each other, and a series of them, as text.

use benchmaster_analysis::Estimate;
use benchmaster_analysis::compare::{
    Better, CellComparison, Comparison, Difference, Direction, History, HistoryMethod, HistorySeries,
    ResponseComparison, Side, Verdict,
};
use benchmaster_record::results::{Severity, Unit};

use super::TextOptions;
use super::grid::{Column, Text};
use crate::format::{self, Scale, rounded};

/// Cells up to which each has a sentence of its own; beyond it only those that changed have.
const SENTENCES: usize = 8;

/// What a comparison says.
pub fn comparison_text(comparison: &Comparison, options: &TextOptions) -> String {
    let mut text = Text::new(options);
    side(&mut text, "A", &comparison.a);
    side(&mut text, "B", &comparison.b);
    text.wrapped(
        "",
        &format!(
            "{} intervals; differences within ±{} do not matter.",
            format::percent(comparison.confidence),
            format::exact_percent(comparison.band)
        ),
    );
    if !comparison.forced.is_empty() {
        text.section("FORCED: what should be the same differs");
        different(&mut text, &comparison.forced);
    }
    if !comparison.noted.is_empty() {
        text.section("differs besides");
        different(&mut text, &comparison.noted);
    }
    for response in &comparison.responses {
        of_response(&mut text, response);
    }
    text.section("in short");
    for sentence in &comparison.sentences {
        text.wrapped("", sentence);
    }
    text.finish()
}

/// What a history says.
pub fn history_text(history: &History, options: &TextOptions) -> String {
    let mut text = Text::new(options);
    let how = match history.method {
        HistoryMethod::EDivisive => format!("E-divisive with permutations (seed {})", history.seed),
        HistoryMethod::TTest => "t tests within windows".into(),
    };
    text.wrapped("", &format!("Change points by {how}, p ≤ {}.", history.p_max));
    for series in &history.series {
        of_series(&mut text, series);
    }
    text.finish()
}

fn side(text: &mut Text, name: &str, side: &Side) {
    let started =
        side.started.map_or("never run".into(), |t| t.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    let left_out = if side.left_out > 0 { format!(", {} left out", side.left_out) } else { String::new() };
    text.wrapped(
        "   ",
        &format!("{name}: {}, {}{left_out}, {started}", side.study, format::plural(side.runs, "run")),
    );
}

fn different(text: &mut Text, differences: &[Difference]) {
    text.table(
        vec![
            Column::text("what", differences.iter().map(|d| d.key.clone()).collect()),
            Column::text("A", differences.iter().map(|d| d.a.clone()).collect()),
            Column::text("B", differences.iter().map(|d| d.b.clone()).collect()),
        ],
        &[],
    );
}

fn of_response(text: &mut Text, response: &ResponseComparison) {
    let better = match response.better {
        Some(Better::Larger) => " (larger is better)",
        Some(Better::Smaller) => " (smaller is better)",
        None => "",
    };
    text.section(&format!("{}{better}", response.response));
    let cells = &response.cells;
    let means = cells.iter().flat_map(|c| [&c.a, &c.b]).flatten().map(|e| e.mean);
    let scale = Scale::common(response.unit, means);
    let show = |value: f64, half_width| rounded(value, half_width, response.unit, scale).text(true);
    let estimate = |e: &Option<Estimate>| match e {
        Some(e) => show(e.mean, e.half_width),
        None => "no run".into(),
    };
    let half = |interval: &[f64; 2]| (interval[1] - interval[0]) / 2.0;
    let overall = response.overall.as_ref();
    let rows = |cell: &dyn Fn(&CellComparison) -> String, last: Option<String>| -> Vec<String> {
        cells.iter().map(cell).chain(last).collect()
    };
    let mut columns = Vec::new();
    if cells.len() > 1 {
        columns.push(Column::text("cell", rows(&|c| c.cell.clone(), overall.map(|_| "overall".into()))));
    }
    columns.push(Column::number("A", rows(&|c| estimate(&c.a), overall.map(|o| show(o.a, None))), 0));
    columns.push(Column::number("B", rows(&|c| estimate(&c.b), overall.map(|o| show(o.b, None))), 0));
    columns.push(Column::number("n", rows(&runs, overall.map(|_| String::new())), 1));
    columns.push(Column::number(
        "B − A",
        rows(
            &|c| c.welch.as_ref().map_or("-".into(), |w| show(w.difference, Some(half(&w.interval)))),
            overall.map(|o| show(o.difference, Some(half(&o.interval)))),
        ),
        4,
    ));
    columns.push(Column::number(
        "B/A",
        rows(
            &|c| c.ratio.as_ref().map_or("-".into(), |r| ratio(r.ratio, r.interval)),
            overall.map(|o| ratio(o.ratio, o.ratio_interval)),
        ),
        0,
    ));
    columns.push(Column::number(
        "p (means)",
        rows(
            &|c| c.welch.as_ref().map_or("-".into(), |w| p_value(w.p_holm)),
            overall.map(|o| p_value(o.p_holm)),
        ),
        2,
    ));
    columns.push(Column::number(
        "p (ranks)",
        rows(&|c| c.ranks.as_ref().map_or("-".into(), |r| p_value(r.p_holm)), overall.map(|_| String::new())),
        2,
    ));
    let judged: Vec<_> = cells
        .iter()
        .map(|c| (c.verdict, c.direction))
        .chain(overall.map(|o| (o.verdict, o.direction)))
        .collect();
    columns.push(Column::text("verdict", judged.iter().map(|(v, d)| verdict(*v, *d).into()).collect()));
    let severities: Vec<_> = judged.iter().map(|(v, d)| severity(*v, *d)).collect();
    text.table(columns, &severities);
    for cell in cells {
        if cells.len() <= SENTENCES || cell.verdict == Verdict::Changed {
            let whose = if cells.len() > 1 { format!("{}: ", cell.cell) } else { String::new() };
            text.wrapped("  ", &format!("{whose}{}", cell.sentence));
        }
    }
    if let Some(overall) = overall {
        text.wrapped("  ", &format!("overall (mean of {} cells): {}", overall.cells, overall.sentence));
    }
}

fn runs(cell: &CellComparison) -> String {
    format!("{} + {}", cell.a_values.len(), cell.b_values.len())
}

/// `1.032 (1.010 to 1.054)`.
fn ratio(ratio: f64, interval: Option<[f64; 2]>) -> String {
    let show = |value: f64| if value.abs() >= 100.0 { format!("{value:.1}") } else { format!("{value:.3}") };
    match interval {
        Some([low, high]) => format!("{} ({} to {})", show(ratio), show(low), show(high)),
        None if ratio.is_finite() => show(ratio),
        None => "-".into(),
    }
}

fn p_value(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".into() } else { format!("{p:.4}") }
}

fn verdict(verdict: Verdict, direction: Option<Direction>) -> &'static str {
    match (verdict, direction) {
        (Verdict::Changed, Some(Direction::Better)) => "better",
        (Verdict::Changed, Some(Direction::Worse)) => "WORSE",
        (Verdict::Changed, None) => "CHANGED",
        (Verdict::Same, _) => "same",
        (Verdict::Undecided, _) => "undecided",
    }
}

fn severity(verdict: Verdict, direction: Option<Direction>) -> Option<Severity> {
    match (verdict, direction) {
        (Verdict::Changed, Some(Direction::Better)) => Some(Severity::Note),
        (Verdict::Changed, _) => Some(Severity::Invalid),
        (Verdict::Undecided, _) => Some(Severity::Warning),
        (Verdict::Same, _) => None,
    }
}

fn of_series(text: &mut Text, series: &HistorySeries) {
    let cell = series.cell.as_ref().map_or(String::new(), |cell| format!(", {cell}"));
    text.section(&format!("{}{cell} ({})", series.response, format::plural(series.points.len(), "result")));
    let unit = series.unit.unwrap_or(Unit::Ratio);
    let scale = Scale::common(unit, series.points.iter().map(|p| p.value));
    let show = |value: f64| rounded(value, None, unit, scale).text(true);
    // The segments between changes.
    let starts: Vec<usize> = std::iter::once(0).chain(series.changes.iter().map(|c| c.index)).collect();
    if !series.changes.is_empty() {
        let ends = starts.iter().skip(1).copied().chain([series.points.len()]);
        let segments: Vec<_> = starts.iter().copied().zip(ends).collect();
        let label = |i: usize| series.points.get(i).map_or(String::new(), |p| p.label.clone());
        let mean = |&(from, to): &(usize, usize)| {
            let sum: f64 = series.points[from..to].iter().map(|p| p.value).sum();
            show(sum / (to - from) as f64)
        };
        let change = |i: usize| match i.checked_sub(1).and_then(|i| series.changes.get(i)) {
            Some(c) => c.relative.map_or("from 0".into(), |r| format!("{:+.1} %", 100.0 * r)),
            None => String::new(),
        };
        let p = |i: usize| {
            i.checked_sub(1).and_then(|i| series.changes.get(i)).map_or(String::new(), |c| p_value(c.p))
        };
        text.table(
            vec![
                Column::text("from", segments.iter().map(|s| label(s.0)).collect()),
                Column::text("to", segments.iter().map(|s| label(s.1 - 1)).collect()),
                Column::number("n", segments.iter().map(|s| (s.1 - s.0).to_string()).collect(), 1),
                Column::number("mean", segments.iter().map(mean).collect(), 0),
                Column::number("change", (0..segments.len()).map(change).collect(), 0),
                Column::number("p", (0..segments.len()).map(p).collect(), 0),
            ],
            &[],
        );
    }
    for sentence in &series.sentences {
        text.wrapped("", sentence);
    }
}
