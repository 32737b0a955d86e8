//! Fractions in which chosen effects are clear.

use crate::design::DesignError;
use crate::error::FractionError;
use crate::regular::{Aberration, Fraction, Generator, MAX_BASE, MAX_GENERATORS};
use crate::term::{self, MAX_FACTORS, Term};

/// Columns that are tried for each number of runs before the search stops.
const MOST_TRIES: u64 = 2_000_000;
/// Columns that are tried for a better design after the first one.
const MORE_TRIES: u64 = 200_000;

/// The fraction with the fewest runs in which each of these terms shares its column with no main effect, no
/// interaction of two factors, no other of these terms and not with the mean; with the least aberration of those that
/// were found. Where no fraction will do and `max_runs` allows it, that is the full design.
///
/// [`Fraction::fewest_runs`] says whether every smaller fraction was looked at.
///
/// # Errors
///
/// Terms of other factors, the mean, no factors, and terms that cannot be clear in `max_runs` runs.
pub fn by_clear(factors: u32, clear: &[Term], max_runs: u64) -> Result<Fraction, DesignError> {
    if factors == 0 || factors > MAX_FACTORS {
        return Err(FractionError::Factors { factors, limit: MAX_FACTORS }.into());
    }
    if let Some(&term) = clear.iter().find(|&&term| term == 0 || term.checked_shr(factors).unwrap_or(0) != 0)
    {
        return Err(FractionError::NoSuchEffect { term, factors }.into());
    }
    let mut clear = clear.to_vec();
    clear.sort_unstable();
    clear.dedup();
    let most = max_runs.checked_ilog2().unwrap_or(0).min(MAX_BASE);
    // Main effects and the terms asked for all have columns of their own, besides the mean.
    let interactions = clear.iter().filter(|&&term| term::order(term) > 1).count() as u64;
    let columns = (u64::from(factors) + interactions + 1).next_power_of_two();
    let fewest = columns.ilog2().max(factors.saturating_sub(MAX_GENERATORS));
    let mut all = true;
    for base in fewest.min(factors)..=most {
        if base >= factors {
            return Ok(Fraction::full(factors)?.with_fewest_runs(all));
        }
        let mut search = Search::new(factors, base, &clear);
        search.place(0, 0);
        if let Some(columns) = search.best.take().map(|best| best.1) {
            let whole = search.tries_left > 0;
            let fraction = search.fraction(&columns)?;
            let aberration = if whole { Aberration::Proved } else { Aberration::BestFound };
            return Ok(fraction.known_as(aberration).with_fewest_runs(all));
        }
        all &= search.tries_left > 0;
    }
    let effects = clear.iter().map(|&term| term::letters(term)).collect();
    Err(FractionError::NotClear { factors, max_runs, effects, all }.into())
}

/// Gives the factors columns one by one, those in most of the asked terms first.
struct Search<'a> {
    factors: u32,
    base: u32,
    clear: &'a [Term],
    order: Vec<u32>,
    /// Per factor, as far as placed; else 0.
    columns: Vec<u64>,
    /// Per column: main effects and interactions of two placed factors.
    users: Vec<u32>,
    tries_left: u64,
    best: Option<(Vec<u64>, Vec<u64>)>,
}

impl<'a> Search<'a> {
    fn new(factors: u32, base: u32, clear: &'a [Term]) -> Self {
        let asked = |factor: u32| clear.iter().filter(|&&term| term >> factor & 1 == 1).count();
        let mut order: Vec<u32> = (0..factors).collect();
        order.sort_by_key(|&factor| std::cmp::Reverse(asked(factor)));
        Self {
            factors,
            base,
            clear,
            order,
            columns: vec![0; factors as usize],
            users: vec![0; 1 << base],
            tries_left: MOST_TRIES,
            best: None,
        }
    }

    /// Places the factors from number `at` of the order on; the columns of those before are products of the first
    /// `rank` base columns.
    fn place(&mut self, at: usize, rank: u32) {
        let Some(&factor) = self.order.get(at) else {
            self.compare(rank);
            return;
        };
        // A new base column first: it leaves most freedom. All new ones are alike.
        let new = (rank < self.base).then_some(1u64 << rank);
        // The factors that are left must be enough for the base columns that are left.
        let spare = self.order.len() - at > (self.base - rank) as usize;
        let products = if spare { 1..1u64 << rank } else { 0..0 };
        for column in new.into_iter().chain(products) {
            if self.tries_left == 0 {
                return;
            }
            self.tries_left -= 1;
            if self.columns.contains(&column) {
                continue;
            }
            self.set(factor, column, 1);
            if self.fits() {
                self.place(at + 1, if Some(column) == new { rank + 1 } else { rank });
            }
            self.set(factor, column, -1);
        }
    }

    /// Adds (1) or removes (−1) a factor.
    fn set(&mut self, factor: u32, column: u64, change: i32) {
        if change < 0 {
            self.columns[factor as usize] = 0;
        }
        for &other in self.columns.iter().filter(|&&other| other != 0) {
            let user = &mut self.users[(other ^ column) as usize];
            *user = user.wrapping_add_signed(change);
        }
        let user = &mut self.users[column as usize];
        *user = user.wrapping_add_signed(change);
        if change > 0 {
            self.columns[factor as usize] = column;
        }
    }

    /// Whether the asked terms whose factors are all placed are clear so far.
    fn fits(&self) -> bool {
        let placed = |&&term: &&Term| term::factors(term).all(|factor| self.columns[factor as usize] != 0);
        let mut seen = Vec::with_capacity(self.clear.len());
        self.clear.iter().filter(placed).all(|&term| {
            let column = term::factors(term).fold(0, |all, factor| all ^ self.columns[factor as usize]);
            // A main effect or an interaction of two factors is one of the users itself.
            let own = u32::from(term::order(term) <= 2);
            let free = column != 0 && self.users[column as usize] == own && !seen.contains(&column);
            seen.push(column);
            free
        })
    }

    fn compare(&mut self, rank: u32) {
        if rank < self.base {
            return;
        }
        let Ok(fraction) = self.fraction(&self.columns) else { return };
        let pattern = fraction.word_length_pattern();
        if self.best.is_none() {
            self.tries_left = self.tries_left.min(MORE_TRIES);
        }
        if self.best.as_ref().is_none_or(|best| pattern < best.0) {
            self.best = Some((pattern, self.columns.clone()));
        }
    }

    /// The fraction with these columns. The factors with base columns of their own are the base.
    fn fraction(&self, columns: &[u64]) -> Result<Fraction, DesignError> {
        let factor_of = |column: u64| columns.iter().position(|&other| other == column);
        let word = |column: u64| -> Term {
            term::factors(column).filter_map(|bit| factor_of(1 << bit)).map(|factor| 1u64 << factor).sum()
        };
        let added = (0u32..).zip(columns).filter(|(_, column)| !column.is_power_of_two());
        let generators: Vec<_> = added
            .map(|(factor, &column)| Generator { factor, word: word(column), negative: false })
            .collect();
        Fraction::from_generators(self.factors, &generators)
    }
}
