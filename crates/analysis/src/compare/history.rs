//! A series of results: where it begins to be another one.

use benchmaster_record::results::{StudyResults, Unit};
use benchmaster_stats::change::{ChangePoint, EDivisive, WindowedTTest, e_divisive, windowed_t_test};
use benchmaster_stats::{StatsError, mean};
use jiff::Timestamp;
use serde::Serialize;

use benchmaster_units::format::{exact_percent, plural};

use super::cell::Direction;
use super::common::{Better, better, levels, two_digits, values};

/// How change points are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HistoryMethod {
    /// E-divisive: energy distances, tested by permutation.
    EDivisive,
    /// t tests within windows.
    TTest,
}

/// How to look for changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistoryOptions {
    pub method: HistoryMethod,
    /// Largest p of a change.
    pub p_max: f64,
    /// Changes must be larger than this, relative.
    pub min_change: f64,
    /// Permutations (E-divisive).
    pub permutations: usize,
    /// Fewest results between changes (E-divisive).
    pub min_segment: usize,
    /// Results per window (t test).
    pub window: usize,
    pub seed: u64,
}

/// A series to look at: a response in a cell, over results.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub response: String,
    /// Its unit; `None` when that is not known.
    pub unit: Option<Unit>,
    /// The cell; `None` when there is no division into cells.
    pub cell: Option<String>,
    /// The results in order.
    pub points: Vec<HistoryPoint>,
}

/// One of the results in a series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryPoint {
    /// What it is called: its directory, or line of the file.
    pub label: String,
    /// When its first run began, if that is known.
    pub started: Option<Timestamp>,
    /// Runs behind the value.
    pub runs: usize,
    /// Mean over these runs.
    pub value: f64,
}

/// What was found in the series of a history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    pub method: HistoryMethod,
    /// Largest p of a change.
    pub p_max: f64,
    /// Least relative change.
    pub min_change: f64,
    pub seed: u64,
    pub series: Vec<HistorySeries>,
}

/// A series and its changes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistorySeries {
    pub response: String,
    pub unit: Option<Unit>,
    pub cell: Option<String>,
    pub points: Vec<HistoryPoint>,
    /// Changes in order.
    pub changes: Vec<ChangeSummary>,
    /// The strongest change that was not significant (E-divisive).
    pub rejected: Option<ChangeSummary>,
    /// What that says.
    pub sentences: Vec<String>,
}

/// A change in a series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangeSummary {
    /// Index of the first result after it, from 0.
    pub index: usize,
    /// What that result is called.
    pub first: String,
    /// p of no change.
    pub p: f64,
    /// Energy distance Q of the two sides.
    pub q: f64,
    /// Mean of the results before, since the change before.
    pub mean_before: f64,
    /// Mean of the results after, until the next change.
    pub mean_after: f64,
    /// Change relative to the mean before; `None` when that is 0.
    pub relative: Option<f64>,
    /// Which way, when that is known.
    pub direction: Option<Direction>,
}

/// The series of a response in every cell of labelled results, in the order given. Results without a run that counts in a
/// cell are left out of its series.
pub fn series_of(results: &[(String, StudyResults)], response: Option<&str>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    let several = results.iter().any(|(_, r)| r.study.treatments.len() > 1);
    let mut known: Vec<std::collections::BTreeMap<String, String>> = Vec::new();
    for (label, one) in results {
        let response = response.unwrap_or(&one.study.primary_response);
        for treatment in &one.study.treatments {
            let found = values(one, treatment.index, response);
            let Some(value) = mean(&found) else { continue };
            let unit =
                one.runs.iter().flat_map(|r| &r.responses).find(|r| r.name == response).map(|r| r.unit);
            let owned = |(k, v): (&str, &str)| (k.to_owned(), v.to_owned());
            let mut key: std::collections::BTreeMap<_, _> =
                levels(&one.study, treatment).into_iter().map(owned).collect();
            // Not a factor's name.
            key.insert(" response".into(), response.to_owned());
            let place = known.iter().position(|k| *k == key).unwrap_or_else(|| {
                known.push(key);
                all.push(Series {
                    response: response.to_owned(),
                    unit,
                    cell: several.then(|| treatment.label.clone()),
                    points: vec![],
                });
                all.len() - 1
            });
            all[place].points.push(HistoryPoint {
                label: label.clone(),
                started: one.runs.iter().map(|r| r.started).min(),
                runs: found.len(),
                value,
            });
        }
    }
    all
}

/// Looks for changes in every series.
///
/// # Errors
/// For series without a value, values that are not finite, and options that make no sense.
pub fn history(series: Vec<Series>, options: &HistoryOptions) -> Result<History, StatsError> {
    let found: Result<Vec<_>, _> = series.into_iter().map(|one| analyze(one, options)).collect();
    Ok(History {
        method: options.method,
        p_max: options.p_max,
        min_change: options.min_change,
        seed: options.seed,
        series: found?,
    })
}

impl History {
    /// Whether a change is within the last `recent` results of a series; for the worse only, or without that it is known
    /// which way is better, with `worse`.
    pub fn changed(&self, recent: Option<usize>, worse: bool) -> bool {
        self.series.iter().any(|series| {
            let from = recent.map_or(0, |recent| series.points.len().saturating_sub(recent));
            series
                .changes
                .iter()
                .any(|c| c.index >= from && !(worse && c.direction == Some(Direction::Better)))
        })
    }
}

fn analyze(series: Series, options: &HistoryOptions) -> Result<HistorySeries, StatsError> {
    let values: Vec<f64> = series.points.iter().map(|p| p.value).collect();
    let (points, rejected) = match options.method {
        HistoryMethod::EDivisive => {
            let found = e_divisive(
                &values,
                &EDivisive {
                    permutations: options.permutations,
                    p_max: options.p_max,
                    min_segment: options.min_segment,
                    seed: options.seed,
                },
            )?;
            (found.points, found.rejected)
        }
        HistoryMethod::TTest => {
            let options = WindowedTTest {
                window: options.window,
                p_max: options.p_max,
                min_relative_change: options.min_change,
            };
            (windowed_t_test(&values, &options)?, None)
        }
    };
    let better = series.unit.and_then(better);
    let summary = |point: &ChangePoint| summary(point, &series.points, better);
    let large = |c: &ChangeSummary| c.relative.is_none_or(|r| r.abs() > options.min_change);
    let changes: Vec<_> = points.iter().map(summary).filter(large).collect();
    let rejected = rejected.as_ref().map(summary);
    let sentences = sentences(&series, &changes, rejected.as_ref(), options);
    let Series { response, unit, cell, points } = series;
    Ok(HistorySeries { response, unit, cell, points, changes, rejected, sentences })
}

fn summary(point: &ChangePoint, points: &[HistoryPoint], better: Option<Better>) -> ChangeSummary {
    let rises = point.mean_after > point.mean_before;
    ChangeSummary {
        index: point.index,
        first: points.get(point.index).map(|p| p.label.clone()).unwrap_or_default(),
        p: point.p,
        q: point.q,
        mean_before: point.mean_before,
        mean_after: point.mean_after,
        relative: Some(point.relative()).filter(|r| r.is_finite()),
        direction: better.map(|better| {
            if rises == (better == Better::Larger) { Direction::Better } else { Direction::Worse }
        }),
    }
}

fn sentences(
    series: &Series,
    changes: &[ChangeSummary],
    rejected: Option<&ChangeSummary>,
    options: &HistoryOptions,
) -> Vec<String> {
    let n = series.points.len();
    let mut sentences = Vec::new();
    if changes.is_empty() {
        let why = rejected.map_or(String::new(), |r| {
            format!(" The strongest candidate is {} with p = {}.", r.first, two_digits(r.p))
        });
        sentences.push(format!("No change in {}.{why}", plural(n, "result")));
    }
    for change in changes {
        let by = change.relative.map_or("from 0".to_owned(), |r| {
            format!("by {}{}", if r > 0.0 { "+" } else { "" }, exact_percent((r * 1000.0).round() / 1000.0))
        });
        let way = match change.direction {
            Some(Direction::Better) => ", for the better",
            Some(Direction::Worse) => ", for the worse",
            None => "",
        };
        sentences.push(format!("Changed at {} {by}{way} (p = {}).", change.first, two_digits(change.p)));
    }
    let least = 1.0 / (options.permutations as f64 + 1.0);
    if options.method == HistoryMethod::EDivisive && least > options.p_max {
        sentences.push(format!(
            "{} permutations cannot reach p ≤ {}; use {} or more.",
            options.permutations,
            two_digits(options.p_max),
            (1.0 / options.p_max).ceil()
        ));
    } else if options.method == HistoryMethod::EDivisive && too_short(n, options.p_max) {
        sentences.push(format!(
            "{} cannot reach p ≤ {} by permutation, however large a change is; collect more.",
            plural(n, "result"),
            two_digits(options.p_max)
        ));
    }
    sentences
}

/// Whether even values that are sorted by a change in the middle come as they are, or the other way round, with a
/// probability above `p_max` when they are permuted.
fn too_short(n: usize, p_max: f64) -> bool {
    n < 2 || benchmaster_stats::rank::smallest_p(n / 2, n - n / 2) > p_max
}
