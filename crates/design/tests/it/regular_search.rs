//! The search for fractions against plain enumeration, and against what is known about the fewest runs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use benchmaster_design::catalogue;
use benchmaster_design::regular::{Aberration, Fraction, Generator};
use benchmaster_design::search::{by_clear, by_resolution, by_runs, search};
use benchmaster_design::term::{Term, letters, order, parse_letters, up_to};
use proptest::prelude::*;

/// Enough for a proof of all that is searched here.
const EFFORT: u64 = 10_000_000;

/// All ways to choose `count` of `0..from`.
fn combinations(from: u32, count: u32, take: &mut impl FnMut(&[u32])) {
    fn extend(from: u32, count: u32, start: u32, chosen: &mut Vec<u32>, take: &mut impl FnMut(&[u32])) {
        if chosen.len() as u32 == count {
            return take(chosen);
        }
        for next in start..from {
            chosen.push(next);
            extend(from, count, next + 1, chosen, take);
            chosen.pop();
        }
    }
    extend(from, count, 0, &mut Vec::new(), take);
}

/// The least word-length pattern of all fractions, by looking at every choice of generators.
fn least_pattern(factors: u32, base: u32) -> Vec<u64> {
    let words: Vec<u64> = (1..1u64 << base).filter(|word| word.count_ones() > 1).collect();
    let mut best = None;
    combinations(words.len() as u32, factors - base, &mut |chosen| {
        let generators: Vec<_> = (base..)
            .zip(chosen)
            .map(|(factor, &word)| Generator { factor, word: words[word as usize], negative: false })
            .collect();
        let pattern = Fraction::from_generators(factors, &generators).unwrap().word_length_pattern();
        if best.as_ref().is_none_or(|best| pattern < *best) {
            best = Some(pattern);
        }
    });
    best.unwrap()
}

#[test]
fn searched_designs_are_the_best_of_all() {
    let mut cases: Vec<(u32, u32)> = (4..=7).map(|factors| (factors, 3)).collect();
    cases.extend((5..=15).map(|factors| (factors, 4)));
    cases.extend([(6, 5), (7, 5), (8, 5), (9, 5), (7, 6), (8, 6), (8, 7), (9, 7)]);
    for (factors, base) in cases {
        let expected = least_pattern(factors, base);
        let found = search(factors, 1 << base, EFFORT).unwrap();
        assert_eq!(found.aberration(), Aberration::Proved, "2^{base} runs of {factors} factors");
        assert_eq!(found.word_length_pattern(), expected, "2^{base} runs of {factors} factors");
        assert_eq!(by_runs(factors, 1 << base).unwrap().word_length_pattern(), expected);
    }
}

#[test]
fn designs_of_up_to_ten_factors_are_proved_without_the_catalogue() {
    for base in 3..=6 {
        for factors in base..=10.min((1 << base) - 1) {
            let found = search(factors, 1 << base, EFFORT).unwrap();
            assert_eq!(found.aberration(), Aberration::Proved, "2^{base} runs of {factors} factors");
            let listed = by_runs(factors, 1 << base).unwrap();
            assert_eq!(found.word_length_pattern(), listed.word_length_pattern());
            assert_eq!(found.clear().two_factor.len(), listed.clear().two_factor.len());
        }
    }
}

#[test]
fn a_search_that_is_cut_short_says_so() {
    let found = search(13, 1 << 6, 2000).unwrap();
    assert_eq!(found.aberration(), Aberration::BestFound);
    assert!(found.word_length_pattern() >= by_runs(13, 1 << 6).unwrap().word_length_pattern());
}

#[test]
fn the_catalogue_has_every_size_up_to_4096_runs() {
    for base in 2..=12u32 {
        for factors in base + 1..=(base + 20).min((1 << base) - 1) {
            let (generators, aberration) = catalogue::find(factors, base)
                .unwrap_or_else(|| panic!("no row for {factors} factors in 2^{base} runs"));
            assert_ne!(aberration, Aberration::Given);
            let fraction = Fraction::from_generators(factors, &generators).unwrap();
            assert_eq!(fraction.runs(), 1 << base);
            let resolution = fraction.resolution().unwrap();
            // Resolution IV is possible up to half as many factors as runs.
            assert!(resolution >= if factors <= 1 << (base - 1) { 4 } else { 3 }, "{factors} in 2^{base}");
        }
    }
}

#[test]
fn beyond_the_catalogue_there_are_designs_too() {
    for (factors, base, at_least) in
        [(14, 13, 14), (15, 13, 10), (16, 13, 8), (20, 13, 8), (25, 15, 6), (40, 20, 4)]
    {
        let found = by_runs(factors, 1 << base).unwrap();
        assert_eq!((found.factors(), found.runs()), (factors, 1 << base));
        assert!(found.resolution() >= Some(at_least), "{factors} in 2^{base}: {:?}", found.resolution());
    }
    assert_eq!(by_runs(15, 1 << 13).unwrap().aberration(), Aberration::Proved);
    assert_eq!(by_runs(16, 1 << 13).unwrap().aberration(), Aberration::BestFound);
    assert_eq!(by_runs(20, 1 << 20).unwrap().aberration(), Aberration::Proved);
}

#[test]
fn the_fewest_runs_for_a_resolution() {
    // Most factors for 2^4, 2^5, … runs, from tables of the best linear codes.
    for (resolution, most) in [
        (3, vec![(2, 3), (3, 7), (4, 15), (5, 25)]),
        (4, vec![(3, 4), (4, 8), (5, 16), (6, 26)]),
        (5, vec![(4, 5), (5, 6), (6, 8), (7, 11), (8, 17), (9, 21)]),
        (6, vec![(5, 6), (6, 7), (7, 9), (8, 12), (9, 18), (10, 22)]),
        (7, vec![(6, 7), (7, 8), (8, 9), (9, 11), (10, 15), (11, 23)]),
        (8, vec![(7, 8), (8, 9), (9, 10), (10, 12), (11, 16), (12, 24)]),
    ] {
        let mut factors = most[0].1;
        for (base, most) in most {
            while factors <= most {
                let found = by_resolution(factors, resolution).unwrap();
                assert_eq!(found.runs(), 1 << base, "resolution {resolution} of {factors} factors");
                assert!(
                    found.resolution().is_none_or(|r| r >= resolution),
                    "resolution {resolution} of {factors}"
                );
                assert_eq!(found.fewest_runs(), Some(true), "resolution {resolution} of {factors} factors");
                factors += 1;
            }
        }
    }
    // Where no fraction has it, all combinations are needed.
    let full = by_resolution(5, 6).unwrap();
    assert_eq!((full.runs(), full.resolution(), full.fewest_runs()), (32, None, Some(true)));
    assert_eq!(by_resolution(1, 3).unwrap().runs(), 2);
}

#[test]
fn sizes_that_do_not_exist_are_refused() {
    for (factors, runs, message) in [
        (6, 12, "a two-level fraction of 6 factors cannot have 12 runs; take a power of two from 8 to 2^6"),
        (6, 4, "from 8 to 2^6"),
        (8, 8, "from 16 to 2^8"),
        (3, 16, "from 4 to 2^3"),
        (3, 0, "from 4 to 2^3"),
        (0, 8, "1 to 63 factors"),
        (25, 1 << 21, "2^21 runs are more than a design may have"),
        (30, 32, "25 generators have 2^25 defining words"),
    ] {
        let error = by_runs(factors, runs).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    for (factors, resolution, message) in [
        (6, 2, "resolution 2 would alias main effects"),
        (0, 3, "1 to 63 factors"),
        (63, 3, "2^63 runs are more"),
    ] {
        let error = by_resolution(factors, resolution).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

fn terms(names: &str) -> Vec<Term> {
    names.split_whitespace().map(|name| parse_letters(name).unwrap()).collect()
}

/// Whether every asked term is clear, by all aliases.
fn is_clear(fraction: &Fraction, clear: &[Term]) -> bool {
    clear.iter().all(|&term| {
        let aliases = fraction.aliases(term, fraction.factors());
        aliases.iter().all(|alias| order(alias.term) > 2 && !clear.contains(&alias.term))
    })
}

#[test]
fn effects_that_must_be_clear() {
    // Six factors whose main effects, BF, CF and BCF are wanted.
    let clear = terms("A B C D E F BF CF BCF");
    let found = by_clear(6, &clear, 64).unwrap();
    assert_eq!(found.runs(), 32);
    assert!(is_clear(&found, &clear));
    assert_eq!(found.fewest_runs(), Some(true));
    // In half as many runs the main effects alone.
    assert_eq!(by_clear(6, &terms("A B C D E F"), 64).unwrap().runs(), 16);
    let error = by_clear(6, &clear, 16).unwrap_err().to_string();
    assert!(error.contains("no fraction of 6 factors in up to 16 runs exists with A, B,"), "{error}");
    // Nothing is asked: the factors still need columns of their own.
    assert_eq!(by_clear(7, &[], 128).unwrap().runs(), 8);
    // Everything is asked for: all combinations.
    assert_eq!(by_clear(3, &up_to(3, 3)[1..], 8).unwrap().runs(), 8);
    for (clear, message) in
        [(vec![0], "the effect I cannot"), (vec![1 << 6], "the effect G cannot be asked for")]
    {
        let error = by_clear(6, &clear, 64).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

#[test]
fn clear_effects_of_many_factors_are_found() {
    let clear: Vec<_> = (0..12).map(|factor| 1 << factor).chain(terms("AB AC AD BC EF")).collect();
    let found = by_clear(12, &clear, 256).unwrap();
    assert!(is_clear(&found, &clear));
    assert!(found.runs() <= 64, "{} runs", found.runs());
}

/// The fewest runs by looking at every defining relation of six factors.
fn fewest_runs(clear: &[Term]) -> u64 {
    let is_good = |group: &[Term]| {
        group.iter().skip(1).all(|&word| {
            order(word) > 2
                && clear.iter().all(|&term| order(term ^ word) > 2 && !clear.contains(&(term ^ word)))
        })
    };
    let mut groups: Vec<Vec<Term>> = vec![vec![0]];
    let mut runs = 64;
    for _ in 0..3 {
        let mut larger = Vec::new();
        for group in &groups {
            for word in (1..64).filter(|word| !group.contains(word)) {
                let next: Vec<Term> =
                    group.iter().copied().chain(group.iter().map(|other| other ^ word)).collect();
                if is_good(&next) {
                    larger.push(next);
                }
            }
        }
        if larger.is_empty() {
            return runs;
        }
        runs /= 2;
        groups = larger;
    }
    runs
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn clear_effects_need_as_few_runs_as_enumeration_says(
        clear in prop::collection::btree_set((1u64..64).prop_filter("short", |&term| order(term) <= 3), 0..8),
    ) {
        let clear: Vec<_> = clear.into_iter().collect();
        let found = by_clear(6, &clear, 64).unwrap();
        let names: Vec<_> = clear.iter().map(|&term| letters(term)).collect();
        prop_assert!(is_clear(&found, &clear), "{:?}", names);
        prop_assert_eq!(found.fewest_runs(), Some(true));
        prop_assert_eq!(found.runs(), fewest_runs(&clear), "{:?}", names);
    }
}
