//! Questions to a fitted model: contrasts, predictions, means of levels.

use super::blocks::Blocks;
use super::columns::Column;
use super::fit::{Fit, Weighted};
use super::matrix::{Matrix, add_scaled, dot, norm_squared};
use super::strata::Stratum;
use crate::error::StatsError;
use crate::interval::t_factor;

/// An estimate from a model, with its uncertainty where the data give one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Value.
    pub value: f64,
    /// Its standard error; `None` without degrees of freedom for error.
    pub standard_error: Option<f64>,
    /// Half the width of its confidence interval, at the level of the fit.
    pub half_width: Option<f64>,
    /// Degrees of freedom of the interval. Where errors of whole plots and of runs add up, Satterthwaite's.
    pub df: Option<f64>,
}

/// The variance of a combination of coefficients, by the error it comes from: each part with its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Variance {
    blocks: (f64, usize),
    whole_plot: (f64, usize),
    runs: (f64, usize),
}

impl Variance {
    fn parts(self) -> [(f64, usize); 3] {
        [self.blocks, self.whole_plot, self.runs]
    }

    pub(super) fn total(self) -> f64 {
        self.parts().iter().map(|(variance, _)| variance).sum::<f64>().max(0.0)
    }

    /// Satterthwaite's degrees of freedom; those of the one error there is when the others have no part. Where nothing
    /// varies, the fewest.
    pub(super) fn df(self) -> f64 {
        let parts = self.parts();
        let squares: f64 = parts.iter().filter(|(v, _)| *v != 0.0).map(|(v, df)| v * v / *df as f64).sum();
        if squares > 0.0 {
            self.total().powi(2) / squares
        } else {
            parts.iter().map(|(_, df)| *df).filter(|df| *df > 0).min().unwrap_or(0) as f64
        }
    }

    /// Adds `of_mean` times the variance between blocks: so much of their mean square, and so much less of the error that
    /// their mean square has in it.
    fn with_blocks(mut self, blocks: &Blocks, of_mean: f64) -> Self {
        let share = of_mean / blocks.per_variance;
        self.blocks = (share * blocks.mean_square, blocks.df);
        let error = share * blocks.error;
        let part = if self.whole_plot.1 > 0 { &mut self.whole_plot } else { &mut self.runs };
        part.0 -= error;
        // Rounding must not leave a trace of an error that cancels.
        if part.0.abs() < 1e-9 * error {
            part.0 = 0.0;
        }
        self
    }
}

impl Fit {
    /// A linear combination of coefficients, given by their places in [`Fit::coefficients`].
    pub fn contrast(&self, weights: &[(usize, f64)]) -> Result<Estimate, StatsError> {
        let places = self.coefficient_places();
        let mut combination = vec![0.0; self.core.values.len()];
        for &(coefficient, weight) in weights {
            let place = places
                .get(coefficient)
                .ok_or(StatsError::NoSuchCoefficient { coefficient, coefficients: places.len() })?;
            combination[*place] += weight;
        }
        Ok(self.estimate(&combination, None))
    }

    /// The response predicted for a combination of levels, as the mean of this many further runs (in one further block, if
    /// there are blocks, and each in a whole plot of its own, if there are plots), or of infinitely many in as many blocks
    /// (`None`). Aliased contrasts are taken as 0: see [`Fit::predictable`].
    pub fn predict(&self, levels: &[u32], future_runs: Option<u32>) -> Result<Estimate, StatsError> {
        self.check_levels(levels)?;
        let combination = self.row(|factor| Some(levels[factor]));
        // Of a run within its plot, and of the plot beyond that.
        let ratio = self.core.weighted.as_ref().map_or(0.0, |weighted| weighted.plots.ratio.max(0.0));
        let single = self.s_e.map_or(0.0, |s_e| s_e * s_e) * (1.0 + ratio);
        let future = future_runs.map_or(0.0, |m| single / f64::from(m.max(1)));
        Ok(self.estimate(&combination, future_runs.map(|_| future)))
    }

    /// How far the mean of all other runs is from that of the centre points, each averaged over the blocks: the sum of
    /// all pure quadratic effects. `None` without centre points, and when these cannot be distinguished from blocks.
    pub fn curvature(&self) -> Option<Estimate> {
        let columns = &self.core.layout.columns;
        let place = self.core.plain.kept.iter().position(|&column| columns[column] == Column::Centre)?;
        let mut combination = vec![0.0; self.core.values.len()];
        combination[place] = -1.0;
        Some(self.estimate(&combination, None))
    }

    /// Whether a prediction for these levels needs no aliased contrast to be 0.
    pub fn predictable(&self, levels: &[u32]) -> Result<bool, StatsError> {
        self.check_levels(levels)?;
        let layout = &self.core.layout;
        let value = |column: usize| layout.value(column, |factor| Some(levels[factor]));
        Ok(self.core.plain.dependent.iter().all(|(column, factors)| {
            let rest: f64 = self.core.plain.kept.iter().zip(factors).map(|(&kept, f)| f * value(kept)).sum();
            (value(*column) - rest).abs() < 1e-6
        }))
    }

    /// The mean response at these levels of some factors, with equal weight for all levels of the others.
    pub fn marginal_mean(&self, levels: &[(usize, u32)]) -> Result<Estimate, StatsError> {
        for &(factor, level) in levels {
            self.check_level(factor, level)?;
        }
        let level = |factor: usize| levels.iter().find(|(f, _)| *f == factor).map(|(_, level)| *level);
        Ok(self.estimate(&self.row(level), None))
    }

    /// The coefficient that a number per run would have as one more column of the model, such as a temperature or a time
    /// that the design did not control. `Ok(None)` when the model leaves nothing of it, or no error to judge it by.
    pub fn added(&self, values: &[f64]) -> Result<Option<Estimate>, StatsError> {
        let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
        let around: Vec<_> = values.iter().map(|v| v - mean).collect();
        let own = self.residualise(&around)?;
        let all: f64 = around.iter().map(|v| v * v).sum();
        if all == 0.0 || norm_squared(&own) <= 1e-14 * all {
            return Ok(None);
        }
        let (own, residuals) = match &self.core.weighted {
            None => (own, self.residuals.clone()),
            Some(Weighted { plots, basis, .. }) => {
                (taken_out(basis, plots.equalise(&around)), plots.equalise(&self.residuals))
            }
        };
        let squares = norm_squared(&own);
        let value = dot(&own, &residuals) / squares;
        // What comes in between plots is judged by the fewer degrees of freedom.
        let df = match &self.core.weighted {
            None => self.df_error,
            Some(_) => self.errors.iter().map(|e| e.df).min().unwrap_or(0),
        };
        let Some(df) = df.checked_sub(1).filter(|&df| df > 0).map(|df| df as f64) else { return Ok(None) };
        let variance = match (&self.core.weighted, self.s_e) {
            (Some(_), Some(s_e)) => s_e * s_e / squares,
            _ => (norm_squared(&residuals) - value * value * squares).max(0.0) / df / squares,
        };
        let standard_error = variance.sqrt();
        let half_width = Some(t_factor(self.confidence, df) * standard_error);
        Ok(Some(Estimate { value, standard_error: Some(standard_error), half_width, df: Some(df) }))
    }

    /// What is left of a number per run when the model (blocks included) is taken out of it by least squares.
    pub fn residualise(&self, values: &[f64]) -> Result<Vec<f64>, StatsError> {
        if values.len() != self.n {
            let found = values.len();
            return Err(StatsError::Lengths { what: "values", expected: self.n, found });
        }
        Ok(taken_out(&self.core.basis, values.to_vec()))
    }

    /// The places of [`Fit::coefficients`] among the kept columns.
    fn coefficient_places(&self) -> Vec<usize> {
        let columns = &self.core.layout.columns;
        let kept = self.core.plain.kept.iter().enumerate();
        kept.filter(|(_, column)| matches!(columns[**column], Column::Term { .. }))
            .map(|(place, _)| place)
            .collect()
    }

    /// The kept columns at a combination of levels.
    fn row(&self, level: impl Fn(usize) -> Option<u32>) -> Vec<f64> {
        self.core.plain.kept.iter().map(|&column| self.core.layout.value(column, &level)).collect()
    }

    fn check_levels(&self, levels: &[u32]) -> Result<(), StatsError> {
        let expected = self.core.layout.factors();
        if levels.len() != expected {
            return Err(StatsError::Lengths { what: "levels", expected, found: levels.len() });
        }
        levels.iter().enumerate().try_for_each(|(factor, &level)| self.check_level(factor, level))
    }

    fn check_level(&self, factor: usize, level: u32) -> Result<(), StatsError> {
        match self.core.layout.levels(factor) {
            Some(levels) if (level as usize) < levels => Ok(()),
            levels => Err(StatsError::UnknownLevel { factor, level, levels: levels.unwrap_or(0) }),
        }
    }

    /// A combination of the kept columns' coefficients, and a further variance of independent runs in a further block.
    fn estimate(&self, combination: &[f64], future: Option<f64>) -> Estimate {
        let value = dot(combination, &self.core.values);
        let of_mean = self.mean_weight(combination).powi(2);
        let variance = self.variance_within(combination).map(|mut variance| {
            variance.runs.0 += future.unwrap_or(0.0);
            match &self.core.blocks {
                None => variance,
                Some(blocks) => {
                    let own = of_mean / blocks.count as f64 + future.map_or(0.0, |_| of_mean);
                    if own > 0.0 { variance.with_blocks(blocks, own) } else { variance }
                }
            }
        });
        let standard_error = variance.map(|v| v.total().sqrt());
        let df = variance.map(Variance::df);
        let half_width = standard_error.zip(df).map(|(s, df)| t_factor(self.confidence, df) * s);
        Estimate { value, standard_error, half_width, df }
    }

    /// How much of the mean a combination has in it.
    fn mean_weight(&self, combination: &[f64]) -> f64 {
        // The mean is the first column, and never aliased.
        combination.first().copied().unwrap_or(0.0)
    }

    /// The variance of a combination of the kept columns' coefficients, with that of random blocks where the mean is part
    /// of it; `None` when an error that it needs is unknown.
    pub(super) fn variance(&self, combination: &[f64]) -> Option<Variance> {
        let own = self.mean_weight(combination).powi(2);
        let within = self.variance_within(combination)?;
        Some(match &self.core.blocks {
            Some(blocks) if own > 0.0 => within.with_blocks(blocks, own / blocks.count as f64),
            _ => within,
        })
    }

    /// The same for the blocks as they were.
    fn variance_within(&self, combination: &[f64]) -> Option<Variance> {
        let core = &self.core;
        let part = |stratum: Stratum| {
            let own = combination.iter().zip(&core.strata).map(|(c, s)| if *s == stratum { *c } else { 0.0 });
            own.collect::<Vec<_>>()
        };
        let scaled = |combination: &[f64]| norm_squared(&core.inverse.transposed_times(combination));
        let error = |stratum: Stratum| {
            let error = self.errors.iter().find(|e| e.stratum == stratum)?;
            error.mean_square.map(|ms| (ms, error.df))
        };
        let in_plots = core.strata.contains(&Stratum::WholePlot) || core.strata.contains(&Stratum::SubPlot);
        if !in_plots {
            let (ms, df) = error(Stratum::Runs)?;
            return Some(Variance { runs: (ms * scaled(combination), df), ..Variance::default() });
        }
        let (whole, sub) = (part(Stratum::WholePlot), part(Stratum::SubPlot));
        let needed = |combination: &[f64], stratum| {
            let used = combination.iter().any(|c| *c != 0.0);
            if used { error(stratum) } else { Some((0.0, 0)) }
        };
        let ((whole_ms, whole_df), (sub_ms, sub_df)) =
            (needed(&whole, Stratum::WholePlot)?, needed(&sub, Stratum::SubPlot)?);
        if core.weighted.is_none() {
            // Each part of a balanced design by its own mean square.
            let parts = ((whole_ms * scaled(&whole), whole_df), (sub_ms * scaled(&sub), sub_df));
            return Some(Variance { whole_plot: parts.0, runs: parts.1, ..Variance::default() });
        }
        // With weights everything is on the scale of runs within plots.
        let (ms, df) = error(Stratum::SubPlot)?;
        let (total, of_plots) = (ms * scaled(combination), ms * scaled(&whole));
        if whole_df == 0 {
            return Some(Variance { runs: (total, df), ..Variance::default() });
        }
        let of_runs = if sub_df == 0 { (0.0, 0) } else { ((total - of_plots).max(0.0), df) };
        Some(Variance { whole_plot: (total - of_runs.0, whole_df), runs: of_runs, ..Variance::default() })
    }
}

/// What is left of a column outside the orthonormal columns whose transpose is `basis`; twice, against rounding.
fn taken_out(basis: &Matrix, mut column: Vec<f64>) -> Vec<f64> {
    for _ in 0..2 {
        let inside = basis.transposed_times(&basis.times(&column));
        add_scaled(&mut column, -1.0, &inside);
    }
    column
}
