//! Locks of NLM clients (NFS v2 and v3): what `nlm` asks of the table that they share with NFSv4.

use std::net::IpAddr;
use std::time::Instant;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

use super::arena::NONE;
use super::client::Clients;
use super::file::{Files, Keeper};
use super::interval::Range;
use super::lock::{MAX_WAITERS, Standing};
use super::nlm_lock::{NlmHost, NlmLock, NlmOwner, NlmWaiter};
use super::owner::{NlmPart, Owner, OwnerKind};
use super::waiter::{LockHolder, Offer, Waiter, Who};
use super::{ClientId, Effects, Stop};
use crate::handle::FileId;

/// Answer to an NLM lock request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NlmOutcome {
    /// The lock is held.
    Granted,
    /// Another lock is in the way (also when the request waits already and was repeated without waiting).
    Denied,
    /// The request waits; [`super::Effect::NlmGranted`] will tell. Repeating it neither queues it twice nor loses its
    /// place.
    Blocked,
    /// Not now: the grace period lasts (or, for a reclaim, is over).
    Grace,
    /// Something is in the way that this part of the state cannot remove: see [`Stop`].
    Stop(Stop),
}

impl Files {
    /// The lock that is in the way, if any (TEST).
    pub(crate) fn nlm_test(&self, lock: &NlmLock) -> Option<LockHolder> {
        let (_, record) = self.record(lock.file)?;
        let owner = self.nlm_owner(&lock.owner).unwrap_or(NONE);
        let held = record.locks.as_ref()?.table.conflict(owner, lock.range, lock.exclusive)?;
        Some(self.holder(held))
    }

    /// Locks. `wait`: the callback for when the lock is granted later; `reclaim`: held before the restart. A write
    /// delegation is for the caller to recall before: its holder may lock without telling.
    pub fn nlm_lock(
        &mut self,
        clients: &Clients,
        lock: &NlmLock,
        wait: Option<NlmWaiter>,
        reclaim: bool,
        now: Instant,
        effects: &mut Effects,
    ) -> NlmOutcome {
        if reclaim != clients.in_grace() {
            return NlmOutcome::Grace;
        }
        let keeper = Keeper::Host(lock.owner.host.address);
        if !self.has_room(&keeper) {
            return NlmOutcome::Stop(Stop::Room(keeper));
        }
        let range = lock.range;
        let owner = self.nlm_owner(&lock.owner).unwrap_or(NONE);
        let file = self.record_or_new(lock.file);
        let me = |who: &Who| matches!(who, Who::Nlm(waiter) if waiter.lock.owner == lock.owner);
        let held = match self.standing(clients, file, owner, range, lock.exclusive, now) {
            Standing::Free => false,
            Standing::Courtesy(client) => return NlmOutcome::Stop(Stop::Courtesy(client)),
            Standing::HeldLock(_) if is_broken(Mutant::NlmAlwaysGranted) => false,
            Standing::HeldLock(_) => true,
        };
        let Some(record) = self.files.get_mut(file) else { return NlmOutcome::Denied };
        let locks = record.locks.get_or_insert_default();
        if !held && locks.reserved(me, range, lock.exclusive, now).is_none() {
            self.retain_waiters(file, |waiter| !(me(&waiter.who) && waiter.range.meets(range)));
            self.nlm_grant(file, &lock.owner, range, lock.exclusive);
            self.wake(file, effects);
            return NlmOutcome::Granted;
        }
        let waiting = locks.waiters.iter().any(|waiter| waiter.is_for(lock));
        match wait {
            Some(_) if waiting => NlmOutcome::Blocked,
            Some(wait) if locks.waiters.len() < MAX_WAITERS => {
                let (who, write) = (Who::Nlm(Box::new(wait)), lock.exclusive);
                self.enqueue(file, Waiter { who, range, write, heard: None, offer: Offer::No });
                NlmOutcome::Blocked
            }
            _ => {
                self.forget_file(file);
                NlmOutcome::Denied
            }
        }
    }

    /// Takes a waiting request back; `false` when none like it waits (it may have been granted).
    pub fn nlm_cancel(&mut self, lock: &NlmLock) -> bool {
        let Some((file, _)) = self.record(lock.file) else { return false };
        let found = self.retain_waiters(file, |waiter| !waiter.is_for(lock));
        self.forget_file(file);
        found
    }

    /// Whether there is room for what unlocking a range leaves on both sides of it.
    pub fn nlm_may_unlock(&self, lock: &NlmLock) -> bool {
        let (Some((file, _)), Some(owner)) = (self.record(lock.file), self.nlm_owner(&lock.owner)) else {
            return true;
        };
        self.may_unlock(file, owner, lock.range)
    }

    /// Unlocks a range, whatever is locked in it.
    pub fn nlm_unlock(&mut self, file: FileId, owner: &NlmOwner, range: Range, effects: &mut Effects) {
        let Some((file, _)) = self.record(file) else { return };
        let Some(owner) = self.nlm_owner(owner) else { return };
        self.relock(file, owner, |table| table.unlock(owner, range));
        self.wake(file, effects);
        if !self.holds_locks(file, owner) {
            self.nlm_leave(file, owner);
        }
        self.forget_file(file);
    }

    /// Drops all locks and waiting requests of a machine: it restarted.
    pub fn nlm_free_all(&mut self, host: &NlmHost, effects: &mut Effects) {
        self.drop_waiters(|who| matches!(who, Who::Nlm(waiter) if waiter.lock.owner.host == *host), effects);
        for owner in self.nlm_hosts.get(host).cloned().unwrap_or_default() {
            let files =
                self.owners.get(owner).and_then(|owner| owner.nlm.as_ref()).map(|nlm| nlm.files.clone());
            for file in files.unwrap_or_default() {
                self.unlock_all(file, owner, effects);
                self.nlm_leave(file, owner);
                self.forget_file(file);
            }
        }
    }

    /// Number of an NLM owner that has locks.
    pub(super) fn nlm_owner(&self, owner: &NlmOwner) -> Option<u32> {
        self.owners.find(ClientId(0), OwnerKind::Nlm, &owner.key())
    }

    /// Locks a range that is free.
    pub(super) fn nlm_grant(&mut self, file: u32, owner: &NlmOwner, range: Range, exclusive: bool) {
        let at = self.nlm_owner(owner).unwrap_or_else(|| {
            let mut new = Owner::new(ClientId(0), OwnerKind::Nlm, &owner.key());
            new.nlm = Some(Box::new(NlmPart { owner: owner.clone(), files: Vec::new() }));
            let at = self.add_owner(new);
            self.nlm_hosts.entry(owner.host.clone()).or_default().push(at);
            at
        });
        if let Some(nlm) = self.owners.get_mut(at).and_then(|owner| owner.nlm.as_mut())
            && !nlm.files.contains(&file)
        {
            nlm.files.push(file);
        }
        if let Some(record) = self.files.get_mut(file) {
            record.locks.get_or_insert_default();
        }
        self.relock(file, at, |table| table.lock(at, range, exclusive));
    }

    /// An owner has nothing locked in a file any more; one without any lock is forgotten.
    fn nlm_leave(&mut self, file: u32, owner: u32) {
        let Some(nlm) = self.owners.get_mut(owner).and_then(|owner| owner.nlm.as_mut()) else { return };
        nlm.files.retain(|other| *other != file);
        if !nlm.files.is_empty() {
            return;
        }
        let host = nlm.owner.host.clone();
        if let Some(owners) = self.nlm_hosts.get_mut(&host) {
            owners.retain(|other| *other != owner);
            if owners.is_empty() {
                self.nlm_hosts.remove(&host);
            }
        }
        self.forget_owner(owner);
    }
}

impl NlmOwner {
    /// The parts as one name, each as long as it is.
    fn key(&self) -> Vec<u8> {
        let NlmHost { address, name } = &self.host;
        let address = match address.to_canonical() {
            IpAddr::V4(address) => address.to_ipv6_mapped(),
            IpAddr::V6(address) => address,
        };
        let mut key = Vec::with_capacity(24 + name.len() + self.oh.len());
        key.extend_from_slice(&address.octets());
        key.extend_from_slice(&self.svid.to_be_bytes());
        key.extend_from_slice(&(name.len() as u32).to_be_bytes());
        key.extend_from_slice(name);
        key.extend_from_slice(&self.oh);
        key
    }
}

impl Waiter {
    fn is_for(&self, lock: &NlmLock) -> bool {
        let same = |waiter: &NlmWaiter| waiter.lock.owner == lock.owner;
        matches!(&self.who, Who::Nlm(waiter) if same(waiter))
            && self.range == lock.range
            && self.write == lock.exclusive
    }
}
