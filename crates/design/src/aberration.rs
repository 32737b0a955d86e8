//! Search for fractions with minimum aberration.
//!
//! A fraction with 2^n runs and k factors is a set of k points (columns) of the space of n bits that has n independent
//! ones; a word of the defining relation is a subset whose sum (exclusive or) is 0. Sets that differ by a change of
//! the base factors are the same design.
//!
//! The exact search builds sets point by point, from the base alone. With R the resolution of the best design known
//! and a its number of words of that length, only sets are of interest that have no shorter words and at most a words
//! of length R. Each word of length R holds R of the k points, so the point that is in most of these words is in at
//! least aR/k of them: without it at most a(k−R)/k are left. Therefore a bound holds for every number of points, and
//! a set needs to be extended only by points that come out as the ones in most words. Of equivalent sets one is kept.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

/// Places that the search for an equivalence of two sets looks at before it gives up; the sets then count as different,
/// which costs time but loses nothing.
const MOST_TRIES: u32 = 20_000;

/// The best set of columns that a search has seen.
pub(crate) struct Best {
    /// The columns, the base (1, 2, 4, …) first.
    pub(crate) points: Vec<u32>,
    /// Whether all designs were looked at, so that none has less aberration.
    pub(crate) proved: bool,
}

/// Looks for the set of `factors` points in `base` bits with minimum aberration, the most clear interactions of two
/// factors deciding between equals. `effort` bounds the sets looked at: a quarter of it is for a first
/// good design, the rest for the proof that there is no better one.
pub(crate) fn search(factors: usize, base: u32, effort: u64) -> Best {
    let first = beam(factors, base, effort / 4);
    let mut exact = Exact::new(factors, base, first, effort);
    let proved = exact.run();
    Best { points: exact.best.points, proved }
}

/// For each number of points t and each sum x: how many subsets of t points have the sum x.
struct Sums {
    by_size: Vec<Vec<u64>>,
}

impl Sums {
    fn new(points: &[u32], base: u32) -> Self {
        let mut by_size = vec![vec![0; 1 << base]; points.len() + 1];
        by_size[0][0] = 1;
        for (count, &point) in points.iter().enumerate() {
            for size in (0..=count).rev() {
                let (smaller, larger) = by_size.split_at_mut(size + 1);
                for (sum, &ways) in smaller[size].iter().enumerate() {
                    larger[0][sum ^ point as usize] += ways;
                }
            }
        }
        Self { by_size }
    }

    /// How many subsets of `size` points have this sum; none if there are fewer points.
    fn ways(&self, size: usize, sum: u32) -> u64 {
        self.by_size.get(size).map_or(0, |sums| sums[sum as usize])
    }

    /// The word-length pattern with one more point; index = length, up to the new number of points.
    fn pattern_with(&self, point: u32) -> Vec<u64> {
        let shorter = |length: usize| if length == 0 { 0 } else { self.ways(length - 1, point) };
        (0..=self.by_size.len()).map(|length| self.ways(length, 0) + shorter(length)).collect()
    }

    /// How many words of each length from 3 hold the point, which is one of the set.
    fn words_through(&self, point: u32) -> Vec<u64> {
        // Subsets of t − 1 other points with this sum: all with the sum, without those that hold the point itself.
        let mut through = vec![0, 0, 0];
        for length in 3..self.by_size.len() {
            let with_itself = self.ways(length - 2, 0) - through[length - 2];
            through.push(self.ways(length - 1, point) - with_itself);
        }
        through.split_off(3)
    }
}

/// A set with its word-length pattern and clear interactions, which order sets by quality.
#[derive(Clone)]
struct Candidate {
    points: Vec<u32>,
    pattern: Vec<u64>,
    clear: usize,
}

impl Candidate {
    fn new(points: Vec<u32>, base: u32) -> Self {
        let sums = Sums::new(&points, base);
        let pattern = (0..=points.len()).map(|length| sums.ways(length, 0)).collect();
        Self { clear: clear(&points, base), points, pattern }
    }

    fn better_than(&self, other: &Self) -> bool {
        (&self.pattern, Reverse(self.clear)) < (&other.pattern, Reverse(other.clear))
    }
}

/// The number of interactions of two factors that share their column with no main effect and no other of them.
fn clear(points: &[u32], base: u32) -> usize {
    let mut users = vec![0u32; 1 << base];
    points.iter().for_each(|&point| users[point as usize] += 1);
    let pairs =
        || points.iter().enumerate().flat_map(|(i, a)| points[..i].iter().map(move |b| (a ^ b) as usize));
    pairs().for_each(|pair| users[pair] += 1);
    pairs().filter(|&pair| users[pair] == 1).count()
}

/// Numbers that a change of base does not alter: for each point of the space how many small subsets have it as sum.
struct Labels {
    of_point: Vec<u64>,
    all: u64,
}

impl Labels {
    fn new(sums: &Sums, base: u32) -> Self {
        const SIZES: usize = 6;
        let hash = |values: &[u64]| {
            let mut hasher = DefaultHasher::new();
            values.hash(&mut hasher);
            hasher.finish()
        };
        let label = |point: u32| hash(&(1..=SIZES).map(|size| sums.ways(size, point)).collect::<Vec<_>>());
        let of_point: Vec<u64> = (0..1 << base).map(label).collect();
        let mut sorted = of_point.clone();
        sorted.sort_unstable();
        Self { of_point, all: hash(&sorted) }
    }
}

/// Sets of which no two are known to be equivalent.
struct Classes {
    base: u32,
    /// Sets whose labels are the same together, each with the labels of its space.
    by_label: HashMap<u64, Vec<Class>>,
}

type Class = (Vec<u32>, Vec<u64>);

impl Classes {
    fn new(base: u32) -> Self {
        Self { base, by_label: HashMap::new() }
    }

    /// Whether the set is new; it is then kept.
    fn insert(&mut self, points: &[u32], labels: Labels) -> bool {
        let alike = self.by_label.entry(labels.all).or_default();
        let known = alike.iter().any(|(other, other_labels)| {
            equivalent(points, &labels.of_point, other, other_labels, self.base)
        });
        if !known {
            alike.push((points.to_vec(), labels.of_point));
        }
        !known
    }
}

/// Whether a change of base turns one set into the other. `false` also when that takes too long to find out.
fn equivalent(a: &[u32], a_labels: &[u64], b: &[u32], b_labels: &[u64], base: u32) -> bool {
    // Points with rare labels first: there are few to map them to.
    let rare = |point: u32| a.iter().filter(|&&p| a_labels[p as usize] == a_labels[point as usize]).count();
    let mut order = a.to_vec();
    order.sort_by_cached_key(|&point| (rare(point), a_labels[point as usize]));
    let mut independent = Vec::with_capacity(base as usize);
    let mut span = vec![false; 1 << base];
    span[0] = true;
    for point in order {
        if !span[point as usize] {
            for sum in 0..1usize << base {
                if span[sum] && !span[sum ^ point as usize] {
                    span[sum ^ point as usize] = true;
                }
            }
            // The loop above marks sums of marked sums too; both are in the span.
            independent.push(point);
        }
    }
    let mut mapping = Mapping { a_labels, b, b_labels, basis: &independent, tries: 0 };
    mapping.extend(&mut vec![(0, 0)])
}

struct Mapping<'a> {
    a_labels: &'a [u64],
    b: &'a [u32],
    b_labels: &'a [u64],
    basis: &'a [u32],
    tries: u32,
}

impl Mapping<'_> {
    /// `pairs`: every sum of the points mapped so far with its image.
    fn extend(&mut self, pairs: &mut Vec<(u32, u32)>) -> bool {
        let Some(&next) = self.basis.get(pairs.len().ilog2() as usize) else { return true };
        for &image in self.b {
            self.tries += 1;
            if self.tries > MOST_TRIES {
                return false;
            }
            let fits = |&(from, to): &(u32, u32)| {
                self.a_labels[(from ^ next) as usize] == self.b_labels[(to ^ image) as usize]
            };
            if !pairs.iter().all(fits) || pairs.iter().any(|&(_, to)| to == image) {
                continue;
            }
            let before = pairs.len();
            pairs.extend_from_within(..);
            pairs[before..].iter_mut().for_each(|(from, to)| (*from, *to) = (*from ^ next, *to ^ image));
            if self.extend(pairs) {
                return true;
            }
            pairs.truncate(before);
        }
        false
    }
}

/// The effort of looking at one set.
fn cost(points: usize, base: u32) -> u64 {
    (((points * points) as u64) << base).div_ceil(64)
}

fn base_points(base: u32) -> Vec<u32> {
    (0..base).map(|bit| 1 << bit).collect()
}

/// A good design: from each number of points to the next the best different sets are kept, as many as `effort` allows.
fn beam(factors: usize, base: u32, effort: u64) -> Candidate {
    let steps = (factors - base as usize).max(1) as u64;
    let width = (effort / (steps * cost(factors, base))).clamp(1, 400) as usize;
    let mut kept = vec![Candidate::new(base_points(base), base)];
    for count in base as usize..factors {
        let mut next: Vec<(Vec<u64>, usize, u32)> = Vec::new();
        for (index, set) in kept.iter().enumerate() {
            let sums = Sums::new(&set.points, base);
            let new = (1..1u32 << base).filter(|&point| sums.ways(1, point) == 0);
            next.extend(new.map(|point| (sums.pattern_with(point), index, point)));
        }
        next.sort_unstable();
        let mut classes = Classes::new(base);
        let mut chosen = Vec::new();
        for (pattern, index, point) in next {
            if chosen.len() == width {
                break;
            }
            let mut points = kept[index].points.clone();
            points.push(point);
            let last = count + 1 == factors;
            if last || classes.insert(&points, Labels::new(&Sums::new(&points, base), base)) {
                chosen.push(Candidate {
                    clear: if last { clear(&points, base) } else { 0 },
                    points,
                    pattern,
                });
            }
        }
        kept = chosen;
    }
    let best = kept.into_iter().reduce(|best, next| if next.better_than(&best) { next } else { best });
    best.unwrap_or_else(|| Candidate::new(base_points(base), base))
}

struct Exact {
    factors: usize,
    base: u32,
    resolution: usize,
    best: Candidate,
    effort: u64,
}

impl Exact {
    fn new(factors: usize, base: u32, best: Candidate, effort: u64) -> Self {
        let resolution =
            best.pattern.iter().skip(1).position(|&words| words > 0).map_or(factors, |at| at + 1);
        Self { factors, base, resolution, best, effort }
    }

    /// The most words of length R that a set of each number of points may have (index 0: the base alone).
    fn bounds(&self) -> Vec<u64> {
        let mut bounds = vec![self.best.pattern[self.resolution]];
        for points in (self.base as usize + 1..=self.factors).rev() {
            let left =
                bounds.last().map_or(0, |&most| most * (points.saturating_sub(self.resolution)) as u64);
            bounds.push(left / points as u64);
        }
        bounds.reverse();
        bounds
    }

    /// Whether all designs were looked at. The bounds are those of the design known at the start, so that later finds
    /// do not change what was skipped before.
    fn run(&mut self) -> bool {
        if self.factors <= self.base as usize {
            return true;
        }
        let bounds = self.bounds();
        let mut sets = vec![base_points(self.base)];
        for (step, &most) in bounds.iter().enumerate().skip(1) {
            let last = self.base as usize + step == self.factors;
            let mut classes = Classes::new(self.base);
            let mut next = Vec::new();
            for set in &sets {
                let sums = Sums::new(set, self.base);
                for point in 1..1u32 << self.base {
                    let short = (1..self.resolution - 1).any(|size| sums.ways(size, point) > 0);
                    let words = sums.ways(self.resolution, 0) + sums.ways(self.resolution - 1, point);
                    if short || words > most || sums.ways(1, point) > 0 {
                        continue;
                    }
                    let cost = cost(set.len(), self.base);
                    if self.effort < cost {
                        return false;
                    }
                    self.effort -= cost;
                    let points: Vec<u32> = set.iter().copied().chain([point]).collect();
                    if last {
                        self.compare(points, sums.pattern_with(point));
                    } else if let Some(labels) = self.comes_out(&points)
                        && classes.insert(&points, labels)
                    {
                        next.push(points);
                    }
                }
            }
            sets = next;
        }
        true
    }

    /// The labels of a set whose last point is among those in most words: by words of length R, then R + 1 and so on.
    fn comes_out(&self, points: &[u32]) -> Option<Labels> {
        let sums = Sums::new(points, self.base);
        let (last, others) = points.split_last()?;
        let through = sums.words_through(*last);
        let most = others.iter().all(|&other| sums.words_through(other) <= through);
        most.then(|| Labels::new(&sums, self.base))
    }

    fn compare(&mut self, points: Vec<u32>, pattern: Vec<u64>) {
        if pattern <= self.best.pattern {
            let candidate = Candidate { clear: clear(&points, self.base), points, pattern };
            if candidate.better_than(&self.best) {
                self.best = candidate;
            }
        }
    }
}
