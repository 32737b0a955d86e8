//! One sample, and two groups: what can be said without a model.

use benchmaster_stats::bootstrap::{self, bootstrap};
use benchmaster_stats::change::{EDivisive, e_divisive};
use benchmaster_stats::rank::{Method, cliffs_delta, hodges_lehmann, mann_whitney};
use benchmaster_stats::{StatsError, interval, mean, median, ratio, series, steady};

use super::prepare::Prepared;
use super::ranged::Ranged;
use super::sample::{
    BootstrapSummary, ChangeSummary, ChangesSummary, Group, RankSummary, Sample, SampleCorrelation, Steady,
    TwoGroups, WelchSummary,
};
use super::words;

/// Values beyond which nothing is resampled: an interval by resampling would be that of Student.
const MOST_RESAMPLED: usize = 20_000;
/// Pairs of values beyond which ranks are not compared.
const MOST_PAIRS: usize = 25_000_000;

/// How to summarise a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleOptions {
    /// Confidence level of every interval.
    pub confidence: f64,
    /// Seed of the bootstraps.
    pub seed: u64,
    /// Whether to look for changes of the level.
    pub changes: bool,
    /// Whether to analyse the natural logarithm.
    pub log: bool,
}

/// Summarises one sample, `values` being in their order.
///
/// # Errors
/// Without values, with values that are not finite (or not positive, for the logarithm), and with a confidence level that is
/// not one.
pub fn sample(values: &[f64], missing: usize, options: &SampleOptions) -> Result<Sample, StatsError> {
    let SampleOptions { confidence, .. } = *options;
    let mut summary = if options.log {
        if let Some(index) = values.iter().position(|v| v.is_nan() || *v <= 0.0) {
            return Err(StatsError::NotPositive { what: "the sample", index, value: values[index] });
        }
        let logarithms: Vec<f64> = values.iter().map(|v| v.ln()).collect();
        multiplied(of_sample(&logarithms, missing, options)?)
    } else {
        of_sample(values, missing, options)?
    };
    summary.sentences = words::sample_sentences(&summary, confidence);
    Ok(summary)
}

/// A summary of logarithms, in the unit of the values.
fn multiplied(of_logarithms: Sample) -> Sample {
    let ends = |interval: [f64; 2]| interval.map(f64::exp);
    let boot = |boot: BootstrapSummary| BootstrapSummary {
        percentile: ends(boot.percentile),
        basic: ends(boot.basic),
        normal: ends(boot.normal),
        bca: boot.bca.map(ends),
        ..boot
    };
    let level = |change: ChangeSummary| ChangeSummary {
        mean_before: change.mean_before.exp(),
        mean_after: change.mean_after.exp(),
        relative: (change.mean_after - change.mean_before).exp_m1(),
        ..change
    };
    let correlation = of_logarithms.correlation;
    Sample {
        log: true,
        mean: of_logarithms.mean.exp(),
        interval: of_logarithms.interval.map(ends),
        correlation: correlation
            .map(|c| SampleCorrelation { student_interval: c.student_interval.map(ends), ..c }),
        // A geometric mean of 1 is no hypothesis that anybody has.
        t: None,
        p: None,
        min: of_logarithms.min.exp(),
        max: of_logarithms.max.exp(),
        median: of_logarithms.median.exp(),
        median_interval: of_logarithms.median_interval.map(ends),
        bootstrap: of_logarithms.bootstrap.map(boot),
        bootstrap_median: of_logarithms.bootstrap_median.map(boot),
        changes: of_logarithms.changes.map(|changes| ChangesSummary {
            points: changes.points.into_iter().map(level).collect(),
            rejected: changes.rejected.map(level),
            ..changes
        }),
        ..of_logarithms
    }
}

fn of_sample(values: &[f64], missing: usize, options: &SampleOptions) -> Result<Sample, StatsError> {
    let SampleOptions { confidence, seed, changes: with_changes, .. } = *options;
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
    let changes = if with_changes { Some(changes(values, seed)?) } else { None };
    let steady = steady::mser5(values).map(|m| Steady {
        steady: m.steady,
        cut: m.truncate_samples,
        statistic: m.statistic,
    });
    let student = found.lower().zip(found.upper()).map(|(l, u)| [l, u]);
    let correlated = series::series_mean(values, confidence)?;
    Ok(Sample {
        n,
        missing,
        log: false,
        mean: found.mean,
        standard_deviation: found.standard_deviation,
        standard_error,
        interval: correlated.map(|c| [c.interval.0, c.interval.1]).or(student),
        correlation: correlated.map(|c| SampleCorrelation {
            lag_1: c.correlation,
            p: c.p,
            effective_n: c.effective_n,
            student_interval: student,
        }),
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
    })
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
