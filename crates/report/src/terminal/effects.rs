//! How the factors change the primary response.

use benchmaster_store::record::{StudyResults, Unit};
use benchmaster_study::analysis::{Analysis, ContrastSummary, Effects, FactorSummary, FactorialSummary};

use super::grid::{Column, Text};
use crate::format::{self, Scale, rounded};

pub(super) fn effects(text: &mut Text, results: &StudyResults, analysis: &Analysis) {
    text.section(&format!("effects on {}", analysis.primary_response));
    match &analysis.effects {
        Effects::None { reason } => text.wrapped("", &format!("None can be told: {reason}.")),
        Effects::Factorial(found) => factorial(text, found, analysis.confidence),
        Effects::Levels { note, factors, .. } => {
            text.wrapped("", note);
            let unit = analysis.primary_unit.unwrap_or(Unit::Ratio);
            for factor in factors {
                levels(text, factor, unit);
            }
            text.wrapped("", &comparison_note(analysis.confidence));
        }
    }
    if results.study.factors.len() > 1 && matches!(analysis.effects, Effects::Factorial(_)) {
        text.wrapped("", "a × b: how the effect of a depends on b.");
    }
}

fn factorial(text: &mut Text, found: &FactorialSummary, confidence: f64) {
    text.wrapped(
        "",
        &format!(
            "2^k·r factorial with r = {}. Printed is the half effect q: from the low to the high level the response \
             changes by 2q.",
            found.replicates
        ),
    );
    for (factor, [low, high]) in &found.factors {
        text.wrapped("  ", &format!("  {factor}: low {low}, high {high}"));
    }
    let scale = Scale::common(found.unit, [found.mean]);
    let show = |value: f64, half_width| rounded(value, half_width, found.unit, scale).text(true);
    text.wrapped("", &format!("  mean over all treatments: {}", show(found.mean, found.mean_half_width)));
    let told_apart = |t: Option<bool>| match t {
        Some(true) => "yes",
        Some(false) => "cannot be told apart from noise",
        None => "not known (no interval)",
    };
    text.table(
        vec![
            Column::text("term", found.terms.iter().map(|t| t.name.clone()).collect()),
            Column::number(
                "half effect q",
                found.terms.iter().map(|t| show(t.half_effect, t.half_width)).collect(),
                0,
            ),
            Column::number("variation", found.terms.iter().map(|t| share(t.variation_percent)).collect(), 1),
            Column::text(
                "differs from 0",
                found.terms.iter().map(|t| told_apart(t.told_apart).into()).collect(),
            ),
        ],
        &[],
    );
    match (&found.no_interval, found.error_percent) {
        (Some(reason), _) => text.wrapped("", &format!("No intervals: {reason}.")),
        (None, Some(error)) => text.wrapped(
            "",
            &format!(
                "{} of the variation is between replicates. ±: {} interval.",
                share(Some(error)),
                format::percent(confidence)
            ),
        ),
        (None, None) => text.wrapped("", "The response does not vary at all."),
    }
}

fn share(percent: Option<f64>) -> String {
    percent.map_or("-".into(), |p| format!("{p:.1} %"))
}

fn levels(text: &mut Text, factor: &FactorSummary, unit: Unit) {
    let means = factor.levels.iter().filter_map(|l| l.estimate.as_ref()).map(|e| e.mean);
    let scale = Scale::common(unit, means);
    let show = |value: f64, half_width| rounded(value, half_width, unit, scale).text(true);
    let mean = factor.levels.iter().map(|l| match &l.estimate {
        Some(e) => show(e.mean, e.half_width),
        None => "no run counts".into(),
    });
    let mean = mean.collect();
    let differences = factor.levels.iter().enumerate().map(|(i, l)| match &l.against_base {
        Some(c) => show(c.difference, c.half_width),
        None if i == 0 => "(base)".into(),
        None => "-".into(),
    });
    let differences = differences.collect();
    let relative =
        factor.levels.iter().map(|l| l.against_base.as_ref().and_then(relative).unwrap_or_default());
    let relative = relative.collect();
    let verdicts = factor.levels.iter().map(|l| l.against_base.as_ref().map_or(String::new(), verdict));
    let verdicts = verdicts.collect();
    text.table(
        vec![
            Column::text(&factor.factor, factor.levels.iter().map(|l| l.level.clone()).collect()),
            Column::number("mean", mean, 0),
            Column::number("against base", differences, 0),
            Column::number("relative", relative, 1),
            Column::text("verdict", verdicts),
        ],
        &[],
    );
}

fn relative(contrast: &ContrastSummary) -> Option<String> {
    Some(format!("{:+.1} %", contrast.relative? * 100.0))
}

/// Whether a level differs from the base, in words that do not claim too much.
pub(crate) fn verdict(contrast: &ContrastSummary) -> String {
    match (contrast.told_apart, contrast.difference > 0.0) {
        (Some(true), true) => "higher".into(),
        (Some(true), false) => "lower".into(),
        (Some(false), _) => "cannot be told apart from noise".into(),
        (None, _) => "not known: one run, no interval".into(),
    }
}

/// What the intervals of level comparisons are.
pub(crate) fn comparison_note(confidence: f64) -> String {
    format!(
        "±: {} Welch interval. Each comparison stands for itself: with many of them, some intervals miss by chance.",
        format::percent(confidence)
    )
}
