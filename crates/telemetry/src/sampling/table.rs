//! Tables and lists of this crate that are files of text, taken apart when it is compiled: a mistake in one is an error of the
//! compiler.

use super::{Kind, MetricInfo};

/// The metrics of a sampler: lines `kind⇥name⇥unit⇥meaning`. A line without tabs says what an instance of those below it is;
/// an empty one, and none, that there is one only.
pub(crate) const fn metrics<const ROWS: usize>(text: &'static str) -> [MetricInfo; ROWS] {
    let mut metrics = [MetricInfo::gauge("", "", "", ""); ROWS];
    let (mut row, mut instance, mut rest) = (0, "", text);
    while let Some((line, after)) = split(rest, b'\n') {
        rest = after;
        if split(line, b'\t').is_none() {
            instance = line;
            continue;
        }
        let [kind, name, unit, about] = cells(line);
        let is_counter = matches!(kind.as_bytes(), b"counter");
        assert!(is_counter || matches!(kind.as_bytes(), b"gauge"), "a metric is a counter or a gauge");
        let kind = if is_counter { Kind::Counter } else { Kind::Gauge };
        metrics[row] = MetricInfo { name, unit, kind, about, instance };
        row += 1;
    }
    assert!(row == ROWS, "another number of metrics is expected");
    metrics
}

/// The rows of a table.
pub(crate) const fn rows<const CELLS: usize, const ROWS: usize>(
    text: &'static str,
) -> [[&'static str; CELLS]; ROWS] {
    let mut rows = [[""; CELLS]; ROWS];
    let (mut row, mut rest) = (0, text);
    while let Some((line, after)) = split(rest, b'\n') {
        rows[row] = cells(line);
        (row, rest) = (row + 1, after);
    }
    assert!(row == ROWS, "another number of rows is expected");
    rows
}

/// The names of some metrics, from a place in their list on.
pub(crate) const fn names<const COUNT: usize>(metrics: &[MetricInfo], first: usize) -> [&'static str; COUNT] {
    let mut names = [""; COUNT];
    let mut at = 0;
    while at < COUNT {
        names[at] = metrics[first + at].name;
        at += 1;
    }
    names
}

const fn cells<const CELLS: usize>(line: &'static str) -> [&'static str; CELLS] {
    let mut cells = [""; CELLS];
    let (mut cell, mut rest) = (0, line);
    while let Some((found, after)) = split(rest, b'\t') {
        cells[cell] = found;
        (cell, rest) = (cell + 1, after);
    }
    assert!(cell + 1 == CELLS, "another number of cells is expected");
    cells[cell] = rest;
    cells
}

const fn split(text: &str, separator: u8) -> Option<(&str, &str)> {
    let mut at = 0;
    while at < text.len() {
        if text.as_bytes()[at] == separator {
            let (before, after) = text.split_at(at);
            return Some((before, after.split_at(1).1));
        }
        at += 1;
    }
    None
}
