//! Orthonormal sum-to-zero contrasts, and the transform of a whole design to them.

/// The most combinations of levels whose table is transformed as a whole.
pub(crate) const MAX_CELLS: u64 = 1 << 20;

/// `contrasts(s)[c][l]` is contrast c of a factor with s levels at level l: the constant 1 for c = 0, then Helmert
/// contrasts, each with sum 0 and sum of squares s. With two levels contrast 1 is −1, +1.
pub(crate) fn contrasts(levels: u32) -> Vec<Vec<f64>> {
    let constant = vec![1.0; levels as usize];
    let helmert = |c: u32| {
        let scale = (f64::from(levels) / (f64::from(c) * f64::from(c + 1))).sqrt();
        let value = |level: u32| match level.cmp(&c) {
            std::cmp::Ordering::Less => -scale,
            std::cmp::Ordering::Equal => f64::from(c) * scale,
            std::cmp::Ordering::Greater => 0.0,
        };
        (0..levels).map(value).collect()
    };
    std::iter::once(constant).chain((1..levels).map(helmert)).collect()
}

/// The different rows, with how often each is there. Rows have been checked against the levels.
pub(crate) fn distinct<'a>(rows: &'a [Vec<u32>], levels: &[u32]) -> Vec<(&'a [u32], u32)> {
    let product = levels.iter().try_fold(1u64, |product, &n| product.checked_mul(n.into()));
    let mut sorted: Vec<_> = rows.iter().map(Vec::as_slice).collect();
    match product {
        // Numbers sort a hundred times faster than rows.
        Some(_) => sorted.sort_by_cached_key(|row| index(row, levels)),
        None => sorted.sort_unstable(),
    }
    let groups = sorted.chunk_by(|a, b| a == b);
    groups.filter_map(|group| Some((*group.first()?, group.len() as u32))).collect()
}

/// The number of a combination of levels, the first factor fastest.
fn index(row: &[u32], levels: &[u32]) -> u64 {
    row.iter().zip(levels).rev().fold(0, |index, (&level, &n)| index * u64::from(n) + u64::from(level))
}

/// Number of combinations of levels, when it is at most [`MAX_CELLS`].
pub(crate) fn cells(levels: &[u32]) -> Option<usize> {
    let product = levels.iter().try_fold(1u64, |product, &n| product.checked_mul(n.into()));
    product.filter(|&cells| cells <= MAX_CELLS).map(|cells| cells as usize)
}

/// The sums of all products of contrasts over the rows, indexed by the number of each factor's contrast in the mixed
/// radix of the levels, the first factor fastest. With two levels that is the Walsh-Hadamard transform of the indicator
/// function, indexed by terms. `None` above [`MAX_CELLS`].
pub(crate) fn transform(rows: &[Vec<u32>], levels: &[u32]) -> Option<Vec<f64>> {
    let mut table = vec![0.0; cells(levels)?];
    for row in rows {
        let index =
            row.iter().zip(levels).rev().fold(0, |index, (&level, &n)| index * n as usize + level as usize);
        table[index] += 1.0;
    }
    let mut stride = 1;
    let mut line = Vec::new();
    for &n in levels {
        let contrasts = contrasts(n);
        let n = n as usize;
        for block in table.chunks_exact_mut(stride * n) {
            if n == 2 {
                let (low, high) = block.split_at_mut(stride);
                low.iter_mut().zip(high).for_each(|(low, high)| (*low, *high) = (*low + *high, *high - *low));
                continue;
            }
            for offset in 0..stride {
                line.clear();
                line.extend((0..n).map(|level| block[offset + level * stride]));
                for (c, contrast) in contrasts.iter().enumerate() {
                    block[offset + c * stride] = contrast.iter().zip(&line).map(|(x, y)| x * y).sum();
                }
            }
        }
        stride *= n;
    }
    Some(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrasts_are_orthogonal_with_squares_that_sum_to_the_levels() {
        assert_eq!(contrasts(2), [[1.0, 1.0], [-1.0, 1.0]]);
        for n in 1..7 {
            let contrasts = contrasts(n);
            for (i, a) in contrasts.iter().enumerate() {
                for (j, b) in contrasts.iter().enumerate() {
                    let product: f64 = a.iter().zip(b).map(|(x, y)| x * y).sum();
                    let expected = if i == j { f64::from(n) } else { 0.0 };
                    assert!((product - expected).abs() < 1e-12, "{n} levels, {i} and {j}: {product}");
                }
            }
        }
    }

    #[test]
    fn two_level_rows_are_transformed_to_the_sums_of_their_terms() {
        // The half of 2^3 with C = AB: only the mean and ABC have a sum.
        let rows = [[0, 0, 1], [1, 0, 0], [0, 1, 0], [1, 1, 1]].map(Vec::from);
        assert_eq!(transform(&rows, &[2; 3]), Some(vec![4.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 4.0]));
        assert_eq!(transform(&[vec![0; 21]], &[2; 21]), None);
    }
}
