//! How each rule is looked up.

use std::collections::BTreeSet;

use benchmaster_analysis::{
    Analysis, Effects, Estimate, FactorSummary, ResponseSummary, Starts, TreatmentSummary, counts, starts,
};
use benchmaster_record::results::{Replication, ServedBy, SessionEnd, Unit};
use benchmaster_stats::residual::shapiro_wilk;
use benchmaster_units::format::rounded;

use super::Outcome::{self, Broken, Held, NotNeeded};
use crate::prelude::*;
use crate::results::Whole;

/// The p value below which a normal distribution is not believed.
const ALPHA: f64 = 0.05;
/// Means of different kinds that are nearer to each other than this are the same.
const SAME: f64 = 0.001;
/// Fewer operations say nothing about the slowest percent.
const FOR_P99: u64 = 1_000;

type Known<'a> = (&'a TreatmentSummary, &'a ResponseSummary, &'a Estimate);

/// Responses with a mean, of all treatments.
fn known<'a>(analysis: &'a Analysis, name: Option<&'a str>) -> impl Iterator<Item = Known<'a>> {
    analysis.treatments.iter().flat_map(move |treatment| {
        let responses = treatment.responses.iter().filter(move |r| name.is_none_or(|name| r.name == name));
        responses.filter_map(move |r| Some((treatment, r, r.estimate.as_ref()?)))
    })
}

fn primary(analysis: &Analysis) -> impl Iterator<Item = Known<'_>> {
    known(analysis, Some(&analysis.primary_response))
}

fn values(response: &ResponseSummary) -> Vec<f64> {
    response.values.iter().filter(|v| !v.excluded).map(|v| v.value).collect()
}

fn label(treatment: &TreatmentSummary) -> &str {
    if treatment.label.is_empty() { "the only treatment" } else { &treatment.label }
}

fn p_text(p: f64) -> String {
    if p < 0.0001 { "<0.0001".into() } else { format!("{p:.4}") }
}

/// The first few of some names.
fn some<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let more = names.len().saturating_sub(3);
    let first = names[..names.len() - more].join("; ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

pub(super) fn bases(whole: &Whole<'_>) -> Outcome {
    let analysis = whole.analysis;
    let levels = match &analysis.effects {
        Effects::OneAtATime(levels) => Some(levels),
        _ => analysis.levels.as_ref(),
    };
    let factors: Vec<_> = levels.into_iter().flat_map(|levels| &levels.factors).collect();
    let ratios = |factor: &&&FactorSummary| {
        factor.levels.iter().any(|level| level.against_base.as_ref().is_some_and(|c| c.relative.is_some()))
    };
    let with_ratios: Vec<_> = factors.iter().filter(ratios).collect();
    let without_base =
        with_ratios.iter().filter(|f| f.levels.first().is_none_or(|base| base.estimate.is_none()));
    let without_base: Vec<&str> = without_base.map(|factor| factor.factor.as_str()).collect();
    let is_log = analysis.effects.experiment().is_some_and(|found| found.is_log());
    if !without_base.is_empty() {
        return Broken(format!("the base level has no mean of its own: {}", some(without_base)));
    }
    match (with_ratios.is_empty(), is_log) {
        (true, false) => NotNeeded("no result is a ratio of two others".into()),
        (true, true) => {
            Held("effects are ratios between named levels, and every treatment's own mean is shown".into())
        }
        (false, _) => Held(format!(
            "relative differences are against the first level of each factor ({}), whose own mean is in the same table",
            some(with_ratios.iter().filter_map(|f| Some(f.levels.first()?.level.as_str())))
        )),
    }
}

pub(super) fn parts(whole: &Whole<'_>) -> Outcome {
    let Whole { results, analysis } = *whole;
    let study = &results.study;
    if let Replication::Fixed(n) = study.replicates {
        let planned = n as usize * study.treatments.len();
        let ended = results.sessions.last().and_then(|session| session.ended.as_ref());
        if analysis.runs < planned && !matches!(ended, Some((_, SessionEnd::Complete))) {
            return Broken(format!(
                "{} of {planned} planned runs are present, because the study was interrupted; `benchmaster run` resumes it",
                analysis.runs
            ));
        }
    }
    let mut stated = Vec::new();
    if analysis.failed + analysis.excluded > 0 {
        let left_out = plural(analysis.failed + analysis.excluded, "run");
        stated.push(format!("{left_out} left out, each with its reason"));
    }
    let environments = results.sessions.iter().flat_map(|session| session.environment.values());
    let part: BTreeSet<String> = environments
        .filter(|e| e.processors_allowed < e.processors)
        .map(|e| format!("{} of {} processors of {}", e.processors_allowed, e.processors, e.host))
        .collect();
    if !part.is_empty() {
        stated
            .push(format!("only {} were used, as stated at the head", some(part.iter().map(String::as_str))));
    }
    if study.design != "full" && !study.factors.is_empty() {
        stated.push(format!(
            "the design is {}, so not all combinations are measured; its aliases are listed",
            study.design
        ));
    }
    if stated.is_empty() {
        Held("all planned runs are present and count, on all processors of the hosts".into())
    } else {
        Held(stated.join("; "))
    }
}

/// Of other kinds of means that differ from the arithmetic one by more than its interval and 0.1 %: where, and how.
fn differing<'a>(
    all: impl Iterator<Item = Known<'a>>,
    name: &str,
    other: impl Fn(&[f64]) -> Option<f64>,
) -> (usize, f64, Vec<String>) {
    let (mut looked, mut largest, mut broken) = (0, 0.0f64, Vec::new());
    for (treatment, response, estimate) in
        all.filter(|(_, _, estimate)| estimate.n > 1 && estimate.mean != 0.0)
    {
        let Some(mean) = other(&values(response)) else { continue };
        looked += 1;
        let away = (estimate.mean - mean).abs();
        largest = largest.max(away / estimate.mean.abs());
        if away > estimate.half_width.unwrap_or(0.0) && away / estimate.mean.abs() > SAME {
            let shown = |value: f64| rounded(value, None, response.unit, None).text(true);
            let means = (shown(estimate.mean), shown(mean));
            broken.push(format!(
                "{} with {}: arithmetic mean {}, {name} mean {}",
                response.name,
                label(treatment),
                means.0,
                means.1
            ));
        }
    }
    (looked, largest, broken)
}

fn harmonic(values: &[f64]) -> Option<f64> {
    let all_positive = !values.is_empty() && values.iter().all(|v| *v > 0.0);
    all_positive.then(|| values.len() as f64 / values.iter().map(|v| 1.0 / v).sum::<f64>())
}

fn geometric(values: &[f64]) -> Option<f64> {
    let all_positive = !values.is_empty() && values.iter().all(|v| *v > 0.0);
    all_positive.then(|| (values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp())
}

/// The rate of a run is all that was done by all the time. Over runs of equal length the arithmetic mean is again all by all; over
/// runs of equal work the harmonic mean is.
pub(super) fn rates(whole: &Whole<'_>) -> Outcome {
    let Whole { results, analysis } = *whole;
    let by_work: BTreeSet<&str> = results
        .runs
        .iter()
        .flat_map(|run| &run.recordings)
        .filter(|recording| !recording.timed)
        .map(|recording| recording.workload.as_str())
        .collect();
    let is_rate = |unit: Unit| matches!(unit, Unit::BytesPerSecond | Unit::OperationsPerSecond);
    let workload =
        |response: &ResponseSummary| response.name.split('.').next().unwrap_or_default().to_owned();
    let of_work = known(analysis, None)
        .filter(|(_, response, _)| is_rate(response.unit) && by_work.contains(workload(response).as_str()));
    let (looked, largest, broken) = differing(of_work, "harmonic", harmonic);
    let each = "the rate of a run is its total work divided by its total time";
    if !broken.is_empty() {
        return Broken(format!(
            "runs of equal work are averaged arithmetically, which changes the mean: {}; compare the elapsed times instead",
            some(broken.iter().map(String::as_str))
        ));
    }
    match looked {
        0 => Held(format!(
            "{each}; means are over runs of equal length, where the arithmetic mean is total work by total time as well"
        )),
        n => Held(format!(
            "{each}; over runs of equal work the harmonic mean of {n} rates was also computed, and differs by at most {}, \
             less than the intervals",
            percent(largest)
        )),
    }
}

pub(super) fn ratios(whole: &Whole<'_>) -> Outcome {
    let analysis = whole.analysis;
    let of_ratios = || known(analysis, None).filter(|(_, response, _)| response.unit == Unit::Ratio);
    let (looked, largest, broken) = differing(of_ratios(), "geometric", geometric);
    if !broken.is_empty() {
        return Broken(format!(
            "means of ratios are arithmetic, which changes them: {}; compare the underlying counts",
            some(broken.iter().map(String::as_str))
        ));
    }
    let names: BTreeSet<&str> = of_ratios().map(|(_, response, _)| response.name.as_str()).collect();
    match looked {
        0 => Held(
            "no response that is a ratio is averaged; latencies over all runs come from merged histograms"
                .into(),
        ),
        n => Held(format!(
            "of {n} means of ratios ({}) the geometric mean was also computed, and differs by at most {}",
            some(names),
            percent(largest)
        )),
    }
}

pub(super) fn intervals(whole: &Whole<'_>) -> Outcome {
    let analysis = whole.analysis;
    let single: Vec<&str> =
        primary(analysis).filter(|(.., e)| e.half_width.is_none()).map(|(t, ..)| label(t)).collect();
    let all = primary(analysis).count();
    match (all, single.is_empty()) {
        (0, _) => Broken(format!("no run has the response {}", analysis.primary_response)),
        (_, false) => {
            Broken(format!("one run has no interval: {}; set `replicates` to 5 or more", some(single)))
        }
        (n, true) => Held(format!(
            "values are not deterministic: {} of {} have {} Student-t intervals over runs",
            plural(n, "mean"),
            analysis.primary_response,
            percent(analysis.confidence)
        )),
    }
}

pub(super) fn normality(whole: &Whole<'_>) -> Outcome {
    let analysis = whole.analysis;
    if let Some(found) = analysis.effects.experiment() {
        let check = found.residuals.checks.iter().find(|check| check.name == "normality");
        match check {
            Some(check) if check.fine => return Held(check.sentence.clone()),
            Some(check) => return Broken(check.sentence.clone()),
            None => {}
        }
    }
    // Distances from the mean of their treatment, in its standard deviations, of all treatments together.
    let distances: Vec<f64> = primary(analysis)
        .filter_map(|(_, response, estimate)| {
            let deviation = estimate.standard_deviation.filter(|d| *d > 0.0 && estimate.n > 2)?;
            Some(values(response).into_iter().map(move |v| (v - estimate.mean) / deviation))
        })
        .flatten()
        .collect();
    match shapiro_wilk(&distances) {
        Ok((w, p)) if p < ALPHA => Broken(format!(
            "runs are not normally distributed about their means (Shapiro and Wilk: W = {w:.3}, p = {}, n = {}); the coverage of intervals is \
             lower than stated, so look at the single runs",
            p_text(p),
            distances.len()
        )),
        Ok((w, p)) => Held(format!(
            "no evidence against it (Shapiro and Wilk over {}: W = {w:.3}, p = {})",
            plural(distances.len(), "run"),
            p_text(p)
        )),
        Err(_) => Broken("too few runs to check; intervals assume it. Set `replicates` to 5 or more".into()),
    }
}

pub(super) fn comparisons(whole: &Whole<'_>) -> Outcome {
    let analysis = whole.analysis;
    if analysis.treatments.len() < 2 {
        return NotNeeded("one treatment: there is nothing to compare".into());
    }
    let alone: Vec<&str> = primary(analysis).filter(|(.., e)| e.n < 2).map(|(t, ..)| label(t)).collect();
    match &analysis.effects {
        Effects::Experiment(found) => Held(format!(
            "analysis of variance over {}, and Welch intervals between treatments",
            plural(found.runs, "run")
        )),
        _ if !alone.is_empty() => Broken(format!("single runs cannot be compared: {}", some(alone))),
        _ => Held("differences have Welch intervals; those that include 0 are reported as noise".into()),
    }
}

pub(super) fn percentiles(whole: &Whole<'_>) -> Outcome {
    let analysis = whole.analysis;
    let all = || analysis.treatments.iter().flat_map(|t| t.latencies.iter().map(move |l| (t, l)));
    if all().next().is_none() {
        return NotNeeded("no latencies were recorded".into());
    }
    let few: BTreeSet<&str> =
        all().filter(|(_, l)| l.count > 0 && l.count < FOR_P99).map(|(t, _)| label(t)).collect();
    let merged = "percentiles are of all operations together, from merged histograms; none is an average";
    if few.is_empty() {
        Held(format!("means are shown with p50, p99, p99.9 and the maximum; {merged}"))
    } else {
        Held(format!(
            "{merged}; a percentile with fewer than ten operations beyond it is not shown ({})",
            some(few)
        ))
    }
}

pub(super) fn setup(whole: &Whole<'_>) -> Outcome {
    let results = whole.results;
    let hosts: BTreeSet<&str> =
        results.sessions.iter().flat_map(|s| s.environment.keys()).map(String::as_str).collect();
    if results.sessions.iter().any(|session| session.environment.is_empty()) || results.sessions.is_empty() {
        return Broken("a session has no environment: its hosts are not known".into());
    }
    let kernels = |host: &str| -> BTreeSet<&str> {
        let of_host = results.sessions.iter().filter_map(|session| session.environment.get(host));
        of_host.map(|environment| environment.kernel.as_str()).collect()
    };
    let changed: Vec<&str> = hosts.iter().copied().filter(|host| kernels(host).len() > 1).collect();
    if !changed.is_empty() {
        return Broken(format!("the kernel changed between sessions on {}", some(changed)));
    }
    let external =
        results.runs.iter().filter_map(|run| run.service.as_ref()).any(|s| s.server == ServedBy::External);
    let server = if external {
        "; of the server only its address is known: document its hardware and version with the report"
    } else {
        ""
    };
    Held(format!(
        "{} with all levels, the study file byte for byte, its seed, and the environment of {}{server}",
        plural(results.study.factors.len(), "factor"),
        plural(hosts.len(), "host")
    ))
}

pub(super) fn together(whole: &Whole<'_>) -> Outcome {
    let Whole { results, analysis } = *whole;
    let clients = |run: &RunRecord| {
        run.recordings
            .iter()
            .map(|r| r.agents.iter().map(|agent| agent.clients).sum::<u32>())
            .max()
            .unwrap_or(1)
    };
    let most = results.runs.iter().map(clients).max().unwrap_or(1);
    let clock = "times are from a monotonic clock; a run lasts from the common start to the end of its last operation";
    if most < 2 {
        return Held(format!("one client, whose workers start at one instant; {clock}"));
    }
    match starts(results, analysis) {
        Some(starts) => Held(format!("{}; {clock}", spread(&starts))),
        None => Broken("the spread of the clients' starts is not known".into()),
    }
}

/// `4 clients started within 28.1 ± 4.0 µs of each other (20 starts, error bound 41.0 µs)`.
fn spread(starts: &Starts) -> String {
    let (least, most) = starts.clients;
    let clients = if least == most { most.to_string() } else { format!("{least} to {most}") };
    let spread = rounded(starts.spread.mean, starts.spread.half_width, Unit::Nanoseconds, None).text(true);
    let uncertainty = time(starts.bound_ns as f64);
    format!(
        "{clients} clients started within {spread} of each other ({}, error bound {uncertainty})",
        plural(starts.spread.n, "start")
    )
}

pub(super) fn bounds(whole: &Whole<'_>) -> Outcome {
    let Whole { results, analysis } = *whole;
    let networked = || results.runs.iter().filter(|run| counts(run)).filter_map(|run| run.service.as_ref());
    let unit = analysis.primary_unit;
    if networked().next().is_none() {
        return Broken(
            "the target is a directory: the rate of its disk or network without a file system is not known"
                .into(),
        );
    }
    let unknown = networked()
        .filter(|service| {
            results.baseline_of(&service.network).is_none() && service.network.bandwidth.is_none()
        })
        .count();
    let all = networked().count();
    let disk = "the server's disk is not measured separately";
    match unknown {
        0 if unit == Some(Unit::BytesPerSecond) => Held(format!(
            "the network without NFS (raw TCP, or as emulated) is a line in the plots of throughput; {disk}"
        )),
        0 => Held(format!(
            "the network without NFS is shown with the results, and as a line where bytes per second are drawn; {disk}"
        )),
        n => Broken(format!(
            "in {n} of {} the network without NFS was not measured; set `run.baseline = true`",
            plural(all, "run")
        )),
    }
}

pub(super) fn plots(whole: &Whole<'_>, drawn: usize) -> Outcome {
    let Whole { results, analysis } = *whole;
    let treatments = analysis.treatments.len();
    if treatments > drawn {
        return Broken(format!(
            "of {treatments} treatments {drawn} are drawn over time and by latency, to keep the page small; all are in the \
             tables, and `benchmaster export` writes them"
        ));
    }
    match results.runs.len() {
        0 => NotNeeded("there are no runs".into()),
        n => Held(format!(
            "{} are drawn one by one beside their means; lines join only points in time or along a numeric axis; \
             categories have points or bars",
            plural(n, "run")
        )),
    }
}
