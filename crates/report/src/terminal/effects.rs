//! How the factors change a response: of a study, and of any table.

use benchmaster_analysis::experiment::{AnovaLine, Experiment, Prediction, Sample, TermEstimate};
use benchmaster_analysis::{Analysis, ContrastSummary, Effects, FactorSummary, LevelsSummary};
use benchmaster_record::results::Unit;

use super::TextOptions;
use super::grid::{Column, Text};
use crate::format::{self, Scale, rounded};

/// Rows of a table of effects in the terminal; the JSON has more.
const MOST_ROWS: usize = 40;

pub(super) fn effects(text: &mut Text, analysis: &Analysis) {
    text.section(&format!("effects on {}", analysis.effects_on));
    match &analysis.effects {
        Effects::None { reason } => text.wrapped("", &format!("None can be told: {reason}.")),
        Effects::Experiment(found) => experiment(text, found),
        Effects::OneAtATime(found) => levels_of(text, found, analysis),
    }
    if let Some(found) = &analysis.levels {
        text.section("level means");
        levels_of(text, found, analysis);
    }
}

/// The effects in a table of runs that is no study's.
pub fn experiment_text(title: &str, notes: &[String], found: &Experiment, options: &TextOptions) -> String {
    let mut text = Text::new(options);
    text.bold_line(&format!("{title}: effects on {}", found.response));
    notes.iter().for_each(|note| text.wrapped("  ", note));
    experiment(&mut text, found);
    text.section("level means");
    for factor in &found.main_effects {
        let unit = found.unit.unwrap_or(Unit::Count);
        let ratio = found.is_log();
        let mean = factor.levels.iter().map(|l| ranged(l.cell.mean, l.cell.interval, unit)).collect();
        let against = factor.levels.iter().map(|l| match l.against_base {
            None => "(base)".into(),
            Some(r) if ratio => format!("× {}", ranged(Some(r.value), r.interval, Unit::Count)),
            Some(r) => ranged(Some(r.value), r.interval, unit),
        });
        text.table(
            vec![
                Column::text(&factor.factor, factor.levels.iter().map(|l| l.level.clone()).collect()),
                Column::number("n", factor.levels.iter().map(|l| l.cell.n.to_string()).collect(), 2),
                Column::number("mean", mean, 0),
                Column::number("against base", against.collect(), 0),
            ],
            &[],
        );
    }
    text.finish()
}

/// What is known of one sample.
pub fn sample_text(
    title: &str,
    response: &str,
    notes: &[String],
    found: &Sample,
    options: &TextOptions,
) -> String {
    let mut text = Text::new(options);
    text.bold_line(&format!("{title}: {response}"));
    for line in notes.iter().chain(&found.sentences) {
        text.wrapped("  ", line);
    }
    text.finish()
}

fn experiment(text: &mut Text, found: &Experiment) {
    found.sentences.iter().for_each(|sentence| text.wrapped("  ", sentence));
    for factor in &found.factors {
        let levels = match (&factor.levels[..], factor.coding) {
            ([low, high], "two-level") => format!("low (-1) {low}, high (+1) {high}"),
            (levels, _) => levels.join(", "),
        };
        text.wrapped("  ", &format!("  {} {}: {levels}", factor.letter, factor.name));
    }
    table_of_effects(text, found);
    table_of_variation(text, found);
    let asked: Vec<&Prediction> = found.predictions.iter().filter(|p| p.asked).collect();
    asked.iter().for_each(|prediction| text.wrapped("  ", &prediction_line(prediction, found)));
    if let Some(reduced) = &found.reduced {
        let equation =
            reduced.equation.as_ref().map(|e| format!(": {e}, in codes -1/+1")).unwrap_or_default();
        text.wrapped("  ", &format!("Reduced model of {}{equation}.", reduced.terms.join(", ")));
    }
    for check in found.residuals.checks.iter().filter(|check| check.fine) {
        text.wrapped("  ", &check.sentence);
    }
    if let Some(reason) = &found.residuals.no_checks {
        text.wrapped("  ", &format!("Residuals cannot be checked: {reason}."));
    }
}

fn table_of_effects(text: &mut Text, found: &Experiment) {
    let shown = &found.effects[..found.effects.len().min(MOST_ROWS)];
    let log = found.is_log();
    let unit = if log { Unit::Count } else { found.unit.unwrap_or(Unit::Count) };
    let scale = Scale::common(unit, shown.iter().map(|e| e.coefficient));
    let two_level = shown.iter().all(|e| e.half_effect.is_some());
    let coefficient = |e: &TermEstimate| rounded(e.coefficient, e.half_width, unit, scale).text(true);
    let full = |e: &TermEstimate| {
        e.effect.map_or(String::new(), |full| {
            rounded(full, e.half_width.map(|h| 2.0 * h), unit, scale).text(true)
        })
    };
    let mut columns = vec![
        Column::text("", shown.iter().map(label).collect()),
        Column::text("term", shown.iter().map(|e| e.name.clone()).collect()),
        Column::number(
            if two_level { "half effect q" } else { "coefficient" },
            shown.iter().map(coefficient).collect(),
            0,
        ),
        Column::number("full effect 2q", shown.iter().map(full).collect(), 3),
    ];
    if log {
        let ratio = |e: &TermEstimate| {
            e.ratio.map_or(String::new(), |r| format!("× {}", ranged(Some(r.value), r.interval, Unit::Count)))
        };
        columns.push(Column::number("ratio low to high", shown.iter().map(ratio).collect(), 1));
    }
    columns.push(Column::number("p", shown.iter().map(|e| p_cell(e.p)).collect(), 2));
    columns.push(Column::number("variation", shown.iter().map(|e| share(e.variation_percent)).collect(), 1));
    columns.push(Column::text("differs from 0", shown.iter().map(|e| differs(e).into()).collect()));
    text.table(columns, &[]);
    if found.effects_total > shown.len() {
        text.wrapped("", &format!("The {} largest of {} effects.", shown.len(), found.effects_total));
    }
    let log = if log { " Effects are of the natural logarithm of the response." } else { "" };
    text.wrapped(
        "",
        &format!(
            "Half effect q: from low to high the response changes by the full effect 2q.{log} ±: {} interval{}.",
            format::percent(found.confidence),
            if found.lenth.is_some() && found.error.df == 0 { " by Lenth's margin of error" } else { "" }
        ),
    );
}

fn label(effect: &TermEstimate) -> String {
    match effect.contrast.is_empty() {
        true => effect.term.clone(),
        false => format!("{} {}", effect.term, effect.contrast),
    }
}

fn table_of_variation(text: &mut Text, found: &Experiment) {
    // Where every term has one contrast, the effects have said it all.
    let several = found.effects.iter().any(|e| !e.contrast.is_empty());
    let lines: Vec<&AnovaLine> =
        found.anova.lines.iter().filter(|line| several || line.kind != "term").take(MOST_ROWS).collect();
    let number = |value: Option<f64>| value.map_or(String::new(), |v| format!("{v:.4}"));
    let size = |value: f64| rounded(value, None, Unit::Count, None).text(true);
    text.table(
        vec![
            Column::text("variation", lines.iter().map(|l| l.name.clone()).collect()),
            Column::number("df", lines.iter().map(|l| l.df.to_string()).collect(), 0),
            Column::number("sum of squares", lines.iter().map(|l| size(l.sum_of_squares)).collect(), 1),
            Column::number(
                "mean square",
                lines.iter().map(|l| l.mean_square.map_or(String::new(), size)).collect(),
                2,
            ),
            Column::number("F", lines.iter().map(|l| number(l.f)).collect(), 0),
            Column::number("p", lines.iter().map(|l| p_cell(l.p)).collect(), 0),
            Column::number("share", lines.iter().map(|l| share(l.variation_percent)).collect(), 1),
        ],
        &[],
    );
    if found.anova.kind_matters {
        let kind = found.anova.sums_of_squares;
        text.wrapped(
            "",
            &format!("Sums of squares of type {kind}: the data are not balanced, so shares do not add up."),
        );
    }
}

fn prediction_line(prediction: &Prediction, found: &Experiment) -> String {
    let unit = found.unit.unwrap_or(Unit::Count);
    let mean = ranged(Some(prediction.value), prediction.interval, unit);
    let further = match (prediction.future_runs, prediction.future_interval) {
        (Some(m), Some([low, high])) => {
            let half = (high - low) / 2.0;
            let end = |v: f64| rounded(v, Some(half), unit, Some(Scale::of(unit, high))).value;
            format!(
                "; the mean of {} is expected between {} and {}",
                format::plural(m as usize, "further run"),
                end(low),
                end(high)
            )
        }
        _ => String::new(),
    };
    format!("Predicted at {}: {mean}{further}.", prediction.label)
}

/// A value with the ends of its interval: `12.3 (11.0 to 13.8)`.
pub(crate) fn ranged(value: Option<f64>, interval: Option<[f64; 2]>, unit: Unit) -> String {
    let Some(value) = value else { return "-".into() };
    let Some([low, high]) = interval.filter(|[low, high]| low.is_finite() && high.is_finite()) else {
        return rounded(value, None, unit, None).text(true);
    };
    let half = Some((high - low) / 2.0);
    let scale = Some(Scale::of(unit, value));
    let value = rounded(value, half, unit, scale);
    let end = |v: f64| rounded(v, half, unit, scale).value;
    let name = if value.unit.is_empty() { String::new() } else { format!(" {}", value.unit) };
    format!("{} ({} to {}){name}", value.value, end(low), end(high))
}

/// Whether an effect differs from 0, in words that do not claim too much.
pub(crate) fn differs(effect: &TermEstimate) -> &'static str {
    match effect.significant {
        Some(true) => "yes",
        Some(false) => "cannot be told apart from noise",
        None => "not known (no interval)",
    }
}

/// A p value in a cell.
pub(crate) fn p_cell(p: Option<f64>) -> String {
    match p {
        None => String::new(),
        Some(p) if p < 0.0001 => "<0.0001".into(),
        Some(p) => format!("{p:.4}"),
    }
}

fn share(percent: Option<f64>) -> String {
    percent.map_or("-".into(), |p| format!("{p:.1} %"))
}

fn levels_of(text: &mut Text, found: &LevelsSummary, analysis: &Analysis) {
    text.wrapped("", &found.note);
    let unit = analysis.effects_unit.unwrap_or(Unit::Ratio);
    for factor in &found.factors {
        levels(text, factor, unit);
    }
    text.wrapped("", &comparison_note(analysis.confidence));
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
