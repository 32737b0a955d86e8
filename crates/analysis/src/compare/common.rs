//! What comparisons of two results and of many have in common.

use std::collections::BTreeMap;

use benchmaster_record::results::{RunRecord, StudyRecord, StudyResults, TreatmentRecord, Unit};
use serde::Serialize;

use crate::runs::counts;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Larger ones, as of throughput.
    Larger,
    /// Smaller ones, as of latency.
    Smaller,
}

/// The unit's better direction.
pub(super) fn better(unit: Unit) -> Option<Better> {
    match unit {
        Unit::BytesPerSecond | Unit::OperationsPerSecond => Some(Better::Larger),
        Unit::Nanoseconds => Some(Better::Smaller),
        Unit::Count | Unit::Ratio => None,
    }
}

/// The levels of a treatment by factor.
pub(super) fn levels<'a>(study: &'a StudyRecord, treatment: &TreatmentRecord) -> BTreeMap<&'a str, &'a str> {
    let named = study.factors.iter().zip(&treatment.levels);
    named.filter_map(|(f, &l)| Some((f.name.as_str(), f.levels.get(l as usize)?.as_str()))).collect()
}

/// Treatments with the same levels.
pub(super) fn pairs<'a>(
    a: &'a StudyRecord,
    b: &'a StudyRecord,
) -> Vec<(&'a TreatmentRecord, &'a TreatmentRecord)> {
    let known: BTreeMap<_, _> = b.treatments.iter().map(|t| (levels(b, t), t)).collect();
    a.treatments.iter().filter_map(|t| Some((t, *known.get(&levels(a, t))?))).collect()
}

/// The values of a response in the runs of a treatment that count.
pub(super) enum Values {
    /// One of each, by replicate.
    All(Vec<f64>),
    /// Some runs have none, as those with too few operations for a high percentile.
    Some { with: usize, runs: usize },
}

pub(super) fn values(results: &StudyResults, treatment: u32, response: &str) -> Values {
    let mut runs: Vec<&RunRecord> =
        results.runs.iter().filter(|r| r.key.treatment == treatment && counts(r)).collect();
    runs.sort_by_key(|r| r.key);
    let value = |run: &&RunRecord| run.responses.iter().find(|one| one.name == response).map(|one| one.value);
    let values: Vec<f64> = runs.iter().filter_map(value).filter(|v| v.is_finite()).collect();
    match values.len() {
        with if with == runs.len() => Values::All(values),
        with => Values::Some { with, runs: runs.len() },
    }
}

/// A share in percent, without a tail of digits: `2`, `2.5`.
pub fn percent(share: f64) -> String {
    rounded(100.0 * share)
}

pub(super) fn rounded(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A p value with two digits: 0.10, 0.0079.
pub(super) fn two_digits(p: f64) -> String {
    if p <= 0.0 {
        return "0".into();
    }
    // 0.1 may have come out as a little less.
    let decimals = (1 - (p * (1.0 + 1e-9)).log10().floor() as i32).clamp(2, 12) as usize;
    format!("{p:.decimals$}")
}
