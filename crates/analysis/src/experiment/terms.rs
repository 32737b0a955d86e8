//! Which terms the model has, and what the runs cannot distinguish.

use benchmaster_design::structure::{Structure, structure};
use benchmaster_design::term::{self, SignedTerm};
use benchmaster_design::{DesignError, regular::Fraction};
use benchmaster_stats::model::{Term, all_terms};

use super::prepare::Prepared;
use super::result::{AliasChain, DesignSummary};
use super::table::{ExperimentError, Options};

/// The most columns of a model that is fitted by least squares.
const MOST_COLUMNS: u64 = 1200;
/// The most work (runs × columns²) of a model whose terms are chosen by rule: seconds. With very many runs it has only
/// interactions of few factors.
const MOST_WORK: u64 = 2_000_000_000;

/// Refuses a model with more columns than can be fitted in reasonable time: a factor with very many levels, or very many
/// terms that were asked for.
pub(super) fn check_size(prepared: &Prepared<'_>, terms: &[Term]) -> Result<(), ExperimentError> {
    let factors = &prepared.data.factors;
    let of = |term: &Term| term.iter().map(|&f| factors[f].levels as u64 - 1).product::<u64>();
    let columns = terms.iter().fold(1, |sum: u64, term| sum.saturating_add(of(term)));
    if columns <= MOST_COLUMNS {
        return Ok(());
    }
    let largest = (0..factors.len()).max_by_key(|&f| (factors[f].levels, std::cmp::Reverse(f))).unwrap_or(0);
    let (name, levels) = (prepared.factor_name(largest).to_owned(), factors[largest].levels);
    Err(ExperimentError::TooManyParameters { columns, limit: MOST_COLUMNS, largest: name, levels })
}

/// The highest order of terms in alias chains.
const CHAIN_ORDER: u32 = 3;
/// Correlations of terms below this are not reported.
const LEAST_CORRELATION: f64 = 0.1;

/// What kind of design the runs are, and what it can estimate.
pub(super) struct Shape {
    /// All combinations have runs.
    pub(super) full: bool,
    /// The fraction, of regular two-level designs that are not full.
    pub(super) fraction: Option<Fraction>,
    /// For all others that are not full.
    structure: Option<Structure>,
}

impl Shape {
    pub(super) fn of(prepared: &Prepared<'_>) -> Result<Self, ExperimentError> {
        if prepared.combinations() == prepared.treatments.len() as u64 {
            return Ok(Self { full: true, fraction: None, structure: None });
        }
        let rows: Vec<_> = prepared.treatments.iter().map(|t| t.levels.clone()).collect();
        let levels = prepared.levels();
        // Terms of higher order cannot be estimated by so few runs anyway.
        let wanted = CHAIN_ORDER.max(rows.len().ilog2()).min(levels.len() as u32);
        let found = match structure(&rows, &levels, wanted) {
            Err(DesignError::StructureTooLarge { possible, .. }) => {
                structure(&rows, &levels, possible.max(1))
            }
            found => found,
        };
        let mut found = found.map_err(ExperimentError::Design)?;
        let fraction = found.regular.take();
        let structure = fraction.is_none().then_some(found);
        Ok(Self { full: false, fraction, structure })
    }

    /// Terms of the model: those asked for, or all that the runs can distinguish, up to the order asked for.
    pub(super) fn terms(
        &self,
        prepared: &Prepared<'_>,
        options: &Options,
    ) -> Result<Vec<Term>, ExperimentError> {
        let factors = prepared.active.len();
        if let Some(texts) = &options.terms {
            return texts.iter().map(|text| parse(prepared, text)).collect();
        }
        let max_order = options.max_order.map_or(factors, |order| order as usize);
        let max_order = largest_order(prepared).min(max_order);
        if let Some(fraction) = &self.fraction {
            // The shortest term of each chain stands for it.
            let order = (max_order as u32).min(fraction.runs().ilog2().max(1));
            let chains =
                fraction.chains(order).into_iter().filter_map(|chain| chain.members.first().copied());
            let terms = chains.filter(|first| first.term != 0);
            // The mean's chain begins with the mean, but only when that is among the terms.
            return Ok(terms.map(|first| term::factors(first.term).map(|f| f as usize).collect()).collect());
        }
        let Some(structure) = &self.structure else { return Ok(all_terms(factors, max_order)) };
        let orders = structure.models.iter().take_while(|model| model.rank == model.parameters);
        let complete = orders.map(|model| model.order as usize).max().unwrap_or(0).min(max_order);
        // Beyond the orders that are complete, an interaction may still be there; its share in the error is said.
        let mut terms = all_terms(factors, complete);
        let beyond = structure.terms.iter().filter(|t| {
            let order = t.factors.len();
            order > complete && order <= max_order.min(complete + 1) && t.estimable
        });
        terms.extend(beyond.map(|t| t.factors.iter().map(|&f| f as usize).collect::<Term>()));
        if terms.is_empty() {
            terms = all_terms(factors, 1);
        }
        Ok(terms)
    }

    pub(super) fn summary(&self, prepared: &Prepared<'_>) -> DesignSummary {
        let kind = match (prepared.active.is_empty(), self.full, &self.fraction, &self.structure) {
            (true, ..) => "none",
            (_, true, ..) => "full",
            (_, _, Some(_), _) => "regular fraction",
            (_, _, _, Some(s))
                if s.models.get(1).is_some_and(|m| m.rank == m.parameters) && is_orthogonal(s) =>
            {
                "orthogonal array"
            }
            _ => "irregular",
        };
        let signed = |word: SignedTerm| {
            let letters = term::letters(prepared.outer_mask(word.term));
            format!("{}{letters}", if word.negative { "-" } else { "" })
        };
        let fraction = self.fraction.as_ref();
        let words = fraction.filter(|f| f.generators().len() <= 10).map(Fraction::defining_words);
        let count = |numbers: &Option<Vec<u32>>| {
            numbers.as_ref().and_then(|n| n.iter().max()).map_or(0, |&last| last as usize + 1)
        };
        DesignSummary {
            kind,
            full_treatments: prepared.combinations(),
            generators: fraction
                .map_or(&[][..], Fraction::generators)
                .iter()
                .map(|generator| {
                    let factor = term::letter(prepared.active[generator.factor as usize]);
                    let word = signed(SignedTerm { term: generator.word, negative: generator.negative });
                    format!("{factor}={word}")
                })
                .collect(),
            defining_words: words.unwrap_or_default().into_iter().map(signed).collect(),
            resolution: fraction.and_then(Fraction::resolution),
            blocks: count(&prepared.data.block),
            block_deviation: None,
            whole_plots: count(&prepared.data.whole_plot),
            centre_points: prepared.centre_points,
        }
    }

    /// Terms that an estimate cannot be distinguished from, with signs.
    pub(super) fn aliased_with(&self, prepared: &Prepared<'_>, model_term: &Term) -> Vec<String> {
        let signed = |factors: term::Term, negative: bool| {
            let letters = term::letters(prepared.outer_mask(factors));
            format!("{}{letters}", if negative { "-" } else { "" })
        };
        if let Some(fraction) = &self.fraction {
            let own = model_term.iter().fold(0, |mask, &factor| mask | 1 << factor);
            let others = fraction.aliases(own, CHAIN_ORDER);
            return others.into_iter().map(|other| signed(other.term, other.negative)).collect();
        }
        let own: Vec<u32> = model_term.iter().map(|&f| f as u32).collect();
        let found = self.structure.iter().flat_map(|s| &s.terms).find(|t| t.factors == own);
        let complete = found.iter().flat_map(|t| &t.aliases).filter(|(_, r)| r.abs() > 1.0 - 1e-6);
        let all = complete.map(|(factors, r)| signed(factors.iter().fold(0, |m, f| m | 1 << f), *r < 0.0));
        all.collect()
    }

    /// What each estimate is the sum of; `None` when nothing is aliased.
    pub(super) fn chains(&self, prepared: &Prepared<'_>, terms: &[Term]) -> Option<Vec<AliasChain>> {
        let chain = |members: Vec<(term::Term, f64)>| {
            let outer: Vec<_> =
                members.iter().map(|(m, weight)| (prepared.outer_mask(*m), *weight)).collect();
            let names = |mask: term::Term| {
                let names = term::factors(mask).map(|f| prepared.table.factors[f as usize].name.as_str());
                if mask == 0 { "mean".to_owned() } else { names.collect::<Vec<_>>().join(" × ") }
            };
            let sign = |weight: f64| if weight < 0.0 { "-" } else { "" };
            AliasChain {
                terms: outer.iter().map(|(m, w)| format!("{}{}", sign(*w), term::letters(*m))).collect(),
                names: outer.iter().map(|(m, w)| format!("{}{}", sign(*w), names(*m))).collect(),
                weights: outer.iter().map(|(_, weight)| *weight).collect(),
                text: sum(&outer),
            }
        };
        if let Some(fraction) = &self.fraction {
            let order = if fraction.factors() > 20 { 2 } else { CHAIN_ORDER };
            let weight = |m: &SignedTerm| (m.term, if m.negative { -1.0 } else { 1.0 });
            let chains = fraction.chains(order).into_iter();
            return Some(chains.map(|c| chain(c.members.iter().map(weight).collect())).collect());
        }
        let structure = self.structure.as_ref()?;
        let mask = |factors: &[u32]| factors.iter().fold(0, |mask, factor| mask | 1u64 << factor);
        let chains: Vec<_> = std::iter::once(&Term::new())
            .chain(terms.iter().filter(|term| !term.is_empty()))
            .filter_map(|own| {
                let own: Vec<u32> = own.iter().map(|&f| f as u32).collect();
                let found = structure.terms.iter().find(|t| t.factors == own)?;
                let inside = |factors: &[u32]| {
                    terms.iter().any(|t| t.iter().map(|&f| f as u32).eq(factors.iter().copied()))
                };
                let others = found
                    .aliases
                    .iter()
                    .filter(|(factors, r)| r.abs() >= LEAST_CORRELATION && !inside(factors));
                let others: Vec<_> = others.map(|(factors, r)| (mask(factors), *r)).collect();
                (!others.is_empty())
                    .then(|| chain(std::iter::once((mask(&own), 1.0)).chain(others).collect()))
            })
            .collect();
        (!chains.is_empty()).then_some(chains)
    }
}

/// `B + DF − ACE`; `A − 0.33 BC`.
fn sum(members: &[(term::Term, f64)]) -> String {
    let mut text = String::new();
    for (i, (member, weight)) in members.iter().enumerate() {
        text += match (i, *weight < 0.0) {
            (0, false) => "",
            (0, true) => "−",
            (_, false) => " + ",
            (_, true) => " − ",
        };
        if (weight.abs() - 1.0).abs() > 1e-6 {
            text += &format!("{:.2} ", weight.abs());
        }
        text += &term::letters(*member);
    }
    text
}

/// Whether main effects are uncorrelated.
fn is_orthogonal(structure: &Structure) -> bool {
    let main = structure.terms.iter().filter(|t| t.factors.len() == 1);
    main.flat_map(|t| &t.aliases).all(|(factors, r)| factors.len() > 1 || r.abs() < 1e-6)
}

/// The highest order of terms whose model can be fitted in reasonable time.
pub(super) fn largest_order(prepared: &Prepared<'_>) -> usize {
    let (factors, levels) = (prepared.active.len(), prepared.levels());
    let runs = prepared.data.y.len() as u64;
    let fits = |order: &usize| {
        let columns = columns(&levels, *order);
        columns <= MOST_COLUMNS && runs.saturating_mul(columns * columns) <= MOST_WORK
    };
    (1..=factors).take_while(fits).last().unwrap_or(1).min(factors)
}

/// Columns of a model up to an order, the mean counted.
fn columns(levels: &[u32], order: usize) -> u64 {
    let mut sums = vec![0u64; order + 1];
    sums[0] = 1;
    for &n in levels {
        for order in (1..sums.len()).rev() {
            sums[order] = sums[order].saturating_add(sums[order - 1].saturating_mul(u64::from(n) - 1));
        }
    }
    sums.into_iter().fold(0, u64::saturating_add)
}

/// A term of the model by names or letters.
fn parse(prepared: &Prepared<'_>, text: &str) -> Result<Term, ExperimentError> {
    let names: Vec<&str> = prepared.table.factors.iter().map(|f| f.name.as_str()).collect();
    let mask = term::parse(text, &names).map_err(ExperimentError::Design)?;
    let inner = term::factors(mask).map(|factor| {
        let place = prepared.active.iter().position(|&active| active == factor as usize);
        place.ok_or_else(|| ExperimentError::NothingVaried {
            factors: vec![names[factor as usize].to_owned()],
        })
    });
    inner.collect()
}
