//! Orthogonal arrays: fractions for factors with any numbers of levels.
//!
//! In an orthogonal array every pair of levels of any two factors occurs equally often, so that no main effect is aliased
//! with another. Which interactions are, the generalised word-length pattern shows: A3 = 0 says that main effects are not
//! aliased with interactions of two factors either (resolution IV).

mod choose;
mod columnwise;
mod parent;
mod scheme;
mod slice;

use std::collections::BTreeMap;

use serde::Serialize;

use self::choose::{choose, pass};
use self::columnwise::columnwise;
use self::parent::{Pool, Rows, parents, pool};
use self::slice::sliced;
use crate::design::{DesignError, MAX_TREATMENTS, full};
use crate::word_length::{generalised_resolution, generalised_word_length_pattern};

/// The most runs of an array that is no full design.
pub const MAX_RUNS: u32 = 256;
/// The most factors.
pub const MAX_FACTORS: usize = 64;
/// Steps of the search for the columns with least aberration: a fraction of a second.
const EFFORT: usize = 30_000_000;
/// The same where many sizes are tried, most of which have no array.
const LITTLE_EFFORT: usize = EFFORT / 10;
/// The effort for a short search of all larger arrays is this many times that for a good search of one: it is used up only
/// above a hundred runs, and then takes a second or two.
const ALL_ARRAYS: usize = 16;
/// How many of the arrays with enough columns are searched well, after a short search of all.
const SEARCHED_WELL: usize = 3;
/// How many sizes a message names.
const SIZES: usize = 3;

/// A mixed-level fraction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Array {
    /// Level numbers of each run; a run can be there more than once.
    pub rows: Vec<Vec<u32>>,
    /// The generalised word-length pattern, by length from 0.
    pub word_length_pattern: Vec<f64>,
    /// The generalised resolution; `None` for a full design.
    pub generalised_resolution: Option<f64>,
}

/// An orthogonal array for factors with these numbers of levels, in `runs` runs or in the smallest number for which one is
/// known here: the one with least aberration that was found.
///
/// Arrays come from Hadamard matrices, fields, difference schemes and two-level fractions with minimum aberration, from
/// slices of these, and where none of these fit from a search column by column. The best columns are found by exchanging
/// single ones: an array with less aberration may exist. With a given number of runs the search column by column goes on
/// ten times longer than for each of the sizes that are tried without one. The result depends only on the arguments.
///
/// # Errors
/// A size that no orthogonal array can have, or for which none was found, with the sizes that will do; factors without
/// levels, more than [`MAX_FACTORS`], or more than [`MAX_RUNS`] runs.
pub fn orthogonal_array(levels: &[u32], runs: Option<u32>) -> Result<Array, DesignError> {
    if let Some(factor) = levels.iter().position(|&n| n == 0) {
        return Err(DesignError::NoLevels { factor });
    }
    // Factors that do not vary take no part.
    let varying: Vec<u32> = levels.iter().copied().filter(|&n| n > 1).collect();
    let size = Size::of(&varying);
    let error = |reason: String, from: u32| {
        let sizes = if varying.len() > MAX_FACTORS { Vec::new() } else { size.known(&varying, from) };
        DesignError::NoArray { levels: describe(levels), runs, reason, sizes }
    };
    if varying.len() > MAX_FACTORS {
        return Err(error(
            format!("{} factors are more than the {MAX_FACTORS} of an array", varying.len()),
            0,
        ));
    }
    let rows = match runs {
        None => size
            .candidates(0)
            .find_map(|runs| best(&varying, runs, LITTLE_EFFORT))
            .ok_or_else(|| error(format!("none with up to {MAX_RUNS} runs is known"), 0))?,
        Some(runs) => {
            if let Some(reason) = size.refuses(runs) {
                return Err(error(reason, runs));
            }
            best(&varying, runs, EFFORT).ok_or_else(|| error("none was found".to_owned(), runs))?
        }
    };
    let mut rows: Rows = rows
        .into_iter()
        .map(|row| {
            let mut row = row.into_iter();
            levels.iter().map(|&n| if n > 1 { row.next().unwrap_or_default() } else { 0 }).collect()
        })
        .collect();
    rows.sort_by(|a, b| a.iter().rev().cmp(b.iter().rev()));
    Ok(Array {
        word_length_pattern: generalised_word_length_pattern(&rows, levels),
        generalised_resolution: generalised_resolution(&rows, levels),
        rows,
    })
}

/// "2^5·3".
fn describe(levels: &[u32]) -> String {
    let text = |(n, times): (u32, usize)| if times > 1 { format!("{n}^{times}") } else { n.to_string() };
    counts(levels).into_iter().map(text).collect::<Vec<_>>().join("·")
}

fn counts(levels: &[u32]) -> BTreeMap<u32, usize> {
    let mut counts = BTreeMap::new();
    levels.iter().for_each(|&n| *counts.entry(n).or_insert(0) += 1);
    counts
}

/// Which numbers of runs are possible at all.
struct Size {
    /// Every number of runs is a multiple of this: each pair of levels is there equally often.
    unit: u64,
    /// The main effects need as many runs.
    least: u64,
    /// Runs of the full design, saturating.
    full: u64,
}

impl Size {
    fn of(levels: &[u32]) -> Self {
        let multiple = |a: u64, b: u64| a.saturating_mul(b / gcd(a, b));
        let mut unit = levels.first().map_or(1, |&n| u64::from(n));
        for (number, &a) in levels.iter().enumerate() {
            for &b in &levels[..number] {
                unit = multiple(unit, u64::from(a).saturating_mul(b.into()));
            }
        }
        Self {
            unit,
            least: 1 + levels.iter().map(|&n| u64::from(n) - 1).sum::<u64>(),
            full: levels.iter().fold(1, |product: u64, &n| product.saturating_mul(n.into())),
        }
    }

    /// Why no array can have this many runs.
    fn refuses(&self, runs: u32) -> Option<String> {
        let runs = u64::from(runs);
        if runs == self.full && runs <= MAX_TREATMENTS {
            None
        } else if !runs.is_multiple_of(self.unit) || runs == 0 {
            Some(format!(
                "each pair of levels can only be there equally often in multiples of {} runs",
                self.unit
            ))
        } else if runs < self.least {
            Some(format!("the main effects and the mean need at least {} runs", self.least))
        } else if runs > self.full {
            Some(format!("the full design has only {} runs; replicate it", self.full))
        } else if runs > u64::from(MAX_RUNS) {
            Some(format!("arrays above {MAX_RUNS} runs are not searched"))
        } else {
            None
        }
    }

    /// The numbers of runs above `from` that are not impossible, the full design last.
    fn candidates(&self, from: u32) -> impl Iterator<Item = u32> {
        let most = self.full.min(MAX_RUNS.into());
        let multiples = (1..=most / self.unit).map(|times| times * self.unit);
        let whole = (self.full > u64::from(MAX_RUNS) && self.full <= MAX_TREATMENTS).then_some(self.full);
        let (least, from) = (self.least, u64::from(from));
        multiples.chain(whole).filter(move |&runs| runs >= least && runs > from).map(|runs| runs as u32)
    }

    /// Some sizes near `near` for which an array is known: the largest below it and the next ones above.
    fn known(&self, levels: &[u32], near: u32) -> Vec<u32> {
        let has = |runs: &u32| u64::from(*runs) == self.full || is_known(levels, *runs);
        let below: Vec<_> = self.candidates(0).take_while(|&runs| runs < near).collect();
        let below = below.into_iter().rev().find(has);
        below.into_iter().chain(self.candidates(near).filter(has).take(SIZES)).collect()
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Whether an array can be constructed, without looking for the best columns.
fn is_known(levels: &[u32], runs: u32) -> bool {
    !pools(levels, runs).is_empty() || columnwise(levels, runs as usize, LITTLE_EFFORT).is_some()
}

/// The arrays that have enough columns.
fn pools(levels: &[u32], runs: u32) -> Vec<Pool> {
    let need = counts(levels);
    parents(runs).iter().filter_map(|parent| pool(parent, &need)).collect()
}

/// The array with least aberration of all that are found. `effort` is for a search where none is constructed.
fn best(levels: &[u32], runs: u32, effort: usize) -> Option<Rows> {
    if u64::from(runs) == Size::of(levels).full {
        return full(levels).ok();
    }
    let candidates = simple(levels, runs, EFFORT).into_iter().chain(slices(levels, runs));
    least_aberration(candidates, levels).or_else(|| columnwise(levels, runs as usize, effort))
}

fn least_aberration(candidates: impl IntoIterator<Item = Rows>, levels: &[u32]) -> Option<Rows> {
    let pattern = |rows: &Rows| {
        let pattern = generalised_word_length_pattern(rows, levels);
        // Rounded, so that equal patterns are equal.
        pattern.into_iter().map(|words| (words * 1e6).round() as i64).collect::<Vec<_>>()
    };
    let patterns = candidates.into_iter().map(|rows| (pattern(&rows), rows));
    // The first of equals.
    patterns.reduce(|best, next| if next.0 < best.0 { next } else { best }).map(|(_, rows)| rows)
}

/// The full design, the two-level fraction with minimum aberration, or the best columns of larger arrays.
fn simple(levels: &[u32], runs: u32, effort: usize) -> Vec<Rows> {
    if u64::from(runs) == Size::of(levels).full {
        return full(levels).into_iter().collect();
    }
    if levels.iter().all(|&n| n == 2)
        && runs.is_power_of_two()
        && let Ok(fraction) = crate::search::by_runs(levels.len() as u32, runs.into())
    {
        return vec![fraction.rows()];
    }
    let runs = runs as usize;
    let mut pools = pools(levels, runs as u32);
    // The quickest first: where each takes long, the last are not looked at.
    pools.sort_by_key(|pool| pass(pool, levels, runs));
    let little = effort / 4 / pools.len().max(1);
    let mut left = effort * ALL_ARRAYS;
    let mut ranked = Vec::new();
    for pool in &pools {
        ranked.extend(choose(pool, levels, runs, little).map(|(sum, _)| (sum, pool)));
        left = left.saturating_sub(pass(pool, levels, runs).max(little));
        if left == 0 {
            break;
        }
    }
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let searched = ranked.iter().take(SEARCHED_WELL);
    searched.filter_map(|(_, pool)| Some(choose(pool, levels, runs, effort / 4)?.1)).collect()
}

/// Arrays in slices: the factors of some numbers of levels outside, the others within.
fn slices(levels: &[u32], runs: u32) -> Vec<Rows> {
    let kinds: Vec<u32> = counts(levels).into_keys().collect();
    // With one kind of factor, or very many, there is nothing to slice by.
    if kinds.len() < 2 || kinds.len() > 6 {
        return Vec::new();
    }
    let mut found = Vec::new();
    for set in 1..(1u32 << kinds.len()) - 1 {
        let is_outer = |n: &u32| kinds.iter().position(|kind| kind == n).is_some_and(|at| set >> at & 1 == 1);
        let outer_levels: Vec<u32> = levels.iter().copied().filter(is_outer).collect();
        let inner_levels: Vec<u32> = levels.iter().copied().filter(|n| !is_outer(n)).collect();
        let (outer_size, inner_size) = (Size::of(&outer_levels), Size::of(&inner_levels));
        let fits = |size: &Size, runs: u32| size.refuses(runs).is_none();
        for outer_runs in (2..runs).filter(|outer| runs.is_multiple_of(*outer)) {
            let inner_runs = runs / outer_runs;
            if !fits(&outer_size, outer_runs) || !fits(&inner_size, inner_runs) {
                continue;
            }
            let outer = least_aberration(simple(&outer_levels, outer_runs, LITTLE_EFFORT), &outer_levels);
            let inner = least_aberration(simple(&inner_levels, inner_runs, LITTLE_EFFORT), &inner_levels);
            let (Some(outer), Some(inner)) = (outer, inner) else { continue };
            let rows = sliced(&outer, &inner, &outer_levels, &inner_levels);
            // Back to the order of the factors.
            let ordered = rows.into_iter().map(|row| {
                let (outer, inner) = row.split_at(outer_levels.len());
                let (mut outer, mut inner) = (outer.iter(), inner.iter());
                let next = |n: &u32| if is_outer(n) { outer.next() } else { inner.next() }.copied();
                levels.iter().filter_map(next).collect()
            });
            found.push(ordered.collect());
        }
    }
    found
}
