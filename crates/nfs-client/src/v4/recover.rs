//! Recovery of sessions, client ids, open files and locks (RFC 8881 §8.4, RFC 7530 §9.6), one at a time, while
//! operations wait at the gate.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    FreeStateidArgs, Nfsstat4, Opnum, SEQ_STATUS_ADMIN_STATE_REVOKED, SEQ_STATUS_BACKCHANNEL_FAULT,
    SEQ_STATUS_CB_PATH_DOWN, SEQ_STATUS_CB_PATH_DOWN_SESSION, SEQ_STATUS_EXPIRED_ALL_STATE_REVOKED,
    SEQ_STATUS_EXPIRED_SOME_STATE_REVOKED, SEQ_STATUS_RECALLABLE_STATE_REVOKED,
    SEQ_STATUS_RESTART_RECLAIM_NEEDED, Stateid4, TestStateidArgs, TestStateidOk,
};
use benchmaster_nfs_proto::xdr::List;

use super::Inner;
use super::compound::Failure;
use super::need::Need;
use super::request::Kind;
use super::state::OpenState;
use crate::counters::Event;
use crate::delay::Delay;
use crate::error::NfsError;
use crate::ops::v4 as ops;
use crate::protocol::NfsResult;
use crate::reactor::Waiters;

/// The state of recovery.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    need: Cell<Need>,
    /// What is being mended.
    mending: Cell<Need>,
    running: Cell<bool>,
    /// Recoveries so far.
    epoch: Cell<u64>,
    /// How the last one ended.
    failed: Cell<Option<NfsError>>,
    waiting: Waiters,
    /// `SEQ_STATUS_` flags that were acted on, and when.
    flags: Cell<u32>,
    acted: Cell<Option<Instant>>,
}

impl Recovery {
    /// Changes with each recovery.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.get()
    }

    /// Whether one runs.
    pub(super) fn is_running(&self) -> bool {
        self.running.get()
    }

    /// Flags of SEQUENCE that were acted on and may still be up.
    pub(super) fn flags(&self) -> u32 {
        self.flags.get()
    }
}

impl Inner {
    /// Something has to be recovered, as seen in `epoch`: nothing, when there was a recovery since.
    pub(super) fn demand(self: &Rc<Self>, need: Need, epoch: u64) {
        let recovery = &self.recovery;
        if epoch != recovery.epoch() || self.closing.get() {
            return;
        }
        // Requests sent before tell of the same loss. A new one meets the recovery itself.
        if recovery.mending.get().covers(need) {
            return;
        }
        recovery.need.set(recovery.need.get().and(need));
        if recovery.running.replace(true) {
            return;
        }
        self.slots.close(true);
        let inner = Rc::downgrade(self);
        self.reactor.spawn(async move {
            if let Some(inner) = inner.upgrade() {
                inner.recover().await;
            }
        });
    }

    /// Waits for the recovery that runs.
    ///
    /// # Errors
    /// Why it failed.
    pub(super) async fn recovered(self: &Rc<Self>) -> NfsResult<()> {
        if !self.recovery.is_running() {
            return Ok(());
        }
        self.after_recovery().await;
        self.recovery.failed.get().map_or(Ok(()), Err)
    }

    /// Waits until no recovery runs, however it ends: which opens and locks are left is known then.
    pub(super) async fn after_recovery(&self) {
        let recovery = &self.recovery;
        if recovery.is_running() {
            recovery.waiting.until(|| !recovery.is_running()).await;
        }
    }

    async fn recover(self: Rc<Self>) {
        let recovery = &self.recovery;
        let mut delay = Delay::new(self.options.delay);
        let result = loop {
            let need = recovery.need.take();
            if need == Need::default() {
                break Ok(());
            }
            recovery.mending.set(need);
            let mended = self.mend(need).await;
            recovery.mending.set(Need::default());
            let failed = match mended {
                Ok(()) => continue,
                Err(error) => error,
            };
            let more = match failed {
                NfsError::V4(Nfsstat4::BADSESSION | Nfsstat4::DEADSESSION) => Need::SESSION,
                NfsError::V4(Nfsstat4::STALE_CLIENTID | Nfsstat4::STALE_STATEID | Nfsstat4::EXPIRED) => {
                    Need::CLIENT
                }
                NfsError::V4(Nfsstat4::SEQ_MISORDERED | Nfsstat4::BADSLOT) => Need::SESSION.and(Need::RESET),
                NfsError::V4(Nfsstat4::BAD_SEQID | Nfsstat4::CONN_NOT_BOUND_TO_SESSION) => Need::default(),
                error => break Err(error),
            };
            recovery.need.set(recovery.need.get().and(need).and(more));
            if let Err(error) = delay.pause(&self.reactor, &self.counters, Event::Delay).await {
                break Err(error);
            }
        };
        recovery.need.set(Need::default());
        recovery.failed.set(result.err());
        recovery.epoch.set(recovery.epoch.get() + 1);
        recovery.running.set(false);
        self.slots.close(false);
        recovery.waiting.wake();
    }

    async fn mend(self: &Rc<Self>, need: Need) -> NfsResult<()> {
        let mut reclaim = need.has(Need::RECLAIM);
        if self.has_sessions() {
            if need.has(Need::RESET) {
                // Whether it still exists or not.
                self.destroy_session().await?;
            }
            let mut renewed = false;
            if need.has(Need::SESSION) && !need.has(Need::CLIENT) {
                match self.create_session().await {
                    Ok(()) => {
                        self.counters.event(Event::SessionRecovered);
                        renewed = true;
                    }
                    // Neither has the server our sequence number.
                    Err(NfsError::V4(Nfsstat4::STALE_CLIENTID | Nfsstat4::SEQ_MISORDERED)) => {}
                    Err(error) => return Err(error),
                }
            }
            if need.has(Need::CLIENT) || (need.has(Need::SESSION) && !renewed) {
                let known = self.exchange_id().await?;
                self.create_session().await?;
                if known {
                    self.counters.event(Event::SessionRecovered)
                } else {
                    self.counters.event(Event::ClientRecovered)
                }
                reclaim |= !known;
            }
            if need.has(Need::BACK) && !need.has(Need::SESSION.and(Need::CLIENT)) {
                self.bind_back().await?;
            }
        } else if need.has(Need::CLIENT) {
            self.set_client_id().await?;
            self.owners.renew();
            self.counters.event(Event::ClientRecovered);
            reclaim = true;
        }
        if reclaim {
            return self.reclaim().await;
        }
        if need.has(Need::CHECK) {
            self.check().await?;
        }
        if need.has(Need::CHECK.and(Need::STATES)) {
            for state in self.files.all() {
                if state.suspect.get() {
                    self.reopen(&state, false).await?;
                }
            }
        }
        Ok(())
    }

    /// The server has lost all state: has back what it gives.
    async fn reclaim(self: &Rc<Self>) -> NfsResult<()> {
        self.reclaim_delegated();
        let states = self.files.all();
        let mut refused = Vec::new();
        for state in &states {
            if state.lost.get().is_none() && !self.reopen(state, true).await? {
                refused.push(state);
            }
        }
        self.drop_unclaimed();
        if self.has_sessions() && !is_broken(Mutant::ReclaimNotComplete) {
            self.reclaim_complete().await?;
        }
        for state in refused {
            self.reopen(state, false).await?;
        }
        Ok(())
    }

    /// Reopens a file: with `reclaim` as before a restart of the server, else without special right, its locks being
    /// lost then. `false` when the server does not let it reclaim.
    async fn reopen(self: &Rc<Self>, state: &Rc<OpenState>, reclaim: bool) -> NfsResult<bool> {
        state.suspect.set(false);
        if state.needed() == 0 {
            // It was being closed, or it is not in use: nothing is lost.
            for lock in state.locks.borrow().iter() {
                lock.forget();
            }
            self.files.closed(state);
            return Ok(true);
        }
        match self.open_again(state, reclaim).await {
            Ok(()) => self.counters.event(Event::OpenReclaimed),
            Err(NfsError::V4(status)) => match status {
                Nfsstat4::NO_GRACE | Nfsstat4::RECLAIM_BAD | Nfsstat4::RECLAIM_CONFLICT if reclaim => {
                    return Ok(false);
                }
                Nfsstat4::BADSESSION
                | Nfsstat4::DEADSESSION
                | Nfsstat4::STALE_CLIENTID
                | Nfsstat4::STALE_STATEID
                | Nfsstat4::EXPIRED
                | Nfsstat4::BAD_SEQID => {
                    state.suspect.set(true);
                    return Err(NfsError::V4(status));
                }
                _ => {
                    self.adopt_locks(&state.handle.get(), reclaim);
                    self.lose(state, "it cannot be opened again");
                    return Ok(true);
                }
            },
            Err(error) => return Err(error),
        }
        self.adopt_locks(&state.handle.get(), reclaim);
        if reclaim {
            self.reclaim_locks(state).await?;
        } else {
            self.lose_locks(state);
        }
        Ok(true)
    }

    fn lose(&self, state: &OpenState, why: &'static str) {
        state.lost.set(Some(why));
        self.counters.event(Event::StateLost);
        self.lose_locks(state);
    }

    /// Others may have had the bytes meanwhile: as in Linux, locks that were lost stay so.
    pub(super) fn lose_locks(&self, state: &OpenState) {
        for lock in state.locks.borrow().iter() {
            lock.stateid.set(None);
            if !lock.held.borrow_mut().drain(..).as_slice().is_empty() && !lock.lost.replace(true) {
                self.counters.event(Event::StateLost);
            }
        }
    }

    /// Asks the server about all stateids, and marks those that it does not know any more (RFC 8881 §18.48).
    async fn check(self: &Rc<Self>) -> NfsResult<()> {
        if !self.has_sessions() {
            return Ok(());
        }
        let states = self.files.all();
        for state in &states {
            if self.is_revoked(state.stateid.get()).await? {
                state.suspect.set(true);
            }
            let locks: Vec<_> = state.locks.borrow().iter().cloned().collect();
            for lock in locks {
                if let Some(stateid) = lock.stateid.get()
                    && self.is_revoked(stateid).await?
                {
                    lock.forget();
                    lock.lost.set(true);
                    self.counters.event(Event::StateLost);
                }
            }
        }
        for (handle, stateid) in self.delegations.stateids() {
            if self.is_revoked(stateid).await? {
                self.revoked(&handle, &stateid);
            }
        }
        Ok(())
    }

    /// Whether a stateid is of no use any more; it is freed then, so that the server can forget it.
    async fn is_revoked(self: &Rc<Self>, stateid: Stateid4) -> NfsResult<bool> {
        let status = self.test_stateid(stateid, true).await?;
        match status {
            Nfsstat4::OK | Nfsstat4::OLD_STATEID => return Ok(false),
            Nfsstat4::BAD_STATEID => {}
            _ => match self.free(stateid, true).await {
                Ok(()) | Err(NfsError::V4(_)) => {}
                Err(error) => return Err(error),
            },
        }
        Ok(true)
    }

    /// TEST_STATEID of one stateid.
    pub(super) async fn test_stateid(
        self: &Rc<Self>,
        stateid: Stateid4,
        recovery: bool,
    ) -> NfsResult<Nfsstat4> {
        let kind = Kind::reading(ops::TEST_STATEID).recovering(recovery);
        let stateids = [stateid];
        let encode = |ops: &mut super::compound::Ops<'_>| {
            ops.put(Opnum::TEST_STATEID, &TestStateidArgs { stateids: List::Items(&stateids) });
        };
        self.request(kind, encode, |results| {
            let ok: TestStateidOk<'_> = results.take(Opnum::TEST_STATEID)?;
            ok.status_codes.iter().next().ok_or(Failure::Nonsense("no status of a stateid"))
        })
        .await
    }

    pub(super) async fn free(self: &Rc<Self>, stateid: Stateid4, recovery: bool) -> NfsResult<()> {
        let kind = Kind::repeatable(ops::FREE_STATEID).recovering(recovery);
        self.ask(kind, None, Opnum::FREE_STATEID, &FreeStateidArgs { stateid }).await
    }

    /// Acts on the flags of a SEQUENCE (RFC 8881 §18.46.3). They stay up until the server sees the remedy: each is
    /// acted on when it comes up, and again after a while.
    pub(super) fn status_flags(self: &Rc<Self>, flags: u32) {
        let recovery = &self.recovery;
        if recovery.is_running() {
            return;
        }
        let while_ = self.lease.get() / 4;
        let old = recovery.acted.get().is_none_or(|at| {
            self.reactor.now().saturating_duration_since(at) > while_.max(Duration::from_millis(100))
        });
        let new = if old { flags } else { flags & !recovery.flags.get() };
        recovery.flags.set(flags);
        let mut need = Need::default();
        let has = |some: u32| new & some != 0;
        if has(SEQ_STATUS_RESTART_RECLAIM_NEEDED) {
            need = need.and(Need::RECLAIM);
        }
        if has(SEQ_STATUS_EXPIRED_ALL_STATE_REVOKED
            | SEQ_STATUS_EXPIRED_SOME_STATE_REVOKED
            | SEQ_STATUS_ADMIN_STATE_REVOKED
            | SEQ_STATUS_RECALLABLE_STATE_REVOKED)
        {
            need = need.and(Need::CHECK);
        }
        if has(SEQ_STATUS_BACKCHANNEL_FAULT) {
            need = need.and(Need::SESSION).and(Need::RESET);
        } else if has(SEQ_STATUS_CB_PATH_DOWN | SEQ_STATUS_CB_PATH_DOWN_SESSION) {
            need = need.and(Need::BACK);
        }
        if need != Need::default() {
            recovery.acted.set(Some(self.reactor.now()));
            self.demand(need, recovery.epoch());
        }
    }
}
