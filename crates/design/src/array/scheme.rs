//! Difference schemes: columns over a group, any two of which differ by each element equally often.
//!
//! With s elements and M rows, each row added to all s elements gives an orthogonal array of s·M runs in which every
//! column has s levels (Bose & Bush 1952; Wang & Wu 1991). Elements of a group of order pⁿ are numbered by their digits to
//! the base p, and added digit by digit.

use crate::plackett_burman::plackett_burman;

/// Found by a search for sets of balanced differences: 12 rows over the group of order 3.
const TWELVE_BY_THREE: [&str; 12] = [
    "000000000000",
    "000011112222",
    "002112022101",
    "021022010211",
    "012202110120",
    "020101220112",
    "001220211102",
    "022121101200",
    "010221021021",
    "021210122010",
    "012012201012",
    "011100202221",
];

/// Found in the same way: 12 rows over the group of order 4 in which every element is its own negative.
const TWELVE_BY_FOUR: [&str; 12] = [
    "000000000000",
    "000111222333",
    "003230132121",
    "023301011223",
    "031202023311",
    "032013213120",
    "012132103203",
    "031321302102",
    "021033121032",
    "013312230012",
    "022120331310",
    "010223310231",
];

/// Columns of `rows` elements of a group of order `order`, as many as are known here; at least the one of zeros.
pub(super) fn scheme(rows: u32, order: u32) -> Vec<Vec<u32>> {
    let single = vec![vec![0; rows as usize]];
    let Some((prime, _)) = prime_power(order) else { return single };
    if !rows.is_multiple_of(order) {
        return single;
    }
    if prime_power(rows).is_some_and(|(other, _)| other == prime) {
        // Products in a field, of which any linear image in the group will do: here the last digits.
        return multiplication(rows)
            .into_iter()
            .map(|column| column.into_iter().map(|x| x % order).collect())
            .collect();
    }
    match (rows, order) {
        (12, 3) => return table(&TWELVE_BY_THREE),
        (12, 4) => return table(&TWELVE_BY_FOUR),
        (8..=48, 2) if rows.is_multiple_of(4) => {
            if let Ok(design) = plackett_burman(rows - 1) {
                let column = |factor: usize| design.iter().map(|row| row[factor]).collect();
                return single.into_iter().chain((0..rows as usize - 1).map(column)).collect();
            }
        }
        _ if order == prime && prime > 2 && rows == 2 * prime => return twice(prime),
        _ => {}
    }
    let divisors = (2..rows).filter(|divisor| rows.is_multiple_of(*divisor) && divisor.is_multiple_of(order));
    let smaller = divisors.map(|divisor| {
        let left = scheme(divisor, order);
        // Sums of the columns of two schemes are a scheme; without a second one the first is repeated.
        let right = scheme(rows / divisor, order);
        let sum = |a: &Vec<u32>, b: &Vec<u32>| {
            let cells = a.iter().flat_map(|&x| b.iter().map(move |&y| add(x, y, order, prime)));
            cells.collect::<Vec<_>>()
        };
        left.iter().flat_map(|a| right.iter().map(|b| sum(a, b)).collect::<Vec<_>>()).collect::<Vec<_>>()
    });
    smaller.chain([single]).max_by_key(Vec::len).unwrap_or_default()
}

/// The sum of two elements of the group of `order` elements.
pub(super) fn add(mut a: u32, mut b: u32, order: u32, prime: u32) -> u32 {
    let (mut sum, mut place) = (0, 1);
    while place < order {
        sum += (a % prime + b % prime) % prime * place;
        (a, b, place) = (a / prime, b / prime, place * prime);
    }
    sum
}

/// The prime p and the exponent n when the number is pⁿ.
pub(super) fn prime_power(number: u32) -> Option<(u32, u32)> {
    let prime = (2..=number).find(|divisor| number.is_multiple_of(*divisor))?;
    let (mut rest, mut exponent) = (number, 0);
    while rest.is_multiple_of(prime) {
        (rest, exponent) = (rest / prime, exponent + 1);
    }
    (rest == 1).then_some((prime, exponent))
}

fn table(rows: &[&str]) -> Vec<Vec<u32>> {
    rows.iter().map(|row| row.bytes().map(|digit| u32::from(digit - b'0')).collect()).collect()
}

/// The multiplication table of the field with `size` elements, a power of a prime.
fn multiplication(size: u32) -> Vec<Vec<u32>> {
    let Some((prime, _)) = prime_power(size) else { return Vec::new() };
    // Powers of x beyond the degree are replaced by a polynomial; the first for which there are no divisors of 0 will do.
    let product = |a: u32, b: u32, replacement: u32| {
        let (mut sum, mut a, mut power) = (0, a, b);
        while a > 0 {
            for _ in 0..a % prime {
                sum = add(sum, power, size, prime);
            }
            a /= prime;
            // power · x
            let carried = power / (size / prime);
            power = power % (size / prime) * prime;
            for _ in 0..carried {
                power = add(power, replacement, size, prime);
            }
        }
        sum
    };
    let is_field = |replacement: &u32| (1..size).all(|a| (1..=a).all(|b| product(a, b, *replacement) != 0));
    let replacement = (0..size).find(is_field).unwrap_or_default();
    (0..size).map(|a| (0..size).map(|b| product(a, b, replacement)).collect()).collect()
}

/// 2q columns of 2q rows over the integers modulo an odd prime q: products and squares, with one number that is no square
/// (Jungnickel 1979).
fn twice(q: u32) -> Vec<Vec<u32>> {
    let inverse = |a: u32| (1..q).find(|b| a * b % q == 1).unwrap_or(1);
    let no_square = (2..q).find(|n| (1..q).all(|x| x * x % q != *n)).unwrap_or(2);
    let (quarter, no_square_inverse) = (inverse(4 % q), inverse(no_square));
    let entry = |row: u32, column: u32| {
        let (i, j) = (row % q, column % q);
        let square = i * i % q * quarter % q;
        let lower = (i * j + 2 * q * q - j * j - square) % q;
        match (row < q, column < q) {
            (true, true) => (i * j + square) % q,
            (true, false) => (i * j + no_square * square) % q,
            (false, true) => lower,
            (false, false) => lower * no_square_inverse % q,
        }
    };
    (0..2 * q).map(|column| (0..2 * q).map(|row| entry(row, column)).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_differences_are_equally_frequent() {
        let sizes = [
            (2, 2, 2),
            (4, 2, 4),
            (12, 2, 12),
            (20, 2, 20),
            (36, 2, 36),
            (4, 4, 4),
            (8, 4, 8),
            (12, 4, 12),
            (16, 4, 16),
            (16, 8, 16),
            (3, 3, 3),
            (6, 3, 6),
            (9, 3, 9),
            (9, 9, 9),
            (12, 3, 12),
            (18, 3, 18),
            (24, 3, 12),
            (27, 9, 27),
            (5, 5, 5),
            (10, 5, 10),
            (25, 5, 25),
            (14, 7, 14),
            (8, 3, 1),
            (6, 6, 1),
            (64, 2, 64),
        ];
        for (rows, order, columns) in sizes {
            let scheme = scheme(rows, order);
            assert_eq!(scheme.len(), columns, "{rows} rows over {order}");
            let prime = prime_power(order).map_or(order, |(prime, _)| prime);
            for (a, b) in (0..columns).flat_map(|a| (0..a).map(move |b| (a, b))) {
                let mut times = vec![0; order as usize];
                for (&x, &y) in scheme[a].iter().zip(&scheme[b]) {
                    let difference = (0..order).find(|&d| add(y, d, order, prime) == x).unwrap();
                    times[difference as usize] += 1;
                }
                assert!(times.iter().all(|&n| n == rows / order), "{rows} rows over {order}: {a} and {b}");
            }
        }
    }
}
