//! How each rule is looked up.

use benchmaster_record::results::ServedBy;
use std::collections::BTreeSet;

use benchmaster_analysis::{Analysis, Effects, Estimate, ResponseSummary, TreatmentSummary, counts};
use benchmaster_record::results::{Replication, SessionEnd, StudyResults, Unit};
use benchmaster_stats::residual::shapiro_wilk;

use super::Outcome::{self, Broken, Held, NotNeeded};
use crate::format::{self, plural};
use crate::overview;

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

/// The first few of some names.
fn some<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    let more = names.len().saturating_sub(3);
    let first = names[..names.len() - more].join("; ");
    if more > 0 { format!("{first} and {more} more") } else { first }
}

pub(super) fn bases(_: &StudyResults, analysis: &Analysis) -> Outcome {
    let levels = match &analysis.effects {
        Effects::OneAtATime(levels) => Some(levels),
        _ => analysis.levels.as_ref(),
    };
    let factors: Vec<_> = levels.into_iter().flat_map(|levels| &levels.factors).collect();
    let ratios = |factor: &&&benchmaster_analysis::FactorSummary| {
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
        (true, false) => NotNeeded("nothing is told as a ratio of two results".into()),
        (true, true) => Held(
            "effects are ratios between levels that are named, and every treatment's own mean is shown"
                .into(),
        ),
        (false, _) => Held(format!(
            "relative differences are against the first level of each factor ({}), whose own mean is in the same table",
            some(with_ratios.iter().filter_map(|f| Some(f.levels.first()?.level.as_str())))
        )),
    }
}

pub(super) fn parts(results: &StudyResults, analysis: &Analysis) -> Outcome {
    let study = &results.study;
    if let Replication::Fixed(n) = study.replicates {
        let planned = n as usize * study.treatments.len();
        let ended = results.sessions.last().and_then(|session| session.ended.as_ref());
        if analysis.runs < planned && !matches!(ended, Some((_, SessionEnd::Complete))) {
            return Broken(format!(
                "{} of {planned} planned runs are there, because the study did not end by itself; `benchmaster run` goes on",
                analysis.runs
            ));
        }
    }
    let mut told = Vec::new();
    if analysis.failed + analysis.excluded > 0 {
        let left_out = plural(analysis.failed + analysis.excluded, "run");
        told.push(format!("{left_out} left out, each with its reason"));
    }
    let environments = results.sessions.iter().flat_map(|session| session.environment.values());
    let part: BTreeSet<String> = environments
        .filter(|e| e.processors_allowed < e.processors)
        .map(|e| format!("{} of {} processors of {}", e.processors_allowed, e.processors, e.host))
        .collect();
    if !part.is_empty() {
        told.push(format!("only {} were used, as told at the head", some(part.iter().map(String::as_str))));
    }
    if study.design != "full" && !study.factors.is_empty() {
        told.push(format!(
            "the design is {}, so not all combinations are measured; what it cannot tell apart is told",
            study.design
        ));
    }
    match told.is_empty() {
        true => Held("all planned runs are there and count, on all processors of the hosts".into()),
        false => Held(told.join("; ")),
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
            let shown = |value: f64| format::rounded(value, None, response.unit, None).text(true);
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
pub(super) fn rates(results: &StudyResults, analysis: &Analysis) -> Outcome {
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
    let each = "the rate of a run is all that was done divided by all of the time";
    if !broken.is_empty() {
        return Broken(format!(
            "runs of equal work are averaged arithmetically, and that matters: {}; compare the elapsed times instead",
            some(broken.iter().map(String::as_str))
        ));
    }
    match looked {
        0 => Held(format!(
            "{each}; means are over runs of equal length, where the arithmetic mean is all by all again"
        )),
        n => Held(format!(
            "{each}; over runs of equal work the harmonic mean of {n} rates was calculated too, and differs by at most {}, \
             less than the intervals",
            format::percent(largest)
        )),
    }
}

pub(super) fn ratios(_: &StudyResults, analysis: &Analysis) -> Outcome {
    let of_ratios = || known(analysis, None).filter(|(_, response, _)| response.unit == Unit::Ratio);
    let (looked, largest, broken) = differing(of_ratios(), "geometric", geometric);
    if !broken.is_empty() {
        return Broken(format!(
            "means of ratios are arithmetic, and that matters: {}; look at the counts that they are ratios of",
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
            "of {n} means of ratios ({}) the geometric mean was calculated too, and differs by at most {}",
            some(names),
            format::percent(largest)
        )),
    }
}

pub(super) fn intervals(_: &StudyResults, analysis: &Analysis) -> Outcome {
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
            format::percent(analysis.confidence)
        )),
    }
}

pub(super) fn normality(_: &StudyResults, analysis: &Analysis) -> Outcome {
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
            "runs are not normally distributed about their means (Shapiro and Wilk: W = {w:.3}, p = {}, n = {}); intervals are \
             less sure than they say, so look at the single runs",
            crate::sections::effects::p_text(p),
            distances.len()
        )),
        Ok((w, p)) => Held(format!(
            "nothing speaks against it (Shapiro and Wilk over {}: W = {w:.3}, p = {})",
            plural(distances.len(), "run"),
            crate::sections::effects::p_text(p)
        )),
        Err(_) => Broken("too few runs to check; intervals assume it. Set `replicates` to 5 or more".into()),
    }
}

pub(super) fn comparisons(_: &StudyResults, analysis: &Analysis) -> Outcome {
    if analysis.treatments.len() < 2 {
        return NotNeeded("one treatment: nothing is compared".into());
    }
    let alone: Vec<&str> = primary(analysis).filter(|(.., e)| e.n < 2).map(|(t, ..)| label(t)).collect();
    match &analysis.effects {
        Effects::Experiment(found) => Held(format!(
            "analysis of variance over {}, and Welch intervals between treatments",
            plural(found.runs, "run")
        )),
        _ if !alone.is_empty() => {
            Broken(format!("one run each cannot be compared with anything: {}", some(alone)))
        }
        _ => Held("differences have Welch intervals; those that include 0 are told to be noise".into()),
    }
}

pub(super) fn percentiles(_: &StudyResults, analysis: &Analysis) -> Outcome {
    let all = || analysis.treatments.iter().flat_map(|t| t.latencies.iter().map(move |l| (t, l)));
    if all().next().is_none() {
        return NotNeeded("no latencies were recorded".into());
    }
    let few: BTreeSet<&str> =
        all().filter(|(_, l)| l.count > 0 && l.count < FOR_P99).map(|(t, _)| label(t)).collect();
    let merged = "percentiles are of all operations together, from merged histograms; none is an average";
    match few.is_empty() {
        true => Held(format!("means stand beside p50, p99, p99.9 and the maximum; {merged}")),
        false => Held(format!(
            "{merged}; where fewer than ten operations lie beyond one it is not told ({})",
            some(few)
        )),
    }
}

pub(super) fn setup(results: &StudyResults, _: &Analysis) -> Outcome {
    let hosts: BTreeSet<&str> =
        results.sessions.iter().flat_map(|s| s.environment.keys()).map(String::as_str).collect();
    if results.sessions.iter().any(|session| session.environment.is_empty()) || results.sessions.is_empty() {
        return Broken("a session has no environment: what it ran on is not known".into());
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
        "; of the server only its address is known: note its hardware and its version beside the report"
    } else {
        ""
    };
    Held(format!(
        "{} with all levels, the study file byte for byte, its seed, and the environment of {}{server}",
        plural(results.study.factors.len(), "factor"),
        plural(hosts.len(), "host")
    ))
}

pub(super) fn together(results: &StudyResults, analysis: &Analysis) -> Outcome {
    let clients = |run: &benchmaster_record::results::RunRecord| {
        run.recordings
            .iter()
            .map(|r| r.agents.iter().map(|agent| agent.clients).sum::<u32>())
            .max()
            .unwrap_or(1)
    };
    let most = results.runs.iter().map(clients).max().unwrap_or(1);
    let clock = "times are from a monotonic clock; a run lasts from the common start to the end of its last operation";
    if most < 2 {
        return Held(format!("one client, whose workers begin at one instant; {clock}"));
    }
    match overview::start_line(results, analysis) {
        Some(line) => Held(format!("{line}; {clock}")),
        None => Broken("it is not known how well the clients began together".into()),
    }
}

pub(super) fn bounds(results: &StudyResults, analysis: &Analysis) -> Outcome {
    let networked = || results.runs.iter().filter(|run| counts(run)).filter_map(|run| run.service.as_ref());
    let unit = analysis.primary_unit;
    if networked().next().is_none() {
        return Broken(
            "the target is a directory: what its disk or its network carries without a file system is not known here"
                .into(),
        );
    }
    let unknown = networked()
        .filter(|service| {
            overview::baseline_of(results, &service.network).is_none() && service.network.bandwidth.is_none()
        })
        .count();
    let all = networked().count();
    let disk = "the server's disk is not measured by itself";
    match unknown {
        0 if unit == Some(Unit::BytesPerSecond) => Held(format!(
            "the network without NFS (raw TCP, or as emulated) is a line in the plots of throughput; {disk}"
        )),
        0 => Held(format!(
            "the network without NFS stands beside the results, and as a line where bytes per second are drawn; {disk}"
        )),
        n => Broken(format!(
            "in {n} of {} nothing is known of the network without NFS; set `run.baseline = true`",
            plural(all, "run")
        )),
    }
}

pub(super) fn plots(results: &StudyResults, analysis: &Analysis) -> Outcome {
    let treatments = analysis.treatments.len();
    let drawn = crate::html::TREATMENTS_DRAWN;
    if treatments > drawn {
        return Broken(format!(
            "of {treatments} treatments {drawn} are drawn over time and by latency, to keep the page small; all are in the \
             tables, and `benchmaster export` writes them"
        ));
    }
    match results.runs.len() {
        0 => NotNeeded("there are no runs".into()),
        n => Held(format!(
            "{} are drawn one by one beside their means; lines join only what follows in time or along an axis of numbers, and \
             categories have points or bars",
            plural(n, "run")
        )),
    }
}
