//! The runs of an experiment and the terms of a model.

use crate::error::{StatsError, check_values};

/// A factor of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// Number of levels, 2 or more.
    pub levels: usize,
    /// The levels as numbers: with 3 or more of them the factor is coded by orthogonal polynomials. `None` for a
    /// factor whose levels are only names.
    pub values: Option<Vec<f64>>,
}

impl Factor {
    /// A factor whose levels are only names.
    pub fn named(levels: usize) -> Self {
        Self { levels, values: None }
    }

    /// A factor whose levels are numbers.
    pub fn numeric(values: Vec<f64>) -> Self {
        Self { levels: values.len(), values: Some(values) }
    }
}

/// In place of a level of a factor with two levels: halfway between them. Runs with it are centre points. Together they
/// get a column of their own, so that they inform about the error and the curvature ([`Fit::curvature`](super::Fit::curvature)), and about no
/// effect of a factor that they are halfway in.
pub const CENTRE: u32 = u32::MAX;

/// A set of factors, by ascending number; empty for the mean.
pub type Term = Vec<usize>;

/// The runs of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Data {
    /// The factors.
    pub factors: Vec<Factor>,
    /// For each run the level of each factor, from 0, or [`CENTRE`]. Runs that failed are left out.
    pub rows: Vec<Vec<u32>>,
    /// The response of each run, on the scale that is to be analysed.
    pub y: Vec<f64>,
    /// The block of each run, by any numbers.
    pub block: Option<Vec<u32>>,
    /// The whole plot of each run, by any numbers: runs of the same plot share one setting of the factors that are
    /// hard to change. Plots are counted within blocks: the same number in two blocks is two plots.
    pub whole_plot: Option<Vec<u32>>,
}

/// All terms of up to `max_order` of `factors` factors, without the mean: by order, then by factors.
pub fn all_terms(factors: usize, max_order: usize) -> Vec<Term> {
    let mut terms: Vec<Term> = Vec::new();
    let mut last: Vec<Term> = vec![Vec::new()];
    for _ in 0..max_order.min(factors) {
        let longer = last.iter().flat_map(|term| {
            let next = term.last().map_or(0, |f| f + 1);
            (next..factors).map(move |factor| term.iter().copied().chain([factor]).collect())
        });
        last = longer.collect();
        terms.extend(last.iter().cloned());
    }
    terms
}

/// Below this the squares of rounding errors (1e-16 of the values) can no longer be represented, and what is only rounding
/// could not be recognised.
const SMALLEST: f64 = 1e-130;

/// Refuses data that cannot be analysed, with the place of the fault.
pub(super) fn check(data: &Data, terms: &[Term]) -> Result<(), StatsError> {
    const WHAT: &str = "a linear model";
    check_values(WHAT, &data.y, 1)?;
    let largest = data.y.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    if largest > 0.0 && largest < SMALLEST {
        return Err(StatsError::Underflow { what: WHAT });
    }
    let runs = data.y.len();
    let columns = [
        ("rows of levels", Some(data.rows.len())),
        ("blocks", data.block.as_ref().map(Vec::len)),
        ("whole plots", data.whole_plot.as_ref().map(Vec::len)),
    ];
    for (what, found) in columns {
        if let Some(found) = found.filter(|&found| found != runs) {
            return Err(StatsError::Lengths { what, expected: runs, found });
        }
    }
    for (factor, Factor { levels, values }) in data.factors.iter().enumerate() {
        let problem = match values {
            _ if *levels < 2 => Some("has fewer than two levels"),
            Some(values) if values.len() != *levels => Some("has another number of values than of levels"),
            Some(values) if values.iter().any(|v| !v.is_finite()) => {
                Some("has a value that is no finite number")
            }
            Some(values) if (1..values.len()).any(|i| values[..i].contains(&values[i])) => {
                Some("has the same value twice")
            }
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(StatsError::Factor { factor, problem });
        }
    }
    for (run, row) in data.rows.iter().enumerate() {
        if row.len() != data.factors.len() {
            let (expected, found) = (data.factors.len(), row.len());
            return Err(StatsError::Lengths { what: "levels in a run", expected, found });
        }
        for (factor, &level) in row.iter().enumerate() {
            let levels = data.factors[factor].levels;
            if level as usize >= levels && !(level == CENTRE && levels == 2) {
                return Err(StatsError::NoSuchLevel { run, factor, level, levels });
            }
        }
    }
    for (i, term) in terms.iter().enumerate() {
        let ascending = term.windows(2).all(|pair| pair[0] < pair[1]);
        let known = term.iter().all(|&factor| factor < data.factors.len());
        if !ascending || !known || terms[..i].contains(term) {
            return Err(StatsError::BadTerm { term: term.clone(), factors: data.factors.len() });
        }
    }
    Ok(())
}
