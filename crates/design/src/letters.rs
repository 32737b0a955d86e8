//! Factors and sets of them by letters.

/// A set of factors: bit j stands for factor j. 0 is the mean.
pub type Term = u64;

/// The most factors a two-level design may have.
pub const MAX_FACTORS: u32 = 63;

const CAPITALS: &[u8; 25] = b"ABCDEFGHJKLMNOPQRSTUVWXYZ";

/// The letter of a factor, counted from 0: A … H, J … Z, then Aa, Ab, ….
pub fn letter(factor: usize) -> String {
    let capital = |index: usize| char::from(CAPITALS[index % CAPITALS.len()]);
    match factor.checked_sub(CAPITALS.len()) {
        None => capital(factor).to_string(),
        Some(beyond) => {
            let (first, second) = (beyond / CAPITALS.len(), capital(beyond).to_ascii_lowercase());
            format!("{}{second}", capital(first))
        }
    }
}

/// The letters of a term in the order of the factors: "ABD"; "I" for the mean.
pub fn letters(term: Term) -> String {
    if term == 0 { "I".to_owned() } else { factors(term).map(|factor| letter(factor as usize)).collect() }
}

/// The term that `text` names by letters, "I" for the mean. `None` for anything else, also for a letter that is there
/// twice and for a factor beyond the last possible one.
pub fn parse_letters(text: &str) -> Option<Term> {
    if text == "I" {
        return Some(0);
    }
    let mut rest = text.as_bytes();
    let mut term = 0;
    while let Some((&first, after)) = rest.split_first() {
        let index = |byte: u8| CAPITALS.iter().position(|&capital| capital == byte);
        let first = index(first)?;
        let (factor, after) = match after.split_first() {
            Some((second, after)) if second.is_ascii_lowercase() => {
                (CAPITALS.len() * (first + 1) + index(second.to_ascii_uppercase())?, after)
            }
            _ => (first, after),
        };
        let bit = 1u64.checked_shl(factor as u32).filter(|_| factor < MAX_FACTORS as usize)?;
        if term & bit != 0 {
            return None;
        }
        term |= bit;
        rest = after;
    }
    (term != 0).then_some(term)
}

/// The factors of a term, ascending.
pub fn factors(term: Term) -> impl Iterator<Item = u32> {
    let mut rest = term;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let factor = rest.trailing_zeros();
            rest &= rest - 1;
            factor
        })
    })
}
