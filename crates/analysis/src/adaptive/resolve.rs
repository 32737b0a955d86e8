//! Which effects the runs so far cannot distinguish although it matters, and the runs that would.

use std::collections::BTreeSet;

use benchmaster_design::augment::{Augmentation, augment};
use benchmaster_design::fold::{Fold, foldover};
use benchmaster_record::results::StageKind;
use benchmaster_stats::model::{Fit, SumOfSquares, Term, judge};

use super::addition::{AdaptiveError, Addition};
use super::facts::Facts;

/// What stays ambiguous.
#[derive(Debug)]
pub(super) enum Ambiguity {
    /// Nothing that matters.
    None,
    /// These runs separate it.
    Resolvable(Addition),
    /// No runs that may be done separate it.
    Stays(Vec<String>),
}

/// A sum of terms that was found to matter, and the terms that it may be due to.
#[derive(Debug, PartialEq)]
struct Group {
    members: Vec<Term>,
}

/// The model that all runs together are analysed by: what the first design alone shows to matter, with all that it may
/// be due to, every main effect, and what was asked for. Runs that are added separate these terms. When the first
/// design leaves nothing ambiguous, these are all terms of up to two factors.
pub(super) struct Question {
    pub(super) terms: Vec<Term>,
    groups: Vec<Group>,
}

impl Question {
    pub(super) fn of(facts: &Facts) -> Result<Self, AdaptiveError> {
        let first = facts.first_design();
        let fit = first.fit(&first.terms())?;
        let active = active(&fit);
        let groups = groups(facts, &fit, &active);
        if groups.is_empty() {
            return Ok(Self { terms: facts.terms(), groups });
        }
        let mut terms: BTreeSet<(usize, Term)> = (0..facts.levels.len()).map(|f| (1, vec![f])).collect();
        let others = groups.iter().flat_map(|g| &g.members).chain(&facts.interest).chain(&active);
        terms.extend(others.map(|t| (t.len(), t.clone())));
        Ok(Self { terms: terms.into_iter().map(|(_, term)| term).collect(), groups })
    }
}

pub(super) fn resolve(facts: &Facts, question: &Question) -> Ambiguity {
    if question.groups.is_empty() {
        return Ambiguity::None;
    }
    let terms: Vec<Vec<u32>> =
        question.terms.iter().map(|term| term.iter().map(|&f| f as u32).collect()).collect();
    let found = augment(&Augmentation {
        levels: &facts.levels,
        rows: &facts.distinct,
        block_of: &facts.first_stage,
        terms: &terms,
        allowed: &|row| facts.design.allows(row),
        most: (2 * facts.distinct.len()).max(8),
    });
    let said: Vec<_> = question.groups.iter().map(|g| sentence(facts, g)).collect();
    match found {
        Ok(rows) if rows.is_empty() => Ambiguity::None,
        Ok(rows) => {
            let (kind, rows) = as_foldover(facts, rows);
            Ambiguity::Resolvable(Addition {
                kind,
                reason: said.join("; "),
                rows,
                replicates: facts.replicates,
            })
        }
        Err(error) => Ambiguity::Stays(said.iter().map(|s| format!("{s}: {error}")).collect()),
    }
}

/// As many runs in any case may as well be the mirror image of a two-level design, which separates all main effects from all
/// interactions of two factors.
fn as_foldover(facts: &Facts, rows: Vec<Vec<u32>>) -> (StageKind, Vec<Vec<u32>>) {
    let two_level = facts.levels.iter().all(|&n| n == 2);
    if two_level && rows.len() >= facts.distinct.len() {
        let mirrored = foldover(&facts.distinct, Fold::All);
        let known: BTreeSet<_> = facts.distinct.iter().collect();
        if mirrored.iter().all(|row| !known.contains(row) && facts.design.allows(row)) {
            return (StageKind::Foldover, mirrored);
        }
    }
    (StageKind::Augment, rows)
}

fn sentence(facts: &Facts, group: &Group) -> String {
    let names: Vec<_> = group.members.iter().map(|t| facts.name(t)).collect();
    format!("the runs so far do not tell {} apart", names.join(" and "))
}

/// The terms that matter by the rule of every analysis, as the model names them: the first of those that are aliased.
pub(super) fn active(fit: &Fit) -> BTreeSet<Term> {
    let decided = judge(fit, SumOfSquares::III).terms;
    let matters = fit.terms.iter().zip(decided).filter(|(_, decision)| decision.matters == Some(true));
    matters.map(|(term, _)| term.clone()).collect()
}

/// The estimates that matter and may be due to several terms. A main effect always may; an interaction may if one of its
/// factors has an effect (weak heredity), or if it was asked for.
fn groups(facts: &Facts, fit: &Fit, active: &BTreeSet<Term>) -> Vec<Group> {
    let alone = |factor: usize| active.contains(&vec![factor]);
    let plausible =
        |term: &Term| term.len() == 1 || facts.interest.contains(term) || term.iter().any(|&f| alone(f));
    let aliased = |term: &Term| {
        let with = fit
            .aliased
            .iter()
            .filter(|a| a.with.iter().any(|w| fit.terms[w.term] == *term && w.factor.abs() > 1e-6));
        with.map(|a| fit.terms[a.term].clone()).collect::<BTreeSet<_>>()
    };
    let mut groups: Vec<Group> = Vec::new();
    for term in &fit.terms {
        if term.is_empty() {
            continue;
        }
        let others = aliased(term);
        let asked = |t: &Term| facts.interest.contains(t);
        // What was asked for must be separate from all else that was asked for, whether it seems to matter or not.
        let both_asked = asked(term) && others.iter().any(asked);
        if !active.contains(term) && !both_asked {
            continue;
        }
        let wanted = |t: &Term| if active.contains(term) { plausible(t) } else { asked(t) };
        let members: Vec<Term> = std::iter::once(term.clone())
            .filter(|t| plausible(t))
            .chain(others.into_iter().filter(wanted))
            .collect();
        let group = Group { members };
        if group.members.len() > 1 && !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}
