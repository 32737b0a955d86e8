//! Terms up to an order, how many there are, and what is known of each.

use serde::Serialize;

use crate::design::DesignError;

/// The most parameters (degrees of freedom of all terms) of a structure whose rows are not a regular two-level fraction.
pub const MAX_PARAMETERS: usize = 1536;
/// The most multiplications for the inner products of mixed-level columns: about a second.
pub(super) const MAX_PRODUCTS: f64 = 4e9;
/// How many partial aliases of a term are listed; complete ones all are.
pub(super) const PARTIAL_ALIASES: usize = 32;
/// Correlations below this are rounding.
pub(super) const NO_CORRELATION: f64 = 1e-8;

/// The model of all terms up to an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Model {
    /// The highest order of its terms.
    pub order: u32,
    /// Its parameters, the mean included.
    pub parameters: usize,
    /// How many of them are independent in these rows.
    pub rank: usize,
}

/// A term: the mean, a main effect or an interaction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TermStructure {
    /// The factors' numbers, ascending; none for the mean.
    pub factors: Vec<u32>,
    /// Number of contrasts: the product of the factors' levels less one each.
    pub degrees_of_freedom: u32,
    /// How many independent contrasts can be estimated in the model of all terms of this order and lower.
    pub estimable_degrees_of_freedom: u32,
    /// Whether all contrasts can.
    pub estimable: bool,
    /// Other terms that are correlated with this one, the strongest first, with the correlation of the two columns: ±1 when
    /// they cannot be distinguished at all. The sign is that of two-level terms (level 0 is −1); between terms with several
    /// contrasts it is the largest canonical correlation, without sign: 1 when a contrast of the one is a contrast of the
    /// other. The mean has a column of ones, whose cosine is given, as for terms that never change. All complete aliases
    /// are here and the 32 strongest partial ones.
    pub aliases: Vec<(Vec<u32>, f64)>,
    /// Partial aliases that are not listed.
    pub aliases_left_out: usize,
    /// How many times larger the variance of its estimate is than in a balanced orthogonal design of as many runs, in the
    /// model of all terms of this order and lower: 1 at best. With several contrasts it is the geometric mean over them
    /// (the determinant's root). `None` when the term is not estimable.
    pub variance_inflation: Option<f64>,
}

/// No term has more factors than can vary.
pub(super) fn orders(levels: &[u32], max_order: u32) -> u32 {
    max_order.min(levels.iter().filter(|&&n| n > 1).count() as u32)
}

pub(super) fn refuse_above(
    levels: &[u32],
    max_order: u32,
    limit: &str,
    fits: impl Fn(Size) -> bool,
) -> Result<(), DesignError> {
    let size = Size::of(levels, max_order);
    if fits(size) {
        return Ok(());
    }
    let possible = (0..max_order).rev().find(|&order| fits(Size::of(levels, order)));
    Err(DesignError::StructureTooLarge {
        max_order,
        terms: size.terms,
        parameters: size.parameters,
        limit: limit.to_owned(),
        possible: possible.unwrap_or(0),
    })
}

/// How much there is up to an order; saturates.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) terms: u64,
    pub(super) parameters: u64,
}

impl Size {
    pub(super) fn of(levels: &[u32], max_order: u32) -> Self {
        // Elementary symmetric sums of 1 (terms) and of the degrees of freedom (parameters).
        let sums = |weight: &dyn Fn(u32) -> u64| {
            let mut sums = vec![0u64; max_order as usize + 1];
            sums[0] = 1;
            for &n in levels.iter().filter(|&&n| n > 1) {
                for order in (1..sums.len()).rev() {
                    sums[order] = sums[order].saturating_add(sums[order - 1].saturating_mul(weight(n)));
                }
            }
            sums.into_iter().fold(0, u64::saturating_add)
        };
        // Below the square root of the largest number, so that products of two stay in range.
        let bounded = |sum: u64| sum.min(u64::from(u32::MAX));
        Self { terms: bounded(sums(&|_| 1)), parameters: bounded(sums(&|n| u64::from(n - 1))) }
    }
}

/// The terms up to an order.
pub(crate) struct Terms {
    /// The mean first, then by order, then by factors.
    pub(crate) factors: Vec<Vec<u32>>,
    /// Degrees of freedom.
    pub(super) degrees: Vec<usize>,
    /// The term without its last factor; the mean's is itself.
    pub(super) prefix: Vec<usize>,
}

impl Terms {
    pub(super) fn up_to(levels: &[u32], max_order: u32) -> Self {
        let mut terms = Self { factors: vec![Vec::new()], degrees: vec![1], prefix: vec![0] };
        let mut previous = 0..1;
        for _ in 0..max_order {
            let start = terms.factors.len();
            for prefix in previous {
                let first = terms.factors[prefix].last().map_or(0, |last| last + 1);
                for factor in first..levels.len() as u32 {
                    let degrees = levels[factor as usize] as usize - 1;
                    if degrees > 0 {
                        let factors = terms.factors[prefix].iter().copied().chain([factor]).collect();
                        terms.factors.push(factors);
                        terms.degrees.push(terms.degrees[prefix] * degrees);
                        terms.prefix.push(prefix);
                    }
                }
            }
            previous = start..terms.factors.len();
        }
        terms
    }

    pub(super) fn len(&self) -> usize {
        self.factors.len()
    }

    pub(super) fn order(&self, term: usize) -> u32 {
        self.factors[term].len() as u32
    }

    /// The term as a bit mask.
    pub(super) fn mask(&self, term: usize) -> u64 {
        self.factors[term].iter().fold(0, |mask, factor| mask | 1 << factor)
    }

    pub(super) fn max_order(&self) -> u32 {
        self.order(self.len() - 1)
    }
}
