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
        left([self], peer)
    }

    /// Whether `peer` has less than its share here, where this is one of 2^`bits` accounts that have it in common: then
    /// the others need not be asked.
    pub(crate) fn has_room(&self, peer: &K, bits: u32) -> bool {
        self.used < self.total >> bits && self.own(peer) < self.most >> bits
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

    fn own(&self, peer: &K) -> u64 {
        self.by_peer.get(peer).copied().unwrap_or_default()
    }

    /// What all have taken.
    #[cfg(test)]
    pub(crate) fn used(&self) -> u64 {
        self.used
    }
}

/// What `peer` may still take of a share that accounts have in common.
pub(super) fn left<'a, K: Hash + Eq + 'a>(
    accounts: impl IntoIterator<Item = &'a Accounts<K>>,
    peer: &K,
) -> u64 {
    let (mut total, mut most, mut used, mut own) = (0, 0, 0, 0);
    for account in accounts {
        (total, most) = (account.total, account.most);
        used += account.used;
        own += account.own(peer);
    }
    u64::saturating_sub(most, own).min(u64::saturating_sub(total, used))
}

/// Whether more than half is gone of what `peer` may have: then nothing is kept that need not be.
pub(super) fn is_scarce<'a, K: Hash + Eq + 'a>(
    accounts: impl IntoIterator<Item = &'a Accounts<K>> + Clone,
    peer: &K,
) -> bool {
    let most = accounts.clone().into_iter().next().map_or(0, |account| account.most);
    left(accounts, peer) < most / 2
}
