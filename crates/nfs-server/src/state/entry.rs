//! States and what they belong to: the records of [`super::file::Files`].

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use std::time::Instant;

use benchmaster_nfs_proto::v4::Nfsstat4;

use super::ClientId;
use super::arena::{NONE, Revoked};
use super::waiter::FileLocks;
use super::watch::Watch;
use crate::handle::FileId;
use crate::stats::DelegationCounts;

/// Lists of states: opens and delegations of a file, lock states of an open.
pub(super) const BY_PARENT: usize = 0;
/// Lists of states: all of a client.
pub(super) const BY_CLIENT: usize = 1;
/// Lists of states: all of an owner.
pub(super) const BY_OWNER: usize = 2;

/// A state: what a stateid names.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) client: ClientId,
    pub(super) file: u32,
    pub(super) seqid: u32,
    /// Whether it belongs to minor version 0.
    pub(super) v40: bool,
    pub(super) what: What,
}

/// Kinds of state.
#[derive(Debug)]
pub(super) enum What {
    Open(Open),
    Lock(LockState),
    Delegation(Delegation),
    /// An open of 4.0 that was closed by its owner's last request.
    Closed {
        /// Its owner's sequence.
        turn: u32,
    },
}

/// The user in whose name a state was made; no user's where several had a part in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opener(u32);

impl Opener {
    /// Stands for several users. It is no user id: to `chown` it means "leave as it is".
    const SEVERAL: u32 = u32::MAX;

    pub(super) fn new(uid: u32) -> Self {
        Self(uid)
    }

    /// The user, if it is one.
    pub(super) fn uid(self) -> Option<u32> {
        (self.0 != Self::SEVERAL).then_some(self.0)
    }

    /// This user has a part in it, too.
    pub(super) fn join(&mut self, uid: u32) {
        if self.0 != uid {
            self.0 = Self::SEVERAL;
        }
    }
}

/// A delegation that the client holds.
#[derive(Debug)]
pub(super) struct Delegation {
    pub(super) opener: Opener,
    /// Whether it is one for writing.
    pub(super) write: bool,
    /// Whether its holder keeps the times of the file, too (RFC 9754).
    pub(super) times: bool,
    /// Whether it was taken back; kept until the client frees the stateid (4.1).
    pub(super) revoked: bool,
    pub(super) recall: Option<Box<Recall>>,
    /// Of a directory: what its holder is notified of instead of a recall.
    pub(super) watch: Option<Box<Watch>>,
}

/// A recall that was not answered yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recall {
    pub(super) since: Instant,
    pub(super) retry: Option<Instant>,
    pub(super) truncate: bool,
}

/// An open: what an owner has opened a file for, by one OPEN or several.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) owner: u32,
    pub(super) opener: Opener,
    pub(super) access: u8,
    pub(super) deny: u8,
    /// Which combinations were opened, one bit each (RFC 7530 §16.19.4).
    pub(super) combinations: u16,
    /// Lock states.
    pub(super) locks: u32,
}

/// The locks of an owner on a file, through an open.
#[derive(Debug)]
pub(super) struct LockState {
    pub(super) owner: u32,
    pub(super) open: u32,
}

/// A file on which something is held.
#[derive(Debug)]
pub(super) struct FileRecord {
    pub(super) id: FileId,
    pub(super) opens: u32,
    pub(super) delegations: u32,
    /// Opens that read, and that write.
    pub(super) access: [u32; 2],
    /// Opens that deny reading, and that deny writing.
    pub(super) deny: [u32; 2],
    pub(super) locks: Option<Box<FileLocks>>,
    /// Whether it counts among those with delegations or deny modes.
    pub(super) guarded: bool,
}

/// What a client has in a part.
#[derive(Debug)]
pub(super) struct Holdings {
    pub(super) states: u32,
    pub(super) owners: u32,
    /// States that are neither closed nor revoked.
    pub(super) live: u32,
    /// Delegations held.
    pub(super) delegated: u32,
    /// Delegations revoked and not yet freed.
    pub(super) revoked: u32,
    pub(super) counts: DelegationCounts,
}

impl Default for Holdings {
    fn default() -> Self {
        Self {
            states: NONE,
            owners: NONE,
            live: 0,
            delegated: 0,
            revoked: 0,
            counts: DelegationCounts::default(),
        }
    }
}

/// How a state ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// By its holder: BAD_STATEID afterwards.
    Freed,
    /// By CLOSE in 4.0: its place stays until the owner's next request.
    Closed,
    /// Without its holder; uses of its stateid get the reason afterwards, for as long as that is remembered.
    Revoked(Revoked),
}

impl Entry {
    /// The owner of an open or lock state.
    pub(super) fn owner(&self) -> Option<u32> {
        match &self.what {
            What::Open(open) => Some(open.owner),
            What::Lock(lock) => Some(lock.owner),
            What::Delegation(_) | What::Closed { .. } => None,
        }
    }

    /// Owner and file of a lock state.
    pub(super) fn lock_key(&self) -> Option<(u32, u32)> {
        match &self.what {
            What::Lock(lock) => Some((lock.owner, self.file)),
            _ => None,
        }
    }
}

impl FileRecord {
    /// Whether other operations on the file have to look what is held on it.
    pub(super) fn guards(&self) -> bool {
        self.delegations != NONE || self.deny != [0; 2]
    }

    /// Counts an open's modes in (1) or out (-1).
    pub(super) fn count(&mut self, access: u8, deny: u8, by: i32) {
        for bit in 0..2 {
            for (counts, modes) in [(&mut self.access, access), (&mut self.deny, deny)] {
                if modes & 1 << bit != 0 {
                    counts[bit] = counts[bit].saturating_add_signed(by);
                }
            }
        }
    }
}

/// Compares a stateid's seqid with the current one (RFC 7530 §9.1.3, RFC 8881 §8.2.2).
pub(super) fn check_seqid(minor: u32, current: u32, given: u32) -> Result<(), Nfsstat4> {
    if given == current || minor > 0 && given == 0 || is_broken(Mutant::OldStateidTaken) {
        return Ok(());
    }
    // Zero comes before all others; otherwise less than half the numbers away is earlier.
    let earlier = given == 0 || current.wrapping_sub(given) < 1 << 31;
    Err(if earlier && !is_broken(Mutant::OldStateidIsBad) {
        Nfsstat4::OLD_STATEID
    } else {
        Nfsstat4::BAD_STATEID
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A million opens are to fit into memory with all else.
    #[test]
    fn what_an_open_takes_is_small() {
        assert!(size_of::<Entry>() <= 48, "{}", size_of::<Entry>());
        assert!(size_of::<FileRecord>() <= 64, "{}", size_of::<FileRecord>());
        assert!(size_of::<super::super::owner::Owner>() <= 56);
    }

    #[test]
    fn seqids_compare_with_wraparound() {
        let (old, bad) = (Err(Nfsstat4::OLD_STATEID), Err(Nfsstat4::BAD_STATEID));
        for (minor, current, given, expected) in [
            (0, 5, 5, Ok(())),
            (0, 5, 0, old),
            (1, 5, 0, Ok(())),
            (1, 5, 4, old),
            (1, 5, 6, bad),
            (1, 3, u32::MAX - 3, old),
            (1, u32::MAX - 3, 3, bad),
        ] {
            assert_eq!(check_seqid(minor, current, given), expected, "{minor} {current} {given}");
        }
    }
}
