//! Blocks as random: times, hosts, rounds that stand for others like them.
//!
//! Effects are estimated within blocks, whatever those do. Means and predictions are not: another day would have given
//! another mean, and the spread between the blocks says how far off.

use super::fit::Fit;
use super::matrix::Matrix;
use super::qr::{Groups, Qr};
use super::strata::{ErrorStratum, Plots};

/// What the blocks' mean square says, by its expectation σ² + per_variance·σ_b².
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Blocks {
    /// Number of blocks.
    pub(super) count: usize,
    /// Of the blocks, adjusted for all terms of the model; with whole plots on the scale of runs within them.
    pub(super) mean_square: f64,
    pub(super) df: usize,
    /// Runs that count for a block: of equal blocks with all treatments, their size.
    pub(super) per_variance: f64,
    /// Mean square of runs (within whole plots) in the same blocks.
    pub(super) error: f64,
}

/// How much blocks vary beyond the runs in them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BlockSpread {
    /// Number of blocks.
    pub blocks: usize,
    /// Variance between blocks, by the expectation of their mean square; negative when they vary less than runs let
    /// them by chance.
    pub variance: f64,
    /// Degrees of freedom of the blocks.
    pub df: usize,
}

impl Blocks {
    /// By Henderson's third method: what blocks (the kept columns at `places`) explain after all terms is expected to be
    /// df·σ² + tr·σ_b², where tr is what the terms leave of the blocks' indicators. `None` without degrees of freedom for
    /// blocks or for error.
    pub(super) fn new(
        groups: &Groups,
        places: &[usize],
        in_use: &Qr,
        x: &Matrix,
        plots: Option<&Plots>,
        error: ErrorStratum,
    ) -> Option<Self> {
        let terms: Vec<usize> = (0..x.width()).filter(|place| !places.contains(place)).collect();
        let (sum_of_squares, df) = in_use.explained(&terms, places);
        let equal = |matrix: &Matrix| match plots {
            None => matrix.clone(),
            Some(plots) => {
                Matrix::of_columns(matrix.rows(), matrix.columns().map(|column| plots.equalise(column)))
            }
        };
        let left = Qr::new(equal(&x.select_columns(&terms)), equal(&groups.indicators()), None).sse;
        let per_variance = left.iter().sum::<f64>() / df as f64;
        let error = error.mean_square?;
        (df > 0 && per_variance > 0.0).then(|| Self {
            count: groups.sizes.len(),
            mean_square: sum_of_squares / df as f64,
            df,
            per_variance,
            error,
        })
    }

    pub(super) fn variance(&self) -> f64 {
        (self.mean_square - self.error) / self.per_variance
    }
}

impl Fit {
    /// How much the blocks vary; `None` without blocks, or without an error to compare them with.
    pub fn block_spread(&self) -> Option<BlockSpread> {
        let found = self.core.blocks?;
        Some(BlockSpread { blocks: found.count, variance: found.variance(), df: found.df })
    }
}
