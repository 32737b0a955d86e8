//! Means at levels, at pairs of levels and at the corners of a cube, and predictions.

use benchmaster_stats::StatsError;
use benchmaster_stats::model::{Estimate, Stratum, Term};

use super::estimate::{Fitted, around};
use super::ranged::Ranged;
use super::result::{
    Cube, CubeCorner, Experiment, InteractionMeans, LevelMean, LevelMeans, MeanCell, Prediction, ScaleUsed,
    TermEstimate,
};
use super::table::{ExperimentError, PredictionRequest};

impl Fitted<'_> {
    /// From the scale of the model to the unit of the response.
    fn back(&self, value: f64) -> f64 {
        if self.scale == ScaleUsed::Log { value.exp() } else { value }
    }

    fn back_interval(&self, estimate: &Estimate) -> Option<[f64; 2]> {
        around(estimate.value, estimate.half_width).map(|interval| interval.map(|end| self.back(end)))
    }

    /// The interval of a mean: where the unit is known, the response is a rate, a time or a count, and never below 0.
    fn mean_interval(&self, estimate: &Estimate) -> Option<[f64; 2]> {
        let least = if self.prepared.table.unit.is_some() { 0.0 } else { f64::NEG_INFINITY };
        self.back_interval(estimate).map(|[low, high]| [low.max(least.min(high)), high])
    }

    /// Means at the levels of every factor.
    pub(super) fn level_means(&self) -> Result<Vec<LevelMeans>, StatsError> {
        (0..self.prepared.active.len()).map(|factor| self.levels_of(factor)).collect()
    }

    fn levels_of(&self, factor: usize) -> Result<LevelMeans, StatsError> {
        let prepared = self.prepared;
        let values = prepared.data.factors[factor]
            .values
            .as_ref()
            .or_else(|| prepared.table.factors[prepared.active[factor]].values.as_ref());
        let numbers = &prepared.present[factor];
        let is_own = prepared.data.factors[factor].values.is_some();
        let count = numbers.len() as u32;
        let mean = self.fit.marginal_mean(&[])?;
        let own_terms: Vec<usize> = (0..self.fit.coefficients.len())
            .filter(|&c| self.fit.terms[self.fit.coefficients[c].term] == [factor])
            .collect();
        let weights = |level: u32, sign: f64| -> Vec<(usize, f64)> {
            let contrasts = benchmaster_stats::model::contrasts(&prepared.data.factors[factor]);
            let code = |c: usize| {
                let own = &self.fit.coefficients[c].parts[0];
                contrasts
                    .iter()
                    .find(|(contrast, _)| contrast == own)
                    .map_or(0.0, |(_, codes)| codes[level as usize])
            };
            own_terms.iter().map(|&c| (c, sign * code(c))).collect()
        };
        let mut levels = Vec::new();
        for level in 0..count {
            let n = prepared.data.rows.iter().filter(|row| row[factor] == level).count();
            let at = self.fit.marginal_mean(&[(factor, level)])?;
            let effect = self.fit.contrast(&weights(level, 1.0))?;
            let against: Vec<_> = weights(level, 1.0).into_iter().chain(weights(0, -1.0)).collect();
            let against = self.fit.contrast(&against)?;
            let difference =
                Ranged { value: self.back(against.value), interval: self.back_interval(&against) };
            levels.push(LevelMean {
                level: prepared.level_name(factor, level).to_owned(),
                value: values.and_then(|v| {
                    v.get(if is_own { level } else { numbers[level as usize] } as usize).copied()
                }),
                cell: MeanCell { n, mean: Some(self.back(at.value)), interval: self.mean_interval(&at) },
                effect: Some(at.value - mean.value),
                effect_standard_error: effect.standard_error,
                effect_interval: around(effect.value, effect.half_width),
                against_base: (level > 0).then_some(difference),
            });
        }
        let letters = prepared.letters(&vec![factor]);
        Ok(LevelMeans { factor: prepared.factor_name(factor).to_owned(), letter: letters, levels })
    }

    /// Means at pairs of levels, of the pairs of factors whose interaction explains most; all pairs when there are few.
    pub(super) fn interactions(&self, effects: &[TermEstimate]) -> Result<Vec<InteractionMeans>, StatsError> {
        let factors = self.prepared.active.len();
        let mut pairs: Vec<(f64, Term)> = Vec::new();
        for first in 0..factors {
            for second in first + 1..factors {
                let pair = vec![first, second];
                let letters = self.prepared.letters(&pair);
                let own = effects.iter().filter(|e| e.term == letters);
                pairs.push((own.map(|e| e.sum_of_squares).sum(), pair));
            }
        }
        pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
        pairs.truncate(Experiment::MOST_INTERACTIONS);
        pairs.into_iter().map(|(_, pair)| self.interaction(&pair)).collect()
    }

    fn interaction(&self, pair: &Term) -> Result<InteractionMeans, StatsError> {
        let prepared = self.prepared;
        let [a, b] = [pair[0], pair[1]];
        let size = |factor: usize| prepared.present[factor].len();
        let mut runs = vec![vec![0usize; size(b)]; size(a)];
        for row in &prepared.data.rows {
            // A centre point is at none of the levels.
            let cell = runs.get_mut(row[a] as usize).and_then(|line| line.get_mut(row[b] as usize));
            cell.into_iter().for_each(|n| *n += 1);
        }
        let mut cells = Vec::new();
        for (i, row) in runs.iter().enumerate() {
            let mut line = Vec::new();
            for (j, &n) in row.iter().enumerate() {
                let at = self.fit.marginal_mean(&[(a, i as u32), (b, j as u32)])?;
                let known = n > 0 || self.shape.full;
                line.push(MeanCell {
                    n,
                    mean: known.then(|| self.back(at.value)),
                    interval: self.mean_interval(&at).filter(|_| known),
                });
            }
            cells.push(line);
        }
        let place = self.fit.terms.iter().position(|term| term == pair);
        let decision = place.map(|place| self.judgement.terms[place]).unwrap_or_default();
        let letter = |factor: usize| prepared.letters(&vec![factor]);
        Ok(InteractionMeans {
            factors: [a, b].map(|f| prepared.factor_name(f).to_owned()),
            letters: [letter(a), letter(b)],
            first: prepared.level_names(a),
            second: prepared.level_names(b),
            cells,
            p: decision.p_family,
            significant: decision.matters,
        })
    }

    /// The corners of the three two-level factors that take part in most of the variation.
    pub(super) fn cube(&self, effects: &[TermEstimate]) -> Result<Option<Cube>, StatsError> {
        let prepared = self.prepared;
        let two_level = (0..prepared.active.len()).filter(|&f| prepared.data.factors[f].levels == 2);
        let mut ranked: Vec<(f64, usize)> = two_level
            .map(|factor| {
                let letter = prepared.letters(&vec![factor]);
                let own = effects.iter().filter(|e| e.order == 1 && e.term == letter);
                (own.map(|e| e.sum_of_squares).sum(), factor)
            })
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut chosen: Vec<usize> = ranked.into_iter().take(3).map(|(_, factor)| factor).collect();
        chosen.sort_unstable();
        let [a, b, c] = chosen[..] else { return Ok(None) };
        let mut corners = Vec::new();
        for corner in 0..8u32 {
            let levels = [corner & 1, corner >> 1 & 1, corner >> 2];
            let at = [(a, levels[0]), (b, levels[1]), (c, levels[2])];
            let n =
                prepared.data.rows.iter().filter(|row| at.iter().all(|(f, level)| row[*f] == *level)).count();
            let mean = self.fit.marginal_mean(&at)?;
            let known = n > 0;
            let cell = MeanCell {
                n,
                mean: known.then(|| self.back(mean.value)),
                interval: self.back_interval(&mean).filter(|_| known),
            };
            corners.push(CubeCorner { levels, cell });
        }
        let names = |factor: usize| {
            let names = prepared.level_names(factor);
            [names[0].clone(), names[1].clone()]
        };
        Ok(Some(Cube {
            factors: [a, b, c].map(|f| prepared.factor_name(f).to_owned()),
            levels: [a, b, c].map(names),
            corners,
        }))
    }

    /// What the model says about the treatments that were run, and about those asked for.
    pub(super) fn predictions(
        &self,
        asked: &[PredictionRequest],
    ) -> Result<Vec<Prediction>, ExperimentError> {
        let mut all = Vec::new();
        for wanted in asked {
            let levels = self.levels_asked(wanted)?;
            all.push(self.prediction(&levels, wanted.future_runs, true)?);
        }
        for treatment in self.prepared.treatments.iter().take(Experiment::MOST_PREDICTIONS) {
            all.push(self.prediction(&treatment.levels, None, false)?);
        }
        Ok(all)
    }

    fn prediction(
        &self,
        levels: &[u32],
        future_runs: Option<u32>,
        asked: bool,
    ) -> Result<Prediction, StatsError> {
        let prepared = self.prepared;
        let at = self.fit.predict(levels, None)?;
        let future = future_runs.map(|m| self.fit.predict(levels, Some(m))).transpose()?;
        let runs = prepared.treatments.iter().find(|t| t.levels == levels).map_or(0, |t| t.runs);
        let names = levels.iter().enumerate();
        Ok(Prediction {
            levels: names.map(|(f, &level)| prepared.level_name(f, level).to_owned()).collect(),
            label: prepared.label(levels),
            runs,
            value: self.back(at.value),
            interval: self.mean_interval(&at),
            future_runs,
            future_interval: future.as_ref().and_then(|f| self.mean_interval(f)),
            jain_interval: self.jain(at.value, future_runs),
            asked,
        })
    }

    /// Jain's interval: the variance of a fitted value is counted as (1 + parameters)/runs.
    fn jain(&self, value: f64, future_runs: Option<u32>) -> Option<[f64; 2]> {
        let fit = self.fit;
        let (fewest, most) = self.prepared.replicates();
        let [error] = fit.errors[..] else { return None };
        if fewest != most || error.stratum != Stratum::Runs || error.df == 0 {
            return None;
        }
        let parameters = fit.n - fit.df_error - usize::from(fit.curvature().is_some());
        let future = future_runs.map_or(0.0, |m| 1.0 / f64::from(m.max(1)));
        let spread = ((1 + parameters) as f64 / fit.corners as f64 + future).sqrt() * fit.s_e?;
        let t = benchmaster_stats::t_quantile(0.5 + fit.confidence / 2.0, error.df as f64);
        around(value, Some(t * spread)).map(|interval| interval.map(|end| self.back(end)))
    }

    /// Levels by name, as the model counts them.
    fn levels_asked(&self, wanted: &PredictionRequest) -> Result<Vec<u32>, ExperimentError> {
        let prepared = self.prepared;
        for (name, _) in &wanted.levels {
            if !prepared.table.factors.iter().any(|f| f.name == *name) {
                let factors = prepared.table.factors.iter().map(|f| f.name.clone()).collect();
                return Err(ExperimentError::UnknownFactor { name: name.clone(), factors });
            }
        }
        let level = |factor: usize| {
            let name = prepared.factor_name(factor);
            let found = wanted.levels.iter().find(|(wanted, _)| wanted == name);
            let (_, level) = found.ok_or_else(|| ExperimentError::OpenPrediction(name.to_owned()))?;
            let levels = prepared.level_names(factor);
            let number = level.parse::<f64>().ok();
            let same =
                |known: &String| known == level || number.is_some() && known.parse::<f64>().ok() == number;
            levels.iter().position(same).map(|place| place as u32).ok_or_else(|| {
                ExperimentError::UnknownLevel { factor: name.to_owned(), level: level.clone(), levels }
            })
        };
        (0..prepared.active.len()).map(level).collect()
    }
}
