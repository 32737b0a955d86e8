//! What the server keeps for us: owners, open files, locks.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use benchmaster_nfs_proto::v4::{SHARE_ACCESS_BOTH, StateOwner4, Stateid4};

use super::Inner;
use super::slots::{Slot, Slots};
use crate::error::NfsError;
use crate::hash::Seeded;
use crate::protocol::NfsResult;
use crate::types::{Handle, LockKind, Range};

/// Open owners of version 4.0 at most; opens beyond wait for their turn.
const MOST_OWNERS: usize = 1024;

/// Kind, instance of the client, number.
pub(super) type Name = [u8; 24];

/// An open or lock owner. In version 4.0 its requests are numbered, and made one after the other: it is a table of one
/// slot (RFC 7530 §9.1.4). From 4.1 on slots do that, and an owner is only a name.
#[derive(Debug)]
pub(super) struct Owner {
    pub(super) name: Name,
    turns: Slots,
}

impl Owner {
    fn new(minor: u32, kind: &[u8; 8], instance: u64, number: u64) -> Rc<Self> {
        let mut name = [0; 24];
        name[..8].copy_from_slice(kind);
        name[8..16].copy_from_slice(&instance.to_be_bytes());
        name[16..].copy_from_slice(&number.to_be_bytes());
        let turns = Slots::default();
        if minor == 0 {
            turns.renew([0; 16], 1);
        }
        Rc::new(Self { name, turns })
    }

    /// As messages have it.
    pub(super) fn named(&self, clientid: u64) -> StateOwner4<'_> {
        StateOwner4 { clientid, owner: self.name[..].into() }
    }

    /// The server has forgotten it: its numbers start over.
    pub(super) fn forget(&self, minor: u32) {
        if minor == 0 {
            self.turns.renew([0; 16], 1);
        }
    }

    /// Its turn, if it is free.
    pub(super) fn turn_now(self: &Rc<Self>) -> Option<SeqidGuard> {
        let slot = self.turns.take_now(false)?;
        Some(SeqidGuard { owner: self.clone(), slot, used: Cell::new(0), settled: Cell::new(false) })
    }

    async fn turn(self: &Rc<Self>) -> Option<SeqidGuard> {
        let slot = match self.turns.take_now(false) {
            Some(slot) => slot,
            None => self.turns.take(false).await?,
        };
        Some(SeqidGuard { owner: self.clone(), slot, used: Cell::new(0), settled: Cell::new(false) })
    }
}

/// An owner's turn: given back when dropped. What was not [settled](Self::settle) is taken for executed.
#[derive(Debug)]
pub(super) struct SeqidGuard {
    pub(super) owner: Rc<Owner>,
    slot: Slot,
    used: Cell<u32>,
    settled: Cell<bool>,
}

impl SeqidGuard {
    /// Number to send.
    pub(super) fn sequence(&self) -> u32 {
        self.slot.sequence.wrapping_add(self.used.get())
    }

    fn is_current(&self) -> bool {
        self.slot.generation == self.owner.turns.generation()
    }

    /// A reply came: most results move the number on (RFC 7530 §9.1.7), if the operation that has it was `reached`.
    pub(super) fn settle<R>(&self, result: &NfsResult<R>, reached: bool) {
        let moves = match result {
            Ok(_) | Err(NfsError::Rpc(_)) => true,
            Err(NfsError::V4(_)) if !reached => false,
            Err(NfsError::V4(status)) => !status.keeps_seqid(),
            Err(_) => true,
        };
        self.settled.set(true);
        self.used.set(self.used.get().wrapping_add(u32::from(moves)));
    }

    /// The number was wrong, because one that was given up was not executed after all: the one before is right.
    pub(super) fn step_back(&self) {
        self.settled.set(true);
        self.used.set(self.used.get().wrapping_sub(1));
    }

    /// Another request follows within the same turn.
    pub(super) fn next(&self) {
        self.settled.set(false);
    }
}

impl Drop for SeqidGuard {
    fn drop(&mut self) {
        let used = self.used.get().wrapping_add(u32::from(!self.settled.get()));
        // The number after the last one used.
        let last = Slot { sequence: self.slot.sequence.wrapping_add(used).wrapping_sub(1), ..self.slot };
        self.owner.turns.give_back(last, true);
    }
}

#[derive(Debug)]
pub(super) struct Owners {
    minor: u32,
    /// Tells clients of this process apart that have the same identity, one after the other: a server of version 4.0
    /// may remember the numbers of an earlier one's owners.
    instance: u64,
    open: RefCell<Vec<Rc<Owner>>>,
    next: Cell<usize>,
    made: Cell<u64>,
    lock: RefCell<HashMap<u64, Rc<Owner>>>,
}

impl Owners {
    pub(super) fn new(minor: u32) -> Self {
        static INSTANCES: AtomicU64 = AtomicU64::new(0);
        let owners = Self {
            minor,
            instance: INSTANCES.fetch_add(1, Ordering::Relaxed),
            open: RefCell::default(),
            next: Cell::new(0),
            made: Cell::new(0),
            lock: RefCell::default(),
        };
        let first = owners.make();
        owners.open.borrow_mut().push(first);
        owners
    }

    fn make(&self) -> Rc<Owner> {
        let number = self.made.get();
        self.made.set(number + 1);
        Owner::new(self.minor, b"open id:", self.instance, number)
    }

    /// An owner whose turn it is: an idle one, a new one, or, where there are too many, one that is waited for.
    async fn any(&self) -> Option<SeqidGuard> {
        let waited_for = {
            let mut open = self.open.borrow_mut();
            let start = self.next.get();
            let mut in_turn = (0..open.len()).map(|n| (start + n) % open.len());
            if let Some(turn) = in_turn.find_map(|at| {
                self.next.set(at + 1);
                open[at].turn_now()
            }) {
                return Some(turn);
            }
            if open.len() < MOST_OWNERS {
                let owner = self.make();
                open.push(owner.clone());
                owner
            } else {
                self.next.set(start + 1);
                open[start % open.len()].clone()
            }
        };
        waited_for.turn().await
    }

    /// One that was never used, for recovery: no other request uses it.
    pub(super) fn fresh(&self) -> Option<SeqidGuard> {
        if self.minor > 0 {
            return self.open.borrow().first()?.turn_now();
        }
        self.make().turn_now()
    }

    /// One that is in use.
    pub(super) fn first(&self) -> Rc<Owner> {
        let mut open = self.open.borrow_mut();
        if open.is_empty() {
            open.push(self.make());
        }
        open[0].clone()
    }

    /// Takes an owner out of use, whose sequence number is unknown.
    pub(super) fn discard(&self, owner: &Rc<Owner>) {
        self.open.borrow_mut().retain(|other| !Rc::ptr_eq(other, owner));
        self.first();
        self.lock.borrow_mut().retain(|_, other| !Rc::ptr_eq(other, owner));
    }

    /// The lock owner of a number.
    pub(super) fn lock_owner(&self, number: u64) -> Rc<Owner> {
        let mut owners = self.lock.borrow_mut();
        owners
            .entry(number)
            .or_insert_with(|| Owner::new(self.minor, b"lock id:", self.instance, number))
            .clone()
    }

    /// After a new client id was established: a server that said that it knew nothing of us may know owners and their
    /// numbers all the same, so that others open from now on. One that has forgotten them takes any number for the
    /// first (RFC 7530, section 9.1.7), so that those in use go on counting.
    pub(super) fn renew(&self) {
        if self.minor == 0 {
            let first = self.make();
            *self.open.borrow_mut() = vec![first];
        }
    }
}

impl Inner {
    /// The turn of any open owner.
    pub(super) async fn any_turn(self: &Rc<Self>) -> NfsResult<SeqidGuard> {
        loop {
            if !self.has_sessions() {
                self.pass(false).await?;
            }
            let turn = self.owners.any().await.ok_or(CLOSED)?;
            if self.may_go(&turn) {
                return Ok(turn);
            }
        }
    }

    /// The turn of this owner.
    pub(super) async fn turn_of(self: &Rc<Self>, owner: &Rc<Owner>) -> NfsResult<SeqidGuard> {
        loop {
            if !self.has_sessions() {
                self.pass(false).await?;
            }
            let turn = owner.turn().await.ok_or(CLOSED)?;
            if self.may_go(&turn) {
                return Ok(turn);
            }
        }
    }

    /// Version 4.0: a recovery that began meanwhile goes first.
    fn may_go(&self, turn: &SeqidGuard) -> bool {
        let may = self.has_sessions() || (!self.recovery.is_running() && turn.is_current());
        if !may {
            // Nothing was sent.
            turn.settled.set(true);
        }
        may
    }
}

const CLOSED: NfsError = NfsError::Rpc(crate::rpc::RpcError::Closed);

/// Locks of one owner on one open file.
#[derive(Debug)]
pub(super) struct LockState {
    pub(super) owner: Rc<Owner>,
    pub(super) number: u64,
    /// `None` while the server has none.
    pub(super) stateid: Cell<Option<Stateid4>>,
    pub(super) held: RefCell<Vec<(Range, LockKind)>>,
    pub(super) lost: Cell<bool>,
}

/// An open file as the server knows it; several [`File`]s may share it.
#[derive(Debug)]
pub(super) struct OpenState {
    pub(super) handle: Cell<Handle>,
    pub(super) owner: RefCell<Rc<Owner>>,
    pub(super) stateid: Cell<Stateid4>,
    /// Files open for reading, writing, both (by `share_access` - 1).
    counts: [Cell<u32>; 3],
    /// What the server has it open for.
    pub(super) shared: Cell<u32>,
    /// Directory and name, to reopen it in version 4.0.
    pub(super) parent: Cell<Handle>,
    pub(super) name: RefCell<Vec<u8>>,
    pub(super) locks: RefCell<Vec<Rc<LockState>>>,
    pub(super) lost: Cell<Option<&'static str>>,
    /// Its stateid was refused: to be looked at by the recovery.
    pub(super) suspect: Cell<bool>,
    /// A task closes it.
    pub(super) closing: Cell<bool>,
}

impl OpenState {
    fn new(owner: Rc<Owner>) -> Rc<Self> {
        Rc::new(Self {
            handle: Cell::default(),
            owner: RefCell::new(owner),
            stateid: Cell::default(),
            counts: Default::default(),
            shared: Cell::new(0),
            parent: Cell::default(),
            name: RefCell::default(),
            locks: RefCell::default(),
            lost: Cell::new(None),
            suspect: Cell::new(false),
            closing: Cell::new(false),
        })
    }

    /// What its files need it open for.
    pub(super) fn needed(&self) -> u32 {
        (1..=SHARE_ACCESS_BOTH).filter(|access| self.count(*access).get() > 0).fold(0, |all, one| all | one)
    }

    fn count(&self, access: u32) -> &Cell<u32> {
        &self.counts[(access.clamp(1, SHARE_ACCESS_BOTH) - 1) as usize]
    }

    pub(super) fn opened(&self, access: u32) {
        let count = self.count(access);
        count.set(count.get() + 1);
    }

    pub(super) fn closed(&self, access: u32) {
        let count = self.count(access);
        count.set(count.get().saturating_sub(1));
    }

    /// Whether this is the stateid of the open or of one of its locks, in any version.
    pub(super) fn has(&self, stateid: Stateid4) -> bool {
        let is = |own: Stateid4| own.other == stateid.other;
        is(self.stateid.get()) || self.locks.borrow().iter().any(|lock| lock.stateid.get().is_some_and(is))
    }

    /// The locks of an owner.
    pub(super) fn locks_of(&self, number: u64) -> Option<Rc<LockState>> {
        self.locks.borrow().iter().find(|lock| lock.number == number).cloned()
    }
}

/// A file that is open.
#[derive(Debug)]
pub struct File {
    pub(super) state: Rc<OpenState>,
    pub(super) access: u32,
    /// The owner of its locks; 0 before the first one.
    pub(super) locker: Cell<u64>,
    /// Its count was taken back.
    pub(super) done: Cell<bool>,
}

impl File {
    /// One more user of a state.
    pub(super) fn new(state: Rc<OpenState>, access: u32) -> Self {
        state.opened(access);
        Self { state, access, locker: Cell::new(0), done: Cell::new(false) }
    }

    /// Filehandle of the open file.
    pub fn handle(&self) -> Handle {
        self.state.handle.get()
    }

    /// Stateid of the open.
    pub fn stateid(&self) -> Stateid4 {
        self.state.stateid.get()
    }

    /// Whether this is the open of another file, too.
    pub(crate) fn is_same_open(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.state, &other.state)
    }

    /// Whether the open or its locks were lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.state.lost.get().is_some() || self.locks().is_some_and(|locks| locks.lost.get())
    }

    /// Its locks, if it ever had one.
    pub(super) fn locks(&self) -> Option<Rc<LockState>> {
        Some(self.locker.get()).filter(|locker| *locker != 0).and_then(|locker| self.state.locks_of(locker))
    }

    pub(super) fn finish(&self) {
        if !self.done.replace(true) {
            self.state.closed(self.access);
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        self.finish();
    }
}

type Key = (Name, Handle);

#[derive(Debug, Default)]
pub(super) struct Files {
    open: RefCell<HashMap<Key, Rc<OpenState>, Seeded>>,
    /// States for later use.
    spare: RefCell<Vec<Rc<OpenState>>>,
    /// OPENs under way.
    pub(super) opening: Cell<u32>,
    /// Those of them that wait for the replies of others.
    pub(super) waiting: Cell<u32>,
    verifiers: Cell<u32>,
}

impl Files {
    /// Another verifier for each exclusive create.
    pub(super) fn verifier(&self, instance: &[u8; 8]) -> [u8; 8] {
        let number = self.verifiers.get();
        self.verifiers.set(number.wrapping_add(1));
        let number = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (u64::from_be_bytes(*instance) ^ number).to_be_bytes()
    }

    /// Whether the state that this stateid of an OPEN was made from is known.
    pub(super) fn follows(&self, owner: &Rc<Owner>, handle: Handle, stateid: Stateid4) -> bool {
        let known = || {
            let open = self.open.borrow();
            let state = open.get(&(owner.name, handle))?.stateid.get();
            (state.other == stateid.other).then_some(state.seqid)
        };
        stateid.seqid <= 1
            || known().is_some_and(|seqid| stateid.seqid.wrapping_sub(seqid).cast_signed() <= 1)
    }

    /// Takes in the result of an OPEN. Also whether it took the place of another state of the file that is in use: the
    /// server has one for an owner, so that the other is void, with its locks.
    pub(super) fn opened(
        &self,
        owner: &Rc<Owner>,
        handle: Handle,
        stateid: Stateid4,
        access: u32,
        place: Option<(&Handle, &[u8])>,
    ) -> (File, bool) {
        let mut open = self.open.borrow_mut();
        let key = (owner.name, handle);
        if let Some(state) = open.get(&key).filter(|state| state.lost.get().is_none()) {
            let known = state.stateid.get();
            if known.other == stateid.other {
                // Replies may overtake each other.
                if stateid.seqid.wrapping_sub(known.seqid).cast_signed() > 0 {
                    state.stateid.set(stateid);
                }
                state.shared.set(state.shared.get() | access);
                return (File::new(state.clone(), access), false);
            }
            if state.needed() != 0 {
                state.stateid.set(stateid);
                state.shared.set(access);
                return (File::new(state.clone(), access), true);
            }
        }
        let state = self.spare.borrow_mut().pop().unwrap_or_else(|| OpenState::new(owner.clone()));
        state.handle.set(handle);
        *state.owner.borrow_mut() = owner.clone();
        state.stateid.set(stateid);
        state.shared.set(access);
        state.lost.set(None);
        state.suspect.set(false);
        let mut name = state.name.borrow_mut();
        name.clear();
        if let Some((directory, at)) = place {
            state.parent.set(*directory);
            name.extend_from_slice(at);
        }
        drop(name);
        open.insert(key, state.clone());
        (File::new(state, access), false)
    }

    /// A file that is taken for open though the server may not know, or not have it open for this: the recovery is to open it.
    pub(super) fn assumed(
        &self,
        owner: &Rc<Owner>,
        handle: Handle,
        stateid: Stateid4,
        access: u32,
        place: (&Handle, &[u8]),
    ) -> File {
        let known = self.open.borrow().get(&(owner.name, handle)).cloned();
        let file = match known.filter(|state| state.lost.get().is_none() && state.needed() != 0) {
            Some(state) => File::new(state, access),
            None => self.opened(owner, handle, stateid, access, Some(place)).0,
        };
        file.state.suspect.set(true);
        file
    }

    /// Forgets a state, and keeps its memory when only the caller still knows it.
    pub(super) fn closed(&self, state: &Rc<OpenState>) {
        let mut open = self.open.borrow_mut();
        let key = (state.owner.borrow().name, state.handle.get());
        if open.get(&key).is_some_and(|other| Rc::ptr_eq(other, state)) {
            open.remove(&key);
        }
        state.locks.borrow_mut().clear();
        if Rc::strong_count(state) == 1 {
            self.spare.borrow_mut().push(state.clone());
        }
    }

    /// A state has another owner now.
    pub(super) fn moved(&self, state: &Rc<OpenState>, owner: &Rc<Owner>) {
        let mut open = self.open.borrow_mut();
        let handle = state.handle.get();
        let old = (state.owner.borrow().name, handle);
        if open.get(&old).is_some_and(|other| Rc::ptr_eq(other, state)) {
            open.remove(&old);
        }
        *state.owner.borrow_mut() = owner.clone();
        open.insert((owner.name, handle), state.clone());
    }

    /// All of them, in an order that is the same in every run.
    pub(super) fn all(&self) -> Vec<Rc<OpenState>> {
        let mut all: Vec<_> = self.open.borrow().iter().map(|(key, state)| (*key, state.clone())).collect();
        all.sort_unstable_by_key(|(key, _)| *key);
        all.into_iter().map(|(_, state)| state).collect()
    }

    /// Whether one of them is such.
    pub(super) fn any(&self, is: impl FnMut(&Rc<OpenState>) -> bool) -> bool {
        self.open.borrow().values().any(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_one_state_for_an_owner() {
        let (files, owner) = (Files::default(), Owner::new(1, b"open id:", 1, 1));
        let handle = Handle::new(b"handle").unwrap();
        let stateid = |number: u8, seqid: u32| Stateid4 { seqid, other: [number; 12] };
        let opened = |stateid, access| files.opened(&owner, handle, stateid, access, None);
        assert!(
            files.follows(&owner, handle, stateid(1, 1)) && !files.follows(&owner, handle, stateid(1, 2))
        );
        let (first, replaced) = opened(stateid(1, 1), 1);
        assert!(!replaced && files.follows(&owner, handle, stateid(1, 2)));
        assert!(
            !files.follows(&owner, handle, stateid(1, 3)) && !files.follows(&owner, handle, stateid(2, 2))
        );
        let (second, replaced) = opened(stateid(1, 2), 2);
        assert!(!replaced && Rc::ptr_eq(&first.state, &second.state));
        // The server has lost what it had: all who use the file have what it has now.
        let (third, replaced) = opened(stateid(2, 1), 2);
        assert!(replaced && Rc::ptr_eq(&first.state, &third.state));
        assert_eq!((first.stateid(), third.state.shared.get(), third.state.needed()), (stateid(2, 1), 2, 3));
        // Not that of a file which is being closed.
        [first, second, third].iter().for_each(File::finish);
        let (again, replaced) = opened(stateid(3, 1), 1);
        assert!(!replaced && again.stateid() == stateid(3, 1));
    }
}
