//! A series that grows by one value at a time, such as nightly results: where its level changes, without crying wolf
//! although it is looked at after every value.
//!
//! The change-point model of statistical process control (Hawkins, Qiu & Kang 2003): after each value, the series since the
//! last change is split at every place, and the strongest difference of the two parts is judged by the rate at which a
//! series without a change would show one as strong (Siegmund & Venkatraman 1995). What was found stays found: more values
//! only add to it.
//!
//! Values are not taken for independent. The difference of two parts is judged under first-order autocorrelation φ, by
//! generalised least squares, and the p value averaged over what the values say of φ (Zellner & Tiao 1964), so that a few
//! values, which say little of it, need a larger difference. Outliers count for [`CLIP`] robust standard deviations at most.

use crate::descriptive::{mean, median};
use crate::error::{StatsError, check_values};
use crate::quantile::{normal_quantile, t_two_sided_p};

/// A change of the level of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelChange {
    /// Index of the first value after the change, from 0.
    pub index: usize,
    /// Index of the value with which it was found.
    pub found: usize,
    /// Probability that [`HORIZON`] values without a change would show one that is as strong.
    pub p: f64,
    /// Mean of the values before, from the previous change on.
    pub mean_before: f64,
    /// Mean of the values after, up to the next change.
    pub mean_after: f64,
}

impl LevelChange {
    /// Change relative to the mean before, such as −0.2 for a fifth less; not finite when that is 0.
    pub fn relative(&self) -> f64 {
        self.mean_after / self.mean_before - 1.0
    }
}

/// What a series shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Monitored {
    /// Changes, by index.
    pub changes: Vec<LevelChange>,
    /// The strongest difference since the last change, where it would be significant if the series had been looked at just
    /// once.
    pub candidate: Option<LevelChange>,
    /// How many more values at the present level would make the candidate a change; `None` where [`MOST_MORE`] would not.
    pub more: Option<usize>,
    /// The smallest change of the last [`RECENT`] values (or half of those since the last change) that would have been
    /// found, in units of the series; `None` where so few values cannot show any.
    pub detectable: Option<f64>,
}

/// Values to which p refers: the number of nights in which a gate may raise a false alarm with probability p.
pub const HORIZON: usize = 100;
/// Fewest values between two changes.
pub const LEAST: usize = 3;
/// Values beyond this many robust standard deviations (1.4826·MAD of the longer part) count as if they were there.
pub const CLIP: f64 = 4.0;
/// Values before the present one that are looked at.
pub const MEMORY: usize = 200;
/// Values that [`Monitored::detectable`] is about.
pub const RECENT: usize = 7;
/// Most further values that are suggested.
pub const MOST_MORE: usize = 100;

/// Autocorrelations that are averaged over, evenly spaced in Fisher's z = atanh φ from 0 on. The prior is uniform in z but
/// for a factor of 1/√(1 − φ²): where a few values may be a step or a slow wander, they count as a wander.
const GRID: usize = 11;
const LARGEST_AUTOCORRELATION: f64 = 0.95;
/// The rate at which a normal series shows a difference above z somewhere is D·z·exp(−z²/2)/√(2π) per value, with
/// D = ∫x·ν²(x)dx = 0.74 for independent values. Here D = 1: what the values say of φ is uncertain as well.
const RATE: f64 = 0.398_942_280_401_432_7;

/// Watches a series. `noise` is the variance that each value has from its own runs, where that is known: a level is not
/// taken for better known than they allow.
///
/// # Errors
/// For an empty series, values that are not finite, and a `p_max` that is not between 0 and 1.
pub fn monitor(values: &[f64], noise: &[Option<f64>], p_max: f64) -> Result<Monitored, StatsError> {
    check_values("a series", values, 1)?;
    if !(p_max > 0.0 && p_max < 1.0) {
        return Err(StatsError::Argument { what: "the largest p", value: p_max, range: "between 0 and 1" });
    }
    let threshold = threshold(p_max);
    // Of the size of 1, so that their squares are numbers.
    let unit = values.iter().fold(0.0f64, |most, value| most.max(value.abs())).max(f64::MIN_POSITIVE);
    let (given, values) = (values, values.iter().map(|value| value / unit).collect::<Vec<f64>>());
    let noise: Vec<Option<f64>> = noise.iter().map(|noise| noise.map(|noise| noise / unit / unit)).collect();
    let (values, noise) = (values.as_slice(), noise.as_slice());
    let mut found: Vec<(usize, usize, f64)> = Vec::new();
    let mut strongest = None;
    let mut start = 0;
    for end in 1..=values.len() {
        let from = start.max(end.saturating_sub(MEMORY));
        let part = Series::new(values, noise, from, end);
        strongest = part.strongest(lengths(part.values.len())).map(|(at, z)| (from + at, z));
        if let Some((index, z)) = strongest.filter(|(_, z)| *z >= threshold) {
            found.push((index, end - 1, z));
            start = index;
            strongest = None;
        }
    }
    let bounds = placed(values, noise, &found);
    let between = |place: usize| mean(&given[bounds[place]..bounds[place + 1]]).unwrap_or(f64::NAN);
    let changes = found.iter().enumerate().map(|(place, &(_, found, z))| LevelChange {
        index: bounds[place + 1],
        found,
        p: p_of(z),
        mean_before: between(place),
        mean_after: between(place + 1),
    });
    let changes: Vec<_> = changes.collect();
    let last = Series::new(values, noise, start.max(values.len().saturating_sub(MEMORY)), values.len());
    let candidate = strongest.filter(|(_, z)| *z >= SUSPECT).map(|(index, z)| LevelChange {
        index,
        found: values.len() - 1,
        p: p_of(z),
        mean_before: mean(&given[start..index]).unwrap_or(f64::NAN),
        mean_after: mean(&given[index..]).unwrap_or(f64::NAN),
    });
    let more = candidate.and_then(|one| last.more(values.len() - one.index, threshold));
    let detectable = last.detectable(threshold).map(|shift| shift * unit);
    Ok(Monitored { more, candidate, changes, detectable })
}

/// The z at which a change has this p.
fn threshold(p_max: f64) -> f64 {
    let (mut low, mut high) = (1.0, 40.0);
    while high - low > 1e-9 {
        let middle = f64::midpoint(low, high);
        if p_of(middle) > p_max { low = middle } else { high = middle }
    }
    high
}

/// The probability that [`HORIZON`] values without a change show a difference above z.
fn p_of(z: f64) -> f64 {
    let z = z.clamp(1.0, 37.0);
    -(-RATE * HORIZON as f64 * z * (-0.5 * z * z).exp()).exp_m1()
}

/// Lengths of the second part that are looked at: all short ones, of long ones every tenth or so.
fn lengths(n: usize) -> impl Iterator<Item = usize> {
    let next = |length: &usize| Some(length + (length / 10).max(1));
    std::iter::successors(Some(LEAST), next).take_while(move |length| length + LEAST <= n)
}

/// Where the changes are, by all values up to their neighbours; with the ends of the series.
fn placed(values: &[f64], noise: &[Option<f64>], found: &[(usize, usize, f64)]) -> Vec<usize> {
    let mut bounds: Vec<usize> = found.iter().map(|(index, ..)| *index).collect();
    bounds.insert(0, 0);
    bounds.push(values.len());
    for place in 1..bounds.len() - 1 {
        let from = bounds[place - 1].max(bounds[place].saturating_sub(MEMORY));
        let end = bounds[place + 1].min(bounds[place] + MEMORY);
        let part = Series::new(values, noise, from, end);
        if let Some((at, _)) = part.strongest(LEAST..=part.values.len().saturating_sub(LEAST)) {
            bounds[place] = from + at;
        }
    }
    bounds
}

/// Values without a known change.
struct Series {
    values: Vec<f64>,
    /// The variances that their runs alone give them.
    noise: Vec<Option<f64>>,
}

impl Series {
    fn new(values: &[f64], noise: &[Option<f64>], from: usize, end: usize) -> Self {
        let noise = (from..end).map(|at| noise.get(at).copied().flatten());
        Self { values: values[from..end].to_vec(), noise: noise.collect() }
    }

    /// The place of the strongest difference, the second part having one of these lengths, with its z.
    fn strongest(&self, lengths: impl Iterator<Item = usize>) -> Option<(usize, f64)> {
        let n = self.values.len();
        let each =
            lengths.filter(|length| length + LEAST <= n).map(|length| (n - length, self.z(n - length)));
        each.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, z)| *z > 0.0)
    }

    /// How significant the difference of the parts before and from `at` on is: the normal deviate with the same two-sided p;
    /// 0 for differences that no autocorrelation makes one of three standard errors.
    fn z(&self, at: usize) -> f64 {
        let sums = Sums::new(&clipped(&self.values, at), at);
        let noise = mean(&self.noise.iter().copied().flatten().collect::<Vec<f64>>()).unwrap_or(0.0);
        let fits: Option<Vec<Fit>> = (0..GRID).map(|step| sums.fit(autocorrelation(step), noise)).collect();
        let Some(fits) = fits else { return f64::INFINITY };
        if fits.iter().all(|fit| fit.t.abs() < WEAK) {
            return 0.0;
        }
        let most = fits.iter().map(|fit| fit.log_weight).fold(f64::NEG_INFINITY, f64::max);
        let weight = |fit: &Fit| (fit.log_weight - most).exp();
        let total: f64 = fits.iter().map(weight).sum();
        let sign = fits.iter().map(|fit| weight(fit) * fit.t).sum::<f64>().signum();
        let df = self.values.len() as f64 - 2.0;
        let upper =
            |t: f64| if t > 0.0 { t_two_sided_p(t, df) / 2.0 } else { 1.0 - t_two_sided_p(t, df) / 2.0 };
        let p: f64 = fits.iter().map(|fit| weight(fit) / total * upper(sign * fit.t)).sum();
        -normal_quantile(p.min(0.5))
    }

    /// How many values like the last `length` must follow before their difference is found.
    fn more(&self, length: usize, threshold: f64) -> Option<usize> {
        let at = self.values.len().checked_sub(length)?;
        let mut longer = Self { values: self.values.clone(), noise: self.noise.clone() };
        (1..=MOST_MORE).find(|more| {
            let like = at + (more - 1) % length;
            longer.values.push(self.values[like]);
            longer.noise.push(self.noise[like]);
            longer.z(at) >= threshold
        })
    }

    /// The smallest shift of the last values that is found.
    fn detectable(&self, threshold: f64) -> Option<f64> {
        let n = self.values.len();
        let at = n - RECENT.min(n / 2);
        if at < LEAST || n - at < LEAST {
            return None;
        }
        let (before, after) = (mean(&self.values[..at])?, mean(&self.values[at..])?);
        let is_found = |shift: f64| {
            let level = self.values[..at].iter().copied();
            let shifted = self.values[at..].iter().map(|value| value - after + before + shift);
            Self { values: level.chain(shifted).collect(), noise: self.noise.clone() }.z(at) >= threshold
        };
        let spread = self.values.iter().map(|value| (value - before).abs()).fold(0.0, f64::max);
        let (mut low, mut high) = (0.0, 20.0 * spread);
        // Without any spread every shift is found.
        if spread > 0.0 && !is_found(high) {
            return None;
        }
        while high - low > 1e-3 * high {
            let middle = f64::midpoint(low, high);
            if is_found(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

/// The z of a candidate: the series without a change that show one are 5 %.
const SUSPECT: f64 = 2.0;
/// Below this many standard errors under every autocorrelation nothing is worth a closer look.
const WEAK: f64 = 3.0;

fn autocorrelation(step: usize) -> f64 {
    (LARGEST_AUTOCORRELATION.atanh() * step as f64 / (GRID - 1) as f64).tanh()
}

/// The values around the median of the longer part, outliers moved to [`CLIP`] of its robust standard deviations, or to where
/// all but an eighth of the shorter part lie on that side: what is that far and stays there is no outlier.
fn clipped(values: &[f64], at: usize) -> Vec<f64> {
    let (before, after) = values.split_at(at);
    let (longer, shorter) = if before.len() >= after.len() { (before, after) } else { (after, before) };
    let centre = median(longer).unwrap_or(0.0);
    let distances: Vec<f64> = longer.iter().map(|value| (value - centre).abs()).collect();
    let robust = 1.4826 * median(&distances).unwrap_or(0.0);
    // More than half of them are equal: by the mean distance, as of a normal distribution.
    let scale = if robust > 0.0 { robust } else { 1.2533 * mean(&distances).unwrap_or(0.0) };
    let mut shifts: Vec<f64> = shorter.iter().map(|value| value - centre).collect();
    shifts.sort_unstable_by(f64::total_cmp);
    let few = shifts.len() / 8;
    let all = |place: usize| shifts.get(place).copied().unwrap_or(0.0);
    let shift = all(few).max(-all(shifts.len().saturating_sub(few + 1)));
    let limit = if scale > 0.0 { shift.max(CLIP * scale) } else { f64::INFINITY };
    values.iter().map(|value| (value - centre).clamp(-limit, limit)).collect()
}

/// What the least squares of two levels need, under every autocorrelation.
struct Sums {
    n: f64,
    before: f64,
    after: f64,
    sum_before: f64,
    sum_after: f64,
    squares: f64,
    /// Of neighbours.
    products: f64,
    first: f64,
    last: f64,
    /// The values beside the place.
    beside: (f64, f64),
}

/// Two levels fitted under one autocorrelation.
struct Fit {
    /// Difference of the levels in standard errors.
    t: f64,
    /// Logarithm of how likely the autocorrelation is.
    log_weight: f64,
}

impl Sums {
    fn new(values: &[f64], at: usize) -> Self {
        let (before, after) = values.split_at(at);
        Self {
            n: values.len() as f64,
            before: before.len() as f64,
            after: after.len() as f64,
            sum_before: before.iter().sum(),
            sum_after: after.iter().sum(),
            squares: values.iter().map(|value| value * value).sum(),
            products: values.windows(2).map(|pair| pair[0] * pair[1]).sum(),
            first: before.first().copied().unwrap_or(0.0),
            last: after.last().copied().unwrap_or(0.0),
            beside: (before.last().copied().unwrap_or(0.0), after.first().copied().unwrap_or(0.0)),
        }
    }

    /// Generalised least squares. The inverse of the correlation matrix has 1 + φ² on its diagonal (1 at both ends) and −φ
    /// beside it, over 1 − φ². `None`: nothing varies within the parts, and they differ.
    fn fit(&self, phi: f64, noise: f64) -> Option<Fit> {
        let square = phi * phi;
        let of_level = |count: f64| (1.0 + square) * count - square - 2.0 * phi * (count - 1.0);
        let (before, after, across) = (of_level(self.before), of_level(self.after), -phi);
        let (left, right) = self.beside;
        let with_before = (1.0 + square) * self.sum_before
            - square * self.first
            - phi * (2.0 * self.sum_before - self.first - left + right);
        let with_after = (1.0 + square) * self.sum_after
            - square * self.last
            - phi * (2.0 * self.sum_after - self.last - right + left);
        let all = (1.0 + square) * self.squares
            - square * (self.first * self.first + self.last * self.last)
            - 2.0 * phi * self.products;
        let determinant = before * after - across * across;
        let level_before = (after * with_before - across * with_after) / determinant;
        let level_after = (before * with_after - across * with_before) / determinant;
        let residual = (all - level_before * with_before - level_after * with_after).max(0.0);
        let difference = level_after - level_before;
        let df = self.n - 2.0;
        let variance = (residual / df).max(noise);
        if variance <= 1e-14 * self.squares {
            return (difference.abs() <= 1e-7 * self.squares.sqrt())
                .then_some(Fit { t: 0.0, log_weight: 0.0 });
        }
        let error = (variance * (before + after + 2.0 * across) / determinant).sqrt();
        // The restricted likelihood of φ, the first value being given, with the prior of GRID.
        let residual = residual.max(1e-14 * self.squares);
        let log_weight = -0.5 * determinant.ln() - 0.5 * df * residual.ln();
        Some(Fit { t: difference / error, log_weight })
    }
}

#[cfg(test)]
mod tests;
