//! What clients hold on files of one part of the state: the tables of opens, locks and delegations, by stateid, by file, by
//! client and by owner.
//!
//! Every table is reached by number or by hash, and what belongs together is linked: the number of opens adds nothing to the
//! cost of an operation, but where both a file and an owner have many.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{Nfsstat4, Stateid4};
use hashbrown::HashMap;

use super::account::Accounts;
use super::arena::{Arena, NONE, Revoked};
use super::contention::Contention;
use super::delegated::Held;
use super::entry::{BY_CLIENT, BY_OWNER, BY_PARENT, End, Entry, FileRecord, Holdings, What, check_seqid};
use super::index::Index;
use super::interval::Range;
use super::nlm_lock::NlmHost;
use super::owner::{Owner, Owners};
use super::ranges::LockTable;
use super::shards::Guarded;
use super::waiter::{FileLocks, Waiter};
use super::{ClientId, Effects};
use crate::config::ServerConfig;
use crate::handle::FileId;
use crate::stats::DelegationCounts;

/// All that is held on files of a part.
#[derive(Debug)]
pub struct Files {
    /// Part of every stateid: tells those of an earlier start.
    pub(super) boot: u32,
    pub(super) place: Place,
    pub(super) lease: Duration,
    pub(super) delegations: bool,
    /// Bytes of all that is held, by who answers for it.
    pub(super) accounts: Accounts<Keeper>,
    /// Who may have more although its share of this part is used up: those of other parts are not.
    pub(super) admitted: Option<Keeper>,
    pub(super) write_delegations: bool,
    pub(super) states: Arena<Entry, 3>,
    pub(super) files: Arena<FileRecord, 0>,
    by_id: Index,
    pub(super) owners: Owners,
    /// Lock states by owner and file.
    pub(super) by_locker: Index,
    /// Owners that follow a sequence, which counts them.
    pub(super) following: usize,
    /// Sequences whose owners got a state (`true`) or lost one: for [`super::turns`] to count.
    pub(super) turned: Vec<(u32, bool)>,
    pub(super) holdings: HashMap<ClientId, Holdings>,
    /// Delegations that are being recalled.
    pub(super) recalled: BTreeSet<u32>,
    /// Files with waiting lock requests.
    pub(super) waiting: BTreeSet<u32>,
    pub(super) contention: Contention,
    /// What delegated files looked like.
    pub(super) held: HashMap<u32, Held>,
    /// Owners of NLM locks by host.
    pub(super) nlm_hosts: HashMap<NlmHost, Vec<u32>>,
    /// NLM owners are in no client's list.
    pub(super) nlm_owners: u32,
    /// Counts of clients that are gone.
    pub(super) past: DelegationCounts,
    guarded: Arc<Guarded>,
    /// Whether any part ever had a write delegation.
    pub(super) write_delegated: Arc<AtomicBool>,
}

/// Which part of the state: its number is in the low bits of the numbers in stateids.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) index: u32,
    pub(super) bits: u32,
}

/// What a READ, WRITE or SETATTR(size) with a stateid may do, once its stateid is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoRight {
    /// Whose open, lock or delegation it is; `None` for the special stateids.
    pub client: Option<ClientId>,
    /// The user who may without being checked, as OPEN checked that one. All others need the file's own permission.
    pub opener: Option<u32>,
}

/// Who answers for what is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Keeper {
    /// A client of NFSv4.
    Client(ClientId),
    /// A host with NLM, whatever it calls itself.
    Host(IpAddr),
}

/// Part of the memory that all that is held may take, and the least that it is; part of that of one keeper.
const SHARE: u64 = 16;
const LEAST: u64 = 4 << 20;
const KEEPER_SHARE: u64 = 4;
/// What a state or owner takes with its file and names, about, and what a locked range does.
pub(super) const STATE: u64 = 1 << 10;
const RANGE: u64 = 128;

/// Numbers of things held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FileCounts {
    /// Opens, lock states and delegations.
    pub states: usize,
    /// Files on which something is held.
    pub files: usize,
    /// Open owners and lock owners.
    pub owners: usize,
    /// Files with lock requests that wait.
    pub waiting: usize,
}

impl Files {
    /// Nothing held. `boot` differs at every start of the server.
    pub(super) fn new(
        config: &ServerConfig,
        boot: u64,
        place: Place,
        (guarded, write_delegated): (Arc<Guarded>, Arc<AtomicBool>),
    ) -> Self {
        // Neither all zeros nor all ones, which are special stateids.
        let boot = ((boot ^ boot >> 32) as u32).clamp(1, u32::MAX - 1);
        Self {
            boot,
            place,
            lease: config.lease,
            delegations: config.delegations,
            accounts: Accounts::new((config.memory / SHARE).max(LEAST), KEEPER_SHARE),
            admitted: None,
            write_delegations: config.write_delegations,
            states: Arena::default(),
            files: Arena::default(),
            by_id: Index::default(),
            owners: Owners::default(),
            by_locker: Index::default(),
            following: 0,
            turned: Vec::new(),
            holdings: HashMap::new(),
            recalled: BTreeSet::new(),
            waiting: BTreeSet::new(),
            contention: Contention::default(),
            held: HashMap::new(),
            nlm_hosts: HashMap::new(),
            nlm_owners: NONE,
            past: DelegationCounts::default(),
            guarded,
            write_delegated,
        }
    }

    /// Checks a stateid for I/O on `file` (RFC 7530 §9.1.4, RFC 8881 §8.2): OLD_STATEID, BAD_STATEID, EXPIRED,
    /// OPENMODE, LOCKED, and deny modes against the special ones. `client` is the session's client (4.1). `write`:
    /// WRITE or SETATTR of the size, else READ.
    pub fn check_io(
        &self,
        minor: u32,
        client: Option<ClientId>,
        stateid: Stateid4,
        file: FileId,
        write: bool,
    ) -> Result<IoRight, Nfsstat4> {
        if stateid.is_special() {
            // All ones lets READ pass where it would be denied, and is like all zeros for WRITE.
            if stateid != Stateid4::ANONYMOUS && stateid != Stateid4::READ_BYPASS {
                return Err(Nfsstat4::BAD_STATEID);
            }
            if (write || stateid == Stateid4::ANONYMOUS)
                && self.denied(file, write)
                && !is_broken(Mutant::DenyOpenToAnonymous)
            {
                return Err(Nfsstat4::LOCKED);
            }
            return Ok(IoRight { client: None, opener: None });
        }
        let found = self.find(minor, client, &stateid, Some(file));
        if found.is_err() && is_broken(Mutant::AnyStateid) {
            return Ok(IoRight { client: None, opener: None });
        }
        let at = found?;
        let entry = self.states.get(at).ok_or(Nfsstat4::BAD_STATEID)?;
        let open = match &entry.what {
            What::Open(open) => Some(open),
            What::Lock(lock) => match self.states.get(lock.open) {
                Some(Entry { what: What::Open(open), .. }) => Some(open),
                _ => return Err(Nfsstat4::BAD_STATEID),
            },
            What::Delegation(_) => None,
            What::Closed { .. } => return Err(Nfsstat4::BAD_STATEID),
        };
        if let Some(open) = open
            && !self.owners.get(open.owner).is_some_and(|owner| owner.is_confirmed())
        {
            return Err(Nfsstat4::BAD_STATEID);
        }
        check_seqid(minor, entry.seqid, stateid.seqid)?;
        let allowed = match &entry.what {
            What::Delegation(delegation) => !write || delegation.write,
            _ => open.is_some_and(|open| open.access & if write { 2 } else { 1 } != 0),
        };
        if !allowed && !is_broken(Mutant::WriteByReader) {
            return Err(Nfsstat4::OPENMODE);
        }
        let opener = match (&entry.what, open) {
            (What::Delegation(delegation), _) => delegation.opener.uid(),
            (_, open) => open.and_then(|open| open.opener.uid()),
        };
        Ok(IoRight { client: Some(entry.client), opener })
    }

    /// The user in whose name the open behind an open or lock state was made.
    pub(crate) fn opener_uid(&self, at: u32) -> Option<u32> {
        match &self.states.get(at)?.what {
            What::Open(open) => open.opener.uid(),
            What::Lock(lock) => self.opener_uid(lock.open),
            What::Delegation(delegation) => delegation.opener.uid(),
            What::Closed { .. } => None,
        }
    }

    /// Whether deny modes of NFSv4 opens forbid this I/O to requests without open state (NFS v2 and v3, special
    /// stateids).
    pub fn denied(&self, file: FileId, write: bool) -> bool {
        self.record(file).is_some_and(|(_, record)| record.deny[usize::from(write)] > 0)
    }

    /// Whether a client holds any open, lock or delegation.
    pub(super) fn client_has_state(&self, client: ClientId) -> bool {
        self.holdings.get(&client).is_some_and(|holdings| holdings.live > 0)
    }

    /// Whether a client holds any delegation.
    pub(super) fn client_has_delegations(&self, client: ClientId) -> bool {
        self.holdings.get(&client).is_some_and(|holdings| holdings.delegated > 0)
    }

    /// Whether there is surely room for more: what one holds, and all hold, is a share of the memory, of which this part
    /// has its part. Else [`super::State::admit`] looks at all parts.
    pub(crate) fn has_room(&self, keeper: &Keeper) -> bool {
        self.accounts.has_room(keeper, self.place.bits) || self.admitted == Some(*keeper)
    }

    fn take(&mut self, keeper: Keeper, amount: u64) {
        self.accounts.take(keeper, amount);
        self.admitted = None;
    }

    /// Whether there is room for what unlocking a range leaves on both sides of it.
    pub(super) fn may_unlock(&self, file: u32, owner: u32, range: Range) -> bool {
        let table = self.locks(file).map(|locks| &locks.table);
        let keeper = self.owners.get(owner).map(Owner::keeper);
        !table.is_some_and(|table| table.splits(owner, range))
            || keeper.is_none_or(|keeper| self.has_room(&keeper))
    }

    /// Locks of a file, and those who wait for one.
    pub(super) fn locks(&self, file: u32) -> Option<&FileLocks> {
        self.files.get(file)?.locks.as_deref()
    }

    /// Changes what an owner has locked in a file.
    pub(super) fn relock<T>(
        &mut self,
        file: u32,
        owner: u32,
        change: impl FnOnce(&mut LockTable) -> T,
    ) -> Option<T> {
        let keeper = self.owners.get(owner)?.keeper();
        let table = &mut self.files.get_mut(file)?.locks.as_mut()?.table;
        let before = table.len() as u64;
        let changed = change(table);
        let after = table.len() as u64;
        self.take(keeper, after.saturating_sub(before) * RANGE);
        self.accounts.give_back(&keeper, before.saturating_sub(after) * RANGE);
        Some(changed)
    }

    /// Puts a request at the end of a file's queue.
    pub(super) fn enqueue(&mut self, file: u32, waiter: Waiter) {
        self.take(waiter.who.keeper(), waiter.who.memory());
        let Some(record) = self.files.get_mut(file) else { return };
        record.locks.get_or_insert_default().waiters.push_back(waiter);
        self.waiting.insert(file);
    }

    /// Lets go of requests that wait; whether there were any such.
    pub(super) fn retain_waiters(&mut self, file: u32, mut keep: impl FnMut(&mut Waiter) -> bool) -> bool {
        let Self { files, accounts, waiting, .. } = self;
        let Some(locks) = files.get_mut(file).and_then(|record| record.locks.as_mut()) else { return false };
        let before = locks.waiters.len();
        locks.waiters.retain_mut(|waiter| {
            let kept = keep(waiter);
            if !kept {
                accounts.give_back(&waiter.who.keeper(), waiter.who.memory());
            }
            kept
        });
        if locks.waiters.is_empty() {
            waiting.remove(&file);
        }
        locks.waiters.len() < before
    }

    /// Adds an owner that is not there.
    pub(super) fn add_owner(&mut self, owner: Owner) -> u32 {
        if owner.turn == NONE {
            self.take(owner.keeper(), STATE);
        } else {
            self.following += 1;
        }
        let Self { owners, holdings, nlm_owners, .. } = self;
        let list = match owner.keeper() {
            Keeper::Client(client) => &mut holdings.entry(client).or_default().owners,
            Keeper::Host(_) => nlm_owners,
        };
        owners.insert(owner, list)
    }

    /// Drops all that a client holds in this part.
    pub(super) fn purge_client(&mut self, client: ClientId, effects: &mut Effects) {
        self.drop_waiters_of(client, effects);
        while let Some(at) = self.holdings.get(&client).and_then(|holdings| some(holdings.states)) {
            self.drop_state(at, End::Revoked(Revoked::Expired), effects);
        }
        while let Some(at) = self.holdings.get(&client).and_then(|holdings| some(holdings.owners)) {
            self.drop_owner(at, End::Revoked(Revoked::Expired), effects);
        }
        if let Some(holdings) = self.holdings.remove(&client) {
            self.past.add(&holdings.counts);
        }
    }

    /// Number of locked ranges.
    #[cfg(test)]
    pub(crate) fn ranges(&self) -> usize {
        let locks = (0..self.files.len() as u32).filter_map(|at| self.files.get(at)?.locks.as_ref());
        locks.map(|locks| locks.table.len()).sum()
    }

    /// How much is held.
    pub fn counts(&self) -> FileCounts {
        FileCounts {
            states: self.states.len(),
            files: self.files.len(),
            owners: self.owners.len() - self.following,
            waiting: self.waiting.len(),
        }
    }

    /// The stateid of a state.
    pub(super) fn stateid(&self, at: u32) -> Stateid4 {
        let mut other = [0; 12];
        other[0..4].copy_from_slice(&self.boot.to_be_bytes());
        other[4..8].copy_from_slice(&self.number(at).to_be_bytes());
        other[8..12].copy_from_slice(&self.states.generation(at).to_be_bytes());
        Stateid4 { seqid: self.states.get(at).map_or(0, |entry| entry.seqid), other }
    }

    /// The number of a state in its stateid. (A part has no 2^24 states: what all hold is a share of the memory.)
    pub(super) fn number(&self, at: u32) -> u32 {
        at << self.place.bits | self.place.index
    }

    /// The stateid of a state after a change of it.
    pub(super) fn next_stateid(&mut self, at: u32) -> Stateid4 {
        if let Some(entry) = self.states.get_mut(at) {
            entry.seqid = entry.seqid.checked_add(1).unwrap_or(1);
        }
        self.stateid(at)
    }

    /// Finds the state that a stateid names, all but the seqid checked (RFC 7530 §9.1.4.4, RFC 8881 §8.2.4). `client`
    /// is that of the session; `file` the current file handle where it has to match.
    pub(super) fn find(
        &self,
        minor: u32,
        client: Option<ClientId>,
        stateid: &Stateid4,
        file: Option<FileId>,
    ) -> Result<u32, Nfsstat4> {
        if stateid.is_special() {
            return Err(Nfsstat4::BAD_STATEID);
        }
        let [a, b, c, d, e, f, g, h, i, j, k, l] = stateid.other;
        let boot = u32::from_be_bytes([a, b, c, d]);
        let number = u32::from_be_bytes([e, f, g, h]);
        let generation = u32::from_be_bytes([i, j, k, l]);
        if boot != self.boot {
            return Err(if minor == 0 { Nfsstat4::STALE_STATEID } else { Nfsstat4::BAD_STATEID });
        }
        let at = number >> self.place.bits;
        if number != self.number(at) {
            // Of another part: of another file.
            return Err(Nfsstat4::BAD_STATEID);
        }
        let entry = match self.states.get(at) {
            Some(entry) if self.states.generation(at) == generation => entry,
            _ => {
                return Err(match self.states.revoked(at, generation) {
                    None => Nfsstat4::BAD_STATEID,
                    Some(Revoked::Expired) => Nfsstat4::EXPIRED,
                    // EXPIRED would tell the client that it lost all its state (RFC 7530 §10.2.1, §13.1.5.1).
                    Some(Revoked::NotReturned) => Nfsstat4::ADMIN_REVOKED,
                });
            }
        };
        let wrong_file =
            file.is_some_and(|file| self.files.get(entry.file).is_some_and(|record| record.id != file));
        if wrong_file
            || client.is_some_and(|client| client != entry.client && !is_broken(Mutant::StateidOfAnother))
            || entry.v40 != (minor == 0)
        {
            return Err(Nfsstat4::BAD_STATEID);
        }
        match &entry.what {
            What::Delegation(delegation) if delegation.revoked => Err(Nfsstat4::DELEG_REVOKED),
            _ => Ok(at),
        }
    }

    /// The record of a file on which something is held.
    pub(super) fn record(&self, file: FileId) -> Option<(u32, &FileRecord)> {
        let at = self.by_id.find(file, |at| self.files.get(at).is_some_and(|record| record.id == file))?;
        Some((at, self.files.get(at)?))
    }

    /// The record of a file, made when there is none.
    pub(super) fn record_or_new(&mut self, file: FileId) -> u32 {
        if let Some((at, _)) = self.record(file) {
            return at;
        }
        let record = FileRecord {
            id: file,
            opens: NONE,
            delegations: NONE,
            access: [0; 2],
            deny: [0; 2],
            locks: None,
            guarded: false,
        };
        let at = self.files.insert(record);
        self.by_id.insert(file, at);
        at
    }

    /// Counts a file whose delegations or deny modes have changed in or out.
    pub(super) fn guard(&mut self, file: u32) {
        let Some(record) = self.files.get_mut(file) else { return };
        let guards = record.guards();
        if std::mem::replace(&mut record.guarded, guards) != guards {
            let by = if guards { 1 } else { u32::MAX };
            self.guarded.0.fetch_add(by, Ordering::Release);
        }
    }

    /// Forgets a file on which nothing is held any more.
    pub(super) fn forget_file(&mut self, at: u32) {
        let Some(record) = self.files.get_mut(at) else { return };
        if record.locks.as_ref().is_some_and(|locks| locks.is_empty()) {
            record.locks = None;
        }
        if record.opens != NONE || record.delegations != NONE || record.locks.is_some() {
            return;
        }
        let id = record.id;
        self.guard(at);
        self.by_id.remove(id, at);
        self.waiting.remove(&at);
        self.files.remove(at);
    }

    /// The open of an owner on a file: among those of the file and of the owner at once, so that it takes no longer than
    /// looking through the fewer. That is most often one, and an index would be a cache miss more in each OPEN and CLOSE.
    pub(super) fn open_of(&self, owner: u32, file: u32) -> Option<u32> {
        let of_file = self.states.list(BY_PARENT, self.files.get(file)?.opens);
        let of_owner = self.states.list(BY_OWNER, self.owners.get(owner)?.states);
        let is_it = |entry: &Entry| entry.file == file && entry.owner() == Some(owner);
        for ((at, one), (other_at, other)) in of_file.zip(of_owner) {
            if is_it(one) {
                return Some(at);
            }
            if is_it(other) {
                return Some(other_at);
            }
        }
        None
    }

    /// The lock state of an owner on a file.
    pub(super) fn lock_state_of(&self, owner: u32, file: u32) -> Option<u32> {
        let key = (owner, file);
        self.by_locker.find(key, |at| self.states.get(at).and_then(Entry::lock_key) == Some(key))
    }

    /// Adds a state to all lists it belongs to.
    pub(super) fn add_state(&mut self, entry: Entry) -> u32 {
        let (client, file, owner, key) = (entry.client, entry.file, entry.owner(), entry.lock_key());
        self.take(Keeper::Client(client), STATE);
        let holdings = self.holdings.entry(client).or_default();
        holdings.live += 1;
        let parent = match &entry.what {
            What::Lock(lock) => lock.open,
            _ => NONE,
        };
        let is_open = matches!(entry.what, What::Open(_));
        let at = self.states.insert(entry);
        self.states.link(BY_CLIENT, &mut holdings.states, at);
        if parent != NONE {
            let mut head = self.lock_list(parent);
            self.states.link(BY_PARENT, &mut head, at);
            self.set_lock_list(parent, head);
        } else if let Some(record) = self.files.get_mut(file) {
            let head = if is_open { &mut record.opens } else { &mut record.delegations };
            self.states.link(BY_PARENT, head, at);
        }
        if let Some(owner) = owner.and_then(|owner| self.owners.get_mut(owner)) {
            self.states.link(BY_OWNER, &mut owner.states, at);
            if owner.turn != NONE {
                self.turned.push((owner.turn, true));
            }
        }
        if let Some(key) = key {
            self.by_locker.insert(key, at);
        }
        self.guard(file);
        at
    }
}

/// The first member of a list is its head.
pub(super) fn some(head: u32) -> Option<u32> {
    (head != NONE).then_some(head)
}
