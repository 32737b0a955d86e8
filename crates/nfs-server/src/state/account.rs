//! What peers make the server keep: who may have how much more of it.

use std::hash::Hash;

use hashbrown::HashMap;

/// A share of the memory (or a number of things) that peers take parts of.
#[derive(Debug)]
pub(crate) struct Accounts<K> {
    total: u64,
    /// Most that one may have.
    most: u64,
    used: u64,
    by_peer: HashMap<K, u64>,
}

impl<K: Hash + Eq> Accounts<K> {
    /// Nothing taken; one peer gets at most one of `parts`.
    pub(crate) fn new(total: u64, parts: u64) -> Self {
        Self { total, most: total / parts.max(1), used: 0, by_peer: HashMap::new() }
    }

    /// What is not taken.
    pub(crate) fn free(&self) -> u64 {
        self.total.saturating_sub(self.used)
    }

    /// What `peer` may still take.
    pub(crate) fn left(&self, peer: &K) -> u64 {
        let own = self.by_peer.get(peer).copied().unwrap_or_default();
        self.most.saturating_sub(own).min(self.free())
    }

    /// Whether more than half is gone of what `peer` may have: then nothing is kept that need not be.
    pub(crate) fn is_scarce(&self, peer: &K) -> bool {
        self.left(peer) < self.most / 2
    }

    /// `peer` has more, also where nothing is left: what is asked for is looked at before.
    pub(crate) fn take(&mut self, peer: K, amount: u64) {
        self.used += amount;
        *self.by_peer.entry(peer).or_default() += amount;
    }

    pub(crate) fn give_back(&mut self, peer: &K, amount: u64) {
        self.used = self.used.saturating_sub(amount);
        if let Some(own) = self.by_peer.get_mut(peer) {
            *own = own.saturating_sub(amount);
            if *own == 0 {
                self.by_peer.remove(peer);
            }
        }
    }

    /// What all have taken.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.used
    }
}
