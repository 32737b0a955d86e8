//! Hashing of filehandles and paths: quick, since every call of a name looks some up, and seeded, since servers choose
//! handles.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Makes [`Folded`] hashers with one random seed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seeded {
    state: u64,
    key: u64,
}

impl Default for Seeded {
    fn default() -> Self {
        let random = RandomState::new();
        Self { state: random.hash_one(0), key: random.hash_one(1) }
    }
}

impl BuildHasher for Seeded {
    type Hasher = Folded;

    #[inline]
    fn build_hasher(&self) -> Folded {
        Folded { state: self.state, key: self.key }
    }
}

/// Multiplies 16 bytes at a time and folds the product, as wyhash does.
#[derive(Debug)]
pub(crate) struct Folded {
    state: u64,
    key: u64,
}

impl Folded {
    #[inline]
    fn add(&mut self, first: u64, second: u64) {
        self.state = fold(first ^ self.state, second ^ self.key);
    }
}

/// Both halves of a product.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

impl Hasher for Folded {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (pairs, rest) = bytes.as_chunks::<16>();
        for pair in pairs {
            let whole = u128::from_ne_bytes(*pair);
            self.add(whole as u64, (whole >> 64) as u64);
        }
        let mut last = [0; 16];
        last[..rest.len()].copy_from_slice(rest);
        let whole = u128::from_ne_bytes(last);
        self.add(whole as u64 ^ bytes.len() as u64, (whole >> 64) as u64);
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.add(number as u64, 0);
    }

    #[inline]
    fn finish(&self) -> u64 {
        fold(self.state, self.key)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn similar_keys_differ_and_seeds_matter() {
        let seeded = Seeded { state: 0x1234_5678_9abc_def0, key: 0x0fed_cba9_8765_4321 };
        let mut seen = HashSet::new();
        for length in 0..64 {
            let mut bytes = vec![0; length];
            assert!(seen.insert(seeded.hash_one(&bytes[..])));
            for at in 0..length {
                bytes[at] = 1;
                assert!(seen.insert(seeded.hash_one(&bytes[..])), "{length} bytes, {at}");
                bytes[at] = 0;
            }
        }
        // The low bits choose a table's place.
        let mut places = [0; 64];
        (0..6400u32).for_each(|n| places[seeded.hash_one(n.to_be_bytes()) as usize % 64] += 1);
        assert!(places.iter().all(|&count| (50..200).contains(&count)), "{places:?}");
        let other = Seeded { state: 1, ..seeded };
        assert_ne!(seeded.hash_one(b"handle"), other.hash_one(b"handle"));
    }
}
