//! Errors of a model: between runs, or between whole plots and between runs of the same plot.

use super::columns::blocks;
use super::data::Data;
use super::matrix::{Matrix, add_scaled, norm, norm_squared};
use super::qr::{Groups, Qr, centre_within};
use crate::f_distribution::f_upper_p;

/// The unit whose variation a term is judged against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stratum {
    /// Single runs, in designs without whole plots.
    Runs,
    /// Whole plots: for factors that are set once per plot, and for blocks.
    WholePlot,
    /// Runs within a whole plot.
    SubPlot,
}

/// The error of one stratum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorStratum {
    /// Which unit varies.
    pub stratum: Stratum,
    /// Degrees of freedom.
    pub df: usize,
    /// Sum of squares that the model leaves.
    pub sum_of_squares: f64,
    /// Their ratio; `None` without degrees of freedom.
    pub mean_square: Option<f64>,
    /// Part of it that no model of these factors could explain: runs (or plots) of the same treatment that differ.
    /// Sum of squares and degrees of freedom.
    pub pure_error: (f64, usize),
    /// The rest, which terms left out of the model may explain; `None` when nothing is left.
    pub lack_of_fit: Option<LackOfFit>,
}

/// What a model misses, compared with the pure error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LackOfFit {
    /// Degrees of freedom.
    pub df: usize,
    /// Sum of squares.
    pub sum_of_squares: f64,
    /// Their ratio.
    pub mean_square: f64,
    /// Its ratio to the mean square of the pure error; `None` without replicates, or when they do not vary.
    pub f: Option<f64>,
    /// The probability of an F as large as this when the model is right.
    pub p: Option<f64>,
}

/// Errors of a model, and how runs have to be weighted for it.
pub(super) struct Strata {
    pub(super) errors: Vec<ErrorStratum>,
    /// The stratum of each kept column.
    pub(super) of_column: Vec<Stratum>,
    /// With whole plots whose spread is known.
    pub(super) plots: Option<Plots>,
}

/// Whole plots and how much they vary.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plots {
    groups: Groups,
    /// Variance between plots (without that of runs within them) over that of runs within a plot.
    pub(super) ratio: f64,
}

/// The whole plots of the runs; `None` when there are none, or when each has a single run: then plots are runs.
pub(super) fn whole_plots(data: &Data) -> Option<Groups> {
    let plots = data.whole_plot.as_ref()?;
    let block = |run: usize| data.block.as_ref().map(|block| block[run]);
    let groups = Groups::new(plots.iter().enumerate().map(|(run, &plot)| (block(run), plot)));
    groups.sizes.iter().any(|&size| size > 1).then_some(groups)
}

impl Strata {
    /// The strata of a model with the matrix `x` of kept columns and their decomposition. `whitened` is R⁻ᵀxᵀ.
    pub(super) fn new(data: &Data, x: &Matrix, plain: &Qr, whitened: &Matrix) -> Self {
        let (runs, rank) = (x.rows(), x.width());
        let sse = exact_zero(plain.sse[0], &data.y);
        let Some(groups) = whole_plots(data) else {
            let pure = pure_error(data, None);
            let error = error(Stratum::Runs, sse, runs - rank, pure);
            return Self { errors: vec![error], of_column: vec![Stratum::Runs; rank], plots: None };
        };
        // What varies within plots: everything around the means of the plots.
        let norms: Vec<_> = x.columns().map(norm).collect();
        let within = Qr::new(centred(x, &groups), centred_y(data, &groups), Some(&norms));
        let mut of_column = vec![Stratum::WholePlot; rank];
        for &column in &within.kept {
            of_column[column] = Stratum::SubPlot;
        }
        let sub_sse = exact_zero(within.sse[0], &data.y).min(sse);
        let sub_df = (runs - groups.sizes.len()).saturating_sub(within.rank());
        let whole_df = (runs - rank).saturating_sub(sub_df);
        let (all_pure, sub_pure) = (pure_error(data, None), pure_error(data, Some(&groups)));
        let whole_pure = ((all_pure.0 - sub_pure.0).max(0.0), all_pure.1.saturating_sub(sub_pure.1));
        let errors = vec![
            error(Stratum::WholePlot, sse - sub_sse, whole_df, whole_pure),
            error(Stratum::SubPlot, sub_sse, sub_df, sub_pure),
        ];
        let ratio = match (errors[0].mean_square, errors[1].mean_square) {
            (Some(whole), Some(sub)) if sub > 0.0 => {
                Some(variance_ratio(whole, sub, whole_df, &groups, whitened))
            }
            _ => None,
        };
        Self { errors, of_column, plots: ratio.map(|ratio| Plots { groups, ratio }) }
    }

    pub(super) fn error(&self, stratum: Stratum) -> Option<&ErrorStratum> {
        self.errors.iter().find(|e| e.stratum == stratum)
    }
}

impl Plots {
    /// Turns a column so that its errors have equal variances and no correlation: V^(−½) for V = 1 + ratio within plots.
    pub(super) fn equalise(&self, column: &[f64]) -> Vec<f64> {
        let within = centre_within(column, &self.groups);
        let shrunk = |run: usize| {
            let size = self.groups.sizes[self.groups.of_run[run]] as f64;
            let mean = column[run] - within[run];
            within[run] + mean / (1.0 + size * self.ratio).sqrt()
        };
        (0..column.len()).map(shrunk).collect()
    }
}

/// The variance between plots from the expectation of their mean square, by Henderson's third method: σ² + σ_w²·tr/df,
/// where tr is what the model leaves of the plots' indicators. It may come out negative, as it does in the classical
/// analysis of a balanced design; it is only kept from making the variance of a plot's mean vanish.
fn variance_ratio(whole: f64, sub: f64, whole_df: usize, groups: &Groups, whitened: &Matrix) -> f64 {
    let mut sums = Matrix::zeros(whitened.rows(), groups.sizes.len());
    for (run, &plot) in whitened.columns().zip(&groups.of_run) {
        add_scaled(sums.column_mut(plot), 1.0, run);
    }
    let trace = groups.of_run.len() as f64 - sums.columns().map(norm_squared).sum::<f64>();
    let largest = groups.sizes.iter().copied().max().unwrap_or(1) as f64;
    let least = (SMALLEST_PLOT_VARIANCE - 1.0) / largest;
    ((whole - sub) / sub * whole_df as f64 / trace).max(least)
}

/// The smallest variance of the mean of a plot, compared with that of independent runs.
const SMALLEST_PLOT_VARIANCE: f64 = 1e-6;

fn centred(x: &Matrix, groups: &Groups) -> Matrix {
    Matrix::of_columns(x.rows(), x.columns().map(|column| centre_within(column, groups)))
}

fn centred_y(data: &Data, groups: &Groups) -> Matrix {
    Matrix::of_column(centre_within(&data.y, groups))
}

/// Sum of squares and degrees of freedom of runs around the mean of their treatment, after blocks or, if given, plots.
fn pure_error(data: &Data, plots: Option<&Groups>) -> (f64, usize) {
    let cells = Groups::new(data.rows.iter());
    let within = centred_y(data, &cells);
    let groups = plots.cloned().or_else(|| blocks(data));
    let units = groups.map_or_else(|| Matrix::zeros(data.y.len(), 0), |groups| groups.indicators());
    let norms: Vec<_> = units.columns().map(norm).collect();
    let qr = Qr::new(centred(&units, &cells), within, Some(&norms));
    (exact_zero(qr.sse[0], &data.y), (data.y.len() - cells.sizes.len()).saturating_sub(qr.rank()))
}

fn error(stratum: Stratum, sse: f64, df: usize, pure_error: (f64, usize)) -> ErrorStratum {
    // The model is part of the one with a mean for each treatment, so only rounding can make its error the smaller one.
    let pure_error = (pure_error.0.min(sse), pure_error.1.min(df));
    let (rest, rest_df) = (sse - pure_error.0, df - pure_error.1);
    let lack_of_fit = (rest_df > 0).then(|| {
        let mean_square = rest / rest_df as f64;
        let pure = (pure_error.1 > 0).then(|| pure_error.0 / pure_error.1 as f64).filter(|&pure| pure > 0.0);
        let f = pure.map(|pure| mean_square / pure);
        let p = f.map(|f| f_upper_p(f, rest_df, pure_error.1));
        LackOfFit { df: rest_df, sum_of_squares: rest, mean_square, f, p }
    });
    let mean_square = (df > 0).then(|| sse / df as f64);
    ErrorStratum { stratum, df, sum_of_squares: sse, mean_square, pure_error, lack_of_fit }
}

/// A sum of squares that is nothing but the rounding of `y` is 0.
pub(super) fn exact_zero(sum: f64, y: &[f64]) -> f64 {
    if sum <= rounding(y) { 0.0 } else { sum }
}

/// The largest sum of squares that may be nothing but the rounding of `y`.
pub(super) fn rounding(y: &[f64]) -> f64 {
    let one = 8.0 * f64::EPSILON * y.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    y.len() as f64 * one * one
}

#[cfg(test)]
mod tests {
    use super::super::matrix::dot;
    use super::*;

    #[test]
    fn equalised_runs_have_the_weights_of_the_inverse_covariance() {
        let groups = Groups::new([7, 7, 7, 2, 2, 9].iter());
        let plots = Plots { groups, ratio: 0.8 };
        let same = |i: usize, j: usize| plots.groups.of_run[i] == plots.groups.of_run[j];
        let covariance =
            Matrix::from_fn(6, 6, |i, j| f64::from(u8::from(i == j)) + if same(i, j) { 0.8 } else { 0.0 });
        let a: Vec<_> = (0..6).map(|i| f64::from(i * i) - 3.0).collect();
        let b: Vec<_> = (0..6).map(|i| 1.0 / f64::from(i + 1)).collect();
        let inverse_times_b = Qr::new(covariance, Matrix::of_column(b.clone()), None).coefficients();
        let direct = dot(&a, &inverse_times_b);
        assert!((dot(&plots.equalise(&a), &plots.equalise(&b)) - direct).abs() < 1e-12);
    }

    #[test]
    fn the_variance_of_plots_has_its_expectation() {
        // With equal plots: (MS between − MS within)/(runs per plot · MS within).
        let groups = Groups::new((0..12).map(|i| i / 3));
        let basis = Matrix::filled(1, 12, (1.0f64 / 12.0).sqrt());
        let found = variance_ratio(10.0, 2.0, 3, &groups, &basis);
        assert!((found - 8.0 / (3.0 * 2.0)).abs() < 1e-12);
        // Plots that vary less than chance lets them are taken as they are, but never to nothing.
        assert!((variance_ratio(1.0, 2.0, 3, &groups, &basis) + 1.0 / 6.0).abs() < 1e-12);
        assert!(variance_ratio(0.0, 2.0, 3, &groups, &basis) > -1.0 / 3.0);
    }
}
