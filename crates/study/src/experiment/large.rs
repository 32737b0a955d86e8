//! Large balanced two-level designs, analysed by the fast transform: 2^20 treatments have as many effects.

use benchmaster_design::term::{self, letter};
use benchmaster_stats::factorial::{FactorialEffects, Leverage, effects_flat};
use benchmaster_stats::lenth::{Lenth, lenth};
use benchmaster_stats::t_two_sided_p;
use benchmaster_stats::transform::WIDE_SPREAD;

use super::estimate::{around, lenth_summary};
use super::{
    AnovaLine, AnovaTable, Asked, Cube, CubeCorner, DesignSummary, ErrorKind, ErrorSummary, Experiment,
    ExperimentError, FactorCoding, InteractionMeans, LeftOut, LevelMean, LevelMeans, MeanCell, Options,
    Prediction, Ranged, ResidualSummary, ScaleChoice, ScaleUsed, TableFactor, TermEstimate, Transform, words,
};

/// Runs by columns: what a [`super::Table`] has by rows, for very many runs without blocks, plots and centre points.
#[derive(Debug, Clone, PartialEq)]
pub struct Columns {
    /// Name of the response.
    pub response: String,
    /// Factors, lettered in this order.
    pub factors: Vec<TableFactor>,
    /// The treatment of every run: bit j is the number of the level of factor j.
    pub treatments: Vec<u32>,
    /// The response of every run.
    pub values: Vec<f64>,
    /// Runs that do not count; nothing of them is in the columns.
    pub left_out: Vec<LeftOut>,
}

/// Factors from which on a full two-level design is analysed by the transform: least squares would take too long.
const FROM_FACTORS: usize = 10;

/// Analyses a large full two-level design in which every treatment has equally many runs. `None` for all others, which are
/// left to [`super::analyze`], and when terms are to be left out of the model.
///
/// # Errors
/// As [`super::analyze`].
pub fn analyze_large(columns: &Columns, options: &Options) -> Option<Result<Experiment, ExperimentError>> {
    let factors = columns.factors.len();
    let whole = options.terms.is_none()
        && options.max_order.is_none_or(|o| o as usize >= factors)
        && !options.reduced;
    let two_level = columns.factors.iter().all(|f| f.levels.len() == 2);
    if !whole || !two_level || !(FROM_FACTORS..=24).contains(&factors) {
        return None;
    }
    let cells = 1usize << factors;
    let replicates = columns.values.len() / cells;
    if replicates == 0 || columns.values.len() != cells * replicates {
        return None;
    }
    // Cells in standard order, the first factor fastest.
    let mut values = vec![0.0; columns.values.len()];
    let mut filled = vec![0u32; cells];
    for (&value, &treatment) in columns.values.iter().zip(&columns.treatments) {
        let cell = treatment as usize & (cells - 1);
        let place = filled[cell] as usize;
        if place == replicates {
            return None;
        }
        values[cell * replicates + place] = value;
        filled[cell] += 1;
    }
    Some(analyze(columns, options, values, replicates))
}

struct Found<'a> {
    columns: &'a Columns,
    effects: FactorialEffects,
    lenth: Option<Lenth>,
    log: bool,
    half_width: Option<f64>,
}

fn analyze(
    columns: &Columns,
    options: &Options,
    mut values: Vec<f64>,
    replicates: usize,
) -> Result<Experiment, ExperimentError> {
    let scale = scale(columns, options)?;
    let log = scale.used == ScaleUsed::Log;
    if log {
        values.iter_mut().for_each(|y| *y = y.ln());
    }
    let effects = effects_flat(&values, replicates, options.confidence)?;
    drop(values);
    let lenth = match effects.df {
        0 => {
            let sizes: Vec<f64> = effects.terms.iter().skip(1).map(|e| e.q).collect();
            Some(lenth(&sizes, options.confidence)?)
        }
        _ => None,
    };
    let half_width = effects.terms[0].half_width.or(lenth.map(|l| l.me));
    let found = Found { columns, effects, lenth, log, half_width };
    let mut experiment = found.experiment(options, scale)?;
    experiment.sentences = words::sentences(&experiment);
    Ok(experiment)
}

/// The rule for large designs looks at the span of the responses alone.
fn scale(columns: &Columns, options: &Options) -> Result<ScaleChoice, ExperimentError> {
    let ends = |(l, h): (f64, f64), &y: &f64| (l.min(y), h.max(y));
    let (low, high) = columns.values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), ends);
    let spread = (low > 0.0).then(|| high / low);
    let wide = spread.is_some_and(|spread| spread > WIDE_SPREAD);
    let (used, asked) = match options.transform {
        Transform::Auto if wide => (ScaleUsed::Log, false),
        Transform::Auto => (ScaleUsed::Identity, false),
        Transform::None => (ScaleUsed::Identity, true),
        Transform::Log => (ScaleUsed::Log, true),
    };
    if used == ScaleUsed::Log && low <= 0.0 {
        return Err(ExperimentError::NoLogarithm { response: columns.response.clone(), value: low });
    }
    let reason = match spread {
        Some(spread) => format!(
            "the largest response is {spread:.1} times the smallest ({} {WIDE_SPREAD}, the only rule for so many treatments)",
            if wide { "more than" } else { "not more than" }
        ),
        None => "a response of 0 or less has no logarithm".into(),
    };
    Ok(ScaleChoice {
        used,
        asked,
        reasons: vec![reason],
        box_cox: vec![],
        box_cox_best: None,
        box_cox_plausible: vec![],
        spread,
    })
}

impl Found<'_> {
    fn back(&self, value: f64) -> f64 {
        if self.log { value.exp() } else { value }
    }

    fn q(&self, mask: u64) -> f64 {
        self.effects.terms[mask as usize].q
    }

    fn name(&self, mask: u64) -> String {
        let names: Vec<&str> =
            term::factors(mask).map(|f| self.columns.factors[f as usize].name.as_str()).collect();
        if names.is_empty() { "mean".into() } else { names.join(" × ") }
    }

    fn estimate(&self, mask: u64) -> TermEstimate {
        let own = &self.effects.terms[mask as usize];
        let is_mean = mask == 0;
        let lenth = self.lenth.filter(|_| !is_mean);
        let standard_error = self.effects.s_q.or(lenth.map(|l| l.pse));
        let half_width = own.half_width.or(lenth.map(|l| l.me));
        let t = standard_error.filter(|&s| s > 0.0).map(|s| own.q / s);
        let df = lenth.map_or(self.effects.df as f64, |l| l.df);
        let interval = around(own.q, half_width);
        let factor = if is_mean { 1.0 } else { 2.0 };
        let scaled = |v: f64| factor * v;
        TermEstimate {
            term: term::letters(mask),
            name: self.name(mask),
            order: mask.count_ones(),
            contrast: String::new(),
            df: self.effects.df as u32,
            half_effect: (!is_mean).then_some(own.q),
            effect: (!is_mean).then_some(2.0 * own.q),
            coefficient: own.q,
            standard_error,
            half_width,
            interval,
            effect_interval: interval.filter(|_| !is_mean).map(|i| i.map(scaled)),
            ratio: self.log.then(|| Ranged {
                value: scaled(own.q).exp(),
                interval: interval.map(|i| i.map(|v| scaled(v).exp())),
            }),
            t,
            p: t.map(|t| t_two_sided_p(t, df)),
            p_holm: None,
            sum_of_squares: own.sum_of_squares,
            variation_percent: own.percent,
            significant: half_width.map(|h| own.q.abs() > h),
            aliased_with: vec![],
        }
    }

    fn experiment(&self, options: &Options, scale: ScaleChoice) -> Result<Experiment, ExperimentError> {
        let (effects, columns) = (&self.effects, self.columns);
        let total = effects.terms.len() - 1;
        let mut largest: Vec<u64> = (1..=total as u64).collect();
        let by_size = |a: &u64, b: &u64| self.q(*b).abs().total_cmp(&self.q(*a).abs());
        if total > Experiment::MOST_EFFECTS {
            largest.select_nth_unstable_by(Experiment::MOST_EFFECTS, by_size);
            largest.truncate(Experiment::MOST_EFFECTS);
        }
        largest.sort_by(by_size);
        let mut listed: Vec<_> = largest.iter().map(|&mask| self.estimate(mask)).collect();
        // Holm's correction over all effects: the largest have the smallest p values.
        let mut before: f64 = 0.0;
        for (place, effect) in listed.iter_mut().enumerate() {
            effect.p_holm = effect.p.map(|p| (p * (total - place) as f64).min(1.0).max(before));
            before = effect.p_holm.unwrap_or(before);
        }
        let replicates = effects.replicates;
        Ok(Experiment {
            response: columns.response.clone(),
            unit: None,
            runs: columns.values.len(),
            left_out: columns.left_out.clone(),
            treatments: total + 1,
            replicates: (replicates, replicates),
            balanced: true,
            confidence: options.confidence,
            factors: columns.factors.iter().enumerate().map(|(i, factor)| coding(i, factor)).collect(),
            design: DesignSummary {
                kind: "full",
                full_treatments: total as u64 + 1,
                generators: vec![],
                defining_words: vec![],
                resolution: None,
                blocks: 0,
                whole_plots: 0,
                centre_points: 0,
            },
            scale,
            mean: self.estimate(0),
            effects_total: total,
            anova: self.anova(&listed),
            error: self.error(),
            lenth: self.lenth.as_ref().map(lenth_summary),
            aliases: None,
            not_separable: vec![],
            reduced: None,
            lack_of_fit: None,
            curvature: None,
            residuals: ResidualSummary {
                runs: vec![],
                runs_total: columns.values.len(),
                checks: vec![],
                no_checks: Some("there are too many runs to be looked at one by one".into()),
            },
            groups: None,
            main_effects: (0..columns.factors.len()).map(|factor| self.level_means(factor)).collect(),
            interactions: self.interactions(),
            cube: self.cube(&largest),
            predictions: options.predictions.iter().map(|a| self.predict(a)).collect::<Result<_, _>>()?,
            effects: listed,
            sentences: vec![],
        })
    }

    fn anova(&self, listed: &[TermEstimate]) -> AnovaTable {
        let effects = &self.effects;
        let mse = effects.s_e.map(|s| s * s);
        let line = |kind: &'static str, df: usize, sum: f64| AnovaLine {
            kind,
            term: String::new(),
            name: kind.into(),
            df: df as u32,
            sum_of_squares: sum,
            mean_square: (df > 0 && kind != "total").then(|| sum / df as f64),
            f: None,
            error_df: None,
            p: None,
            variation_percent: (effects.sst > 0.0).then(|| 100.0 * sum / effects.sst),
            omega_squared: None,
        };
        let mut lines: Vec<_> = listed
            .iter()
            .map(|effect| AnovaLine {
                term: effect.term.clone(),
                name: effect.name.clone(),
                f: mse.filter(|&mse| mse > 0.0).map(|mse| effect.sum_of_squares / mse),
                error_df: mse.map(|_| effects.df as u32),
                p: mse.and(effect.p),
                omega_squared: mse.map(|mse| (effect.sum_of_squares - mse) / (effects.sst + mse)),
                ..line("term", 1, effect.sum_of_squares)
            })
            .collect();
        lines.push(line("error", effects.df, effects.sse));
        lines.push(line("total", self.columns.values.len() - 1, effects.sst));
        AnovaTable {
            sums_of_squares: "III",
            kind_matters: false,
            lines,
            terms_total: effects.terms.len() - 1,
        }
    }

    fn error(&self) -> ErrorSummary {
        let effects = &self.effects;
        let explained = (effects.sst > 0.0).then(|| 1.0 - effects.sse / effects.sst);
        let total = (self.columns.values.len() - 1) as f64;
        ErrorSummary {
            kind: if effects.df > 0 { ErrorKind::Replicates } else { ErrorKind::Lenth },
            df: effects.df as u32,
            s_e: effects.s_e,
            s_q: effects.s_q,
            sse: effects.sse,
            sst: effects.sst,
            ssy: effects.ssy,
            percent: effects.percent_error,
            r_squared: explained,
            r_squared_adjusted: effects
                .s_e
                .filter(|_| effects.sst > 0.0)
                .map(|s| 1.0 - s * s / (effects.sst / total)),
            whole_plot: None,
            pooled: vec![],
            no_interval: None,
        }
    }

    /// The mean at some levels, averaged over all others: every term among these factors has its sign, all others vanish.
    fn at(&self, levels: &[(usize, u32)]) -> MeanCell {
        let own = levels.iter().fold(0u64, |mask, (factor, _)| mask | 1 << factor);
        let low =
            levels.iter().filter(|(_, level)| *level == 0).fold(0u64, |mask, (factor, _)| mask | 1 << factor);
        let (mut subset, mut mean, mut terms) = (own, 0.0, 0);
        loop {
            let sign = if (subset & low).count_ones() % 2 == 0 { 1.0 } else { -1.0 };
            mean += sign * self.q(subset);
            terms += 1;
            if subset == 0 {
                break;
            }
            subset = (subset - 1) & own;
        }
        let half = self.half_width.filter(|_| self.effects.df > 0).map(|h| h * f64::from(terms).sqrt());
        MeanCell {
            n: self.columns.values.len() >> levels.len(),
            mean: Some(self.back(mean)),
            interval: around(mean, half).map(|i| i.map(|v| self.back(v))),
        }
    }

    fn level_means(&self, factor: usize) -> LevelMeans {
        let own = &self.columns.factors[factor];
        let effect = self.estimate(1 << factor);
        let levels = (0..2u32).map(|level| {
            let sign = if level == 0 { -1.0 } else { 1.0 };
            LevelMean {
                level: own.levels[level as usize].clone(),
                value: own.values.as_ref().and_then(|v| v.get(level as usize).copied()),
                cell: self.at(&[(factor, level)]),
                effect: Some(sign * effect.coefficient),
                effect_standard_error: effect.standard_error,
                effect_interval: around(sign * effect.coefficient, effect.half_width),
                against_base: (level == 1).then(|| Ranged {
                    value: self.back(2.0 * effect.coefficient),
                    interval: effect.effect_interval.map(|i| i.map(|v| self.back(v))),
                }),
            }
        });
        LevelMeans { factor: own.name.clone(), letter: letter(factor), levels: levels.collect() }
    }

    fn interactions(&self) -> Vec<InteractionMeans> {
        let count = self.columns.factors.len();
        let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
        let mut pairs: Vec<_> = pairs.collect();
        let size = |(a, b): &(usize, usize)| self.q(1 << a | 1 << b).abs();
        pairs.sort_by(|x, y| size(y).total_cmp(&size(x)));
        pairs.truncate(Experiment::MOST_INTERACTIONS);
        let one = |(a, b): (usize, usize)| {
            let effect = self.estimate(1 << a | 1 << b);
            let factor = |f: usize| &self.columns.factors[f];
            InteractionMeans {
                factors: [factor(a).name.clone(), factor(b).name.clone()],
                letters: [letter(a), letter(b)],
                first: factor(a).levels.clone(),
                second: factor(b).levels.clone(),
                cells: (0..2).map(|i| (0..2).map(|j| self.at(&[(a, i), (b, j)])).collect()).collect(),
                p: effect.p,
                significant: effect.significant,
            }
        };
        pairs.into_iter().map(one).collect()
    }

    fn cube(&self, largest: &[u64]) -> Option<Cube> {
        let count = self.columns.factors.len();
        let mut main: Vec<usize> =
            largest.iter().filter(|m| m.count_ones() == 1).map(|m| m.trailing_zeros() as usize).collect();
        main.extend((0..count).filter(|f| !main.contains(f)).collect::<Vec<_>>());
        let mut chosen = main.get(..3)?.to_vec();
        chosen.sort_unstable();
        let [a, b, c] = chosen[..] else { return None };
        let corner = |corner: u32| {
            let levels = [corner & 1, corner >> 1 & 1, corner >> 2];
            CubeCorner { levels, cell: self.at(&[(a, levels[0]), (b, levels[1]), (c, levels[2])]) }
        };
        let factor = |f: usize| &self.columns.factors[f];
        Some(Cube {
            factors: [a, b, c].map(|f| factor(f).name.clone()),
            levels: [a, b, c].map(|f| [factor(f).levels[0].clone(), factor(f).levels[1].clone()]),
            corners: (0..8).map(corner).collect(),
        })
    }

    fn predict(&self, asked: &Asked) -> Result<Prediction, ExperimentError> {
        let (mut cell, mut names) = (0u32, Vec::new());
        for (number, factor) in self.columns.factors.iter().enumerate() {
            let found = asked.levels.iter().find(|(name, _)| *name == factor.name);
            let (_, level) = found.ok_or_else(|| ExperimentError::OpenPrediction(factor.name.clone()))?;
            let place = factor.levels.iter().position(|l| l == level).ok_or_else(|| {
                ExperimentError::UnknownLevel {
                    factor: factor.name.clone(),
                    level: level.clone(),
                    levels: factor.levels.clone(),
                }
            })?;
            cell |= (place as u32) << number;
            names.push((factor.name.as_str(), level.clone()));
        }
        let effects = &self.effects;
        let sign = |mask: u32| if (mask & !cell).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
        let value: f64 = effects.terms.iter().map(|e| sign(e.term) * e.q).sum();
        let interval = |future, leverage| -> Result<Option<[f64; 2]>, ExperimentError> {
            let found = effects.predict(cell, future, leverage, effects.confidence)?;
            Ok(found.and_then(|f| around(f.value, Some(f.half_width))).map(|i| i.map(|v| self.back(v))))
        };
        Ok(Prediction {
            label: names.iter().map(|(f, l)| format!("{f}={l}")).collect::<Vec<_>>().join(" "),
            levels: names.into_iter().map(|(_, level)| level).collect(),
            runs: effects.replicates,
            value: self.back(value),
            interval: interval(None, Leverage::LeastSquares)?,
            future_runs: asked.future_runs,
            future_interval: match asked.future_runs {
                Some(m) => interval(Some(m), Leverage::LeastSquares)?,
                None => None,
            },
            jain_interval: interval(asked.future_runs, Leverage::Jain)?,
            asked: true,
        })
    }
}

fn coding(number: usize, factor: &TableFactor) -> FactorCoding {
    FactorCoding {
        letter: letter(number),
        name: factor.name.clone(),
        levels: factor.levels.clone(),
        values: factor.values.clone(),
        coding: "two-level",
        contrasts: vec![String::new()],
        codes: vec![vec![-1.0, 1.0]],
        hard_to_change: factor.hard_to_change,
    }
}
