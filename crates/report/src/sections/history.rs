//! A series of results, and where it changes.

use benchmaster_analysis::compare::{Direction, History, HistorySeries, Verdict};
use benchmaster_record::results::{Severity, Unit};
use benchmaster_stats::monitor::HORIZON;

use crate::document::{Block, Cell, Document, Section, Table};
use crate::format::{self, Scale};
use crate::plots::compare::{name_of, of_history, parts};

/// Rows of the table of results.
const RESULTS: usize = 2_000;

/// What changed first, then every series with its changes.
pub fn document(history: &History) -> Document {
    let mut facts = vec![format!(
        "p: of series without a change, this share shows one as strong within {HORIZON} results; changes have p ≤ {}",
        history.p_max
    )];
    if history.min_change > 0.0 {
        facts.push(format!("Changes larger than {}", format::percent(history.min_change)));
    }
    let first = history.series.first().map_or("", |series| series.response.as_str());
    let several = history.series.iter().any(|series| series.response != first);
    let of_series = |series: &&HistorySeries| {
        let sentences = series.sentences.iter().map(|sentence| Block::Sentence(sentence.clone()));
        std::iter::once(segments(series).into()).chain(sentences).collect::<Vec<Block>>()
    };
    let (changed, same): (Vec<_>, Vec<_>) =
        history.series.iter().partition(|series| !series.changes.is_empty());
    let unchanged: Vec<Block> = same.iter().flat_map(of_series).collect();
    let unchanged = if unchanged.is_empty() || changed.is_empty() || history.count(Verdict::Undecided) > 0 {
        unchanged
    } else {
        vec![Block::Fold(format!("Unchanged: {} series", same.len()), unchanged)]
    };
    let plots = history.series.iter().enumerate().map(|(number, series)| of_history(series, number));
    Document {
        kind: "Benchmaster history",
        title: if several { "History".into() } else { format!("History of {first}") },
        lead: Vec::new(),
        sections: vec![
            Section::new("answer", "Answer")
                .unlisted()
                .brief([Block::Answer(answer(history)), Block::List(facts)]),
            Section::new("changes", "Changes").brief(changed.iter().flat_map(of_series)).brief(unchanged),
            Section::new("series", "Series").page(plots),
            Section::new("results", "All results").page([results(history)]),
        ],
    }
}

fn answer(history: &History) -> Vec<String> {
    let all = format!("{} series", history.series.len());
    let undecided = history.count(Verdict::Undecided);
    let open = match undecided {
        0 => String::new(),
        n if n == history.series.len() => {
            return vec![format!("Cannot tell yet whether anything changed in {all}.")];
        }
        n => format!("; in {n} that is not known yet"),
    };
    vec![match history.count(Verdict::Changed) {
        0 => format!("No change found in {all}{open}."),
        n => format!("{n} of {all} changed{open}."),
    }]
}

/// The parts between changes, each with the change that it begins with.
fn segments(series: &HistorySeries) -> Table {
    let count = format::plural(series.points.len(), "result");
    let unit = series.unit.unwrap_or(Unit::Ratio);
    let scale = Scale::common(unit, series.points.iter().map(|point| point.value));
    // The first begins with no change.
    let changes = std::iter::once(None).chain(series.changes.iter().map(Some));
    Table::of(format!("{} ({count})", name_of(series)), changes.zip(parts(series)))
        .column("from", |(_, (part, _))| Cell::name(&series.points[part.start].label))
        .column("to", |(_, (part, _))| Cell::name(&series.points[part.end - 1].label))
        .column("#n|1", |(_, (part, _))| Cell::count(part.len()))
        .column("#mean", |(_, (_, mean))| Cell::amount(*mean, None, unit, scale))
        .column("#change", |(change, _)| match change {
            Some(change) if change.relative.is_none() => Cell::text("from 0"),
            change => Cell::change(change.and_then(|change| change.relative)),
        })
        .column("#p", |(change, _)| Cell::p(change.map(|change| change.p)))
        .column("direction|2", |(change, _)| match change.map(|change| change.direction) {
            Some(Some(Direction::Better)) => Cell::text("better").marked(Some(Severity::Note)),
            Some(Some(Direction::Worse)) => Cell::text("worse").marked(Some(Severity::Invalid)),
            Some(None) => Cell::text("unknown"),
            None => Cell::none(),
        })
        .table()
}

fn results(history: &History) -> Table {
    let points =
        history.series.iter().flat_map(|series| (1..).zip(&series.points).map(move |of| (series, of)));
    let mut table = Table::of("Results in order", points)
        .column("series", |(series, _)| Cell::text(name_of(series)))
        .column("#number", |(_, (number, _))| Cell::count(*number))
        .column("result", |(_, (_, point))| Cell::text(&point.label))
        .column("started (UTC)", |(_, (_, point))| {
            point.started.as_ref().map_or_else(Cell::none, Cell::instant)
        })
        .column("#mean", |(series, (_, point))| {
            Cell::amount(point.value, None, series.unit.unwrap_or(Unit::Ratio), None)
        })
        .column("#runs", |(_, (_, point))| Cell::count(point.runs))
        .table();
    table.cap(RESULTS);
    table
}
