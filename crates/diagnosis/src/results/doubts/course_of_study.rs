//! What changed in the course of a study: a drift over runs, and runs that are unlike the others of their treatment.

use std::collections::BTreeMap;

use benchmaster_analysis::counts;
use benchmaster_record::results::RunKey;
use benchmaster_stats::association::{correlation, ranks};
use benchmaster_stats::multiple::holm;
use benchmaster_stats::{mean, median, standard_deviation, t_two_sided_p};

use crate::prelude::*;
use crate::results::rule::label;
use crate::results::slope::{Slope, Within};

pub(super) const DRIFT: Comparison = Comparison { id: "run-order-drift", compare: drift };

const LEVEL: f64 = 0.01;
const LEAST_CHANGE: f64 = 0.05;
const LEAST_DF: usize = 3;

/// A run's response within its treatment.
#[derive(Debug, Clone, Copy)]
struct Value {
    run: RunKey,
    position: f64,
    log: f64,
}

/// The response that tells how fast each workload was: throughput, else operations, else its length.
fn responses(results: &StudyResults) -> Vec<(String, String)> {
    let there = |name: &str| {
        results.runs.iter().any(|run| run.responses.iter().any(|one| one.name == name && one.value > 0.0))
    };
    let of = |workload: &str| {
        let names = ["throughput", "operations", "elapsed"].map(|what| format!("{workload}.{what}"));
        // What ends when its work is done is told by its length.
        let work = results
            .runs
            .iter()
            .flat_map(|run| &run.recordings)
            .find(|recording| recording.workload == workload);
        let timed = work.is_none_or(|recording| recording.timed);
        let order = if timed { [0, 1, 2] } else { [2, 0, 1] };
        order.into_iter().map(|at| names[at].clone()).find(|name| there(name))
    };
    let workloads = results.study.workloads.iter().map(|workload| workload.name.clone());
    workloads.filter_map(|workload| Some((workload.clone(), of(&workload)?))).collect()
}

/// Values of the runs of each treatment.
type Treatments = BTreeMap<u32, Vec<Value>>;

/// Values that count, by treatment.
fn values(results: &StudyResults, response: &str) -> Treatments {
    let mut treatments: Treatments = BTreeMap::new();
    for run in results.runs.iter().filter(|run| counts(run)) {
        let found =
            run.responses.iter().find(|one| one.name == response && one.value > 0.0 && one.value.is_finite());
        if let Some(found) = found {
            let value = Value { run: run.key, position: f64::from(run.position), log: found.value.ln() };
            treatments.entry(run.key.treatment).or_default().push(value);
        }
    }
    treatments
}

/// The slope of a line through what is left when the means of the treatments are taken away.
struct Drift {
    /// Of the logarithm of the response, from one run to the next.
    slope: Slope,
    rank_p: f64,
    /// From the first run to the last.
    course: f64,
}

impl Drift {
    /// By how much a slope moves the response from the first run to the last.
    fn moved(&self, per_run: f64) -> f64 {
        (per_run * self.course).exp() - 1.0
    }
}

fn slope(treatments: &Treatments) -> Option<Drift> {
    let several = || treatments.values().filter(|values| values.len() > 1);
    let points = |values: &Vec<Value>| values.iter().map(|value| (value.position, value.log)).collect();
    let within = Within::of(several().map(points));
    let slope = within.slope().filter(|slope| slope.df >= LEAST_DF as f64 && slope.standard_error > 0.0)?;
    let column = |part: fn(&(f64, f64)) -> f64| within.points.iter().map(part).collect::<Vec<_>>();
    let rho = correlation(&ranks(&column(|(x, _)| *x)), &ranks(&column(|(_, y)| *y)))?;
    let t = rho * (slope.df / (1.0 - rho * rho).max(1e-12)).sqrt();
    let all = || several().flatten().map(|value| value.position);
    let course = all().fold(f64::MIN, f64::max) - all().fold(f64::MAX, f64::min);
    Some(Drift { slope, rank_p: t_two_sided_p(t, slope.df), course })
}

fn drift(whole: &Whole<'_>) -> Compared {
    let mut looked: Vec<(String, String, Drift, Treatments)> = Vec::new();
    for (workload, response) in responses(whole.results) {
        let values = values(whole.results, &response);
        if let Some(drift) = slope(&values) {
            looked.push((workload, response, drift, values));
        }
    }
    if looked.is_empty() {
        return Compared::unknown(
            "too few runs count: 5 or more of one treatment, or 2 or more of several, tell (`replicates`)",
        );
    }
    let p: Vec<f64> = looked.iter().map(|(_, _, drift, _)| drift.slope.p().max(drift.rank_p)).collect();
    let adjusted = holm(&p);
    let mut found = Vec::new();
    for ((workload, response, drift, values), p) in looked.into_iter().zip(adjusted) {
        let moved = drift.moved(drift.slope.value);
        if p < LEVEL && moved.abs() >= LEAST_CHANGE {
            found.push(drifted(whole, &workload, &response, &drift, &values, (p, moved)));
        }
    }
    Compared::found(found)
}

fn drifted(
    whole: &Whole<'_>,
    workload: &str,
    response: &str,
    drift: &Drift,
    values: &Treatments,
    (p, moved): (f64, f64),
) -> Finding {
    let runs: usize = values.values().map(Vec::len).sum();
    let word = if moved > 0.0 { "rose" } else { "fell" };
    let (lower, upper) = drift.slope.interval(0.95);
    let listed = whole.results.study.order != "random";
    let order = if listed {
        " Runs were in listed order, so that this cannot be distinguished from an effect of the factors."
    } else {
        " Runs were in random order, so that it makes intervals wider and favours no treatment."
    };
    let what = format!(
        "{response} {word} by {:.0} % from the first run to the last, whatever was varied.{order}",
        moved.abs() * 100.0
    );
    let mut finding = Finding::new(if listed { Confidence::Possible } else { Confidence::Likely }, what)
    .with([Evidence::number("change of the response from one run to the next", drift.slope.value.exp() - 1.0)])
    .tested(format!("run order: slope of ln {response} over positions within treatments; the larger p of t and of ranks, Holm over workloads"), p, TestInterval {
            value: moved,
            lower: drift.moved(lower),
            upper: drift.moved(upper),
            confidence: 0.95,
        })
    .costs(moved.abs() / 2.0);
    finding.place = format!("{workload}: {}, in the order in which they were done", plural(runs, "run"));
    if let Some(at) = &mut finding.at {
        at.workload = Some(workload.to_owned());
    }
    finding
}

pub(super) const OUTLIER: Comparison = Comparison { id: "outlier-run", compare: outliers };

const LEAST_RUNS: usize = 5;
const LEAST_DISTANCE: f64 = 0.15;

/// The run farthest from the others, and how likely it is that one of as many is.
fn farthest(values: &[Value]) -> Option<(Value, f64)> {
    let logs: Vec<f64> = values.iter().map(|value| value.log).collect();
    let (centre, spread) = (mean(&logs)?, standard_deviation(&logs).filter(|spread| *spread > 0.0)?);
    let far = *values.iter().max_by(|a, b| (a.log - centre).abs().total_cmp(&(b.log - centre).abs()))?;
    let n = values.len() as f64;
    let g = (far.log - centre).abs() / spread;
    let room = ((n - 1.0).powi(2) - n * g * g).max(1e-12);
    let t = (n * (n - 2.0) * g * g / room).sqrt();
    Some((far, (n * t_two_sided_p(t, n - 2.0)).min(1.0)))
}

fn outliers(whole: &Whole<'_>) -> Compared {
    let mut looked = Vec::new();
    for (workload, response) in responses(whole.results) {
        for (treatment, values) in values(whole.results, &response) {
            if values.len() < LEAST_RUNS {
                continue;
            }
            if let Some((far, p)) = farthest(&values) {
                looked.push((workload.clone(), response.clone(), treatment, values, far, p));
            }
        }
    }
    if looked.is_empty() {
        return Compared::unknown(
            "no treatment has 5 runs that count, which it takes to tell one from the others (`replicates`)",
        );
    }
    let adjusted = holm(&looked.iter().map(|(.., p)| *p).collect::<Vec<_>>());
    let mut found = Vec::new();
    for ((workload, response, treatment, values, far, _), p) in looked.into_iter().zip(adjusted) {
        let others: Vec<f64> =
            values.iter().filter(|value| value.run != far.run).map(|value| value.log.exp()).collect();
        let all: Vec<f64> = values.iter().map(|value| value.log.exp()).collect();
        let (Some(middle), Some(without), Some(with)) = (median(&others), mean(&others), mean(&all)) else {
            continue;
        };
        let distance = far.log.exp() / middle - 1.0;
        if p >= LEVEL || distance.abs() < LEAST_DISTANCE {
            continue;
        }
        let label = label(whole.results, treatment);
        let number = far.run.replicate + 1;
        let side = if distance > 0.0 { "above" } else { "below" };
        let what = format!(
            "Replicate {number} of {label} has a {response} {:.0} % {side} the median of the other {}.",
            distance.abs() * 100.0,
            plural(others.len(), "run")
        );
        let place = format!("{workload}: 1 of {}, {label}", plural(values.len(), "run"));
        let finding = Finding::new(Confidence::Likely, what)
            .with([
                Evidence::number("response of the run, by the median of the others", distance + 1.0),
                Evidence::number("mean with the run, by that without it", with / without),
            ])
            .tested(format!("Grubbs, ln {response}; Holm over treatments and workloads"), p, None)
            // That is a cost of the run, and none of its treatment.
            .in_treatment(&workload, (treatment, label), vec![far.run], values.len())
            .costs((with / without - 1.0).abs());
        found.push(Finding { place, ..finding });
    }
    Compared::found(found)
}

#[cfg(test)]
mod tests {
    use benchmaster_analysis::analyze;
    use benchmaster_record::results::StudyResults;
    use benchmaster_stats::random::Generator;
    use benchmaster_testkit::study_results;

    use super::*;

    /// A study with these responses by position, within 2 % unless changed.
    fn made(
        seed: u64,
        treatments: u32,
        replicates: u32,
        change: impl Fn(usize, RunKey) -> f64,
    ) -> StudyResults {
        let mut results = study_results(1, treatments, replicates);
        results.runs.iter_mut().for_each(|run| run.checks.clear());
        varied(&mut results, seed, change);
        results
    }

    fn varied(results: &mut StudyResults, seed: u64, change: impl Fn(usize, RunKey) -> f64) {
        let mut random = Generator::new(seed, "drift");
        for (position, run) in results.runs.iter_mut().enumerate() {
            for response in &mut run.responses {
                let noise = 0.02 * random.normal();
                response.value = 1e8 * f64::from(run.key.treatment + 1) * f64::exp(noise);
                response.value *= change(position, run.key);
            }
        }
    }

    /// What is looked at does not depend on the analysis, which takes its time.
    fn looked(results: &StudyResults, compare: fn(&Whole<'_>) -> Compared) -> Compared {
        let none = StudyResults { runs: Vec::new(), ..results.clone() };
        compare(&Whole { results, analysis: &analyze(&none) })
    }

    #[test]
    fn a_drift_is_told_from_treatments() {
        let results = made(3, 4, 4, |position, _| 1.0 + 0.02 * position as f64);
        let found = looked(&results, drift).found;
        assert_eq!(found.len(), 2, "{found:#?}");
        assert!(found[0].what.starts_with("write.throughput rose by "), "{}", found[0].what);
        assert!(found[0].what.contains("random order") && found[0].tests[0].p.unwrap() < 0.01);
        let interval = found[0].tests[0].interval.unwrap();
        assert!(interval.lower < 0.3 && interval.upper > 0.27, "{interval:?}");
        let falls = made(3, 1, 8, |position, _| 0.95f64.powi(position as i32));
        assert!(looked(&falls, drift).found[0].what.contains("fell by "));
    }

    #[test]
    fn nothing_is_told_of_runs_that_only_vary() {
        let (mut drifts, mut far) = (0, 0);
        let mut results = made(0, 4, 6, |_, _| 1.0);
        results.runs.iter_mut().for_each(|run| run.recordings.iter_mut().for_each(|one| one.series.clear()));
        for seed in 0..200 {
            varied(&mut results, seed, |_, _| 1.0);
            drifts += looked(&results, drift).found.len();
            far += looked(&results, outliers).found.len();
        }
        assert!(drifts <= 1 && far <= 1, "{drifts} drifts and {far} outliers of 200 studies");
    }

    #[test]
    fn one_run_far_from_the_others_is_an_outlier_and_no_drift() {
        for slow in [0, 3, 7] {
            let results = made(5, 1, 8, |position, _| if position == slow { 0.7 } else { 1.0 });
            let found = looked(&results, outliers).found;
            assert_eq!(found.len(), 2, "of both workloads: {found:#?}");
            assert!(found[0].what.contains("below the median of the other 7 runs"), "{}", found[0].what);
            assert_eq!(found[0].at.as_ref().unwrap().shown, Some(results.runs[slow].key));
            assert!(looked(&results, drift).found.is_empty(), "slow is run {slow}");
        }
        // 10 % is within what is let pass.
        let results = made(5, 1, 8, |position, _| if position == 2 { 0.9 } else { 1.0 });
        assert!(looked(&results, outliers).found.is_empty());
    }

    #[test]
    fn too_few_runs_are_said_to_be_too_few() {
        let results = made(1, 1, 4, |_, _| 1.0);
        assert!(looked(&results, drift).unknown.is_some());
        assert!(looked(&results, outliers).unknown.is_some());
        let failed = made(1, 4, 6, |_, _| f64::NAN);
        assert!(looked(&failed, drift).unknown.is_some());
    }
}
