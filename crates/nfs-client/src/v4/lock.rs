//! LOCK, LOCKU, and what goes with them.

use std::rc::Rc;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    ExistLockOwner4, FreeStateidArgs, LockArgs, LockRes, LockType4, Locker4, LockuArgs, LockuOk, MAXFILELEN,
    Nfsstat4, OpenToLockOwner4, Opnum, ReleaseLockownerArgs, Stateid4,
};

use super::compound::appended;
use super::open::GUESSES;
use super::request::{Kind, Retry};
use super::state::{File, LockState, OpenState, SeqidGuard};
use super::{Client, Inner};
use crate::counters::Event;
use crate::delay::{Delay, DelayPolicy};
use crate::error::NfsError;
use crate::ops::v4 as ops;
use crate::protocol::NfsResult;
use crate::types::{Attributes, LockKind, Range};

pub(super) const LOST: NfsError = NfsError::StateLost("locks of the file were lost");

#[derive(Debug, Clone, Copy)]
struct Request {
    range: Range,
    kind: LockKind,
    wait: bool,
    reclaim: bool,
}

/// `length` of a request: all ones where ours is 0.
fn length(range: Range) -> u64 {
    if range.length == 0 { MAXFILELEN } else { range.length }
}

/// Takes a range out of the ranges held.
fn subtract(held: &mut Vec<(Range, LockKind)>, range: Range) {
    let rest = |(old, kind): (Range, LockKind)| old.without(range).map(move |part| (part, kind));
    *held = held.drain(..).flat_map(rest).collect();
}

impl Inner {
    fn lock_state(&self, file: &File, owner: u64) -> Rc<LockState> {
        file.locker.set(owner);
        file.state.locks_of(owner).unwrap_or_else(|| {
            let lock = Rc::new(LockState {
                owner: self.owners.lock_owner(owner),
                number: owner,
                stateid: Default::default(),
                held: Default::default(),
                lost: Default::default(),
            });
            file.state.locks.borrow_mut().push(lock.clone());
            lock
        })
    }

    pub(super) async fn lock(
        self: &Rc<Self>,
        file: &File,
        owner: u64,
        kind: LockKind,
        range: Range,
        wait: bool,
    ) -> NfsResult<Option<Attributes>> {
        let state = &file.state;
        let lock = self.lock_state(file, owner);
        let request = Request { range, kind, wait, reclaim: false };
        let mut retry = Retry::new(self);
        let mut polls = Delay::new(DelayPolicy::LOCK);
        let mut guesses = 0;
        loop {
            if let Some(why) = state.lost.get() {
                return Err(NfsError::StateLost(why));
            }
            if lock.lost.get() {
                return Err(LOST);
            }
            if retry.waited() && lock.held.borrow().contains(&(range, kind)) {
                // It was kept under a delegation, and reclaimed while this waited for the end of the grace period.
                return Ok(None);
            }
            let epoch = self.recovery.epoch();
            let used = lock.stateid.get().unwrap_or_else(|| state.stateid.get());
            let status = match self.lock_in_turn(state, &lock, &request).await {
                Ok(attributes) => return Ok(attributes),
                Err(NfsError::V4(status)) => status,
                Err(error) => return Err(error),
            };
            match status {
                Nfsstat4::DENIED if wait => {
                    polls.pause(&self.reactor, &self.counters, Event::LockPolled).await?;
                }
                Nfsstat4::BAD_SEQID if guesses < GUESSES => guesses += 1,
                status => {
                    if !self.lock_refused(state, &lock, used, status, epoch, &mut retry).await? {
                        return Err(NfsError::V4(status));
                    }
                }
            }
        }
    }

    /// Whether to go on after an operation on a lock was refused.
    async fn lock_refused(
        self: &Rc<Self>,
        state: &Rc<OpenState>,
        lock: &Rc<LockState>,
        used: Stateid4,
        status: Nfsstat4,
        epoch: u64,
        retry: &mut Retry,
    ) -> NfsResult<bool> {
        if retry.after(self, status, epoch).await? {
            return Ok(true);
        }
        self.lock_gone(lock, used, status, epoch).await?;
        self.stateid_refused(state, used, status, epoch, retry).await
    }

    /// What was refused was the stateid of locks: they are gone, the open perhaps not.
    ///
    /// # Errors
    /// [`LOST`], if so.
    pub(super) async fn lock_gone(
        self: &Rc<Self>,
        lock: &Rc<LockState>,
        used: Stateid4,
        status: Nfsstat4,
        epoch: u64,
    ) -> NfsResult<()> {
        let of_lock = lock.stateid.get().is_some_and(|stateid| stateid.other == used.other);
        let gone = matches!(status, Nfsstat4::BAD_STATEID | Nfsstat4::ADMIN_REVOKED);
        if !(of_lock && gone && epoch == self.recovery.epoch()) {
            return Ok(());
        }
        self.counters.event(Event::StateLost);
        lock.forget();
        lock.lost.set(true);
        if self.has_sessions() && status == Nfsstat4::ADMIN_REVOKED {
            let _ = self.free(used, false).await;
        }
        Err(LOST)
    }

    /// LOCK, when it is our turn (4.0).
    async fn lock_in_turn(
        self: &Rc<Self>,
        state: &Rc<OpenState>,
        lock: &Rc<LockState>,
        request: &Request,
    ) -> NfsResult<Option<Attributes>> {
        let turn = self.turn_of(&lock.owner).await?;
        if lock.stateid.get().is_some() {
            return self.send_lock(state, lock, request, None, &turn).await;
        }
        let owner = state.owner.borrow().clone();
        let open = self.turn_of(&owner).await?;
        self.send_lock(state, lock, request, Some(&open), &turn).await
    }

    async fn send_lock(
        self: &Rc<Self>,
        state: &Rc<OpenState>,
        lock: &Rc<LockState>,
        request: &Request,
        open: Option<&SeqidGuard>,
        turn: &SeqidGuard,
    ) -> NfsResult<Option<Attributes>> {
        let handle = state.handle.get();
        let locker = match (lock.stateid.get(), open) {
            (Some(stateid), None) => {
                let lock_stateid = self.for_data(stateid);
                Locker4::LockOwner(ExistLockOwner4 { lock_stateid, lock_seqid: turn.sequence() })
            }
            (_, open) => Locker4::OpenOwner(OpenToLockOwner4 {
                open_seqid: open.map_or(0, SeqidGuard::sequence),
                open_stateid: self.for_data(state.stateid.get()),
                lock_seqid: turn.sequence(),
                lock_owner: lock.owner.named(self.client.get()),
            }),
        };
        let args = LockArgs {
            locktype: match (request.kind, request.wait) {
                (LockKind::Read, false) => LockType4::Read,
                (LockKind::Write, false) => LockType4::Write,
                (LockKind::Read, true) => LockType4::ReadW,
                (LockKind::Write, true) => LockType4::WriteW,
            },
            reclaim: request.reclaim,
            offset: request.range.offset,
            length: length(request.range),
            locker,
        };
        let result = self
            .in_turn(
                open.into_iter().chain([turn]),
                Kind::repeatable(ops::LOCK).recovering(request.reclaim),
                &handle,
                |ops| {
                    ops.put(Opnum::LOCK, &args);
                    if self.options.append_to_locks {
                        ops.attributes();
                    }
                },
                |results| {
                    let stateid = match results.result(Opnum::LOCK)? {
                        LockRes::Ok(ok) => ok.lock_stateid,
                        LockRes::Denied(_) => return Err(Nfsstat4::DENIED.into()),
                        LockRes::Err(status) => return Err(status.into()),
                    };
                    let append = self.options.append_to_locks;
                    let attributes = if append { appended(results.attributes())? } else { None };
                    Ok((stateid, attributes))
                },
            )
            .await;
        if matches!(result, Err(NfsError::V4(Nfsstat4::BAD_SEQID))) {
            // One of the two; the owner whose last request was given up is not known.
            match open {
                Some(open) => open.step_back(),
                None => turn.step_back(),
            }
        }
        let (stateid, attributes) = result?;
        lock.took(stateid);
        let mut held = lock.held.borrow_mut();
        subtract(&mut held, request.range);
        held.push((request.range, request.kind));
        Ok(attributes)
    }

    pub(super) async fn unlock(self: &Rc<Self>, file: &File, owner: u64, range: Range) -> NfsResult<()> {
        match file.state.locks_of(owner) {
            Some(lock) => self.unlock_state(&file.state, &lock, range).await,
            None => Ok(()),
        }
    }

    async fn unlock_state(
        self: &Rc<Self>,
        state: &Rc<OpenState>,
        lock: &Rc<LockState>,
        range: Range,
    ) -> NfsResult<()> {
        // From now on it is not reclaimed: the server may have given it to another who reclaims it.
        subtract(&mut lock.held.borrow_mut(), range);
        let mut retry = Retry::new(self);
        let mut guesses = 0;
        loop {
            if state.lost.get().is_some() {
                return Err(LOST);
            }
            let unlocked = || if lock.lost.get() { Err(LOST) } else { Ok(()) };
            let Some(stateid) = lock.stateid.get() else { return unlocked() };
            let epoch = self.recovery.epoch();
            let status = match self.send_unlock(state, lock, range, stateid).await {
                Ok(()) => return unlocked(),
                Err(NfsError::V4(status)) => status,
                Err(error) => return Err(error),
            };
            if status == Nfsstat4::BAD_SEQID && guesses < GUESSES {
                guesses += 1;
                continue;
            }
            if !self.lock_refused(state, lock, stateid, status, epoch, &mut retry).await? {
                return Err(NfsError::V4(status));
            }
        }
    }

    async fn send_unlock(
        self: &Rc<Self>,
        state: &Rc<OpenState>,
        lock: &Rc<LockState>,
        range: Range,
        stateid: Stateid4,
    ) -> NfsResult<()> {
        let turn = self.turn_of(&lock.owner).await?;
        let handle = state.handle.get();
        let stateid = lock.stateid.get().unwrap_or(stateid);
        let args = LockuArgs {
            locktype: LockType4::Write,
            seqid: turn.sequence(),
            lock_stateid: self.for_data(stateid),
            offset: range.offset,
            length: length(range),
        };
        // If the owner holds nothing afterwards; the server refuses if it does.
        let free = self.options.append_to_locks && self.has_sessions() && lock.held.borrow().is_empty();
        let result = self
            .in_turn(
                [&turn],
                Kind::repeatable(ops::LOCKU),
                &handle,
                |ops| {
                    ops.put(Opnum::LOCKU, &args);
                    if free {
                        ops.put(Opnum::FREE_STATEID, &FreeStateidArgs { stateid: args.lock_stateid });
                    }
                },
                |results| {
                    let stateid = results.take::<LockuOk>(Opnum::LOCKU)?.lock_stateid;
                    let freed = free && appended(results.take::<()>(Opnum::FREE_STATEID))?.is_some();
                    Ok((stateid, freed))
                },
            )
            .await;
        if matches!(result, Err(NfsError::V4(Nfsstat4::BAD_SEQID))) {
            turn.step_back();
        }
        let (stateid, freed) = result?;
        if freed {
            lock.stateid.set(None)
        } else {
            lock.took(stateid)
        }
        Ok(())
    }

    /// Gives up all locks of a file that is about to be closed.
    pub(super) async fn unlock_all(self: &Rc<Self>, state: &Rc<OpenState>) -> NfsResult<()> {
        if state.locks.borrow().is_empty() {
            return Ok(());
        }
        let locks = state.locks.borrow().clone();
        for lock in locks {
            if lock.held.borrow().is_empty() {
                continue;
            }
            match self.unlock_state(state, &lock, Range::WHOLE).await {
                // Nothing is held then either.
                Ok(()) | Err(NfsError::StateLost(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// RELEASE_LOCKOWNER (4.0) of lock owners whose file was closed. Those that hold locks elsewhere stay.
    pub(super) async fn release_lock_owners(self: &Rc<Self>, locks: Vec<Rc<LockState>>) -> NfsResult<()> {
        if self.has_sessions() {
            return Ok(());
        }
        for lock in locks {
            let turn = self.turn_of(&lock.owner).await?;
            let elsewhere = self.files.any(|state| state.locks_of(lock.number).is_some());
            if elsewhere {
                turn.settle::<()>(&Err(NfsError::V4(Nfsstat4::BAD_SEQID)), false);
                continue;
            }
            let args = ReleaseLockownerArgs { lock_owner: lock.owner.named(self.client.get()) };
            let kind = Kind::repeatable(ops::RELEASE_LOCKOWNER).held();
            let released = self.attempt(
                kind,
                |ops| {
                    ops.put(Opnum::RELEASE_LOCKOWNER, &args);
                },
                |results| results.take::<()>(Opnum::RELEASE_LOCKOWNER),
            );
            let result = released.await;
            // It has no number of its own.
            turn.settle::<()>(&Err(NfsError::V4(Nfsstat4::BAD_SEQID)), false);
            match result {
                Ok(()) => lock.owner.forget(self.minor),
                Err(NfsError::V4(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Has the locks of a reclaimed file back.
    pub(super) async fn reclaim_locks(self: &Rc<Self>, state: &Rc<OpenState>) -> NfsResult<()> {
        let locks = state.locks.borrow().clone();
        if is_broken(Mutant::LocksNotReclaimed) {
            return Ok(());
        }
        for lock in locks {
            lock.stateid.set(None);
            let mut left = std::mem::take(&mut *lock.held.borrow_mut());
            while let Some((range, kind)) = left.pop().filter(|_| !lock.lost.get()) {
                match self.reclaim_lock(state, &lock, range, kind).await {
                    Ok(()) => self.counters.event(Event::LockReclaimed),
                    Err(NfsError::V4(
                        status @ (Nfsstat4::BADSESSION
                        | Nfsstat4::DEADSESSION
                        | Nfsstat4::STALE_CLIENTID
                        | Nfsstat4::STALE_STATEID),
                    )) => {
                        // From the beginning, with this one and the rest.
                        left.push((range, kind));
                        lock.held.borrow_mut().append(&mut left);
                        return Err(NfsError::V4(status));
                    }
                    Err(NfsError::V4(_)) => {
                        lock.lost.set(true);
                        self.counters.event(Event::StateLost);
                    }
                    Err(error) => {
                        left.push((range, kind));
                        lock.held.borrow_mut().append(&mut left);
                        return Err(error);
                    }
                }
            }
            if lock.lost.get() {
                lock.held.borrow_mut().clear();
            }
        }
        Ok(())
    }

    async fn reclaim_lock(
        self: &Rc<Self>,
        state: &Rc<OpenState>,
        lock: &Rc<LockState>,
        range: Range,
        kind: LockKind,
    ) -> NfsResult<()> {
        let request = Request { range, kind, wait: false, reclaim: true };
        let mut delay = Delay::new(self.options.delay);
        loop {
            let first = lock.stateid.get().is_none();
            let busy = NfsError::StateLost("an owner is busy while its locks are reclaimed");
            let turn = lock.owner.turn_now().ok_or(busy)?;
            let owner = state.owner.borrow().clone();
            let open = if first { Some(owner.turn_now().ok_or(busy)?) } else { None };
            match self.send_lock(state, lock, &request, open.as_ref(), &turn).await {
                Err(NfsError::V4(Nfsstat4::DELAY)) => {}
                result => return result.map(drop),
            }
            let at = delay.again(self.reactor.now())?;
            self.counters.event(Event::Delay);
            self.reactor.sleep_until(at).await;
        }
    }
}

impl LockState {
    /// The server has nothing of it any more.
    pub(super) fn forget(&self) {
        self.stateid.set(None);
        self.held.borrow_mut().clear();
    }

    /// Takes in a stateid; replies may overtake each other.
    fn took(&self, stateid: Stateid4) {
        let newer = self.stateid.get().is_none_or(|old| {
            old.other != stateid.other || stateid.seqid.wrapping_sub(old.seqid).cast_signed() > 0
        });
        if newer {
            self.stateid.set(Some(stateid));
        }
    }
}

impl Client {
    /// Whose locks those of a file will be: data are sent under them also by who used the file before the first one.
    pub(crate) fn set_locker(&self, file: &File, owner: u64) {
        file.locker.set(owner);
    }

    /// A lock that was kept under a delegation is one of an open file from now on: to be reclaimed by the recovery that runs, or
    /// lost.
    pub(crate) fn assume_lock(&self, file: &File, owner: u64, kind: LockKind, range: Range, lost: bool) {
        let lock = self.0.lock_state(file, owner);
        if !lost {
            lock.held.borrow_mut().push((range, kind));
        } else if !lock.lost.replace(true) {
            self.0.counters.event(Event::StateLost);
        }
    }

    /// FREE_STATEID of an owner that holds no lock of the file any more, as Linux does after the last unlock. Nothing
    /// in version 4.0, or while locks are held.
    ///
    /// # Errors
    /// Those of FREE_STATEID.
    pub async fn free_stateid(&self, file: &File, owner: u64) -> NfsResult<()> {
        let inner = &self.0;
        let Some(lock) = file.state.locks_of(owner).filter(|_| inner.has_sessions()) else { return Ok(()) };
        let Some(stateid) = lock.stateid.get().filter(|_| lock.held.borrow().is_empty()) else {
            return Ok(());
        };
        lock.stateid.set(None);
        match inner.free(stateid, false).await {
            // The server has forgotten it already.
            Err(NfsError::V4(Nfsstat4::BAD_STATEID)) => Ok(()),
            result => result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_as_the_server_cuts_them() {
        let range = |offset, length| Range { offset, length };
        let mut held = vec![(range(0, 100), LockKind::Write), (range(200, 0), LockKind::Read)];
        subtract(&mut held, range(10, 20));
        subtract(&mut held, range(300, 1));
        let mut sorted = held.clone();
        sorted.sort_by_key(|(range, _)| range.offset);
        let expected = [
            (range(0, 10), LockKind::Write),
            (range(30, 70), LockKind::Write),
            (range(200, 100), LockKind::Read),
            (range(301, 0), LockKind::Read),
        ];
        assert_eq!(sorted, expected);
        subtract(&mut held, range(0, 0));
        assert!(held.is_empty());
    }
}
