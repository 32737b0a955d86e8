//! Dense matrices, as far as least squares needs them.

use std::ops::{Index, IndexMut};

/// A matrix, stored column by column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Matrix {
    rows: usize,
    columns: usize,
    cells: Vec<f64>,
}

impl Matrix {
    pub(super) fn filled(rows: usize, columns: usize, value: f64) -> Self {
        Self { rows, columns, cells: vec![value; rows * columns] }
    }

    pub(super) fn zeros(rows: usize, columns: usize) -> Self {
        Self::filled(rows, columns, 0.0)
    }

    /// A matrix of one column.
    pub(super) fn of_column(column: Vec<f64>) -> Self {
        Self { rows: column.len(), columns: 1, cells: column }
    }

    /// Columns of `rows` values each.
    pub(super) fn of_columns<C: AsRef<[f64]>>(rows: usize, columns: impl Iterator<Item = C>) -> Self {
        let mut matrix = Self { rows, columns: 0, cells: Vec::new() };
        for column in columns {
            debug_assert_eq!(column.as_ref().len(), rows);
            matrix.cells.extend_from_slice(column.as_ref());
            matrix.columns += 1;
        }
        matrix
    }

    pub(super) fn from_fn(rows: usize, columns: usize, value: impl Fn(usize, usize) -> f64) -> Self {
        let cells = (0..columns).flat_map(|j| (0..rows).map(move |i| (i, j)));
        Self { rows, columns, cells: cells.map(|(i, j)| value(i, j)).collect() }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub(super) fn width(&self) -> usize {
        self.columns
    }

    pub(super) fn column(&self, j: usize) -> &[f64] {
        &self.cells[j * self.rows..(j + 1) * self.rows]
    }

    pub(super) fn column_mut(&mut self, j: usize) -> &mut [f64] {
        &mut self.cells[j * self.rows..(j + 1) * self.rows]
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = &[f64]> {
        (0..self.columns).map(|j| self.column(j))
    }

    pub(super) fn columns_mut(&mut self) -> impl Iterator<Item = &mut [f64]> {
        self.cells.chunks_exact_mut(self.rows.max(1))
    }

    pub(super) fn select_columns(&self, columns: &[usize]) -> Self {
        Self::of_columns(self.rows, columns.iter().map(|&j| self.column(j)))
    }

    pub(super) fn transpose(&self) -> Self {
        Self::from_fn(self.columns, self.rows, |i, j| self[(j, i)])
    }

    /// Squared length of a row.
    pub(super) fn row_norm_squared(&self, row: usize) -> f64 {
        (0..self.columns).map(|j| self[(row, j)].powi(2)).sum()
    }

    /// The matrix times a vector.
    pub(super) fn times(&self, vector: &[f64]) -> Vec<f64> {
        let mut product = vec![0.0; self.rows];
        for (column, &factor) in self.columns().zip(vector) {
            add_scaled(&mut product, factor, column);
        }
        product
    }

    /// The transposed matrix times a vector.
    pub(super) fn transposed_times(&self, vector: &[f64]) -> Vec<f64> {
        self.columns().map(|column| dot(column, vector)).collect()
    }

    /// Solves Rx = b in place, where R is the upper triangle of as many rows as `b` has.
    pub(super) fn solve_upper(&self, b: &mut [f64]) {
        for j in (0..b.len()).rev() {
            let column = self.column(j);
            b[j] /= column[j];
            let (above, own) = b.split_at_mut(j);
            add_scaled(above, -own[0], &column[..j]);
        }
    }

    /// Solves Rᵀx = b in place, where R is the upper triangle of as many rows as `b` has.
    pub(super) fn solve_upper_transposed(&self, b: &mut [f64]) {
        for j in 0..b.len() {
            let column = self.column(j);
            b[j] = (b[j] - dot(&column[..j], &b[..j])) / column[j];
        }
    }
}

impl Index<(usize, usize)> for Matrix {
    type Output = f64;

    fn index(&self, (row, column): (usize, usize)) -> &f64 {
        &self.column(column)[row]
    }
}

impl IndexMut<(usize, usize)> for Matrix {
    fn index_mut(&mut self, (row, column): (usize, usize)) -> &mut f64 {
        &mut self.column_mut(column)[row]
    }
}

/// Inner product. Several sums at once, which the compiler turns into vector instructions.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    let mut sums = [0.0; 8];
    for (a, b) in a.iter().zip(b) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f64>() + rest
}

pub(super) fn norm_squared(a: &[f64]) -> f64 {
    dot(a, a)
}

pub(super) fn norm(a: &[f64]) -> f64 {
    norm_squared(a).sqrt()
}

/// Adds a multiple of a vector to another.
pub(super) fn add_scaled(target: &mut [f64], factor: f64, vector: &[f64]) {
    for (target, value) in target.iter_mut().zip(vector) {
        *target += factor * value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_triangles() {
        let matrix = Matrix::of_columns(2, [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]].iter());
        assert_eq!((matrix.rows(), matrix.width(), matrix[(1, 2)]), (2, 3, 6.0));
        assert_eq!(matrix.times(&[1.0, 0.0, -1.0]), [-4.0, -4.0]);
        assert_eq!(matrix.transposed_times(&[1.0, -1.0]), [-1.0, -1.0, -1.0]);
        assert_eq!(matrix.transpose().column(1), [2.0, 4.0, 6.0]);
        assert_eq!(matrix.row_norm_squared(0), 35.0);
        assert_eq!(matrix.select_columns(&[2, 0]).column(1), [1.0, 2.0]);

        let upper = Matrix::of_columns(3, [[2.0, 0.0, 0.0], [1.0, 4.0, 0.0], [3.0, -2.0, 5.0]].iter());
        let x = [1.0, -2.0, 3.0];
        let mut b = upper.times(&x);
        upper.solve_upper(&mut b);
        assert_eq!(b, x);
        let mut b = upper.transposed_times(&x);
        upper.solve_upper_transposed(&mut b);
        assert_eq!(b, x);
        // A shorter right-hand side belongs to the leading block.
        let mut b = [2.0 + 1.0, 4.0];
        upper.solve_upper(&mut b);
        assert_eq!(b, [1.0, 1.0]);
    }

    #[test]
    fn inner_products_of_any_length() {
        for n in 0..20 {
            let a: Vec<f64> = (0..n).map(f64::from).collect();
            let expected: f64 = a.iter().map(|v| v * v).sum();
            assert_eq!((dot(&a, &a), norm_squared(&a)), (expected, expected), "{n}");
        }
        assert_eq!(norm(&[3.0, 4.0]), 5.0);
    }
}
