//! Responses over the levels of a factor, whatever the other factors are.

use std::collections::BTreeMap;

use benchmaster_analysis::counts;
use benchmaster_record::results::{FactorRecord, TreatmentRecord, numeric_values};
use benchmaster_stats::mean;

use crate::prelude::*;
pub(super) use crate::results::slope::Slope;
use crate::results::slope::Within;

/// A factor that sets a parameter of some kind.
#[derive(Debug, Clone)]
pub(super) struct Axis<'a> {
    /// Its number in the study.
    pub(super) number: usize,
    pub(super) factor: &'a FactorRecord,
    /// The parameter's values as numbers in base units, where they are such.
    pub(super) values: Option<Vec<f64>>,
}

/// Factors all of whose levels set a parameter that is wanted.
pub(super) fn axes<'a>(whole: &Whole<'a>, wanted: impl Fn(&str) -> bool) -> Vec<Axis<'a>> {
    let factors = whole.results.study.factors.iter().enumerate();
    let axis = |(number, factor): (usize, &'a FactorRecord)| {
        let path = factor
            .settings
            .first()?
            .keys()
            .find(|path| wanted(path) && factor.settings.iter().all(|level| level.contains_key(*path)))?;
        let alone = factor
            .settings
            .iter()
            .map(|level| Some(BTreeMap::from([(path.clone(), level.get(path)?.clone())])));
        let values = alone.collect::<Option<Vec<_>>>().and_then(|levels| numeric_values(&levels));
        Some(Axis { number, factor, values })
    };
    factors.filter_map(axis).collect()
}

/// Levels of the other factors, and what else runs have in common.
type Stratum = (Vec<u32>, String);

/// A response of a run at a level of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Point {
    /// The levels of the other factors, and what else runs have in common that are compared with each other.
    pub(super) stratum: Stratum,
    /// The level.
    pub(super) level: usize,
    /// The response, above 0.
    pub(super) value: f64,
}

/// Responses of the runs that count, by level. Runs with any of these checks are left out.
pub(super) fn points(
    whole: &Whole<'_>,
    axis: &Axis<'_>,
    response: &str,
    without: &[CheckKind],
) -> Vec<Point> {
    let of = |run: &RunRecord| {
        let treatment = whole
            .results
            .study
            .treatments
            .get(run.key.treatment as usize)
            .filter(|treatment| !treatment.centre)?;
        let value = run.responses.iter().find(|other| other.name == response)?.value;
        let mut others = treatment.levels.clone();
        let level = *others.get(axis.number)? as usize;
        others.remove(axis.number);
        (value.is_finite() && value > 0.0).then(|| Point {
            stratum: (others, response.to_owned()),
            level,
            value,
        })
    };
    let workload = response.split('.').next().unwrap_or(response);
    let kept = |run: &&RunRecord| {
        let concerns = |other: &Option<String>| other.as_deref().is_none_or(|other| other == workload);
        counts(run)
            && !run.checks.iter().any(|check| without.contains(&check.kind) && concerns(&check.workload))
    };
    whole.results.runs.iter().filter(kept).filter_map(of).collect()
}

impl Slope {
    /// What a change by so much does to the response, as a factor, with its interval.
    pub(super) fn ratio(&self, by: f64, confidence: f64) -> TestInterval {
        let (low, high) = self.interval(confidence);
        let (a, b) = ((low * by).exp(), (high * by).exp());
        TestInterval { value: (self.value * by).exp(), lower: a.min(b), upper: a.max(b), confidence }
    }
}

/// The slope of ln(value) over x within strata. `None` without degrees of freedom for error, or without two x.
pub(super) fn slope(points: &[Point], x: impl Fn(usize) -> Option<f64>) -> Option<Slope> {
    let mut strata: BTreeMap<&Stratum, Vec<(f64, f64)>> = BTreeMap::new();
    for point in points {
        if let Some(x) = x(point.level) {
            strata.entry(&point.stratum).or_default().push((x, point.value.ln()));
        }
    }
    // A stratum in which nothing varies says nothing of the slope, and takes no part of the error.
    Within::of(strata.into_values()).slope()
}

/// The ratio of a level to another: the slope over 0 and 1.
pub(super) fn ratio(
    points: &[Point],
    base: usize,
    other: usize,
    confidence: f64,
) -> Option<(Slope, TestInterval)> {
    let slope = slope(points, |level| match level {
        level if level == base => Some(0.0),
        level if level == other => Some(1.0),
        _ => None,
    })?;
    Some((slope, slope.ratio(1.0, confidence)))
}

/// The geometric mean of the response at a level.
pub(super) fn typical(points: &[Point], level: usize) -> Option<f64> {
    let logs: Vec<f64> =
        points.iter().filter(|point| point.level == level).map(|point| point.value.ln()).collect();
    Some(mean(&logs)?.exp())
}

/// Rates of a workload: bytes where it moves some, else operations. The names of responses.
pub(super) fn rates(whole: &Whole<'_>, workload: &str) -> Option<String> {
    let names = ["throughput", "operations"].map(|what| format!("{workload}.{what}"));
    let moves = |name: &String| {
        let of = |run: &RunRecord| {
            run.responses.iter().any(|response| response.name == *name && response.value > 0.0)
        };
        whole.results.runs.iter().any(of)
    };
    names.into_iter().find(moves)
}

/// A finding of a workload over the levels of a factor, which is at those treatments that have this level.
pub(super) fn placed(
    whole: &Whole<'_>,
    mut finding: Finding,
    workload: Option<&str>,
    axis: &Axis<'_>,
    level: usize,
) -> Finding {
    let study = &whole.results.study;
    let at_level = study.treatments.iter().filter(|treatment| is_at(treatment, axis.number, level));
    let treatments = at_level.map(|treatment| {
        let runs: Vec<_> = whole
            .results
            .runs
            .iter()
            .filter(|run| run.key.treatment == treatment.index && counts(run))
            .map(|run| run.key)
            .collect();
        AtTreatment {
            treatment: treatment.index,
            label: treatment.label.clone(),
            of: runs.len(),
            runs,
            cost: finding.cost.as_ref().map(|cost| cost.share),
        }
    });
    let treatments: Vec<_> = treatments.filter(|treatment| !treatment.runs.is_empty()).collect();
    let of = workload.unwrap_or("all workloads");
    finding.place = format!("{of}, over the factor {}", axis.factor.name);
    let at = finding.at.get_or_insert_default();
    at.workload = workload.map(str::to_owned);
    at.shown = treatments.first().and_then(|treatment| treatment.runs.first()).copied();
    at.treatments = treatments;
    at.plot = Some(if study.factors.len() > 1 { Plot::Effects } else { Plot::Response });
    finding
}

/// The runs at a level of an axis.
pub(super) fn runs_at<'a>(
    whole: &Whole<'a>,
    axis: &Axis<'_>,
    level: usize,
) -> impl Iterator<Item = &'a RunRecord> {
    let treatments = &whole.results.study.treatments;
    let number = axis.number;
    whole.results.runs.iter().filter(move |run| {
        treatments.get(run.key.treatment as usize).is_some_and(|treatment| is_at(treatment, number, level))
    })
}

/// Whether a treatment is at this level of the factor of this number.
pub(super) fn is_at(treatment: &TreatmentRecord, factor: usize, level: usize) -> bool {
    treatment.levels.get(factor).is_some_and(|found| *found as usize == level)
}

/// The name of a level.
pub(super) fn name<'a>(axis: &Axis<'a>, level: usize) -> &'a str {
    axis.factor.levels.get(level).map_or("?", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(stratum: u32, level: usize, value: f64) -> Point {
        Point { stratum: (vec![stratum], "w.throughput".into()), level, value }
    }

    #[test]
    fn slopes_are_those_of_least_squares_within_strata() {
        // Halves with each doubling, in one stratum at ten times the rate of the other; worked out by hand.
        let x = |level: usize| [1.0f64, 2.0, 4.0].get(level).map(|x| x.ln());
        let points: Vec<_> = [(0, 1.0), (1, 10.0)]
            .iter()
            .flat_map(|(s, k)| [point(*s, 0, 8.0 * k), point(*s, 1, 4.0 * k), point(*s, 2, 2.0 * k)])
            .collect();
        let found = slope(&points, x).unwrap();
        assert!((found.value + 1.0).abs() < 1e-12 && found.standard_error < 1e-9 && found.df == 3.0);
        // y = 0, 1, 1 over x = 0, 1, 2: slope ½, residuals −⅙, ⅓, −⅙, squares ⅙, error √(⅙ / 1 / 2).
        let points = [point(0, 0, 1.0), point(0, 1, 1f64.exp()), point(0, 2, 1f64.exp())];
        let found = slope(&points, |level| Some(level as f64)).unwrap();
        assert!((found.value - 0.5).abs() < 1e-12);
        assert!((found.standard_error - (1.0 / 12.0f64).sqrt()).abs() < 1e-12);
        assert_eq!(slope(&points[..2], |level| Some(level as f64)), None);
    }

    #[test]
    fn ratios_of_two_levels() {
        let points =
            [point(0, 0, 10.0), point(0, 0, 10.5), point(0, 1, 20.0), point(0, 1, 21.0), point(0, 2, 1.0)];
        let (found, ratio) = ratio(&points, 0, 1, 0.95).unwrap();
        assert_eq!(found.df, 2.0);
        assert!((ratio.value - 2.0).abs() < 1e-9 && ratio.lower > 1.7 && ratio.upper < 2.4, "{ratio:?}");
    }
}
