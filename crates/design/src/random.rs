//! Randomness that stays the same for ever: ChaCha8 from a stored seed, with bounded draws of our own.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Name of the random generator, stored with every study.
pub const GENERATOR: &str = "ChaCha8";

/// A seed for one purpose, derived from the study's seed: streams with different labels are independent.
///
/// The value never changes between versions.
pub fn stream_seed(seed: u64, label: &str) -> u64 {
    Generator::keyed(seed, fnv1a(label.as_bytes()), label.len() as u64).0.next_u64()
}

/// The generator, with the operations that designs need.
pub(crate) struct Generator(ChaCha8Rng);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
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

    /// Uniform in 0..`bound` without bias (Lemire's multiplication with rejection). `bound` is at least 1.
    fn below(&mut self, bound: u64) -> u64 {
        let biased = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.0.next_u64()) * u128::from(bound);
            if product as u64 >= biased {
                return (product >> 64) as u64;
            }
        }
    }

    /// Fisher-Yates.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
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
        assert_eq!(stream_seed(0, ""), PINNED[0]);
        assert_eq!(stream_seed(7, "order"), PINNED[1]);
        assert_eq!(stream_seed(u64::MAX, "treatment 3, replicate 1"), PINNED[2]);
    }

    const PINNED: [u64; 3] = [0x12ea_6867_b29d_78ad, 0x12fb_5a86_f70c_57f1, 0x023c_9548_082b_a457];

    #[test]
    fn streams_differ() {
        let seeds: BTreeSet<_> = (0..100)
            .flat_map(|seed| (0..100).map(move |label| stream_seed(seed, &label.to_string())))
            .collect();
        assert_eq!(seeds.len(), 10_000);
    }

    #[test]
    fn bounded_draws_are_uniform() {
        let mut generator = Generator::new(1);
        let mut times = [0u32; 7];
        for _ in 0..70_000 {
            times[generator.below(7) as usize] += 1;
        }
        assert!(times.iter().all(|&n| (9_600..10_400).contains(&n)), "{times:?}");
        // A bound just above 2⁶³ rejects almost every second draw.
        let bound = (1 << 63) + 1;
        assert!((0..100).all(|_| generator.below(bound) < bound));
    }

    proptest! {
        #[test]
        fn draws_stay_below_the_bound(seed: u64, bound in 1u64..) {
            prop_assert!(Generator::new(seed).below(bound) < bound);
        }
    }
}
