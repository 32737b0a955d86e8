//! Fitting a model.

use super::blocks::Blocks;
use super::coding::Contrast;
use super::columns::{Column, Layout, blocks, contrast_name, is_centre};
use super::data::{Data, Term, check};
use super::matrix::{Matrix, norm_squared};
use super::qr::Qr;
use super::strata::{ErrorStratum, Plots, Strata, Stratum, exact_zero, rounding};
use crate::error::{StatsError, check_confidence};
use crate::interval::t_factor;
use crate::quantile::t_two_sided_p;

/// A fitted linear model.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// The terms of the model: the mean first, then those asked for in their order.
    pub terms: Vec<Term>,
    /// Confidence level of the intervals.
    pub confidence: f64,
    /// The coefficients that the data can estimate, in the order of the terms; those of blocks are left out.
    pub coefficients: Vec<Coefficient>,
    /// The contrasts that the data cannot distinguish from earlier ones.
    pub aliased: Vec<Aliased>,
    /// Number of runs.
    pub n: usize,
    /// Number of runs that are no centre points: those that effects are estimated from.
    pub corners: usize,
    /// Degrees of freedom that the model leaves, in all strata.
    pub df_error: usize,
    /// Sum of the squared residuals, in all strata.
    pub sse: f64,
    /// Standard deviation of single runs (within a whole plot, if there are plots); `None` when nothing is left to
    /// estimate it.
    pub s_e: Option<f64>,
    /// Variation of the response around its mean.
    pub sst: f64,
    /// Part of the variation that the model explains, blocks included; `None` when nothing varies.
    pub r_squared: Option<f64>,
    /// The same with variances in place of sums of squares; `None` also without degrees of freedom for error.
    pub adjusted_r_squared: Option<f64>,
    /// The errors: one, or those of whole plots and of runs within them.
    pub errors: Vec<ErrorStratum>,
    /// The response of each run according to the model.
    pub fitted: Vec<f64>,
    /// Response minus fitted, for each run.
    pub residuals: Vec<f64>,
    /// How much each run determines its own fitted value, 0 to 1.
    pub leverage: Vec<f64>,
    pub(super) core: Core,
}

/// What questions to a fit are answered from.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Core {
    pub(super) layout: Layout,
    /// Least squares without regard to whole plots.
    pub(super) plain: Qr,
    /// With weights for what is known of the whole plots; `None` without such.
    pub(super) weighted: Option<Weighted>,
    /// Coefficients of the kept columns.
    pub(super) values: Vec<f64>,
    /// R⁻¹ of the decomposition in use.
    pub(super) inverse: Matrix,
    /// The stratum of each kept column.
    pub(super) strata: Vec<Stratum>,
    /// R⁻ᵀXᵀ of the plain decomposition: the transpose of its orthonormal columns.
    pub(super) basis: Matrix,
    /// How much blocks vary; `None` without blocks, and without an error to compare them with.
    pub(super) blocks: Option<Blocks>,
    /// The largest sum of squares that may be nothing but rounding.
    pub(super) rounding: f64,
}

/// A fit in which the runs of a whole plot are known to be alike.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Weighted {
    pub(super) plots: Plots,
    /// Over the kept columns, equalised.
    pub(super) qr: Qr,
    /// The transpose of its orthonormal columns.
    pub(super) basis: Matrix,
}

impl Weighted {
    fn new(plots: Plots, x: &Matrix, y: &[f64]) -> Option<Self> {
        let columns = x.width();
        let x = Matrix::of_columns(x.rows(), x.columns().map(|column| plots.equalise(column)));
        let mut basis = x.transpose();
        let qr = Qr::new(x, Matrix::of_column(plots.equalise(y)), None);
        // Weights are positive, so no column can have become dependent but by rounding.
        (qr.rank() == columns).then(|| {
            qr.whiten(&mut basis);
            Self { plots, qr, basis }
        })
    }
}

/// An estimated coefficient.
#[derive(Debug, Clone, PartialEq)]
pub struct Coefficient {
    /// The term it belongs to, as a place in [`Fit::terms`].
    pub term: usize,
    /// Which contrast of each factor of the term.
    pub parts: Vec<Contrast>,
    /// The same as text: `L · level 2`; empty when all factors have two levels.
    pub contrast: String,
    /// Estimate. When all factors have two levels it is the half effect q.
    pub value: f64,
    /// Its standard error; `None` without an estimate of the error.
    pub standard_error: Option<f64>,
    /// Half the width of its confidence interval.
    pub half_width: Option<f64>,
    /// Value over standard error; `None` also when nothing varies.
    pub t: Option<f64>,
    /// Two-sided p value of a true coefficient of 0.
    pub p: Option<f64>,
    /// Variation that it explains when it enters the model last.
    pub sum_of_squares: f64,
    /// The error it is judged against.
    pub stratum: Stratum,
    /// Degrees of freedom of that error.
    pub df_error: usize,
}

/// A contrast that is a sum of earlier ones in these data.
#[derive(Debug, Clone, PartialEq)]
pub struct Aliased {
    /// The term, as a place in [`Fit::terms`].
    pub term: usize,
    /// Which contrast of each factor of the term.
    pub parts: Vec<Contrast>,
    /// The same as text.
    pub contrast: String,
    /// What its column is the sum of.
    pub with: Vec<AliasedWith>,
    /// Whether blocks are part of the sum: the contrast is confounded with them.
    pub with_blocks: bool,
}

/// A part of the sum that an aliased column is.
#[derive(Debug, Clone, PartialEq)]
pub struct AliasedWith {
    /// The term, as a place in [`Fit::terms`].
    pub term: usize,
    /// Its contrast.
    pub contrast: String,
    /// What its column is multiplied with: ±1 when the two are the same but for the sign.
    pub factor: f64,
}

/// Fits a model of the mean, the blocks, and the given terms.
pub fn fit(data: &Data, terms: &[Term], confidence: f64) -> Result<Fit, StatsError> {
    check_confidence(confidence)?;
    check(data, terms)?;
    let with_mean: Vec<_> =
        std::iter::once(Vec::new()).chain(terms.iter().filter(|t| !t.is_empty()).cloned()).collect();
    let blocks = blocks(data);
    let corners = data.rows.iter().filter(|row| !is_centre(row)).count();
    let centre = corners < data.rows.len();
    let layout = Layout::new(&data.factors, with_mean, blocks.as_ref().map_or(1, |b| b.sizes.len()), centre);
    let all = layout.matrix(&data.rows, blocks.as_ref());
    let y = Matrix::of_column(data.y.clone());
    let plain = Qr::new(all.clone(), y, None);
    let x = all.select_columns(&plain.kept);
    let mut basis = x.transpose();
    plain.whiten(&mut basis);
    let strata = Strata::new(data, &x, &plain, &basis);

    let run_error = strata.error(Stratum::SubPlot).or_else(|| strata.error(Stratum::Runs)).copied();
    let s_e = run_error.and_then(|e| e.mean_square).map(f64::sqrt);
    let weighted = strata.plots.and_then(|plots| Weighted::new(plots, &x, &data.y));
    let in_use = weighted.as_ref().map_or(&plain, |weighted| &weighted.qr);
    let (mut values, inverse) = (in_use.coefficients(), in_use.inverse());
    let rounding = rounding(&data.y);
    for (place, value) in values.iter_mut().enumerate() {
        // A coefficient that explains no more than rounding is 0, and not an effect that an error of 0 would make certain.
        if value.powi(2) <= rounding * inverse.row_norm_squared(place) {
            *value = 0.0;
        }
    }
    let fitted = x.times(&values);
    let residuals: Vec<_> = data.y.iter().zip(&fitted).map(|(y, f)| y - f).collect();
    let leverage = basis.columns().map(|column| norm_squared(column).min(1.0)).collect();

    let n = data.y.len();
    let mean = data.y.iter().sum::<f64>() / n as f64;
    let sst = exact_zero(data.y.iter().map(|y| (y - mean).powi(2)).sum(), &data.y);
    if !(data.y.iter().map(|y| y * y).sum::<f64>()).is_finite() {
        return Err(StatsError::Overflow { what: "a linear model" });
    }
    let df_error = n - plain.rank();
    let sse: f64 = strata.errors.iter().map(|e| e.sum_of_squares).sum();
    let adjusted = (df_error > 0 && sst > 0.0).then(|| 1.0 - sse / df_error as f64 / (sst / (n - 1) as f64));
    let errors = strata.errors;
    let random = blocks.as_ref().zip(run_error).and_then(|(groups, error)| {
        let is_block = |place: &usize| layout.columns[plain.kept[*place]] == Column::Block;
        let places: Vec<usize> = (0..plain.rank()).filter(is_block).collect();
        Blocks::new(groups, &places, in_use, &x, weighted.as_ref().map(|w| &w.plots), error)
    });
    let core = Core {
        layout,
        plain,
        weighted,
        values,
        inverse,
        strata: strata.of_column,
        basis,
        blocks: random,
        rounding,
    };
    let mut fit = Fit {
        terms: core.layout.terms.clone(),
        confidence,
        coefficients: Vec::new(),
        aliased: aliased(&core),
        n,
        corners,
        df_error,
        sse,
        s_e,
        sst,
        r_squared: (sst > 0.0).then(|| 1.0 - sse / sst),
        adjusted_r_squared: adjusted,
        errors,
        fitted,
        residuals,
        leverage,
        core,
    };
    fit.coefficients = coefficients(&fit);
    Ok(fit)
}

fn coefficients(fit: &Fit) -> Vec<Coefficient> {
    let core = &fit.core;
    let mut found = Vec::new();
    for (place, &column) in core.plain.kept.iter().enumerate() {
        let Column::Term { term, parts } = &core.layout.columns[column] else { continue };
        let stratum = core.strata[place];
        let df_error = fit.errors.iter().find(|e| e.stratum == stratum).map_or(0, |e| e.df);
        let mut one = vec![0.0; core.values.len()];
        one[place] = 1.0;
        let value = core.values[place];
        let variance = fit.variance(&one);
        let standard_error = variance.map(|variance| variance.total().sqrt());
        let t = standard_error.filter(|&s| s > 0.0).map(|s| value / s);
        // The mean of random blocks has degrees of freedom of its own.
        let df = variance.map_or(df_error as f64, |variance| variance.df());
        found.push(Coefficient {
            term: *term,
            parts: parts.clone(),
            contrast: contrast_name(parts),
            value,
            standard_error,
            half_width: standard_error.map(|s| t_factor(fit.confidence, df) * s),
            t,
            p: t.map(|t| t_two_sided_p(t, df)),
            sum_of_squares: plain_sum_of_squares(core, place),
            stratum,
            df_error,
        });
    }
    found
}

/// What a column explains when it enters last, by least squares without weights.
fn plain_sum_of_squares(core: &Core, place: usize) -> f64 {
    let sum = match &core.weighted {
        None => core.values[place].powi(2) / core.inverse.row_norm_squared(place),
        Some(_) => {
            let (values, inverse) = (core.plain.coefficients(), core.plain.inverse());
            values[place].powi(2) / inverse.row_norm_squared(place)
        }
    };
    if sum <= core.rounding { 0.0 } else { sum }
}

fn aliased(core: &Core) -> Vec<Aliased> {
    let mut found = Vec::new();
    for (column, factors) in &core.plain.dependent {
        // Blocks depend on the mean alone, which their coding avoids; centre points in a block of their own on blocks.
        let Column::Term { term, parts } = &core.layout.columns[*column] else { continue };
        let (mut with, mut with_blocks) = (Vec::new(), false);
        for (&earlier, &factor) in
            core.plain.kept.iter().zip(factors).filter(|(_, factor)| factor.abs() > 1e-9)
        {
            match &core.layout.columns[earlier] {
                Column::Block => with_blocks = true,
                Column::Centre => {}
                Column::Term { term, parts } => {
                    with.push(AliasedWith { term: *term, contrast: contrast_name(parts), factor });
                }
            }
        }
        let (contrast, parts) = (contrast_name(parts), parts.clone());
        found.push(Aliased { term: *term, parts, contrast, with, with_blocks });
    }
    found
}
