//! Memory for the replies that sessions keep (RFC 8881 §2.10.6.1): a share of the host's, as in Linux's server.

use super::ClientId;
use crate::state::account::Accounts;

/// Part of the host's memory that all sessions may keep replies in, and the least that it is.
const SHARE: u64 = 128;
const LEAST: u64 = 16 << 20;
/// Part of it that one client may have.
const CLIENT_SHARE: u64 = 8;
/// Part of what is left that one session gets at most, so that later ones get some, too; and what each may have.
const SESSION_SHARE: u64 = 256;
const SESSION_LEAST: u64 = 16 * (SLOT + SHORTEST as u64);
/// What a slot takes beside the reply.
const SLOT: u64 = 256;
/// Shortest longest reply kept, unless the client wants less.
const SHORTEST: u32 = 2048;

#[derive(Debug)]
pub(super) struct ReplyBudget(Accounts<ClientId>);

/// What a session keeps: slots, and bytes of the longest reply that each keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) slots: u32,
    pub(super) reply: u32,
}

impl Kept {
    fn memory(self) -> u64 {
        u64::from(self.slots) * (SLOT + u64::from(self.reply))
    }
}

impl ReplyBudget {
    /// Nothing kept, on a host with so much memory.
    pub(super) fn new(memory: u64) -> Self {
        Self(Accounts::new((memory / SHARE).max(LEAST), CLIENT_SHARE))
    }

    /// Bytes that are taken.
    #[cfg(test)]
    pub(super) fn used(&self) -> u64 {
        self.0.used()
    }

    /// What a session that wants `wanted` gets: shorter replies if it must be, then fewer slots. `None`: nothing is left.
    pub(super) fn offer(&self, client: ClientId, wanted: Kept) -> Option<Kept> {
        let free = self.0.free();
        let left = self.0.left(&client).min((free / SESSION_SHARE).max(SESSION_LEAST.min(free)));
        if wanted.memory() <= left {
            return Some(wanted);
        }
        let reply = (left / u64::from(wanted.slots.max(1))).saturating_sub(SLOT);
        let reply = u32::try_from(reply).unwrap_or(u32::MAX).clamp(SHORTEST.min(wanted.reply), wanted.reply);
        let slots = left / (SLOT + u64::from(reply));
        let slots = u32::try_from(slots).unwrap_or(u32::MAX).min(wanted.slots);
        (slots > 0).then_some(Kept { slots, reply })
    }

    pub(super) fn take(&mut self, client: ClientId, kept: Kept) {
        self.0.take(client, kept.memory());
    }

    pub(super) fn give_back(&mut self, client: ClientId, kept: Kept) {
        self.0.give_back(&client, kept.memory());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: Kept = Kept { slots: 64, reply: 16 << 10 };

    /// Sessions until there are no more; how many, and the last one.
    fn fill(budget: &mut ReplyBudget, client: impl Fn(u64) -> u64) -> (u64, Kept) {
        let (mut count, mut last) = (0, WANTED);
        while let Some(kept) = budget.offer(ClientId(client(count)), WANTED) {
            budget.take(ClientId(client(count)), kept);
            (count, last) = (count + 1, kept);
            assert!(budget.used() <= (8 << 30) / SHARE);
        }
        (count, last)
    }

    #[test]
    fn all_sessions_together_stay_within_the_share_and_shrink_before_they_are_refused() {
        let mut budget = ReplyBudget::new(8 << 30);
        assert_eq!(
            budget.offer(ClientId(1), Kept { slots: 64, reply: 3000 }).map(|kept| kept.slots),
            Some(64)
        );
        let (count, last) = fill(&mut budget, |session| session);
        assert!(count > 500, "{count}");
        assert!(last.slots <= 16 && last.reply == SHORTEST, "{last:?}");
        budget.give_back(ClientId(0), WANTED);
        assert!(budget.offer(ClientId(1 << 40), WANTED).is_some());
    }

    #[test]
    fn one_client_leaves_most_to_others() {
        let mut budget = ReplyBudget::new(8 << 30);
        fill(&mut budget, |_| 1);
        assert!(budget.used() <= (8 << 30) / SHARE / CLIENT_SHARE);
        assert_eq!(budget.offer(ClientId(1), WANTED), None);
        assert_eq!(budget.offer(ClientId(2), WANTED).map(|kept| kept.slots), Some(64));
    }
}
