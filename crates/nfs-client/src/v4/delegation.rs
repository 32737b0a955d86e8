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

use super::request::Kind;
use super::{Client, Inner};
use crate::counters::{Counters, Event};
use crate::error::NfsError;
use crate::hash::Seeded;
use crate::ops::v4 as ops;
use crate::protocol::NfsResult;
use crate::types::{Attributes, Handle};

/// Recalls of delegations whose OPEN is not answered yet, at most.
const EARLY_RECALLS: usize = 1024;

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

#[derive(Debug, Clone, Copy)]
struct Entry {
    delegation: Delegation,
    /// Is being given back: of no use any more.
    leaving: bool,
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

    /// The stateid of a delegation that allows this access.
    pub(super) fn for_access(&self, handle: &Handle, access: u32) -> Option<Stateid4> {
        let held = self.get(handle).filter(|held| !held.leaving)?;
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

    /// The server took it away.
    pub(super) fn revoked(&self, handle: &Handle, stateid: &Stateid4, counters: &Counters) {
        if self.remove(handle, stateid) {
            counters.event(Event::DelegationRevoked);
        }
    }

    /// It was had again: its successor is granted next.
    pub(super) fn reclaimed(&self, handle: &Handle) {
        if let Some(held) = self.held.borrow_mut().get_mut(handle) {
            held.reclaimed = true;
        }
    }

    /// After a restart of the server: what was not had again is gone.
    pub(super) fn drop_unclaimed(&self, counters: &Counters) {
        let mut all = self.held.borrow_mut();
        all.retain(|_, held| {
            if !held.reclaimed {
                counters.event(Event::DelegationRevoked);
            }
            std::mem::take(&mut held.reclaimed)
        });
        self.count.set(all.len());
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
        let reclaimed = delegations.get(&handle).is_some_and(|held| held.reclaimed);
        let delegation = Delegation { kind, stateid };
        delegations.insert(handle, Entry { delegation, leaving: false, granted, reclaimed });
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
                self.give_back(handle, true);
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
                held.leaving = true;
                held.delegation.stateid
            }
            None => return Ok(()),
        };
        let args = DelegreturnArgs { deleg_stateid: stateid };
        let kind = Kind::repeatable(ops::DELEGRETURN);
        let returned = self.ask(kind, Some(handle), Opnum::DELEGRETURN, &args).await;
        match returned {
            Ok(()) => {
                if self.delegations.remove(handle, &stateid) {
                    self.counters.event(Event::DelegationReturned);
                }
                Ok(())
            }
            Err(NfsError::V4(status)) => {
                self.delegations.revoked(handle, &stateid, &self.counters);
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

    /// Change attribute and size of a file under a write delegation, as CB_GETATTR asks for them: those when it was granted,
    /// since nothing is changed here only.
    pub(super) fn modified(&self, handle: &Handle) -> Option<(u64, u64)> {
        let held = self.delegations.get(handle)?;
        if held.delegation.kind == DelegationKind::Write { held.granted } else { None }
    }
}

impl Client {
    /// The delegation of a file, unless it is being given back.
    pub fn delegation(&self, handle: &Handle) -> Option<Delegation> {
        self.0.delegations.get(handle).filter(|held| !held.leaving).map(|held| held.delegation)
    }

    /// Gives a delegation back. Nothing where there is none.
    ///
    /// # Errors
    /// Those of DELEGRETURN; the delegation is gone all the same.
    pub async fn return_delegation(&self, handle: &Handle) -> NfsResult<()> {
        self.0.return_delegation(handle).await
    }
}
