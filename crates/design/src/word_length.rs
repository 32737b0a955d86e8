//! How much a design confounds effects, in one pattern for designs of any levels: generalised word lengths.

use std::collections::BTreeMap;

use crate::coding::{cells, distinct, transform};

/// The generalised word-length pattern (A0, A1, …, Ak) of any rows (Xu & Wu 2001): the index is the length.
///
/// A_j is the sum, over all products of j factors' orthonormal contrasts, of the squared mean of the product over the
/// rows. A0 is 1; A1 = 0 says that all levels are equally frequent, A1 = A2 = 0 that the rows are an orthogonal array, and
/// A3 = 0 as well that no main effect is aliased with an interaction of two factors. For a regular two-level fraction A_j
/// is the number of words of length j. It does not depend on the coding, the names of the levels or the order of rows.
///
/// Costs about one step per combination of levels, while there are at most 2²⁰ of those, or one per pair of different
/// rows, whichever is less. Without rows everything after A0 is 0.
///
/// # Panics
/// When a row is shorter than `levels`, or has a level that its factor has not ([`crate::check_rows`]).
pub fn generalised_word_length_pattern(rows: &[Vec<u32>], levels: &[u32]) -> Vec<f64> {
    if rows.is_empty() {
        return std::iter::once(1.0).chain(levels.iter().map(|_| 0.0)).collect();
    }
    // Whatever is less work.
    let pairs = (rows.len() as f64).powi(2) / 2.0;
    let transformed =
        cells(levels).filter(|&cells| (cells as f64) < pairs).and_then(|_| transform(rows, levels));
    let mut pattern = match transformed {
        Some(sums) => of_sums(&sums, levels),
        None => of_pairs(rows, levels),
    };
    let squared = (rows.len() as f64).powi(2);
    pattern.iter_mut().for_each(|sum| {
        let share = *sum / squared;
        // Sums of many contrasts: what is whole but for rounding, as 0 often is, is whole.
        let whole = share.round();
        *sum = if (share - whole).abs() < 1e-10 * whole.max(1.0) { whole } else { share };
    });
    pattern
}

/// The generalised resolution: R + 1 − √(largest share of a main effect's contrasts in a set of R factors that the other
/// factors of the set explain), where R is the length of the shortest words (Grömping & Xu 2014; for two levels Deng &
/// Tang 1999). `None` when there are no words at all: a full factorial design, or several of them.
///
/// # Panics
/// As [`generalised_word_length_pattern`] does.
pub fn generalised_resolution(rows: &[Vec<u32>], levels: &[u32]) -> Option<f64> {
    let pattern = generalised_word_length_pattern(rows, levels);
    let shortest = 1 + pattern[1..].iter().position(|&words| words > 1e-8)?;
    let least = |set: &[usize]| set.iter().map(|&factor| levels[factor] - 1).min().unwrap_or(1);
    let mut worst = 0.0f64;
    if let Some(sums) = transform(rows, levels) {
        let mut sets: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
        for_each_sum(&sums, levels, |sum, length, contrasts| {
            if length == shortest && sum != 0.0 {
                let set = (0..levels.len()).filter(|&factor| contrasts[factor] > 0).collect();
                *sets.entry(set).or_default() += (sum / rows.len() as f64).powi(2);
            }
        });
        worst = sets.iter().map(|(set, words)| words / f64::from(least(set))).fold(worst, f64::max);
    } else {
        let varying: Vec<_> = (0..levels.len()).filter(|&factor| levels[factor] > 1).collect();
        let mut times = Vec::new();
        for_each_set(varying.len(), shortest, &mut |numbers| {
            let set: Vec<_> = numbers.iter().map(|&number| varying[number]).collect();
            let combinations: usize = set.iter().map(|&factor| levels[factor] as usize).product();
            times.clear();
            times.resize(combinations, 0u32);
            for row in rows {
                times[set
                    .iter()
                    .fold(0, |cell, &factor| cell * levels[factor] as usize + row[factor] as usize)] += 1;
            }
            // All shorter products of these factors sum to 0, so that this is the word length of the set alone.
            let squares: f64 = times.iter().map(|&n| f64::from(n).powi(2)).sum();
            let words = combinations as f64 * squares / (rows.len() as f64).powi(2) - 1.0;
            worst = worst.max(words / f64::from(least(&set)));
        });
    }
    Some(shortest as f64 + 1.0 - worst.max(0.0).sqrt())
}

/// Every set of `size` of the numbers below `count`, ascending.
fn for_each_set(count: usize, size: usize, each: &mut impl FnMut(&[usize])) {
    fn extend(chosen: &mut Vec<usize>, count: usize, size: usize, each: &mut impl FnMut(&[usize])) {
        if chosen.len() == size {
            return each(chosen);
        }
        let first = chosen.last().map_or(0, |last| last + 1);
        for next in first..count {
            chosen.push(next);
            extend(chosen, count, size, each);
            chosen.pop();
        }
    }
    extend(&mut Vec::new(), count, size, each);
}

/// Squared sums by the number of factors whose contrast is not the constant.
fn of_sums(sums: &[f64], levels: &[u32]) -> Vec<f64> {
    let mut pattern = vec![0.0; levels.len() + 1];
    for_each_sum(sums, levels, |sum, length, _| pattern[length] += sum * sum);
    pattern
}

/// Every sum of a transform with its length, the number of factors whose contrast is not the constant, and each factor's
/// contrast.
fn for_each_sum(sums: &[f64], levels: &[u32], mut each: impl FnMut(f64, usize, &[u32])) {
    // The digits of the index count up with it.
    let mut digits = vec![0; levels.len()];
    let mut length = 0;
    for &sum in sums {
        each(sum, length, &digits);
        for (digit, &n) in digits.iter_mut().zip(levels) {
            if *digit + 1 < n {
                length += usize::from(*digit == 0);
                *digit += 1;
                break;
            }
            length -= usize::from(*digit > 0);
            *digit = 0;
        }
    }
}

/// The same from pairs of rows: a factor with s levels contributes 1 + (s − 1)z where the two agree and 1 − z where they
/// differ; the product over the factors, summed over all pairs, has the pattern as its coefficients.
fn of_pairs(rows: &[Vec<u32>], levels: &[u32]) -> Vec<f64> {
    let mut classes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (factor, &n) in levels.iter().enumerate() {
        classes.entry(n).or_default().push(factor);
    }
    let rows = distinct(rows, levels);
    // How many pairs agree in how many factors of each class.
    let mut agreements: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
    let mut key = Vec::new();
    for (number, (a, times_a)) in rows.iter().enumerate() {
        for (b, times_b) in &rows[number..] {
            key.clear();
            let agree = |factors: &Vec<usize>| {
                factors.iter().filter(|&&factor| a[factor] == b[factor]).count() as u32
            };
            key.extend(classes.values().map(agree));
            let pairs = f64::from(*times_a) * f64::from(*times_b) * if a == b { 1.0 } else { 2.0 };
            match agreements.get_mut(&key) {
                Some(sum) => *sum += pairs,
                None => drop(agreements.insert(key.clone(), pairs)),
            }
        }
    }
    let mut pattern = vec![0.0; levels.len() + 1];
    for (agree, pairs) in agreements {
        let mut polynomial = vec![pairs];
        for ((&n, factors), agree) in classes.iter().zip(agree) {
            for factor in 0..factors.len() as u32 {
                let slope = if factor < agree { f64::from(n) - 1.0 } else { -1.0 };
                polynomial.push(0.0);
                for power in (1..polynomial.len()).rev() {
                    polynomial[power] += slope * polynomial[power - 1];
                }
            }
        }
        pattern.iter_mut().zip(polynomial).for_each(|(sum, coefficient)| *sum += coefficient);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::design::full;

    #[test]
    fn full_designs_have_no_words() {
        let levels = [2, 3, 4];
        let rows = full(&levels).unwrap();
        assert_eq!(generalised_word_length_pattern(&rows, &levels), [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(generalised_resolution(&rows, &levels), None);
        assert_eq!(generalised_word_length_pattern(&[], &levels), [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(generalised_word_length_pattern(&[vec![]], &[]), [1.0]);
    }

    #[test]
    fn twelve_runs_of_plackett_and_burman_have_ninths() {
        // A published pattern: 11 factors in 12 runs have C(11, 3)/9 words of length three.
        let first = "++-+++---+-".bytes().map(|sign| u32::from(sign == b'+')).collect::<Vec<_>>();
        let shifted = |by: usize| (0..11).map(|factor| first[(factor + 11 - by) % 11]).collect::<Vec<_>>();
        let rows: Vec<_> = (0..11).map(shifted).chain([vec![0; 11]]).collect();
        let pattern = generalised_word_length_pattern(&rows, &[2; 11]);
        assert_eq!(pattern[1..3], [0.0, 0.0]);
        assert!((pattern[3] - 165.0 / 9.0).abs() < 1e-9, "{pattern:?}");
        let resolution = generalised_resolution(&rows, &[2; 11]).unwrap();
        assert!((resolution - (4.0 - 1.0 / 3.0)).abs() < 1e-9, "{resolution}");
    }

    #[test]
    fn resolutions_with_many_and_with_few_factors_agree() {
        // 24 factors have too many combinations for a table; copies of factors are aliased with them.
        let first = "++-+++---+-".bytes().map(|sign| u32::from(sign == b'+')).collect::<Vec<_>>();
        let shifted = |by: usize| (0..11).map(|factor| first[(factor + 11 - by) % 11]).collect::<Vec<_>>();
        let rows: Vec<_> = (0..11).map(shifted).chain([vec![0; 11]]).collect();
        let doubled: Vec<_> =
            rows.iter().map(|row| [row.clone(), row.clone(), row[..2].to_vec()].concat()).collect();
        assert_eq!(generalised_resolution(&doubled, &[2; 24]), Some(2.0));
        let with_constants: Vec<_> = rows.iter().map(|row| [row.clone(), vec![0; 30]].concat()).collect();
        let levels = [vec![2; 11], vec![1; 30]].concat();
        let few = generalised_resolution(&with_constants, &levels).unwrap();
        assert!((few - (4.0 - 1.0 / 3.0)).abs() < 1e-9);
        // 23 columns of 24 runs: a third again.
        let rows = crate::plackett_burman::plackett_burman(23).unwrap();
        let many = generalised_resolution(&rows, &[2; 23]).unwrap();
        assert!((many - (4.0 - 1.0 / 3.0)).abs() < 1e-9, "{many}");
    }

    proptest! {
        #[test]
        fn pairs_and_contrasts_agree(
            rows in prop::collection::vec((0u32..2, 0u32..3, 0u32..2, 0u32..4), 1..30),
        ) {
            let rows: Vec<_> = rows.into_iter().map(|(a, b, c, d)| vec![a, b, c, d]).collect();
            let levels = [2, 3, 2, 4];
            let sums = of_sums(&transform(&rows, &levels).unwrap(), &levels);
            for (a, b) in sums.iter().zip(of_pairs(&rows, &levels)) {
                prop_assert!((a - b).abs() < 1e-8, "{a} {b}");
            }
        }
    }
}
