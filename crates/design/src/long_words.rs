//! Fractions from the side of their words, where there are too many runs to look at all columns.
//!
//! With p generators every factor is in some of p independent words: it is of one of 2^p kinds. The numbers of factors
//! of each kind determine all word lengths, whatever the number of runs.

use std::collections::BTreeSet;

use crate::term::{self, SignedTerm, Term};

/// With more generators than this a factor is added to all words without comparing kinds.
const MOST_COMPARED: usize = 14;

/// One or two independent words of a fraction, from a comparison of all divisions of the factors into kinds.
pub(crate) fn one_or_two(factors: u32, added: u32) -> Vec<SignedTerm> {
    if added == 1 {
        return vec![word(run_of(0, factors))];
    }
    // a factors in the first word only, b in the second only, the others in both; each pair of kinds makes a word.
    let divisions =
        (1..=factors / 3).flat_map(|a| (a..=(factors - a) / 2).map(move |b| (a, b, factors - a - b)));
    let lengths = |&(a, b, c): &(u32, u32, u32)| {
        let mut lengths = [a + b, a + c, b + c];
        lengths.sort_unstable();
        // Fewest short words: the longer the shortest the better, then the next.
        lengths
    };
    let (a, b, _) = divisions.max_by_key(lengths).unwrap_or((0, 0, factors));
    let first = run_of(0, factors) & !run_of(a, b);
    vec![word(first), word(run_of(a, factors - a))]
}

fn word(term: Term) -> SignedTerm {
    SignedTerm { term, negative: false }
}

/// `count` factors from number `from` on.
fn run_of(from: u32, count: u32) -> Term {
    ((1 << count) - 1) << from
}

/// Adds base factors to the words of a fraction until it has `factors`: each is made of the kind, among those that
/// occur, that gives the least aberration. No word becomes shorter.
pub(crate) fn lengthen(words: &[Term], from: u32, factors: u32) -> Vec<SignedTerm> {
    let mut words = words.to_vec();
    for factor in from..factors {
        let with = |kind: u64| -> Vec<Term> {
            words.iter().enumerate().map(|(index, word)| word | (kind >> index & 1) << factor).collect()
        };
        let all = (1u64 << words.len()) - 1;
        let mut kinds = BTreeSet::from([all]);
        if words.len() <= MOST_COMPARED {
            let kind = |factor: u32| -> u64 {
                words.iter().enumerate().map(|(index, word)| (word >> factor & 1) << index).sum()
            };
            kinds.extend((0..factor).map(kind));
        }
        let best = match kinds.len() {
            1 => all,
            _ => kinds.into_iter().min_by_key(|&kind| pattern(&with(kind), factors)).unwrap_or(all),
        };
        words = with(best);
    }
    words.into_iter().map(word).collect()
}

/// How many products of the words have each length.
fn pattern(words: &[Term], factors: u32) -> Vec<u64> {
    let mut pattern = vec![0; factors as usize + 1];
    let mut word = 0;
    for step in 1u64..1 << words.len() {
        word ^= words[step.trailing_zeros() as usize];
        pattern[term::order(word) as usize] += 1;
    }
    pattern
}
