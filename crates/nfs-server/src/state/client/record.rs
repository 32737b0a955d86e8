//! What is known of one client.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use benchmaster_nfs_proto::rpc::AuthFlavor;
use benchmaster_nfs_proto::v4::{CreateSessionOk, Nfsstat4, Verifier4};

use crate::cred::Credentials;
use crate::state::lease::Lease;
use crate::state::session::Session;

/// In whose name a client record was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Principal {
    flavor: AuthFlavor,
    uid: u32,
    /// Of Kerberos: it is more than its user number, which several may have.
    principal: u64,
}

impl From<&Credentials> for Principal {
    fn from(who: &Credentials) -> Self {
        Self { flavor: who.flavor, uid: who.uid, principal: who.principal }
    }
}

/// Where and how a client of 4.0 wants to be called (RFC 7530 §16.33).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackTarget {
    /// RPC program number.
    pub program: u32,
    /// Number that the client recognises its own request by.
    pub ident: u32,
    /// Network id, such as `tcp`, as the client gave it.
    pub netid: Vec<u8>,
    /// Universal address, as given.
    pub universal: Vec<u8>,
    /// The address to connect to; `None` where there is none, or where it is not one of the client's.
    pub address: Option<SocketAddr>,
}

/// A client record.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) lease: Arc<Lease>,
    pub(super) owner: Vec<u8>,
    /// Where it was made from.
    pub(super) host: IpAddr,
    pub(super) verifier: Verifier4,
    pub(super) principal: Principal,
    pub(super) confirmed: bool,
    pub(super) kind: Kind,
}

/// What depends on the minor version.
#[derive(Debug)]
pub(super) enum Kind {
    /// 4.0.
    Setclientid(Setclientid),
    /// 4.1 and 4.2.
    Session(Sessioned),
}

/// State of a client of 4.0.
#[derive(Debug)]
pub(super) struct Setclientid {
    /// The `setclientid_confirm` that confirms, or confirmed, the record.
    pub(super) confirm: Verifier4,
    pub(super) callback: CallbackTarget,
    pub(super) callback_up: bool,
    /// A new callback, and the verifier that will confirm it.
    pub(super) update: Option<(CallbackTarget, Verifier4)>,
}

/// State of a client with sessions.
#[derive(Debug)]
pub(super) struct Sessioned {
    pub(super) sessions: Vec<Arc<Session>>,
    /// Sequence number of the last CREATE_SESSION, and its result (RFC 8881 §18.36.4).
    pub(super) sequence: u32,
    pub(super) created: Result<CreateSessionOk, Nfsstat4>,
    pub(super) reclaim_complete: bool,
}

impl Kind {
    pub(super) fn minor(&self) -> usize {
        match self {
            Self::Setclientid(_) => 0,
            Self::Session(_) => 1,
        }
    }
}
