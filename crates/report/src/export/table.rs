//! A table with typed columns, and its form as CSV.

use std::io::{self, Write};

/// A table, column by column. All columns have the same length.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: Vec<Column>,
}

#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) values: Values,
}

/// The values of a column; `None` = not known or not applicable.
#[derive(Debug, PartialEq)]
pub(super) enum Values {
    Text(Vec<Option<String>>),
    Unsigned(Vec<Option<u64>>),
    Signed(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
    Flag(Vec<Option<bool>>),
}

/// Makes a table from rows of any type, one column after another.
pub(super) struct TableBuilder<'a, R> {
    rows: &'a [R],
    table: Table,
}

impl<'a, R> TableBuilder<'a, R> {
    pub(super) fn new(name: &'static str, rows: &'a [R]) -> Self {
        Self { rows, table: Table { name, columns: Vec::new() } }
    }

    pub(super) fn text<'r, S: Into<String>>(
        self,
        name: impl Into<String>,
        value: impl Fn(&'r R) -> Option<S>,
    ) -> Self
    where
        'a: 'r,
    {
        let values = self.rows.iter().map(|row| value(row).map(Into::into)).collect();
        self.column(name, Values::Text(values))
    }

    pub(super) fn unsigned(self, name: &str, value: impl Fn(&R) -> Option<u64>) -> Self {
        let values = self.rows.iter().map(value).collect();
        self.column(name, Values::Unsigned(values))
    }

    pub(super) fn signed(self, name: &str, value: impl Fn(&R) -> Option<i64>) -> Self {
        let values = self.rows.iter().map(value).collect();
        self.column(name, Values::Signed(values))
    }

    pub(super) fn real(self, name: &str, value: impl Fn(&R) -> Option<f64>) -> Self {
        let values = self.rows.iter().map(value).collect();
        self.column(name, Values::Real(values))
    }

    pub(super) fn flag(self, name: &str, value: impl Fn(&R) -> Option<bool>) -> Self {
        let values = self.rows.iter().map(value).collect();
        self.column(name, Values::Flag(values))
    }

    pub(super) fn build(self) -> Table {
        self.table
    }

    fn column(mut self, name: impl Into<String>, values: Values) -> Self {
        self.table.columns.push(Column { name: name.into(), values });
        self
    }
}

impl Table {
    pub(super) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.values.len())
    }
}

/// A CSV file with a header, of one table in parts.
pub(super) struct CsvWriter<W: Write> {
    writer: csv::Writer<W>,
    has_header: bool,
}

impl<W: Write> CsvWriter<W> {
    pub(super) fn new(out: W) -> Self {
        Self { writer: csv::Writer::from_writer(out), has_header: false }
    }

    /// Writes the rows of a part; all parts have the same columns.
    pub(super) fn put(&mut self, table: &Table) -> io::Result<()> {
        if !std::mem::replace(&mut self.has_header, true) {
            self.writer.write_record(table.columns.iter().map(|column| column.name.as_str()))?;
        }
        for row in 0..table.rows() {
            for column in &table.columns {
                self.writer.write_field(column.values.field(row))?;
            }
            self.writer.write_record(None::<&[u8]>)?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Self::Text(values) => values.len(),
            Self::Unsigned(values) => values.len(),
            Self::Signed(values) => values.len(),
            Self::Real(values) => values.len(),
            Self::Flag(values) => values.len(),
        }
    }

    /// A value as text that reads back as the same value; empty for none.
    fn field(&self, row: usize) -> String {
        match self {
            Self::Text(values) => values[row].as_deref().map(inert),
            Self::Unsigned(values) => values[row].map(|value| value.to_string()),
            Self::Signed(values) => values[row].map(|value| value.to_string()),
            Self::Real(values) => values[row].map(|value| value.to_string()),
            Self::Flag(values) => values[row].map(|value| value.to_string()),
        }
        .unwrap_or_default()
    }
}

/// Text that a spreadsheet takes as text: what begins as a formula does and is no number gets an apostrophe before it.
fn inert(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && text.parse::<f64>().is_err();
    if formula { format!("'{text}") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_no_formulas() {
        for (text, cell) in [
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("+1+1", "'+1+1"),
            ("-x", "'-x"),
            ("-1.5", "-1.5"),
            ("+3", "+3"),
            ("a=b", "a=b"),
            ("", ""),
        ] {
            assert_eq!(inert(text), cell);
        }
    }
}
