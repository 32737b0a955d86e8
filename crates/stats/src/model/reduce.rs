//! A smaller model: terms that cannot be distinguished from nothing become error.

use std::collections::BTreeSet;

use super::anova::SumOfSquares;
use super::data::{Data, Term};
use super::fit::{Fit, fit};
use super::judge::{Rule, judge};
use super::strata::Stratum;
use crate::error::StatsError;

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
    let judgement = judge(&full, SumOfSquares::III);
    let own = || full.terms.iter().enumerate().skip(1);
    let kept = own().filter(|(place, _)| judgement.keeps(*place));
    let significant: Vec<_> = kept.map(|(_, term)| term.clone()).collect();
    let closed = hierarchy(&significant);
    let by_hierarchy: Vec<_> = closed.iter().filter(|term| !significant.contains(term)).cloned().collect();
    let dropped = own().map(|(_, term)| term).filter(|term| !closed.contains(term)).cloned().collect();
    Ok(Reduced {
        rules: judgement.rules,
        significant,
        by_hierarchy,
        dropped,
        fit: fit(data, &closed, confidence)?,
    })
}
