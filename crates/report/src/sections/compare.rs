//! Two results against each other.

use benchmaster_analysis::Estimate;
use benchmaster_analysis::compare::{
    Better, CellComparison, Comparison, Difference, Direction, OverallComparison, ResponseComparison, Side,
    Verdict,
};
use benchmaster_record::results::Severity;

use super::differences::{self, Compared};
use crate::document::{Block, Cell, Document, Note, Section, Table};
use crate::format::{self, Scale};
use crate::plots::compare::{named, ratios};

/// What changed, what is the same and what is undecided; with both sides also latencies, calls and findings beside each
/// other.
pub fn document(comparison: &Comparison, sides: Option<[Compared<'_>; 2]>) -> Document {
    let names = sides.map_or(["A", "B"], |sides| sides.map(|side| side.name));
    let facts = vec![
        side("A", names[0], &comparison.a),
        side("B", names[1], &comparison.b),
        format!(
            "{} intervals; differences within ±{} are negligible",
            format::percent(comparison.confidence),
            format::exact_percent(comparison.band)
        ),
    ];
    let mut sections = vec![
        Section::new("answer", "Answer")
            .unlisted()
            .brief([Block::Answer(answer(comparison)), Block::List(facts)])
            .brief(notes(comparison)),
        verdicts(comparison),
        Section::new("ratios", "B against A")
            .page(comparison.responses.iter().enumerate().filter_map(|(i, one)| ratios(comparison, one, i))),
    ];
    if let Some([a, b]) = sides {
        sections.extend([
            Section::new("latencies", "Latencies").full(differences::latencies(a, b)),
            Section::new("calls", "RPCs").full(differences::calls(a, b)),
            Section::new("findings", "Findings").full(differences::findings(a.diagnosis, b.diagnosis)),
        ]);
    }
    let conditions = [
        conditions("Differ, but should be the same", &comparison.forced),
        conditions("Other differences", &comparison.noted),
    ];
    let none = conditions.iter().all(Option::is_none).then_some("No stored condition differs.");
    let conditions = conditions.into_iter().flatten();
    sections.push(Section::new("conditions", "Conditions that differ").brief(none).brief(conditions));
    let title = format!("{} against {}", names[1], names[0]);
    Document { kind: "Benchmaster comparison", title, lead: Vec::new(), sections }
}

fn side(letter: &str, name: &str, side: &Side) -> String {
    let started =
        side.started.map_or("never run".into(), |t| t.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    let left_out = if side.left_out > 0 { format!(", {} excluded", side.left_out) } else { String::new() };
    let name = if name == letter { String::new() } else { format!("{name}, ") };
    format!(
        "{letter}: {name}{} (Benchmaster {}), {}{left_out}, {started}",
        side.study,
        side.version,
        format::plural(side.runs, "run")
    )
}

/// Changes, then the number of comparisons and what limits them.
fn answer(comparison: &Comparison) -> Vec<String> {
    let changed = comparison.responses.iter().flat_map(|response| {
        let cells = response.cells.iter().filter(|cell| cell.verdict == Verdict::Changed);
        cells.map(|cell| format!("{}, {}: {}", response.response, named(&cell.cell), cell.sentence))
    });
    changed.take(3).chain(comparison.sentences.iter().cloned()).collect()
}

fn notes(comparison: &Comparison) -> Vec<Note> {
    let note = |severity, mark, text| Note { severity: Some(severity), mark, text, ..Note::default() };
    let forced = (!comparison.forced.is_empty()).then(|| {
        let named = match comparison.forced.len() {
            1 => "1 condition that should be the same differs; it".into(),
            n => format!("{n} conditions that should be the same differ; they"),
        };
        let text = format!("{named} may explain any difference of the results.");
        note(Severity::Invalid, "FORCED", text)
    });
    let only = [("only in A", &comparison.only_a), ("only in B", &comparison.only_b)];
    let only = only.into_iter().filter(|(_, cells)| !cells.is_empty());
    let only =
        only.map(|(mark, cells)| note(Severity::Note, mark, format!("{}; not compared.", cells.join(", "))));
    forced.into_iter().chain(only).collect()
}

/// A table for each response: first those in which something changed, then those that are undecided, then the rest.
fn verdicts(comparison: &Comparison) -> Section {
    let is = |response: &ResponseComparison, verdict| {
        let cells = response.cells.iter().map(|cell| cell.verdict);
        let mut all = cells.chain(response.overall.as_ref().map(|overall| overall.verdict));
        match verdict {
            Verdict::Same => all.all(|one| one == Verdict::Same),
            verdict => all.any(|one| one == verdict),
        }
    };
    // What stands for workloads is one table where there is nothing to compare but workloads.
    let is_row = |response: &&ResponseComparison| response.headline && response.cells.len() == 1;
    let (mut rows, others): (Vec<_>, Vec<_>) = comparison.responses.iter().partition(is_row);
    rows.sort_by_key(|response| match response.verdict {
        Verdict::Changed => 0,
        Verdict::Undecided => 1,
        Verdict::Same => 2,
    });
    let (changed, others): (Vec<_>, Vec<_>) =
        others.into_iter().partition(|response| is(response, Verdict::Changed));
    let (same, open): (Vec<_>, Vec<_>) = others.into_iter().partition(|response| is(response, Verdict::Same));
    let tables = |all: Vec<&ResponseComparison>| all.into_iter().map(|one| table(&[one])).collect::<Vec<_>>();
    let (changed, open, same) = (tables(changed), tables(open), tables(same));
    let hint = format!(
        "A, B: mean ± half width over runs. B/A: ratio of the means with its {} interval. Same: its {} interval is \
         within the band. p: Welch's test of the means and the rank test, by Holm's correction for {}{}. Overall: mean of \
         the cells.",
        format::percent(comparison.confidence),
        format::percent(2.0 * comparison.confidence - 1.0),
        format::plural(comparison.family, "test"),
        match comparison.other_family {
            0 => String::new(),
            others =>
                format!(" of headline responses, and for {} of all others", format::plural(others, "test")),
        }
    );
    let groups = [("Changed", changed), ("Undecided", open), ("The same", same)];
    let mut section = Section::new("verdicts", "What changed");
    if !rows.is_empty() {
        section = section.brief([table(&rows)]);
    }
    for (title, tables) in groups.into_iter().filter(|(_, tables)| !tables.is_empty()) {
        // What is most important stays unfolded.
        section = match section.parts.len() {
            0 => section.brief(tables),
            _ => {
                let title = format!("{title}: {}", format::plural(tables.len(), "response"));
                section.brief([Block::Fold(title, tables.into_iter().map(Block::from).collect())])
            }
        };
    }
    section.brief([Block::Hint(hint)])
}

/// A response with its cells, or responses of one cell each.
fn table(responses: &[&ResponseComparison]) -> Table {
    let (title, first) = match responses {
        [response] => {
            let better = match response.better {
                Some(Better::Larger) => " (larger is better)",
                Some(Better::Smaller) => " (smaller is better)",
                None => "",
            };
            (format!("{}{better}", response.response), "cell")
        }
        _ => ("Responses".to_owned(), "response"),
    };
    let head = [
        first,
        "verdict",
        "#A",
        "#B",
        "#n|1",
        "#B − A|4",
        "#B/A",
        "#p (means)|2",
        "#p (ranks)|2",
        "conclusion",
    ];
    let mut table = Table::new(title, &head);
    for response in responses {
        add_rows(&mut table, response, responses.len() > 1);
    }
    if table.rows.len() == 1 {
        table.leave_out(0);
    }
    table
}

fn add_rows(table: &mut Table, response: &ResponseComparison, is_named: bool) {
    let means = response.cells.iter().flat_map(|cell| [&cell.a, &cell.b]).flatten().map(|e| e.mean);
    let scale = Scale::common(response.unit, means);
    let half = |interval: &[f64; 2]| Some((interval[1] - interval[0]) / 2.0);
    let of_cell = |cell: &CellComparison| {
        let estimate = |of: &Option<Estimate>| match of {
            Some(of) => Cell::estimate(of.mean, of.half_width, response.unit, scale),
            None => Cell::none(),
        };
        [
            Cell::name(if is_named { &response.response } else { named(&cell.cell) }),
            word(cell.verdict, cell.direction),
            estimate(&cell.a),
            estimate(&cell.b),
            Cell::text(format!("{} + {}", cell.a_values.len(), cell.b_values.len())),
            cell.welch.as_ref().map_or_else(Cell::none, |w| {
                // A difference of 0 has the unit of what it is the difference of.
                let scale = scale.or(cell.a.as_ref().map(|a| Scale::of(response.unit, a.mean)));
                Cell::amount(w.difference, half(&w.interval), response.unit, scale)
            }),
            cell.ratio.as_ref().map_or_else(Cell::none, |found| ratio(found.ratio, found.interval)),
            Cell::p(cell.welch.as_ref().map(|welch| welch.p_holm)),
            Cell::p(cell.ranks.as_ref().map(|ranks| ranks.p_holm)),
            Cell::sentence(&cell.sentence),
        ]
    };
    response.cells.iter().for_each(|cell| table.row(of_cell(cell)));
    let of_all = |overall: &OverallComparison| {
        [
            Cell::text("overall"),
            word(overall.verdict, overall.direction),
            Cell::amount(overall.a, None, response.unit, scale),
            Cell::amount(overall.b, None, response.unit, scale),
            Cell::none(),
            Cell::amount(
                overall.difference,
                half(&overall.interval),
                response.unit,
                scale.or(Some(Scale::of(response.unit, overall.a))),
            ),
            ratio(overall.ratio, overall.ratio_interval),
            Cell::p(Some(overall.p_holm)),
            Cell::none(),
            Cell::sentence(&overall.sentence),
        ]
    };
    table.rows.extend(response.overall.as_ref().map(|overall| of_all(overall).into()));
}

fn word(verdict: Verdict, direction: Option<Direction>) -> Cell {
    let (word, severity) = match (verdict, direction) {
        (Verdict::Changed, Some(Direction::Better)) => ("better", Some(Severity::Note)),
        (Verdict::Changed, Some(Direction::Worse)) => ("WORSE", Some(Severity::Invalid)),
        (Verdict::Changed, None) => ("CHANGED", Some(Severity::Invalid)),
        (Verdict::Undecided, _) => ("undecided", Some(Severity::Warning)),
        (Verdict::Same, _) => ("same", None),
    };
    Cell::text(word).marked(severity)
}

/// `1.032 (1.010 to 1.054)`.
fn ratio(ratio: f64, interval: Option<[f64; 2]>) -> Cell {
    let show = |value: f64| format::fixed(value, if value.abs() >= 100.0 { 1 } else { 3 });
    match interval {
        Some([low, high]) => {
            Cell::number(format!("{} ({} to {})", show(ratio), show(low), show(high)), ratio)
        }
        None => Cell::some(Some(ratio).filter(|ratio| ratio.is_finite()), show),
    }
}

fn conditions(title: &str, differences: &[Difference]) -> Option<Table> {
    Table::of(title, differences)
        .column("condition", |one| Cell::text(&one.key))
        .column("A", |one| Cell::text(&one.a))
        .column("B", |one| Cell::text(&one.b))
        .filled()
}
