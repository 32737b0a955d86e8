//! Properties of two-level fractions, with the columns themselves as the judge.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};

use benchmaster_design::block::blocks;
use benchmaster_design::fold::{Addition, Fold, best_fold, combined, foldover, semifold};
use benchmaster_design::regular::{Fraction, Generator};
use benchmaster_design::search::by_runs;
use benchmaster_design::term::{SignedTerm, Term, letters, order, up_to};
use proptest::prelude::*;

const NAMES: [&str; 8] = ["A", "B", "C", "D", "E", "F", "G", "H"];

fn fraction(factors: u32, generators: &[&str]) -> Result<Fraction, String> {
    let generators: Result<Vec<_>, _> =
        generators.iter().map(|text| Generator::parse(text, &NAMES)).collect();
    generators
        .and_then(|generators| Fraction::from_generators(factors, &generators))
        .map_err(|e| e.to_string())
}

/// The column of a term as signs, from the rows.
fn column(rows: &[Vec<u32>], term: Term) -> Vec<i32> {
    let sign = |row: &Vec<u32>| {
        let factors = (0..row.len()).filter(|&factor| term >> factor & 1 == 1);
        factors.map(|factor| 2 * row[factor] as i32 - 1).product()
    };
    rows.iter().map(sign).collect()
}

/// Fractions of up to 8 factors with any generators that are accepted, negative ones and chains of them included.
fn fractions() -> impl Strategy<Value = Fraction> {
    let generators = prop::collection::vec((0u32..8, 0u64..256, any::<bool>()), 0..5);
    (3u32..9, generators).prop_filter_map("not a fraction", |(factors, generators)| {
        let within = (1u64 << factors) - 1;
        let generators: Vec<_> = generators
            .into_iter()
            .map(|(factor, word, negative)| Generator {
                factor: factor % factors,
                word: word & within,
                negative,
            })
            .collect();
        Fraction::from_generators(factors, &generators).ok()
    })
}

#[test]
fn the_fraction_of_six_factors_in_eight_runs() {
    let design = fraction(6, &["D=AB", "E=AC", "F=BC"]).unwrap();
    assert_eq!((design.runs(), design.factors(), design.base()), (8, 6, &[0, 1, 2][..]));
    let rows = design.rows();
    // A, B, C in standard order; D is high where A and B are alike.
    assert_eq!(rows[0], [0, 0, 0, 1, 1, 1]);
    assert_eq!(rows[1], [1, 0, 0, 0, 0, 1]);
    assert_eq!(rows[7], [1; 6]);
    let aliases: Vec<_> = design.aliases(0b10, 2).iter().map(ToString::to_string).collect();
    assert_eq!(aliases, ["AD", "CF"]);
    assert_eq!(design.clear().main_effects.len() + design.clear().two_factor.len(), 0);
}

#[test]
fn full_designs_have_no_words_and_everything_clear() {
    let full = Fraction::full(4).unwrap();
    assert_eq!((full.runs(), full.resolution()), (16, None));
    assert_eq!(full.word_length_pattern(), [0; 5]);
    assert!(full.defining_words().is_empty());
    assert_eq!((full.clear().main_effects.len(), full.clear().two_factor.len()), (4, 6));
    assert_eq!(full.rows(), benchmaster_design::full(&[2; 4]).unwrap());
}

#[test]
fn negative_generators_switch_signs() {
    let design = fraction(5, &["D=-AB", "E=-ABC"]).unwrap();
    let words: Vec<_> = design.defining_words().iter().map(ToString::to_string).collect();
    assert_eq!(words, ["-ABD", "CDE", "-ABCE"]);
    assert_eq!(design.chains(2)[1].to_string(), "A=-BD");
    assert_eq!(design.rows()[3], [1, 1, 0, 0, 1]);
}

#[test]
fn any_factors_may_be_the_added_ones() {
    let one = fraction(5, &["A=CD", "E=AB"]).unwrap();
    assert_eq!(one.base(), [1, 2, 3]);
    let words: Vec<_> = one.defining_words().iter().map(ToString::to_string).collect();
    assert_eq!(words, ["ABE", "ACD", "BCDE"]);
    let other = fraction(5, &["E=BCD", "A=CD"]).unwrap();
    assert_eq!(one.defining_words(), other.defining_words());
}

#[test]
fn impossible_generators_are_refused_by_name() {
    for (factors, generators, message) in [
        (4, vec!["D=AB", "D=AC"], "factor D has two generators, D=AB and D=AC; keep one"),
        (5, vec!["D=AE", "E=BD"], "the generators D=AE, E=BD define each other in a circle"),
        (3, vec!["C=AC"], "the generators C=AC define each other in a circle"),
        (3, vec!["C=I"], "by generator C=I the factor C never changes"),
        (3, vec!["C=-A"], "by the generators C=-A the factors A and C always change together (I = AC)"),
        (
            5,
            vec!["D=AB", "E=-AB"],
            "by the generators D=AB, E=-AB the factors D and E always change together",
        ),
        (3, vec!["D=AB"], "generator D=AB names the factor D, but the design has 3 factors"),
        (3, vec!["C=AE"], "generator C=AE names the factor E, but the design has 3 factors"),
        (3, vec!["C"], "`C` is not a generator; write the added factor"),
        (3, vec!["AB=C"], "`AB=C` is not a generator"),
        (
            3,
            vec!["C=AX"],
            "`AX` in `AX` is neither the name of a factor nor letters of the 8 factors (A to H",
        ),
        (0, vec![], "needs 1 to 63 factors, not 0"),
        (64, vec![], "needs 1 to 63 factors, not 64"),
        (21, vec![], "2^21 runs are more than a design may have (2^20)"),
    ] {
        let error = fraction(factors, &generators).unwrap_err();
        assert!(error.contains(message), "{error}\ninstead of\n{message}");
    }
    let many: Vec<_> = (5..31u32)
        .map(|factor| {
            let word = (3..32).filter(|word: &u64| word.count_ones() > 1).nth(factor as usize - 5).unwrap();
            Generator { factor, word, negative: false }
        })
        .collect();
    let error = Fraction::from_generators(31, &many).unwrap_err().to_string();
    assert!(error.contains("26 generators have 2^26 defining words"), "{error}");
}

#[test]
fn the_fraction_of_six_factors_becomes_resolution_iv_by_folding() {
    let design = fraction(6, &["D=AB", "E=AC", "F=BC"]).unwrap();
    let both = combined(&design, Fold::All).unwrap();
    assert!(both.new_treatments);
    let words: Vec<_> = both.surviving.iter().map(ToString::to_string).collect();
    assert_eq!(words, ["ABEF", "ACDF", "BCDE"]);
    assert_eq!(both.fraction.clear().main_effects.len(), 6);
    // One factor: it and its interactions become clear of the others.
    let one = combined(&design, Fold::Factor(1)).unwrap().fraction;
    assert!(one.aliases(0b10, 2).is_empty());
    assert!((0..6).filter(|&f| f != 1).all(|f| one.aliases(0b10 | 1 << f, 2).is_empty()));
}

#[test]
fn a_fold_without_effect_on_the_words_repeats_the_runs() {
    let design = fraction(4, &["D=ABC"]).unwrap();
    let both = combined(&design, Fold::All).unwrap();
    assert!(!both.new_treatments);
    assert_eq!(both.fraction.defining_words(), design.defining_words());
    let rows = design.rows();
    let again: BTreeSet<_> = foldover(&rows, Fold::All).into_iter().collect();
    assert_eq!(again, rows.into_iter().collect());
}

#[test]
fn semifolds_add_half_of_the_runs_and_leave_other_levels_alone() {
    let design = fraction(4, &["D=ABC"]).unwrap();
    let rows = design.rows();
    let added = semifold(&rows, 0, (1, 1));
    let expected: Vec<_> =
        rows.iter().filter(|row| row[1] == 1).map(|row| vec![1 - row[0], row[1], row[2], row[3]]).collect();
    assert_eq!(added, expected);
    assert_eq!(added.len(), 4);
    assert_eq!(foldover(&[vec![2, 2, 1]], Fold::All), [[2, 2, 0]], "centre points stay");
    assert_eq!(foldover(&[vec![1, 0, 1]], Fold::Factors(0b011)), [[0, 1, 1]]);
}

#[test]
fn the_smallest_addition_separates_what_was_asked() {
    // AB=CD, AC=BD, AD=BC: four more runs separate all six interactions.
    let design = fraction(4, &["D=ABC"]).unwrap();
    let best = best_fold(&design, &[0b0011, 0b0101], 2).unwrap();
    assert!(matches!(best.addition, Addition::Semifold { .. }), "{best:?}");
    assert_eq!(best.runs, 4);
    assert_eq!(best.estimable.len(), 11, "{best:?}");
    // Six factors in eight runs: all main effects need the whole foldover.
    let design = fraction(6, &["D=AB", "E=AC", "F=BC"]).unwrap();
    let mains: Vec<_> = (0..6).map(|factor| 1u64 << factor).collect();
    let best = best_fold(&design, &mains, 2).unwrap();
    assert_eq!((best.addition, best.runs), (Addition::Foldover(Fold::All), 8));
    // Nothing to separate, and nothing that one fold can separate.
    assert_eq!(best_fold(&design, &[], 2), None);
    let all: Vec<_> = up_to(6, 2).into_iter().skip(1).collect();
    assert_eq!(best_fold(&design, &all, 2), None);
}

/// The rank of columns, by elimination with fractions of whole numbers.
fn rank(columns: &[Vec<i32>]) -> usize {
    let mut rows: Vec<Vec<f64>> = columns.iter().map(|c| c.iter().map(|&v| f64::from(v)).collect()).collect();
    let mut rank = 0;
    for at in 0..rows.first().map_or(0, Vec::len) {
        let Some(pivot) = (rank..rows.len()).max_by(|&a, &b| rows[a][at].abs().total_cmp(&rows[b][at].abs()))
        else {
            break;
        };
        if rows[pivot][at].abs() < 1e-9 {
            continue;
        }
        rows.swap(rank, pivot);
        let (done, rest) = rows.split_at_mut(rank + 1);
        for row in rest {
            let times = row[at] / done[rank][at];
            row.iter_mut().zip(&done[rank]).for_each(|(value, &pivot)| *value -= times * pivot);
        }
        rank += 1;
    }
    rank
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn columns_are_balanced_and_words_are_constant(design in fractions()) {
        let rows = design.rows();
        prop_assert_eq!(rows.len() as u64, design.runs());
        prop_assert_eq!(rows.iter().collect::<BTreeSet<_>>().len(), rows.len());
        let words: BTreeMap<Term, bool> = design.defining_words().iter().map(|w| (w.term, w.negative)).collect();
        prop_assert_eq!(words.len() + 1, 1 << design.generators().len());
        // A term's column sums to ±N when it is a word, else to 0.
        for term in 1..1u64 << design.factors() {
            let sum: i32 = column(&rows, term).iter().sum();
            let expected = match words.get(&term) {
                Some(true) => -(rows.len() as i32),
                Some(false) => rows.len() as i32,
                None => 0,
            };
            prop_assert_eq!(sum, expected, "{}", letters(term));
        }
        // Products of words are words.
        for (&a, &sign_a) in &words {
            for (&b, &sign_b) in words.iter().filter(|(b, _)| **b != a) {
                prop_assert_eq!(words.get(&(a ^ b)), Some(&(sign_a != sign_b)));
            }
        }
        for generator in design.generators() {
            prop_assert_eq!(words.get(&(generator.word ^ 1 << generator.factor)), Some(&generator.negative));
        }
        let pattern = design.word_length_pattern();
        prop_assert_eq!(pattern.iter().sum::<u64>(), words.len() as u64);
        prop_assert_eq!(design.resolution(), words.keys().map(|&word| order(word)).min());
    }

    #[test]
    fn chains_partition_all_effects(design in fractions()) {
        let rows = design.rows();
        let chains = design.chains(design.factors());
        prop_assert_eq!(chains.len() as u64, design.runs());
        let all: Vec<_> = chains.iter().flat_map(|chain| chain.members.iter().map(|m| m.term)).collect();
        prop_assert_eq!(all.len(), 1 << design.factors());
        prop_assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        prop_assert_eq!(chains[0].members[0], SignedTerm { term: 0, negative: false });
        for chain in &chains {
            let first = column(&rows, chain.members[0].term);
            prop_assert!(!chain.members[0].negative);
            for member in &chain.members {
                let sign = if member.negative { -1 } else { 1 };
                let same: Vec<_> = column(&rows, member.term).iter().map(|value| sign * value).collect();
                prop_assert_eq!(&same, &first, "{} in {}", member, chain);
            }
            let aliases = design.aliases(chain.members[0].term, design.factors());
            prop_assert_eq!(&aliases[..], &chain.members[1..]);
        }
        // Up to an order the chains are the same ones, cut off.
        let short = design.chains(2);
        let terms: usize = short.iter().map(|chain| chain.members.len()).sum();
        prop_assert_eq!(terms, up_to(design.factors(), 2).len());
    }

    #[test]
    fn clear_effects_share_their_column_with_nothing_short(design in fractions()) {
        let rows = design.rows();
        let short: Vec<_> = up_to(design.factors(), 2).into_iter().skip(1).collect();
        let clear = design.clear();
        for &term in &short {
            let own = column(&rows, term);
            let shared = short.iter().filter(|&&other| {
                let product: i32 = column(&rows, other).iter().zip(&own).map(|(a, b)| a * b).sum();
                product.unsigned_abs() as usize == rows.len()
            });
            let listed = clear.main_effects.contains(&term) || clear.two_factor.contains(&term);
            prop_assert_eq!(shared.count() == 1, listed, "{}", letters(term));
        }
    }

    #[test]
    fn relabelled_factors_change_nothing_but_names(
        design in fractions(),
        order in Just((0..8u32).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let order: Vec<u32> = order.into_iter().filter(|&factor| factor < design.factors()).collect();
        let renamed = |term: Term| -> Term {
            (0..design.factors()).filter(|&f| term >> f & 1 == 1).map(|f| 1u64 << order[f as usize]).sum()
        };
        let generators: Vec<_> = design
            .generators()
            .iter()
            .map(|g| Generator { factor: order[g.factor as usize], word: renamed(g.word), negative: g.negative })
            .collect();
        let other = Fraction::from_generators(design.factors(), &generators).unwrap();
        prop_assert_eq!(other.word_length_pattern(), design.word_length_pattern());
        prop_assert_eq!(other.clear().two_factor.len(), design.clear().two_factor.len());
        let words: BTreeSet<_> = design.defining_words().iter().map(|w| (renamed(w.term), w.negative)).collect();
        prop_assert_eq!(other.defining_words().iter().map(|w| (w.term, w.negative)).collect::<BTreeSet<_>>(), words);
    }

    #[test]
    fn folding_on_all_factors_removes_the_odd_words(design in fractions()) {
        let both = combined(&design, Fold::All).unwrap();
        prop_assert!(both.fraction.resolution().is_none_or(|resolution| resolution >= 4));
        prop_assert!(both.surviving.iter().all(|word| order(word.term).is_multiple_of(2)));
    }

    #[test]
    fn the_combined_design_is_that_of_both_parts(design in fractions(), mask in any::<u64>()) {
        let fold = Fold::Factors(mask);
        let both = combined(&design, fold).unwrap();
        let rows = design.rows();
        let added = foldover(&rows, fold);
        let block = |rows: &[Vec<u32>], level: u32| -> Vec<Vec<u32>> {
            rows.iter().map(|row| row.iter().copied().chain([level]).collect()).collect()
        };
        let runs: BTreeSet<_> = [block(&rows, 0), block(&added, 1)].concat().into_iter().collect();
        prop_assert_eq!(runs, both.with_block.rows().into_iter().collect());
        let treatments: BTreeSet<_> = rows.into_iter().chain(added).collect();
        prop_assert_eq!(treatments.len() as u64, both.fraction.runs());
        prop_assert_eq!(treatments, both.fraction.rows().into_iter().collect());
        prop_assert_eq!(both.new_treatments, both.fraction.runs() > design.runs());
    }

    /// What the best addition promises to be estimable is exactly what linear algebra finds.
    #[test]
    fn best_additions_keep_their_promise(
        design in fractions(),
        first in 0usize..40, second in 0usize..40, max_order in 1u32..4,
    ) {
        let terms = up_to(design.factors(), max_order);
        let resolve = [terms[1 + first % (terms.len() - 1)], terms[1 + second % (terms.len() - 1)]];
        if let Some(best) = best_fold(&design, &resolve, max_order) {
            let rows = design.rows();
            let added = best.addition.rows(&rows);
            prop_assert_eq!(added.len() as u64, best.runs);
            let all = [rows.clone(), added.clone()].concat();
            let block = (0..all.len()).map(|run| if run < rows.len() { -1 } else { 1 }).collect();
            let columns: Vec<_> = terms.iter().map(|&term| column(&all, term)).chain([block]).collect();
            let whole = rank(&columns);
            for (index, term) in terms.iter().enumerate() {
                let mut others = columns.clone();
                others.remove(index);
                prop_assert_eq!(rank(&others) < whole, best.estimable.contains(term), "{}", letters(*term));
            }
            prop_assert!(resolve.iter().all(|term| best.estimable.contains(term)));
        }
    }

    #[test]
    fn blocks_never_confound_main_effects(design in fractions(), exponent in 1u32..4) {
        let count = 1 << exponent;
        prop_assume!(u64::from(count) < design.runs());
        let Ok(blocking) = blocks(&design, count) else {
            // Two blocks need one column that is no main effect.
            prop_assert!(exponent > 1 || u64::from(design.factors()) == design.runs() - 1);
            return Ok(());
        };
        let rows = design.rows();
        for block in 0..count {
            let own: Vec<_> = rows.iter().zip(&blocking.block_of_row).filter(|(_, of)| **of == block).collect();
            prop_assert_eq!(own.len() as u64, design.runs() / u64::from(count));
            for factor in 0..design.factors() as usize {
                let high = own.iter().filter(|(row, _)| row[factor] == 1).count();
                prop_assert_eq!(2 * high, own.len(), "factor {} in block {}", factor, block);
            }
        }
        prop_assert_eq!(blocking.confounded.len() as u32, count - 1);
        prop_assert_eq!(blocking.generators.len() as u32, exponent);
    }

    #[test]
    fn searched_fractions_are_as_asked(factors in 3u32..9, less in 1u32..5) {
        let base = factors.saturating_sub(less);
        prop_assume!(base >= 2 && factors < 1 << base);
        let design = by_runs(factors, 1 << base).unwrap();
        prop_assert_eq!((design.factors(), design.runs()), (factors, 1 << base));
        prop_assert!(design.resolution() >= Some(3));
    }
}
