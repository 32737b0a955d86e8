//! A series of results: where it begins to be another one.

use benchmaster_record::results::{StudyResults, Unit};
use benchmaster_stats::monitor::{LevelChange, Monitored, RECENT, monitor};
use benchmaster_stats::{StatsError, mean, standard_deviation};
use jiff::Timestamp;
use serde::Serialize;

use benchmaster_units::format::{exact_percent, plural};

use super::cell::{Direction, Verdict};
use super::common::{Better, Values, better, levels, two_digits, values};

/// How to look for changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HistoryOptions {
    /// Largest p of a change: the share of series without a change that raise an alarm within 100 results.
    pub p_max: f64,
    /// Changes must be larger than this, relative.
    pub min_change: f64,
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
    /// Standard error of that mean by its runs alone; `None` for a single run.
    pub error: Option<f64>,
}

/// What was found in the series of a history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// Largest p of a change.
    pub p_max: f64,
    /// Least relative change.
    pub min_change: f64,
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
    /// The strongest difference since the last change that is not significant, where one look would have called it so.
    pub candidate: Option<ChangeSummary>,
    /// How many more results like the last ones would make it a change; `None` where 100 would not.
    pub more: Option<usize>,
    /// The smallest relative change of the last results that would have been found; `None` where no change would have been.
    pub detectable: Option<f64>,
    /// Changed; undecided where there is a candidate, or where no change would have been found; else the same.
    pub verdict: Verdict,
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
    /// Index of the result with which it was found.
    pub found: usize,
    /// What that result is called.
    pub found_with: String,
    /// The probability that 100 results without a change show one as strong.
    pub p: f64,
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
/// cell, or with some that lack the response, are left out of its series.
pub fn series_of(results: &[(String, StudyResults)], response: Option<&str>) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    let several = results.iter().any(|(_, r)| r.study.treatments.len() > 1);
    let mut known: Vec<std::collections::BTreeMap<String, String>> = Vec::new();
    for (label, one) in results {
        let response = response.unwrap_or(&one.study.primary_response);
        for treatment in &one.study.treatments {
            let Values::All(found) = values(one, treatment.index, response) else { continue };
            let Some(value) = mean(&found) else { continue };
            let unit =
                one.runs.iter().flat_map(|r| &r.responses).find(|r| r.name == response).map(|r| r.unit);
            let owned = |(k, v): (&str, &str)| (k.to_owned(), v.to_owned());
            let mut key: std::collections::BTreeMap<_, _> =
                levels(&one.study, treatment).into_iter().map(owned).collect();
            // Not names of factors. Another scale is another study.
            key.insert(" response".into(), response.to_owned());
            let scale = one.study.design_details.scale;
            key.insert(" scale".into(), scale.unwrap_or(1.0).to_string());
            let scaled = scale.map(|scale| format!("scale={scale}"));
            let place = known.iter().position(|k| *k == key).unwrap_or_else(|| {
                known.push(key);
                all.push(Series {
                    response: response.to_owned(),
                    unit,
                    cell: several
                        .then(|| treatment.label.clone())
                        .into_iter()
                        .chain(scaled)
                        .reduce(|a, b| format!("{a} {b}")),
                    points: vec![],
                });
                all.len() - 1
            });
            all[place].points.push(HistoryPoint {
                label: label.clone(),
                started: one.runs.iter().map(|r| r.started).min(),
                runs: found.len(),
                value,
                error: standard_deviation(&found).map(|deviation| deviation / (found.len() as f64).sqrt()),
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
    Ok(History { p_max: options.p_max, min_change: options.min_change, series: found? })
}

impl History {
    /// Whether one of the last `recent` results revealed a change; one for the worse only, or without that it is known
    /// which way is better, with `worse`. A change need not have begun within these results: a small one takes longer to be
    /// found.
    pub fn changed(&self, recent: Option<usize>, worse: bool) -> bool {
        self.series.iter().any(|series| {
            let from = recent.map_or(0, |recent| series.points.len().saturating_sub(recent));
            series
                .changes
                .iter()
                .any(|c| c.found >= from && !(worse && c.direction == Some(Direction::Better)))
        })
    }

    /// How many series have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.series.iter().filter(|series| series.verdict == verdict).count()
    }
}

fn analyze(series: Series, options: &HistoryOptions) -> Result<HistorySeries, StatsError> {
    let values: Vec<f64> = series.points.iter().map(|p| p.value).collect();
    let noise: Vec<Option<f64>> = series.points.iter().map(|p| p.error.map(|error| error * error)).collect();
    let Monitored { changes, candidate, more, detectable } = monitor(&values, &noise, options.p_max)?;
    let better = series.unit.and_then(better);
    let summary = |change: &LevelChange| summary(change, &series.points, better);
    let large = |c: &ChangeSummary| c.relative.is_none_or(|r| r.abs() > options.min_change);
    let level = changes.last().map_or_else(|| mean(&values), |last| Some(last.mean_after));
    let detectable =
        detectable.zip(level).map(|(shift, level)| shift / level.abs()).filter(|r| r.is_finite());
    let changes: Vec<_> = changes.iter().map(summary).filter(large).collect();
    let candidate = candidate.as_ref().map(summary).filter(large);
    let verdict = match (changes.is_empty(), &candidate, detectable) {
        (false, ..) => Verdict::Changed,
        (true, None, Some(_)) => Verdict::Same,
        _ => Verdict::Undecided,
    };
    let more = more.filter(|_| candidate.is_some());
    let Series { response, unit, cell, points } = series;
    let sentences = Vec::new();
    let mut found = HistorySeries {
        response,
        unit,
        cell,
        points,
        changes,
        candidate,
        more,
        detectable,
        verdict,
        sentences,
    };
    found.sentences = sentences_of(&found);
    Ok(found)
}

fn summary(change: &LevelChange, points: &[HistoryPoint], better: Option<Better>) -> ChangeSummary {
    let rises = change.mean_after > change.mean_before;
    let label = |index: usize| points.get(index).map(|point| point.label.clone()).unwrap_or_default();
    ChangeSummary {
        index: change.index,
        first: label(change.index),
        found: change.found,
        found_with: label(change.found),
        p: change.p,
        mean_before: change.mean_before,
        mean_after: change.mean_after,
        relative: Some(change.relative()).filter(|r| r.is_finite()),
        direction: better.map(|better| {
            if rises == (better == Better::Larger) { Direction::Better } else { Direction::Worse }
        }),
    }
}

fn sentences_of(series: &HistorySeries) -> Vec<String> {
    let n = series.points.len();
    let mut sentences = Vec::new();
    let by = |change: &ChangeSummary| {
        change.relative.map_or("from 0".to_owned(), |r| {
            format!("by {}{}", if r > 0.0 { "+" } else { "" }, exact_percent((r * 1000.0).round() / 1000.0))
        })
    };
    let p = |p: f64| if p < 0.0001 { "p < 0.0001".to_owned() } else { format!("p = {}", two_digits(p)) };
    for change in &series.changes {
        let way = match change.direction {
            Some(Direction::Better) => ", for the better",
            Some(Direction::Worse) => ", for the worse",
            None => "",
        };
        sentences.push(format!(
            "Changed at {} {}{way} ({}), found with {}.",
            change.first,
            by(change),
            p(change.p),
            change.found_with
        ));
    }
    let since = if series.changes.is_empty() { "" } else { " since then" };
    if let Some(candidate) = &series.candidate {
        let more = match series.more {
            Some(1) => "one more result like the last ones would show it".to_owned(),
            Some(more) => format!("{more} more results like the last ones would show it"),
            None => "the results vary too much for 100 more to show it".to_owned(),
        };
        sentences.push(format!(
            "Cannot tell{since} whether {} is a change, {} ({}): {more}.",
            candidate.first,
            by(candidate),
            p(candidate.p)
        ));
    } else if let Some(detectable) = series.detectable {
        let length = RECENT.min((n - series.changes.last().map_or(0, |last| last.index)) / 2);
        let smallest = match detectable {
            0.0 => "any change of".to_owned(),
            smallest => {
                format!("a change by {} or more in", exact_percent((smallest * 1000.0).ceil() / 1000.0))
            }
        };
        sentences.push(format!(
            "No change found{since} in {}; {smallest} the last {} would have been.",
            plural(n - series.changes.last().map_or(0, |last| last.index), "result"),
            plural(length, "result")
        ));
    } else {
        sentences.push(format!(
            "Cannot tell{since}: no change could be found in {} yet.",
            plural(n - series.changes.last().map_or(0, |last| last.index), "result")
        ));
    }
    sentences
}
