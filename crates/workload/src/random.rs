//! Random draws that stay the same between versions of this program and of its dependencies.

mod zipf;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

pub use self::zipf::Zipf;
pub(crate) use self::zipf::Zipfs;

/// A stream of random numbers: ChaCha8 with the seed and the stream number.
#[derive(Debug, Clone)]
pub struct Random {
    rng: ChaCha8Rng,
    /// The numbers of one repetition of a flow: where they begin, and how many were drawn.
    repetition: Option<(u64, u64)>,
}

impl Random {
    /// The stream `stream` of `seed`. Different streams are independent.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Self { rng, repetition: None }
    }

    /// From now on gives the numbers of repetition number `repetition` of what `base` stands for, whatever was drawn
    /// before: for repetitions that are carried out in an order which is not known beforehand.
    #[inline]
    pub(crate) fn begin_repetition(&mut self, base: u64, repetition: u64) {
        self.repetition = Some((mix(base, repetition, 4), 0));
    }

    #[inline]
    fn next(&mut self) -> u64 {
        match &mut self.repetition {
            None => self.rng.next_u64(),
            Some((from, drawn)) => {
                *drawn += 1;
                mix(*from, *drawn, 5)
            }
        }
    }

    /// A whole number in `0..bound`; 0 when `bound` is 0. Multiply-shift: the bias is below `bound / 2^64`.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// A real number in `[0, 1)`.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.rng.fill_bytes(bytes);
    }
}

/// A well-mixed function of three numbers (SplitMix64's finaliser), for positions that need not be drawn in order.
#[inline]
pub fn mix(a: u64, b: u64, c: u64) -> u64 {
    let mut z = a
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(b.rotate_left(32))
        .wrapping_mul(0xbf58_476d_1ce4_e5b9)
        .wrapping_add(c);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_pinned() {
        let mut random = Random::new(7, 3);
        let drawn: Vec<u64> = (0..5).map(|_| random.below(1000)).collect();
        assert_eq!(drawn, PINNED, "stored seeds must give the same workload in every version");
        assert!((0..1000).all(|_| random.below(3) < 3));
        assert!((0..1000).all(|_| (0.0..1.0).contains(&random.unit())));
        assert_ne!(mix(1, 2, 3), mix(1, 3, 2));
    }

    #[test]
    fn repetitions_have_their_own_numbers_in_any_order() {
        let draw = |random: &mut Random, repetition| {
            random.begin_repetition(9, repetition);
            [random.below(1 << 40), random.below(1 << 40)]
        };
        let (mut one, mut other) = (Random::new(7, 3), Random::new(7, 4));
        let first = [draw(&mut one, 0), draw(&mut one, 1)];
        assert_eq!([draw(&mut other, 1), draw(&mut other, 0)], [first[1], first[0]]);
        assert_ne!(first[0], first[1]);
        let drawn: Vec<u64> = (0..4000).map(|at| draw(&mut one, at)[0] >> 39).collect();
        // Binomial with standard deviation 32.
        assert!((1850..2150).contains(&drawn.iter().sum::<u64>()), "the upper bits are as likely 0 as 1");
    }

    const PINNED: [u64; 5] = [181, 92, 979, 334, 351];
}
