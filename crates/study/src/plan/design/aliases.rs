//! Which effects can be separated.

use std::collections::{BTreeSet, HashMap};

use benchmaster_design::regular::Fraction;
use benchmaster_design::structure::{Structure, TermStructure};
use benchmaster_design::term::{self, SignedTerm, Term};

use super::description::{AliasChain, ClearEffects, InterestingEffect, PartialAlias, TermDescription};
use super::facts::Facts;
use super::words::{bits, factors, order_of};

/// This number of alias chains, and of terms of designs that are not regular, is kept.
pub(super) const MOST_CHAINS: usize = 2_000;

/// So many words of the defining relation are listed.
const MOST_WORDS: usize = 2_000;

/// What [`find`] finds.
#[derive(Default)]
pub(crate) struct Aliases {
    pub(crate) max_order: u32,
    pub(crate) defining_words: u64,
    pub(crate) defining_relation: Vec<String>,
    pub(crate) chains: Vec<AliasChain>,
    pub(crate) chains_left_out: u64,
    pub(crate) terms: Vec<TermDescription>,
    pub(crate) terms_left_out: u64,
    pub(crate) clear: ClearEffects,
    pub(crate) interest: Vec<InterestingEffect>,
}

pub(crate) fn find(facts: &Facts<'_>) -> Aliases {
    match (&facts.fraction, &facts.structure) {
        (Some(fraction), _) => of_fraction(facts, fraction),
        (None, Some(Ok(structure))) => of_rows(facts, structure),
        (None, Some(Err(_))) => Aliases::default(),
        (None, None) => of_full(facts),
    }
}

fn of_fraction(facts: &Facts<'_>, fraction: &Fraction) -> Aliases {
    let words = &facts.words;
    let order = facts.input.max_order;
    let interest: Vec<Term> = facts.input.interest.iter().filter_map(|factors| bits(factors)).collect();
    let relation = fraction.defining_words();
    let chains = fraction.chains(order);
    let clear = fraction.clear();
    let described = chains.iter().take(MOST_CHAINS).map(|chain| {
        let of_interest = chain.members.iter().filter(|member| interest.contains(&member.term));
        AliasChain {
            order: chain.members.first().map_or(0, |first| term::order(first.term)),
            members: chain.members.iter().map(|&member| words.signed(member)).collect(),
            names: chain.members.iter().map(|&member| words.signed_names(member)).collect(),
            interest: of_interest.map(|member| term::letters(member.term)).collect(),
        }
    });
    let letters = |terms: &[Term]| terms.iter().map(|&term| term::letters(term)).collect();
    Aliases {
        max_order: order,
        defining_words: relation.len() as u64,
        defining_relation: relation.iter().take(MOST_WORDS).map(|&word| words.signed(word)).collect(),
        chains: described.collect(),
        chains_left_out: chains.len().saturating_sub(MOST_CHAINS) as u64,
        clear: ClearEffects {
            main_effects: letters(&clear.main_effects),
            two_factor_interactions: letters(&clear.two_factor),
        },
        interest: interest.iter().map(|&term| interesting(facts, fraction, term)).collect(),
        ..Aliases::default()
    }
}

fn interesting(facts: &Facts<'_>, fraction: &Fraction, of: Term) -> InterestingEffect {
    let aliases: Vec<SignedTerm> = fraction.aliases(of, facts.input.max_order.max(2));
    InterestingEffect {
        term: term::letters(of),
        name: facts.words.names(&factors(of)),
        clear: aliases.iter().all(|alias| term::order(alias.term) > 2),
        aliased_with: aliases.iter().map(|&alias| facts.words.signed(alias)).collect(),
    }
}

/// All sets of factors up to an order, by order, then letters; without the mean. The second number counts those beyond
/// `most`.
fn sets(count: usize, max_order: u32, most: usize) -> (Vec<Vec<usize>>, u64) {
    let mut all: Vec<Vec<usize>> = Vec::new();
    let mut last: Vec<Vec<usize>> = vec![Vec::new()];
    let mut total = 0u64;
    let mut of_order = 1u64;
    for order in 1..=u64::from(max_order).min(count as u64) {
        of_order = of_order.saturating_mul(count as u64 + 1 - order) / order;
        total = total.saturating_add(of_order);
        if total > most as u64 {
            last.clear();
        }
        last = last
            .iter()
            .flat_map(|set| {
                let next = set.last().map_or(0, |&factor| factor + 1);
                (next..count).map(move |factor| [&set[..], &[factor]].concat())
            })
            .collect();
        all.extend(last.iter().cloned());
    }
    let left_out = total.saturating_sub(all.len() as u64);
    (all, left_out)
}

/// Every effect of a full design of any levels is estimated alone.
fn of_full(facts: &Facts<'_>) -> Aliases {
    let (sets, terms_left_out) = sets(facts.levels.len(), facts.input.max_order, MOST_CHAINS);
    let interest: BTreeSet<&[usize]> = facts.input.interest.iter().map(Vec::as_slice).collect();
    let terms: Vec<_> = sets
        .iter()
        .map(|set| TermDescription {
            term: facts.words.letters(set),
            name: facts.words.names(set),
            degrees_of_freedom: set.iter().map(|&factor| facts.levels[factor] - 1).product(),
            estimable: true,
            variance_inflation: Some(1.0),
            interest: interest.contains(set.as_slice()),
            aliases: Vec::new(),
            aliases_left_out: 0,
        })
        .collect();
    let of_order = |order: usize| {
        sets.iter().filter(|set| set.len() == order).map(|set| facts.words.letters(set)).collect()
    };
    let interest = facts.input.interest.iter().map(|set| InterestingEffect {
        term: facts.words.letters(set),
        name: facts.words.names(set),
        clear: true,
        aliased_with: Vec::new(),
    });
    Aliases {
        max_order: facts.input.max_order,
        terms,
        terms_left_out,
        clear: ClearEffects { main_effects: of_order(1), two_factor_interactions: of_order(2) },
        interest: interest.collect(),
        ..Aliases::default()
    }
}

/// Whatever rows there are.
fn of_rows(facts: &Facts<'_>, structure: &Structure) -> Aliases {
    let words = &facts.words;
    let interest: BTreeSet<&[usize]> = facts.input.interest.iter().map(Vec::as_slice).collect();
    let low: HashMap<&[u32], &TermStructure> = facts
        .low_order()
        .map(|structure| structure.terms.iter().map(|term| (term.factors.as_slice(), term)).collect())
        .unwrap_or_default();
    let of_order = |order: usize| {
        let terms = structure.terms.iter().filter(|term| term.factors.len() == order);
        let clear = terms.filter(|term| low.get(term.factors.as_slice()).is_some_and(|term| is_clear(term)));
        clear.map(|term| words.letters(&set_of(&term.factors))).collect()
    };
    let clear = ClearEffects { main_effects: of_order(1), two_factor_interactions: of_order(2) };
    let terms = structure.terms.iter().filter(|term| !term.factors.is_empty()).map(|term| {
        let set = set_of(&term.factors);
        let aliases = merged(term, low.get(term.factors.as_slice()).copied());
        let all = term.aliases.len() + term.aliases_left_out;
        TermDescription {
            term: words.letters(&set),
            name: words.names(&set),
            degrees_of_freedom: term.degrees_of_freedom,
            estimable: term.estimable,
            variance_inflation: term.variance_inflation,
            interest: interest.contains(set.as_slice()),
            aliases_left_out: all.saturating_sub(aliases.len()) as u64,
            aliases: aliases
                .into_iter()
                .map(|(other, correlation)| {
                    let other = set_of(other);
                    let (term, name) = (words.letters(&other), words.names(&other));
                    PartialAlias { term, name, correlation }
                })
                .collect(),
        }
    });
    let terms: Vec<TermDescription> = terms.collect();
    let interest = facts.input.interest.iter().map(|set| {
        let name = words.letters(set);
        let term = terms.iter().find(|term| term.term == name);
        let aliased = |alias: &&PartialAlias| alias.term != "I";
        let aliases = term.map(|term| term.aliases.iter().filter(aliased)).into_iter().flatten();
        let aliased_with: Vec<_> = aliases.map(|alias| alias.term.clone()).collect();
        let mixed = aliased_with.iter().any(|alias| order_of(alias) <= 2);
        let clear = term.is_some_and(|term| term.estimable) && !mixed;
        InterestingEffect { term: name, name: words.names(set), clear, aliased_with }
    });
    let interest = interest.collect();
    let terms_left_out = terms.len().saturating_sub(MOST_CHAINS) as u64;
    let terms = terms.into_iter().take(MOST_CHAINS).collect();
    let max_order = structure.models.last().map_or(0, |model| model.order);
    Aliases { max_order, terms, terms_left_out, clear, interest, ..Aliases::default() }
}

fn set_of(factors: &[u32]) -> Vec<usize> {
    factors.iter().map(|&factor| factor as usize).collect()
}

/// The aliases of a term: main effects and interactions of two factors first, then the others.
fn merged<'a>(term: &'a TermStructure, low: Option<&'a TermStructure>) -> Vec<(&'a [u32], f64)> {
    let low = low.unwrap_or(term);
    let is_low = |alias: &&(Vec<u32>, f64)| alias.0.len() <= 2;
    let high = term.aliases.iter().filter(|alias| !is_low(alias));
    low.aliases.iter().filter(is_low).chain(high).map(|(other, r)| (other.as_slice(), *r)).collect()
}

fn is_clear(term: &TermStructure) -> bool {
    term.estimable && term.aliases.iter().all(|(other, _)| other.is_empty() || other.len() > 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_factors_are_listed_and_counted() {
        let (all, more) = sets(4, 3, 100);
        assert_eq!((all.len(), more), (4 + 6 + 4, 0));
        assert_eq!(all[4], [0, 1]);
        assert_eq!(all[13], [1, 2, 3]);
        assert_eq!(sets(4, 3, 10).0.len(), 10);
        assert_eq!(sets(4, 3, 10).1, 4);
        assert_eq!(sets(4, 9, 0), (Vec::new(), 15));
        assert_eq!(sets(0, 3, 10), (Vec::new(), 0));
    }
}
