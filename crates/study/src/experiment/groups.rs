//! One sample, and two groups: what can be said without a model.

use benchmaster_stats::bootstrap::{self, bootstrap};
use benchmaster_stats::change::{EDivisive, e_divisive};
use benchmaster_stats::rank::{Method, cliffs_delta, hodges_lehmann, mann_whitney};
use benchmaster_stats::{StatsError, interval, mean, median, ratio, steady};
use serde::Serialize;

use super::Ranged;
use super::prepare::Prepared;

/// Values beyond which nothing is resampled: an interval by resampling would be that of Student.
const MOST_RESAMPLED: usize = 20_000;
/// Pairs of values beyond which ranks are not compared.
const MOST_PAIRS: usize = 25_000_000;

/// One sample of a response.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sample {
    /// Number of values.
    pub n: usize,
    /// Values that are missing.
    pub missing: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation; `None` for one value.
    pub standard_deviation: Option<f64>,
    /// Standard error of the mean.
    pub standard_error: Option<f64>,
    /// Student's interval of the mean.
    pub interval: Option<[f64; 2]>,
    /// Degrees of freedom of the interval.
    pub df: Option<u32>,
    /// Student's t of a mean of 0.
    pub t: Option<f64>,
    /// Its two-sided p value.
    pub p: Option<f64>,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Median.
    pub median: f64,
    /// Interval of the median by order statistics; `None` for fewer than 6 values at 95 %.
    pub median_interval: Option<[f64; 2]>,
    /// Bootstrap intervals of the mean; `None` for one value and for more than 20,000.
    pub bootstrap: Option<BootstrapSummary>,
    /// Bootstrap intervals of the median.
    pub bootstrap_median: Option<BootstrapSummary>,
    /// Where the values become steady, in their order (MSER-5); `None` for fewer than 10 values.
    pub steady: Option<Steady>,
    /// Changes of the level in the order of the values, when asked for.
    pub changes: Option<ChangesSummary>,
    /// The answer in words.
    pub sentences: Vec<String>,
}

/// Intervals by resampling.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BootstrapSummary {
    /// Resamples.
    pub resamples: usize,
    /// Mean of the resamples minus the estimate.
    pub bias: f64,
    /// Standard deviation of the resamples.
    pub standard_error: f64,
    /// Percentile interval.
    pub percentile: [f64; 2],
    /// Basic interval.
    pub basic: [f64; 2],
    /// Normal interval.
    pub normal: [f64; 2],
    /// Bias-corrected and accelerated interval.
    pub bca: Option<[f64; 2]>,
    /// Bias correction z0 of that.
    pub bias_correction: Option<f64>,
    /// Acceleration of that.
    pub acceleration: Option<f64>,
    /// Whether there are enough values.
    pub reliable: bool,
}

/// Where a series becomes steady.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Steady {
    /// Whether it does, in its first half.
    pub steady: bool,
    /// Values before.
    pub cut: usize,
    /// The statistic that is smallest there.
    pub statistic: f64,
}

/// Changes of a level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangesSummary {
    /// The method: `e-divisive`.
    pub method: &'static str,
    /// Permutations.
    pub permutations: usize,
    /// Change points in order.
    pub points: Vec<ChangeSummary>,
    /// The most likely further one, which is not significant.
    pub rejected: Option<ChangeSummary>,
}

/// A change of a level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ChangeSummary {
    /// First value after it, from 0.
    pub index: usize,
    /// p value.
    pub p: f64,
    /// The statistic.
    pub q: f64,
    /// Mean before, since the change before.
    pub mean_before: f64,
    /// Mean after, until the next change.
    pub mean_after: f64,
    /// The change relative to the mean before.
    pub relative: f64,
}

/// Two groups compared: the levels of the one factor there is. Differences are first minus second.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TwoGroups {
    /// The factor.
    pub factor: String,
    /// The first level.
    pub first: Group,
    /// The second level.
    pub second: Group,
    /// Welch's t test; `None` for groups of one value or without variation.
    pub welch: Option<WelchSummary>,
    /// Ranks compared; `None` for more than 25 million pairs of runs.
    pub mann_whitney: Option<RankSummary>,
    /// Mean of the first over mean of the second by Fieller; the interval is missing where it is unbounded.
    pub ratio: Option<Ranged>,
    /// The same with a t quantile for each mean, as published (Kalibera & Jones 2013): wider with few runs.
    pub ratio_kalibera_jones: Option<Ranged>,
}

/// A group.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Group {
    /// Its level.
    pub level: String,
    /// Number of values.
    pub n: usize,
    /// Mean.
    pub mean: f64,
    /// Student's interval of the mean, from this group alone.
    pub interval: Option<[f64; 2]>,
    /// Standard deviation.
    pub standard_deviation: Option<f64>,
    /// Median.
    pub median: f64,
}

/// Welch's test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WelchSummary {
    /// Mean of the first group minus mean of the second.
    pub difference: f64,
    /// Interval of that.
    pub interval: [f64; 2],
    /// Test statistic.
    pub t: f64,
    /// Degrees of freedom.
    pub df: f64,
    /// Two-sided p value.
    pub p: f64,
}

/// A rank test and the shift that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankSummary {
    /// Mann and Whitney's U of the first group (R calls it W).
    pub u: f64,
    /// `exact` or `normal`.
    pub method: &'static str,
    /// Two-sided p value.
    pub p: f64,
    /// p value of the first group being larger.
    pub p_greater: f64,
    /// p value of the first group being smaller.
    pub p_less: f64,
    /// The smallest two-sided p value that so many runs can reach.
    pub smallest_p: f64,
    /// Hodges and Lehmann's shift: first minus second.
    pub shift: f64,
    /// Its interval.
    pub shift_interval: [f64; 2],
    /// Probability with which such an interval covers the shift.
    pub shift_coverage: f64,
    /// Cliff's δ: how much more often a value of the first group is larger than smaller, −1 to 1.
    pub cliffs_delta: f64,
}

/// Summarises one sample, `values` being in their order. Bootstraps draw from `seed`.
///
/// # Errors
/// Without values, with values that are not finite, and with a confidence level that is not one.
pub fn sample(
    values: &[f64],
    missing: usize,
    confidence: f64,
    seed: u64,
    with_changes: bool,
) -> Result<Sample, StatsError> {
    let found = interval::mean_interval(values, confidence)?;
    let middle = interval::median_interval(values, confidence)?;
    let n = values.len();
    let standard_error = found.standard_deviation.map(|s| s / (n as f64).sqrt());
    let t = standard_error.filter(|s| *s > 0.0).map(|s| found.mean / s);
    let boot = |statistic: fn(&[f64]) -> f64| -> Result<Option<BootstrapSummary>, StatsError> {
        if !(2..=MOST_RESAMPLED).contains(&n) {
            return Ok(None);
        }
        let options = bootstrap::Options { confidence, seed, ..bootstrap::Options::default() };
        Ok(Some(boot_summary(&bootstrap(values, statistic, &options)?)))
    };
    let changes = match with_changes {
        true => Some(changes(values, seed)?),
        false => None,
    };
    let steady = steady::mser5(values).map(|m| Steady {
        steady: m.steady,
        cut: m.truncate_samples,
        statistic: m.statistic,
    });
    let mut summary = Sample {
        n,
        missing,
        mean: found.mean,
        standard_deviation: found.standard_deviation,
        standard_error,
        interval: found.lower().zip(found.upper()).map(|(l, u)| [l, u]),
        df: (n > 1).then_some(n as u32 - 1),
        t,
        p: t.map(|t| benchmaster_stats::t_two_sided_p(t, (n - 1) as f64)),
        min: values.iter().copied().fold(f64::INFINITY, f64::min),
        max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        median: middle.median,
        median_interval: middle.interval.map(|i| [i.lower, i.upper]),
        bootstrap: boot(|v| mean(v).unwrap_or(f64::NAN))?,
        bootstrap_median: boot(|v| median(v).unwrap_or(f64::NAN))?,
        steady,
        changes,
        sentences: Vec::new(),
    };
    summary.sentences = super::words::sample_sentences(&summary, confidence);
    Ok(summary)
}

fn boot_summary(found: &bootstrap::Bootstrap) -> BootstrapSummary {
    let pair = |(low, high): (f64, f64)| [low, high];
    BootstrapSummary {
        resamples: found.resamples,
        bias: found.bias,
        standard_error: found.standard_error,
        percentile: pair(found.percentile),
        basic: pair(found.basic),
        normal: pair(found.normal),
        bca: found.bca.as_ref().map(|b| pair(b.interval)),
        bias_correction: found.bca.as_ref().map(|b| b.z0),
        acceleration: found.bca.as_ref().map(|b| b.acceleration),
        reliable: found.reliable(),
    }
}

fn changes(values: &[f64], seed: u64) -> Result<ChangesSummary, StatsError> {
    let options = EDivisive { seed, ..EDivisive::default() };
    let found = e_divisive(values, &options)?;
    let one = |point: &benchmaster_stats::change::ChangePoint| ChangeSummary {
        index: point.index,
        p: point.p,
        q: point.q,
        mean_before: point.mean_before,
        mean_after: point.mean_after,
        relative: point.relative(),
    };
    Ok(ChangesSummary {
        method: "e-divisive",
        permutations: options.permutations,
        points: found.points.iter().map(one).collect(),
        rejected: found.rejected.as_ref().map(one),
    })
}

/// The two levels of the only factor, as measured.
pub(super) fn two_groups(prepared: &Prepared<'_>, confidence: f64) -> Option<TwoGroups> {
    if prepared.active.len() != 1 || prepared.data.factors[0].levels != 2 {
        return None;
    }
    let of = |level: u32| -> Vec<f64> {
        let own = prepared.data.rows.iter().zip(&prepared.data.y).filter(|(row, _)| row[0] == level);
        own.map(|(_, &y)| y).collect()
    };
    let (a, b) = (of(0), of(1));
    let group = |level: u32, values: &[f64]| {
        let found = interval::mean_interval(values, confidence).ok()?;
        Some(Group {
            level: prepared.level_name(0, level).to_owned(),
            n: values.len(),
            mean: found.mean,
            interval: found.lower().zip(found.upper()).map(|(l, u)| [l, u]),
            standard_deviation: found.standard_deviation,
            median: median(values)?,
        })
    };
    // A test that cannot be made, for one run or without variation, is left out; the model says what is missing.
    let welch = interval::welch(&a, &b, confidence).ok().map(|w| WelchSummary {
        difference: w.difference,
        interval: [w.difference - w.half_width, w.difference + w.half_width],
        t: w.t,
        df: w.df,
        p: w.p,
    });
    Some(TwoGroups {
        factor: prepared.factor_name(0).to_owned(),
        first: group(0, &a)?,
        second: group(1, &b)?,
        welch,
        mann_whitney: (a.len() * b.len() <= MOST_PAIRS).then(|| ranks(&a, &b, confidence).ok()).flatten(),
        ratio: ratio::fieller_welch(&b, &a, confidence).ok().map(ranged),
        ratio_kalibera_jones: ratio::fieller(&b, &a, confidence).ok().map(ranged),
    })
}

fn ranged(found: ratio::RatioInterval) -> Ranged {
    Ranged { value: found.ratio, interval: found.interval.map(|(low, high)| [low, high]) }
}

fn ranks(a: &[f64], b: &[f64], confidence: f64) -> Result<RankSummary, StatsError> {
    let test = mann_whitney(a, b)?;
    let shift = hodges_lehmann(a, b, confidence)?;
    Ok(RankSummary {
        u: test.u,
        method: if test.method == Method::Exact { "exact" } else { "normal" },
        p: test.p_two_sided,
        p_greater: test.p_greater,
        p_less: test.p_less,
        smallest_p: test.smallest_p,
        shift: shift.estimate,
        shift_interval: [shift.lower, shift.upper],
        shift_coverage: shift.coverage,
        cliffs_delta: cliffs_delta(a, b)?,
    })
}
