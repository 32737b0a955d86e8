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
mod summary;
mod words;

use benchmaster_record::results::{LoadCurve, LoadRecord, StageKind, StudyResults};

use crate::adaptive::Addition;
use crate::runs::Estimate;

pub use self::decide::{End, EndReason, Judged, Next, judged, next};
pub use self::judge::{Limit, Observation, Point, Question, Verdict};
pub use self::summary::{CurveSummary, Knee, LoadAnalysis, PointSummary, WithInterval};

use self::observe::{Cell, cells, question, with_load};

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
    let complete = crate::schedule::is_complete(results);
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
    // What the client could not do says nothing about what is measured.
    let measured =
        judged.iter().filter(|one| !matches!(one.verdict, Verdict::Client { .. } | Verdict::Failed));
    let measured: Vec<_> = measured.map(|one| (of_level(one.point.level), one.point)).collect();
    let (knee, overall) = curve::whole(&measured, question.confidence, seed);
    let with = |found: curve::Resampled| WithInterval {
        value: found.value,
        interval: found.interval.map(|(low, high)| [low, high]),
    };
    let rate = |(_, point): &&(f64, &Point)| point.mean(|run| run.achieved);
    let peak = measured.iter().max_by(|a, b| rate(a).total_cmp(&rate(b)));
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
            at_the_end: measured.last().is_some_and(|(load, _)| *load == knee.value),
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
