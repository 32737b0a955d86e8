//! Least squares by Householder reflections, column by column, so that dependent columns are found where they stand.
//!
//! nalgebra's own decompositions either do not look for dependent columns or reorder all of them; which of two
//! confounded terms is kept has to depend on the order of the model alone.

use nalgebra::{DMatrix, DVector, DVectorView};

/// A column counts as dependent on earlier ones when less than this part of it is left without them (as in R's `lm`).
const TOLERANCE: f64 = 1e-7;

/// X = QR with the columns that depend on earlier ones set aside.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Qr {
    /// Columns that were kept, ascending.
    pub(super) kept: Vec<usize>,
    /// Columns that depend on earlier ones, with the coefficients of the kept columns before them.
    pub(super) dependent: Vec<(usize, Vec<f64>)>,
    /// Upper triangle over the kept columns.
    pub(super) r: DMatrix<f64>,
    /// Qᵀ times each right-hand side: as many entries as kept columns.
    pub(super) z: DMatrix<f64>,
    /// Sum of squares that each right-hand side has outside the columns.
    pub(super) sse: Vec<f64>,
}

impl Qr {
    /// Decomposes `x` and applies Qᵀ to `rhs`, which has as many rows. `norms` are the lengths to judge the columns by
    /// when they are not those of `x` itself.
    pub(super) fn new(mut x: DMatrix<f64>, mut rhs: DMatrix<f64>, norms: Option<&[f64]>) -> Self {
        let (rows, columns) = x.shape();
        let own: Vec<f64> = x.column_iter().map(|c| c.norm()).collect();
        let norms = norms.unwrap_or(&own);
        let mut kept: Vec<usize> = Vec::new();
        let mut dependent_columns = Vec::new();
        for j in 0..columns {
            let rank = kept.len();
            let below = x.view((rank, j), (rows - rank, 1)).norm();
            if below <= TOLERANCE * norms[j] || below == 0.0 {
                dependent_columns.push((j, rank));
                continue;
            }
            let (done, mut rest) = x.columns_range_pair_mut(j, j + 1..);
            let mut axis: DVector<f64> = done.column(0).rows(rank, rows - rank).into_owned();
            let diagonal = if axis[0] > 0.0 { -below } else { below };
            axis[0] -= diagonal;
            axis /= axis.norm();
            for mut column in rest.column_iter_mut().chain(rhs.column_iter_mut()) {
                let mut column = column.rows_mut(rank, rows - rank);
                let along = -2.0 * axis.dot(&column);
                column.axpy(along, &axis, 1.0);
            }
            x[(rank, j)] = diagonal;
            kept.push(j);
        }
        let rank = kept.len();
        // A kept column has its own reflection's axis below the diagonal, which is no part of R.
        let r = DMatrix::from_fn(rank, rank, |i, j| if i <= j { x[(i, kept[j])] } else { 0.0 });
        let on_earlier = |(j, rank): (usize, usize)| {
            let mut coefficients = x.column(j).rows(0, rank).into_owned();
            // The diagonal of R has no zeros.
            r.view((0, 0), (rank, rank)).solve_upper_triangular_mut(&mut coefficients);
            (j, coefficients.as_slice().to_vec())
        };
        let dependent = dependent_columns.into_iter().map(on_earlier).collect();
        let sse = rhs.column_iter().map(|c| c.rows(rank, rows - rank).norm_squared()).collect();
        let z = rhs.rows(0, rank).into_owned();
        Self { kept, dependent, r, z, sse }
    }

    pub(super) fn rank(&self) -> usize {
        self.kept.len()
    }

    /// Coefficients of the kept columns for the first right-hand side.
    pub(super) fn coefficients(&self) -> DVector<f64> {
        let mut b = self.z.column(0).into_owned();
        self.r.solve_upper_triangular_mut(&mut b);
        b
    }

    /// R⁻¹, whose rows give the covariances of the coefficients.
    pub(super) fn inverse(&self) -> DMatrix<f64> {
        let mut inverse = DMatrix::identity(self.rank(), self.rank());
        self.r.solve_upper_triangular_mut(&mut inverse);
        inverse
    }

    /// The sum of squares of the first right-hand side that the kept columns at `last` (places among the kept) explain
    /// beyond those at `first`, all others left out of the model, and its degrees of freedom.
    pub(super) fn explained(&self, first: &[usize], last: &[usize]) -> (f64, usize) {
        let order: Vec<_> = first.iter().chain(last).copied().collect();
        let norms: Vec<_> = order.iter().map(|&j| self.r.column(j).norm()).collect();
        let columns = self.r.select_columns(order.iter());
        let small = Self::new(columns, self.z.columns(0, 1).into_owned(), Some(&norms));
        let z = small.z.column(0);
        let of_last = small.kept.iter().zip(z.iter()).filter(|(j, _)| **j >= first.len());
        of_last.fold((0.0, 0), |(sum, df), (_, z)| (sum + z * z, df + 1))
    }

    /// R⁻ᵀ times a row of X (its kept columns).
    pub(super) fn whiten(&self, rows: &mut DMatrix<f64>) {
        self.r.tr_solve_upper_triangular_mut(rows);
    }
}

/// Sum of squares of differences from the mean of each group: the part of `column` within groups.
pub(super) fn centre_within(column: DVectorView<'_, f64>, groups: &Groups) -> DVector<f64> {
    let mut sums = vec![0.0; groups.sizes.len()];
    for (&group, value) in groups.of_run.iter().zip(column.iter()) {
        sums[group] += value;
    }
    let means: Vec<_> = sums.iter().zip(&groups.sizes).map(|(sum, &n)| sum / n as f64).collect();
    let within = groups.of_run.iter().zip(column.iter()).map(|(&group, value)| value - means[group]);
    DVector::from_iterator(column.len(), within)
}

/// Runs divided into groups, numbered from 0 in the order in which they first occur.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Groups {
    pub(super) of_run: Vec<usize>,
    pub(super) sizes: Vec<usize>,
}

impl Groups {
    pub(super) fn new<K: Eq + std::hash::Hash>(keys: impl Iterator<Item = K>) -> Self {
        let mut numbers = std::collections::HashMap::new();
        let mut groups = Self { of_run: Vec::new(), sizes: Vec::new() };
        for key in keys {
            let next = numbers.len();
            let number = *numbers.entry(key).or_insert(next);
            if number == groups.sizes.len() {
                groups.sizes.push(0);
            }
            groups.sizes[number] += 1;
            groups.of_run.push(number);
        }
        groups
    }

    /// One column per group, 1 for its runs.
    pub(super) fn indicators(&self) -> DMatrix<f64> {
        let one = |run: usize, group: usize| f64::from(u8::from(self.of_run[run] == group));
        DMatrix::from_fn(self.of_run.len(), self.sizes.len(), one)
    }
}
