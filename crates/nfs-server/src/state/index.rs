//! From keys to the numbers of places where they are kept.

use std::hash::{BuildHasher, Hash};

use hashbrown::{DefaultHashBuilder, HashTable};

/// The index. It keeps the hashes, so that to grow it looks at no place: that would be a cache miss each.
#[derive(Debug, Default)]
pub(super) struct Index {
    table: HashTable<Entry>,
    hasher: DefaultHashBuilder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    hash: u32,
    at: u32,
}

impl Entry {
    /// All bits count: the table takes high and low ones.
    fn full(&self) -> u64 {
        u64::from(self.hash) << 32 | u64::from(self.hash)
    }
}

impl Index {
    /// The place of a key: `same` says whether it is kept there.
    pub(super) fn find(&self, key: impl Hash, same: impl Fn(u32) -> bool) -> Option<u32> {
        let sought = self.entry(key, 0);
        let found = self.table.find(sought.full(), |entry| entry.hash == sought.hash && same(entry.at))?;
        Some(found.at)
    }

    /// Adds a key that is not there.
    pub(super) fn insert(&mut self, key: impl Hash, at: u32) {
        let entry = self.entry(key, at);
        self.table.insert_unique(entry.full(), entry, Entry::full);
    }

    /// Forgets that a key is kept at a place.
    pub(super) fn remove(&mut self, key: impl Hash, at: u32) {
        let entry = self.entry(key, at);
        if let Ok(found) = self.table.find_entry(entry.full(), |other| *other == entry) {
            found.remove();
        }
    }

    fn entry(&self, key: impl Hash, at: u32) -> Entry {
        Entry { hash: self.hasher.hash_one(key) as u32, at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_they_were_put() {
        let keys: Vec<u64> = (0..1000).map(|n| n * n).collect();
        let mut index = Index::default();
        for (at, key) in keys.iter().enumerate() {
            index.insert(key, at as u32);
        }
        let find = |index: &Index, key: u64| index.find(key, |at| keys[at as usize] == key);
        for (at, key) in keys.iter().enumerate() {
            assert_eq!(find(&index, *key), Some(at as u32));
        }
        assert_eq!(find(&index, 2), None);
        index.remove(49u64, 8);
        assert_eq!(find(&index, 49), Some(7), "only what is kept there");
        index.remove(49u64, 7);
        assert_eq!(find(&index, 49), None);
    }
}
