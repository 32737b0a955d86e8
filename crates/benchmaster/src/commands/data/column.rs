//! A column of a CSV file.

use std::collections::HashMap;

use super::levels;

/// A column of a CSV file. Every text is kept once: a factor's column has few.
#[derive(Debug)]
pub(crate) struct CsvColumn {
    pub(crate) name: String,
    /// The different texts in the order in which they first occur.
    pub(super) texts: Vec<String>,
    /// The number of the text of every row.
    pub(super) codes: Vec<u32>,
    code_of: HashMap<String, u32>,
}

impl CsvColumn {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), texts: Vec::new(), codes: Vec::new(), code_of: HashMap::new() }
    }

    pub(super) fn push(&mut self, cell: &str) {
        let code = match self.code_of.get(cell) {
            Some(&code) => code,
            None => {
                let code = self.texts.len() as u32;
                self.code_of.insert(cell.to_owned(), code);
                self.texts.push(cell.to_owned());
                code
            }
        };
        self.codes.push(code);
    }

    /// Whether all cells are numbers or missing, and one of them is a number.
    pub(crate) fn is_numeric(&self) -> bool {
        let number = |text: &String| levels::number(text).is_some();
        self.texts.iter().any(number) && self.texts.iter().all(|t| levels::is_missing(t) || number(t))
    }

    /// The first row that has a text.
    pub(super) fn first_row(&self, text: usize) -> usize {
        self.codes.iter().position(|&code| code as usize == text).unwrap_or(0)
    }
}

/// What is wrong with a cell that should be a number, and what to do.
pub(super) fn no_number(cell: &str, column: &str) -> String {
    let digits = cell.trim_start_matches(['-', '+']);
    let fix = if cell.contains(',') && digits.chars().all(|c| c.is_ascii_digit() || ",. '".contains(c)) {
        "write it with a decimal point, and nothing between thousands"
    } else if digits.starts_with(|c: char| c.is_ascii_digit()) {
        "write the number alone, all in one unit"
    } else {
        "leave the cell empty where there is no value"
    };
    format!("`{cell}` in `{column}` is not a number; {fix}")
}
