//! Which regular two-level fraction rows are.

use crate::regular::{Fraction, Generator};

/// The fraction whose runs the two-level rows are, each equally often. `None` when there is none, or none that a
/// [`Fraction`] can express.
pub(super) fn regular(rows: &[Vec<u32>], factors: u32) -> Option<Fraction> {
    if factors == 0 || factors > crate::term::MAX_FACTORS {
        return None;
    }
    let mask = |row: &Vec<u32>| {
        row.iter().zip(0..).fold(0, |mask, (&level, factor)| mask | u64::from(level) << factor)
    };
    let mut sorted: Vec<u64> = rows.iter().map(mask).collect();
    sorted.sort_unstable();
    let often = sorted.chunk_by(|a, b| a == b).next()?.len();
    if sorted.chunk_by(|a, b| a == b).any(|group| group.len() != often) {
        return None;
    }
    sorted.dedup();
    let first = *sorted.first()?;
    if !sorted.len().is_power_of_two() {
        return None;
    }
    // Rows are a regular fraction when they are all of an affine space over two elements. `directions` is in reduced
    // echelon form by lowest bits.
    let mut directions: Vec<u64> = Vec::new();
    for &row in &sorted {
        let mut direction = row ^ first;
        for &known in &directions {
            if direction & lowest(known) != 0 {
                direction ^= known;
            }
        }
        if direction != 0 {
            for known in &mut directions {
                if *known & lowest(direction) != 0 {
                    *known ^= direction;
                }
            }
            directions.push(direction);
        }
    }
    if 1 << directions.len() != sorted.len() as u64 {
        return None;
    }
    // The lowest bits are the base factors: each direction changes one of them, and every other factor changes with those
    // whose directions it is in.
    let base = directions.iter().fold(0, |base, &direction| base | lowest(direction));
    let is_low = |factor: u32| first >> factor & 1 == 0;
    let generators: Vec<_> = (0..factors)
        .filter(|factor| base >> factor & 1 == 0)
        .map(|factor| {
            let own = directions.iter().filter(|&&direction| direction >> factor & 1 != 0);
            let word = own.fold(0, |word, &direction| word | lowest(direction));
            let minus = crate::term::factors(word).filter(|&other| is_low(other)).count() % 2 == 1;
            Generator { factor, word, negative: minus != is_low(factor) }
        })
        .collect();
    Fraction::from_generators(factors, &generators).ok()
}

fn lowest(mask: u64) -> u64 {
    mask & mask.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn generators_and_their_signs_are_found() {
        // D = −AB and E = ABC, in any order of rows and twice.
        let generators = [
            Generator { factor: 3, word: 0b011, negative: true },
            Generator { factor: 4, word: 0b111, negative: false },
        ];
        let mut rows = Fraction::from_generators(5, &generators).unwrap().rows();
        rows.extend(rows.clone().into_iter().rev());
        rows.rotate_left(5);
        assert_eq!(regular(&rows, 5).unwrap().generators(), generators);
        // A run less or more is no fraction any more.
        assert_eq!(regular(&rows[1..], 5), None);
        assert_eq!(regular(&rows[2..], 5), None);
        rows.push(rows[0].clone());
        assert_eq!(regular(&rows, 5), None);
    }

    #[test]
    fn full_designs_have_no_generators_and_constant_factors_no_fraction() {
        assert_eq!(regular(&crate::full(&[2; 4]).unwrap(), 4).unwrap().generators(), []);
        assert_eq!(regular(&[vec![0, 0], vec![1, 0]], 2), None);
        assert_eq!(regular(&[vec![0, 0], vec![1, 1]], 2), None);
        // Four rows that are no affine space.
        assert_eq!(regular(&[vec![0, 0, 0], vec![1, 0, 0], vec![0, 1, 0], vec![0, 0, 1]], 3), None);
    }

    proptest! {
        #[test]
        fn any_fraction_is_found_again(
            words in prop::collection::vec((3u64..32, any::<bool>()), 0..4), shuffle in any::<prop::sample::Index>(),
        ) {
            let word = |((word, negative), factor): ((u64, bool), u32)| Generator { factor, word, negative };
            let generators: Vec<_> = words.into_iter().zip(5..).map(word).collect();
            let factors = 5 + generators.len() as u32;
            let Ok(fraction) = Fraction::from_generators(factors, &generators) else { return Ok(()) };
            let mut rows = fraction.rows();
            let start = shuffle.index(rows.len());
            rows.rotate_left(start);
            rows.reverse();
            let found = regular(&rows, factors).unwrap();
            prop_assert_eq!(found.defining_words(), fraction.defining_words());
            prop_assert_eq!(found.generators(), &generators[..]);
        }
    }
}
