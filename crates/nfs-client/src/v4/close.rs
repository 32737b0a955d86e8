//! CLOSE and OPEN_DOWNGRADE.

use std::rc::Rc;

use benchmaster_nfs_proto::v4::{
    CloseArgs, CloseOk, Nfsstat4, OpenDowngradeArgs, OpenDowngradeOk, Opnum, SHARE_DENY_NONE, Stateid4,
};

use super::Inner;
use super::need::Need;
use super::open::GUESSES;
use super::request::{Kind, Retry};
use super::state::{File, OpenState};
use crate::delay::{Delay, DelayPolicy};
use crate::error::NfsError;
use crate::ops::v4 as ops;
use crate::protocol::NfsResult;

impl Inner {
    /// Closes a file: with others of the same state open, nothing or OPEN_DOWNGRADE.
    pub(super) async fn close(self: &Rc<Self>, file: File) -> NfsResult<()> {
        file.finish();
        let state = file.state.clone();
        drop(file);
        self.close_state(&state).await
    }

    pub(super) async fn close_state(self: &Rc<Self>, state: &Rc<OpenState>) -> NfsResult<()> {
        let result = self.close_or_downgrade(state).await;
        if state.needed() == 0 && !state.closing.get() {
            let locks = std::mem::take(&mut *state.locks.borrow_mut());
            let released = self.release_lock_owners(locks).await;
            // Somebody may have opened it meanwhile.
            if state.needed() == 0 {
                self.files.closed(state);
            }
            return result.and(released);
        }
        result
    }

    async fn close_or_downgrade(self: &Rc<Self>, state: &Rc<OpenState>) -> NfsResult<()> {
        let mut retry = Retry::new(self);
        let mut outdated = Delay::new(DelayPolicy::LOCK);
        let mut guesses = 0;
        loop {
            let needed = state.needed();
            if state.lost.get().is_some() || (needed != 0 && needed == state.shared.get()) {
                return Ok(());
            }
            if needed == 0 && state.closing.get() {
                // Another task closes it.
                return Ok(());
            }
            let epoch = self.recovery.epoch();
            let used = state.stateid.get();
            let result = match needed {
                0 => {
                    state.closing.set(true);
                    let closing = Closing(state);
                    self.unlock_all(state).await?;
                    let result = self.send_close(state, &mut guesses).await;
                    drop(closing);
                    result
                }
                needed => self.send_downgrade(state, needed).await,
            };
            let status = match result {
                Ok(()) => return Ok(()),
                Err(NfsError::V4(status)) => status,
                Err(error) => return Err(error),
            };
            match status {
                Nfsstat4::OLD_STATEID => {
                    // An OPEN or OPEN_DOWNGRADE of the same file overtook it: its reply is on the way.
                    if state.stateid.get() != used {
                        continue;
                    }
                    if outdated.again(self.reactor.now()).is_err() {
                        return Err(NfsError::V4(status));
                    }
                    if self.files.opening.get() == 0 {
                        let seqid = used.seqid.wrapping_add(1).max(1);
                        state.stateid.set(Stateid4 { seqid, ..used });
                    } else {
                        self.reactor.sleep(DelayPolicy::LOCK.initial).await;
                    }
                }
                Nfsstat4::BAD_SEQID => {
                    let owner = state.owner.borrow().clone();
                    self.owners.discard(&owner);
                    return Err(NfsError::V4(status));
                }
                // The server has nothing left to close; what else it lost is found out by itself.
                Nfsstat4::BAD_STATEID
                | Nfsstat4::STALE_STATEID
                | Nfsstat4::EXPIRED
                | Nfsstat4::ADMIN_REVOKED
                | Nfsstat4::STALE_CLIENTID => {
                    if state.stateid.get() != used {
                        retry.recovering()?;
                        continue;
                    }
                    if !self.has_sessions()
                        && !matches!(status, Nfsstat4::BAD_STATEID | Nfsstat4::ADMIN_REVOKED)
                    {
                        self.demand(Need::CLIENT, epoch);
                    }
                    return Ok(());
                }
                status => {
                    if !retry.after(self, status, epoch).await? {
                        return Err(NfsError::V4(status));
                    }
                }
            }
        }
    }

    async fn send_close(self: &Rc<Self>, state: &Rc<OpenState>, guesses: &mut u32) -> NfsResult<()> {
        let owner = state.owner.borrow().clone();
        let turn = self.turn_of(&owner).await?;
        loop {
            if state.needed() != 0 {
                // Opened again while this waited.
                turn.settle::<()>(&Err(NfsError::V4(Nfsstat4::BAD_STATEID)), false);
                return Ok(());
            }
            let handle = state.handle.get();
            let args = CloseArgs { seqid: turn.sequence(), open_stateid: state.stateid.get() };
            let result = self
                .in_turn(
                    [&turn],
                    Kind::repeatable(ops::CLOSE),
                    &handle,
                    |ops| {
                        ops.put(Opnum::CLOSE, &args);
                    },
                    |results| results.take::<CloseOk>(Opnum::CLOSE).map(drop),
                )
                .await;
            if !matches!(result, Err(NfsError::V4(Nfsstat4::BAD_SEQID))) || *guesses >= GUESSES {
                return result;
            }
            *guesses += 1;
            turn.step_back();
            turn.next();
        }
    }

    async fn send_downgrade(self: &Rc<Self>, state: &Rc<OpenState>, share_access: u32) -> NfsResult<()> {
        let owner = state.owner.borrow().clone();
        let turn = self.turn_of(&owner).await?;
        let (handle, open_stateid) = (state.handle.get(), state.stateid.get());
        let args = OpenDowngradeArgs {
            open_stateid,
            seqid: turn.sequence(),
            share_access,
            share_deny: SHARE_DENY_NONE,
        };
        let downgraded = self.in_turn(
            [&turn],
            Kind::repeatable(ops::OPEN_DOWNGRADE),
            &handle,
            |ops| {
                ops.put(Opnum::OPEN_DOWNGRADE, &args);
            },
            |results| results.take::<OpenDowngradeOk>(Opnum::OPEN_DOWNGRADE),
        );
        state.stateid.set(downgraded.await?.open_stateid);
        state.shared.set(share_access);
        Ok(())
    }
}

/// A state that is being closed.
struct Closing<'s>(&'s OpenState);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.closing.set(false);
    }
}
