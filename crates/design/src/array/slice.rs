//! An array in slices: for each run of an array of some factors a whole array of the others.
//!
//! Where every slice had the same runs, words of the inner factors alone would count in full. The levels of the inner
//! factors are therefore shifted from slice to slice, so that the words of different slices cancel as far as possible and
//! go on only as longer words with outer factors.

use benchmaster_stats::random::Generator;

use super::choose::{Criterion, is_less};
use super::parent::Rows;

/// Factors of pairs of runs that may be looked at.
const EFFORT: usize = 20_000_000;
/// Starting points: all slices the same, then random shifts.
const STARTS: usize = 4;

/// Every outer row followed by every inner row, with the inner levels shifted per slice for least aberration. `levels` are
/// those of the inner factors.
pub(super) fn sliced(outer: &Rows, inner: &Rows, outer_levels: &[u32], levels: &[u32]) -> Rows {
    let mut generator = Generator::of_seed(inner.len() as u64);
    let mut best: Option<(f64, Vec<Vec<u32>>)> = None;
    for start in 0..STARTS {
        let mut shifts = vec![vec![0; levels.len()]; outer.len()];
        if start > 0 {
            for (factor, &n) in levels.iter().enumerate() {
                let mut draws: Vec<_> = (0..outer.len() as u32).map(|slice| slice % n).collect();
                generator.shuffle(&mut draws);
                shifts.iter_mut().zip(draws).for_each(|(shifts, draw)| shifts[factor] = draw);
            }
        }
        let sum = improve(outer, inner, outer_levels, levels, &mut shifts);
        if best.as_ref().is_none_or(|(least, _)| is_less(sum, *least)) {
            best = Some((sum, shifts));
        }
    }
    let shifts = best.map(|(_, shifts)| shifts).unwrap_or_default();
    let rows = outer.iter().zip(shifts).flat_map(|(outer, shifts)| {
        inner.iter().map(move |row| {
            let shifted = row.iter().zip(&shifts).zip(levels).map(|((level, shift), n)| (level + shift) % n);
            outer.iter().copied().chain(shifted).collect()
        })
    });
    rows.collect()
}

/// Shifts one factor of one slice at a time while that helps; the sum over all pairs of runs of different slices.
fn improve(outer: &Rows, inner: &Rows, outer_levels: &[u32], levels: &[u32], shifts: &mut [Vec<u32>]) -> f64 {
    let size = inner.len();
    // Products over all factors for each pair of slices and of inner rows.
    let between = |a: usize, b: usize| -> f64 {
        let agree = outer[a].iter().zip(&outer[b]).zip(outer_levels);
        agree.map(|((x, y), &n)| Criterion::weight(n, x == y)).product()
    };
    let outer_weights: Vec<Vec<f64>> =
        (0..outer.len()).map(|a| (0..outer.len()).map(|b| between(a, b)).collect()).collect();
    // The sum of a slice with all others, its shifts being given.
    let of_slice = |slice: usize, own: &[u32], shifts: &[Vec<u32>]| -> f64 {
        (0..outer.len())
            .filter(|&other| other != slice)
            .map(|other| {
                // A pair agrees in a factor when the inner levels differ by what the shifts differ.
                let turn: Vec<_> =
                    own.iter().zip(&shifts[other]).zip(levels).map(|((a, b), n)| (a + n - b) % n).collect();
                let mut sum = 0.0;
                for a in inner {
                    for b in inner {
                        let cells = a.iter().zip(b).zip(&turn).zip(levels);
                        sum += cells
                            .map(|(((x, y), turn), &n)| Criterion::weight(n, (x + turn) % n == *y))
                            .product::<f64>();
                    }
                }
                sum * outer_weights[slice][other]
            })
            .sum()
    };
    let total = |shifts: &[Vec<u32>]| {
        (0..outer.len()).map(|slice| of_slice(slice, &shifts[slice], shifts)).sum::<f64>()
    };
    // A few passes suffice; a step costs all pairs of a slice's runs with the others'.
    let steps = outer.len() * levels.iter().map(|n| *n as usize - 1).sum::<usize>();
    let work = steps * size * size * outer.len() * levels.len();
    let passes = (EFFORT / STARTS / work.max(1)).min(8);
    for _ in 0..passes {
        let mut changed = false;
        for slice in 0..outer.len() {
            let mut least = of_slice(slice, &shifts[slice], shifts);
            for factor in 0..levels.len() {
                let mut best = shifts[slice][factor];
                for shift in 0..levels[factor] {
                    let mut own = shifts[slice].clone();
                    own[factor] = shift;
                    let sum = of_slice(slice, &own, shifts);
                    if is_less(sum, least) {
                        (least, best, changed) = (sum, shift, true);
                    }
                }
                shifts[slice][factor] = best;
            }
        }
        if !changed {
            break;
        }
    }
    total(shifts)
}
