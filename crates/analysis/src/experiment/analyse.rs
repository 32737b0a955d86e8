//! From a table to the experiment.

use benchmaster_design::term;
use benchmaster_stats::StatsError;
use benchmaster_stats::model::{self, Data, Fit, Term, contrasts, fit};
use benchmaster_stats::residual;
use benchmaster_stats::t_two_sided_p;
use benchmaster_stats::transform::{ScaleChoice as FoundScale, choose_scale};
use benchmaster_units::format;

use super::estimate::{Fitted, lenth_of, lenth_summary, p_text};
use super::prepare::Prepared;
use super::result::{
    BoxCoxPoint, DesignSummary, Experiment, FactorCoding, ReducedSummary, ResidualCheck, ResidualSummary,
    RunResidual, ScaleChoice, ScaleUsed, TestSummary,
};
use super::table::{ExperimentError, Options, Table, TableFactor, Transform};
use super::terms::{Shape, check_size, largest_order};
use super::{groups, words};

/// Analyses a table.
///
/// # Errors
/// A table without runs or without factors that vary, terms and levels that are not there, and responses that cannot be
/// analysed on the scale that was asked for.
pub fn analyze(table: &Table, options: &Options) -> Result<Experiment, ExperimentError> {
    let prepared = Prepared::new(table, options)?;
    let shape = Shape::of(&prepared)?;
    let terms = shape.terms(&prepared, options)?;
    check_size(&prepared, &terms)?;
    let (scale, data) = scaled(&prepared, &terms, options)?;
    let full = fit(&data, &terms, options.confidence)?;
    let log = scale.used == ScaleUsed::Log;

    let lenth = lenth_of(&full);
    let reduced = reduced(&data, &full, options.confidence)?;
    // What is shown is the model with all terms, unless the smaller one was asked for.
    let smaller = reduced.as_ref().filter(|_| options.reduced);
    let shown = smaller.map_or(&full, |reduced| &reduced.fit);
    let of = |fit| Fitted::new(&prepared, &shape, fit, scale.used, options.sums_of_squares);
    let fitted = of(shown);
    let lenth_shown = if smaller.is_some() { None } else { lenth };
    let (mean, effects) = fitted.coefficients(lenth_shown.as_ref());
    let mean = mean.ok_or(ExperimentError::NoRuns { response: table.response.clone() })?;
    let pooled = pooled(&prepared, &shape, &shown.terms, options)?;
    let reduced = reduced.as_ref().map(|found| reduced_summary(&of(&found.fit), found));
    let mut experiment = Experiment {
        response: table.response.clone(),
        unit: table.unit,
        runs: table.rows.len(),
        left_out: table.left_out.clone(),
        treatments: prepared.treatments.len(),
        replicates: prepared.replicates(),
        balanced: is_balanced(&prepared, &shape),
        confidence: options.confidence,
        factors: codings(&prepared),
        design: DesignSummary {
            block_deviation: shown.block_spread().map(|blocks| blocks.variance.max(0.0).sqrt()),
            ..shape.summary(&prepared)
        },
        mean,
        effects_total: effects.len(),
        anova: fitted.anova(),
        error: fitted.error(pooled, lenth_shown.as_ref()),
        lenth: lenth.as_ref().map(lenth_summary),
        aliases: shape.chains(&prepared, &shown.terms),
        not_separable: of(&full).not_separable(),
        reduced,
        lack_of_fit: fitted.lack_of_fit(),
        curvature: bend(shown, log),
        residuals: residuals(&prepared, shown, options.confidence),
        main_effects: fitted.level_means()?,
        interactions: fitted.interactions(&effects)?,
        cube: fitted.cube(&effects)?,
        predictions: fitted.predictions(&options.predictions)?,
        groups: groups::two_groups(&prepared, options.confidence),
        effects,
        scale,
        sentences: Vec::new(),
    };
    experiment.effects.truncate(Experiment::MOST_EFFECTS);
    experiment.sentences = words::sentences(&experiment);
    Ok(experiment)
}

/// The scale, and the runs on it.
fn scaled(
    prepared: &Prepared<'_>,
    terms: &[Term],
    options: &Options,
) -> Result<(ScaleChoice, Data), ExperimentError> {
    let data = &prepared.data;
    let FoundScale { log, reasons, spread, box_cox } = choose_scale(data, terms, options.confidence)?;
    let mut reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    let (used, asked) = match options.transform {
        Transform::Auto if log => (ScaleUsed::Log, false),
        Transform::Auto => (ScaleUsed::Identity, false),
        Transform::None => (ScaleUsed::Identity, true),
        Transform::Log => {
            if let Some(&value) = data.y.iter().find(|y| y.is_nan() || **y <= 0.0) {
                return Err(ExperimentError::NoLogarithm {
                    response: prepared.table.response.clone(),
                    value,
                });
            }
            (ScaleUsed::Log, true)
        }
    };
    if asked {
        let name = if used == ScaleUsed::Log { "the log scale" } else { "the scale as measured" };
        let rule = if log { "the log scale" } else { "the scale as measured" };
        reasons.insert(0, format!("{name} was asked for; the rule would choose {rule}"));
    }
    let choice = ScaleChoice {
        used,
        asked,
        reasons,
        box_cox_best: box_cox.as_ref().map(|b| b.best),
        box_cox_plausible: box_cox.as_ref().map(|b| b.plausible.clone()).unwrap_or_default(),
        box_cox: box_cox
            .iter()
            .flat_map(|b| &b.profile)
            .map(|&(lambda, log_likelihood)| BoxCoxPoint { lambda, log_likelihood })
            .collect(),
        spread,
    };
    let mut data = data.clone();
    if used == ScaleUsed::Log {
        data.y.iter_mut().for_each(|y| *y = y.ln());
    }
    Ok((choice, data))
}

/// The model of the terms that matter; `None` when all or none do, or none is known.
fn reduced(data: &Data, full: &Fit, confidence: f64) -> Result<Option<model::Reduced>, StatsError> {
    let terms: Vec<Term> = full.terms.iter().skip(1).cloned().collect();
    let found = model::reduce(data, &terms, confidence)?;
    let judged = found.rules.iter().any(|(_, rule)| *rule != model::Rule::None);
    Ok(Some(found).filter(|found| judged && !found.dropped.is_empty() && found.fit.terms.len() > 1))
}

fn reduced_summary(fitted: &Fitted<'_>, found: &model::Reduced) -> ReducedSummary {
    let (prepared, fit) = (fitted.prepared, fitted.fit);
    let (mean, effects) = fitted.coefficients(None);
    let kept: Vec<&Term> = fit.terms.iter().skip(1).collect();
    let coefficients: Vec<_> = mean.into_iter().chain(effects).collect();
    let two_level = prepared.data.factors.iter().all(|f| f.levels == 2);
    ReducedSummary {
        terms: kept.iter().map(|t| prepared.letters(t)).collect(),
        names: kept.iter().map(|t| prepared.name(t)).collect(),
        by_hierarchy: found.by_hierarchy.iter().map(|t| prepared.letters(t)).collect(),
        dropped: found.dropped.iter().map(|t| prepared.letters(t)).collect(),
        df: fit.errors.last().map_or(0, |e| e.df as u32),
        s_e: fit.s_e,
        sse: fit.sse,
        r_squared: fit.r_squared,
        lack_of_fit: fitted.lack_of_fit(),
        equation: two_level.then(|| words::equation(fitted.scale, &coefficients)),
        coefficients,
    }
}

/// Terms that could be estimated, but were taken as noise.
fn pooled(
    prepared: &Prepared<'_>,
    shape: &Shape,
    shown: &[Term],
    options: &Options,
) -> Result<Vec<String>, ExperimentError> {
    let all = shape.terms(prepared, &Options { terms: None, max_order: None, ..options.clone() })?;
    let left = all.iter().filter(|term| !shown.contains(term));
    let mut pooled: Vec<_> = left.take(Experiment::MOST_EFFECTS).map(|term| prepared.letters(term)).collect();
    let order = largest_order(prepared);
    if shape.full && order < prepared.active.len() {
        pooled.push(format!("interactions of {} and more factors", order + 1));
    }
    Ok(pooled)
}

fn is_balanced(prepared: &Prepared<'_>, shape: &Shape) -> bool {
    let (fewest, most) = prepared.replicates();
    let design = shape.summary(prepared).kind;
    fewest == most && design != "irregular"
}

fn codings(prepared: &Prepared<'_>) -> Vec<FactorCoding> {
    let one = |(number, factor): (usize, &TableFactor)| {
        let inner = prepared.active.iter().position(|&active| active == number);
        let parts = inner.map(|inner| contrasts(&prepared.data.factors[inner])).unwrap_or_default();
        let names = inner.map(|inner| {
            parts.iter().map(|(part, _)| prepared.contrast(&vec![inner], &[*part])).collect::<Vec<_>>()
        });
        FactorCoding {
            letter: term::letter(number),
            name: factor.name.clone(),
            levels: inner.map_or_else(|| factor.levels.clone(), |inner| prepared.level_names(inner)),
            values: match inner {
                Some(inner) => factor.values.as_ref().map(|values| {
                    prepared.present[inner].iter().filter_map(|&l| values.get(l as usize).copied()).collect()
                }),
                None => factor.values.clone(),
            },
            coding: match parts.first() {
                None => "not varied",
                Some((model::Contrast::TwoLevel, _)) => "two-level",
                Some((model::Contrast::Polynomial(_), _)) => "polynomial",
                Some((model::Contrast::Level(_), _)) => "sum-to-zero",
            },
            codes: parts.into_iter().map(|(_, codes)| codes).collect(),
            contrasts: names.unwrap_or_default(),
            hard_to_change: factor.hard_to_change,
        }
    };
    prepared.table.factors.iter().enumerate().map(one).collect()
}

/// Whether the response bends between low and high: centre points against the corners.
fn bend(fit: &Fit, log: bool) -> Option<TestSummary> {
    let found = fit.curvature()?;
    let (standard_error, half_width, df) =
        (found.standard_error.filter(|&s| s > 0.0)?, found.half_width?, found.df?);
    let t = found.value / standard_error;
    let p = t_two_sided_p(t, df);
    let scale = if log { ", on the log scale" } else { "" };
    let (seen, follows) = if p < 1.0 - fit.confidence {
        ("The response bends", "; a third level of each factor would show where")
    } else {
        ("No bend is seen", "")
    };
    let sentence = format!(
        "{seen} between low and high: the corners differ from the centre points by {:.4} ± {half_width:.4}{scale} \
         (p {}){follows}.",
        found.value,
        p_text(p)
    );
    Some(TestSummary {
        estimate: found.value,
        standard_error,
        interval: [found.value - half_width, found.value + half_width],
        statistic: t,
        df,
        p,
        sentence,
    })
}

fn residuals(prepared: &Prepared<'_>, fit: &Fit, confidence: f64) -> ResidualSummary {
    let rows = &prepared.table.rows;
    let mut runs: Vec<RunResidual> = prepared
        .source
        .iter()
        .enumerate()
        .map(|(i, &row)| RunResidual {
            row,
            order: rows[row].order,
            response: fit.fitted[i] + fit.residuals[i],
            fitted: fit.fitted[i],
            residual: fit.residuals[i],
            leverage: fit.leverage[i],
        })
        .collect();
    let order: Option<Vec<f64>> =
        prepared.source.iter().map(|&row| rows[row].order.map(|o| o as f64)).collect();
    let mut found = vec![("normality", residual::normality(fit)), ("spread", residual::spread(fit))];
    if let Some(order) = &order {
        found.push(("drift", residual::drift(fit, order)));
    }
    let mut no_checks = None;
    let mut checks = Vec::new();
    // Where the order goes with a factor, nothing can be said about drift.
    let with_order = order.as_ref().and_then(|order| order_of(prepared, order, confidence));
    if with_order.is_some() {
        found.retain(|(name, check)| {
            *name != "drift" || check.as_ref().is_ok_and(|c| c.verdict == residual::Verdict::Suspicious)
        });
    }
    for (name, check) in found {
        match check {
            Ok(check) => checks.push(ResidualCheck {
                name,
                test: check.test.to_string(),
                statistic: check.statistic,
                p: check.p,
                fine: check.verdict == residual::Verdict::Unremarkable,
                sentence: check.to_string(),
            }),
            Err(problem) => no_checks = no_checks.or(Some(problem.to_string())),
        }
    }
    checks.extend(with_order);
    if order.is_some() {
        runs.sort_by_key(|run| run.order);
    }
    let runs_total = runs.len();
    runs.truncate(Experiment::MOST_RESIDUALS);
    ResidualSummary { runs, runs_total, no_checks: no_checks.filter(|_| checks.is_empty()), checks }
}

/// A check that fails when factors were changed in the order of the runs.
fn order_of(prepared: &Prepared<'_>, order: &[f64], confidence: f64) -> Option<ResidualCheck> {
    let found = residual::confounded_with_order(&prepared.data, order, confidence).unwrap_or_default();
    let p = found.iter().map(|confounded| confounded.p).reduce(f64::min)?;
    let one = |confounded: &residual::Confounded| {
        let name = prepared.factor_name(confounded.factor);
        format!("{name} ({:.0} % of its variation)", 100.0 * confounded.share)
    };
    let names: Vec<_> = found.iter().map(one).collect();
    Some(ResidualCheck {
        name: "order",
        test: "F of the run order".into(),
        statistic: found.iter().map(|confounded| confounded.share).sum(),
        p,
        fine: false,
        sentence: format!(
            "The order of the runs is confounded with {}, p {}: a drift in the course of the experiment would look like an \
             effect of {}, and nothing in these runs separates the two; run the treatments in random order.",
            format::list(&names),
            p_text(p),
            if names.len() == 1 { "it" } else { "these" }
        ),
    })
}
