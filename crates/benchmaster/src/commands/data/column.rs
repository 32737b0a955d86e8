//! A column of a CSV file while it is read, and what is kept of it.

use std::collections::HashMap;

use super::key::Key;
use super::levels;

/// A column of a CSV file.
#[derive(Debug)]
pub(crate) struct CsvColumn {
    /// Its header.
    pub(crate) name: String,
    pub(super) cells: Cells,
}

/// The cells of a column.
#[derive(Debug)]
pub(super) enum Cells {
    Texts(Texts),
    /// Numbers of which so many are different that they can be no levels. Missing ones are not a number.
    Numbers(Vec<f64>),
}

/// Cells of which every text is kept once: a factor's column has few of them.
#[derive(Debug)]
pub(super) struct Texts {
    /// The different texts in the order in which they first occur.
    pub(super) texts: Vec<String>,
    /// The number of the text of every row.
    pub(super) codes: Codes,
    places: HashMap<String, u32>,
    /// Keys of the first texts: factors seldom have more.
    first: [Key; 4],
}

/// Numbers of texts, each in as few bytes as the largest needs.
#[derive(Debug)]
pub(super) enum Codes {
    Byte(Vec<u8>),
    Short(Vec<u16>),
    Wide(Vec<u32>),
}

/// Different numbers beyond which a column is no factor.
pub(super) const MOST_LEVELS: usize = 4096;

impl CsvColumn {
    pub(super) fn new(name: &str) -> Self {
        let texts = Texts {
            texts: Vec::new(),
            codes: Codes::Byte(Vec::new()),
            places: HashMap::new(),
            first: [Key::NONE; 4],
        };
        Self { name: name.to_owned(), cells: Cells::Texts(texts) }
    }

    /// Different texts; `None` when there are too many to be levels.
    #[cfg(test)]
    pub(super) fn distinct(&self) -> Option<usize> {
        match &self.cells {
            Cells::Texts(texts) => Some(texts.texts.len()),
            Cells::Numbers(_) => None,
        }
    }

    /// Whether all cells are numbers or missing, and one of them is a number.
    pub(crate) fn is_numeric(&self) -> bool {
        match &self.cells {
            Cells::Numbers(_) => true,
            Cells::Texts(Texts { texts, .. }) => {
                let number = |text: &String| levels::number(text).is_some();
                texts.iter().any(number) && texts.iter().all(|t| levels::is_missing(t) || number(t))
            }
        }
    }

    /// Adds a cell whose text was among the first that the column had; `false` when it was not, and nothing is added.
    #[inline(always)]
    pub(super) fn push_known(&mut self, key: Key) -> bool {
        let Cells::Texts(texts) = &mut self.cells else { return false };
        let known = texts.among_first(key);
        known.inspect(|&code| texts.codes.push(code)).is_some()
    }

    /// Adds a cell, without the spaces around it.
    pub(super) fn push(&mut self, cell: &str) -> Result<(), String> {
        match &mut self.cells {
            Cells::Texts(texts) => {
                if texts.push(cell) && texts.texts.len() == MOST_LEVELS + 1 {
                    self.become_numbers();
                }
            }
            Cells::Numbers(values) => match levels::number(cell) {
                Some(value) => values.push(value),
                None if levels::is_missing(cell) => values.push(f64::NAN),
                None => return Err(no_number(cell, &self.name)),
            },
        }
        Ok(())
    }

    /// Keeps numbers instead of texts, when all of them are numbers.
    fn become_numbers(&mut self) {
        let Cells::Texts(Texts { texts, codes, .. }) = &self.cells else { return };
        let number = |text: &String| levels::number(text).or(levels::is_missing(text).then_some(f64::NAN));
        if let Some(values) = texts.iter().map(number).collect::<Option<Vec<_>>>() {
            let mut all = Vec::with_capacity(2 * codes.len());
            codes.each(|_, code| all.push(values[code as usize]));
            self.cells = Cells::Numbers(all);
        }
    }
}

impl Texts {
    /// The code of a short text that is one of the first. Without branches: which of them it is cannot be predicted.
    #[inline(always)]
    fn among_first(&self, key: Key) -> Option<u32> {
        let equal = |place: usize| u32::from(self.first[place] == key) << place;
        let found = equal(0) | equal(1) | equal(2) | equal(3);
        (found != 0 && key != Key::NONE).then(|| found.trailing_zeros())
    }

    /// Adds a cell. Whether its text is a new one.
    fn push(&mut self, cell: &str) -> bool {
        // Levels often stay the same from row to row, and there are few.
        let last = self.codes.last().filter(|&code| self.texts[code as usize] == cell);
        let first = || self.texts.iter().take(4).position(|text| text == cell).map(|code| code as u32);
        let known = last.or_else(first).or_else(|| self.places.get(cell).copied());
        let code = known.unwrap_or_else(|| {
            let code = self.texts.len();
            if let Some(first) = self.first.get_mut(code) {
                *first = Key::of(cell);
            }
            self.places.insert(cell.to_owned(), code as u32);
            self.texts.push(cell.to_owned());
            code as u32
        });
        self.codes.push(code);
        known.is_none()
    }
}

impl Codes {
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Byte(codes) => codes.len(),
            Self::Short(codes) => codes.len(),
            Self::Wide(codes) => codes.len(),
        }
    }

    fn last(&self) -> Option<u32> {
        match self {
            Self::Byte(codes) => codes.last().map(|&code| code.into()),
            Self::Short(codes) => codes.last().map(|&code| code.into()),
            Self::Wide(codes) => codes.last().copied(),
        }
    }

    /// Does something with every row and its code.
    #[inline(always)]
    pub(super) fn each(&self, mut with: impl FnMut(usize, u32)) {
        match self {
            Self::Byte(codes) => codes.iter().enumerate().for_each(|(row, &code)| with(row, code.into())),
            Self::Short(codes) => codes.iter().enumerate().for_each(|(row, &code)| with(row, code.into())),
            Self::Wide(codes) => codes.iter().enumerate().for_each(|(row, &code)| with(row, code)),
        }
    }

    /// The first row with a code.
    pub(super) fn first_row(&self, code: u32) -> Option<usize> {
        match self {
            Self::Byte(codes) => codes.iter().position(|&c| u32::from(c) == code),
            Self::Short(codes) => codes.iter().position(|&c| u32::from(c) == code),
            Self::Wide(codes) => codes.iter().position(|&c| c == code),
        }
    }

    #[inline(always)]
    fn push(&mut self, code: u32) {
        match self {
            Self::Byte(codes) if code <= u8::MAX.into() => codes.push(code as u8),
            Self::Short(codes) if code <= u16::MAX.into() => codes.push(code as u16),
            Self::Wide(codes) => codes.push(code),
            Self::Byte(_) | Self::Short(_) => {
                self.widen();
                self.push(code);
            }
        }
    }

    #[cold]
    fn widen(&mut self) {
        *self = match self {
            Self::Byte(codes) => Self::Short(codes.iter().map(|&code| code.into()).collect()),
            Self::Short(codes) => Self::Wide(codes.iter().map(|&code| code.into()).collect()),
            Self::Wide(_) => return,
        };
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
    format!("`{cell}` in `{column}` is no number; {fix}")
}
