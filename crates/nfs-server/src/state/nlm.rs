//! Locks of NLM clients (NFS v2 and v3): what `nlm` asks of the table that they share with NFSv4. (Signatures first.)
#![allow(unused_variables, clippy::todo)]

use std::net::IpAddr;
use std::time::Instant;

use super::Effects;
use super::client::Clients;
use super::file::Files;
use crate::handle::FileId;

/// A process of an NLM client that owns locks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NlmOwner {
    /// Name of the client's machine (`caller_name`): FREE_ALL and SM_NOTIFY drop all its locks.
    pub host: Box<[u8]>,
    /// Owner (`oh`).
    pub oh: Box<[u8]>,
    /// Process.
    pub svid: i32,
}

/// A byte range; `len` 0 goes to the end of the file, as `u64::MAX` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NlmRange {
    /// First byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u64,
}

/// A lock that an NLM client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NlmLock {
    /// The file.
    pub file: FileId,
    /// Who.
    pub owner: NlmOwner,
    /// Where.
    pub range: NlmRange,
    /// Whether no other lock may overlap.
    pub exclusive: bool,
}

/// A lock that waits, and after [`super::Effect::NlmGranted`] is held: what the callback needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NlmWaiter {
    /// The lock.
    pub lock: NlmLock,
    /// Version of NLM that the client speaks.
    pub version: u32,
    /// Where the client's lock manager is.
    pub address: IpAddr,
    /// The file's handle as the client named it.
    pub handle: Box<[u8]>,
    /// Cookie of the LOCK call.
    pub cookie: Box<[u8]>,
}

/// Who is in the way of an NLM lock; what an NFSv4 owner is called is up to the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NlmHolder {
    /// Whether that lock is exclusive.
    pub exclusive: bool,
    /// Owner.
    pub oh: Vec<u8>,
    /// Process, 0 for NFSv4 owners.
    pub svid: i32,
    /// Where.
    pub range: NlmRange,
}

/// Answer to an NLM lock request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NlmOutcome {
    /// The lock is held.
    Granted,
    /// Another lock is in the way (also when the request waits already and was repeated without waiting).
    Denied,
    /// The request waits; [`super::Effect::NlmGranted`] will tell. Repeating it neither queues it twice nor loses its place.
    Blocked,
    /// Waiting would never end.
    Deadlock,
    /// Not now: the grace period lasts (or, for a reclaim, is over).
    Grace,
}

impl Files {
    /// The lock that is in the way, if any (TEST).
    pub fn nlm_test(&self, clients: &Clients, lock: &NlmLock) -> Option<NlmHolder> {
        todo!()
    }

    /// Locks. `wait`: what is to be told when the lock is granted later; `reclaim`: held before the restart.
    pub fn nlm_lock(
        &mut self,
        clients: &mut Clients,
        lock: NlmLock,
        wait: Option<NlmWaiter>,
        reclaim: bool,
        now: Instant,
        effects: &mut Effects,
    ) -> NlmOutcome {
        todo!()
    }

    /// Takes a waiting request back; `false` when none like it waits (it may have been granted).
    pub fn nlm_cancel(&mut self, lock: &NlmLock) -> bool {
        todo!()
    }

    /// Unlocks a range, whatever is locked in it.
    pub fn nlm_unlock(&mut self, file: FileId, owner: &NlmOwner, range: NlmRange, effects: &mut Effects) {
        todo!()
    }

    /// Drops all locks and waiting requests of a machine: it restarted.
    pub fn nlm_free_all(&mut self, host: &[u8], effects: &mut Effects) {
        todo!()
    }
}
