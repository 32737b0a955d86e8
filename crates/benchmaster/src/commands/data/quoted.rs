//! Rows in which cells are quoted.

/// Takes the lines of a row apart. A quote counts at the beginning of a cell, with spaces before it or not; inside of
/// quotes, two of them are one. Quotes inside of other cells (`5" disk`) are what they are.
#[derive(Default)]
pub(super) struct Quoted {
    /// The cells one behind the other, without their quotes.
    texts: String,
    /// Where each ends there.
    ends: Vec<usize>,
    place: Place,
}

/// Where in a cell one is.
#[derive(Default, Clone, Copy, PartialEq)]
enum Place {
    /// Before its first character that is no space.
    #[default]
    Start,
    Plain,
    Quoted,
    /// Behind a quote inside of quotes: the last, or the first of two.
    Closed,
}

/// The cells of a row.
pub(super) struct Cells<'a> {
    texts: &'a str,
    ends: std::slice::Iter<'a, usize>,
    start: usize,
}

impl Quoted {
    /// Forgets the row before.
    pub(super) fn clear(&mut self) {
        self.texts.clear();
        self.ends.clear();
        self.place = Place::Start;
    }

    /// Takes a line, its end with it; whether the row ends with it. It does not inside of quotes.
    pub(super) fn line(&mut self, line: &str, delimiter: u8) -> bool {
        let delimiter = char::from(delimiter);
        let content = line.trim_end_matches(['\n', '\r']);
        for character in content.chars() {
            self.place = match (self.place, character) {
                (Place::Quoted, '"') => Place::Closed,
                (Place::Closed, '"') => {
                    self.texts.push('"');
                    Place::Quoted
                }
                (Place::Start, '"') => Place::Quoted,
                (Place::Start | Place::Plain | Place::Closed, c) if c == delimiter => {
                    self.ends.push(self.texts.len());
                    Place::Start
                }
                (Place::Start, c) if c.is_whitespace() => Place::Start,
                (place, c) => {
                    self.texts.push(c);
                    if place == Place::Quoted { Place::Quoted } else { Place::Plain }
                }
            };
        }
        if self.place == Place::Quoted {
            self.texts.push_str(&line[content.len()..]);
            return false;
        }
        self.ends.push(self.texts.len());
        true
    }

    /// The cells of the row that was taken apart.
    pub(super) fn cells(&self) -> Cells<'_> {
        Cells { texts: &self.texts, ends: self.ends.iter(), start: 0 }
    }
}

impl<'a> Iterator for Cells<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let end = *self.ends.next()?;
        let text = self.texts.get(self.start..end)?;
        self.start = end;
        Some(text.trim())
    }
}
