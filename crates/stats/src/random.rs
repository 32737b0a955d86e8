//! Randomness from a seed that stays the same forever: ChaCha8, with bounded draws of our own, so that the same seed gives the
//! same draws on every machine and in every version.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::quantile::normal_quantile;

/// Name of the random generator, stored with every study.
pub const GENERATOR: &str = "ChaCha8";

/// A seed for one purpose, derived from another: streams with different labels are independent.
///
/// The value never changes between versions.
pub fn stream_seed(seed: u64, label: &str) -> u64 {
    Generator::new(seed, label).0.next_u64()
}

/// A stream of random numbers. Streams with different labels are independent of each other.
#[derive(Debug, Clone)]
pub struct Generator(ChaCha8Rng);

impl Generator {
    /// The stream of this seed for the purpose that the label names.
    pub fn new(seed: u64, label: &str) -> Self {
        Self::keyed(seed, fnv1a(label.as_bytes()), label.len() as u64)
    }

    /// The stream of a seed that has one purpose alone.
    pub fn of_seed(seed: u64) -> Self {
        Self::keyed(seed, 0, 0)
    }

    /// The key is laid out here, as `seed_from_u64` of the library may change its expansion.
    fn keyed(seed: u64, first: u64, second: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&first.to_le_bytes());
        key[16..24].copy_from_slice(&second.to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// Uniform in 0..`bound`, without bias (Lemire's multiplication with rejection); 0 for a bound of 0 or 1.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = (bound as u64).max(1);
        let biased = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(bound);
            if product as u64 >= biased {
                return (product >> 64) as usize;
            }
        }
    }

    /// Uniform strictly between 0 and 1.
    pub fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// A draw of the standard normal distribution.
    pub fn normal(&mut self) -> f64 {
        normal_quantile(self.uniform())
    }

    /// Shuffles (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }
}

/// FNV-1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_hash_is_fnv_1a() {
        // Published test vectors of FNV-1a.
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    /// Stored studies are repeated by later versions: these values must never change.
    #[test]
    fn streams_are_pinned() {
        assert_eq!(stream_seed(0, ""), 0x12ea_6867_b29d_78ad);
        assert_eq!(stream_seed(7, "order"), 0x12fb_5a86_f70c_57f1);
        assert_eq!(stream_seed(u64::MAX, "treatment 3, replicate 1"), 0x023c_9548_082b_a457);
    }

    #[test]
    fn streams_differ() {
        let seeds: BTreeSet<_> = (0..100)
            .flat_map(|seed| (0..100).map(move |label| stream_seed(seed, &label.to_string())))
            .collect();
        assert_eq!(seeds.len(), 10_000);
    }

    #[test]
    fn large_bounds_reject_almost_every_second_draw() {
        let mut generator = Generator::of_seed(1);
        let bound = (1 << 63) + 1;
        assert!((0..100).all(|_| generator.below(bound) < bound));
    }

    proptest! {
        #[test]
        fn draws_stay_below_the_bound(seed: u64, bound in 1usize..) {
            prop_assert!(Generator::of_seed(seed).below(bound) < bound);
        }
    }

    #[test]
    fn draws_have_their_distributions() {
        let mut generator = Generator::new(1, "test");
        let mut times = [0u32; 7];
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..70_000 {
            times[generator.below(7)] += 1;
            let normal = generator.normal();
            sum += normal;
            squares += normal * normal;
        }
        assert!(times.iter().all(|&n| (9_600..10_400).contains(&n)), "{times:?}");
        assert!((sum / 70_000.0).abs() < 0.015 && (squares / 70_000.0 - 1.0).abs() < 0.02);
        assert_eq!((generator.below(0), generator.below(1)), (0, 0));
    }
}
