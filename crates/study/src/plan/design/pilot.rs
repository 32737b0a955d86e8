//! What runs of an earlier study tell about the planned ones.

use std::collections::{BTreeMap, BTreeSet};

use benchmaster_record::results::{Severity, StudyResults};
use serde::Serialize;
use thiserror::Error;

/// Standard deviation of runs of one treatment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// In the unit of the response.
    Absolute(f64),
    /// As a share of the mean.
    Relative(f64),
}

/// What runs of an earlier study tell about the planned ones.
#[derive(Debug, Clone, PartialEq)]
pub struct Pilot {
    /// Where it is from.
    pub name: String,
    pub response: String,
    pub unit: String,
    /// Mean over all runs that count.
    pub mean: f64,
    /// Largest divided by smallest mean of a treatment; `None` where means are not all above 0.
    pub range: Option<f64>,
    /// Standard deviation within treatments; `None` when no treatment has two runs that count.
    pub standard_deviation: Option<f64>,
    /// The same as a share of each treatment's own mean, from the logarithms; `None` also where values are not above 0.
    pub relative_standard_deviation: Option<f64>,
    /// Degrees of freedom of both.
    pub degrees_of_freedom: u64,
    /// Per treatment: its levels by the names of the factors, the mean time of its runs in seconds, and how many.
    pub treatments: Vec<(BTreeMap<String, String>, f64, u64)>,
}

/// Why results are no pilot.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PilotError {
    /// No run that ended well.
    #[error("the pilot `{name}` has no finished run that did not fail; run it first")]
    NoRuns {
        /// Where it is from.
        name: String,
    },
    /// No run has the response.
    #[error("no run of the pilot `{name}` has the response `{response}`; it has {known}")]
    NoResponse {
        /// Where it is from.
        name: String,
        /// What was asked for.
        response: String,
        known: String,
    },
}

impl Pilot {
    /// From a results directory; without `response` it is the study's own. Runs that failed, and those that a check found
    /// invalid, are left out.
    ///
    /// # Errors
    /// Without a run that counts, or when no run has the response.
    pub fn from_results(
        name: &str,
        results: &StudyResults,
        response: Option<&str>,
    ) -> Result<Self, PilotError> {
        let name = name.to_owned();
        let response = response.unwrap_or(&results.study.primary_response).to_owned();
        let counts = results.runs.iter().filter(|run| {
            run.failure.is_none() && run.checks.iter().all(|check| check.severity != Severity::Invalid)
        });
        let runs: Vec<_> = counts.collect();
        if runs.is_empty() {
            return Err(PilotError::NoRuns { name });
        }
        let mut values: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        let mut elapsed: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
        let mut unit = None;
        for run in &runs {
            elapsed.entry(run.key.treatment).or_default().push(run.elapsed_ns as f64 / 1e9);
            if let Some(found) = run.responses.iter().find(|found| found.name == response) {
                unit = Some(found.unit.symbol().to_owned());
                values.entry(run.key.treatment).or_default().push(found.value);
            }
        }
        let Some(unit) = unit else {
            let known: BTreeSet<_> =
                runs.iter().flat_map(|run| &run.responses).map(|r| r.name.as_str()).collect();
            let known = known.into_iter().collect::<Vec<_>>().join(", ");
            return Err(PilotError::NoResponse { name, response, known });
        };
        let all: Vec<f64> = values.values().flatten().copied().collect();
        let (standard_deviation, degrees_of_freedom) = pooled(values.values().cloned());
        let logs = values.values().map(|of| of.iter().map(|value| value.ln()).collect());
        let relative = all.iter().all(|&value| value > 0.0).then(|| pooled(logs).0).flatten();
        let means: Vec<f64> = values.values().map(|of| mean(of)).collect();
        let (least, most) = means.iter().fold((f64::INFINITY, 0.0f64), |(a, b), &m| (a.min(m), b.max(m)));
        let treatments = elapsed.iter().filter_map(|(index, seconds)| {
            let record = results.study.treatments.iter().find(|treatment| treatment.index == *index)?;
            let factors = results.study.factors.iter().zip(&record.levels);
            let levels = factors.filter_map(|(factor, &level)| {
                Some((factor.name.clone(), factor.levels.get(level as usize)?.clone()))
            });
            Some((levels.collect(), mean(seconds), seconds.len() as u64))
        });
        Ok(Self {
            name,
            unit,
            mean: mean(&all),
            range: (least > 0.0).then(|| most / least),
            standard_deviation,
            // The deviation of a logarithm, as that of the value itself in shares of its mean (log-normal).
            relative_standard_deviation: relative.map(|s| (s * s).exp_m1().sqrt()),
            degrees_of_freedom,
            treatments: treatments.collect(),
            response,
        })
    }

    /// Whether the response will be analysed on a logarithmic scale.
    pub(super) fn spans_magnitudes(&self) -> bool {
        self.range.is_some_and(|range| range > LOG_RANGE)
    }
}

/// Responses of which the largest is this many times the smallest are analysed as logarithms.
const LOG_RANGE: f64 = 10.0;

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard deviation within groups and its degrees of freedom.
fn pooled(groups: impl Iterator<Item = Vec<f64>>) -> (Option<f64>, u64) {
    let (mut squares, mut freedom) = (0.0, 0);
    for group in groups {
        let mean = mean(&group);
        squares += group.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        freedom += group.len() as u64 - 1;
    }
    ((freedom > 0).then(|| (squares / freedom as f64).sqrt()), freedom)
}
