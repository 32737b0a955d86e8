//! What rows can tell, against published aliases and against what must not change it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use benchmaster_design::regular::{Fraction, Generator};
use benchmaster_design::structure::{Structure, TermStructure, structure};
use benchmaster_design::term::letters;
use benchmaster_design::word_length::generalised_word_length_pattern;
use benchmaster_design::{DesignError, full};
use proptest::prelude::*;

fn fraction(factors: u32, generators: &[&str]) -> Fraction {
    let parse = |text: &&str| Generator::parse::<&str>(text, &names(factors)).unwrap();
    Fraction::from_generators(factors, &generators.iter().map(parse).collect::<Vec<_>>()).unwrap()
}

fn names(factors: u32) -> Vec<&'static str> {
    ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"][..factors as usize].to_vec()
}

fn name(factors: &[u32]) -> String {
    letters(factors.iter().fold(0, |mask, factor| mask | 1 << factor))
}

fn term<'a>(structure: &'a Structure, name_wanted: &str) -> &'a TermStructure {
    structure.terms.iter().find(|term| name(&term.factors) == name_wanted).unwrap()
}

fn aliases(structure: &Structure, wanted: &str) -> String {
    let sign = |correlation: f64| if correlation < 0.0 { "-" } else { "" };
    let aliases = &term(structure, wanted).aliases;
    aliases.iter().map(|(other, c)| format!("{}{}", sign(*c), name(other))).collect::<Vec<_>>().join("=")
}

/// Plackett and Burman's twelve runs.
fn twelve_runs() -> Vec<Vec<u32>> {
    let first: Vec<_> = "++-+++---+-".bytes().map(|sign| u32::from(sign == b'+')).collect();
    let shifted = |by: usize| (0..11).map(|factor| first[(factor + 11 - by) % 11]).collect();
    (0..11).map(shifted).chain([vec![0; 11]]).collect()
}

#[test]
fn a_regular_fraction_is_recognised_with_its_aliases() {
    let design = fraction(6, &["D=AB", "E=AC", "F=BC"]);
    let found = structure(&design.rows(), &[2; 6], 3).unwrap();
    assert_eq!(found.regular.as_ref().unwrap().generators(), design.generators());
    assert_eq!((found.runs, found.distinct, found.parameters, found.rank), (8, 8, 42, 8));
    assert_eq!(found.word_length_pattern.as_deref().unwrap(), [1.0, 0.0, 0.0, 4.0, 3.0, 0.0, 0.0]);
    assert_eq!(aliases(&found, "A"), "BD=CE=BEF=CDF");
    assert_eq!(aliases(&found, "B"), "AD=CF=AEF=CDE");
    assert_eq!(aliases(&found, "AF"), "BE=CD=ABC=ADE=BDF=CEF");
    assert_eq!(aliases(&found, "I"), "ABD=ACE=BCF=DEF");
    // Main effects are distinguished among themselves, no interaction is from the main effects.
    let estimable: Vec<_> = found.terms.iter().filter(|t| t.estimable).map(|t| name(&t.factors)).collect();
    assert_eq!(estimable, ["I", "A", "B", "C", "D", "E", "F"]);
    let ranks: Vec<_> = found.models.iter().map(|model| (model.parameters, model.rank)).collect();
    assert_eq!(ranks, [(1, 1), (7, 7), (22, 8), (42, 8)]);
}

#[test]
fn negative_generators_have_negative_aliases() {
    let rows = fraction(4, &["D=-AB"]).rows();
    let found = structure(&rows, &[2; 4], 2).unwrap();
    assert!(found.regular.as_ref().unwrap().generators()[0].negative);
    assert_eq!(aliases(&found, "D"), "-AB");
    // The same rows twice, and once more as a dense matrix: the signs agree.
    let mut uneven = [rows.clone(), rows.clone()].concat();
    uneven.push(rows[0].clone());
    let found = structure(&uneven, &[2; 4], 2).unwrap();
    assert_eq!(found.regular, None);
    assert_eq!(term(&found, "D").aliases[0], (vec![0, 1], -1.0));
}

#[test]
fn screening_designs_have_partial_aliases() {
    let found = structure(&twelve_runs(), &[2; 11], 2).unwrap();
    assert_eq!((found.regular.clone(), found.parameters, found.rank), (None, 67, 12));
    for main in &found.terms[1..12] {
        assert!(main.estimable && (main.variance_inflation.unwrap() - 1.0).abs() < 1e-9);
        // Each of the 45 interactions of the other ten has a third of it.
        assert_eq!(main.aliases.len() + main.aliases_left_out, 45);
        for (other, correlation) in &main.aliases {
            assert!(!other.contains(&main.factors[0]));
            assert!((correlation.abs() - 1.0 / 3.0).abs() < 1e-12);
        }
    }
    assert!(found.terms[12..].iter().all(|interaction| !interaction.estimable));
}

#[test]
fn failed_runs_are_what_least_squares_says_of_them() {
    // 2^2 with three runs: AB is lost, and each effect's variance is 3 (X'X)^-1 = 3/2, computed by hand.
    let rows = [vec![0, 0], vec![1, 0], vec![0, 1]];
    let found = structure(&rows, &[2, 2], 2).unwrap();
    assert_eq!(found.rank, 3);
    assert!((term(&found, "A").variance_inflation.unwrap() - 1.5).abs() < 1e-12);
    assert!(!term(&found, "AB").estimable && term(&found, "AB").variance_inflation.is_none());
    // x_AB = −1 − x_A − x_B: about their means the columns have a correlation of −1/2 each, and a third with the mean.
    let correlations: Vec<_> = term(&found, "AB").aliases.iter().map(|(other, c)| (&other[..], *c)).collect();
    for ((other, correlation), (expected_other, expected)) in
        correlations.into_iter().zip([(&[0][..], -0.5), (&[1], -0.5), (&[], -1.0 / 3.0)])
    {
        assert_eq!(other, expected_other);
        assert!((correlation - expected).abs() < 1e-12, "{other:?}: {correlation}");
    }
}

#[test]
fn mixed_levels_are_told_apart_contrast_by_contrast() {
    let levels = [2, 3, 4];
    let rows = full(&levels).unwrap();
    let found = structure(&rows, &levels, 3).unwrap();
    assert_eq!((found.parameters, found.rank), (24, 24));
    assert!(found.terms.iter().all(|term| term.estimable && term.aliases.is_empty()));
    assert!(found.terms.iter().all(|term| (term.variance_inflation.unwrap() - 1.0).abs() < 1e-9));
    // A three-level factor whose last two levels share out the high level of the first: one of its two contrasts is that
    // of the first factor, the other is estimated.
    let tied = [[0, 0], [0, 0], [1, 1], [1, 2]].map(Vec::from);
    let found = structure(&tied, &[2, 3], 1).unwrap();
    assert_eq!(found.rank, 3);
    let factor = &found.terms[2];
    assert_eq!(
        (factor.degrees_of_freedom, factor.estimable_degrees_of_freedom, factor.estimable),
        (2, 1, false)
    );
    assert_eq!(factor.aliases[0], (vec![0], 1.0));
    assert_eq!(found.terms[1].aliases[0], (vec![1], 1.0));
    // A level that never occurs is a contrast that is not estimated.
    let found = structure(&full(&[2, 2]).unwrap(), &[2, 3], 2).unwrap();
    let degrees: Vec<_> = found.terms.iter().map(|term| term.estimable_degrees_of_freedom).collect();
    assert_eq!(degrees, [1, 1, 1, 1]);
}

#[test]
fn factors_with_one_level_are_in_no_term() {
    let found = structure(&full(&[2, 1, 2]).unwrap(), &[2, 1, 2], 3).unwrap();
    let factors: Vec<_> = found.terms.iter().map(|term| &term.factors[..]).collect();
    assert_eq!(factors, [&[][..], &[0], &[2], &[0, 2]]);
}

#[test]
fn what_is_too_large_says_what_is_not() {
    let error =
        |rows: &[Vec<u32>], levels: &[u32], order| structure(rows, levels, order).unwrap_err().to_string();
    let many = error(&[vec![0; 60], vec![1; 60]], &[2; 60], 3);
    assert!(
        many.contains("(36051 terms, 36051 parameters)") && many.contains("terms up to order 1"),
        "{many}"
    );
    assert!(many.contains("limit: 1536 parameters"), "{many}");
    let terms = error(&[vec![0; 40]], &[2; 40], 9);
    assert!(terms.contains("limit: 65536 terms") && terms.contains("terms up to order 3"), "{terms}");
    assert_eq!(structure(&[], &[2], 1), Err(DesignError::NoRows));
    assert!(matches!(structure(&[vec![2]], &[2], 1), Err(DesignError::RowLevel { .. })));
}

/// Two-level rows that are a fraction of no kind.
fn any_rows() -> impl Strategy<Value = Vec<Vec<u32>>> {
    prop::collection::vec((0u32..2, 0u32..3, 0u32..2, 0u32..2), 2..16)
        .prop_map(|rows| rows.into_iter().map(|(a, b, c, d)| vec![a, b, c, d]).collect())
}

/// A term's factors, estimable degrees of freedom, variance inflation and aliases, rounded.
type Magnitudes = (Vec<u32>, u32, i64, Vec<(Vec<u32>, i64)>);

/// What does not depend on signs.
fn magnitudes(structure: &Structure) -> Vec<Magnitudes> {
    let rounded = |value: f64| (value * 1e6).round() as i64;
    let of_term = |term: &TermStructure| {
        let mut aliases: Vec<_> = term.aliases.iter().map(|(t, c)| (t.clone(), rounded(c.abs()))).collect();
        aliases.sort();
        let inflation = term.variance_inflation.map_or(-1, rounded);
        (term.factors.clone(), term.estimable_degrees_of_freedom, inflation, aliases)
    };
    structure.terms.iter().map(of_term).collect()
}

proptest! {
    #[test]
    fn the_order_of_rows_and_the_names_of_levels_do_not_matter(rows in any_rows(), turn in any::<prop::sample::Index>()) {
        let levels = [2, 3, 2, 2];
        let before = structure(&rows, &levels, 3).unwrap();
        let mut other = rows;
        let middle = turn.index(other.len());
        other.rotate_left(middle);
        for row in &mut other {
            (row[0], row[1]) = (1 - row[0], [2, 0, 1][row[1] as usize]);
        }
        let after = structure(&other, &levels, 3).unwrap();
        prop_assert_eq!(before.rank, after.rank);
        prop_assert_eq!(&before.models, &after.models);
        prop_assert_eq!(magnitudes(&before), magnitudes(&after));
        for (a, b) in before.word_length_pattern.unwrap().iter().zip(after.word_length_pattern.unwrap()) {
            prop_assert!((a - b).abs() < 1e-9);
        }
    }

    /// The short way for fractions and the way for any rows say the same, as do words counted either way.
    #[test]
    fn regular_fractions_are_as_the_general_way_finds_them(
        words in prop::collection::vec((3u64..16, any::<bool>()), 0..4), max_order in 1u32..4,
    ) {
        let generator = |((word, negative), factor): ((u64, bool), u32)| Generator { factor, word, negative };
        let generators: Vec<_> = words.into_iter().zip(4..).map(generator).collect();
        let factors = 4 + generators.len() as u32;
        let Ok(design) = Fraction::from_generators(factors, &generators) else { return Ok(()) };
        let rows = design.rows();
        let levels = vec![2; factors as usize];
        let words: Vec<_> = design.word_length_pattern().iter().map(|&words| words as f64).collect();
        prop_assert_eq!(generalised_word_length_pattern(&rows, &levels)[1..].to_vec(), words[1..].to_vec());
        let short = structure(&rows, &levels, max_order).unwrap();
        prop_assert!(short.regular.is_some());
        // A third factor level that nobody uses makes the rows irregular for the one with it, and a factor that never
        // changes adds no information.
        let with_constant: Vec<_> = rows.iter().map(|row| [row.clone(), vec![0]].concat()).collect();
        let general = structure(&with_constant, &[levels, vec![1]].concat(), max_order).unwrap();
        prop_assert_eq!(&general.regular, &None);
        prop_assert_eq!(&short.models, &general.models);
        prop_assert_eq!(short.rank, general.rank);
        prop_assert_eq!(magnitudes(&short), magnitudes(&general));
        for (a, b) in short.terms.iter().zip(&general.terms) {
            prop_assert_eq!(&a.aliases, &b.aliases);
        }
    }
}
