//! The treatment that serves a goal best, and whether fresh runs confirm it.

use benchmaster_design::full as all_combinations;
use benchmaster_record::results::{Direction, StageKind, StudyResults, Unit};
use benchmaster_stats::model::{Term, hierarchy};
use benchmaster_stats::ratio::{fieller_welch, log_t};
use serde::Serialize;

use super::addition::{AdaptiveError, Addition};
use super::facts::{Facts, Scale, is_confirmation};
use super::resolve::active;
use crate::runs::counts;

/// Confirmation runs of each of the two treatments, at least.
const CONFIRMATIONS: u32 = 5;
/// The most combinations of levels that are predicted; of more, those that were run are compared.
const MOST_CELLS: u64 = 1 << 16;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Best {
    pub response: String,
    pub unit: Unit,
    /// Whether more or less of it is better.
    pub direction: Direction,
    /// The default treatment: every factor at its first level.
    pub default: String,
    /// The treatment that the model of all runs before predicts to be best.
    pub best: String,
    /// What it predicts for the default and for the best, as measured.
    pub predicted: [f64; 2],
    /// What fresh runs of both say; `None` when the default is the best.
    pub gain: Option<Gain>,
    /// The same in words.
    pub sentence: String,
}

/// Best over default, from confirmation runs alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gain {
    /// Confirmation runs that count, of the default and of the best.
    pub runs: [usize; 2],
    /// Mean response of the default and of the best: geometric where the analysis is on the logarithmic scale.
    pub means: [f64; 2],
    /// Mean of the best over mean of the default.
    pub ratio: f64,
    /// Its confidence interval (Welch's of logarithms, else Fieller's); `None` when it has no end.
    pub interval: Option<[f64; 2]>,
    /// Whether the interval lies on the better side of 1.
    pub confirmed: bool,
}

/// How far the confirmation is.
#[derive(Debug)]
pub(super) enum Confirmation {
    /// These runs are needed.
    Needed(Addition),
    /// It is done.
    Done(Box<Best>),
}

/// The best treatment by all runs that `facts` are of; when it is not the default, confirmed by runs of its own.
pub(super) fn best(
    facts: &Facts,
    terms: &[Term],
    results: &StudyResults,
) -> Result<Confirmation, AdaptiveError> {
    let study = &results.study;
    let direction = facts.goal.as_ref().map_or(Direction::Maximise, |goal| goal.direction);
    // Only what is distinguished from noise, with the terms that it contains: the rest would lead to treatments that were lucky.
    let full_model = facts.fit(terms)?;
    let found: Vec<_> = active(&full_model).into_iter().collect();
    let reduced = facts.fit(&hierarchy(&found))?;
    let candidates = if facts.combinations() <= MOST_CELLS {
        all_combinations(&facts.levels).unwrap_or_default()
    } else {
        facts.distinct.clone()
    };
    let better = |a: f64, b: f64| match direction {
        Direction::Maximise => a > b,
        Direction::Minimise => a < b,
    };
    let first_levels = vec![0; facts.levels.len()];
    let default = if facts.design.allows(&first_levels) {
        first_levels
    } else {
        facts.distinct.first().cloned().unwrap_or_default()
    };
    let predict = |row: &[u32]| reduced.predict(row, None).map(|e| e.value);
    let of_default = predict(&default)?;
    let mut winner = (of_default, default.clone());
    // The default wins against what is predicted to be equal: factors without an effect stay at their first level.
    let margin = 1e-9 * of_default.abs();
    for row in candidates.iter().filter(|row| facts.design.allows(row)) {
        if !reduced.predictable(row)? {
            continue;
        }
        let value = predict(row)?;
        if better(value, winner.0) && (value - winner.0).abs() > margin {
            winner = (value, row.clone());
        }
    }
    let (of_best, row) = winner;
    let mut best = Best {
        response: facts.response.clone(),
        unit: facts.unit,
        direction,
        default: facts.label(&default),
        best: facts.label(&row),
        predicted: [facts.scale.back(of_default), facts.scale.back(of_best)],
        gain: None,
        sentence: String::new(),
    };
    if row == default {
        best.sentence =
            format!("No treatment is predicted to be better for {} than the default.", best.response);
        return Ok(Confirmation::Done(Box::new(best)));
    }
    let Some(stage) = study.stages.iter().rev().find(|s| s.kind == StageKind::Confirmation) else {
        return Ok(Confirmation::Needed(Addition {
            kind: StageKind::Confirmation,
            reason: format!("is {} really better than the default ({})?", best.best, best.default),
            rows: vec![default, row],
            replicates: facts.replicates.max(CONFIRMATIONS),
        }));
    };
    // What was confirmed is what was best then; its stage identifies it, and not chosen again.
    let confirmed: Vec<&Vec<u32>> = stage
        .treatments
        .iter()
        .filter_map(|index| study.treatments.iter().find(|t| t.index == *index))
        .map(|t| &t.levels)
        .filter(|levels| **levels != default)
        .collect();
    if let Some(levels) = confirmed.first() {
        best.best = facts.label(levels);
        best.predicted[1] = facts.scale.back(predict(levels)?);
    }
    let values = |levels: &[u32]| -> Vec<f64> {
        let runs = results.runs.iter().filter(|run| counts(run) && is_confirmation(study, run.stage));
        runs.filter(|run| {
            study.treatments.iter().any(|t| t.index == run.key.treatment && t.levels == *levels)
        })
        .flat_map(|run| run.responses.iter().filter(|r| r.name == facts.response))
        .map(|r| r.value)
        .collect()
    };
    let (before, after) =
        (values(&default), confirmed.first().map_or_else(Vec::new, |levels| values(levels)));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let of_arithmetic = || fieller_welch(&before, &after, facts.confidence);
    let (ratio, means) = if facts.scale == Scale::Log && before.iter().chain(&after).all(|v| *v > 0.0) {
        let geometric =
            |values: &[f64]| mean(&values.iter().map(|value| value.ln()).collect::<Vec<_>>()).exp();
        // Values that do not vary have no interval of logarithms; the means of both kinds are the same then.
        let ratio = log_t(&before, &after, facts.confidence).or_else(|_| of_arithmetic())?;
        (ratio, [geometric(&before), geometric(&after)])
    } else {
        (of_arithmetic()?, [mean(&before), mean(&after)])
    };
    let interval = ratio.interval.map(|(low, high)| [low, high]);
    let confirmed = interval.is_some_and(|[low, high]| match direction {
        Direction::Maximise => low > 1.0,
        Direction::Minimise => high < 1.0,
    });
    best.sentence = sentence(&best, ratio.ratio, interval, confirmed, facts.confidence);
    best.gain =
        Some(Gain { runs: [before.len(), after.len()], means, ratio: ratio.ratio, interval, confirmed });
    Ok(Confirmation::Done(Box::new(best)))
}

fn sentence(best: &Best, ratio: f64, interval: Option<[f64; 2]>, confirmed: bool, confidence: f64) -> String {
    let Best { response, default, best, .. } = best;
    let known = match interval {
        Some([low, high]) => {
            format!("{ratio:.3} times ({:.0} % interval {low:.3} to {high:.3})", 100.0 * confidence)
        }
        None => format!("{ratio:.3} times, with an interval without end,"),
    };
    let verdict = if confirmed {
        "The gain is confirmed by runs that had no part in the choice."
    } else {
        "So a gain is not confirmed."
    };
    format!("{response} with {best} is {known} that of the default ({default}). {verdict}")
}
