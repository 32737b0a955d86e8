//! Analysis of variance: what each term explains, by any of the three kinds of sums of squares.

use super::columns::Column;
use super::data::{Data, Term};
use super::fit::{Fit, fit};
use super::matrix::{Matrix, norm, norm_squared};
use super::qr::Qr;
use super::strata::{ErrorStratum, Stratum};
use crate::error::StatsError;
use crate::f_distribution::f_upper_p;

/// What a term is compared with. In balanced data all three are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SumOfSquares {
    /// Sequential: the terms before it.
    I,
    /// Hierarchical: all terms that do not contain it.
    II,
    /// Marginal: all other terms, in sum-to-zero coding.
    III,
}

/// What a row of the table is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// The blocks.
    Blocks,
    /// A term, by its place in [`Fit::terms`].
    Term(usize),
    /// The difference between centre points and all other runs.
    Curvature,
}

/// One row of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnovaRow {
    /// What it is about.
    pub source: Source,
    /// The error it is judged against.
    pub stratum: Stratum,
    /// Degrees of freedom.
    pub df: usize,
    /// Degrees of freedom that it lacks because the data cannot distinguish them from earlier ones.
    pub aliased_df: usize,
    /// Variation that it explains.
    pub sum_of_squares: f64,
    /// Their ratio; `None` when everything of it is aliased.
    pub mean_square: Option<f64>,
    /// Mean square over that of the error; `None` without an error to compare with. With whole plots of unequal size
    /// it is the test by weighted least squares, and not exactly this ratio.
    pub f: Option<f64>,
    /// The probability of an F as large as this when the term does nothing.
    pub p: Option<f64>,
    /// Part of the variation, SS/SST; `None` when nothing varies.
    pub eta_squared: Option<f64>,
    /// The same with less bias, (SS − df·MSE)/(SST + MSE); `None` also without an error to compare with.
    pub omega_squared: Option<f64>,
}

/// An analysis of variance.
#[derive(Debug, Clone, PartialEq)]
pub struct Anova {
    /// Which sums of squares.
    pub kind: SumOfSquares,
    /// Whether the terms are orthogonal in these data, so that all kinds of sums of squares are the same.
    pub orthogonal: bool,
    /// The blocks first, if there are any, then the terms in the order of the model, without the mean; curvature last,
    /// if there are centre points.
    pub rows: Vec<AnovaRow>,
    /// The errors, with the lack of fit in each.
    pub errors: Vec<ErrorStratum>,
    /// Degrees of freedom of all: runs less one.
    pub total_df: usize,
    /// Variation of the response around its mean.
    pub sst: f64,
}

/// Fits a model and makes its table. Intervals play no part in it.
pub fn anova(data: &Data, terms: &[Term], kind: SumOfSquares) -> Result<Anova, StatsError> {
    Ok(fit(data, terms, 0.95)?.anova(kind))
}

impl Fit {
    /// The table of this model.
    pub fn anova(&self, kind: SumOfSquares) -> Anova {
        let sources = self.sources();
        let orthogonal = is_orthogonal(&self.core.plain, &sources);
        // Of orthogonal terms the cheapest kind is as good as any.
        let cheapest = if orthogonal { SumOfSquares::I } else { kind };
        let plain = sums(&self.core.plain, cheapest, &self.terms, &sources);
        let weighted = self.core.weighted.as_ref().map(|w| sums(&w.qr, kind, &self.terms, &sources));
        let mut rows = Vec::new();
        for (i, (source, places)) in sources.iter().enumerate().filter(|(_, (s, _))| *s != Source::Term(0)) {
            let stratum = self.stratum_of(*source, places);
            let error = self.errors.iter().find(|e| e.stratum == stratum);
            let runs = self.errors.last().and_then(|e| e.mean_square);
            let (sum_of_squares, df) = plain[i];
            let sum_of_squares =
                if sum_of_squares <= df as f64 * self.core.rounding { 0.0 } else { sum_of_squares };
            let mean_square = (df > 0).then(|| sum_of_squares / df as f64);
            let mse = error.and_then(|e| e.mean_square);
            let ratio = |ms: f64, error: f64| (error > 0.0).then(|| ms / error);
            let f = match &weighted {
                _ if df == 0 => None,
                None => mean_square.zip(mse).and_then(|(ms, mse)| ratio(ms, mse)),
                Some(weighted) => runs.and_then(|runs| ratio(weighted[i].0 / df as f64, runs)),
            };
            let eta_squared = (self.sst > 0.0).then(|| sum_of_squares / self.sst);
            let omega_squared = mse
                .filter(|_| self.sst > 0.0)
                .map(|mse| (sum_of_squares - df as f64 * mse) / (self.sst + mse));
            rows.push(AnovaRow {
                source: *source,
                stratum,
                df,
                aliased_df: self.columns_of(*source) - places.len(),
                sum_of_squares,
                mean_square,
                f,
                p: f.zip(error).map(|(f, error)| f_upper_p(f, df, error.df)),
                eta_squared,
                omega_squared,
            });
        }
        Anova { kind, orthogonal, rows, errors: self.errors.clone(), total_df: self.n - 1, sst: self.sst }
    }

    /// The mean, the blocks if there are any, and each term, with their places among the kept columns.
    fn sources(&self) -> Vec<(Source, Vec<usize>)> {
        let columns = &self.core.layout.columns;
        let mut sources: Vec<_> =
            (0..self.terms.len()).map(|term| (Source::Term(term), Vec::new())).collect();
        let (mut blocks, mut curvature) = (Vec::new(), Vec::new());
        for (place, &column) in self.core.plain.kept.iter().enumerate() {
            match &columns[column] {
                Column::Block => blocks.push(place),
                Column::Centre => curvature.push(place),
                Column::Term { term, .. } => sources[*term].1.push(place),
            }
        }
        if columns.contains(&Column::Block) {
            sources.insert(1, (Source::Blocks, blocks));
        }
        if columns.contains(&Column::Centre) {
            sources.push((Source::Curvature, curvature));
        }
        sources
    }

    fn columns_of(&self, source: Source) -> usize {
        let own = |column: &&Column| match column {
            Column::Block => source == Source::Blocks,
            Column::Centre => source == Source::Curvature,
            Column::Term { term, .. } => source == Source::Term(*term),
        };
        self.core.layout.columns.iter().filter(own).count()
    }

    /// A term with any part that only whole plots can estimate is judged against them.
    fn stratum_of(&self, source: Source, places: &[usize]) -> Stratum {
        let mut strata = places.iter().map(|&place| self.core.strata[place]);
        let of_plots = strata.clone().any(|s| s == Stratum::WholePlot);
        match strata.next() {
            _ if of_plots => Stratum::WholePlot,
            Some(stratum) => stratum,
            None if source == Source::Blocks => self.errors[0].stratum,
            None => self.errors[self.errors.len() - 1].stratum,
        }
    }
}

/// Whether all terms are orthogonal to each other once the mean (the first row of R) is taken out.
fn is_orthogonal(qr: &Qr, sources: &[(Source, Vec<usize>)]) -> bool {
    let mut source_of = vec![0; qr.rank()];
    for (source, (_, places)) in sources.iter().enumerate() {
        places.iter().for_each(|&place| source_of[place] = source);
    }
    (1..qr.rank()).all(|j| {
        let length = norm(qr.r.column(j));
        (1..j).all(|i| source_of[i] == source_of[j] || qr.r[(i, j)].abs() <= ORTHOGONAL * length)
    })
}

/// Part of a column that rounding may leave in the direction of another.
const ORTHOGONAL: f64 = 1e-10;

/// Sum of squares and degrees of freedom of each source.
fn sums(qr: &Qr, kind: SumOfSquares, terms: &[Term], sources: &[(Source, Vec<usize>)]) -> Vec<(f64, usize)> {
    let z = qr.z.column(0);
    if kind == SumOfSquares::I {
        let of = |places: &Vec<usize>| (places.iter().fold(0.0, |sum, &i| sum + z[i] * z[i]), places.len());
        return sources.iter().map(|(_, places)| of(places)).collect();
    }
    // Each column of it is a row of R⁻¹.
    let (values, inverse) = (qr.coefficients(), qr.inverse().transpose());
    let contains = |outer: Source, inner: Source| match (outer, inner) {
        (Source::Term(outer), Source::Term(inner)) => {
            outer != inner && terms[inner].iter().all(|factor| terms[outer].contains(factor))
        }
        _ => false,
    };
    let one = |(source, places): &(Source, Vec<usize>)| {
        let above: Vec<_> = sources.iter().map(|(other, _)| contains(*other, *source)).collect();
        if kind == SumOfSquares::III || !above.contains(&true) {
            // bᵀ(covariance of b)⁻¹b over the columns of the term.
            let rows = inverse.select_columns(places);
            let covariance = Qr::new(rows, Matrix::zeros(inverse.rows(), 0), None);
            let mut b: Vec<f64> = places.iter().map(|&i| values[i]).collect();
            covariance.r.solve_upper_transposed(&mut b);
            return (norm_squared(&b), places.len());
        }
        let others = sources.iter().zip(&above).filter(|((other, _), above)| !**above && other != source);
        let first: Vec<_> = others.flat_map(|((_, places), _)| places.iter().copied()).collect();
        qr.explained(&first, places)
    };
    sources.iter().map(one).collect()
}
