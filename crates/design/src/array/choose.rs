//! The columns of a larger array with the least aberration.

use benchmaster_stats::random::Generator;

use super::parent::{Column, Pool, Rows};

/// Sums of generalised word lengths, each weighted by a power of [`Z`], as one number: with a small Z the shortest words
/// decide. It is the mean over all pairs of runs of a product over the factors (Xu 2003), kept for every pair so that a
/// factor is exchanged in one pass.
pub(super) struct Criterion {
    /// Product of each pair of different runs a > b, row by row.
    pairs: Vec<f64>,
}

const Z: f64 = 1.0 / 256.0;

impl Criterion {
    pub(super) fn new(runs: usize) -> Self {
        Self { pairs: vec![1.0; runs * runs.saturating_sub(1) / 2] }
    }

    /// What a factor contributes to a pair of runs.
    pub(super) fn weight(levels: u32, agree: bool) -> f64 {
        if agree { 1.0 + f64::from(levels - 1) * Z } else { 1.0 - Z }
    }

    fn each_pair(cells: &[u32], mut each: impl FnMut(usize, bool)) {
        let mut pair = 0;
        for (number, a) in cells.iter().enumerate() {
            for b in &cells[..number] {
                each(pair, a == b);
                pair += 1;
            }
        }
    }

    pub(super) fn add(&mut self, column: &Column) {
        let weights = [false, true].map(|agree| Self::weight(column.levels, agree));
        Self::each_pair(&column.cells, |pair, agree| self.pairs[pair] *= weights[usize::from(agree)]);
    }

    pub(super) fn remove(&mut self, column: &Column) {
        let weights = [false, true].map(|agree| 1.0 / Self::weight(column.levels, agree));
        Self::each_pair(&column.cells, |pair, agree| self.pairs[pair] *= weights[usize::from(agree)]);
    }

    /// The sum that this column would give together with the others.
    fn with(&self, column: &Column) -> f64 {
        let weights = [false, true].map(|agree| Self::weight(column.levels, agree));
        let mut sum = 0.0;
        Self::each_pair(&column.cells, |pair, agree| sum += self.pairs[pair] * weights[usize::from(agree)]);
        sum
    }
}

/// A number that is clearly smaller, not only by rounding.
pub(super) fn is_less(new: f64, old: f64) -> bool {
    new < old - 1e-13 * old.abs()
}

/// About how many pairs of runs are looked at to try every column for every factor.
pub(super) fn pass(pool: &Pool, levels: &[u32], runs: usize) -> usize {
    let candidates: usize = levels.iter().map(|n| pool.get(n).map_or(0, Vec::len)).sum();
    (candidates * runs * runs / 2).max(1)
}

/// The rows of the columns chosen for `levels`, and their sum: exchanges of single columns for better ones, from the first
/// columns and from some drawn at random. `effort` is about the number of pairs of runs that may be looked at.
pub(super) fn choose(pool: &Pool, levels: &[u32], runs: usize, effort: usize) -> Option<(f64, Rows)> {
    let pass = pass(pool, levels, runs);
    // A start takes about four passes.
    let starts = (effort / pass / 4).clamp(1, 24);
    let mut generator = Generator::of_seed(runs as u64);
    let mut best: Option<(f64, Vec<usize>)> = None;
    for start in 0..starts {
        let mut chosen = vec![0; levels.len()];
        for (&n, columns) in pool {
            let mut order: Vec<_> = (0..columns.len()).collect();
            if start > 0 {
                generator.shuffle(&mut order);
            }
            let factors = levels.iter().enumerate().filter(|(_, own)| **own == n);
            // Fewer columns than factors leave some without.
            let mut order = order.into_iter();
            for (factor, _) in factors {
                chosen[factor] = order.next()?;
            }
        }
        let sum = improve(pool, levels, runs, &mut chosen, (effort / pass / starts).max(1));
        if best.as_ref().is_none_or(|(least, _)| is_less(sum, *least)) {
            best = Some((sum, chosen));
        }
    }
    let (sum, chosen) = best?;
    let cell = |run: usize| {
        levels.iter().zip(&chosen).map(|(n, &column)| pool[n][column].cells[run]).collect::<Vec<_>>()
    };
    Some((sum, (0..runs).map(cell).collect()))
}

/// Exchanges single columns while that helps, in at most `passes` rounds; the sum that is left.
fn improve(pool: &Pool, levels: &[u32], runs: usize, chosen: &mut [usize], passes: usize) -> f64 {
    let mut criterion = Criterion::new(runs);
    for (n, &column) in levels.iter().zip(chosen.iter()) {
        criterion.add(&pool[n][column]);
    }
    let mut least = criterion.pairs.iter().sum::<f64>();
    for _ in 0..passes {
        let before = least;
        for factor in 0..levels.len() {
            let columns = &pool[&levels[factor]];
            if columns.len() == 1 {
                continue;
            }
            let own = chosen[factor];
            criterion.remove(&columns[own]);
            let is_free = |column: usize| {
                column == own || !chosen.iter().zip(levels).any(|(&c, &n)| n == levels[factor] && c == column)
            };
            let mut best = (criterion.with(&columns[own]), own);
            for column in (0..columns.len()).filter(|&column| is_free(column)) {
                let sum = criterion.with(&columns[column]);
                if is_less(sum, best.0) {
                    best = (sum, column);
                }
            }
            (least, chosen[factor]) = best;
            criterion.add(&columns[chosen[factor]]);
        }
        if !is_less(least, before) {
            break;
        }
    }
    least
}
