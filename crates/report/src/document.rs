//! What is shown, apart from how: sentences and tables. The terminal, the page and Markdown each render them.

use benchmaster_store::record::Severity;
use serde::{Serialize, Serializer};

/// A part of a section.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Block {
    Sentence(String),
    Table(Table),
}

/// A table. The page sorts it by each column; the terminal leaves out columns that do not fit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) head: Vec<Head>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// What to mind when reading it.
    pub(crate) note: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Head {
    pub(crate) text: String,
    pub(crate) number: bool,
    /// Columns of a high rank are left out first where the width does not suffice; 0 = never.
    #[serde(skip)]
    pub(crate) rank: u8,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// What the column is sorted by where that is not the text.
    pub(crate) sort: Option<f64>,
    #[serde(rename = "class")]
    pub(crate) style: Style,
    /// A name from the study, which Markdown shows as code.
    #[serde(skip)]
    pub(crate) is_name: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    /// There is no value.
    Missing,
    /// A sentence, which needs a wide column.
    Sentence,
    Marked(Severity),
}

impl Style {
    fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Missing => "none",
            Self::Sentence => "words",
            Self::Marked(severity) => class(severity),
        }
    }
}

impl Serialize for Style {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.class())
    }
}

impl Table {
    /// A table without rows; a column whose name begins with `#` holds numbers.
    pub(crate) fn new(caption: impl Into<String>, head: &[&str]) -> Self {
        let head = head.iter().map(|name| {
            let (text, number) = name.strip_prefix('#').map_or((*name, false), |name| (name, true));
            Head { text: text.into(), number, rank: 0 }
        });
        Self { caption: caption.into(), head: head.collect(), rows: Vec::new(), note: String::new() }
    }

    /// Sets the ranks of columns.
    pub(crate) fn ranked(mut self, ranks: &[(&str, u8)]) -> Self {
        for head in &mut self.head {
            head.rank =
                ranks.iter().find(|(name, _)| *name == head.text).map_or(head.rank, |(_, rank)| *rank);
        }
        self
    }

    /// Leaves out the first column.
    pub(crate) fn without_first(&mut self) {
        self.head.remove(0);
        self.rows.iter_mut().for_each(|row| {
            row.remove(0);
        });
    }

    /// Keeps the first rows, and says so.
    pub(crate) fn cap(&mut self, limit: usize) {
        let all = self.rows.len();
        if all > limit {
            self.rows.truncate(limit);
            let space = if self.note.is_empty() { "" } else { " " };
            self.note += &format!("{space}The first {limit} of {all} rows; `benchmaster export` writes all.");
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), sort: None, style: Style::Plain, is_name: false }
    }

    pub(crate) fn name(text: impl Into<String>) -> Self {
        Self { is_name: true, ..Self::text(text) }
    }

    pub(crate) fn number(text: impl Into<String>, value: f64) -> Self {
        Self { sort: value.is_finite().then(|| short(value)), ..Self::text(text) }
    }

    pub(crate) fn count(n: usize) -> Self {
        Self::number(crate::format::count(n as u64), n as f64)
    }

    /// No value.
    pub(crate) fn none() -> Self {
        Self { style: Style::Missing, ..Self::text("–") }
    }

    pub(crate) fn marked(self, severity: Option<Severity>) -> Self {
        Self { style: severity.map_or(Style::Plain, Style::Marked), ..self }
    }

    pub(crate) fn severity(&self) -> Option<Severity> {
        match self.style {
            Style::Marked(severity) => Some(severity),
            _ => None,
        }
    }
}

/// The name of a severity in the page's styles.
pub(crate) fn class(severity: Severity) -> &'static str {
    match severity {
        Severity::Invalid => "invalid",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// A number with five significant digits: no plot shows more, and it takes less room.
pub(crate) fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    format!("{value:.4e}").parse().unwrap_or(value)
}
