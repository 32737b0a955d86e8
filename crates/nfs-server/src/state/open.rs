//! Opens: share reservations, open owners, upgrade, downgrade, close (RFC 7530 §9.9–9.11, RFC 8881 §9.7–9.10).

use std::time::Instant;

use benchmaster_nfs_proto::v4::{Nfsstat4, Opnum, Stateid4};

use super::arena::NONE;
use super::client::Clients;
use super::entry::{BY_PARENT, End, Entry, FileRecord, Open, Opener, What, check_seqid};
use super::file::Files;
use super::owner::{Owner, OwnerId, OwnerKind, Replay, SeqidCheck};
use super::{ClientId, Effects};
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
    /// Whether a 4.0 request with `seqid` is its open owner's next, before OPEN. An owner that is not confirmed
    /// starts over: what it opened is cancelled (RFC 7530 §16.18.5).
    pub(crate) fn open_turn(
        &mut self,
        client: ClientId,
        name: &[u8],
        seqid: u32,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(OwnerId, SeqidCheck), Nfsstat4> {
        if let Some(at) = self.owners.find(client, OwnerKind::Open, name) {
            let id = self.owners.id(at);
            let turn = self.owners.turn(at, seqid, Opnum::OPEN);
            if self.owners.get(at).is_some_and(Owner::is_confirmed)
                || matches!(turn, Ok(SeqidCheck::Replay(_)))
            {
                return Ok((id, turn?));
            }
            self.drop_owner(at, End::Freed, effects);
        }
        let owner = Owner::new(client, OwnerKind::Open, name).with_sequence(seqid, false, now);
        let at = self.add_owner(owner);
        self.queue_owner(at);
        Ok((self.owners.id(at), SeqidCheck::Run))
    }

    /// The open owner of a 4.1 client.
    pub(crate) fn open_owner(&mut self, client: ClientId, name: &[u8]) -> OwnerId {
        let known = self.owners.find(client, OwnerKind::Open, name);
        let at = known.unwrap_or_else(|| self.add_owner(Owner::new(client, OwnerKind::Open, name)));
        self.owners.id(at)
    }

    /// Forgets a 4.1 open owner after an OPEN that came to nothing.
    pub(crate) fn abandon_owner(&mut self, id: OwnerId) {
        let unused = |owner: &Owner| owner.states == NONE && owner.sequence.is_none();
        if self.owners.is_current(id) && self.owners.get(id.at).is_some_and(unused) {
            self.forget_owner(id.at);
        }
    }

    /// Whether a 4.0 request that names a state is the next of the state's owner. Finds the state, too: the sequence
    /// comes before the stateid's own seqid (RFC 7530 §9.1.9), which is for the caller to check.
    pub(crate) fn state_turn(
        &mut self,
        stateid: &Stateid4,
        file: FileId,
        kind: OwnerKind,
        seqid: u32,
        op: Opnum,
    ) -> Result<(u32, OwnerId, SeqidCheck), Nfsstat4> {
        let at = self.find(0, None, stateid, Some(file))?;
        let owner = match self.states.get(at).map(|entry| &entry.what) {
            Some(What::Open(open)) if kind == OwnerKind::Open => open.owner,
            Some(What::Closed { owner }) if kind == OwnerKind::Open => *owner,
            Some(What::Lock(lock)) if kind == OwnerKind::Lock => lock.owner,
            _ => return Err(Nfsstat4::BAD_STATEID),
        };
        Ok((at, self.owners.id(owner), self.owners.turn(owner, seqid, op)?))
    }

    /// As [`Files::state_turn`], for OPEN_CONFIRM: when it is out of sequence the client will not confirm, and what
    /// it opened is dropped (RFC 7530 §16.18.4).
    pub(crate) fn confirm_turn(
        &mut self,
        stateid: &Stateid4,
        file: FileId,
        seqid: u32,
        effects: &mut Effects,
    ) -> Result<(u32, OwnerId, SeqidCheck), Nfsstat4> {
        let outcome = self.state_turn(stateid, file, OwnerKind::Open, seqid, Opnum::OPEN_CONFIRM);
        if outcome == Err(Nfsstat4::BAD_SEQID)
            && let Ok(at) = self.find(0, None, stateid, Some(file))
            && let Ok((_, owner)) = self.opener(at)
            && !self.is_confirmed(owner)
        {
            self.drop_owner(owner.at, End::Freed, effects);
        }
        outcome
    }

    /// Whose a state is.
    pub(crate) fn client_of(&self, at: u32) -> Option<ClientId> {
        self.states.get(at).map(|entry| entry.client)
    }

    /// Notes the outcome of a 4.0 request in its owner's sequence.
    pub(crate) fn record_turn(&mut self, owner: OwnerId, seqid: u32, replay: Replay, now: Instant) {
        let closed = self.owners.record(owner, seqid, replay, now);
        self.forget_closed(closed);
        if self.owners.is_current(owner) {
            self.drop_owner_if_idle(owner.at);
        }
    }

    /// Whether an open owner has to confirm.
    pub(crate) fn is_confirmed(&self, owner: OwnerId) -> bool {
        self.owners.get(owner.at).is_some_and(Owner::is_confirmed)
    }

    /// Frees an open owner from confirming (reclaims, RFC 7530 §9.1.11) or notes that it did.
    pub(crate) fn set_confirmed(&mut self, owner: OwnerId) {
        if let Some(sequence) = self.owners.get_mut(owner.at).and_then(|owner| owner.sequence.as_mut()) {
            sequence.confirmed = true;
        }
    }

    /// Checks an OPEN against the opens there are, the owner's own not excepted (RFC 7530 §16.16.5). Clients that are
    /// kept by courtesy give way.
    pub(crate) fn check_share(
        &mut self,
        clients: &mut Clients,
        client: ClientId,
        file: FileId,
        share: Share,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(), Nfsstat4> {
        while let Some((_, record)) = self.record(file)
            && record.conflicts(share)
        {
            let courtesy = self
                .states
                .list(BY_PARENT, record.opens)
                .filter(|(_, entry)| entry.client != client && entry.conflicts(share))
                .map(|(_, entry)| entry.client)
                .find(|client| clients.is_courtesy(*client, now))
                .ok_or(Nfsstat4::SHARE_DENIED)?;
            self.drop_client(clients, courtesy, effects);
        }
        Ok(())
    }

    /// Expires a client whose lease ran out.
    pub(super) fn drop_client(&mut self, clients: &mut Clients, client: ClientId, effects: &mut Effects) {
        clients.expire(self, client, effects);
        // Also when there is no record of it any more.
        self.purge_client(client, effects);
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
        if let Some(at) = self.state_of(owner.at, file)
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

    /// Confirms an open owner (OPEN_CONFIRM): the stateid of its open.
    pub(crate) fn confirm(&mut self, at: u32, given: &Stateid4) -> Result<Stateid4, Nfsstat4> {
        let entry = self.states.get(at).ok_or(Nfsstat4::BAD_STATEID)?;
        let What::Open(open) = &entry.what else { return Err(Nfsstat4::BAD_STATEID) };
        if self.owners.get(open.owner).is_none_or(Owner::is_confirmed) {
            return Err(Nfsstat4::BAD_STATEID);
        }
        check_seqid(0, entry.seqid, given.seqid)?;
        let owner = self.owners.id(open.owner);
        self.set_confirmed(owner);
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
        if union != share {
            return Err(Nfsstat4::INVAL);
        }
        let less = Share { access: open.access & !share.access, deny: open.deny & !share.deny };
        (open.access, open.deny, open.combinations) = (share.access, share.deny, combinations);
        if let Some(record) = self.files.get_mut(*file) {
            record.count(less.access, less.deny, -1);
        }
        Ok(self.next_stateid(at))
    }

    /// Ends an open and the locks taken through it (RFC 7530 §16.2.4 leaves that to the server; a process that was
    /// killed may close before it unlocks). The stateid returned is not to be used any more.
    pub(crate) fn close(&mut self, at: u32, effects: &mut Effects) -> Result<Stateid4, Nfsstat4> {
        let entry = self.states.get(at).ok_or(Nfsstat4::BAD_STATEID)?;
        let v40 = entry.v40;
        let What::Open(Open { owner, .. }) = entry.what else { return Err(Nfsstat4::BAD_STATEID) };
        if !v40 {
            self.drop_state(at, End::Freed, effects);
            return Ok(Stateid4::INVALID);
        }
        let stateid = self.next_stateid(at);
        self.drop_state(at, End::Closed, effects);
        let sequence = self.owners.get_mut(owner).and_then(|owner| owner.sequence.as_mut());
        let before = sequence.map_or(at, |sequence| std::mem::replace(&mut sequence.closed, at));
        self.forget_closed(before);
        Ok(stateid)
    }

    /// Sees to it that an owner without state is forgotten some time, and one that does not confirm is cancelled.
    pub(super) fn queue_owner(&mut self, at: u32) {
        let id = self.owners.id(at);
        if let Some(sequence) = self.owners.get_mut(at).and_then(|owner| owner.sequence.as_mut())
            && !std::mem::replace(&mut sequence.queued, true)
        {
            self.idle.push_back((sequence.heard, id));
        }
    }

    /// Forgets 4.0 open owners that were not heard of for a lease and have no state, or did not confirm it.
    pub(super) fn tick_owners(&mut self, now: Instant, effects: &mut Effects) {
        while let Some((since, id)) = self.idle.front().copied()
            && now.saturating_duration_since(since) >= self.lease
        {
            self.idle.pop_front();
            if !self.owners.is_current(id) {
                continue;
            }
            let Some(owner) = self.owners.get_mut(id.at) else { continue };
            let unused = owner.states == NONE || !owner.is_confirmed();
            let Some(sequence) = owner.sequence.as_mut() else { continue };
            sequence.queued = false;
            if !unused {
                continue;
            }
            if now.saturating_duration_since(sequence.heard) >= self.lease {
                self.drop_owner(id.at, End::Freed, effects);
            } else {
                self.queue_owner(id.at);
            }
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
