//! Load curves: how rate and response time change as the load rises, where they break, and who broke them.
//!
//! The loads are fixed before anything is run ([`grid`]); which of them are run is decided by the results of those before,
//! by pure functions ([`next`], [`addition`]), so that a study that is interrupted anywhere goes on with the same step. What
//! the generator of the load cannot do is never taken for a limit of what is measured.

mod curve;
mod decide;
pub mod grid;
mod judge;
mod observe;
mod words;

use benchmaster_record::results::{LatencyGoal, LoadCurve, LoadRecord, StageKind, StudyResults};
use serde::Serialize;

use crate::adaptive::Addition;
use crate::analysis::Estimate;

pub use self::decide::{End, EndReason, Judged, Next, Question, judged, next};
pub use self::judge::{Limit, Observation, Point, Verdict};

use self::observe::{Cell, cells, question, with_load};

/// What the load curves of a study say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadAnalysis {
    /// What is raised.
    pub curve: LoadCurve,
    /// The workload that is loaded.
    pub workload: String,
    /// The parameter that the load is.
    pub parameter: String,
    /// What is asked of the latency.
    pub goal: Option<LatencyGoal>,
    /// Share of the requested rate that must be achieved, in an open loop.
    pub achieved: Option<f64>,
    /// A curve for every treatment of the other factors.
    pub curves: Vec<CurveSummary>,
}

/// One load curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CurveSummary {
    /// The treatment of the other factors: `version=4.1`; empty without other factors.
    pub label: String,
    /// How it ended; `None` when runs are missing.
    pub end: Option<End>,
    /// The highest load that is known to keep all limits.
    pub kept: Option<f64>,
    /// The lowest load that is known not to.
    pub broken: Option<f64>,
    /// Loads between them that could not be decided with as many runs as are allowed.
    pub undecided: Vec<f64>,
    /// The highest rate that was achieved, per second, of all loads at which the client was not the limit.
    pub peak: Option<Estimate>,
    /// The load at which that was.
    pub peak_load: Option<f64>,
    /// The load at which the rate divided by the response time is greatest.
    pub knee: Option<Knee>,
    /// Area under the response time over the achieved rate up to the peak, divided by the peak, in nanoseconds.
    pub overall_response_time: Option<WithInterval>,
    /// The loads that were run, in ascending order.
    pub points: Vec<PointSummary>,
    /// The same in words.
    pub sentences: Vec<String>,
}

/// The knee of a curve.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Knee {
    /// The load, with the interval of those that it is among when runs are drawn anew.
    #[serde(flatten)]
    pub load: WithInterval,
    /// Whether it is the highest load: the knee may lie beyond.
    pub at_the_end: bool,
}

/// A number with its interval from resampled runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WithInterval {
    /// The number.
    pub value: f64,
    /// Its interval; `None` when a load was run once.
    pub interval: Option<[f64; 2]>,
}

/// One load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointSummary {
    /// The load: a rate, or workers, per client.
    pub load: f64,
    /// Repetitions of the flow that were asked for, per second over all clients; `None` in a closed loop.
    pub requested: Option<f64>,
    /// Repetitions that were done, per second; `None` when no run counts.
    pub achieved: Option<Estimate>,
    /// Mean response time, in nanoseconds.
    pub response: Option<Estimate>,
    /// What the goal is about, in nanoseconds.
    pub judged: Option<Estimate>,
    /// Share of the workers' time within operations.
    pub busy: Option<f64>,
    /// Runs that do not count.
    pub failed: usize,
    /// What is known of it.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Whether a study measures load curves.
pub fn is_load(results: &StudyResults) -> bool {
    results.study.design_details.load.is_some()
}

/// The runs that are needed next when all that were planned are done; `None` when all curves are known.
pub fn addition(results: &StudyResults) -> Option<Addition> {
    let question = question(&results.study)?;
    let load = results.study.design_details.load.as_ref()?;
    let (mut new, mut again) = (Vec::new(), Vec::new());
    for cell in cells(results) {
        if let Next::Run { level, replicates, again: known, reason } = next(&question, &cell.points) {
            let row = with_load(&cell.levels, load.factor, level);
            let at = words::load(&question, level);
            let place = if cell.label.is_empty() { at } else { format!("{at} with {}", cell.label) };
            let wanted = if known { &mut again } else { &mut new };
            wanted.push((row, replicates, place, reason));
        }
    }
    // New loads first: what they show may make it needless to know others better.
    let wanted = if new.is_empty() { again } else { new };
    let replicates = wanted.iter().map(|(_, replicates, ..)| *replicates).max()?;
    let reasons: Vec<_> = wanted.iter().map(|(.., place, reason)| format!("{place}: {reason}")).collect();
    Some(Addition {
        kind: StageKind::Load,
        reason: reasons.join("; "),
        rows: wanted.into_iter().map(|(row, ..)| row).collect(),
        replicates,
    })
}

/// What the load curves of a study say, as far as they are known; `None` when it measures none.
pub fn analysis(results: &StudyResults) -> Option<LoadAnalysis> {
    let question = question(&results.study)?;
    let load = results.study.design_details.load.as_ref()?;
    let complete = crate::runner::is_complete(results);
    let seed = results.study.seed;
    let curves = cells(results).into_iter().map(|cell| summary(&question, load, &cell, seed, complete));
    Some(LoadAnalysis {
        curve: load.curve,
        workload: load.workload.clone(),
        parameter: load.parameter.clone(),
        goal: load.goal,
        achieved: (load.curve == LoadCurve::Open).then_some(load.achieved),
        curves: curves.collect(),
    })
}

fn summary(question: &Question, record: &LoadRecord, cell: &Cell, seed: u64, complete: bool) -> CurveSummary {
    let of_level = |level: u32| question.loads.get(level as usize).copied().unwrap_or(f64::NAN);
    let judged = judged(question, &cell.points);
    let estimate = |values: &[f64]| Estimate::of(values, question.confidence).ok();
    let points: Vec<_> = judged
        .iter()
        .map(|one| {
            let point = one.point;
            let any = !point.runs.is_empty();
            PointSummary {
                load: of_level(point.level),
                requested: point.runs.first().and_then(|run| run.requested),
                achieved: estimate(&point.values(|run| Some(run.achieved))),
                response: estimate(&point.values(|run| Some(run.response_ns))),
                judged: estimate(&point.values(|run| run.judged_ns)),
                busy: any.then(|| point.mean(|run| run.busy)),
                failed: point.failed,
                verdict: one.verdict.clone(),
            }
        })
        .collect();
    // What the client could not do tells nothing about what is measured.
    let told = judged.iter().filter(|one| !matches!(one.verdict, Verdict::Client { .. } | Verdict::Failed));
    let told: Vec<_> = told.map(|one| (of_level(one.point.level), one.point)).collect();
    let (knee, overall) = curve::whole(&told, question.confidence, seed);
    let with = |found: curve::Resampled| WithInterval {
        value: found.value,
        interval: found.interval.map(|(low, high)| [low, high]),
    };
    let rate = |(_, point): &&(f64, &Point)| point.mean(|run| run.achieved);
    let peak = told.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)));
    let end = match next(question, &cell.points) {
        Next::Finished(end) if complete => Some(end),
        _ => None,
    };
    let mut summary = CurveSummary {
        label: cell.label.clone(),
        kept: end.as_ref().and_then(|end| end.kept).map(of_level),
        broken: end.as_ref().and_then(|end| end.broken).map(of_level),
        undecided: end.iter().flat_map(|end| &end.undecided).map(|&level| of_level(level)).collect(),
        end,
        peak: peak.and_then(|(_, point)| estimate(&point.values(|run| Some(run.achieved)))),
        peak_load: peak.map(|(load, _)| *load),
        knee: knee.map(|knee| Knee {
            at_the_end: told.last().is_some_and(|(load, _)| *load == knee.value),
            load: with(knee),
        }),
        overall_response_time: overall.map(with),
        points,
        sentences: Vec::new(),
    };
    summary.sentences = words::sentences(question, record, &summary);
    summary
}

#[cfg(test)]
mod tests;
