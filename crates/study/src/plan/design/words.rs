//! Names of effects, by letters and by the names of the factors.

use benchmaster_design::term::{self, SignedTerm, Term};
use benchmaster_units::format::list;

/// The names of a design's factors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Words {
    names: Vec<String>,
}

impl Words {
    /// With the names of the factors in order.
    pub fn new(names: Vec<String>) -> Self {
        Self { names }
    }

    /// The letter of a factor.
    pub fn letter(&self, factor: usize) -> String {
        term::letter(factor)
    }

    /// The letters of an effect: `CF`; `I` for the mean.
    pub fn letters(&self, factors: &[usize]) -> String {
        if factors.is_empty() {
            return "I".to_owned();
        }
        factors.iter().map(|&factor| term::letter(factor)).collect()
    }

    /// The names of an effect: `sync × latency`; `mean` for the mean.
    pub fn names(&self, factors: &[usize]) -> String {
        if factors.is_empty() {
            return "mean".to_owned();
        }
        if self.are_letters(factors) {
            return self.letters(factors);
        }
        let names = factors.iter().filter_map(|&factor| self.names.get(factor));
        names.map(String::as_str).collect::<Vec<_>>().join(" × ")
    }

    /// Names with letters, for sentences: `sync × latency (CF)`, `the mean`; letters alone where the factors have no other
    /// names.
    pub fn both(&self, factors: &[usize]) -> String {
        match factors {
            [] => "the mean".to_owned(),
            _ if self.are_letters(factors) => self.letters(factors),
            _ => format!("{} ({})", self.names(factors), self.letters(factors)),
        }
    }

    /// [`Words::letters`] of a set of bits.
    pub(crate) fn signed(&self, term: SignedTerm) -> String {
        format!("{}{}", if term.negative { "-" } else { "" }, term::letters(term.term))
    }

    /// [`Words::names`] of a set of bits, with its sign.
    pub(crate) fn signed_names(&self, term: SignedTerm) -> String {
        format!("{}{}", if term.negative { "-" } else { "" }, self.names(&factors(term.term)))
    }

    /// [`Words::both`] of a set of bits.
    pub(crate) fn both_of(&self, term: Term) -> String {
        self.both(&factors(term))
    }

    fn are_letters(&self, factors: &[usize]) -> bool {
        factors.iter().all(|&factor| self.names.get(factor).is_none_or(|name| *name == term::letter(factor)))
    }
}

/// The factors of a term.
pub(crate) fn factors(of: Term) -> Vec<usize> {
    term::factors(of).map(|factor| factor as usize).collect()
}

/// The term of factors; `None` when one is beyond what a term can hold.
pub(crate) fn bits(factors: &[usize]) -> Option<Term> {
    factors
        .iter()
        .try_fold(0, |all, &factor| (factor < term::MAX_FACTORS as usize).then(|| all | 1u64 << factor))
}

/// The number of factors in an effect that is written in letters.
pub(crate) fn order_of(letters: &str) -> usize {
    if letters == "I" { 0 } else { letters.chars().filter(char::is_ascii_uppercase).count() }
}

/// [`list`] of the first `most`, with the number of the others.
pub(crate) fn short_list(items: &[String], most: usize) -> String {
    match items.len().checked_sub(most) {
        Some(more) if more > 0 => format!("{} and {more} more", items[..most].join(", ")),
        _ => list(items),
    }
}

/// `1 run`, `2 runs`.
pub(crate) fn counted(n: u64, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_have_letters_and_names() {
        let words = Words::new(["version", "sync", "latency"].map(String::from).to_vec());
        assert_eq!(words.letters(&[1, 2]), "BC");
        assert_eq!(words.names(&[1, 2]), "sync × latency");
        assert_eq!(words.both(&[1, 2]), "sync × latency (BC)");
        assert_eq!((words.letters(&[]).as_str(), words.both(&[]).as_str()), ("I", "the mean"));
        assert_eq!(words.signed(SignedTerm { term: 0b101, negative: true }), "-AC");
        let letters = Words::new(["A", "B", "C"].map(String::from).to_vec());
        assert_eq!(letters.both(&[1, 2]), "BC");
        // A factor that is called like another one's letter is told apart.
        let crossed = Words::new(["B", "A"].map(String::from).to_vec());
        assert_eq!(crossed.both(&[0]), "B (A)");
    }

    #[test]
    fn lists_are_sentences() {
        let items = ["a", "b", "c"].map(String::from);
        assert_eq!(list(&items), "a, b and c");
        assert_eq!(short_list(&items, 2), "a, b and 1 more");
        assert_eq!(short_list(&items, 3), "a, b and c");
        assert_eq!(counted(1, "run"), "1 run");
    }
}
