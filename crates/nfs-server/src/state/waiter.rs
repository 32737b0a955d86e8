//! Locks of a file, and the queue of those who wait for one.

use std::collections::VecDeque;
use std::time::Instant;

use super::ClientId;
use super::file::Keeper;
use super::interval::Range;
use super::nlm_lock::{NlmOwner, NlmWaiter};
use super::ranges::LockTable;

/// Locks of a file, and who waits for one.
#[derive(Debug, Default)]
pub(super) struct FileLocks {
    pub(super) table: LockTable,
    pub(super) waiters: VecDeque<Waiter>,
}

/// A request that was denied and would wait.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) who: Who,
    pub(super) range: Range,
    pub(super) write: bool,
    /// When it was last repeated; `None`: NLM clients need not.
    pub(super) heard: Option<Instant>,
    pub(super) offer: Offer,
}

#[derive(Debug)]
pub(super) enum Who {
    /// A client that polls.
    V4 {
        client: ClientId,
        owner: Box<[u8]>,
        /// Whether it can be notified (4.1).
        notify: bool,
    },
    /// A client that is granted the lock when it is free.
    Nlm(Box<NlmWaiter>),
}

impl Who {
    /// Who answers for it.
    pub(super) fn keeper(&self) -> Keeper {
        match self {
            Self::V4 { client, .. } => Keeper::Client(*client),
            Self::Nlm(waiter) => Keeper::Host(waiter.lock.owner.host.address),
        }
    }

    /// Bytes that it takes, about.
    pub(super) fn memory(&self) -> u64 {
        let names = match self {
            Self::V4 { owner, .. } => owner.len(),
            Self::Nlm(waiter) => {
                let NlmOwner { host, oh, .. } = &waiter.lock.owner;
                host.name.len() + oh.len() + waiter.handle.len() + waiter.cookie.len()
            }
        };
        512 + names as u64
    }
}

/// Whether a lock has become free for a waiter, and is kept for it (RFC 7530 §9.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Offer {
    /// It is not free.
    No,
    /// It is, since a moment ago.
    New,
    /// It is kept until then.
    Until(Instant),
}

/// A lock that stands in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockHolder {
    pub(crate) range: Range,
    /// Whether it is exclusive.
    pub(crate) write: bool,
    /// Its owner's client; 0 for NLM.
    pub(crate) client: ClientId,
    /// Its owner's name.
    pub(crate) owner: Vec<u8>,
    /// Its process, for NLM.
    pub(crate) svid: i32,
}

impl FileLocks {
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty() && self.waiters.is_empty()
    }

    /// The waiter for whom the range is kept and who came before `me`.
    pub(super) fn reserved(
        &self,
        me: impl Fn(&Who) -> bool,
        range: Range,
        write: bool,
        now: Instant,
    ) -> Option<LockHolder> {
        let waiter =
            self.waiters.iter().take_while(|waiter| !(me(&waiter.who) && waiter.range == range)).find(
                |waiter| {
                    let kept = match waiter.offer {
                        Offer::No => false,
                        Offer::New => true,
                        Offer::Until(end) => now < end,
                    };
                    kept && (write || waiter.write) && waiter.range.meets(range) && !me(&waiter.who)
                },
            )?;
        let (client, owner, svid) = match &waiter.who {
            Who::V4 { client, owner, .. } => (*client, owner.to_vec(), 0),
            Who::Nlm(waiter) => (ClientId(0), waiter.lock.owner.oh.to_vec(), waiter.lock.owner.svid),
        };
        Some(LockHolder { range: waiter.range, write: waiter.write, client, owner, svid })
    }
}
