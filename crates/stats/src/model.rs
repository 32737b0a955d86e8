//! Linear models of designed experiments: any numbers of levels, blocks, split plots, failed runs.
//!
//! A model is a list of [`Term`]s. Two-level factors are coded −1/+1, so their coefficients are half effects q (Jain
//! 1991, chapter 18); numeric factors with more levels get orthogonal polynomials; all others sum-to-zero contrasts.
//! It is fitted by least squares with Householder reflections; columns that depend on earlier ones are named, not
//! dropped in silence. Blocks come right after the mean, so that a term confounded with them is the one that is
//! aliased.

mod anova;
mod blocks;
mod coding;
mod columns;
mod data;
mod fit;
mod judge;
mod linear;
mod matrix;
mod qr;
mod reduce;
mod strata;

pub use anova::{Anova, AnovaRow, Source, SumOfSquares, anova};
pub use blocks::BlockSpread;
pub use coding::{Contrast, contrasts};
pub use data::{CENTRE, Data, Factor, Term, all_terms};
pub use fit::{Aliased, AliasedWith, Coefficient, Fit, fit};
pub use judge::{Decision, Judgement, Rule, judge};
pub use linear::Estimate;
pub use reduce::{Reduced, hierarchy, reduce};
pub use strata::{ErrorStratum, LackOfFit, Stratum};
