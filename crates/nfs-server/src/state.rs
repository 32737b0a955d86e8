//! State of clients: NFSv4 client records, sessions, opens, byte-range locks, delegations; locks of NLM clients too.
//!
//! A state machine without sockets or clock: time is an argument ([`Instant`] of the monotonic clock), and what has
//! to be done outside (callbacks, releasing files) is returned in [`Effects`], which [`crate::shared::Shared::apply`]
//! carries out after all locks are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::config::ServerConfig;
use crate::handle::FileId;
use crate::stats::{Nfs4ClientReport, StateReport};
use benchmaster_nfs_proto::v4::{Nfsstat4, Sessionid4, Stateid4};

pub mod backchannel;
pub mod client;
pub mod delegation;
pub mod file;
pub mod lease;
pub mod lock;
pub mod nlm;
pub mod nlm_lock;
pub mod open;
pub mod session;
pub mod shards;

pub(crate) mod account;
mod arena;
mod contention;
pub mod delegated;
mod ending;
mod entry;
mod grace;
pub mod held;
mod index;
pub(crate) mod interval;
pub(crate) mod owner;
pub(crate) mod ranges;
mod slot;
mod turns;
pub(crate) mod waiter;
pub(crate) mod watch;

use client::Clients;
use file::Keeper;
use open::Share;
use session::Sessions;
use shards::{All, Change, Look, Shards};

/// Short-hand number of a client, given by the server (RFC 7530 §9.1.1, RFC 8881 §2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

/// A connection, numbered since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// All state: sessions in a table of their own, all else in parts ([`shards`]).
#[derive(Debug)]
pub struct State {
    shards: Shards,
    sessions: Arc<Sessions>,
    /// Whether anything was ever delegated for writing.
    write_delegations: Arc<AtomicBool>,
    /// Grows when other clients are to be known after a restart.
    known_changes: Arc<AtomicU64>,
}

/// Why an operation on a file stops, which has locked one part of the state only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// It fails.
    Status(Nfsstat4),
    /// State of this client is in the way, whose lease ran out (RFC 7530 §9.6.3.1).
    Courtesy(ClientId),
    /// There may be no room for what it would add.
    Room(Keeper),
}

impl From<Nfsstat4> for Stop {
    fn from(status: Nfsstat4) -> Self {
        Self::Status(status)
    }
}

/// What a client is called for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Callback {
    /// Whether it answers (CB_NULL): answered by [`Clients::callback_probed`].
    Probe,
    /// To return a delegation (CB_RECALL); answered by [`recall_answered`](crate::state::file::Files::recall_answered).
    Recall {
        /// Stateid of the delegation.
        stateid: Stateid4,
        /// Delegated file.
        file: FileId,
        /// Whether the file is about to be truncated to nothing.
        truncate: bool,
    },
    /// For what it, who holds a write delegation, knows better (CB_GETATTR); answered by
    /// [`attributes_answered`](crate::state::file::Files::attributes_answered).
    GetAttributes {
        /// Stateid of the delegation.
        stateid: Stateid4,
        /// Delegated file.
        file: FileId,
        /// Whether it keeps the times, too.
        times: bool,
    },
    /// To learn what changed in a delegated directory (CB_NOTIFY, RFC 8881 §20.4); answered by
    /// [`notified`](crate::state::file::Files::notified).
    Notify {
        /// Stateid of the delegation.
        stateid: Stateid4,
        /// Delegated directory.
        dir: FileId,
        /// Changes in order, each an encoded `notify4`.
        changes: Vec<Vec<u8>>,
    },
    /// To use no slot beyond this one (CB_RECALL_SLOT, RFC 8881 §20.8).
    RecallSlots {
        /// Highest slot to use.
        highest: u32,
    },
    /// To learn that a lock may be free for which it waits (CB_NOTIFY_LOCK, RFC 8881 §20.11).
    NotifyLock {
        /// File of the lock.
        file: FileId,
        /// Name of the lock owner.
        owner: Vec<u8>,
    },
}

/// Something to be done outside once the tables are unlocked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Call a client.
    Call(ClientId, Callback),
    /// Tell a waiting NLM client that it has the lock (NLM_GRANTED).
    NlmGranted(nlm_lock::NlmWaiter),
    /// An open ended: [`crate::fs::FileSystem::release`].
    Release(FileId),
}

/// Effects in the order in which they are to be carried out.
pub type Effects = Vec<Effect>;

/// What a request is about to do to a file, when others may hold delegations or deny modes on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conflict {
    /// Read its data or attributes: conflicts with write delegations.
    Read,
    /// Change data, attributes, links or name: conflicts with all delegations.
    Change,
}

impl State {
    /// No clients. `boot` differs at every start of the server (client ids, session ids). When clients are known from
    /// before a restart a grace period begins for them.
    pub fn new(config: &ServerConfig, boot: u64, now: Instant, known_clients: Vec<Vec<u8>>) -> Self {
        let sessions = Arc::new(Sessions::new(boot, config.requests));
        let write_delegations = Arc::new(AtomicBool::new(false));
        let clients = Clients::new(config, boot, sessions.clone(), now, known_clients);
        let known_changes = clients.known_changes();
        let shards = Shards::new(config, boot, clients, &write_delegations);
        Self { shards, sessions, write_delegations, known_changes }
    }

    /// How often it changed which clients are to be known after a restart.
    #[inline]
    pub(crate) fn known_changes(&self) -> u64 {
        self.known_changes.load(Ordering::Acquire)
    }

    /// The session with this id, found without the tables.
    pub fn session(&self, id: &Sessionid4) -> Option<Arc<session::Session>> {
        self.sessions.get(id)
    }

    /// What is held on a file and others of its part, for looking.
    pub fn read(&self, file: FileId) -> Look<'_> {
        self.shards.read(self.shards.part_of(file))
    }

    /// What is held on a file and others of its part, for changing.
    pub fn write(&self, file: FileId) -> Change<'_> {
        self.shards.write(self.shards.part_of(file))
    }

    /// The part that a stateid names, for looking.
    pub fn read_of(&self, stateid: &Stateid4) -> Look<'_> {
        self.shards.read(self.shards.part_of_stateid(stateid))
    }

    /// The part that a stateid names, for changing.
    pub fn write_of(&self, stateid: &Stateid4) -> Change<'_> {
        self.shards.write(self.shards.part_of_stateid(stateid))
    }

    /// For looking at clients.
    pub fn clients(&self) -> Look<'_> {
        self.shards.whole()
    }

    /// Everything, for changing.
    pub fn all(&self) -> All<'_> {
        self.shards.all()
    }

    /// Carries something out in every part, one after the other.
    pub fn each_part(&self, mut change: impl FnMut(&mut Change<'_>)) {
        (0..self.shards.len()).for_each(|part| change(&mut self.shards.write(part)));
    }

    /// Clears away what stopped an operation on `file`, which may then be tried again; the error is what remains. Call
    /// it with no lock held.
    pub fn clear(&self, file: FileId, stop: Stop, now: Instant, effects: &mut Effects) -> Result<(), Stop> {
        match stop {
            Stop::Status(_) => Err(stop),
            Stop::Courtesy(_) | Stop::Room(_) => self.all().clear(file, stop, now, effects),
        }
    }

    /// Whether a file may have delegations or deny modes on it: if not, the part's lock need not be taken.
    #[inline]
    pub fn is_guarded(&self, file: FileId) -> bool {
        !self.shards.is_unguarded(self.shards.part_of(file))
    }

    /// Whether a file has delegations on it.
    pub fn delegated(&self, file: FileId) -> bool {
        self.is_guarded(file) && self.read(file).files().delegated(file)
    }

    /// Whether deny modes forbid requests without open state to read or write a file.
    pub fn denied(&self, file: FileId, write: bool) -> bool {
        self.is_guarded(file) && self.read(file).files().denied(file, write)
    }

    /// Whether a file is delegated for writing.
    pub fn write_delegated(&self, file: FileId) -> bool {
        self.delegates_for_writing() && self.is_guarded(file) && self.read(file).files().write_delegated(file)
    }

    /// Whether any file may be delegated for writing.
    pub fn delegates_for_writing(&self) -> bool {
        self.write_delegations.load(Ordering::Acquire)
    }

    /// Counts of what clients hold, for the statistics.
    pub fn report(&self) -> StateReport {
        let mut all = self.all();
        let (clients, files) = all.split();
        let client = |id: ClientId| Nfs4ClientReport {
            name: String::from_utf8_lossy(clients.owner(id).unwrap_or_default()).into_owned(),
            minor_version: clients.minor(id),
            sessions: clients.sessions_of(id).len() as u64,
            delegations: files.delegation_counts(id),
        };
        let counts = files.counts();
        StateReport {
            clients: clients.len() as u64,
            sessions: self.sessions.len() as u64,
            stateids: counts.states as u64,
            owners: counts.owners as u64,
            files: counts.files as u64,
            delegations: files.delegation_totals(),
            waits: self.shards.waits(),
            nfs4_clients: clients.confirmed().into_iter().map(client).collect(),
        }
    }

    /// Called about ten times a second: expires leases, revokes delegations that were not returned, repeats recalls,
    /// ends the grace period.
    pub fn tick(&self, now: Instant) -> Effects {
        let mut effects = Effects::new();
        {
            let mut all = self.all();
            let (clients, files) = all.split();
            clients.tick(files, now, &mut effects);
            files.tick_owners(now, &mut effects);
        }
        self.each_part(|part| {
            let (clients, files) = part.split();
            files.tick_delegations(clients, now, &mut effects);
            files.tick_waiters(now, &mut effects);
        });
        effects
    }

    /// Whether deny modes of NFSv4 opens let a request without open state read or write: LOCKED if not. Clients that
    /// are kept by courtesy give way (RFC 7530 §9.6.3.1).
    pub fn check_deny(
        &self,
        file: FileId,
        write: bool,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(), Nfsstat4> {
        while self.denied(file, write) {
            let share = Share { access: if write { 2 } else { 1 }, deny: 0 };
            // No client's own opens are excepted: which one asks is not known.
            let unknown = ClientId(0);
            let checked = {
                let part = self.read(file);
                part.files().check_share(part.clients(), unknown, file, share, now)
            };
            match checked {
                Ok(()) => break,
                Err(stop) => self.clear(file, stop, now, effects).map_err(|_| Nfsstat4::LOCKED)?,
            }
        }
        Ok(())
    }

    /// Before a request without NFSv4 open state (NFS v2 and v3, or NFSv4 operations such as REMOVE, SETATTR or I/O
    /// with a special stateid) touches a file: recalls conflicting delegations of others than `holder`. `Err(DELAY)`
    /// until they are back (NFSv3: JUKEBOX).
    pub fn check_conflict(
        &self,
        file: FileId,
        conflict: Conflict,
        holder: Option<ClientId>,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(), Nfsstat4> {
        // Most files have no delegation: look before locking for change.
        if !self.delegated(file) {
            return Ok(());
        }
        let mut part = self.write(file);
        let (clients, files) = part.split();
        files.recall_conflicting(clients, file, conflict, holder, now, effects)
    }
}

/// Time that a client's courtesy lasts beyond its lease when no other client conflicts (RFC 7530 §9.6.3.1).
pub const COURTESY: Duration = Duration::from_secs(24 * 3600);
