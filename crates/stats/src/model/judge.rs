//! Which terms of a model matter: one rule for text, tables and smaller models.

use super::anova::{AnovaRow, Source, SumOfSquares};
use super::fit::{Coefficient, Fit};
use super::strata::Stratum;
use crate::lenth::{Lenth, lenth};
use crate::multiple::holm;

/// How the terms of a stratum were judged.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rule {
    /// The F test against the error of the stratum.
    FTest,
    /// No error is left in the stratum, so by Lenth's pseudo standard error over its contrasts, each scaled like the
    /// half effect of a two-level factor.
    Lenth {
        /// What the largest of as many contrasts of noise stays below, with the confidence of the fit, on the scale of half
        /// effects: [`Lenth::simultaneous`].
        margin: f64,
    },
    /// There are too few contrasts for either: all terms are kept.
    None,
}

/// What was decided about a term.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Decision {
    /// p value of the term by itself: of its F, or of its largest contrast by Lenth's method. `None` without an error to
    /// compare with, and against an error of exactly 0.
    pub p: Option<f64>,
    /// The same, adjusted for all terms that are judged together.
    pub p_family: Option<f64>,
    /// Whether it matters: `p_family` is at most 1 − confidence; against an error of exactly 0, whether it is anything but
    /// 0. `None` when there is nothing to compare it with.
    pub matters: Option<bool>,
}

/// Which terms matter.
#[derive(Debug, Clone, PartialEq)]
pub struct Judgement {
    /// How the terms of each stratum were judged.
    pub rules: Vec<(Stratum, Rule)>,
    /// For each of [`Fit::terms`] what was decided; nothing about the mean.
    pub terms: Vec<Decision>,
    /// Terms that were judged together.
    pub family: usize,
}

impl Judgement {
    /// Whether a term matters, or nothing is known against it.
    pub fn keeps(&self, term: usize) -> bool {
        let decision = self.terms.get(term).copied().unwrap_or_default();
        let unknown = || self.rules.iter().any(|(_, rule)| *rule == Rule::None);
        term > 0 && decision.matters.unwrap_or_else(unknown)
    }
}

/// Judges all terms of a fit at its confidence level.
///
/// Terms with an error to compare with are judged by their F tests, with Holm's correction over all of them. So when
/// nothing has an effect, the probability that one or more terms are said to matter is at most 1 − confidence, however many
/// there are; and as an F test knows no base level, the order of the levels plays no part. In a stratum without an error the
/// largest contrast of each term is compared with Lenth's pseudo standard error, by the distribution of the largest of
/// as many contrasts of noise. Each such stratum is one more family, and p values are multiplied by the number of families.
pub fn judge(fit: &Fit, kind: SumOfSquares) -> Judgement {
    let table = fit.anova(kind);
    let mut terms = vec![Decision::default(); fit.terms.len()];
    let rows = || {
        table.rows.iter().filter(|row| row.df > 0).filter_map(|row| match row.source {
            Source::Term(term) if term > 0 => Some((term, row)),
            _ => None,
        })
    };
    let (mut rules, mut margins): (Vec<_>, Vec<(Stratum, Lenth)>) = (Vec::new(), Vec::new());
    for error in &fit.errors {
        let rule = if error.df > 0 {
            Rule::FTest
        } else if let Some(margin) = lenth_of_stratum(fit, error.stratum) {
            margins.push((error.stratum, margin));
            Rule::Lenth { margin: margin.simultaneous }
        } else {
            Rule::None
        };
        rules.push((error.stratum, rule));
    }
    let rule_of = |row: &AnovaRow| rules.iter().find(|(stratum, _)| *stratum == row.stratum).map(|(_, r)| *r);
    let tested: Vec<(usize, &AnovaRow)> =
        rows().filter(|(_, row)| rule_of(row) == Some(Rule::FTest)).collect();
    let families = (usize::from(!tested.is_empty()) + margins.len()) as f64;
    let level = 1.0 - fit.confidence;
    // Against an error of 0 what is 0 has no effect, and everything else has one.
    let exact = |row: &AnovaRow| if row.sum_of_squares > 0.0 { 0.0 } else { 1.0 };
    let adjusted = holm(&tested.iter().map(|(_, row)| row.p.unwrap_or(exact(row))).collect::<Vec<_>>());
    for ((term, row), adjusted) in tested.iter().zip(adjusted) {
        let family = (adjusted * families).min(1.0);
        let p_family = row.p.map(|_| family);
        terms[*term] = Decision { p: row.p, p_family, matters: Some(family <= level) };
    }
    for (stratum, margin) in &margins {
        for (term, _) in rows().filter(|(_, row)| row.stratum == *stratum) {
            let own = sizes(fit, *stratum).filter(|(owner, _)| *owner == term);
            let (largest, contrasts) = own.fold((0.0f64, 0), |(a, n), (_, size)| (a.max(size), n + 1));
            let decision = match margin.p_largest(largest) {
                None => Decision { matters: Some(largest > 0.0), ..Decision::default() },
                Some(p) => {
                    let family = (p * families).min(1.0);
                    let single = margin.p(largest).map(|p| (p * f64::from(contrasts)).min(1.0));
                    Decision { p: single, p_family: Some(family), matters: Some(family <= level) }
                }
            };
            terms[term] = decision;
        }
    }
    let family = terms.iter().filter(|term| term.matters.is_some()).count();
    Judgement { rules, terms, family }
}

/// Lenth's margins over the contrasts of a stratum. Margins of fewer than three say nothing.
fn lenth_of_stratum(fit: &Fit, stratum: Stratum) -> Option<Lenth> {
    let sizes: Vec<f64> = sizes(fit, stratum).map(|(_, size)| size).collect();
    lenth(&sizes, fit.confidence).ok()
}

/// The contrasts of a stratum, each with its term, scaled like half effects.
fn sizes(fit: &Fit, stratum: Stratum) -> impl Iterator<Item = (usize, f64)> {
    let own = move |c: &&Coefficient| c.stratum == stratum && !fit.terms[c.term].is_empty();
    let size = |c: &Coefficient| (c.term, (c.sum_of_squares / fit.corners as f64).sqrt());
    fit.coefficients.iter().filter(own).map(size)
}
