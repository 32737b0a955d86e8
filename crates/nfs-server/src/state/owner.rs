//! State owners: who opens and locks (RFC 7530 §9.1.5, RFC 8881 §8.1). In 4.0 each has a sequence of its own, and its
//! last reply is kept.

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use std::time::Instant;

use benchmaster_nfs_proto::v4::{Nfsstat4, Opnum};

use super::ClientId;
use super::arena::{Arena, NONE};
use super::file::Keeper;
use super::index::Index;
use super::nlm_lock::NlmOwner;
use crate::handle::FileId;

/// Kinds of owners: their names are independent of each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum OwnerKind {
    /// Opens files.
    Open,
    /// Locks ranges of files.
    Lock,
    /// Locks ranges by NLM.
    Nlm,
}

/// An owner: place in the table, and which use of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OwnerId {
    pub(super) at: u32,
    generation: u32,
}

/// What is known of an owner: in a part of the state what it has there, and of 4.0 owners its sequence in a table for all
/// parts ([`super::turns`]).
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) client: ClientId,
    pub(super) kind: OwnerKind,
    pub(super) name: Box<[u8]>,
    /// Opens or lock states.
    pub(super) states: u32,
    /// In the table of sequences.
    pub(super) sequence: Option<Box<Sequence>>,
    /// In a part: which sequence it follows (4.0).
    pub(super) turn: u32,
    /// In a part: false until OPEN_CONFIRM.
    pub(super) confirmed: bool,
    /// Of NLM owners.
    pub(super) nlm: Option<Box<NlmPart>>,
}

/// What an NLM owner is called, and where it has locks.
#[derive(Debug)]
pub(super) struct NlmPart {
    pub(super) owner: NlmOwner,
    pub(super) files: Vec<u32>,
}

/// Where a 4.0 owner stands in its sequence (RFC 7530 §9.1.7).
#[derive(Debug)]
pub(super) struct Sequence {
    /// Last sequence number executed.
    last: u32,
    /// Whether OPEN_CONFIRM was done, or was not needed.
    pub(super) confirmed: bool,
    /// The last reply.
    replay: Option<Replay>,
    /// Opens and lock states, in all parts.
    pub(super) held: u32,
    /// State of the file closed last, as in its stateid, which is still known for a repetition of the CLOSE.
    pub(super) closed: u32,
    /// When the owner was last heard of.
    pub(super) heard: Instant,
    /// Whether it is among the owners to look at.
    pub(super) queued: bool,
}

/// A reply of 4.0, kept for repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Replay {
    pub(crate) op: Opnum,
    /// Tells the request of an OPEN from others; 0 for other operations.
    pub(crate) request: u64,
    pub(crate) status: Nfsstat4,
    /// What followed the status.
    pub(crate) body: Vec<u8>,
    /// The current file handle that it left (OPEN).
    pub(crate) file: Option<FileId>,
}

/// What to do with a request of a 4.0 owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SeqidCheck {
    /// It is the next one.
    Run,
    /// It is the last one again: its reply.
    Replay(Replay),
}

#[derive(Debug, Default)]
pub(super) struct Owners {
    table: Arena<Owner, 1>,
    by_name: Index,
}

impl Owners {
    pub(super) fn get(&self, at: u32) -> Option<&Owner> {
        self.table.get(at)
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut Owner> {
        self.table.get_mut(at)
    }

    pub(super) fn id(&self, at: u32) -> OwnerId {
        OwnerId { at, generation: self.table.generation(at) }
    }

    /// Whether the owner is still the same.
    pub(super) fn is_current(&self, id: OwnerId) -> bool {
        self.table.get(id.at).is_some() && self.table.generation(id.at) == id.generation
    }

    pub(super) fn find(&self, client: ClientId, kind: OwnerKind, name: &[u8]) -> Option<u32> {
        let same = |owner: &Owner| owner.client == client && owner.kind == kind && *owner.name == *name;
        self.by_name.find((client, kind, name), |at| self.table.get(at).is_some_and(same))
    }

    /// Adds an owner that is not there, to the list of its client, too.
    pub(super) fn insert(&mut self, owner: Owner, of_client: &mut u32) -> u32 {
        let at = self.table.insert(owner);
        self.table.link(0, of_client, at);
        if let Some(Owner { client, kind, name, .. }) = self.table.get(at) {
            self.by_name.insert((client, kind, &**name), at);
        }
        at
    }

    /// Takes an owner out. It must have no state any more.
    pub(super) fn remove(&mut self, at: u32, of_client: &mut u32) -> Option<Owner> {
        let Owner { client, kind, name, .. } = self.table.get(at)?;
        self.by_name.remove((client, kind, &**name), at);
        self.table.unlink(0, of_client, at);
        self.table.remove(at)
    }

    pub(super) fn len(&self) -> usize {
        self.table.len()
    }

    /// Compares a request of a 4.0 owner with its sequence; BAD_SEQID when it is neither the next nor the last.
    pub(super) fn turn(&self, at: u32, seqid: u32, op: Opnum) -> Result<SeqidCheck, Nfsstat4> {
        // A stateid of a client of 4.1 in a request of 4.0.
        let sequence = self.get(at).and_then(|owner| owner.sequence.as_ref()).ok_or(Nfsstat4::BAD_STATEID)?;
        if follows(sequence.last, seqid) || (seqid != sequence.last && is_broken(Mutant::OwnersUncounted)) {
            return Ok(SeqidCheck::Run);
        }
        match &sequence.replay {
            Some(replay)
                if seqid == sequence.last && replay.op == op && !is_broken(Mutant::OwnersNotReplayed) =>
            {
                Ok(SeqidCheck::Replay(replay.clone()))
            }
            _ => Err(Nfsstat4::BAD_SEQID),
        }
    }

    /// Notes what a request of a 4.0 owner led to. Returns the closed state that no repetition can name any more.
    pub(super) fn record(&mut self, id: OwnerId, seqid: u32, replay: Replay, now: Instant) -> u32 {
        if !self.is_current(id) {
            return NONE;
        }
        let Some(sequence) = self.get_mut(id.at).and_then(|owner| owner.sequence.as_mut()) else {
            return NONE;
        };
        sequence.heard = now;
        if replay.status.keeps_seqid() {
            return NONE;
        }
        sequence.last = seqid;
        let closed = if replay.op == Opnum::CLOSE && replay.status == Nfsstat4::OK {
            NONE
        } else {
            std::mem::replace(&mut sequence.closed, NONE)
        };
        sequence.replay = Some(replay);
        closed
    }
}

impl Owner {
    pub(super) fn new(client: ClientId, kind: OwnerKind, name: &[u8]) -> Self {
        Self {
            client,
            kind,
            name: name.into(),
            states: NONE,
            sequence: None,
            turn: NONE,
            confirmed: true,
            nlm: None,
        }
    }

    /// A 4.0 owner whose first request has `seqid`.
    pub(super) fn with_sequence(mut self, seqid: u32, confirmed: bool, now: Instant) -> Self {
        self.sequence = Some(Box::new(Sequence {
            last: seqid.wrapping_sub(1),
            confirmed,
            replay: None,
            held: 0,
            closed: NONE,
            heard: now,
            queued: false,
        }));
        self
    }

    /// Who answers for it.
    pub(super) fn keeper(&self) -> Keeper {
        match &self.nlm {
            Some(nlm) => Keeper::Host(nlm.owner.host.address),
            None => Keeper::Client(self.client),
        }
    }

    /// Whether its opens count: false until OPEN_CONFIRM.
    pub(super) fn is_confirmed(&self) -> bool {
        self.sequence.as_ref().map_or(self.confirmed, |sequence| sequence.confirmed)
    }
}

/// Whether `seqid` comes after `last`. After the greatest number comes 1 (RFC 7530 §9.1.3), or 0 with clients that
/// just add.
fn follows(last: u32, seqid: u32) -> bool {
    seqid == last.wrapping_add(1) || last == u32::MAX && seqid == 1
}
