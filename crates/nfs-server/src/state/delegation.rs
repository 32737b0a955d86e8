//! Delegations: granting, recall, return, revocation (RFC 7530 §10.4, RFC 8881 §10.4).
//!
//! A read delegation is granted to who opens for reading only, while no client has the file open for writing, when
//! callbacks reach the client. A write delegation is granted when the server is configured so or the client asks for
//! one, while no other client has the file open. Others' GETATTR asks the holder ([`super::held`]).

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{Nfsstat4, OpenNoneDelegation4, Stateid4};

use super::arena::{NONE, Revoked};
use super::client::Clients;
use super::delegated::Seen;
use super::entry::{BY_PARENT, Delegation, End, Entry, Opener, Recall, What, check_seqid};
use super::file::Files;
use super::watch::{Notifications, Watch};
use super::{Callback, ClientId, Conflict, Effect, Effects};
use crate::handle::FileId;
use crate::stats::DelegationCounts;

/// Until a recall is repeated that the client did not understand: the reply with the delegation may not have arrived
/// yet.
const RETRY: Duration = Duration::from_millis(250);
/// How long a file is not delegated after a recall to clients that state no preference, at most.
const CONTENDED: Duration = Duration::from_secs(30);
/// Opens looked through for those of other clients before a write delegation; a file with more is taken as shared.
const LOOK_THROUGH: usize = 64;

/// Which delegation an OPEN or WANT_DELEGATION asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// What the server thinks best.
    NoPreference,
    /// One for reading.
    Read,
    /// One for writing.
    Write,
    /// Any.
    Any,
    /// None.
    Nothing,
    /// None, and no longer what was wanted before.
    Cancel,
}

/// Who asks for a delegation, on what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wish {
    pub(crate) client: ClientId,
    /// Whether it is one of 4.0.
    pub(crate) v40: bool,
    pub(crate) file: FileId,
    pub(crate) want: Want,
    /// Modes of the OPEN (or 0).
    pub(crate) access: u8,
    /// User of the request.
    pub(crate) uid: u32,
    /// Whether the caller may write the file.
    pub(crate) may_write: bool,
    /// Whether the client would keep the file's times (RFC 9754).
    pub(crate) times: bool,
    /// The file as it is now.
    pub(crate) seen: Seen,
    /// Of a directory: what the client is to be notified of instead of a recall.
    pub(crate) notifications: Notifications,
}

impl Files {
    /// Whether anyone has a delegation on the file.
    pub fn delegated(&self, file: FileId) -> bool {
        self.record(file).is_some_and(|(_, record)| record.delegations != NONE)
    }

    /// Recalls delegations of others than `holder` that conflict; `Err(DELAY)` until they are back.
    pub fn recall_conflicting(
        &mut self,
        clients: &Clients,
        file: FileId,
        conflict: Conflict,
        holder: Option<ClientId>,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(), Nfsstat4> {
        self.recall(clients, file, conflict, holder, false, now, effects)
    }

    /// As [`Files::recall_conflicting`]; `truncate`: the file is about to be truncated to nothing.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn recall(
        &mut self,
        clients: &Clients,
        file: FileId,
        conflict: Conflict,
        holder: Option<ClientId>,
        truncate: bool,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(), Nfsstat4> {
        let Some((_, record)) = self.record(file) else { return Ok(()) };
        let conflicting: Vec<u32> = self
            .states
            .list(BY_PARENT, record.delegations)
            .filter(|(_, entry)| entry.delegation_conflicts(conflict))
            .map(|(at, _)| at)
            .collect();
        self.recall_these(clients, &conflicting, holder, truncate, now, effects)
    }

    /// Recalls these delegations, but those of `holder`; `Err(DELAY)` until they are back.
    #[allow(clippy::too_many_arguments)]
    pub(super) fn recall_these(
        &mut self,
        clients: &Clients,
        conflicting: &[u32],
        holder: Option<ClientId>,
        truncate: bool,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(), Nfsstat4> {
        let mut busy = false;
        for at in conflicting.iter().copied() {
            let Some(client) = self.states.get(at).map(|entry| entry.client) else { continue };
            if Some(client) == holder {
                continue;
            }
            if clients.is_courtesy(client, now) {
                self.revoke_delegation(clients, at, now, effects);
            } else {
                busy = true;
                if !is_broken(Mutant::RecallNotSent) {
                    self.begin_recall(at, truncate, now, effects);
                }
            }
        }
        if busy && !is_broken(Mutant::RecallNotAwaited) { Err(Nfsstat4::DELAY) } else { Ok(()) }
    }

    /// Answer to [`Callback::Recall`]: the status of CB_RECALL, or CB_PATH_DOWN when the client could not be
    /// reached in time. (Retries for DELAY and lost connections are made by [`crate::callback`] meanwhile.)
    pub fn recall_answered(
        &mut self,
        clients: &Clients,
        client: ClientId,
        stateid: Stateid4,
        status: Nfsstat4,
        now: Instant,
    ) {
        let minor = if self.has_v40_state(&stateid) { 0 } else { 1 };
        let Ok(at) = self.find(minor, Some(client), &stateid, None) else { return };
        let Some(Entry { what: What::Delegation(delegation), .. }) = self.states.get_mut(at) else { return };
        let Some(recall) = &mut delegation.recall else { return };
        if status == Nfsstat4::OK {
            return;
        }
        recall.retry = Some(now + RETRY);
        if !matches!(status, Nfsstat4::BADHANDLE | Nfsstat4::BAD_STATEID | Nfsstat4::DELAY) {
            clients.recall_failed(client, now);
        }
    }

    /// Delegations of a client.
    pub(super) fn delegation_counts(&self, client: ClientId) -> DelegationCounts {
        self.holdings.get(&client).map_or_else(DelegationCounts::default, |holdings| DelegationCounts {
            held: u64::from(holdings.delegated),
            ..holdings.counts
        })
    }

    /// Delegations of all clients, those that are gone included.
    pub(super) fn delegation_totals(&self) -> DelegationCounts {
        let mut total = self.past;
        for holdings in self.holdings.values() {
            total.add(&holdings.counts);
            total.held += u64::from(holdings.delegated);
        }
        total
    }

    /// Grants a delegation, when the rules allow it: its stateid and whether it is one for writing. `hold` has to
    /// keep the file alive; [`Effect::Release`] comes at the end.
    pub(crate) fn delegate(
        &mut self,
        clients: &Clients,
        wish: &Wish,
        now: Instant,
        hold: impl FnOnce() -> bool,
    ) -> Result<(Stateid4, bool), OpenNoneDelegation4> {
        let write = self.choose(clients, wish, now)?;
        if !hold() {
            return Err(OpenNoneDelegation4::Resource(false));
        }
        Ok((self.add_delegation(wish, write), write))
    }

    /// Gives a delegation back that a client had before the server's restart (RFC 8881 §10.2.1). The last value says
    /// whether it has to be returned at once: the server cannot keep the promise. The caller has taken a hold of the
    /// file.
    pub(crate) fn redelegate(
        &mut self,
        clients: &Clients,
        wish: &Wish,
        write: bool,
        now: Instant,
        effects: &mut Effects,
    ) -> (Stateid4, bool) {
        let want = if write { Want::Write } else { Want::Read };
        let kept = self.choose(clients, &Wish { want, may_write: true, ..*wish }, now) == Ok(write);
        let stateid = self.add_delegation(wish, write);
        if !kept && let Ok(at) = self.find(u32::from(!wish.v40), Some(wish.client), &stateid, None) {
            self.begin_recall(at, false, now, effects);
        }
        (stateid, !kept)
    }

    /// Checks the delegation under which a client opens its file (CLAIM_DELEGATE_CUR, CLAIM_DELEG_CUR_FH).
    pub(crate) fn check_delegation(
        &self,
        minor: u32,
        client: ClientId,
        stateid: &Stateid4,
        file: FileId,
    ) -> Result<(), Nfsstat4> {
        let at = self.find(minor, Some(client), stateid, Some(file))?;
        match self.states.get(at) {
            Some(Entry { what: What::Delegation(_), seqid, .. }) => check_seqid(minor, *seqid, stateid.seqid),
            _ => Err(Nfsstat4::BAD_STATEID),
        }
    }

    /// A delegation is returned (DELEGRETURN): whose it was.
    pub(crate) fn return_delegation(
        &mut self,
        minor: u32,
        client: Option<ClientId>,
        stateid: &Stateid4,
        file: FileId,
        effects: &mut Effects,
    ) -> Result<ClientId, Nfsstat4> {
        let at = self.find(minor, client, stateid, Some(file))?;
        let Some(Entry { what: What::Delegation(_), client, seqid, .. }) = self.states.get(at) else {
            return Err(Nfsstat4::BAD_STATEID);
        };
        let (client, seqid) = (*client, *seqid);
        check_seqid(minor, seqid, stateid.seqid)?;
        self.drop_state(at, End::Freed, effects);
        if let Some(holdings) = self.holdings.get_mut(&client) {
            holdings.counts.returned += 1;
        }
        Ok(client)
    }

    /// Frees the stateid of a delegation that was revoked (FREE_STATEID).
    pub(super) fn free_revoked(&mut self, stateid: &Stateid4, effects: &mut Effects) {
        self.drop_state(self.at(stateid), End::Freed, effects);
    }

    /// Repeats recalls, revokes what was not returned within a lease (RFC 8881 §10.4.5); the grace period does not count,
    /// because locks that were kept under a delegation are granted only after it (Linux: `nfs4_laundromat` waits for its end).
    pub(super) fn tick_delegations(&mut self, clients: &Clients, now: Instant, effects: &mut Effects) {
        self.contention.tick(now, self.lease.min(CONTENDED));
        let recalled: Vec<u32> = self.recalled.iter().copied().collect();
        for at in recalled {
            let Some(Entry { what: What::Delegation(delegation), client, .. }) = self.states.get_mut(at)
            else {
                self.recalled.remove(&at);
                continue;
            };
            let (client, Some(recall)) = (*client, &mut delegation.recall) else { continue };
            if clients.in_grace() {
                recall.since = now;
            }
            // A client that let its lease run out loses what somebody waits for, and no more: it learns of that when it
            // comes back.
            let over = now.saturating_duration_since(recall.since) >= self.lease;
            if over || clients.is_courtesy(client, now) {
                self.revoke_delegation(clients, at, now, effects);
            } else if recall.retry.is_some_and(|retry| retry <= now) {
                recall.retry = None;
                let truncate = recall.truncate;
                self.send_recall(at, truncate, effects);
            }
        }
    }

    /// Takes a delegation out of what stands in the way on its file.
    pub(super) fn leave_file(&mut self, at: u32, effects: &mut Effects) {
        self.recalled.remove(&at);
        self.held.remove(&at);
        let Some(file) = self.states.get(at).map(|entry| entry.file) else { return };
        if let Some(record) = self.files.get_mut(file) {
            self.states.unlink(BY_PARENT, &mut record.delegations, at);
            effects.push(Effect::Release(record.id));
        }
        self.guard(file);
    }

    /// Whether a delegation may be granted: one for writing, or for reading; or why not.
    fn choose(&self, clients: &Clients, wish: &Wish, now: Instant) -> Result<bool, OpenNoneDelegation4> {
        use OpenNoneDelegation4::{
            Cancelled, Contention, NotSuppDowngrade, NotSuppUpgrade, NotWanted, Resource,
        };
        let writes = wish.access & 2 != 0;
        let write = match wish.want {
            Want::Nothing => return Err(NotWanted),
            Want::Cancel => return Err(Cancelled),
            Want::Read => false,
            Want::Write => true,
            Want::Any => writes,
            Want::NoPreference => writes && self.write_delegations,
        };
        if !self.delegations || !clients.callback_up(wish.client) || clients.fails_recalls(wish.client, now) {
            return Err(Resource(false));
        }
        if write && !wish.may_write {
            return Err(Resource(false));
        }
        if wish.want == Want::NoPreference
            && self.contention.contains(wish.file, now, self.lease.min(CONTENDED))
        {
            return Err(Contention(false));
        }
        let Some((_, record)) = self.record(wish.file) else { return Ok(write) };
        if is_broken(Mutant::DelegationBesideWriter) {
            return Ok(write);
        }
        for (_, entry) in self.states.list(BY_PARENT, record.delegations) {
            let What::Delegation(held) = &entry.what else { continue };
            if entry.client == wish.client {
                return Err(match (held.write, write) {
                    (false, true) => NotSuppUpgrade,
                    (true, false) => NotSuppDowngrade,
                    // It has what it wants.
                    _ => Resource(false),
                });
            }
            if held.write || write || held.recall.is_some() {
                return Err(Contention(false));
            }
        }
        let in_the_way = if write {
            self.states
                .list(BY_PARENT, record.opens)
                .enumerate()
                .any(|(n, (_, entry))| n >= LOOK_THROUGH || entry.client != wish.client)
        } else {
            // Who holds one reads without asking: no other client may write, or deny reading (RFC 8881 §10.4).
            record.access[1] > 0 || record.deny[0] > 0
        };
        if in_the_way { Err(Contention(false)) } else { Ok(write) }
    }

    fn add_delegation(&mut self, wish: &Wish, write: bool) -> Stateid4 {
        let file = self.record_or_new(wish.file);
        let opener = Opener::new(wish.uid);
        let what = What::Delegation(Delegation {
            opener,
            write,
            times: wish.times,
            revoked: false,
            recall: None,
            watch: Watch::new(wish.notifications),
        });
        let at = self.add_state(Entry { client: wish.client, file, seqid: 1, v40: wish.v40, what });
        let holdings = self.holdings.entry(wish.client).or_default();
        holdings.delegated += 1;
        holdings.counts.granted += 1;
        if write && !self.write_delegated.load(Ordering::Relaxed) {
            self.write_delegated.store(true, Ordering::Release);
        }
        self.hold_attributes(at, wish.seen);
        self.stateid(at)
    }

    pub(super) fn begin_recall(&mut self, at: u32, truncate: bool, now: Instant, effects: &mut Effects) {
        let Some(Entry { what: What::Delegation(delegation), client, file, .. }) = self.states.get_mut(at)
        else {
            return;
        };
        if delegation.recall.is_some() {
            return;
        }
        delegation.recall = Some(Box::new(Recall { since: now, retry: None, truncate }));
        delegation.watch = None;
        let (client, file) = (*client, *file);
        self.recalled.insert(at);
        if let Some(holdings) = self.holdings.get_mut(&client) {
            holdings.counts.recalled += 1;
        }
        if let Some(record) = self.files.get(file) {
            self.contention.note(record.id, now);
        }
        self.send_recall(at, truncate, effects);
    }

    fn send_recall(&self, at: u32, truncate: bool, effects: &mut Effects) {
        let Some(entry) = self.states.get(at) else { return };
        let Some(record) = self.files.get(entry.file) else { return };
        let callback = Callback::Recall { stateid: self.stateid(at), file: record.id, truncate };
        effects.push(Effect::Call(entry.client, callback));
    }

    /// Takes a delegation from its holder. A client of 4.1 learns of it by status flags and FREE_STATEID.
    pub(super) fn revoke_delegation(
        &mut self,
        clients: &Clients,
        at: u32,
        now: Instant,
        effects: &mut Effects,
    ) {
        let Some(Entry { client, v40, .. }) = self.states.get(at) else { return };
        let (client, v40) = (*client, *v40);
        if let Some(holdings) = self.holdings.get_mut(&client) {
            holdings.counts.revoked += 1;
        }
        clients.recall_failed(client, now);
        // Where there is no record of the client there is none to learn of it.
        if v40 || clients.owner(client).is_none() {
            let asleep = clients.is_courtesy(client, now);
            let why = if asleep { Revoked::Expired } else { Revoked::NotReturned };
            self.drop_state(at, End::Revoked(why), effects);
            return;
        }
        self.leave_file(at, effects);
        let Some(Entry { what: What::Delegation(delegation), file, .. }) = self.states.get_mut(at) else {
            return;
        };
        delegation.revoked = true;
        delegation.recall = None;
        let file = std::mem::replace(file, NONE);
        self.forget_file(file);
        if let Some(holdings) = self.holdings.get_mut(&client) {
            holdings.delegated = holdings.delegated.saturating_sub(1);
            holdings.live = holdings.live.saturating_sub(1);
            holdings.revoked += 1;
        }
        clients.revoked_delegations(client, true);
    }

    pub(super) fn revoked(&self, client: ClientId) -> usize {
        self.holdings.get(&client).map_or(0, |holdings| holdings.revoked as usize)
    }

    /// The place that a stateid names.
    fn at(&self, stateid: &Stateid4) -> u32 {
        let [_, _, _, _, a, b, c, d, ..] = stateid.other;
        u32::from_be_bytes([a, b, c, d]) >> self.place.bits
    }

    fn has_v40_state(&self, stateid: &Stateid4) -> bool {
        self.states.get(self.at(stateid)).is_some_and(|entry| entry.v40)
    }
}

impl Entry {
    fn delegation_conflicts(&self, conflict: Conflict) -> bool {
        match &self.what {
            What::Delegation(delegation) => delegation.write || conflict == Conflict::Change,
            _ => false,
        }
    }
}
