//! The little linear algebra that designs need: which columns depend on earlier ones, and how precise the others are.

/// Columns in a given order, known by their inner products: the first independent ones and how the others depend on
/// them. A Cholesky factorisation that passes over dependent columns.
pub(crate) struct Independent {
    /// The columns that do not depend on earlier ones, ascending.
    pub(crate) columns: Vec<usize>,
    /// The dependent columns, ascending, each with its coordinates in the orthonormalised independent ones before it.
    dependent: Vec<(usize, Vec<f64>)>,
    /// Column i of the inverse of the Cholesky factor from its diagonal down, for independent column i.
    inverse: Vec<Vec<f64>>,
    /// Logarithm of the determinant of the independent columns' inner products.
    pub(crate) log_determinant: f64,
}

/// A column is dependent when what earlier ones leave of it is below this share of its squared length.
const DEPENDENT: f64 = 1e-8;

impl Independent {
    /// `product(i, j)` is the inner product of columns i ≥ j, of `count` columns.
    pub(crate) fn of(count: usize, product: impl Fn(usize, usize) -> f64) -> Self {
        let mut columns: Vec<usize> = Vec::new();
        let mut dependent = Vec::new();
        let mut factor: Vec<Vec<f64>> = Vec::new();
        let mut log_determinant = 0.0;
        for column in 0..count {
            let mut row: Vec<f64> = Vec::with_capacity(columns.len() + 1);
            for (&earlier, own) in columns.iter().zip(&factor) {
                let known = dot(&own[..row.len()], &row);
                row.push((product(column, earlier) - known) / own[row.len()]);
            }
            let square = product(column, column);
            let left = square - dot(&row, &row);
            if left > DEPENDENT * square {
                log_determinant += left.ln();
                row.push(left.sqrt());
                factor.push(row);
                columns.push(column);
            } else {
                dependent.push((column, row));
            }
        }
        let inverse = (0..columns.len()).map(|column| inverse_column(&factor, column)).collect();
        Self { columns, dependent, inverse, log_determinant }
    }

    /// Where a column stands among the independent ones.
    pub(crate) fn position(&self, column: usize) -> Option<usize> {
        self.columns.binary_search(&column).ok()
    }

    /// How many of the first `count` columns are independent.
    pub(crate) fn rank(&self, count: usize) -> usize {
        self.columns.partition_point(|&column| column < count)
    }

    /// The dependent ones of the first `count` columns.
    pub(crate) fn dependent(&self, count: usize) -> impl Iterator<Item = &(usize, Vec<f64>)> {
        self.dependent.iter().take_while(move |(column, _)| *column < count)
    }

    /// The coefficient of the independent column at `position` in a dependent one.
    pub(crate) fn coefficient(&self, position: usize, coordinates: &[f64]) -> f64 {
        match coordinates.get(position..) {
            Some(rest) => dot(&self.inverse[position][..rest.len()], rest),
            None => 0.0,
        }
    }

    /// An entry of the inverse of the inner products of the first `rank` independent columns, by positions: times the
    /// variance of a run it is the covariance of two estimated coefficients.
    pub(crate) fn inverse(&self, a: usize, b: usize, rank: usize) -> f64 {
        let from = a.max(b);
        dot(&self.inverse[a][from - a..rank - a], &self.inverse[b][from - b..rank - b])
    }

    /// The combinations of all `count` columns that orthonormalise the independent ones.
    pub(crate) fn inverse_factor(&self, count: usize) -> Vec<Vec<f64>> {
        let mut combinations = vec![vec![0.0; count]; self.columns.len()];
        for (position, (&column, inverse)) in self.columns.iter().zip(&self.inverse).enumerate() {
            for (combination, value) in combinations[position..].iter_mut().zip(inverse) {
                combination[column] = *value;
            }
        }
        combinations
    }
}

/// Column `column` of the inverse of a lower triangular matrix, from its diagonal down.
fn inverse_column(factor: &[Vec<f64>], column: usize) -> Vec<f64> {
    let mut inverse = Vec::with_capacity(factor.len() - column);
    inverse.push(1.0 / factor[column][column]);
    for (number, row) in factor.iter().enumerate().skip(column + 1) {
        inverse.push(-dot(&row[column..number], &inverse) / row[number]);
    }
    inverse
}

/// Σ a·b, with several sums so that they can be computed side by side.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0; LANES];
    for (a, b) in a.zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    rest + sums.iter().sum::<f64>()
}

/// The largest eigenvalue of a small symmetric matrix, by Jacobi's rotations.
pub(crate) fn largest_eigenvalue(mut matrix: Vec<Vec<f64>>) -> f64 {
    let n = matrix.len();
    let scale: f64 = matrix.iter().flatten().map(|x| x * x).sum();
    // Each sweep squares the share off the diagonal; 50 are never needed.
    for _ in 0..50 {
        let off_diagonal: f64 =
            (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| matrix[i][j].powi(2)).sum();
        if off_diagonal <= 1e-24 * scale {
            break;
        }
        for p in 0..n {
            for q in p + 1..n {
                if matrix[p][q] == 0.0 {
                    continue;
                }
                let theta = (matrix[q][q] - matrix[p][p]) / (2.0 * matrix[p][q]);
                let t = theta.signum() / (theta.abs() + theta.hypot(1.0));
                let c = 1.0 / t.hypot(1.0);
                let s = t * c;
                for row in &mut matrix {
                    (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
                }
                let (above, below) = matrix.split_at_mut(q);
                for (a, b) in above[p].iter_mut().zip(&mut below[0]) {
                    (*a, *b) = (c * *a - s * *b, s * *a + c * *b);
                }
            }
        }
    }
    (0..n).map(|i| matrix[i][i]).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependent_columns_are_found_and_expressed() {
        // Third = first + 2·second; fourth is new.
        let columns = [[1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 2.0, 3.0], [0.0, 0.0, 1.0]];
        let product = |i: usize, j: usize| dot(&columns[i], &columns[j]);
        let found = Independent::of(4, product);
        assert_eq!(found.columns, [0, 1, 3]);
        assert_eq!((found.rank(3), found.rank(4)), (2, 3));
        let (column, coordinates) = found.dependent(4).next().unwrap();
        assert_eq!(*column, 2);
        for (position, expected) in [(0, 1.0), (1, 2.0), (2, 0.0)] {
            assert!((found.coefficient(position, coordinates) - expected).abs() < 1e-12);
        }
        // The inverse of [[2, 1], [1, 2]].
        for (a, b, expected) in [(0, 0, 2.0 / 3.0), (0, 1, -1.0 / 3.0), (1, 1, 2.0 / 3.0)] {
            assert!((found.inverse(a, b, 2) - expected).abs() < 1e-12);
        }
        // With the fourth column the determinant of the three is 1, the square of that of the columns.
        assert!(found.log_determinant.abs() < 1e-12);
    }

    #[test]
    fn eigenvalues_of_known_matrices() {
        let matrix = vec![vec![2.0, -1.0, 0.0], vec![-1.0, 2.0, -1.0], vec![0.0, -1.0, 2.0]];
        assert!((largest_eigenvalue(matrix) - (2.0 + 2f64.sqrt())).abs() < 1e-12);
        assert!((largest_eigenvalue(vec![vec![0.25]]) - 0.25).abs() < 1e-15);
        assert_eq!(largest_eigenvalue(vec![vec![0.0; 2]; 2]), 0.0);
    }

    #[test]
    fn dot_products_of_any_length() {
        for n in 0..40u32 {
            let a: Vec<_> = (0..n).map(f64::from).collect();
            assert_eq!(dot(&a, &a), (0..n).map(|x| f64::from(x * x)).sum::<f64>());
        }
    }
}
