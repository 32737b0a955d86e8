//! Terms of two-level designs: the mean, main effects and interactions as sets of factors.
//!
//! Factors are lettered in the order in which they are given: A, B, …, H, J, K, … without I, which is the mean and
//! the identity column. Beyond Z a factor has a capital and a small letter (Aa, Ab, …), so that a product such as AB
//! never looks like a factor.

use std::cmp::{Ordering, Reverse};
use std::fmt;

use crate::design::DesignError;
use crate::error::FractionError;
pub use crate::letters::{MAX_FACTORS, Term, factors, letter, letters, parse_letters};

/// The term that `text` names: letters ("AB"), or names of factors or letters joined by `*`, `:` or `×`
/// ("delay*sync").
///
/// A name goes before a letter. Where a factor is named like the letter of another one, only names are understood:
/// "B" and "AB" would otherwise mean different factors.
///
/// # Errors
///
/// A part that names no factor, and a factor that is there twice.
pub fn parse<S: AsRef<str>>(text: &str, names: &[S]) -> Result<Term, DesignError> {
    let known = |term: Term| term.checked_shr(names.len() as u32).unwrap_or(0) == 0;
    let confusing = names.iter().enumerate().any(|(factor, name)| {
        parse_letters(name.as_ref())
            .is_some_and(|term| known(term) && term != 1u64.checked_shl(factor as u32).unwrap_or(0))
    });
    let one = |part: &str| -> Result<Term, FractionError> {
        if let Some(factor) = names.iter().position(|name| name.as_ref() == part) {
            return 1u64
                .checked_shl(factor as u32)
                .filter(|_| factor < MAX_FACTORS as usize)
                .ok_or(FractionError::Factors { factors: names.len() as u32, limit: MAX_FACTORS });
        }
        parse_letters(part).filter(|&term| !confusing && known(term)).ok_or_else(|| {
            FractionError::UnknownFactor {
                text: text.to_owned(),
                part: part.to_owned(),
                factors: names.len(),
                last: letter(names.len().saturating_sub(1)),
            }
        })
    };
    let mut term = 0;
    for part in text.split(['*', ':', '×']) {
        let next = one(part.trim())?;
        if let Some(factor) = factors(term & next).next() {
            let factor = names[factor as usize].as_ref().to_owned();
            return Err(FractionError::FactorTwice { text: text.to_owned(), factor }.into());
        }
        term |= next;
    }
    Ok(term)
}

/// The number of factors in a term: 0 for the mean, 1 for a main effect, 2 for an interaction of two factors.
pub fn order(term: Term) -> u32 {
    term.count_ones()
}

/// By order, then by letters: A, B, AB, AC, BC, ABC.
pub fn compare(a: Term, b: Term) -> Ordering {
    let key = |term: Term| (order(term), Reverse(term.reverse_bits()));
    key(a).cmp(&key(b))
}

/// All terms of `factors` factors with the given order, by letters.
pub fn of_order(factors: u32, order: u32) -> Vec<Term> {
    let mut terms = Vec::new();
    let mut chosen: Vec<u32> = (0..order).collect();
    if order > factors {
        return terms;
    }
    loop {
        terms.push(chosen.iter().map(|&factor| 1u64 << factor).sum());
        // The last place that can still move up; all after it follow directly.
        let Some(place) = (0..order).rev().find(|&place| chosen[place as usize] < factors - order + place)
        else {
            return terms;
        };
        let start = chosen[place as usize] + 1;
        for (offset, factor) in chosen[place as usize..].iter_mut().enumerate() {
            *factor = start + offset as u32;
        }
    }
}

/// All terms of `factors` factors up to an order, the mean first: by order, then letters.
pub fn up_to(factors: u32, max_order: u32) -> Vec<Term> {
    (0..=max_order.min(factors)).flat_map(|order| of_order(factors, order)).collect()
}

/// A term with a sign: −ABC says that the column of ABC is taken with its signs switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SignedTerm {
    /// The factors.
    pub term: Term,
    /// Whether the sign is −.
    pub negative: bool,
}

impl fmt::Display for SignedTerm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.negative { "-" } else { "" }, letters(self.term))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn factors_are_lettered_without_i() {
        let all: Vec<_> = [0, 7, 8, 24, 25, 26, 49, 50].into_iter().map(letter).collect();
        assert_eq!(all, ["A", "H", "J", "Z", "Aa", "Ab", "Az", "Ba"]);
        assert_eq!(letters(0), "I");
        assert_eq!(letters(0b1011), "ABD");
        assert_eq!(parse_letters("ABD"), Some(0b1011));
        assert_eq!(parse_letters("J"), Some(1 << 8));
        assert_eq!(parse_letters("AAb"), Some(1 | 1 << 26));
        for wrong in ["", "i", "AI", "AA", "A B", "aB", "Zz", "-A"] {
            assert_eq!(parse_letters(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn terms_are_named_by_letters_or_names() {
        let names = ["delay", "storage", "sync"];
        let named = |text: &str| parse(text, &names).map_err(|e| e.to_string());
        assert_eq!(named("AC"), Ok(0b101));
        assert_eq!(named("delay * sync"), Ok(0b101));
        assert_eq!(named("delay×B:sync"), Ok(0b111));
        assert_eq!(
            named("delay*size"),
            Err("`size` in `delay*size` is neither the name of a factor nor letters of the 3 factors \
                 (A to C, without I)"
                .to_owned())
        );
        assert!(named("AD").is_err());
        assert_eq!(
            named("A*delay"),
            Err("`A*delay` has the factor delay twice; a factor times itself is 1: leave both out".to_owned())
        );
    }

    #[test]
    fn names_that_are_letters_of_other_factors_exclude_letters() {
        assert_eq!(parse("A", &["B", "A"]), Ok(0b10));
        assert!(parse("AB", &["B", "A"]).is_err());
        assert_eq!(parse("A*B", &["B", "A"]), Ok(0b11));
        assert_eq!(parse("AB", &["A", "B"]), Ok(0b11), "names that agree with the letters do no harm");
    }

    #[test]
    fn terms_come_by_order_and_letters() {
        let names: Vec<_> = up_to(4, 4).into_iter().map(letters).collect();
        let expected = "I A B C D AB AC AD BC BD CD ABC ABD ACD BCD ABCD";
        assert_eq!(names.join(" "), expected);
        assert_eq!(of_order(2, 3), [0u64; 0]);
        assert_eq!(of_order(0, 0), [0]);
        assert!(up_to(6, 6).is_sorted_by(|&a, &b| compare(a, b).is_lt()));
    }

    proptest! {
        #[test]
        fn letters_are_read_back(term in 0u64..1 << MAX_FACTORS) {
            prop_assert_eq!(parse_letters(&letters(term)), Some(term));
        }
    }
}
