//! What any set of rows can estimate: which effects can be estimated, how precisely, and what cannot be distinguished.
//!
//! The rows may be a design as it was planned, what exclusions and failed runs have left of one, or any data. Levels are
//! coded by orthonormal sum-to-zero contrasts, so that nothing depends on the names or the order of levels.

mod detect;
mod products;
mod terms;

use std::collections::HashMap;

pub(crate) use self::products::Blocks;
pub(crate) use self::terms::Terms;
pub use self::terms::{MAX_PARAMETERS, Model, TermStructure};
use self::terms::{Size, orders, refuse_above};
use crate::coding::{cells, distinct};
use crate::design::{DesignError, check_rows};
use crate::regular::Fraction;
use crate::word_length::generalised_word_length_pattern;

/// The most terms of a structure.
pub const MAX_TERMS: usize = 1 << 16;
/// The most pairs of aliased terms in a regular fraction.
const MAX_PAIRS: usize = 1 << 22;
/// The most different rows whose word lengths are counted pair by pair.
const MAX_PAIRED_ROWS: usize = 1 << 13;

/// What rows can say about the terms up to some order.
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

/// What the rows say about all terms up to `max_order`. `levels` is the number of levels of each factor.
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
        let sign = |other| {
            if fraction.is_negative(mask) == fraction.is_negative(terms.mask(other)) { 1.0 } else { -1.0 }
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
