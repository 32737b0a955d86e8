//! State of clients: NFSv4 client records, sessions, opens, byte-range locks, delegations; locks of NLM clients too.
//!
//! A state machine without sockets or clock: time is an argument ([`Instant`] of the monotonic clock), and what has
//! to be done outside (callbacks, releasing files) is returned in [`Effects`], which [`crate::shared::Shared::apply`]
//! carries out after all locks are dropped.

use std::sync::Arc;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::v4::{Nfsstat4, Sessionid4, Stateid4};
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::config::ServerConfig;
use crate::handle::FileId;
use crate::stats::{Nfs4ClientReport, StateReport};

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

pub(crate) mod account;
mod arena;
mod contention;
pub mod delegated;
mod entry;
mod grace;
pub mod held;
pub(crate) mod interval;
pub(crate) mod owner;
pub(crate) mod ranges;
mod slot;
pub(crate) mod waiter;

use client::Clients;
use file::Files;
use open::Share;
use session::Sessions;

/// Short-hand number of a client, given by the server (RFC 7530 §9.1.1, RFC 8881 §2.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u64);

/// A connection, numbered since the server started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u64);

/// All state. Many readers (I/O that names a stateid) or one writer (opens, locks, clients).
#[derive(Debug)]
pub struct State {
    tables: RwLock<Tables>,
    sessions: Arc<Sessions>,
}

/// Clients and what they hold on files.
#[derive(Debug)]
pub struct Tables {
    /// Client records, sessions, leases, grace.
    pub clients: Clients,
    /// Opens, locks and delegations by file and by stateid.
    pub files: Files,
}

/// What a client is called for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Callback {
    /// Whether it answers (CB_NULL): answered by [`Clients::callback_probed`].
    Probe,
    /// To return a delegation (CB_RECALL); answered by [`Files::recall_answered`].
    Recall {
        /// Stateid of the delegation.
        stateid: Stateid4,
        /// Delegated file.
        file: FileId,
        /// Whether the file is about to be truncated to nothing.
        truncate: bool,
    },
    /// For what it, who holds a write delegation, knows better (CB_GETATTR); answered by
    /// [`Files::attributes_answered`].
    GetAttributes {
        /// Stateid of the delegation.
        stateid: Stateid4,
        /// Delegated file.
        file: FileId,
        /// Whether it keeps the times, too.
        times: bool,
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
        let sessions = Arc::new(Sessions::new(boot));
        let clients = Clients::new(config, boot, sessions.clone(), now, known_clients);
        Self { tables: RwLock::new(Tables { clients, files: Files::new(config, boot) }), sessions }
    }

    /// The session with this id, found without the tables.
    pub fn session(&self, id: &Sessionid4) -> Option<Arc<session::Session>> {
        self.sessions.get(id)
    }

    /// The tables, for looking.
    pub fn read(&self) -> RwLockReadGuard<'_, Tables> {
        self.tables.read()
    }

    /// The tables, for changing.
    pub fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        self.tables.write()
    }

    /// Counts of what clients hold, for the statistics.
    pub fn report(&self) -> StateReport {
        let tables = self.read();
        let files = tables.files.counts();
        let client = |id: ClientId| Nfs4ClientReport {
            name: String::from_utf8_lossy(tables.clients.owner(id).unwrap_or_default()).into_owned(),
            minor_version: tables.clients.minor(id),
            sessions: tables.clients.sessions_of(id).len() as u64,
            delegations: tables.files.delegation_counts(id),
        };
        StateReport {
            clients: tables.clients.len() as u64,
            sessions: self.sessions.len() as u64,
            stateids: files.states as u64,
            owners: files.owners as u64,
            files: files.files as u64,
            delegations: tables.files.delegation_totals(),
            nfs4_clients: tables.clients.confirmed().into_iter().map(client).collect(),
        }
    }

    /// Called about ten times a second: expires leases, revokes delegations that were not returned, repeats recalls,
    /// ends the grace period.
    pub fn tick(&self, now: Instant) -> Effects {
        let mut effects = Effects::new();
        let Tables { clients, files } = &mut *self.write();
        clients.tick(files, now, &mut effects);
        files.tick_delegations(clients, now, &mut effects);
        files.tick_waiters(now, &mut effects);
        files.tick_owners(now, &mut effects);
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
        // Hardly anyone denies anything: look before locking for change.
        if !self.read().files.denied(file, write) {
            return Ok(());
        }
        let Tables { clients, files } = &mut *self.write();
        let share = Share { access: if write { 2 } else { 1 }, deny: 0 };
        // Nobody's own opens are excepted: who asks is not known.
        let nobody = ClientId(0);
        files.check_share(clients, nobody, file, share, now, effects).map_err(|_| Nfsstat4::LOCKED)
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
        if !self.read().files.delegated(file) {
            return Ok(());
        }
        let Tables { clients, files } = &mut *self.write();
        files.recall_conflicting(clients, file, conflict, holder, now, effects)
    }
}

/// Time that a client's courtesy lasts beyond its lease when no other client conflicts (RFC 7530 §9.6.3.1).
pub const COURTESY: Duration = Duration::from_secs(24 * 3600);
