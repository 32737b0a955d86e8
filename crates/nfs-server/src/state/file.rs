//! What clients hold on files: the tables of opens, locks and delegations. (Signatures first.)
#![allow(missing_docs, unused_variables, clippy::todo)]

use std::time::Instant;

use benchmaster_nfs_proto::v4::{Nfsstat4, Stateid4};

use super::client::Clients;
use super::{ClientId, Conflict, Effects};
use crate::config::ServerConfig;
use crate::handle::FileId;

#[derive(Debug)]
pub struct Files {}

/// What a READ, WRITE or SETATTR(size) with a stateid may do, once its stateid is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoRight {
    /// Whose open, lock or delegation it is; `None` for the special stateids.
    pub client: Option<ClientId>,
    /// Whether the caller's permission on the file itself must be checked (special stateids).
    pub check_permission: bool,
}

impl Files {
    pub fn new(config: &ServerConfig) -> Self {
        Self {}
    }

    /// Revokes overdue delegations, repeats recalls.
    pub fn tick(&mut self, clients: &mut Clients, now: Instant, effects: &mut Effects) {}

    /// Whether anyone has a delegation on the file.
    pub fn delegated(&self, file: FileId) -> bool {
        false
    }

    /// Recalls delegations of others than `holder` that conflict; `Err(DELAY)` until they are back.
    pub fn recall_conflicting(
        &mut self,
        clients: &mut Clients,
        file: FileId,
        conflict: Conflict,
        holder: Option<ClientId>,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(), Nfsstat4> {
        todo!()
    }

    /// Checks a stateid for I/O on `file` (RFC 7530 §9.1.4, RFC 8881 §8.2): OLD_STATEID, BAD_STATEID, EXPIRED, OPENMODE,
    /// LOCKED, and deny modes against the special ones. `client` is the session's client (4.1). `write`: WRITE or SETATTR of
    /// the size, else READ.
    pub fn check_io(
        &self,
        clients: &Clients,
        minor: u32,
        client: Option<ClientId>,
        stateid: Stateid4,
        file: FileId,
        write: bool,
        now: Instant,
    ) -> Result<IoRight, Nfsstat4> {
        todo!()
    }

    /// Whether deny modes of NFSv4 opens forbid this I/O to requests without open state (NFS v2 and v3, special stateids).
    pub fn denied(&self, file: FileId, write: bool) -> bool {
        false
    }

    /// Whether a client holds any open, lock or delegation (DESTROY_CLIENTID: CLIENTID_BUSY).
    pub fn client_has_state(&self, client: ClientId) -> bool {
        false
    }

    /// Whether a client holds any delegation (RENEW: CB_PATH_DOWN).
    pub fn client_has_delegations(&self, client: ClientId) -> bool {
        false
    }

    /// Answer to [`super::Effect::Recall`]: the status of CB_RECALL, or CB_PATH_DOWN when the client could not be reached in
    /// time. (Retries for DELAY and lost connections are made by [`crate::callback`] meanwhile.)
    pub fn recall_answered(
        &mut self,
        clients: &mut Clients,
        client: ClientId,
        stateid: Stateid4,
        status: Nfsstat4,
        now: Instant,
        effects: &mut Effects,
    ) {
    }

    /// Drops all that a client holds.
    pub fn purge_client(&mut self, client: ClientId, effects: &mut Effects) {}
}
