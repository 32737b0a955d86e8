//! Two-level fractions by number of runs, by resolution, or by the effects that must be clear.
//!
//! Of all fractions with as many factors and runs the one with minimum aberration is taken: the fewest words of the
//! shortest length in the defining relation, then of the next length, and so on. Up to 4096 runs the
//! answers come from the [catalogue](mod@crate::catalogue); what it does not have is searched.
//! [`Fraction::aberration`] says what is known about an answer.

use crate::aberration;
use crate::catalogue;
use crate::design::DesignError;
use crate::error::FractionError;
use crate::long_words;
use crate::regular::{Aberration, Fraction, Generator, MAX_BASE, MAX_GENERATORS};
use crate::term::{self, MAX_FACTORS, SignedTerm};

pub use crate::clear::by_clear;

/// Up to this many generators all possible word lengths are compared.
const EXACT_WORDS: u32 = 2;
/// The most base factors for which columns are searched; a larger design is made from one of this size.
const MOST_SEARCHED_BASE: u32 = 12;
/// The effort of a search that [`by_runs`] makes: below a second in a release build.
pub const EFFORT: u64 = 6_000_000;

/// The fraction of `factors` factors in `runs` runs with minimum aberration.
///
/// # Errors
///
/// A number of runs that is not a power of two, too small to distinguish the factors (k factors need at least k + 1 runs)
/// or larger than all 2^k combinations; and designs beyond the bounds of [`Fraction::from_generators`].
pub fn by_runs(factors: u32, runs: u64) -> Result<Fraction, DesignError> {
    let base = base_of(factors, runs)?;
    match catalogue::find(factors, base) {
        Some((generators, aberration)) => {
            Ok(Fraction::from_generators(factors, &generators)?.known_as(aberration))
        }
        None => search(factors, runs, EFFORT),
    }
}

/// As [`by_runs`], but without the catalogue: a search that looks at up to `effort` columns. The answer is proved if
/// that was enough for all designs. A million takes some tens of milliseconds in a release build.
///
/// # Errors
///
/// As [`by_runs`].
pub fn search(factors: u32, runs: u64, effort: u64) -> Result<Fraction, DesignError> {
    let base = base_of(factors, runs)?;
    let added = factors - base;
    if added == 0 {
        return Fraction::full(factors);
    }
    let columns_of = |words: &[SignedTerm]| -> Result<Vec<u32>, DesignError> {
        let fraction = Fraction::from_words(factors, words)?;
        let (base, added): (Vec<_>, Vec<_>) =
            (0..factors).partition(|factor| fraction.base().contains(factor));
        Ok(base.into_iter().chain(added).map(|factor| fraction.column(1 << factor) as u32).collect())
    };
    let (points, proved) = if added <= EXACT_WORDS {
        (columns_of(&long_words::one_or_two(factors, added))?, true)
    } else if base > MOST_SEARCHED_BASE {
        let fewer = MOST_SEARCHED_BASE + added;
        let smaller = by_runs(fewer, 1 << MOST_SEARCHED_BASE)?;
        (columns_of(&long_words::lengthen(&smaller.independent_words(), fewer, factors))?, false)
    } else {
        let found = aberration::search(factors as usize, base, effort);
        (found.points, found.proved)
    };
    let aberration = if proved { Aberration::Proved } else { Aberration::BestFound };
    Ok(Fraction::from_generators(factors, &generators_of(&points, base))?.known_as(aberration))
}

/// The fraction with the fewest runs that has at least this resolution, and minimum aberration among those. Where the
/// resolution asked for is beyond every fraction, that is the full design.
///
/// # Errors
///
/// A resolution below III, no factors, more than [`MAX_FACTORS`], or more runs than a design may have.
pub fn by_resolution(factors: u32, resolution: u32) -> Result<Fraction, DesignError> {
    if resolution < 3 {
        return Err(FractionError::Resolution { resolution }.into());
    }
    if factors == 0 || factors > MAX_FACTORS {
        return Err(FractionError::Factors { factors, limit: MAX_FACTORS }.into());
    }
    let fewest = (factors + 1).next_power_of_two().ilog2().max(factors.saturating_sub(MAX_GENERATORS));
    let mut fewer_proved = true;
    for base in fewest.min(factors)..factors.min(MAX_BASE + 1) {
        if base <= MAX_BASE {
            let fraction = by_runs(factors, 1 << base)?;
            if fraction.resolution().is_none_or(|found| found >= resolution) {
                return Ok(fraction.with_fewest_runs(fewer_proved));
            }
            // The shortest word of a minimum-aberration design is as long as it can be.
            fewer_proved &=
                fraction.aberration() != Aberration::BestFound || is_impossible(factors, base, resolution);
        }
    }
    Ok(Fraction::full(factors)?.with_fewest_runs(fewer_proved))
}

/// Whether it is known that no fraction of this size has the resolution.
fn is_impossible(factors: u32, base: u32, resolution: u32) -> bool {
    // A fraction of even resolution gives one of a resolution less by leaving out a factor and half of the runs.
    let even = u32::from(resolution.is_multiple_of(2));
    let (factors, base, odd) = (factors.saturating_sub(even), base.saturating_sub(even), resolution - even);
    // The most factors, as in tables of the best linear codes (Brouwer and Tolhuizen).
    let published = match odd {
        5 => MOST_FACTORS_V.iter().find(|most| most.0 == base),
        7 => MOST_FACTORS_VII.iter().find(|most| most.0 == base),
        _ => None,
    };
    // The products of up to (R − 1)/2 factors all have columns of their own.
    let products: u64 = (0..=(odd - 1) / 2).map(|order| binomial(factors.into(), order.into())).sum();
    products > 1 << base || published.is_some_and(|&(_, most)| factors > most)
}

/// Base factors, and the most factors that a fraction of resolution V may have.
const MOST_FACTORS_V: [(u32, u32); 7] = [(4, 5), (5, 6), (6, 8), (7, 11), (8, 17), (9, 23), (10, 33)];
/// As [`MOST_FACTORS_V`] for resolution VII.
const MOST_FACTORS_VII: [(u32, u32); 6] = [(6, 7), (7, 8), (8, 9), (9, 11), (10, 15), (11, 23)];

fn binomial(n: u64, k: u64) -> u64 {
    (0..k.min(n + 1)).fold(1, |product, i| product * (n - i.min(n)) / (i + 1))
}

/// The number of base factors of a design with this many runs.
fn base_of(factors: u32, runs: u64) -> Result<u32, DesignError> {
    if factors == 0 || factors > MAX_FACTORS {
        return Err(FractionError::Factors { factors, limit: MAX_FACTORS }.into());
    }
    let fewest = u64::from(factors + 1).next_power_of_two();
    if !runs.is_power_of_two() || runs < fewest || runs > 1 << factors {
        let most = factors.min(MAX_BASE);
        return Err(
            FractionError::NoSuchRuns { factors, runs, fewest: fewest.min(1 << factors), most }.into()
        );
    }
    let base = runs.ilog2();
    if base > MAX_BASE {
        return Err(FractionError::Runs { base, limit: MAX_BASE }.into());
    }
    if factors - base > MAX_GENERATORS {
        let generators = (factors - base) as usize;
        return Err(FractionError::Generators { generators, limit: MAX_GENERATORS }.into());
    }
    Ok(base)
}

/// The generators of a set of columns of which the first are the base factors: the others by order, then letters.
fn generators_of(points: &[u32], base: u32) -> Vec<Generator> {
    let mut words: Vec<u64> = points[base as usize..].iter().map(|&point| point.into()).collect();
    words.sort_unstable_by(|&a, &b| term::compare(a, b));
    let numbered = words.into_iter().enumerate();
    numbered.map(|(index, word)| Generator { factor: base + index as u32, word, negative: false }).collect()
}
