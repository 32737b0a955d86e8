//! Regular two-level fractions 2^(k−p): generators, defining relation, aliases and clear effects.
//!
//! Every factor is a product of *base* factors (itself, for a base factor). The column of a term is therefore a
//! product of base factors with a sign, and terms with the same product are aliases of each other. This needs no list
//! of the 2^p defining words except where the words themselves are asked for.

use std::collections::HashMap;
use std::fmt;

use crate::design::DesignError;
use crate::error::FractionError;
use crate::term::{self, MAX_FACTORS, SignedTerm, Term, letter};

/// The most base factors: 2^20 runs.
pub const MAX_BASE: u32 = 20;
/// The most generators: their 2^p defining words are counted one by one.
pub const MAX_GENERATORS: u32 = 20;

/// An added factor and the product that sets its levels: F = BC, E = −ABC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Generator {
    /// The added factor, from 0.
    pub factor: u32,
    /// The factors of the product.
    pub word: Term,
    /// Whether the product is taken with its signs switched.
    pub negative: bool,
}

impl Generator {
    /// Reads "F=BC", "E=-ABC" or "delay=storage*sync"; letters and names as [`term::parse`] takes them.
    ///
    /// # Errors
    ///
    /// Text without one `=`, an unknown factor, several factors on the left.
    pub fn parse<S: AsRef<str>>(text: &str, names: &[S]) -> Result<Self, DesignError> {
        let not_one = || FractionError::NotAGenerator { text: text.to_owned() };
        let (left, right) = text.split_once('=').ok_or_else(not_one)?;
        let right = right.trim();
        let (negative, product) = match right.strip_prefix(['-', '−']) {
            Some(product) => (true, product),
            None => (false, right.strip_prefix('+').unwrap_or(right)),
        };
        let (added, word) = (term::parse(left.trim(), names)?, term::parse(product.trim(), names)?);
        if term::order(added) != 1 {
            return Err(not_one().into());
        }
        Ok(Self { factor: added.trailing_zeros(), word, negative })
    }
}

impl fmt::Display for Generator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = SignedTerm { term: self.word, negative: self.negative };
        write!(f, "{}={word}", letter(self.factor as usize))
    }
}

/// How good a fraction is known to be among all with as many factors and runs; if it was asked for by effects that must
/// be clear, among those in which they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Aberration {
    /// Generators as the user gave them; not compared with others.
    Given,
    /// Minimum aberration, proved by a search of all fractions (or there is only one).
    Proved,
    /// The best of those that a bounded search has seen. A better one may exist.
    BestFound,
}

/// A regular two-level fraction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fraction {
    factors: u32,
    generators: Vec<Generator>,
    base: Vec<u32>,
    /// Per factor its product of base factors: bit j is `base[j]`.
    columns: Vec<u64>,
    /// Factors whose product has a minus.
    negative: Term,
    aberration: Aberration,
    fewest_runs: Option<bool>,
}

/// Terms that one column estimates together: the estimate is their sum with these signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// By order, then letters. The first is the shortest and has a plus.
    pub members: Vec<SignedTerm>,
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, member) in self.members.iter().enumerate() {
            write!(f, "{}{member}", if index == 0 { "" } else { "=" })?;
        }
        Ok(())
    }
}

/// Effects that are aliased with no main effect and no interaction of two factors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clear {
    /// Main effects.
    pub main_effects: Vec<Term>,
    /// Interactions of two factors.
    pub two_factor: Vec<Term>,
}

impl Fraction {
    /// All 2^k combinations.
    ///
    /// # Errors
    ///
    /// No factors or more than [`MAX_BASE`].
    pub fn full(factors: u32) -> Result<Self, DesignError> {
        let full = Self::from_generators(factors, &[])?;
        Ok(full.known_as(Aberration::Proved))
    }

    /// The fraction in which every generator's factor is the product of the others in its word.
    ///
    /// Any factors may be the added ones, and a word may hold added factors as well.
    ///
    /// # Errors
    ///
    /// Generators that name a factor twice on the left, define each other in a circle, leave a factor without change,
    /// or make two factors always change together; and designs beyond the bounds.
    pub fn from_generators(factors: u32, generators: &[Generator]) -> Result<Self, DesignError> {
        if factors == 0 || factors > MAX_FACTORS {
            return Err(FractionError::Factors { factors, limit: MAX_FACTORS }.into());
        }
        let added = added_factors(factors, generators)?;
        if generators.len() > MAX_GENERATORS as usize {
            return Err(
                FractionError::Generators { generators: generators.len(), limit: MAX_GENERATORS }.into()
            );
        }
        let base: Vec<u32> = (0..factors).filter(|&factor| added[factor as usize].is_none()).collect();
        if base.len() > MAX_BASE as usize {
            return Err(FractionError::Runs { base: base.len() as u32, limit: MAX_BASE }.into());
        }
        let mut columns: Vec<Option<(u64, bool)>> = vec![None; factors as usize];
        for (index, &factor) in base.iter().enumerate() {
            columns[factor as usize] = Some((1 << index, false));
        }
        // Each pass settles the generators whose factors are all settled; what a pass cannot settle is a circle.
        let mut open: Vec<Generator> = generators.to_vec();
        while !open.is_empty() {
            let before = open.len();
            open.retain(|generator| {
                let product = term::factors(generator.word).try_fold(
                    (0, generator.negative),
                    |(column, sign), factor| {
                        columns[factor as usize].map(|(of, negative)| (column ^ of, sign ^ negative))
                    },
                );
                columns[generator.factor as usize] = product;
                product.is_none()
            });
            if open.len() == before {
                let generators = open.iter().map(ToString::to_string).collect();
                return Err(FractionError::Circular { generators }.into());
            }
        }
        let columns: Vec<(u64, bool)> = columns.into_iter().flatten().collect();
        let fraction = Self {
            factors,
            generators: generators.to_vec(),
            base,
            negative: columns.iter().enumerate().filter(|(_, c)| c.1).map(|(j, _)| 1u64 << j).sum(),
            columns: columns.into_iter().map(|(column, _)| column).collect(),
            aberration: Aberration::Given,
            fewest_runs: None,
        };
        fraction.refuse_short_words(&added)?;
        Ok(fraction)
    }

    /// The fraction in which these products never change. Words that follow from others are left out; the last
    /// factors become the added ones.
    pub(crate) fn from_words(factors: u32, words: &[SignedTerm]) -> Result<Self, DesignError> {
        let mut independent: Vec<SignedTerm> = Vec::new();
        let multiply = |a: SignedTerm, b: SignedTerm| SignedTerm {
            term: a.term ^ b.term,
            negative: a.negative != b.negative,
        };
        let last = |word: SignedTerm| 1u64 << word.term.ilog2();
        for &word in words {
            let word = independent.iter().fold(word, |word, &other| {
                if word.term & last(other) == 0 { word } else { multiply(word, other) }
            });
            if word.term != 0 {
                for other in independent.iter_mut().filter(|other| other.term & last(word) != 0) {
                    *other = multiply(*other, word);
                }
                independent.push(word);
            }
        }
        let mut generators: Vec<_> = independent
            .into_iter()
            .map(|word| Generator {
                factor: word.term.ilog2(),
                word: word.term ^ last(word),
                negative: word.negative,
            })
            .collect();
        generators.sort_unstable_by_key(|generator| generator.factor);
        Self::from_generators(factors, &generators)
    }

    fn refuse_short_words(&self, added: &[Option<&Generator>]) -> Result<(), FractionError> {
        let mut first: HashMap<u64, usize> = HashMap::new();
        for (factor, &column) in self.columns.iter().enumerate() {
            if column == 0 {
                let generator = added[factor].map(ToString::to_string).unwrap_or_default();
                return Err(FractionError::Constant { generator, factor: factor as u32 });
            }
            if let Some(other) = first.insert(column, factor) {
                return Err(FractionError::SameFactors {
                    generators: [other, factor]
                        .iter()
                        .filter_map(|&f| added[f].map(ToString::to_string))
                        .collect(),
                    factors: vec![letter(other), letter(factor)],
                    word: 1 << other | 1 << factor,
                });
            }
        }
        Ok(())
    }

    pub(crate) fn known_as(mut self, aberration: Aberration) -> Self {
        self.aberration = aberration;
        self
    }

    pub(crate) fn with_fewest_runs(mut self, proved: bool) -> Self {
        self.fewest_runs = Some(proved);
        self
    }

    /// For a fraction that was chosen to have the fewest runs: whether it is known that fewer would not do. `None` for
    /// other fractions.
    pub fn fewest_runs(&self) -> Option<bool> {
        self.fewest_runs
    }

    /// Number of factors k.
    pub fn factors(&self) -> u32 {
        self.factors
    }

    /// Number of runs 2^(k−p).
    pub fn runs(&self) -> u64 {
        1 << self.base.len()
    }

    /// The generators as they were given; none for a full design.
    pub fn generators(&self) -> &[Generator] {
        &self.generators
    }

    /// The factors that no generator defines, ascending.
    pub fn base(&self) -> &[u32] {
        &self.base
    }

    /// Whether the fraction is known to have minimum aberration.
    pub fn aberration(&self) -> Aberration {
        self.aberration
    }

    /// The product of base factors that is the term's column: bit j is the j-th base factor. Terms with the same
    /// product are aliases.
    pub fn column(&self, term: Term) -> u64 {
        term::factors(term)
            .filter_map(|factor| self.columns.get(factor as usize))
            .fold(0, |all, &one| all ^ one)
    }

    /// Whether the term's column is its product of base factors with the signs switched.
    pub fn is_negative(&self, term: Term) -> bool {
        (term & self.negative).count_ones() % 2 == 1
    }

    /// The treatments as level numbers (0 low, 1 high), the base factors in standard order: the first changes fastest.
    pub fn rows(&self) -> Vec<Vec<u32>> {
        let level = |run: u64, factor: usize| {
            // A product of n factors is high when the number of its low factors is even.
            let low = (!run & self.columns[factor]).count_ones() + (self.negative >> factor & 1) as u32;
            u32::from(low.is_multiple_of(2))
        };
        (0..self.runs())
            .map(|run| (0..self.factors as usize).map(|factor| level(run, factor)).collect())
            .collect()
    }

    /// The p independent words of the defining relation, one for each generator: F = −BC gives −BCF.
    pub(crate) fn independent_words(&self) -> Vec<Term> {
        self.generators.iter().map(|generator| generator.word ^ 1 << generator.factor).collect()
    }

    /// Every product of the independent words except the empty one, each once.
    fn for_each_word(&self, mut take: impl FnMut(Term)) {
        let words = self.independent_words();
        let mut word = 0;
        // Gray code: each step multiplies by one word.
        for step in 1u64..1 << words.len() {
            word ^= words[step.trailing_zeros() as usize];
            take(word);
        }
    }

    /// The words of the defining relation I = … (2^p − 1), by length, then letters. A word's sign is that of its
    /// column, which never changes.
    pub fn defining_words(&self) -> Vec<SignedTerm> {
        let mut words = Vec::with_capacity((1 << self.generators.len()) - 1);
        self.for_each_word(|term| words.push(SignedTerm { term, negative: self.is_negative(term) }));
        words.sort_unstable_by(|a, b| term::compare(a.term, b.term));
        words
    }

    /// How many words of the defining relation have each length, the index: from 0 to k.
    pub fn word_length_pattern(&self) -> Vec<u64> {
        let mut pattern = vec![0; self.factors as usize + 1];
        self.for_each_word(|word| pattern[term::order(word) as usize] += 1);
        pattern
    }

    /// The length of the shortest word; `None` for a full design.
    pub fn resolution(&self) -> Option<u32> {
        let pattern = self.word_length_pattern();
        pattern.iter().position(|&words| words > 0).map(|length| length as u32)
    }

    /// The other terms up to `max_order` that the column of `term` estimates as well, by order, then letters; the sign
    /// is against `term`.
    pub fn aliases(&self, term: Term, max_order: u32) -> Vec<SignedTerm> {
        let (column, sign) = (self.column(term), self.is_negative(term));
        let signed = |other: Term| SignedTerm { term: other, negative: self.is_negative(other) != sign };
        let mut aliases = Vec::new();
        self.for_each_word(|word| {
            let other = term ^ word;
            if term::order(other) <= max_order {
                aliases.push(signed(other));
            }
        });
        debug_assert!(aliases.iter().all(|alias| self.column(alias.term) == column), "one column");
        aliases.sort_unstable_by(|a, b| term::compare(a.term, b.term));
        aliases
    }

    /// All terms up to `max_order` in sets that share a column, the mean's first, then by their first members. Signs
    /// are against the first member.
    pub fn chains(&self, max_order: u32) -> Vec<Chain> {
        let mut chain_of: HashMap<u64, usize> = HashMap::new();
        let mut chains: Vec<Chain> = Vec::new();
        for term in term::up_to(self.factors, max_order) {
            let index = *chain_of.entry(self.column(term)).or_insert(chains.len());
            if index == chains.len() {
                chains.push(Chain { members: Vec::new() });
            }
            let members = &mut chains[index].members;
            let first = members.first().map_or(term, |first| first.term);
            members.push(SignedTerm { term, negative: self.is_negative(term) != self.is_negative(first) });
        }
        chains
    }

    /// Main effects and interactions of two factors that are aliased with no other main effect or interaction of two
    /// factors.
    pub fn clear(&self) -> Clear {
        let terms = term::up_to(self.factors, 2);
        let mut shared: HashMap<u64, u32> = HashMap::new();
        for &term in &terms {
            *shared.entry(self.column(term)).or_default() += 1;
        }
        let clear = |order: u32| {
            let of_order = terms.iter().copied().filter(|&term| term::order(term) == order);
            of_order.filter(|&term| shared[&self.column(term)] == 1).collect()
        };
        Clear { main_effects: clear(1), two_factor: clear(2) }
    }
}

/// The generator of each factor that has one.
fn added_factors(factors: u32, generators: &[Generator]) -> Result<Vec<Option<&Generator>>, FractionError> {
    let mut added: Vec<Option<&Generator>> = vec![None; factors as usize];
    for generator in generators {
        let named = generator.word.checked_shr(factors).unwrap_or(0);
        let unknown = (generator.factor >= factors).then_some(generator.factor);
        if let Some(factor) = unknown.or((named != 0).then(|| factors + named.trailing_zeros())) {
            return Err(FractionError::NoSuchFactor { generator: generator.to_string(), factor, factors });
        }
        if let Some(first) = added[generator.factor as usize].replace(generator) {
            let (first, second) = (first.to_string(), generator.to_string());
            return Err(FractionError::Repeated { factor: generator.factor, first, second });
        }
    }
    Ok(added)
}
