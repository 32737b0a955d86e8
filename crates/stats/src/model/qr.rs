//! Least squares by Householder reflections, column by column, so that dependent columns are found where they stand.
//!
//! Columns are never reordered: which of two confounded terms is kept has to depend on the order of the model alone.

use super::matrix::{Matrix, add_scaled, dot, norm, norm_squared};

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
    pub(super) r: Matrix,
    /// Qᵀ times each right-hand side: as many entries as kept columns.
    pub(super) z: Matrix,
    /// Sum of squares that each right-hand side has outside the columns.
    pub(super) sse: Vec<f64>,
}

impl Qr {
    /// Decomposes `x` and applies Qᵀ to `rhs`, which has as many rows. `norms` are the lengths to judge the columns by
    /// when they are not those of `x` itself.
    pub(super) fn new(mut x: Matrix, mut rhs: Matrix, norms: Option<&[f64]>) -> Self {
        let own: Vec<f64> = x.columns().map(norm).collect();
        let norms = norms.unwrap_or(&own);
        let mut kept: Vec<usize> = Vec::new();
        let mut dependent_columns = Vec::new();
        for (j, &length) in norms.iter().enumerate().take(x.width()) {
            let rank = kept.len();
            let mut axis = x.column(j)[rank..].to_vec();
            let below = norm(&axis);
            if below <= TOLERANCE * length || below == 0.0 {
                dependent_columns.push((j, rank));
                continue;
            }
            let diagonal = if axis[0] > 0.0 { -below } else { below };
            axis[0] -= diagonal;
            let scale = norm(&axis);
            axis.iter_mut().for_each(|value| *value /= scale);
            for column in x.columns_mut().skip(j + 1).chain(rhs.columns_mut()) {
                let column = &mut column[rank..];
                add_scaled(column, -2.0 * dot(&axis, column), &axis);
            }
            x[(rank, j)] = diagonal;
            kept.push(j);
        }
        let rank = kept.len();
        // A kept column has its own reflection's axis below the diagonal, which is no part of R.
        let r = Matrix::from_fn(rank, rank, |i, j| if i <= j { x[(i, kept[j])] } else { 0.0 });
        let on_earlier = |(j, rank): (usize, usize)| {
            let mut coefficients = x.column(j)[..rank].to_vec();
            // The diagonal of R has no zeros.
            r.solve_upper(&mut coefficients);
            (j, coefficients)
        };
        let dependent = dependent_columns.into_iter().map(on_earlier).collect();
        let sse = rhs.columns().map(|column| norm_squared(&column[rank..])).collect();
        let z = Matrix::of_columns(rank, rhs.columns().map(|column| &column[..rank]));
        Self { kept, dependent, r, z, sse }
    }

    pub(super) fn rank(&self) -> usize {
        self.kept.len()
    }

    /// Coefficients of the kept columns for the first right-hand side.
    pub(super) fn coefficients(&self) -> Vec<f64> {
        let mut b = self.z.column(0).to_vec();
        self.r.solve_upper(&mut b);
        b
    }

    /// R⁻¹, whose rows give the covariances of the coefficients.
    pub(super) fn inverse(&self) -> Matrix {
        let mut inverse = Matrix::zeros(self.rank(), self.rank());
        for (j, column) in inverse.columns_mut().enumerate() {
            column[j] = 1.0;
            self.r.solve_upper(&mut column[..=j]);
        }
        inverse
    }

    /// The sum of squares of the first right-hand side that the kept columns at `last` (places among the kept) explain
    /// beyond those at `first`, all others left out of the model, and its degrees of freedom.
    pub(super) fn explained(&self, first: &[usize], last: &[usize]) -> (f64, usize) {
        let order: Vec<_> = first.iter().chain(last).copied().collect();
        let norms: Vec<_> = order.iter().map(|&j| norm(self.r.column(j))).collect();
        let rhs = Matrix::of_column(self.z.column(0).to_vec());
        let small = Self::new(self.r.select_columns(&order), rhs, Some(&norms));
        let of_last = small.kept.iter().zip(small.z.column(0)).filter(|(j, _)| **j >= first.len());
        of_last.fold((0.0, 0), |(sum, df), (_, z)| (sum + z * z, df + 1))
    }

    /// R⁻ᵀ times each column, which is a row of X (its kept columns).
    pub(super) fn whiten(&self, rows: &mut Matrix) {
        rows.columns_mut().for_each(|row| self.r.solve_upper_transposed(row));
    }
}

/// The differences of a column from the means of its groups: its part within groups.
pub(super) fn centre_within(column: &[f64], groups: &Groups) -> Vec<f64> {
    let mut sums = vec![0.0; groups.sizes.len()];
    for (&group, value) in groups.of_run.iter().zip(column) {
        sums[group] += value;
    }
    let means: Vec<_> = sums.iter().zip(&groups.sizes).map(|(sum, &n)| sum / n as f64).collect();
    groups.of_run.iter().zip(column).map(|(&group, value)| value - means[group]).collect()
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
    pub(super) fn indicators(&self) -> Matrix {
        let one = |run: usize, group: usize| f64::from(u8::from(self.of_run[run] == group));
        Matrix::from_fn(self.of_run.len(), self.sizes.len(), one)
    }
}
