//! Byte-range locks of NFSv4 clients: lock owners, lock states, and the queue of those who wait (RFC 7530 §9.2–9.4,
//! RFC 8881 §9.1–9.6). [`super::nlm`] puts NLM clients on the same table and into the same queue.

use std::time::{Duration, Instant};

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{Nfsstat4, Stateid4};

use super::arena::NONE;
use super::client::Clients;
use super::entry::{End, Entry, LockState, What, check_seqid};
use super::file::{Files, Keeper};
use super::interval::Range;
use super::owner::{Owner, OwnerId, OwnerKind};
use super::ranges::HeldLock;
use super::waiter::{LockHolder, Offer, Waiter, Who};
use super::{Callback, ClientId, Effect, Effects, Stop};
use crate::handle::FileId;

/// Waiting requests per file that are remembered. Others poll, only less fairly.
pub(super) const MAX_WAITERS: usize = 4096;
/// How long a lock is kept for a client that was notified by CB_NOTIFY_LOCK.
const NOTIFIED: Duration = Duration::from_secs(5);

/// A lock that an NFSv4 client asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LockRequest<'a> {
    pub(crate) client: ClientId,
    /// Name of the owner.
    pub(crate) owner: &'a [u8],
    /// Which sequence the owner follows (4.0).
    pub(crate) turn: Option<OwnerId>,
    pub(crate) range: Range,
    /// Whether it is exclusive.
    pub(crate) write: bool,
    /// Whether the client will wait for it.
    pub(crate) blocking: bool,
}

/// Why a lock is not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LockFailure {
    /// Another lock is in the way.
    Denied(LockHolder),
    /// Something else.
    Stop(Stop),
}

impl From<Stop> for LockFailure {
    fn from(stop: Stop) -> Self {
        Self::Stop(stop)
    }
}

impl From<Nfsstat4> for LockFailure {
    fn from(status: Nfsstat4) -> Self {
        Self::Stop(Stop::Status(status))
    }
}

impl Files {
    /// The lock state that a stateid names in LOCK and LOCKU, seqid not checked.
    pub(crate) fn find_lock(
        &self,
        minor: u32,
        client: Option<ClientId>,
        stateid: &Stateid4,
        file: FileId,
    ) -> Result<u32, Nfsstat4> {
        let at = self.find(minor, client, stateid, Some(file))?;
        match self.states.get(at).map(|entry| &entry.what) {
            Some(What::Lock(_)) => Ok(at),
            _ => Err(Nfsstat4::BAD_STATEID),
        }
    }

    /// Compares a stateid's seqid with that of its state.
    pub(crate) fn check_state_seqid(&self, minor: u32, at: u32, stateid: &Stateid4) -> Result<(), Nfsstat4> {
        let entry = self.states.get(at).ok_or(Nfsstat4::BAD_STATEID)?;
        check_seqid(minor, entry.seqid, stateid.seqid)
    }

    /// Client and owner name of a lock state.
    pub(crate) fn lock_owner_of(&self, at: u32) -> Result<(ClientId, Box<[u8]>), Nfsstat4> {
        match self.states.get(at) {
            Some(Entry { what: What::Lock(lock), client, .. }) => {
                let owner = self.owners.get(lock.owner).ok_or(Nfsstat4::BAD_STATEID)?;
                Ok((*client, owner.name.clone()))
            }
            _ => Err(Nfsstat4::BAD_STATEID),
        }
    }

    /// Client of an open.
    pub(crate) fn opener_client(&self, at: u32) -> Result<ClientId, Nfsstat4> {
        match self.states.get(at) {
            Some(Entry { what: What::Open(_), client, .. }) => Ok(*client),
            _ => Err(Nfsstat4::BAD_STATEID),
        }
    }

    /// Locks a range through the open or lock state `at` (LOCK): the lock stateid. Lock states and owners come to be only
    /// with the first lock granted.
    pub(crate) fn lock(
        &mut self,
        clients: &Clients,
        at: u32,
        request: &LockRequest<'_>,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<Stateid4, LockFailure> {
        let entry = self.states.get(at).ok_or(Nfsstat4::BAD_STATEID)?;
        let (file, v40) = (entry.file, entry.v40);
        let (open_at, lock_at) = match &entry.what {
            What::Open(_) => (at, None),
            What::Lock(lock) => (lock.open, Some(at)),
            _ => return Err(Nfsstat4::BAD_STATEID.into()),
        };
        match self.states.get(open_at) {
            Some(Entry { what: What::Open(open), .. })
                if open.access & if request.write { 2 } else { 1 } != 0
                    || is_broken(Mutant::LockByReader) => {}
            _ => return Err(Nfsstat4::OPENMODE.into()),
        }
        let owner = self.owners.find(request.client, OwnerKind::Lock, request.owner);
        self.admit_lock(clients, file, owner.unwrap_or(NONE), request, now)?;
        let owner = owner.unwrap_or_else(|| {
            let owner = Owner::new(request.client, OwnerKind::Lock, request.owner);
            self.add_owner(Owner { turn: request.turn.map_or(NONE, |turn| turn.at), ..owner })
        });
        if let Some(record) = self.files.get_mut(file) {
            record.locks.get_or_insert_default();
        }
        self.relock(file, owner, |table| table.lock(owner, request.range, request.write));
        // A downgrade may be what a reader waits for, as may the end of this owner's own waiting.
        self.wake(file, effects);
        Ok(match lock_at.or_else(|| self.lock_state_of(owner, file)) {
            Some(at) => self.next_stateid(at),
            None => {
                let what = What::Lock(LockState { owner, open: open_at });
                let at = self.add_state(Entry { client: request.client, file, seqid: 1, v40, what });
                self.stateid(at)
            }
        })
    }

    /// The lock in the way of a request (LOCKT), if any.
    pub(crate) fn test_lock(
        &self,
        clients: &Clients,
        file: FileId,
        request: &LockRequest<'_>,
        now: Instant,
    ) -> Result<(), LockFailure> {
        let owner = self.owners.find(request.client, OwnerKind::Lock, request.owner).unwrap_or(NONE);
        let Some((at, _)) = self.record(file) else { return Ok(()) };
        match self.standing(clients, at, owner, request.range, request.write, now) {
            Standing::Free => Ok(()),
            Standing::Courtesy(client) => Err(LockFailure::Stop(Stop::Courtesy(client))),
            Standing::HeldLock(held) => Err(LockFailure::Denied(self.holder(held))),
        }
    }

    /// Unlocks a range (LOCKU): the lock stateid. There may be no room for what is left on both sides of it.
    pub(crate) fn unlock(&mut self, at: u32, range: Range, effects: &mut Effects) -> Result<Stateid4, Stop> {
        let entry = self.states.get(at).ok_or(Nfsstat4::BAD_STATEID)?;
        let What::Lock(LockState { owner, .. }) = entry.what else {
            return Err(Nfsstat4::BAD_STATEID.into());
        };
        let (file, keeper) = (entry.file, Keeper::Client(entry.client));
        if !self.may_unlock(file, owner, range) {
            return Err(Stop::Room(keeper));
        }
        if !is_broken(Mutant::UnlockForgotten) {
            self.relock(file, owner, |table| table.unlock(owner, range));
        }
        self.wake(file, effects);
        Ok(self.next_stateid(at))
    }

    /// Status of a stateid (TEST_STATEID, RFC 8881 §18.48).
    pub(crate) fn test_stateid(&self, client: ClientId, stateid: &Stateid4) -> Nfsstat4 {
        let checked = self.find(1, Some(client), stateid, None).and_then(|at| {
            let entry = self.states.get(at).ok_or(Nfsstat4::BAD_STATEID)?;
            check_seqid(1, entry.seqid, stateid.seqid)
        });
        checked.err().unwrap_or(Nfsstat4::OK)
    }

    /// Frees a stateid without locks, or one whose delegation was revoked: then `true` (FREE_STATEID, RFC 8881 §18.38).
    pub(crate) fn free_stateid(
        &mut self,
        client: ClientId,
        stateid: &Stateid4,
        effects: &mut Effects,
    ) -> Result<bool, Nfsstat4> {
        let at = match self.find(1, Some(client), stateid, None) {
            Err(Nfsstat4::DELEG_REVOKED) => {
                self.free_revoked(stateid, effects);
                return Ok(true);
            }
            found => found?,
        };
        let entry = self.states.get(at).ok_or(Nfsstat4::BAD_STATEID)?;
        check_seqid(1, entry.seqid, stateid.seqid)?;
        match &entry.what {
            What::Lock(lock) if !self.holds_locks(entry.file, lock.owner) => {
                self.drop_state(at, End::Freed, effects);
                Ok(false)
            }
            _ if is_broken(Mutant::FreeOfHeldLocks) => Ok(false),
            _ => Err(Nfsstat4::LOCKS_HELD),
        }
    }

    /// Whether an owner has locked anything in a file.
    pub(super) fn holds_locks(&self, file: u32, owner: u32) -> bool {
        self.locks(file).is_some_and(|locks| locks.table.holds(owner))
    }

    /// Unlocks all that an owner has in a file.
    pub(super) fn unlock_all(&mut self, file: u32, owner: u32, effects: &mut Effects) {
        if self.relock(file, owner, |table| table.unlock_all(owner)) == Some(true) {
            self.wake(file, effects);
        }
    }

    /// Whether a lock can be granted now; else the request is put into the queue, or out of it (RFC 7530 §9.4).
    fn admit_lock(
        &mut self,
        clients: &Clients,
        file: u32,
        owner: u32,
        request: &LockRequest<'_>,
        now: Instant,
    ) -> Result<(), LockFailure> {
        let me = |who: &Who| matches!(who, Who::V4 { client, owner, .. } if *client == request.client && **owner == *request.owner);
        let held = match self.standing(clients, file, owner, request.range, request.write, now) {
            Standing::Free => None,
            Standing::Courtesy(client) => return Err(LockFailure::Stop(Stop::Courtesy(client))),
            Standing::HeldLock(_) if is_broken(Mutant::LocksAlwaysGranted) => None,
            Standing::HeldLock(held) => Some(self.holder(held)),
        };
        let notify = clients.minor(request.client) > 0;
        let Some(locks) = self.files.get_mut(file).map(|record| &mut record.locks) else {
            return Err(Nfsstat4::BAD_STATEID.into());
        };
        let reserved = || locks.as_ref()?.reserved(me, request.range, request.write, now);
        let Some(holder) = held.or_else(reserved) else {
            self.retain_waiters(file, |waiter| !(me(&waiter.who) && waiter.range.meets(request.range)));
            return Ok(());
        };
        let full = locks.as_ref().is_some_and(|locks| locks.waiters.len() >= MAX_WAITERS);
        let mut waiting = false;
        self.retain_waiters(file, |waiter| {
            let same = me(&waiter.who) && waiter.range == request.range && waiter.write == request.write;
            if same {
                (waiting, waiter.heard) = (true, Some(now));
            }
            !same || request.blocking
        });
        if request.blocking && !waiting && !full {
            let who = Who::V4 { client: request.client, owner: request.owner.into(), notify };
            let (range, write) = (request.range, request.write);
            self.enqueue(file, Waiter { who, range, write, heard: Some(now), offer: Offer::No });
        }
        Err(LockFailure::Denied(holder))
    }

    /// What stands in the way of a lock.
    pub(super) fn standing(
        &self,
        clients: &Clients,
        file: u32,
        owner: u32,
        range: Range,
        write: bool,
        now: Instant,
    ) -> Standing {
        let held = self.locks(file).and_then(|locks| locks.table.conflict(owner, range, write));
        match held {
            None => Standing::Free,
            Some(held) => match self.owners.get(held.owner) {
                Some(owner) if owner.kind == OwnerKind::Lock && clients.is_courtesy(owner.client, now) => {
                    Standing::Courtesy(owner.client)
                }
                _ => Standing::HeldLock(held),
            },
        }
    }

    /// Who holds a lock.
    pub(super) fn holder(&self, held: HeldLock) -> LockHolder {
        let HeldLock { range, write, owner } = held;
        let owner = self.owners.get(owner);
        let nlm = owner.and_then(|owner| owner.nlm.as_ref());
        LockHolder {
            range,
            write,
            client: owner.map_or(ClientId(0), |owner| owner.client),
            owner: match (nlm, owner) {
                (Some(nlm), _) => nlm.owner.oh.to_vec(),
                (None, Some(owner)) => owner.name.to_vec(),
                (None, None) => Vec::new(),
            },
            svid: nlm.map_or(0, |nlm| nlm.owner.svid),
        }
    }

    /// Something became free in a file: in the order in which they came, those who wait are granted what they wait
    /// for (NLM), or it is kept for them and they are notified (4.1).
    pub(super) fn wake(&mut self, file: u32, effects: &mut Effects) {
        let mut at = 0;
        // What is kept for those before.
        let mut offered: Vec<(Range, bool)> = Vec::new();
        loop {
            let Some(record) = self.files.get(file) else { return };
            let id = record.id;
            let Some(locks) = record.locks.as_ref() else { return };
            let Some(waiter) = locks.waiters.get(at) else { break };
            let (range, write) = (waiter.range, waiter.write);
            if waiter.offer != Offer::No {
                offered.push((range, write));
                at += 1;
                continue;
            }
            let owner = match &waiter.who {
                Who::V4 { client, owner, .. } => self.owners.find(*client, OwnerKind::Lock, owner),
                Who::Nlm(waiter) => self.nlm_owner(&waiter.lock.owner),
            };
            let Some(locks) = self.files.get_mut(file).and_then(|record| record.locks.as_mut()) else {
                return;
            };
            let kept = offered.iter().any(|(kept, writes)| (*writes || write) && kept.meets(range));
            if kept || locks.table.conflict(owner.unwrap_or(NONE), range, write).is_some() {
                at += 1;
                continue;
            }
            let Some(waiter) = locks.waiters.get_mut(at) else { return };
            match &waiter.who {
                Who::V4 { client, owner, notify } => {
                    if *notify {
                        let callback = Callback::NotifyLock { file: id, owner: owner.to_vec() };
                        effects.push(Effect::Call(*client, callback));
                    }
                    waiter.offer = Offer::New;
                    offered.push((range, write));
                    at += 1;
                }
                Who::Nlm(_) => {
                    if let Some(Waiter { who, .. }) = locks.waiters.remove(at) {
                        self.accounts.give_back(&who.keeper(), who.memory());
                        let Who::Nlm(granted) = who else { return };
                        self.nlm_grant(file, &granted.lock.owner, range, write);
                        effects.push(Effect::NlmGranted(*granted));
                    }
                }
            }
        }
        if self.locks(file).is_none_or(|locks| locks.waiters.is_empty()) {
            self.waiting.remove(&file);
        }
    }

    /// Lets go of those who wait no more, and of what was kept for them too long.
    pub(super) fn tick_waiters(&mut self, now: Instant, effects: &mut Effects) {
        let lease = self.lease;
        let files: Vec<u32> = self.waiting.iter().copied().collect();
        for file in files {
            let gone = self.retain_waiters(file, |waiter| {
                let notify = matches!(waiter.who, Who::V4 { notify: true, .. });
                match (waiter.offer, waiter.heard) {
                    (Offer::New, _) => {
                        waiter.offer = Offer::Until(now + if notify { lease.min(NOTIFIED) } else { lease });
                        true
                    }
                    (Offer::Until(end), _) => now < end,
                    (Offer::No, Some(heard)) => now.saturating_duration_since(heard) < lease,
                    (Offer::No, None) => true,
                }
            });
            if gone {
                self.wake(file, effects);
                self.forget_file(file);
            }
        }
    }

    pub(super) fn drop_waiters_of(&mut self, client: ClientId, effects: &mut Effects) {
        self.drop_waiters(
            |who| matches!(who, Who::V4 { client: waiting, .. } if *waiting == client),
            effects,
        );
    }

    /// Drops waiting requests.
    pub(super) fn drop_waiters(&mut self, gone: impl Fn(&Who) -> bool, effects: &mut Effects) {
        let files: Vec<u32> = self.waiting.iter().copied().collect();
        for file in files {
            self.retain_waiters(file, |waiter| !gone(&waiter.who));
            self.wake(file, effects);
            self.forget_file(file);
        }
    }
}

/// What stands in the way of a lock.
pub(super) enum Standing {
    Free,
    /// A lock of a client that is kept by courtesy.
    Courtesy(ClientId),
    HeldLock(HeldLock),
}
