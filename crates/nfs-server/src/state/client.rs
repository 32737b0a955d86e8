//! Client records: SETCLIENTID and EXCHANGE_ID, leases, expiry, grace. (Signatures first.)
#![allow(missing_docs, unused_variables, clippy::todo)]

use std::time::Instant;

use benchmaster_nfs_proto::v4::Nfsstat4;

use super::file::Files;
use super::{ClientId, Effects};
use crate::config::ServerConfig;

#[derive(Debug)]
pub struct Clients {}

impl Clients {
    pub fn new(config: &ServerConfig, now: Instant, known: Vec<Vec<u8>>) -> Self {
        Self {}
    }

    /// Expires leases and ends the grace period.
    pub fn tick(&mut self, files: &mut Files, now: Instant, effects: &mut Effects) {}

    /// A confirmed client with a live (or courtesy) lease.
    pub fn check(&self, id: ClientId) -> Result<(), Nfsstat4> {
        todo!()
    }

    /// Renews the lease of a client (any operation with its state does).
    pub fn renew(&self, id: ClientId, now: Instant) {}

    /// Whether callbacks can reach the client: condition of granting a delegation.
    pub fn callback_up(&self, id: ClientId) -> bool {
        todo!()
    }

    /// 0 for clients made by SETCLIENTID, 1 for those made by EXCHANGE_ID.
    pub fn minor(&self, id: ClientId) -> u32 {
        todo!()
    }

    /// Whether the lease ran out and the client's state is kept only by courtesy: state that conflicts with another
    /// client's request is then dropped with [`Clients::expire`].
    pub fn is_courtesy(&self, id: ClientId, now: Instant) -> bool {
        todo!()
    }

    /// Drops a client and all its state.
    pub fn expire(&mut self, files: &mut Files, id: ClientId, effects: &mut Effects) {}

    /// Whether the grace period lasts (opens and locks other than reclaims get GRACE).
    pub fn in_grace(&self) -> bool {
        false
    }

    /// Whether this client may reclaim now (known from before the restart, has not completed).
    pub fn may_reclaim(&self, id: ClientId) -> Result<(), Nfsstat4> {
        todo!()
    }

    /// Answer to [`super::Effect::Probe`].
    pub fn callback_probed(&mut self, id: ClientId, up: bool) {}

    /// A delegation of the client was revoked, or freed: status flags of SEQUENCE (RFC 8881 §18.46.3).
    pub fn revoked_delegations(&mut self, id: ClientId, count: usize) {}
}
