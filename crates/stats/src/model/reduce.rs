//! A smaller model: terms that cannot be distinguished from nothing become error.

use std::collections::BTreeSet;

use super::anova::{Source, SumOfSquares};
use super::data::{Data, Term};
use super::fit::{Coefficient, Fit, fit};
use super::strata::Stratum;
use crate::error::StatsError;
use crate::lenth::lenth;

/// How it was decided which terms matter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// The F test against the error of the stratum, type III.
    FTest,
    /// No error is left in the stratum, so by Lenth's margin of error over its contrasts, each scaled like the half
    /// effect of a two-level factor.
    Lenth {
        /// The margin, on the scale of half effects.
        margin: f64,
    },
    /// There are too few contrasts for either: all terms are kept.
    None,
}

/// A model without the terms that do not matter.
#[derive(Debug, Clone, PartialEq)]
pub struct Reduced {
    /// How the terms of each stratum were judged.
    pub rules: Vec<(Stratum, Rule)>,
    /// Terms that matter by the rule.
    pub significant: Vec<Term>,
    /// Terms that are kept because a term that contains them matters.
    pub by_hierarchy: Vec<Term>,
    /// Terms that became error.
    pub dropped: Vec<Term>,
    /// The smaller model. Its errors are pooled with the dropped terms, and are compared with the pure error as the
    /// lack of fit. The error is a little too small, as the terms were chosen by looking at the data.
    pub fit: Fit,
}

/// The terms with all that are contained in them, by order and factors, without the mean.
pub fn hierarchy(terms: &[Term]) -> Vec<Term> {
    let mut all = BTreeSet::new();
    let mut open: Vec<Term> = terms.to_vec();
    while let Some(term) = open.pop() {
        if !term.is_empty() && all.insert((term.len(), term.clone())) {
            for left_out in 0..term.len() {
                let rest = term.iter().enumerate().filter(|(i, _)| *i != left_out);
                open.push(rest.map(|(_, &factor)| factor).collect());
            }
        }
    }
    all.into_iter().map(|(_, term)| term).collect()
}

/// Drops all terms that do not matter at the confidence level, but keeps those that are contained in one that does.
pub fn reduce(data: &Data, terms: &[Term], confidence: f64) -> Result<Reduced, StatsError> {
    let full = fit(data, terms, confidence)?;
    let (rules, matters) = judge(&full);
    let own = || full.terms.iter().zip(&matters).skip(1);
    let significant: Vec<_> = own().filter(|(_, matters)| **matters).map(|(term, _)| term.clone()).collect();
    let closed = hierarchy(&significant);
    let by_hierarchy: Vec<_> = closed.iter().filter(|term| !significant.contains(term)).cloned().collect();
    let dropped = own().map(|(term, _)| term).filter(|term| !closed.contains(term)).cloned().collect();
    Ok(Reduced { rules, significant, by_hierarchy, dropped, fit: fit(data, &closed, confidence)? })
}

/// Which terms of a fit matter at its confidence level, and by which rule in each stratum. The mean never counts.
pub fn judge(fit: &Fit) -> (Vec<(Stratum, Rule)>, Vec<bool>) {
    let table = fit.anova(SumOfSquares::III);
    let mut rules = Vec::new();
    let mut matters = vec![false; fit.terms.len()];
    for error in &fit.errors {
        let rows = table.rows.iter().filter(|row| row.stratum == error.stratum);
        if error.df > 0 {
            rules.push((error.stratum, Rule::FTest));
            for row in rows {
                let Source::Term(term) = row.source else { continue };
                // Against an error of 0 everything matters that is more than rounding.
                let without_error = row.sum_of_squares > 1e-20 * fit.sst;
                matters[term] = row.df > 0 && row.p.map_or(without_error, |p| p <= 1.0 - fit.confidence);
            }
            continue;
        }
        let own = |c: &&Coefficient| c.stratum == error.stratum && !fit.terms[c.term].is_empty();
        let contrasts = fit.coefficients.iter().filter(own);
        let sizes: Vec<_> =
            contrasts.map(|c| (c.term, (c.sum_of_squares / fit.corners as f64).sqrt())).collect();
        let alone: Vec<_> = sizes.iter().map(|(_, size)| *size).collect();
        let margin = lenth(&alone, fit.confidence).ok().map(|margin| margin.me);
        rules.push((error.stratum, margin.map_or(Rule::None, |margin| Rule::Lenth { margin })));
        for (term, size) in sizes {
            matters[term] |= margin.is_none_or(|margin| size > margin);
        }
    }
    (rules, matters)
}
