//! Confounded blocks of two-level designs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::collections::BTreeMap;

use benchmaster_design::block::blocks;
use benchmaster_design::regular::{Fraction, Generator};
use benchmaster_design::term::{letters, order, up_to};

fn names(terms: &[u64]) -> String {
    terms.iter().map(|&term| letters(term)).collect::<Vec<_>>().join(" ")
}

#[test]
fn four_factors_in_four_blocks_confound_abc_ad_and_bcd() {
    let blocking = blocks(&Fraction::full(4).unwrap(), 4).unwrap();
    assert_eq!(names(&blocking.confounded), "AD ABC BCD");
    assert_eq!(names(&blocking.generators), "ABC BCD");
    assert!(blocking.proved);
}

#[test]
fn textbook_blocks_of_full_designs() {
    for (factors, count, expected) in [
        (2, 2, "AB"),
        (3, 2, "ABC"),
        (3, 4, "AB AC BC"),
        (4, 2, "ABCD"),
        (4, 8, "AB AC AD BC BD CD ABCD"),
        (5, 2, "ABCDE"),
        (6, 2, "ABCDEF"),
    ] {
        let blocking = blocks(&Fraction::full(factors).unwrap(), count).unwrap();
        assert_eq!(names(&blocking.confounded), expected, "2^{factors} in {count} blocks");
    }
    // Five factors in four blocks, and six in eight, without an interaction of two factors.
    for (factors, count) in [(5, 4), (6, 4), (6, 8), (7, 8)] {
        let blocking = blocks(&Fraction::full(factors).unwrap(), count).unwrap();
        assert!(blocking.confounded.iter().all(|&term| order(term) >= 3), "{}", names(&blocking.confounded));
    }
}

#[test]
fn blocks_are_balanced_and_constant_exactly_on_the_confounded_terms() {
    let generators: Vec<_> =
        ["F=ABC", "G=-ABDE"].map(|text| Generator::parse(text, &NAMES).unwrap()).to_vec();
    for fraction in [Fraction::full(5).unwrap(), Fraction::from_generators(7, &generators).unwrap()] {
        let rows = fraction.rows();
        for count in [2, 4, 8] {
            let blocking = blocks(&fraction, count).unwrap();
            let mut sizes = BTreeMap::new();
            blocking.block_of_row.iter().for_each(|block| *sizes.entry(block).or_insert(0) += 1);
            assert_eq!(sizes.len(), count as usize);
            assert!(sizes.values().all(|&size| size == rows.len() / count as usize));
            for term in up_to(fraction.factors(), 2).into_iter().skip(1) {
                let sign =
                    |row: &[u32]| (0..row.len()).filter(|&f| term >> f & 1 == 1 && row[f] == 0).count() % 2;
                let mut signs = BTreeMap::new();
                for (row, block) in rows.iter().zip(&blocking.block_of_row) {
                    signs.entry(block).or_insert_with(Vec::new).push(sign(row));
                }
                let constant = signs.values().all(|signs| signs.iter().all(|sign| *sign == signs[0]));
                let confounded =
                    blocking.confounded.iter().any(|&c| fraction.column(c) == fraction.column(term));
                assert_eq!(constant, confounded, "{} in {count} blocks", letters(term));
                assert!(order(term) > 1 || !constant, "the main effect {} is confounded", letters(term));
            }
        }
    }
}

const NAMES: [&str; 7] = ["A", "B", "C", "D", "E", "F", "G"];

#[test]
fn impossible_numbers_of_blocks_are_refused() {
    let full = Fraction::full(3).unwrap();
    for count in [0, 1, 3, 8, 16] {
        let error = blocks(&full, count).unwrap_err().to_string();
        assert!(error.contains("take a power of two from 2 to 4"), "{error}");
    }
    // All seven columns of the saturated design are main effects.
    let generators: Vec<_> =
        ["D=AB", "E=AC", "F=BC", "G=ABC"].map(|text| Generator::parse(text, &NAMES).unwrap()).to_vec();
    let error = blocks(&Fraction::from_generators(7, &generators).unwrap(), 2).unwrap_err().to_string();
    assert!(error.contains("2 blocks of 4 runs would confound a main effect"), "{error}");
}

#[test]
fn large_designs_get_blocks_too() {
    let blocking = blocks(&Fraction::full(12).unwrap(), 64).unwrap();
    assert!(blocking.confounded.iter().all(|&term| order(term) >= 3), "{}", names(&blocking.confounded));
}
