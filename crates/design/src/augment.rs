//! Which runs to add to a design, so that terms that it cannot distinguish become separate.

use std::collections::BTreeSet;

use thiserror::Error;

use crate::coding::{cells, contrasts};
use crate::design::full;

/// The most combinations of levels of which every one is a candidate; of more, those near the runs that are there are.
const MAX_CANDIDATES: usize = 1 << 14;
/// The variance of a coefficient times the number of runs, 1 in an orthogonal design, up to which it is good enough.
const GOOD_ENOUGH: f64 = 4.0;
/// Weight of what is assumed of coefficients that nothing is known of: small, so that runs decide.
const RIDGE: f64 = 1e-6;
/// Variance, times the runs, above which a coefficient is not determined by the runs at all.
const UNDETERMINED: f64 = 1e3;

/// Why no runs can be found.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AugmentError {
    /// Even all candidates do not separate the terms.
    #[error(
        "no {most} further runs separate {} terms of this design; allow more runs, or ask for fewer effects",
        terms
    )]
    NotSeparable {
        /// Terms to be separated.
        terms: usize,
        /// Runs that may be added.
        most: usize,
    },
}

/// Runs that were done, and what they should estimate together with those to be added.
#[derive(Clone, Copy)]
pub struct Augmentation<'a> {
    /// Levels of each factor.
    pub levels: &'a [u32],
    /// Rows that were run.
    pub rows: &'a [Vec<u32>],
    /// The block of each row, from 0. The added runs are a block of their own: they are done at another time.
    pub block_of: &'a [u32],
    /// Terms to be estimated, each by its factors; the mean and the blocks are always estimated too.
    pub terms: &'a [Vec<u32>],
    /// Whether a row may be run.
    pub allowed: &'a dyn Fn(&[u32]) -> bool,
    /// At most this many runs are added.
    pub most: usize,
}

impl std::fmt::Debug for Augmentation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { levels, rows, block_of, terms, most, .. } = self;
        f.debug_struct("Augmentation")
            .field("levels", levels)
            .field("rows", rows)
            .field("block_of", block_of)
            .field("terms", terms)
            .field("most", most)
            .finish_non_exhaustive()
    }
}

/// The runs to add, few and as informative as can be found: each is the one that reduces the uncertainty of all terms
/// together most (sequential D-optimality: the largest x′(X′X)⁻¹x), until every term is estimated with at most four times
/// the variance that it has in an orthogonal design of as many runs. None when that is so already.
///
/// # Errors
/// When `most` runs do not separate the terms.
pub fn augment(wanted: &Augmentation<'_>) -> Result<Vec<Vec<u32>>, AugmentError> {
    let coding: Vec<_> = wanted.levels.iter().map(|&n| contrasts(n)).collect();
    let blocks = wanted.block_of.iter().max().map_or(0, |&last| last as usize + 1);
    let column = |row: &[u32], block: usize| -> Vec<f64> {
        let mut x = vec![1.0];
        for term in wanted.terms {
            let mut products = vec![1.0];
            for &factor in term {
                let factor = factor as usize;
                let at = |c: usize| coding[factor][c][row[factor] as usize];
                products = (1..wanted.levels[factor] as usize)
                    .flat_map(|c| products.iter().map(move |p| (p, c)))
                    .map(|(p, c)| p * at(c))
                    .collect();
            }
            x.extend(products);
        }
        // The first block is the base of the others; the added runs are the last one.
        x.extend((1..=blocks).map(|b| if b == block { 1.0 } else { 0.0 }));
        x
    };
    let mut information = Inverse::new(column(&vec![0; wanted.levels.len()], 0).len());
    for (row, &block) in wanted.rows.iter().zip(wanted.block_of) {
        information.add(&column(row, block as usize));
    }
    let parameters = information.size() - blocks;
    let enough = |information: &Inverse, runs: usize, limit: f64| {
        (1..parameters).all(|i| information.variance(i) * runs as f64 <= limit)
    };
    let mut added = Vec::new();
    if enough(&information, wanted.rows.len(), GOOD_ENOUGH) {
        return Ok(added);
    }
    let candidates: Vec<_> = candidates(wanted).into_iter().map(|row| (column(&row, blocks), row)).collect();
    while added.len() < wanted.most {
        let best = candidates
            .iter()
            .map(|(x, row)| (information.leverage(x), x, row))
            // The first of equals, so that the answer does not depend on the machine's rounding in the last digit.
            .reduce(|best, one| if one.0 > best.0 * (1.0 + 1e-9) { one } else { best });
        let Some((_, x, row)) = best else { break };
        information.add(x);
        added.push(row.clone());
        if enough(&information, wanted.rows.len() + added.len(), GOOD_ENOUGH) {
            return Ok(added);
        }
    }
    if enough(&information, wanted.rows.len() + added.len(), UNDETERMINED) {
        Ok(added)
    } else {
        Err(AugmentError::NotSeparable { terms: wanted.terms.len(), most: wanted.most })
    }
}

/// All combinations of levels that may be run; of very many only those that differ from a run in up to two factors.
fn candidates(wanted: &Augmentation<'_>) -> Vec<Vec<u32>> {
    let mut all: Vec<Vec<u32>> = match cells(wanted.levels).filter(|&n| n <= MAX_CANDIDATES) {
        Some(_) => full(wanted.levels).unwrap_or_default(),
        None => {
            let mut near = BTreeSet::new();
            for row in wanted.rows {
                near.extend(changed(row, wanted.levels).flat_map(|one| {
                    let two: Vec<_> = changed(&one, wanted.levels).collect();
                    std::iter::once(one).chain(two)
                }));
            }
            near.into_iter().collect()
        }
    };
    all.retain(|row| (wanted.allowed)(row));
    all
}

/// The rows that differ from `row` in one factor.
fn changed<'a>(row: &'a [u32], levels: &'a [u32]) -> impl Iterator<Item = Vec<u32>> + 'a {
    let others = levels.iter().enumerate().flat_map(|(factor, &n)| (0..n).map(move |level| (factor, level)));
    others.filter(|&(factor, level)| row[factor] != level).map(|(factor, level)| {
        let mut row = row.to_vec();
        row[factor] = level;
        row
    })
}

/// The inverse of an information matrix X′X, kept up to date row by row (Sherman and Morrison).
struct Inverse {
    rows: Vec<Vec<f64>>,
}

impl Inverse {
    fn new(size: usize) -> Self {
        let row = |i| (0..size).map(|j| if i == j { 1.0 / RIDGE } else { 0.0 }).collect();
        Self { rows: (0..size).map(row).collect() }
    }

    fn size(&self) -> usize {
        self.rows.len()
    }

    fn times(&self, x: &[f64]) -> Vec<f64> {
        self.rows.iter().map(|row| row.iter().zip(x).map(|(a, b)| a * b).sum()).collect()
    }

    /// x′(X′X)⁻¹x.
    fn leverage(&self, x: &[f64]) -> f64 {
        self.times(x).iter().zip(x).map(|(a, b)| a * b).sum()
    }

    fn variance(&self, i: usize) -> f64 {
        self.rows[i][i]
    }

    fn add(&mut self, x: &[f64]) {
        let v = self.times(x);
        let scale = 1.0 + v.iter().zip(x).map(|(a, b)| a * b).sum::<f64>();
        for (row, &a) in self.rows.iter_mut().zip(&v) {
            for (cell, b) in row.iter_mut().zip(&v) {
                *cell -= a * b / scale;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Paper 004's fraction: D = AB, E = AC, F = BC.
    fn paper() -> Vec<Vec<u32>> {
        let product = |a: u32, b: u32| u32::from(a == b);
        (0..8u32)
            .map(|i| {
                let (a, b, c) = (i & 1, i >> 1 & 1, i >> 2 & 1);
                vec![a, b, c, product(a, b), product(a, c), product(b, c)]
            })
            .collect()
    }

    fn wanted<'a>(rows: &'a [Vec<u32>], block_of: &'a [u32], terms: &'a [Vec<u32>]) -> Augmentation<'a> {
        Augmentation { levels: &[2; 6], rows, block_of, terms, allowed: &|_| true, most: 32 }
    }

    /// The rank of the model matrix, by elimination: whether all terms and both blocks are separate.
    fn rank(rows: &[Vec<u32>], first: usize, terms: &[Vec<u32>]) -> usize {
        let mut matrix: Vec<Vec<f64>> = rows
            .iter()
            .enumerate()
            .map(|(i, row)| {
                let sign = |factor: &u32| f64::from(row[*factor as usize]) * 2.0 - 1.0;
                let mut x = vec![1.0, f64::from(i >= first)];
                x.extend(terms.iter().map(|term| term.iter().map(sign).product::<f64>()));
                x
            })
            .collect();
        let mut rank = 0;
        for column in 0..matrix[0].len() {
            let Some(pivot) = (rank..matrix.len()).find(|&r| matrix[r][column].abs() > 1e-9) else {
                continue;
            };
            matrix.swap(rank, pivot);
            for row in rank + 1..matrix.len() {
                let factor = matrix[row][column] / matrix[rank][column];
                for c in column..matrix[0].len() {
                    matrix[row][c] -= factor * matrix[rank][c];
                }
            }
            rank += 1;
        }
        rank
    }

    #[test]
    fn the_terms_that_the_papers_fraction_mixes_become_separate_by_few_runs() {
        let rows = paper();
        // The main effects, and BF and CF, which are C and B in this fraction.
        let terms: Vec<Vec<u32>> =
            (0..6).map(|factor| vec![factor]).chain([vec![1, 5], vec![2, 5]]).collect();
        assert_eq!(rank(&rows, 8, &terms), 7, "they are mixed up at first");
        let added = augment(&wanted(&rows, &[0; 8], &terms)).unwrap();
        assert!((3..=8).contains(&added.len()), "{} runs", added.len());
        let together: Vec<_> = rows.iter().chain(&added).cloned().collect();
        assert_eq!(rank(&together, 8, &terms), 10);
        assert_eq!(augment(&wanted(&rows, &[0; 8], &terms)), Ok(added), "the same again");
    }

    #[test]
    fn nothing_is_added_when_all_is_separate() {
        let rows = full(&[2; 6]).unwrap();
        let terms: Vec<Vec<u32>> = (0..6).map(|factor| vec![factor]).collect();
        assert_eq!(augment(&wanted(&rows, &[0; 64], &terms)), Ok(vec![]));
    }

    #[test]
    fn excluded_rows_are_never_added_and_too_few_runs_are_refused() {
        let rows = paper();
        let terms = [vec![1], vec![2], vec![1, 5], vec![2, 5]];
        let free = augment(&wanted(&rows, &[0; 8], &terms)).unwrap();
        let without =
            Augmentation { allowed: &|row| free.iter().all(|f| f != row), ..wanted(&rows, &[0; 8], &terms) };
        let others = augment(&without).unwrap();
        assert!(others.iter().all(|row| !free.contains(row)));
        let error = augment(&Augmentation { most: 1, ..wanted(&rows, &[0; 8], &terms) }).unwrap_err();
        assert_eq!(error, AugmentError::NotSeparable { terms: 4, most: 1 });
    }

    #[test]
    fn many_factors_and_mixed_levels_are_searched_near_the_runs() {
        let levels: Vec<u32> = std::iter::once(3).chain([2; 15]).collect();
        let rows: Vec<Vec<u32>> = (0..24u32)
            .map(|i| (0..16).map(|f| (i * 7 + f * f + i / 3 * f) % levels[f as usize]).collect())
            .collect();
        let terms: Vec<Vec<u32>> = (0..16).map(|factor| vec![factor]).chain([vec![0, 1]]).collect();
        let all = Augmentation {
            levels: &levels,
            rows: &rows,
            block_of: &[0; 24],
            terms: &terms,
            allowed: &|_| true,
            most: 40,
        };
        let added = augment(&all).unwrap();
        assert!(added.iter().all(|row| row.iter().zip(&levels).all(|(level, n)| level < n)));
    }
}
