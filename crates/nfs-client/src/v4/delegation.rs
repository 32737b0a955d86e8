//! Delegations: held by filehandle, recalled, returned, revoked (RFC 8881 §10.2, RFC 7530 §10.4).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    DelegreturnArgs, Nfsstat4, OpenDelegationType4, Opnum, RCA_TYPE_RDATA_DLG, RCA_TYPE_WDATA_DLG,
    SHARE_ACCESS_READ, Stateid4,
};

use super::need::Need;
use super::open::access_of;
use super::request::Kind;
use super::state::File;
use super::{Client, Inner};
use crate::counters::Event;
use crate::error::NfsError;
use crate::hash::Seeded;
use crate::ops::v4 as ops;
use crate::protocol::NfsResult;
use crate::types::{Attributes, Handle, OpenHow};

/// Recalls of delegations whose OPEN is not answered yet, at most.
const EARLY_RECALLS: usize = 1024;

/// Names nothing at any server.
const UNKNOWN: Stateid4 = Stateid4 { seqid: 1, other: *b"not known..." };

/// What a delegation allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelegationKind {
    /// Reading, opening for reading and attributes without asking the server: no other client changes the file.
    Read,
    /// The same and writing: no other client uses the file.
    Write,
}

/// A delegation that the client holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delegation {
    /// Whether it covers reading or writing.
    pub kind: DelegationKind,
    /// Stateid of the delegation.
    pub stateid: Stateid4,
}

/// Called when a delegation is recalled, before it is returned.
pub type RecallHook = Rc<dyn Fn(Handle) -> Pin<Box<dyn Future<Output = ()>>>>;

/// Called when something of a file can no longer be kept under its delegation alone.
pub(crate) type SurrenderHook = Rc<dyn Fn(&Handle, Surrender)>;

/// What can no longer be kept under a delegation alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surrender {
    /// The server was started again: what is open there only by the delegation is reclaimed like other files.
    Opens,
    /// The delegation was not had again: locks are reclaimed like others.
    Locks,
    /// The server took the delegation: locks are lost, because others may have had the bytes meanwhile. So are those that were
    /// taken to the server to return it.
    LostLocks,
    /// The delegation was returned, and was good until then.
    Nothing,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    delegation: Delegation,
    /// Is being given back: nothing new may rely on it.
    leaving: bool,
    /// DELEGRETURN was sent: its stateid is of no use any more.
    returning: bool,
    /// Change attribute and size when it was granted.
    granted: Option<(u64, u64)>,
    /// Had again after a restart of the server.
    reclaimed: bool,
}

#[derive(Default)]
pub(super) struct Delegations {
    held: RefCell<HashMap<Handle, Entry, Seeded>>,
    /// Number of those in use, to look at before the map.
    count: Cell<usize>,
    /// Recalled before the reply to their OPEN came.
    early: RefCell<Vec<(Handle, Stateid4)>>,
    hook: RefCell<Option<RecallHook>>,
    surrender: RefCell<Option<SurrenderHook>>,
}

impl fmt::Debug for Delegations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.held.borrow().fmt(f)
    }
}

impl Delegations {
    pub(super) fn set_hook(&self, hook: RecallHook) {
        *self.hook.borrow_mut() = Some(hook);
    }

    pub(super) fn set_surrender(&self, hook: SurrenderHook) {
        *self.surrender.borrow_mut() = Some(hook);
    }

    /// Whether there are none, in use or being given back.
    pub(super) fn is_empty(&self) -> bool {
        self.count.get() == 0
    }

    fn get(&self, handle: &Handle) -> Option<Entry> {
        if self.is_empty() {
            return None;
        }
        self.held.borrow().get(handle).copied()
    }

    /// The stateid of a delegation that allows this access. Also while it is being given back: until locks were taken to the
    /// server, only this stateid shows it that they are still ours.
    pub(super) fn for_access(&self, handle: &Handle, access: u32) -> Option<Stateid4> {
        let held = self.get(handle).filter(|held| !held.returning)?;
        let allowed = held.delegation.kind == DelegationKind::Write || access == SHARE_ACCESS_READ;
        allowed.then_some(held.delegation.stateid)
    }

    /// The stateid of the delegation of a file, also while it is being given back.
    pub(super) fn any_stateid(&self, handle: &Handle) -> Option<Stateid4> {
        self.get(handle).map(|held| held.delegation.stateid)
    }

    /// The kind to reclaim.
    pub(super) fn kind4(&self, handle: &Handle) -> OpenDelegationType4 {
        match self.get(handle).map(|held| held.delegation.kind) {
            None => OpenDelegationType4::None,
            Some(DelegationKind::Read) => OpenDelegationType4::Read,
            Some(DelegationKind::Write) => OpenDelegationType4::Write,
        }
    }

    pub(super) fn handles(&self) -> Vec<Handle> {
        let mut handles: Vec<Handle> = self.held.borrow().keys().copied().collect();
        handles.sort_unstable();
        handles
    }

    pub(super) fn stateids(&self) -> Vec<(Handle, Stateid4)> {
        let held = self.held.borrow();
        let mut all: Vec<_> = held.iter().map(|(handle, held)| (*handle, held.delegation.stateid)).collect();
        all.sort_unstable_by_key(|(handle, _)| *handle);
        all
    }

    fn insert(&self, handle: Handle, held: Entry) {
        let mut all = self.held.borrow_mut();
        all.insert(handle, held);
        self.count.set(all.len());
    }

    /// Forgets a delegation, if it is still this one.
    fn remove(&self, handle: &Handle, stateid: &Stateid4) -> bool {
        let mut all = self.held.borrow_mut();
        let is_this = all.get(handle).is_some_and(|held| held.delegation.stateid.other == stateid.other);
        if is_this {
            all.remove(handle);
            self.count.set(all.len());
        }
        is_this
    }

    /// The server was started again: none is had again yet.
    fn begin_reclaim(&self) {
        self.held.borrow_mut().values_mut().for_each(|held| held.reclaimed = false);
    }

    /// Whether a delegation still stands for what is kept under it: during `reclaim` only once it was had again, and not if the
    /// server wants it back at once, because locks can be reclaimed only now.
    fn stands(&self, handle: &Handle, reclaim: bool) -> bool {
        self.get(handle).is_some_and(|held| !reclaim || (held.reclaimed && !held.leaving))
    }

    fn was_reclaimed(&self, handle: &Handle) -> bool {
        self.get(handle).is_some_and(|held| held.reclaimed)
    }

    /// It was had again: its successor is granted next.
    pub(super) fn reclaimed(&self, handle: &Handle) {
        if let Some(held) = self.held.borrow_mut().get_mut(handle) {
            held.reclaimed = true;
        }
    }

    /// No OPEN is under way: what was recalled early was never ours.
    pub(super) fn nothing_opens(&self) {
        self.early.borrow_mut().clear();
    }
}

impl Inner {
    /// A delegation came with an OPEN.
    pub(super) fn granted(
        self: &Rc<Self>,
        handle: Handle,
        kind: DelegationKind,
        stateid: Stateid4,
        recalled: bool,
        attributes: Option<&Attributes>,
    ) {
        self.counters.event(Event::DelegationGranted);
        let delegations = &self.delegations;
        let granted = attributes.map(|now| (now.change, now.size));
        let reclaimed = delegations.was_reclaimed(&handle);
        let delegation = Delegation { kind, stateid };
        let held = Entry { delegation, leaving: false, returning: false, granted, reclaimed };
        delegations.insert(handle, held);
        let mut early = delegations.early.borrow_mut();
        let before = early.len();
        early.retain(|(file, state)| *file != handle || state.other != stateid.other);
        let recalled = recalled || early.len() < before;
        drop(early);
        if recalled || !self.options.delegations {
            self.give_back(handle, recalled);
        }
    }

    /// The server wants a delegation back. Returns the status of the callback.
    pub(super) fn recalled(self: &Rc<Self>, handle: Handle, stateid: Stateid4) -> Result<(), Nfsstat4> {
        match self.delegations.get(&handle) {
            Some(held) if held.delegation.stateid.other == stateid.other => {
                self.counters.event(Event::DelegationRecalled);
                if !is_broken(Mutant::RecallIgnored) {
                    self.give_back(handle, true);
                }
                return Ok(());
            }
            _ => {}
        }
        let mut early = self.delegations.early.borrow_mut();
        // Perhaps the reply that grants it is still on its way (RFC 8881 §10.2.2.1, RFC 7530 §10.4.5).
        if self.files.opening.get() > 0 && early.len() < EARLY_RECALLS {
            self.counters.event(Event::DelegationRecalled);
            early.push((handle, stateid));
            return Ok(());
        }
        Err(Nfsstat4::BAD_STATEID)
    }

    /// Gives a delegation back in the background; `ask`: after the hook.
    fn give_back(self: &Rc<Self>, handle: Handle, ask: bool) {
        let leaving = self.delegations.held.borrow().get(&handle).is_some_and(|held| held.leaving);
        if leaving {
            return;
        }
        if let Some(held) = self.delegations.held.borrow_mut().get_mut(&handle) {
            held.leaving = true;
        }
        let hook = self.delegations.hook.borrow().clone().filter(|_| ask);
        let this = Rc::downgrade(self);
        self.reactor.spawn(async move {
            if let Some(hook) = hook.filter(|_| !is_broken(Mutant::DelegationBeforeData)) {
                hook(handle).await;
            }
            if let Some(inner) = this.upgrade() {
                // What fails here the server revokes some time.
                let _ = inner.return_delegation(&handle).await;
            }
        });
    }

    pub(super) async fn return_delegation(self: &Rc<Self>, handle: &Handle) -> NfsResult<()> {
        let stateid = match self.delegations.held.borrow_mut().get_mut(handle) {
            Some(held) => {
                (held.leaving, held.returning) = (true, true);
                held.delegation.stateid
            }
            None => return Ok(()),
        };
        let args = DelegreturnArgs { deleg_stateid: stateid };
        let epoch = self.recovery.epoch();
        let kind = Kind::repeatable(ops::DELEGRETURN);
        let returned = self.ask(kind, Some(handle), Opnum::DELEGRETURN, &args).await;
        match returned {
            Ok(()) => {
                if self.delegations.remove(handle, &stateid) {
                    self.counters.event(Event::DelegationReturned);
                    self.surrender(handle, Surrender::Nothing);
                }
                Ok(())
            }
            // Locks that were taken to the server for it are reclaimed.
            Err(NfsError::V4(status @ (Nfsstat4::STALE_STATEID | Nfsstat4::EXPIRED)))
                if !self.has_sessions() =>
            {
                self.delegation_refused(handle, stateid, status, epoch).await
            }
            Err(NfsError::V4(status)) => {
                self.revoked(handle, &stateid);
                match status {
                    Nfsstat4::DELEG_REVOKED | Nfsstat4::ADMIN_REVOKED if self.has_sessions() => {
                        self.free(stateid, false).await
                    }
                    // The server has none to take back.
                    Nfsstat4::BAD_STATEID | Nfsstat4::STALE_STATEID | Nfsstat4::EXPIRED | Nfsstat4::STALE => {
                        Ok(())
                    }
                    status => Err(NfsError::V4(status)),
                }
            }
            Err(error) => Err(error),
        }
    }

    fn surrender(&self, handle: &Handle, what: Surrender) {
        let hook = self.delegations.surrender.borrow().clone();
        if let Some(hook) = hook {
            hook(handle, what);
        }
    }

    /// The server took a delegation away. Locks that were kept under it are lost (Linux: `NFS_LOCK_LOST`).
    pub(super) fn revoked(self: &Rc<Self>, handle: &Handle, stateid: &Stateid4) {
        if self.delegations.remove(handle, stateid) {
            self.counters.event(Event::DelegationRevoked);
            if !is_broken(Mutant::RevokedUnnoticed) {
                self.surrender(handle, Surrender::LostLocks);
            }
        }
    }

    /// The stateid of a delegation was refused, as seen in `epoch`. In version 4.0 this may tell of a restart of the server, after
    /// which the delegation is reclaimed; else it was revoked.
    pub(super) async fn delegation_refused(
        self: &Rc<Self>,
        handle: &Handle,
        used: Stateid4,
        status: Nfsstat4,
        epoch: u64,
    ) -> NfsResult<()> {
        if !self.has_sessions() && matches!(status, Nfsstat4::STALE_STATEID | Nfsstat4::EXPIRED) {
            self.demand(Need::CLIENT, epoch);
            return self.recovered().await;
        }
        self.revoked(handle, &used);
        if self.has_sessions() && status != Nfsstat4::BAD_STATEID {
            // Tells the server that we know.
            let _ = self.free(used, false).await;
        }
        Ok(())
    }

    /// The server was started again: what is open only under delegations is reclaimed with the rest (RFC 8881 §10.2.1).
    pub(super) fn reclaim_delegated(&self) {
        self.delegations.begin_reclaim();
        if is_broken(Mutant::KeptOpensNotReclaimed) {
            return;
        }
        for handle in self.delegations.handles() {
            self.surrender(&handle, Surrender::Opens);
        }
    }

    /// After a restart of the server: delegations that were not had again are gone, with what is still kept under them.
    pub(super) fn drop_unclaimed(self: &Rc<Self>) {
        for (handle, stateid) in self.delegations.stateids() {
            if !self.delegations.was_reclaimed(&handle) {
                self.revoked(&handle, &stateid);
            }
        }
    }

    /// A file was opened again, or could not be: where no delegation stands for its locks any more, they are those of open files.
    pub(super) fn adopt_locks(&self, handle: &Handle, reclaim: bool) {
        if !self.delegations.stands(handle, reclaim) {
            self.surrender(handle, Surrender::Locks);
        }
    }

    /// CB_RECALL_ANY: gives back what is more than `keep` of these kinds.
    pub(super) fn give_back_some(self: &Rc<Self>, keep: u32, kinds: u32) {
        let wanted = |kind| match kind {
            DelegationKind::Read => kinds & 1 << RCA_TYPE_RDATA_DLG != 0,
            DelegationKind::Write => kinds & 1 << RCA_TYPE_WDATA_DLG != 0,
        };
        let some: Vec<Handle> = {
            let all = self.delegations.held.borrow();
            let of_kind = all.iter().filter(|(_, held)| !held.leaving && wanted(held.delegation.kind));
            let mut some: Vec<Handle> = of_kind.map(|(handle, _)| *handle).collect();
            some.sort_unstable();
            some.split_off(some.len().min(keep as usize))
        };
        for handle in some {
            self.counters.event(Event::DelegationRecalled);
            self.give_back(handle, true);
        }
    }

    /// Gives all delegations back: what the server says tells whether they were still ours.
    pub(super) fn give_back_all(self: &Rc<Self>) {
        for handle in self.delegations.handles() {
            self.give_back(handle, true);
        }
    }

    /// Change attribute and size of a file under a write delegation, as CB_GETATTR asks for them: those when it was granted,
    /// since nothing is changed here only.
    pub(super) fn modified(&self, handle: &Handle) -> Option<(u64, u64)> {
        let held = self.delegations.get(handle)?;
        if held.delegation.kind == DelegationKind::Write { held.granted } else { None }
    }
}

impl Client {
    /// A file that is open only under a delegation, as one that the server has open. The stateid of the delegation stands for
    /// that of the open until the recovery, which follows, has opened it.
    pub(crate) fn assume_open(
        &self,
        handle: &Handle,
        directory: &Handle,
        name: &[u8],
        how: &OpenHow,
    ) -> File {
        let inner = &self.0;
        let stateid = inner.delegations.any_stateid(handle).unwrap_or(UNKNOWN);
        let file =
            inner.files.assumed(&inner.owners.first(), *handle, stateid, access_of(how), (directory, name));
        inner.demand(Need::STATES, inner.recovery.epoch());
        file
    }

    /// The delegation of a file, if it is to be relied on: not while it is being given back, nor while the server may have taken
    /// it, because the lease may have run out or something is being recovered.
    pub fn delegation(&self, handle: &Handle) -> Option<Delegation> {
        let inner = &self.0;
        let held = inner.delegations.get(handle).filter(|held| !held.leaving)?;
        let doubtful = inner.is_lapsed() || inner.recovery.is_running();
        (!doubtful).then_some(held.delegation)
    }

    /// Gives a delegation back. Nothing where there is none.
    ///
    /// # Errors
    /// Those of DELEGRETURN; the delegation is gone all the same.
    pub async fn return_delegation(&self, handle: &Handle) -> NfsResult<()> {
        self.0.return_delegation(handle).await
    }
}
