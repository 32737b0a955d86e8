//! Contrasts: how the levels of a factor become columns of numbers.

use std::fmt;

use super::data::Factor;

/// What a column of a factor stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Contrast {
    /// −1 for the first of two levels and +1 for the second: the coefficient is the half effect q.
    TwoLevel,
    /// Sum-to-zero coding: the coefficient is how far this level (from 0) is from the mean of all levels. The first
    /// level has none, being minus the sum of the others.
    Level(u32),
    /// Orthogonal polynomial of this degree over the values of the levels.
    Polynomial(u32),
}

impl fmt::Display for Contrast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoLevel => Ok(()),
            Self::Level(level) => write!(f, "level {}", level + 1),
            Self::Polynomial(1) => f.write_str("L"),
            Self::Polynomial(2) => f.write_str("Q"),
            Self::Polynomial(3) => f.write_str("C"),
            Self::Polynomial(degree) => write!(f, "degree {degree}"),
        }
    }
}

/// The columns of a factor: what each stands for, and its number for each level. The numbers of a column add up to 0.
pub fn contrasts(factor: &Factor) -> Vec<(Contrast, Vec<f64>)> {
    match &factor.values {
        _ if factor.levels == 2 => vec![(Contrast::TwoLevel, vec![-1.0, 1.0])],
        Some(values) => {
            let columns = polynomials(values).into_iter();
            columns.enumerate().map(|(i, column)| (Contrast::Polynomial(i as u32 + 1), column)).collect()
        }
        None => (1..factor.levels)
            .map(|level| {
                let code = |l: usize| if l == 0 { -1.0 } else { f64::from(u8::from(l == level)) };
                (Contrast::Level(level as u32), (0..factor.levels).map(code).collect())
            })
            .collect(),
    }
}

/// Orthogonal polynomials of degree 1, 2, … over distinct values.
///
/// Equally spaced values get the integers of the usual tables (−1 0 1 and 1 −2 1 for three levels); others have the
/// same sum of squares as those, so that nearly equal spacing gives nearly the same numbers.
fn polynomials(values: &[f64]) -> Vec<Vec<f64>> {
    let places: Vec<f64> = (0..values.len()).map(|i| i as f64).collect();
    let mut table = gram_schmidt(&places);
    table.iter_mut().for_each(|column| to_integers(column));

    // Only the order and the relative distances count.
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, range) = (sorted[0], sorted[sorted.len() - 1] - sorted[0]);
    let scaled: Vec<_> = values.iter().map(|v| (v - low) / range * (values.len() - 1) as f64).collect();
    let rank = |v: f64| sorted.partition_point(|&other| other < v);
    if scaled.iter().zip(values).all(|(s, &v)| (s - rank(v) as f64).abs() < 1e-9 * values.len() as f64) {
        let in_order = |column: Vec<f64>| values.iter().map(|&v| column[rank(v)]).collect();
        return table.into_iter().map(in_order).collect();
    }
    let mut columns = gram_schmidt(&scaled);
    for (column, standard) in columns.iter_mut().zip(&table) {
        let scale = (squares(standard) / squares(column)).sqrt();
        column.iter_mut().for_each(|c| *c *= scale);
    }
    columns
}

/// Powers 1, 2, … of the values, each made orthogonal to all lower ones.
fn gram_schmidt(values: &[f64]) -> Vec<Vec<f64>> {
    let n = values.len();
    let mut columns = vec![vec![1.0; n]];
    for _ in 1..n {
        // The last polynomial times x has the next degree, and is less dependent on the lower ones than a power.
        let last = &columns[columns.len() - 1];
        let mut next: Vec<_> = last.iter().zip(values).map(|(c, v)| c * v).collect();
        for _ in 0..2 {
            for column in &columns {
                let share = dot(&next, column) / squares(column);
                next.iter_mut().zip(column).for_each(|(a, b)| *a -= share * b);
            }
        }
        columns.push(next);
    }
    columns.remove(0);
    columns
}

/// Scales a column to the smallest integers it is a multiple of, where there are any.
fn to_integers(column: &mut [f64]) {
    let largest = column.iter().fold(0.0, |a: f64, b| a.max(b.abs()));
    let smallest = column.iter().map(|c| c.abs()).filter(|&c| c > 1e-9 * largest).fold(largest, f64::min);
    column.iter_mut().for_each(|c| *c /= smallest);
    let whole = |factor: f64| column.iter().all(|c| ((c * factor).round() - c * factor).abs() < 1e-6);
    if let Some(factor) = (1..=60).map(f64::from).find(|&factor| whole(factor)) {
        column.iter_mut().for_each(|c| *c = (*c * factor).round());
    }
}

fn squares(column: &[f64]) -> f64 {
    dot(column, column)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(factor: &Factor) -> Vec<Vec<f64>> {
        contrasts(factor).into_iter().map(|(_, column)| column).collect()
    }

    #[test]
    fn equally_spaced_values_get_the_integers_of_the_tables() {
        assert_eq!(columns(&Factor::numeric(vec![4.0, 16.0, 28.0])), [[-1.0, 0.0, 1.0], [1.0, -2.0, 1.0]]);
        let four = [[-3.0, -1.0, 1.0, 3.0], [1.0, -1.0, -1.0, 1.0], [-1.0, 3.0, -3.0, 1.0]];
        assert_eq!(columns(&Factor::numeric(vec![0.1, 0.2, 0.3, 0.4])), four);
        let six = columns(&Factor::numeric((1..=6).map(f64::from).collect()));
        assert_eq!(six[1], [5.0, -1.0, -4.0, -4.0, -1.0, 5.0]);
        assert_eq!(six[2], [-5.0, 7.0, 4.0, -4.0, -7.0, 5.0]);
        assert_eq!(six[4], [-1.0, 5.0, -10.0, 10.0, -5.0, 1.0]);
        // Listed in another order, each level keeps its number.
        assert_eq!(columns(&Factor::numeric(vec![28.0, 4.0, 16.0])), [[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]);
    }

    #[test]
    fn unequal_values_are_orthogonal_and_continuous_with_the_tables() {
        for values in [vec![0.5, 1.0, 2.0], vec![0.027, 6.87, 13.9], vec![1.0, 2.0, 4.0, 8.0, 16.0, 1024.0]] {
            let found = columns(&Factor::numeric(values.clone()));
            assert_eq!(found.len(), values.len() - 1);
            for (i, a) in found.iter().enumerate() {
                assert!(a.iter().sum::<f64>().abs() < 1e-9);
                for b in &found[..i] {
                    assert!(dot(a, b).abs() < 1e-9 * (squares(a) * squares(b)).sqrt(), "{values:?}");
                }
            }
            // Degree 1 is linear in the values.
            let slope = (found[0][1] - found[0][0]) / (values[1] - values[0]);
            for (c, v) in found[0].iter().zip(&values) {
                assert!((c - found[0][0] - slope * (v - values[0])).abs() < 1e-9);
            }
        }
        let near = columns(&Factor::numeric(vec![0.027, 6.87, 13.9]));
        for (found, table) in near.concat().iter().zip([-1.0, 0.0, 1.0, 1.0, -2.0, 1.0]) {
            assert!((found - table).abs() < 0.03, "{near:?}");
        }
    }

    #[test]
    fn names_of_levels_are_coded_sum_to_zero() {
        let found = contrasts(&Factor::named(3));
        assert_eq!(found[0], (Contrast::Level(1), vec![-1.0, 1.0, 0.0]));
        assert_eq!(found[1], (Contrast::Level(2), vec![-1.0, 0.0, 1.0]));
        let two = vec![(Contrast::TwoLevel, vec![-1.0, 1.0])];
        assert_eq!(contrasts(&Factor::named(2)), two);
        assert_eq!(contrasts(&Factor::numeric(vec![64.0, 1024.0])), two);
        let names: Vec<_> = [0, 1, 2, 3].map(|d| Contrast::Polynomial(d + 1).to_string()).into();
        assert_eq!(names, ["L", "Q", "C", "degree 4"]);
    }
}
