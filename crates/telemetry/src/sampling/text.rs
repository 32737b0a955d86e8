//! What parsers of the kernel's texts share.

/// The first line that is not in the kernel's format; the others were taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is not in the format that Linux writes: `{text}`")]
pub struct Malformed {
    /// Counted from 1.
    pub line: usize,
    /// The line, shortened.
    pub text: String,
}

/// Parses all lines but the first few, and remembers the first one for which there is no result.
///
/// # Errors
/// That line.
pub fn lines(text: &str, skip: usize, mut parse: impl FnMut(&str) -> Option<()>) -> Result<(), Malformed> {
    let mut faults = Faults::default();
    for (at, line) in text.lines().enumerate().skip(skip) {
        faults.check(at, line, parse(line));
    }
    faults.finish()
}

/// The only thing in a text.
///
/// # Errors
/// When there is none.
pub fn only<T>(text: &str, parsed: Option<T>) -> Result<T, Malformed> {
    parsed.ok_or_else(|| Malformed { line: 1, text: shortened(text) })
}

/// Remembers the first line that could not be understood.
#[derive(Debug, Default)]
pub struct Faults(Option<Malformed>);

impl Faults {
    /// Takes note of a line, counted from 0.
    pub fn add(&mut self, at: usize, line: &str) {
        self.0.get_or_insert_with(|| Malformed { line: at + 1, text: shortened(line) });
    }

    /// Takes note of a line for which there is no result.
    pub fn check(&mut self, at: usize, line: &str, result: Option<()>) {
        if result.is_none() {
            self.add(at, line);
        }
    }

    /// What was found.
    ///
    /// # Errors
    /// The first fault.
    pub fn finish(self) -> Result<(), Malformed> {
        self.0.map_or(Ok(()), Err)
    }
}

/// A whole number without sign.
pub fn number(text: &str) -> Option<f64> {
    text.parse::<u64>().ok().map(|number| number as f64)
}

/// A whole number that the kernel may write with a sign.
pub fn signed(text: &str) -> Option<f64> {
    match text.strip_prefix('-') {
        Some(digits) if digits.starts_with(|digit: char| digit.is_ascii_digit()) => {
            number(digits).map(|number| -number)
        }
        _ => number(text),
    }
}

/// A word and what comes after it; `None` at the end.
pub fn word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_ascii_start();
    (!text.is_empty()).then(|| {
        let end = text.bytes().position(|byte| byte.is_ascii_whitespace()).unwrap_or(text.len());
        text.split_at(end)
    })
}

/// The words of a line. Quicker than the standard library's, which is made for any text.
pub fn words(text: &str) -> impl Iterator<Item = &str> + Clone {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (found, after) = word(rest)?;
        rest = after;
        Some(found)
    })
}

/// Enough of a line to find it.
pub fn shortened(text: &str) -> String {
    const ENOUGH: usize = 60;
    let text = text.trim();
    match text.char_indices().nth(ENOUGH) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_standard_library() {
        for text in ["", " ", "a", " a  b\tc\n", "ä ö", "one two "] {
            assert_eq!(words(text).collect::<Vec<_>>(), text.split_ascii_whitespace().collect::<Vec<_>>());
        }
        assert_eq!(word(" a b"), Some(("a", " b")));
    }

    #[test]
    fn the_first_fault_is_kept() {
        let mut faults = Faults::default();
        assert_eq!(faults.0, None);
        faults.check(0, "fine", Some(()));
        faults.check(2, &"x".repeat(70), None);
        faults.add(3, "later");
        let fault = faults.finish().unwrap_err();
        assert_eq!((fault.line, fault.text), (3, format!("{}…", "x".repeat(60))));
    }

    #[test]
    fn numbers_are_whole() {
        assert_eq!(number("18446744073709551615"), Some(18_446_744_073_709_551_615.0));
        assert_eq!((number("-1"), number("1.5"), number("")), (None, None, None));
        assert_eq!(
            (signed("-1"), signed("7"), signed("--1"), signed("-")),
            (Some(-1.0), Some(7.0), None, None)
        );
    }
}
