//! What any set of rows can tell: which effects can be estimated, how precisely, and what cannot be told apart.
//!
//! The rows may be a design as it was planned, what exclusions and failed runs have left of one, or any data. Levels are
//! coded by orthonormal sum-to-zero contrasts, so that nothing depends on the names or the order of levels.

mod detect;
mod products;

use std::collections::HashMap;

use serde::Serialize;

pub(crate) use self::products::Blocks;
use crate::coding::{cells, distinct};
use crate::regular::Fraction;
use crate::word_length::generalised_word_length_pattern;
use crate::{DesignError, check_rows};

/// The most terms of a structure.
pub const MAX_TERMS: usize = 1 << 16;
/// The most parameters (degrees of freedom of all terms) of a structure whose rows are not a regular two-level fraction.
pub const MAX_PARAMETERS: usize = 1536;
/// The most pairs of aliased terms in a regular fraction.
const MAX_PAIRS: usize = 1 << 22;
/// The most multiplications for the inner products of mixed-level columns: about a second.
const MAX_PRODUCTS: f64 = 4e9;
/// The most different rows whose word lengths are counted pair by pair.
const MAX_PAIRED_ROWS: usize = 1 << 13;
/// How many partial aliases of a term are listed; complete ones all are.
const PARTIAL_ALIASES: usize = 32;
/// Correlations below this are rounding.
const NO_CORRELATION: f64 = 1e-8;

/// What rows can tell about the terms up to some order.
#[derive(Debug, Clone, PartialEq)]
pub struct Structure {
    /// Number of rows.
    pub runs: usize,
    /// Number of different rows; `runs` − `distinct` degrees of freedom are pure error.
    pub distinct: usize,
    /// Degrees of freedom of all terms, the mean included.
    pub parameters: usize,
    /// How many independent parameters the rows can estimate of these; `runs` − `rank` degrees of freedom are error.
    pub rank: usize,
    /// Per order from 0, the model of all terms up to that order.
    pub models: Vec<Model>,
    /// The mean (without factors), then all terms by order, then by factors. Factors with one level are in no term.
    pub terms: Vec<TermStructure>,
    /// The fraction when the rows are all runs of a regular two-level fraction (or a full two-level design), each equally
    /// often. The added factors are the last possible ones.
    ///
    /// `None` also for rows in which a factor never changes, two factors always change together, or more than
    /// 20 factors are added: a [`Fraction`] has no such generators.
    pub regular: Option<Fraction>,
    /// The generalised word-length pattern, by length from 0; `None` when there are more than 2²⁰ combinations of levels
    /// and more than 2¹³ different rows.
    pub word_length_pattern: Option<Vec<f64>>,
}

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
    /// they cannot be told apart at all. The sign is that of two-level terms (level 0 is −1); between terms with several
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

/// What the rows tell about all terms up to `max_order`. `levels` is the number of levels of each factor.
///
/// Two-level rows are treated by the Walsh-Hadamard transform of their indicator function (2^k steps, up to 20 factors),
/// regular fractions by their defining relation; for other rows the columns of all terms are multiplied.
///
/// # Errors
/// Rows that do not fit the levels; no rows; more terms than can be treated, with the order that can.
pub fn structure(rows: &[Vec<u32>], levels: &[u32], max_order: u32) -> Result<Structure, DesignError> {
    check_rows(rows, levels)?;
    if rows.is_empty() {
        return Err(DesignError::NoRows);
    }
    let max_order = orders(levels, max_order);
    let fits = |size: Size| size.terms <= MAX_TERMS as u64;
    refuse_above(levels, max_order, &format!("{MAX_TERMS} terms"), fits)?;
    let two_level = levels.iter().all(|&n| n == 2);
    let regular = if two_level { detect::regular(rows, levels.len() as u32) } else { None };
    let different = distinct(rows, levels).len();
    let (models, terms) = match &regular {
        Some(fraction) => {
            // Terms spread about evenly over the columns.
            let fits = |size: Size| size.terms.pow(2) / fraction.runs() <= MAX_PAIRS as u64;
            refuse_above(levels, max_order, &format!("{MAX_PAIRS} pairs of aliases"), fits)?;
            let terms = Terms::up_to(levels, max_order);
            let groups = by_column(fraction, &terms);
            (of_regular_models(fraction, &terms), of_regular(fraction, &groups, &terms))
        }
        None => Blocks::new(rows, levels, max_order)?.analyse(),
    };
    let all = models.last().copied().unwrap_or(Model { order: 0, parameters: 1, rank: 1 });
    let counted = cells(levels).is_some() || different <= MAX_PAIRED_ROWS;
    Ok(Structure {
        runs: rows.len(),
        distinct: different,
        parameters: all.parameters,
        rank: all.rank,
        models,
        terms,
        regular,
        word_length_pattern: counted.then(|| generalised_word_length_pattern(rows, levels)),
    })
}

/// No term has more factors than can vary.
fn orders(levels: &[u32], max_order: u32) -> u32 {
    max_order.min(levels.iter().filter(|&&n| n > 1).count() as u32)
}

fn refuse_above(
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
struct Size {
    terms: u64,
    parameters: u64,
}

impl Size {
    fn of(levels: &[u32], max_order: u32) -> Self {
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
    degrees: Vec<usize>,
    /// The term without its last factor; the mean's is itself.
    prefix: Vec<usize>,
}

impl Terms {
    fn up_to(levels: &[u32], max_order: u32) -> Self {
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

    fn len(&self) -> usize {
        self.factors.len()
    }

    fn order(&self, term: usize) -> u32 {
        self.factors[term].len() as u32
    }

    /// The term as a bit mask.
    fn mask(&self, term: usize) -> u64 {
        self.factors[term].iter().fold(0, |mask, factor| mask | 1 << factor)
    }

    fn max_order(&self) -> u32 {
        self.order(self.len() - 1)
    }
}

/// The terms of each column of a regular fraction, ascending.
fn by_column(fraction: &Fraction, terms: &Terms) -> HashMap<u64, Vec<usize>> {
    let mut groups: HashMap<u64, Vec<usize>> = HashMap::new();
    for term in 0..terms.len() {
        groups.entry(fraction.column(terms.mask(term))).or_default().push(term);
    }
    groups
}

fn of_regular_models(fraction: &Fraction, terms: &Terms) -> Vec<Model> {
    let mut columns = std::collections::HashSet::new();
    let mut models: Vec<Model> = Vec::new();
    for term in 0..terms.len() {
        columns.insert(fraction.column(terms.mask(term)));
        let model = Model { order: terms.order(term), parameters: term + 1, rank: columns.len() };
        match models.last_mut() {
            Some(last) if last.order == model.order => *last = model,
            _ => models.push(model),
        }
    }
    models
}

fn of_regular(fraction: &Fraction, groups: &HashMap<u64, Vec<usize>>, terms: &Terms) -> Vec<TermStructure> {
    let of_term = |term: usize| {
        let mask = terms.mask(term);
        let order = terms.order(term);
        let members = groups.get(&fraction.column(mask)).map_or(&[][..], Vec::as_slice);
        let others = || members.iter().copied().filter(|&other| other != term);
        let estimable = others().all(|other| terms.order(other) > order);
        let sign = |other| match fraction.is_negative(mask) == fraction.is_negative(terms.mask(other)) {
            true => 1.0,
            false => -1.0,
        };
        TermStructure {
            factors: terms.factors[term].clone(),
            degrees_of_freedom: 1,
            estimable_degrees_of_freedom: estimable.into(),
            estimable,
            aliases: others().map(|other| (terms.factors[other].clone(), sign(other))).collect(),
            aliases_left_out: 0,
            variance_inflation: estimable.then_some(1.0),
        }
    };
    (0..terms.len()).map(of_term).collect()
}
