//! Sequences of 4.0 owners (RFC 7530 §9.1.7), which span all files and so all parts of the state; and what else is asked of
//! all parts. In the parts where an owner has states, an owner follows its sequence.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::v4::{Nfsstat4, Opnum, Stateid4};
use hashbrown::HashMap;

use super::account;
use super::arena::NONE;
use super::client::Clients;
use super::entry::{BY_OWNER, End, Entry, What};
use super::file::{FileCounts, Files, Keeper, STATE};
use super::owner::{Owner, OwnerId, OwnerKind, Owners, Replay, SeqidCheck};
use super::shards::{All, AllFiles};
use super::{ClientId, Effects, Stop};
use crate::handle::FileId;
use crate::stats::DelegationCounts;

/// All sequences.
#[derive(Debug)]
pub(super) struct Turns {
    owners: Owners,
    of_client: HashMap<ClientId, u32>,
    /// Owners to look at when they have not been heard of for a lease.
    idle: VecDeque<(Instant, OwnerId)>,
    lease: Duration,
}

impl Turns {
    /// None.
    pub(super) fn new(lease: Duration) -> Self {
        Self { owners: Owners::default(), of_client: HashMap::new(), idle: VecDeque::new(), lease }
    }

    fn is_confirmed(&self, at: u32) -> bool {
        self.owners.get(at).is_some_and(Owner::is_confirmed)
    }

    /// Sees to it that an owner without state is forgotten some time, and one that does not confirm is cancelled.
    fn queue(&mut self, at: u32) {
        let id = self.owners.id(at);
        if let Some(sequence) = self.owners.get_mut(at).and_then(|owner| owner.sequence.as_mut())
            && !std::mem::replace(&mut sequence.queued, true)
        {
            self.idle.push_back((sequence.heard, id));
        }
    }

    fn held(&self, at: u32) -> Option<u32> {
        Some(self.owners.get(at)?.sequence.as_ref()?.held)
    }
}

impl All<'_> {
    /// Expires a client whose lease ran out.
    pub(crate) fn drop_client(&mut self, client: ClientId, effects: &mut Effects) {
        let (clients, files) = self.split();
        clients.expire(files, client, effects);
        // Also when there is no record of it any more.
        files.purge_client(client, effects);
    }

    /// As [`super::State::clear`], with everything locked already.
    pub(crate) fn clear(
        &mut self,
        file: FileId,
        stop: Stop,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(), Stop> {
        match stop {
            // It may have come back meanwhile.
            Stop::Courtesy(client) if !self.clients().is_courtesy(client, now) => Ok(()),
            Stop::Courtesy(client) => {
                self.drop_client(client, effects);
                Ok(())
            }
            Stop::Room(keeper) if self.files().admit(file, keeper) => Ok(()),
            _ => Err(stop),
        }
    }
}

impl AllFiles<'_> {
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
        if let Some(at) = self.turns.owners.find(client, OwnerKind::Open, name) {
            let turn = self.turns.owners.turn(at, seqid, Opnum::OPEN);
            if self.turns.is_confirmed(at) || matches!(turn, Ok(SeqidCheck::Replay(_))) {
                return Ok((self.turns.owners.id(at), turn?));
            }
            self.drop_turn(at, effects);
        }
        let id = self.add_turn(client, OwnerKind::Open, name, seqid, now);
        self.turns.queue(id.at);
        Ok((id, SeqidCheck::Run))
    }

    /// The lock owner of a 4.0 client. A new one starts with `seqid`: [`AllFiles::abandon_turn`] it if nothing is locked.
    pub(crate) fn lock_owner(&mut self, client: ClientId, name: &[u8], seqid: u32, now: Instant) -> OwnerId {
        self.known_lock_owner(client, name)
            .unwrap_or_else(|| self.add_turn(client, OwnerKind::Lock, name, seqid, now))
    }

    /// A lock owner of 4.0 that is known.
    pub(crate) fn known_lock_owner(&self, client: ClientId, name: &[u8]) -> Option<OwnerId> {
        let at = self.turns.owners.find(client, OwnerKind::Lock, name)?;
        Some(self.turns.owners.id(at))
    }

    /// Whether a request of a 4.0 lock owner is its next one.
    pub(crate) fn lock_turn(&self, owner: OwnerId, seqid: u32) -> Result<SeqidCheck, Nfsstat4> {
        self.turns.owners.turn(owner.at, seqid, Opnum::LOCK)
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
        let part = self.part(file);
        let at = part.find(0, None, stateid, Some(file))?;
        let turn = |owner: u32| part.owners.get(owner).map_or(NONE, |owner| owner.turn);
        let turn = match part.states.get(at).map(|entry| &entry.what) {
            Some(What::Open(open)) if kind == OwnerKind::Open => turn(open.owner),
            Some(What::Closed { turn }) if kind == OwnerKind::Open => *turn,
            Some(What::Lock(lock)) if kind == OwnerKind::Lock => turn(lock.owner),
            _ => return Err(Nfsstat4::BAD_STATEID),
        };
        let owners = &self.turns.owners;
        Ok((at, owners.id(turn), owners.turn(turn, seqid, op)?))
    }

    /// As [`AllFiles::state_turn`], for OPEN_CONFIRM: when it is out of sequence the client will not confirm, and what
    /// it opened is dropped (RFC 7530 §16.18.4).
    pub(crate) fn confirm_turn(
        &mut self,
        stateid: &Stateid4,
        file: FileId,
        seqid: u32,
        effects: &mut Effects,
    ) -> Result<(u32, OwnerId, SeqidCheck), Nfsstat4> {
        let outcome = self.state_turn(stateid, file, OwnerKind::Open, seqid, Opnum::OPEN_CONFIRM);
        if outcome == Err(Nfsstat4::BAD_SEQID) {
            let part = self.part(file);
            let at = part.find(0, None, stateid, Some(file)).unwrap_or(NONE);
            if let Some(turn) = part.turn_of(at).filter(|turn| !self.turns.is_confirmed(*turn)) {
                self.drop_turn(turn, effects);
            }
        }
        outcome
    }

    /// Notes the outcome of a 4.0 request in its owner's sequence.
    pub(crate) fn record_turn(&mut self, owner: OwnerId, seqid: u32, replay: Replay, now: Instant) {
        let closed = self.turns.owners.record(owner, seqid, replay, now);
        self.forget_closed(closed);
        self.abandon_turn(owner);
    }

    /// Forgets an owner that holds nothing, some time or at once.
    pub(crate) fn abandon_turn(&mut self, owner: OwnerId) {
        if self.turns.owners.is_current(owner) {
            self.drop_turn_if_idle(owner.at);
        }
    }

    /// Whether an open owner has confirmed, or need not.
    pub(crate) fn is_confirmed(&self, owner: OwnerId) -> bool {
        self.turns.is_confirmed(owner.at)
    }

    /// Frees an open owner from confirming (reclaims, RFC 7530 §9.1.11) or notes that it did.
    pub(crate) fn set_confirmed(&mut self, owner: OwnerId) {
        let owner = self.turns.owners.get_mut(owner.at);
        if let Some(sequence) = owner.and_then(|owner| owner.sequence.as_mut()) {
            sequence.confirmed = true;
        }
    }

    /// Ends an open of 4.0. Its stateid is known until its owner's next request.
    pub(crate) fn close(
        &mut self,
        file: FileId,
        at: u32,
        effects: &mut Effects,
    ) -> Result<Stateid4, Nfsstat4> {
        let part = self.part(file);
        let turn = part.turn_of(at).ok_or(Nfsstat4::BAD_STATEID)?;
        let (stateid, number) = (part.next_stateid(at), part.number(at));
        part.drop_state(at, End::Closed, effects);
        let owner = self.turns.owners.id(turn);
        self.settle(file);
        let sequence = self.turns.owners.get_mut(turn).and_then(|owner| owner.sequence.as_mut());
        let before = match sequence {
            Some(sequence) => std::mem::replace(&mut sequence.closed, number),
            None => number,
        };
        debug_assert!(before == number || self.turns.owners.is_current(owner));
        self.forget_closed(before);
        Ok(stateid)
    }

    /// Forgets a 4.0 lock owner that has locked nothing (RELEASE_LOCKOWNER).
    pub(crate) fn release_lock_owner(
        &mut self,
        client: ClientId,
        name: &[u8],
        effects: &mut Effects,
    ) -> Result<(), Nfsstat4> {
        let locks = |part: &Files| {
            let Some(at) = part.owners.find(client, OwnerKind::Lock, name) else { return false };
            let Some(owner) = part.owners.get(at) else { return false };
            part.states.list(BY_OWNER, owner.states).any(|(_, entry)| part.holds_locks(entry.file, at))
        };
        if self.parts.iter().any(|part| locks(part)) {
            return Err(Nfsstat4::LOCKS_HELD);
        }
        if let Some(OwnerId { at, .. }) = self.known_lock_owner(client, name) {
            self.drop_turn(at, effects);
        }
        Ok(())
    }

    /// Drops all that a client holds.
    pub fn purge_client(&mut self, client: ClientId, effects: &mut Effects) {
        for index in 0..self.parts.len() {
            self.parts[index].purge_client(client, effects);
            self.settle_part(index);
        }
        while let Some(at) = self.turns.of_client.get(&client).copied() {
            self.forget_turn(at);
        }
    }

    /// Whether a client holds any open, lock or delegation (DESTROY_CLIENTID: CLIENTID_BUSY).
    pub fn client_has_state(&self, client: ClientId) -> bool {
        self.parts.iter().any(|part| part.client_has_state(client))
    }

    /// Whether a client holds any delegation (RENEW: CB_PATH_DOWN).
    pub fn client_has_delegations(&self, client: ClientId) -> bool {
        self.parts.iter().any(|part| part.client_has_delegations(client))
    }

    /// Sets or clears the flag that tells a client of revoked delegations.
    pub(crate) fn refresh_revoked(&self, clients: &Clients, client: ClientId) {
        clients.revoked_delegations(client, self.parts.iter().any(|part| part.revoked(client) > 0));
    }

    /// Lets the part of a file take what one more state needs, if all parts together have room for it.
    fn admit(&mut self, file: FileId, keeper: Keeper) -> bool {
        let room = account::left(self.parts.iter().map(|part| &part.accounts), &keeper) > 0;
        if room {
            self.part(file).admitted = Some(keeper);
        }
        room
    }

    /// How much is held.
    pub fn counts(&self) -> FileCounts {
        let mut sum = FileCounts { owners: self.turns.owners.len(), ..FileCounts::default() };
        for part in &self.parts {
            let FileCounts { states, files, owners, waiting } = part.counts();
            sum.states += states;
            sum.files += files;
            sum.owners += owners;
            sum.waiting += waiting;
        }
        sum
    }

    /// Delegations of a client.
    pub fn delegation_counts(&self, client: ClientId) -> DelegationCounts {
        let mut sum = DelegationCounts::default();
        self.parts.iter().for_each(|part| sum.add(&part.delegation_counts(client)));
        sum
    }

    /// Delegations of all clients, those that are gone included.
    pub fn delegation_totals(&self) -> DelegationCounts {
        let mut sum = DelegationCounts::default();
        self.parts.iter().for_each(|part| sum.add(&part.delegation_totals()));
        sum
    }

    /// Forgets 4.0 open owners that were not heard of for a lease and have no state, or did not confirm it.
    pub(super) fn tick_owners(&mut self, now: Instant, effects: &mut Effects) {
        while let Some((since, id)) = self.turns.idle.front().copied()
            && now.saturating_duration_since(since) >= self.turns.lease
        {
            self.turns.idle.pop_front();
            if !self.turns.owners.is_current(id) {
                continue;
            }
            let confirmed = self.turns.is_confirmed(id.at);
            let Some(owner) = self.turns.owners.get_mut(id.at) else { continue };
            let Some(sequence) = owner.sequence.as_mut() else { continue };
            sequence.queued = false;
            if sequence.held > 0 && confirmed {
                continue;
            }
            if now.saturating_duration_since(sequence.heard) >= self.turns.lease {
                self.drop_turn(id.at, effects);
            } else {
                self.turns.queue(id.at);
            }
        }
    }

    /// Takes over which states the owners in the part of a file got and lost.
    pub(crate) fn settle(&mut self, file: FileId) {
        self.settle_part(self.index_of(file));
    }

    fn settle_part(&mut self, index: usize) {
        for (turn, added) in std::mem::take(&mut self.parts[index].turned) {
            let owner = self.turns.owners.get_mut(turn);
            let Some(sequence) = owner.and_then(|owner| owner.sequence.as_mut()) else { continue };
            sequence.held = sequence.held.saturating_add_signed(if added { 1 } else { -1 });
            if !added {
                self.drop_turn_if_idle(turn);
            }
        }
    }

    fn add_turn(
        &mut self,
        client: ClientId,
        kind: OwnerKind,
        name: &[u8],
        seqid: u32,
        now: Instant,
    ) -> OwnerId {
        let owner = Owner::new(client, kind, name).with_sequence(seqid, kind == OwnerKind::Lock, now);
        // Of no file: the first part counts it.
        self.parts[0].accounts.take(owner.keeper(), STATE);
        let Turns { owners, of_client, .. } = &mut *self.turns;
        let at = owners.insert(owner, of_client.entry(client).or_insert(NONE));
        owners.id(at)
    }

    /// Drops an owner and all its states.
    fn drop_turn(&mut self, at: u32, effects: &mut Effects) {
        let id = self.turns.owners.id(at);
        let Some(Owner { client, kind, name, .. }) = self.turns.owners.get(at) else { return };
        let (client, kind, name) = (*client, *kind, name.clone());
        for index in 0..self.parts.len() {
            let part = &mut *self.parts[index];
            if let Some(owner) = part.owners.find(client, kind, &name) {
                part.drop_owner(owner, End::Freed, effects);
                self.settle_part(index);
            }
        }
        if self.turns.owners.is_current(id) {
            self.forget_turn(at);
        }
    }

    /// Owners without state are forgotten, but open owners, which are kept for a while: their last request may be repeated
    /// (RFC 7530 §9.1.10). They leave half of the client's share to what is open.
    fn drop_turn_if_idle(&mut self, at: u32) {
        if self.turns.held(at) != Some(0) {
            return;
        }
        let Some(owner) = self.turns.owners.get(at) else { return };
        let accounts = self.parts.iter().map(|part| &part.accounts);
        if owner.kind == OwnerKind::Open && !account::is_scarce(accounts, &owner.keeper()) {
            self.turns.queue(at);
        } else {
            self.forget_turn(at);
        }
    }

    fn forget_turn(&mut self, at: u32) {
        let Some(owner) = self.turns.owners.get(at) else { return };
        let (client, keeper) = (owner.client, owner.keeper());
        if let Some(closed) = owner.sequence.as_ref().map(|sequence| sequence.closed) {
            self.forget_closed(closed);
        }
        self.parts[0].accounts.give_back(&keeper, STATE);
        let Turns { owners, of_client, .. } = &mut *self.turns;
        let Some(head) = of_client.get_mut(&client) else { return };
        owners.remove(at, head);
        if *head == NONE {
            of_client.remove(&client);
        }
    }

    /// Frees the place of a closed state.
    fn forget_closed(&mut self, number: u32) {
        if number != NONE {
            let place = self.parts[0].place;
            let index = number as usize & (self.parts.len() - 1);
            self.parts[index].forget_closed(number >> place.bits);
        }
    }
}

impl Files {
    /// The sequence that the owner of an open follows.
    fn turn_of(&self, at: u32) -> Option<u32> {
        let Some(Entry { what: What::Open(open), .. }) = self.states.get(at) else { return None };
        let turn = self.owners.get(open.owner)?.turn;
        (turn != NONE).then_some(turn)
    }
}
