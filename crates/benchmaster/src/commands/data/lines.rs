//! The rows of a CSV file, one at a time, with their lines.

use std::io::BufRead;

/// Reads rows. What is quoted is left to the `csv` crate; all other rows, the most, are only split.
pub(super) struct Lines<R> {
    input: R,
    /// Lines read so far.
    line: u64,
    delimiter: Option<u8>,
    buffer: Vec<u8>,
    quoted: csv::StringRecord,
}

/// The cells of a row.
pub(super) enum Row<'a> {
    Plain(std::str::Split<'a, char>),
    Quoted(csv::StringRecordIter<'a>),
}

impl<'a> Iterator for Row<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        match self {
            Self::Plain(cells) => cells.next(),
            Self::Quoted(cells) => cells.next(),
        }
        .map(str::trim)
    }
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Self { input, line: 0, delimiter: None, buffer: Vec::new(), quoted: csv::StringRecord::new() }
    }

    /// The next row and its line, counted from 1.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Row<'_>)>, String> {
        let line = loop {
            self.buffer.clear();
            if !self.read()? {
                return Ok(None);
            }
            if self.line == 1 && self.buffer.starts_with("\u{feff}".as_bytes()) {
                self.buffer.drain(..3);
            }
            if !self.buffer.starts_with(b"#") && !self.buffer.trim_ascii().is_empty() {
                break self.line;
            }
        };
        while self.buffer.iter().filter(|&&byte| byte == b'"').count() % 2 == 1 {
            if !self.read()? {
                return Err(format!("line {line}: a quote is opened and never closed"));
            }
        }
        let text = str::from_utf8(&self.buffer)
            .map_err(|_| format!("line {line} is not UTF-8; save the file as UTF-8"))?;
        let text = text.trim_end_matches(['\n', '\r']);
        let delimiter = *self.delimiter.get_or_insert_with(|| {
            *[b',', b';', b'\t'].iter().find(|byte| text.as_bytes().contains(byte)).unwrap_or(&b',')
        });
        if !text.contains('"') {
            return Ok(Some((line, Row::Plain(text.split(char::from(delimiter))))));
        }
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        reader.read_record(&mut self.quoted).map_err(|error| format!("line {line}: {error}"))?;
        Ok(Some((line, Row::Quoted(self.quoted.iter()))))
    }

    /// Adds a line to the buffer; `false` at the end.
    fn read(&mut self) -> Result<bool, String> {
        let read = self.input.read_until(b'\n', &mut self.buffer);
        let bytes = read.map_err(|error| format!("line {}: cannot be read: {error}", self.line + 1))?;
        self.line += 1;
        Ok(bytes > 0)
    }
}
