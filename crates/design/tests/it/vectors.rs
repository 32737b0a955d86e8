//! Two-level designs against the published examples in `vectors/statistics.json`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::collections::BTreeSet;

use benchmaster_design::block::blocks;
use benchmaster_design::fold::{Fold, combined, foldover};
use benchmaster_design::plackett_burman::plackett_burman;
use benchmaster_design::regular::{Fraction, Generator};
use benchmaster_design::search::{by_resolution, by_runs};
use benchmaster_design::term::{letters, parse_letters};
use serde_json::Value;

type Check = fn(&Value, &Value);

/// The vectors about two-level designs; the others are checked where their formulas are.
const CHECKS: [(&str, Check); 5] = [
    ("alias-2^(6-3)-seed004", aliases),
    ("alias-2^(5-1)", aliases),
    ("foldover-2^(7-4)", folded),
    ("minimum-aberration-catalogue", catalogue),
    ("plackett-burman", rows_of_plackett_burman),
];

#[test]
fn every_vector_of_two_level_designs_is_reproduced() {
    let text = std::fs::read_to_string("../stats/tests/vectors/statistics.json").unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let vectors = file["vectors"].as_array().unwrap();
    for (id, check) in CHECKS {
        let vector = vectors.iter().find(|vector| vector["id"] == id);
        let vector = vector.unwrap_or_else(|| panic!("no vector {id}"));
        check(&vector["input"], &vector["expect"]);
    }
}

/// The fraction with the generators of a vector's input, {"D": "AB", …}.
fn fraction(input: &Value) -> Fraction {
    let factors = number(&input["k"]) as u32;
    let names: Vec<_> = (0..factors).map(|factor| letters(1 << factor)).collect();
    let generators = input["generators"].as_object().unwrap().iter();
    let generators: Vec<_> = generators
        .map(|(added, word)| {
            Generator::parse(&format!("{added}={}", word.as_str().unwrap()), &names).unwrap()
        })
        .collect();
    Fraction::from_generators(factors, &generators).unwrap()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn aliases(input: &Value, expect: &Value) {
    let fraction = fraction(input);
    assert_eq!(u64::from(fraction.resolution().unwrap()), number(&expect["resolution"]));
    let pattern = fraction.word_length_pattern();
    for (length, &words) in pattern.iter().enumerate() {
        assert_eq!(
            words,
            expect["word_length_pattern"][length.to_string()].as_u64().unwrap_or(0),
            "length {length}"
        );
    }
    let chains: Vec<_> = fraction.chains(3).iter().map(ToString::to_string).collect();
    for key in ["alias_main", "alias_2fi"] {
        if let Some(expected) = expect.get(key) {
            for chain in strings(expected) {
                assert!(chains.contains(&chain), "{chain} is not among {chains:?}");
            }
        }
    }
    if let Some(words) = expect.get("defining_words") {
        let found: BTreeSet<_> = fraction.defining_words().iter().map(ToString::to_string).collect();
        assert_eq!(found, strings(words).into_iter().collect());
    }
    if let Some(words) = expect.get("alias_3fi_with_mean") {
        assert_eq!(chains[0], format!("I={}", strings(words).join("=")));
    }
}

fn folded(input: &Value, expect: &Value) {
    let fraction = fraction(input);
    let before = expect["before"].as_str().unwrap().strip_prefix("resolution III: ").unwrap();
    assert_eq!(fraction.resolution(), Some(3));
    let chains: Vec<_> = fraction.chains(2).iter().skip(1).map(ToString::to_string).collect();
    assert_eq!(chains, before.split(", ").collect::<Vec<_>>());

    assert!(expect["after"].as_str().unwrap().starts_with("resolution IV 16 runs"));
    let both = combined(&fraction, Fold::All).unwrap();
    assert_eq!((both.fraction.resolution(), both.fraction.runs()), (Some(4), 16));
    assert_eq!((both.with_block.resolution(), both.with_block.runs()), (Some(4), 16));
    assert_eq!(both.with_block.clear().main_effects.len(), 8);
    let of_two =
        both.with_block.chains(2).into_iter().filter(|chain| chain.members[0].term.count_ones() == 2);
    assert_eq!(of_two.count(), 7, "chains of interactions, those with the fold factor among them");
    // The runs themselves are those of the combined fraction, with the fold factor as the last one.
    let rows = fraction.rows();
    let with_block = |rows: &[Vec<u32>], block| -> Vec<Vec<u32>> {
        rows.iter().map(|row| row.iter().copied().chain([block]).collect()).collect()
    };
    let runs = [with_block(&rows, 0), with_block(&foldover(&rows, Fold::All), 1)].concat();
    assert_eq!(runs.into_iter().collect::<BTreeSet<_>>(), both.with_block.rows().into_iter().collect());
}

fn catalogue(_input: &Value, expect: &Value) {
    let rows = expect.as_array().unwrap();
    assert_eq!(rows.len(), 42);
    for row in rows {
        let name = row["name"].as_str().unwrap();
        let (factors, runs) = (number(&row["factors"]) as u32, number(&row["runs"]));
        let pattern: Vec<_> = row["wlp_from_length_0"].as_array().unwrap().iter().map(number).collect();
        let base = runs.ilog2();
        let words = strings(&row["generators"]);
        let published: Vec<_> = (base..)
            .zip(&words)
            .map(|(factor, word)| Generator { factor, word: parse_letters(word).unwrap(), negative: false })
            .collect();
        let published = Fraction::from_generators(factors, &published).unwrap();
        let found = by_runs(factors, runs).unwrap();
        for fraction in [&published, &found] {
            // The mean counts as no word.
            assert_eq!(fraction.word_length_pattern(), pattern, "{name}");
            assert_eq!(fraction.resolution(), Some(number(&row["resolution"]) as u32), "{name}");
            assert_eq!(fraction.clear().two_factor.len() as u64, number(&row["clear_2fis"]), "{name}");
        }
        assert_eq!(found.generators(), published.generators(), "{name}");
        // Asked for by its resolution, a design with no more runs comes out.
        let by_resolution = by_resolution(factors, found.resolution().unwrap()).unwrap();
        assert!(by_resolution.runs() <= runs && by_resolution.resolution() >= found.resolution(), "{name}");
    }
}

fn rows_of_plackett_burman(input: &Value, expect: &Value) {
    assert_eq!(expect["orthogonal"], "X'X = n I for each");
    for (runs, first) in input["first_row"].as_object().unwrap() {
        let first: Vec<u32> = first.as_str().unwrap().bytes().map(|sign| u32::from(sign == b'+')).collect();
        let rows = plackett_burman(first.len() as u32).unwrap();
        assert_eq!(rows.len().to_string(), *runs);
        assert_eq!(rows[0], first);
        assert!(rows.last().unwrap().iter().all(|&level| level == 0));
        let shifts: BTreeSet<_> = (0..first.len()).map(|by| [&first[by..], &first[..by]].concat()).collect();
        assert_eq!(rows[..first.len()].iter().cloned().collect::<BTreeSet<_>>(), shifts);
        for a in 0..first.len() {
            for b in 0..a {
                assert_eq!(
                    rows.iter().filter(|row| row[a] == row[b]).count(),
                    rows.len() / 2,
                    "{a} and {b} of {runs}"
                );
            }
        }
    }
}

#[test]
fn four_factors_in_four_blocks() {
    let blocking = blocks(&Fraction::full(4).unwrap(), 4).unwrap();
    let confounded: BTreeSet<_> = blocking.confounded.iter().map(|&term| letters(term)).collect();
    assert_eq!(confounded, ["ABC", "AD", "BCD"].map(String::from).into());
}
