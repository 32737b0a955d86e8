//! How many runs: stop when the interval is tight, and say what that costs.

use crate::descriptive::{mean, standard_deviation};
use crate::error::{check_confidence, check_values};
use crate::interval::{mean_interval, t_factor};
use crate::quantile::normal_quantile;

/// What a 95 % interval really covers when the data decide when to stop: (least number of runs, coverage).
///
/// From simulations of normal and lognormal runs that needed about 15 of them; repeated in `tests/coverage.rs`.
pub const REAL_COVERAGE_AT_95: [(usize, f64); 4] = [(2, 0.88), (3, 0.90), (5, 0.92), (10, 0.94)];

/// Stop after at least `min` and at most `max` runs, as soon as the interval of the mean is tight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The fewest runs.
    pub min: usize,
    /// The most runs; one below `min` counts as `min`.
    pub max: usize,
    /// An interval is tight when its half width divided by its mean is at most this.
    pub relative_half_width: f64,
    /// Confidence level of the interval.
    pub confidence: f64,
}

/// What to do after a number of runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Decision {
    /// Run again.
    Continue {
        /// Runs so far.
        n: usize,
        /// Half width relative to the mean, if there is an interval.
        relative_half_width: Option<f64>,
    },
    /// Stop: the interval is tight.
    Tight {
        /// Runs.
        n: usize,
        /// Half width relative to the mean.
        relative_half_width: f64,
    },
    /// Stop: the most runs were made, and the interval is still wide.
    NotTight {
        /// Runs.
        n: usize,
        /// Half width relative to the mean, if there is an interval.
        relative_half_width: Option<f64>,
    },
}

impl Rule {
    /// Decides after runs with these results. A sample without an interval (one value, or a value that is no finite
    /// number) is never tight.
    pub fn decide(&self, values: &[f64]) -> Decision {
        let n = values.len();
        let relative_half_width =
            mean_interval(values, self.confidence).ok().and_then(|interval| interval.relative_half_width());
        match relative_half_width {
            Some(relative_half_width) if n >= self.min && relative_half_width <= self.relative_half_width => {
                Decision::Tight { n, relative_half_width }
            }
            _ if n >= self.max.max(self.min) => Decision::NotTight { n, relative_half_width },
            _ => Decision::Continue { n, relative_half_width },
        }
    }
}

impl Decision {
    /// The decision in words, with what it means for the interval.
    pub fn label(&self) -> String {
        match *self {
            Self::Continue { n, relative_half_width } => {
                format!("{n} {} so far, {}; more are needed", runs(n), width(relative_half_width))
            }
            Self::Tight { n, relative_half_width } => {
                let width = width(Some(relative_half_width));
                format!("{n} {}, {width}: tight enough. {}", runs(n), caution())
            }
            Self::NotTight { n, relative_half_width } => format!(
                "{n} {}, {}: NOT as tight as asked for when the most runs were made. {}",
                runs(n),
                width(relative_half_width),
                caution()
            ),
        }
    }
}

/// How many runs in all would give an interval of this relative half width, judging from a pilot sample:
/// the least n with t[n − 1]·s/√n ≤ ε·|mean|.
///
/// `None` when the sample gives none: fewer than two values, values that are no finite numbers, a mean of 0.
pub fn runs_needed(values: &[f64], relative_half_width: f64, confidence: f64) -> Option<usize> {
    check_values("a pilot sample", values, 2).ok()?;
    check_confidence(confidence).ok()?;
    let ratio = standard_deviation(values)? / (relative_half_width * mean(values)?.abs());
    if !(ratio.is_finite() && ratio >= 0.0) {
        return None;
    }
    // The t quantile is above the normal one, so this many are not enough, or just so.
    let at_least = (normal_quantile(0.5 + confidence / 2.0) * ratio).powi(2).floor() as usize;
    (at_least.max(2)..).find(|&n| t_factor(confidence, (n - 1) as f64) * ratio <= (n as f64).sqrt())
}

fn runs(n: usize) -> &'static str {
    if n == 1 { "run" } else { "runs" }
}

fn width(relative_half_width: Option<f64>) -> String {
    match relative_half_width {
        Some(relative) => format!("±{:.1} % of the mean", 100.0 * relative),
        None => "no interval".into(),
    }
}

fn caution() -> String {
    let figures: Vec<_> = REAL_COVERAGE_AT_95
        .iter()
        .map(|(min, coverage)| format!("{:.0} % from {min} runs on", 100.0 * coverage))
        .collect();
    format!(
        "The number of runs was decided by the data, which lowers the real coverage of the interval: \
         a 95 % interval covers about {}",
        figures.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Rule = Rule { min: 3, max: 5, relative_half_width: 0.05, confidence: 0.95 };

    #[test]
    fn a_sample_is_tight_from_the_minimum_on() {
        assert!(matches!(RULE.decide(&[]), Decision::Continue { n: 0, relative_half_width: None }));
        assert!(matches!(
            RULE.decide(&[100.0, 100.1]),
            Decision::Continue { n: 2, relative_half_width: Some(_) }
        ));
        assert!(matches!(RULE.decide(&[100.0, 100.1, 99.9]), Decision::Tight { n: 3, .. }));
        assert!(matches!(RULE.decide(&[100.0, 150.0, 50.0]), Decision::Continue { n: 3, .. }));
        assert!(matches!(RULE.decide(&[100.0, 150.0, 50.0, 90.0, 60.0]), Decision::NotTight { n: 5, .. }));
    }

    #[test]
    fn samples_without_an_interval_are_never_tight() {
        let unusable = [1.0, f64::NAN, 1.0, 1.0, 1.0];
        assert_eq!(RULE.decide(&unusable), Decision::NotTight { n: 5, relative_half_width: None });
        let single = Rule { min: 1, max: 1, ..RULE };
        assert_eq!(single.decide(&[7.0]), Decision::NotTight { n: 1, relative_half_width: None });
        let crossed = Rule { min: 3, max: 2, ..RULE };
        assert!(matches!(crossed.decide(&[1.0, 9.0]), Decision::Continue { n: 2, .. }));
    }

    #[test]
    fn labels_tell_the_truth() {
        let tight = Decision::Tight { n: 7, relative_half_width: 0.0234 }.label();
        assert_eq!(
            tight,
            "7 runs, ±2.3 % of the mean: tight enough. The number of runs was decided by the data, which lowers the real \
             coverage of the interval: a 95 % interval covers about 88 % from 2 runs on, 90 % from 3 runs on, 92 % from 5 \
             runs on, 94 % from 10 runs on"
        );
        let wide = Decision::NotTight { n: 30, relative_half_width: Some(0.2) }.label();
        assert!(wide.starts_with("30 runs, ±20.0 % of the mean: NOT as tight as asked for"), "{wide}");
        assert!(wide.contains("decided by the data"), "{wide}");
        let more = Decision::Continue { n: 1, relative_half_width: None }.label();
        assert_eq!(more, "1 run so far, no interval; more are needed");
    }

    #[test]
    fn the_runs_needed_are_the_least_that_suffice() {
        let pilot = [100.0, 110.0, 90.0, 105.0, 95.0];
        let ratio = standard_deviation(&pilot).unwrap() / (0.05 * 100.0);
        let n = runs_needed(&pilot, 0.05, 0.95).unwrap();
        let suffices = |n: usize| t_factor(0.95, (n - 1) as f64) * ratio <= (n as f64).sqrt();
        assert!(suffices(n) && !suffices(n - 1), "{n}");
        assert_eq!(n, 13);
        assert_eq!(runs_needed(&[5.0, 5.0], 0.05, 0.95), Some(2));
        for unknown in [&[1.0][..], &[1.0, f64::NAN], &[1.0, -1.0]] {
            assert_eq!(runs_needed(unknown, 0.05, 0.95), None);
        }
        assert_eq!(runs_needed(&pilot, 0.0, 0.95), None);
        assert_eq!(runs_needed(&pilot, -0.1, 0.95), None);
    }
}
