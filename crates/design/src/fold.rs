//! Foldover and semifold: runs that are added to a two-level design because of what it could not distinguish.

use std::collections::{BTreeMap, BTreeSet};

use crate::design::DesignError;
use crate::regular::Fraction;
use crate::term::{self, SignedTerm, Term};

/// The most generators for which [`best_fold`] tries every possible foldover (2^p − 1).
const EVERY_FOLD: usize = 12;

/// Which factors have their levels switched in the added runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fold {
    /// All factors: main effects become free of interactions of two factors.
    All,
    /// One factor: it and its interactions of two factors become free of other interactions of two factors.
    Factor(u32),
    /// The factors of this term.
    Factors(Term),
}

impl Fold {
    /// The switched factors of a design with `factors` factors.
    pub fn mask(self, factors: u32) -> Term {
        let all = 1u64.checked_shl(factors).map_or(u64::MAX, |bit| bit - 1);
        match self {
            Self::All => all,
            Self::Factor(factor) => all & 1u64.checked_shl(factor).unwrap_or(0),
            Self::Factors(term) => all & term,
        }
    }
}

/// The runs to add: `rows` in their order with the levels of the fold's factors switched (0 ↔ 1). Other levels, such
/// as that of a centre point, stay.
pub fn foldover(rows: &[Vec<u32>], fold: Fold) -> Vec<Vec<u32>> {
    let switched = |row: &Vec<u32>| {
        let mask = fold.mask(row.len() as u32);
        let levels = row.iter().enumerate();
        levels
            .map(|(factor, &level)| if mask >> factor & 1 == 1 && level < 2 { 1 - level } else { level })
            .collect()
    };
    rows.iter().map(switched).collect()
}

/// The runs to add when only a half is folded: the rows in which factor `subset.0` has level `subset.1`, in their
/// order, with the levels of factor `fold` switched.
pub fn semifold(rows: &[Vec<u32>], fold: u32, subset: (u32, u32)) -> Vec<Vec<u32>> {
    let (factor, level) = subset;
    let half: Vec<_> = rows.iter().filter(|row| row.get(factor as usize) == Some(&level)).cloned().collect();
    foldover(&half, Fold::Factor(fold))
}

/// A fraction together with its foldover.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Combined {
    /// Both parts as one fraction of the same factors. Where the fold adds no new treatments this is the original.
    pub fraction: Fraction,
    /// The same with one more factor, the last: low in the original runs, high in the added ones. Effects that share
    /// a chain with it cannot be distinguished from a change between the two parts.
    pub with_block: Fraction,
    /// Words of the defining relation that hold in both parts.
    pub surviving: Vec<SignedTerm>,
    /// Whether the added runs are other treatments than the original ones; if not, they are a second replicate.
    pub new_treatments: bool,
}

/// What a fraction and its foldover are together. Words with an even number of switched factors survive; the others
/// change their sign from one part to the other.
///
/// # Errors
///
/// A combined design with more runs than a design may have.
pub fn combined(fraction: &Fraction, fold: Fold) -> Result<Combined, DesignError> {
    let factors = fraction.factors();
    let mask = fold.mask(factors);
    let block = 1u64 << factors;
    let words = fraction.independent_words();
    let odd = |word: Term| (word & mask).count_ones() % 2 == 1;
    // In the original runs the block factor is low: a word that changes its sign holds as −word·block.
    let signed = |word: Term| SignedTerm { term: word, negative: fraction.is_negative(word) };
    let with_block: Vec<_> = words
        .iter()
        .map(|&word| {
            if odd(word) {
                SignedTerm { term: word | block, negative: !signed(word).negative }
            } else {
                signed(word)
            }
        })
        .collect();
    let changing = words.iter().copied().find(|&word| odd(word));
    // Products of two words that change do not change.
    let surviving: Vec<_> = words
        .iter()
        .filter(|&&word| Some(word) != changing)
        .map(|&word| signed(if odd(word) { word ^ changing.unwrap_or(0) } else { word }))
        .collect();
    let together = Fraction::from_words(factors, &surviving)?;
    Ok(Combined {
        surviving: together.defining_words(),
        fraction: together,
        with_block: Fraction::from_words(factors + 1, &with_block)?,
        new_treatments: changing.is_some(),
    })
}

/// Runs that can be added to a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Addition {
    /// Half as many runs as the fraction has.
    Semifold {
        /// The switched factor.
        fold: u32,
        /// The factor and its level that choose the half.
        subset: (u32, u32),
    },
    /// As many runs as the fraction has.
    Foldover(Fold),
}

impl Addition {
    /// The runs to add to `rows`.
    pub fn rows(self, rows: &[Vec<u32>]) -> Vec<Vec<u32>> {
        match self {
            Self::Semifold { fold, subset } => semifold(rows, fold, subset),
            Self::Foldover(fold) => foldover(rows, fold),
        }
    }

    /// How many runs that is for a fraction.
    pub fn runs(self, fraction: &Fraction) -> u64 {
        match self {
            Self::Semifold { .. } => fraction.runs() / 2,
            Self::Foldover(_) => fraction.runs(),
        }
    }
}

/// An addition that separates the asked terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BestFold {
    /// What to add.
    pub addition: Addition,
    /// How many runs that is.
    pub runs: u64,
    /// All terms up to the order asked for that can be estimated with both parts together, the added runs being a
    /// block.
    pub estimable: Vec<Term>,
}

/// The smallest addition after which every term of `resolve` can be estimated in a model with all terms up to
/// `max_order` and the difference between the two parts. Semifolds go before foldovers; of additions of one size the
/// one that lets most other terms be estimated, then the one with the fewest switched factors.
///
/// `None` if no such addition does it, or if nothing is to be done because the terms are not aliased with others up to
/// `max_order`.
pub fn best_fold(fraction: &Fraction, resolve: &[Term], max_order: u32) -> Option<BestFold> {
    if resolve.iter().all(|&term| fraction.aliases(term, max_order).is_empty()) {
        return None;
    }
    let mut terms = term::up_to(fraction.factors(), max_order);
    terms.extend(resolve.iter().copied().filter(|&term| term::order(term) > max_order));
    let try_all = |additions: Vec<Addition>| {
        let mut best: Option<BestFold> = None;
        for addition in additions {
            let estimable = estimable_with(fraction, addition, &terms);
            let more = best.as_ref().is_none_or(|best| estimable.len() > best.estimable.len());
            if more && resolve.iter().all(|term| estimable.contains(term)) {
                best = Some(BestFold { addition, runs: addition.runs(fraction), estimable });
            }
        }
        best
    };
    try_all(semifolds(fraction)).or_else(|| try_all(foldovers(fraction)))
}

fn semifolds(fraction: &Fraction) -> Vec<Addition> {
    let factors = 0..fraction.factors();
    let pairs = factors.clone().flat_map(|fold| factors.clone().map(move |subset| (fold, subset)));
    pairs.map(|(fold, subset)| Addition::Semifold { fold, subset: (subset, 1) }).collect()
}

/// Foldovers that differ in which words survive: all factors, one factor, then several.
fn foldovers(fraction: &Fraction) -> Vec<Addition> {
    let words = fraction.independent_words();
    let changes = |mask: Term| -> u64 {
        words.iter().enumerate().map(|(bit, word)| u64::from((word & mask).count_ones() % 2) << bit).sum()
    };
    let mut folds = vec![Fold::All];
    folds.extend((0..fraction.factors()).map(Fold::Factor));
    let added: Vec<Term> = fraction.generators().iter().map(|generator| 1 << generator.factor).collect();
    let sizes = if added.len() <= EVERY_FOLD { added.len() as u32 } else { 2 };
    for size in 2..=sizes {
        let subsets = term::of_order(added.len() as u32, size).into_iter();
        folds.extend(
            subsets.map(|subset| Fold::Factors(term::factors(subset).map(|i| added[i as usize]).sum())),
        );
    }
    let mut seen = BTreeSet::from([0]);
    folds.retain(|fold| seen.insert(changes(fold.mask(fraction.factors()))));
    folds.into_iter().map(Addition::Foldover).collect()
}

/// The terms (of `terms`, which are all in the model) that both parts together can estimate.
///
/// In the original runs a term is one column with a sign. In the added runs it is a column as well; for a semifold the
/// columns c and c·s are the same there up to sign, s being the factor that chooses the half. So the terms of a chain
/// (or of the two chains of c and c·s) are of two (or four) kinds, by original column and by whether the sign changes.
/// Terms of one kind cannot be separated. Of four kinds together only three are independent; any three are.
fn estimable_with(fraction: &Fraction, addition: Addition, terms: &[Term]) -> Vec<Term> {
    let (mask, subset) = match addition {
        Addition::Semifold { fold, subset } => (Fold::Factor(fold).mask(fraction.factors()), Some(subset)),
        Addition::Foldover(fold) => (fold.mask(fraction.factors()), None),
    };
    let subset = subset.map(|(factor, level)| {
        let term = 1u64 << factor;
        (fraction.column(term), (level == 0) != fraction.is_negative(term))
    });
    let kind = |term: Term| {
        let column = fraction.column(term);
        let switched = (term & mask).count_ones() % 2 == 1;
        match subset {
            Some((by, negative)) if column ^ by < column => {
                (column ^ by, 2 + usize::from(switched != negative))
            }
            _ => (column, usize::from(switched)),
        }
    };
    let mut kinds: BTreeMap<u64, [u32; 4]> = BTreeMap::new();
    // The difference between the two parts is the mean with its sign changed.
    kinds.entry(0).or_default()[1] += 1;
    for &term in terms {
        let (column, kind) = kind(term);
        kinds.entry(column).or_default()[kind] += 1;
    }
    let estimable = |&term: &Term| {
        let (column, kind) = kind(term);
        let counts = kinds.get(&column).copied().unwrap_or_default();
        counts[kind] == 1 && counts.contains(&0)
    };
    terms.iter().copied().filter(estimable).collect()
}
