//! Opens: share reservations, open owners, upgrade, downgrade, close (RFC 7530 §9.9–9.11, RFC 8881 §9.7–9.10).

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use std::time::Instant;

use benchmaster_nfs_proto::v4::{Nfsstat4, Stateid4};

use super::arena::NONE;
use super::client::Clients;
use super::entry::{BY_PARENT, End, Entry, FileRecord, Open, Opener, What, check_seqid};
use super::file::Files;
use super::owner::{Owner, OwnerId, OwnerKind};
use super::{ClientId, Effects, Stop};
use crate::handle::FileId;

/// Modes of an OPEN: bits `READ` 1 and `WRITE` 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    /// What the owner does.
    pub(crate) access: u8,
    /// What others must not do.
    pub(crate) deny: u8,
}

impl Files {
    /// An open owner; one of 4.0 follows a sequence, and is confirmed with that.
    pub(crate) fn open_owner(
        &mut self,
        client: ClientId,
        name: &[u8],
        turn: Option<(OwnerId, bool)>,
    ) -> OwnerId {
        let at = self.owners.find(client, OwnerKind::Open, name).unwrap_or_else(|| {
            let new = Owner::new(client, OwnerKind::Open, name);
            let (turn, confirmed) = turn.map_or((NONE, true), |(turn, confirmed)| (turn.at, confirmed));
            self.add_owner(Owner { turn, confirmed, ..new })
        });
        self.owners.id(at)
    }

    /// Whose a state is.
    pub(crate) fn client_of(&self, at: u32) -> Option<ClientId> {
        self.states.get(at).map(|entry| entry.client)
    }

    /// Checks an OPEN against the opens there are, the owner's own not excepted (RFC 7530 §16.16.5).
    pub(crate) fn check_share(
        &self,
        clients: &Clients,
        client: ClientId,
        file: FileId,
        share: Share,
        now: Instant,
    ) -> Result<(), Stop> {
        let Some((_, record)) = self
            .record(file)
            .filter(|(_, record)| record.conflicts(share) && !is_broken(Mutant::DenyIgnored))
        else {
            return Ok(());
        };
        let courtesy = self
            .states
            .list(BY_PARENT, record.opens)
            .filter(|(_, entry)| entry.client != client && entry.conflicts(share))
            .map(|(_, entry)| entry.client)
            .find(|client| clients.is_courtesy(*client, now));
        Err(courtesy.map_or(Stop::Status(Nfsstat4::SHARE_DENIED), Stop::Courtesy))
    }

    /// Opens a file for an owner in the name of user `uid`, or opens it wider; all checks are done. Says whether the
    /// open is new: then it keeps one hold of the file, for which [`super::Effect::Release`] comes at its end.
    pub(crate) fn open(
        &mut self,
        v40: bool,
        owner: OwnerId,
        file: FileId,
        share: Share,
        uid: u32,
    ) -> (Stateid4, bool) {
        let Share { access, deny } = share;
        let client = self.owners.get(owner.at).map_or(ClientId(0), |owner| owner.client);
        let file = self.record_or_new(file);
        if let Some(at) = self.open_of(owner.at, file)
            && let Some(Entry { what: What::Open(open), .. }) = self.states.get_mut(at)
        {
            let more = Share { access: access & !open.access, deny: deny & !open.deny };
            open.access |= access;
            open.deny |= deny;
            open.opener.join(uid);
            open.combinations |= combination(share);
            if let Some(record) = self.files.get_mut(file) {
                record.count(more.access, more.deny, 1);
            }
            self.guard(file);
            return (self.next_stateid(at), false);
        }
        if let Some(record) = self.files.get_mut(file) {
            record.count(access, deny, 1);
        }
        let (owner, opener, combinations) = (owner.at, Opener::new(uid), combination(share));
        let open = Open { owner, opener, access, deny, combinations, locks: NONE };
        let at = self.add_state(Entry { client, file, seqid: 1, v40, what: What::Open(open) });
        (self.stateid(at), true)
    }

    /// The open that a stateid names in CLOSE, OPEN_DOWNGRADE and LOCK, seqid checked, and whether its owner is
    /// confirmed.
    pub(crate) fn find_open(
        &self,
        minor: u32,
        client: Option<ClientId>,
        stateid: &Stateid4,
        file: FileId,
    ) -> Result<u32, Nfsstat4> {
        let at = self.find(minor, client, stateid, Some(file))?;
        let entry = self.states.get(at).ok_or(Nfsstat4::BAD_STATEID)?;
        let What::Open(open) = &entry.what else { return Err(Nfsstat4::BAD_STATEID) };
        if !self.owners.get(open.owner).is_some_and(Owner::is_confirmed) {
            return Err(Nfsstat4::BAD_STATEID);
        }
        check_seqid(minor, entry.seqid, stateid.seqid)?;
        Ok(at)
    }

    /// Confirms an open owner in this part (OPEN_CONFIRM): the stateid of its open.
    pub(crate) fn confirm(&mut self, at: u32, given: &Stateid4) -> Result<Stateid4, Nfsstat4> {
        let entry = self.states.get(at).ok_or(Nfsstat4::BAD_STATEID)?;
        let What::Open(open) = &entry.what else { return Err(Nfsstat4::BAD_STATEID) };
        let owner = open.owner;
        if self.owners.get(owner).is_none_or(Owner::is_confirmed) {
            return Err(Nfsstat4::BAD_STATEID);
        }
        check_seqid(0, entry.seqid, given.seqid)?;
        if let Some(owner) = self.owners.get_mut(owner) {
            owner.confirmed = true;
        }
        Ok(self.next_stateid(at))
    }

    /// Narrows an open to the modes of some of its OPENs, else INVAL (RFC 7530 §16.19.4, RFC 8881 §18.18.3).
    pub(crate) fn downgrade(&mut self, at: u32, share: Share) -> Result<Stateid4, Nfsstat4> {
        let Some(Entry { what: What::Open(open), file, .. }) = self.states.get_mut(at) else {
            return Err(Nfsstat4::BAD_STATEID);
        };
        let left = (0..16u16)
            .filter(|bit| open.combinations & 1 << bit != 0)
            .map(|bit| Share { access: (bit >> 2) as u8, deny: (bit & 3) as u8 })
            .filter(|some| some.access & !share.access == 0 && some.deny & !share.deny == 0);
        let (mut union, mut combinations) = (Share { access: 0, deny: 0 }, 0);
        for some in left {
            union = Share { access: union.access | some.access, deny: union.deny | some.deny };
            combinations |= combination(some);
        }
        if union != share && !is_broken(Mutant::DowngradeUnchecked) {
            return Err(Nfsstat4::INVAL);
        }
        let less = Share { access: open.access & !share.access, deny: open.deny & !share.deny };
        (open.access, open.deny, open.combinations) = (share.access, share.deny, combinations);
        let file = *file;
        if let Some(record) = self.files.get_mut(file) {
            record.count(less.access, less.deny, -1);
        }
        self.guard(file);
        Ok(self.next_stateid(at))
    }

    /// Ends an open of 4.1 and the locks taken through it (RFC 7530 §16.2.4 leaves that to the server; a process that was
    /// killed may close before it unlocks). The stateid returned is not to be used any more.
    pub(crate) fn close(&mut self, at: u32, effects: &mut Effects) -> Result<Stateid4, Nfsstat4> {
        match self.states.get(at) {
            Some(Entry { what: What::Open(_), v40: false, .. }) => {
                self.drop_state(at, End::Freed, effects);
                Ok(Stateid4::INVALID)
            }
            _ => Err(Nfsstat4::BAD_STATEID),
        }
    }
}

impl FileRecord {
    /// Whether an OPEN with these modes is against those of the opens.
    fn conflicts(&self, share: Share) -> bool {
        (0..2).any(|bit| {
            share.access & 1 << bit != 0 && self.deny[bit] > 0
                || share.deny & 1 << bit != 0 && self.access[bit] > 0
        })
    }
}

impl Entry {
    fn conflicts(&self, share: Share) -> bool {
        match &self.what {
            What::Open(open) => open.access & share.deny != 0 || open.deny & share.access != 0,
            _ => false,
        }
    }
}

/// The bit of a combination of modes.
fn combination(share: Share) -> u16 {
    1 << ((share.access & 3) << 2 | share.deny & 3)
}
