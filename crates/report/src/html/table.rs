//! Tables of the page.

use benchmaster_record::results::Severity;
use serde::Serialize;

use super::figure::short;

/// A table that can be sorted by each column.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Table {
    pub(super) caption: String,
    pub(super) head: Vec<Head>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// What to mind when reading it.
    pub(super) note: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Head {
    pub(super) text: String,
    pub(super) number: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Cell {
    pub(super) text: String,
    /// What the column is sorted by where that is not the text.
    pub(super) sort: Option<f64>,
    /// `invalid`, `warning`, `note`, `none` or nothing.
    pub(super) class: &'static str,
}

impl Table {
    /// A table without rows; a column whose name begins with `#` holds numbers.
    pub(super) fn new(caption: impl Into<String>, head: &[&str]) -> Self {
        let head = head.iter().map(|name| match name.strip_prefix('#') {
            Some(name) => Head { text: name.into(), number: true },
            None => Head { text: (*name).into(), number: false },
        });
        Self { caption: caption.into(), head: head.collect(), rows: Vec::new(), note: String::new() }
    }

    /// Keeps the first rows, and says so.
    pub(super) fn cap(&mut self, limit: usize) {
        let all = self.rows.len();
        if all > limit {
            self.rows.truncate(limit);
            let space = if self.note.is_empty() { "" } else { " " };
            self.note += &format!("{space}The first {limit} of {all} rows; `benchmaster export` writes all.");
        }
    }

    pub(super) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl Cell {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), sort: None, class: "" }
    }

    pub(super) fn number(text: impl Into<String>, value: f64) -> Self {
        Self { text: text.into(), sort: value.is_finite().then(|| short(value)), class: "" }
    }

    pub(super) fn count(n: usize) -> Self {
        Self::number(crate::format::count(n as u64), n as f64)
    }

    /// Nothing to tell.
    pub(super) fn none() -> Self {
        Self { class: "none", ..Self::text("–") }
    }

    pub(super) fn marked(self, severity: Option<Severity>) -> Self {
        Self { class: severity.map_or("", class), ..self }
    }
}

/// The style of a severity.
pub(super) fn class(severity: Severity) -> &'static str {
    match severity {
        Severity::Invalid => "invalid",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}
