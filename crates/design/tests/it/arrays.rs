//! Mixed-level orthogonal arrays against published ones.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};

use benchmaster_design::array::{Array, orthogonal_array};
use benchmaster_design::regular::{Fraction, Generator};
use benchmaster_design::structure::structure;
use benchmaster_design::word_length::{generalised_resolution, generalised_word_length_pattern};
use benchmaster_design::{DesignError, full};
use proptest::prelude::*;
use serde_json::Value;

/// Numbers of levels from (levels, how many factors).
fn levels(kinds: &[(u32, usize)]) -> Vec<u32> {
    kinds.iter().flat_map(|&(levels, factors)| vec![levels; factors]).collect()
}

fn array(kinds: &[(u32, usize)], runs: u32) -> Array {
    let levels = levels(kinds);
    let array = orthogonal_array(&levels, Some(runs)).unwrap();
    assert_eq!(array.rows.len(), runs as usize);
    assert_orthogonal(&array.rows, &levels);
    assert_eq!(array.word_length_pattern, generalised_word_length_pattern(&array.rows, &levels));
    array
}

/// Every pair of levels of every two factors, equally often.
fn assert_orthogonal(rows: &[Vec<u32>], levels: &[u32]) {
    for (a, b) in (0..levels.len()).flat_map(|a| (0..a).map(move |b| (a, b))) {
        let mut times: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        rows.iter().for_each(|row| *times.entry((row[a], row[b])).or_default() += 1);
        assert_eq!(times.len() as u32, levels[a] * levels[b], "factors {a} and {b}");
        assert!(times.values().all(|&n| n * times.len() == rows.len()), "factors {a} and {b}: {times:?}");
    }
}

fn vector(id: &str) -> Value {
    let text = std::fs::read_to_string("../stats/tests/vectors/statistics.json").unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    file["vectors"].as_array().unwrap().iter().find(|vector| vector["id"] == id).unwrap().clone()
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

#[test]
fn the_published_mixed_arrays_are_met_or_bettered() {
    let vector = vector("mixed-level-oa-gwlp");
    let tolerance: f64 = vector["tolerance"].as_str().unwrap().parse().unwrap();
    let levels: Vec<u32> = numbers(&vector["input"]["levels"]).iter().map(|&n| n as u32).collect();
    // 24 runs: no more words of length three than the published array, which has the first columns of a larger one.
    let published = numbers(&vector["expect"]["runs_24"]["GWLP_3_to_6"]);
    let found = orthogonal_array(&levels, Some(24)).unwrap();
    assert_orthogonal(&found.rows, &levels);
    assert!(found.word_length_pattern[3] <= published[0] + tolerance, "{:?}", found.word_length_pattern);
    // 96 combinations in 24 runs: whatever the array, its words sum up to 96/24 − 1.
    let sum: f64 = found.word_length_pattern[1..].iter().sum();
    assert!((sum - 3.0).abs() < tolerance && (sum - published.iter().sum::<f64>()).abs() < tolerance);
    // 48 runs of resolution IV or more; the published one has generalised resolution 4.29.
    let half = orthogonal_array(&levels, Some(48)).unwrap();
    assert_orthogonal(&half.rows, &levels);
    assert_eq!(half.word_length_pattern[1..4], [0.0, 0.0, 0.0]);
    assert!(half.generalised_resolution.unwrap() >= 4.29, "{half:?}");
    // The array of 18 runs.
    let eighteen = array(&[(2, 1), (3, 7)], 18);
    for (a, b) in
        eighteen.word_length_pattern[3..].iter().zip(numbers(&vector["expect"]["L18"]["GWLP_3_to_8"]))
    {
        assert!((a - b).abs() < tolerance, "{:?}", eighteen.word_length_pattern);
    }
}

#[test]
fn main_effects_of_the_half_design_are_clear_of_two_factor_interactions() {
    let half = array(&[(2, 5), (3, 1)], 48);
    let found = structure(&half.rows, &levels(&[(2, 5), (3, 1)]), 2).unwrap();
    let main_effects = found.terms.iter().filter(|term| term.factors.len() == 1);
    for term in main_effects {
        assert!(term.estimable && term.aliases.is_empty(), "{term:?}");
    }
    assert_eq!(found.rank, found.parameters);
}

#[test]
fn arrays_of_well_known_sizes() {
    assert_eq!(array(&[(3, 4)], 9).word_length_pattern, [1.0, 0.0, 0.0, 8.0, 0.0]);
    array(&[(2, 11)], 12);
    array(&[(3, 1), (2, 4)], 12);
    array(&[(6, 1), (2, 2)], 12);
    array(&[(2, 15)], 16);
    array(&[(4, 5)], 16);
    // Four-level factors from pairs of two-level columns.
    array(&[(4, 2), (2, 9)], 16);
    array(&[(6, 1), (3, 6)], 18);
    array(&[(5, 1), (2, 8)], 20);
    array(&[(4, 1), (2, 20)], 24);
    array(&[(2, 11), (3, 12)], 36);
    array(&[(2, 4), (3, 13)], 36);
    array(&[(4, 9), (2, 4)], 32);
    array(&[(2, 1), (5, 11)], 50);
    array(&[(2, 2), (3, 2), (4, 1)], 72);
}

#[test]
fn aberration_is_that_of_the_best_known_fractions() {
    // 3^(4-1) and 3^(5-2) with minimum aberration (Chen, Sun & Wu 1993): one word of length four, and one word of length
    // three and three of length four; each word stands for two contrasts.
    assert_eq!(array(&[(3, 4)], 27).word_length_pattern[3..], [0.0, 2.0]);
    assert_eq!(array(&[(3, 5)], 27).word_length_pattern[3..], [2.0, 6.0, 0.0]);
    // Two levels in a power of two: the catalogue.
    let pattern = array(&[(2, 6)], 16).word_length_pattern;
    assert_eq!(pattern, [1.0, 0.0, 0.0, 0.0, 3.0, 0.0, 0.0]);
    // Half of two sets of twelve runs, one with its signs switched: no words of length three.
    assert_eq!(array(&[(2, 10)], 24).word_length_pattern[3], 0.0);
    assert_eq!(array(&[(2, 5), (4, 1)], 32).word_length_pattern[3], 0.0);
}

#[test]
fn the_smallest_array_is_found() {
    let runs = |kinds: &[(u32, usize)]| orthogonal_array(&levels(kinds), None).unwrap().rows.len();
    assert_eq!(runs(&[(3, 4)]), 9);
    assert_eq!(runs(&[(2, 4), (3, 1)]), 12);
    assert_eq!(runs(&[(2, 7)]), 8);
    assert_eq!(runs(&[(4, 1), (2, 12)]), 16);
    assert_eq!(runs(&[(2, 1), (3, 7)]), 18);
    assert_eq!(runs(&[(2, 3), (3, 3)]), 36);
    // Only the full design will do for two factors with levels that have no common divisor.
    let both = orthogonal_array(&[3, 4], None).unwrap();
    assert_eq!((both.rows, both.generalised_resolution), (full(&[3, 4]).unwrap(), None));
}

#[test]
fn sizes_without_an_array_name_those_with_one() {
    let error = |kinds: &[(u32, usize)], runs: u32| {
        orthogonal_array(&levels(kinds), Some(runs)).unwrap_err().to_string()
    };
    assert_eq!(
        error(&[(2, 5), (3, 1)], 20),
        "no orthogonal array of 20 runs for factors with 2^5·3 levels: each pair of levels can only be there equally \
         often in multiples of 12 runs; numbers of runs that will do: 24, 36, 48"
    );
    assert_eq!(
        error(&[(3, 5)], 9),
        "no orthogonal array of 9 runs for factors with 3^5 levels: the main effects and the mean need at least 11 runs; \
         numbers of runs that will do: 18, 27, 36"
    );
    // Enough runs by all counts, and yet there is none (five two-level factors beside three levels in 12 runs).
    assert!(
        error(&[(2, 5), (3, 1)], 12).contains("none was found; numbers of runs that will do: 24, 36, 48")
    );
    assert!(error(&[(2, 2), (3, 1)], 24).contains("the full design has only 12 runs; replicate it"));
    assert!(error(&[(2, 12)], 1024).contains("arrays above 256 runs are not searched"));
    // The one below comes first.
    assert!(error(&[(2, 5), (3, 1)], 30).ends_with("will do: 24, 36, 48, 60"));
    assert_eq!(orthogonal_array(&[2, 0], None), Err(DesignError::NoLevels { factor: 1 }));
    assert!(
        orthogonal_array(&[2; 65], None).unwrap_err().to_string().contains("65 factors are more than the 64")
    );
}

#[test]
fn the_same_arguments_give_the_same_array() {
    let wanted = levels(&[(2, 3), (3, 2)]);
    assert_eq!(orthogonal_array(&wanted, Some(36)), orthogonal_array(&wanted, Some(36)));
    assert_eq!(orthogonal_array(&[], None).unwrap().rows, [[0u32; 0]]);
}

/// Results directories are resumed by later versions: these arrays must never change.
#[test]
fn arrays_are_pinned() {
    let text = |kinds: &[(u32, usize)], runs: u32| {
        let text = |row: &Vec<u32>| row.iter().map(u32::to_string).collect::<String>();
        array(kinds, runs).rows.iter().map(text).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(text(&[(2, 5), (3, 1)], 24), PINNED);
    assert_eq!(text(&[(3, 4)], 9), PINNED_NINE);
}

const PINNED: &str = "000000 111000 110100 001100 100010 011010 010110 101110 010001 101001 000101 111101 110011 \
                      001011 100111 011111 110002 001002 100102 011102 010012 101012 000112 111112";
const PINNED_NINE: &str = "0000 1110 2220 1201 2011 0121 2102 0212 1022";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn every_array_is_orthogonal_and_in_the_order_of_its_factors(
        wanted in prop::collection::vec(1u32..5, 1..5), seed in any::<prop::sample::Index>(),
    ) {
        let found = orthogonal_array(&wanted, None).unwrap();
        assert_orthogonal(&found.rows, &wanted);
        prop_assert_eq!(found.word_length_pattern[0], 1.0);
        // Factors in another order: as good an array.
        let mut turned = wanted.clone();
        turned.rotate_left(seed.index(wanted.len()));
        let other = orthogonal_array(&turned, None).unwrap();
        assert_orthogonal(&other.rows, &turned);
        prop_assert_eq!(found.rows.len(), other.rows.len());
    }

    #[test]
    fn the_patterns_of_a_regular_fraction_and_of_its_rows_agree(
        words in prop::collection::vec((3u64..32, any::<bool>()), 1..5),
    ) {
        let generator = |((word, negative), factor): ((u64, bool), u32)| Generator { factor, word, negative };
        let generators: Vec<_> = words.into_iter().zip(5..).map(generator).collect();
        let factors = 5 + generators.len() as u32;
        let Ok(fraction) = Fraction::from_generators(factors, &generators) else { return Ok(()) };
        let (rows, levels) = (fraction.rows(), vec![2; factors as usize]);
        let words: Vec<_> = fraction.word_length_pattern().iter().map(|&words| words as f64).collect();
        prop_assert_eq!(&generalised_word_length_pattern(&rows, &levels)[1..], &words[1..]);
        let resolution = fraction.resolution().map(f64::from);
        prop_assert_eq!(generalised_resolution(&rows, &levels), resolution);
        prop_assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), rows.len());
    }
}
