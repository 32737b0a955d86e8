//! Plackett-Burman designs: main effects of up to N − 1 factors in N runs, N a multiple of 4.
//!
//! For screening only: a main effect is partly mixed up with every interaction of two other factors.

use crate::design::DesignError;
use crate::error::FractionError;

/// The most factors: 48 runs.
pub const MAX_FACTORS: u32 = 47;

/// The smallest of the designs with 8, 12, …, 48 runs that has enough columns: rows of level numbers (0 low, 1 high).
///
/// Up to 24 runs the design is Plackett and Burman's (1946): their row, its cyclic shifts and a row of all low levels.
/// 32, 44 and 48 runs are cyclic too. The others are made from Hadamard matrices by Paley's second construction (28
/// and 36) and by doubling (40).
///
/// # Errors
///
/// No factors or more than [`MAX_FACTORS`].
pub fn plackett_burman(factors: u32) -> Result<Vec<Vec<u32>>, DesignError> {
    if factors == 0 || factors > MAX_FACTORS {
        return Err(FractionError::PlackettBurman { factors, limit: MAX_FACTORS }.into());
    }
    let runs = ((factors + 4) / 4 * 4).max(8);
    let mut rows = match runs {
        8 => cyclic("+++-+--"),
        12 => cyclic("++-+++---+-"),
        16 => cyclic("++++-+-++--+---"),
        20 => cyclic("++--++++-+-+----++-"),
        24 => cyclic("+++++-+-++--++--+-+----"),
        32 => cyclic("----+-+-+++-++---+++++--++-+--+"),
        28 => of_hadamard(&paley_second(13)),
        36 => of_hadamard(&paley_second(17)),
        40 => doubled(&cyclic("++--++++-+-+----++-")),
        // 44 and 48: 43 and 47 are primes of the form 4m − 1, and quadratic residues give the row.
        _ => {
            let residue = residues(runs - 1);
            let row: String =
                (0..runs - 1).map(|at| if at == 0 || residue[at as usize] { '+' } else { '-' }).collect();
            cyclic(&row)
        }
    };
    for row in &mut rows {
        row.truncate(factors as usize);
    }
    Ok(rows)
}

/// The row, its shifts to the right by 1, 2, …, and a row of low levels.
fn cyclic(first: &str) -> Vec<Vec<u32>> {
    let mut row: Vec<u32> = first.bytes().map(|sign| u32::from(sign == b'+')).collect();
    let mut rows = Vec::with_capacity(row.len() + 1);
    for _ in 0..row.len() {
        rows.push(row.clone());
        row.rotate_right(1);
    }
    rows.push(vec![0; row.len()]);
    rows
}

/// Whether each number below a prime is a square other than 0.
fn residues(prime: u32) -> Vec<bool> {
    let mut residue = vec![false; prime as usize];
    for number in 1..prime {
        residue[(number * number % prime) as usize] = true;
    }
    residue
}

/// Paley's Hadamard matrix of order 2(q + 1) for a prime q of the form 4m + 1; true is +1.
fn paley_second(q: u32) -> Vec<Vec<bool>> {
    let residue = residues(q);
    // The conference matrix: 0 on the diagonal, +1 at its border, else whether the difference is a square.
    let conference = |i: u32, j: u32| match (i, j) {
        _ if i == j => None,
        (0, _) | (_, 0) => Some(true),
        _ => Some(residue[((i + q - j) % q) as usize]),
    };
    // 0 becomes (+ − / − −), ±1 becomes ±(+ + / + −).
    let entry = |row: u32, column: u32| {
        let (first, second) = (row.is_multiple_of(2), column.is_multiple_of(2));
        match conference(row / 2, column / 2) {
            None => first && second,
            Some(plus) => plus == (first || second),
        }
    };
    (0..2 * (q + 1)).map(|row| (0..2 * (q + 1)).map(|column| entry(row, column)).collect()).collect()
}

/// The columns of a Hadamard matrix after the first, with rows multiplied such that the first is all +1.
fn of_hadamard(matrix: &[Vec<bool>]) -> Vec<Vec<u32>> {
    let level = |row: &[bool], sign: bool| u32::from(sign == row[0]);
    matrix.iter().map(|row| row[1..].iter().map(|&sign| level(row, sign)).collect()).collect()
}

/// A design of 2N runs and 2N − 1 columns from one of N runs: (H H / H −H).
fn doubled(rows: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let part = |row: &Vec<u32>, half: u32| -> Vec<u32> {
        let second = row.iter().map(|&level| if half == 0 { level } else { 1 - level });
        row.iter().copied().chain([1 - half]).chain(second).collect()
    };
    [0, 1].into_iter().flat_map(|half| rows.iter().map(move |row| part(row, half))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_balanced_and_orthogonal_for_every_number_of_runs() {
        for factors in 1..=MAX_FACTORS {
            let rows = plackett_burman(factors).unwrap();
            let runs = rows.len() as u32;
            assert!(runs > factors && runs.is_multiple_of(4), "{factors} factors in {runs} runs");
            assert!(runs == 8 || runs <= factors + 4, "{factors} factors need fewer than {runs} runs");
            let sign = |level: u32| if level == 1 { 1 } else { -1 };
            for a in 0..factors as usize {
                assert_eq!(rows.iter().map(|row| sign(row[a])).sum::<i32>(), 0, "column {a} of {runs} runs");
                for b in 0..a {
                    let product: i32 = rows.iter().map(|row| sign(row[a]) * sign(row[b])).sum();
                    assert_eq!(product, 0, "columns {a} and {b} of {runs} runs");
                }
            }
        }
    }

    #[test]
    fn numbers_of_factors_out_of_bounds_are_refused() {
        for factors in [0, 48] {
            let error = plackett_burman(factors).unwrap_err().to_string();
            assert!(error.contains("1 to 47 factors"), "{error}");
        }
    }
}
