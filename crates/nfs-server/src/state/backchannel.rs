//! The back channel of a session: its connections, its slots, and how the client wants to be called
//! (RFC 8881 §2.10.3.1, §18.36.3).

use std::fmt;
use std::sync::Arc;

use benchmaster_nfs_proto::rpc::{AuthFlavor, AuthSys};
use benchmaster_nfs_proto::v4::{CallbackSecParms4, Nfsstat4};
use benchmaster_nfs_proto::xdr::{Decode, Encoder, List};

use super::ConnectionId;
use crate::outbox::Outbox;

/// Most connections of one back channel; the oldest leaves when another comes.
const MAX_CONNECTIONS: usize = 32;
/// Most slots used, whatever the client offers.
const MAX_SLOTS: u32 = 16;

/// Callback parameters and connections of a session.
#[derive(Debug)]
pub struct BackChannel {
    /// RPC program number of callbacks.
    pub program: u32,
    /// Credential that callbacks carry.
    pub credential: Credential,
    /// Largest CB_COMPOUND call in bytes.
    pub max_request: u32,
    /// Minor version that the session was made with, for CB_COMPOUND.
    pub minor: u32,
    connections: Vec<BackConnection>,
    slots: Vec<BackSlot>,
}

/// Credential of callbacks: flavour and body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// Authentication flavour.
    pub flavor: AuthFlavor,
    /// Opaque body of the credential.
    pub body: Vec<u8>,
}

/// A connection that may carry callbacks.
#[derive(Debug, Clone)]
pub struct BackConnection {
    /// Number of the connection.
    pub id: ConnectionId,
    /// Where to put calls.
    pub outbox: Arc<dyn CallSink>,
}

/// The sending end of a connection, for calls to the client.
pub trait CallSink: fmt::Debug + Send + Sync {
    /// Takes an RPC call message (without record mark). `false`: the connection is closed.
    fn send(&self, message: Vec<u8>) -> bool;

    /// Whether the connection still stands.
    fn is_open(&self) -> bool;
}

impl CallSink for Outbox {
    fn send(&self, message: Vec<u8>) -> bool {
        self.send(message)
    }

    fn is_open(&self) -> bool {
        self.is_open()
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct BackSlot {
    /// Of the last call that the client executed.
    sequence: u32,
    busy: bool,
}

/// A slot claimed for a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackClaim {
    /// Slot of the back channel.
    pub slot: u32,
    /// Sequence number of the call.
    pub sequence: u32,
    /// Highest slot in use.
    pub highest: u32,
}

impl BackChannel {
    pub(super) fn new(
        program: u32,
        credential: Credential,
        minor: u32,
        max_request: u32,
        slots: u32,
    ) -> Self {
        let slots = vec![BackSlot::default(); slots.min(MAX_SLOTS) as usize];
        Self { program, credential, max_request, minor, connections: Vec::new(), slots }
    }

    /// Adds a connection; the newest is used first.
    pub(super) fn add(&mut self, connection: BackConnection) {
        if self.has(connection.id) {
            return;
        }
        if self.connections.len() >= MAX_CONNECTIONS {
            self.connections.remove(0);
        }
        self.connections.push(connection);
    }

    /// Whether the connection belongs to the channel.
    pub fn has(&self, id: ConnectionId) -> bool {
        self.connections.iter().any(|known| known.id == id)
    }

    /// Takes a connection out: it is closed or refuses callbacks.
    pub fn remove(&mut self, id: ConnectionId) {
        self.connections.retain(|known| known.id != id);
    }

    /// The connection to use now, if any is open.
    pub fn connection(&mut self) -> Option<BackConnection> {
        self.connections.retain(|known| known.outbox.is_open());
        self.connections.last().cloned()
    }

    /// Takes a free slot.
    pub fn claim(&mut self) -> Option<BackClaim> {
        let free = self.slots.iter().position(|slot| !slot.busy)?;
        let slot = self.slots.get_mut(free)?;
        slot.busy = true;
        let sequence = slot.sequence.wrapping_add(1);
        let highest = self.slots.iter().rposition(|slot| slot.busy).unwrap_or(free);
        Some(BackClaim { slot: free as u32, sequence, highest: highest as u32 })
    }

    /// Gives a slot back; `executed`: the client answered OK to CB_SEQUENCE, so the next call has the next number.
    pub fn release(&mut self, claim: BackClaim, executed: bool) {
        if let Some(slot) = self.slots.get_mut(claim.slot as usize) {
            slot.busy = false;
            if executed {
                slot.sequence = claim.sequence;
            }
        }
    }
}

impl Credential {
    /// AUTH_SYS as the superuser: for clients of 4.0, which name no credential.
    pub fn root() -> Self {
        let machine_name = "nfs-server".into();
        Self::sys(&AuthSys { stamp: 0, machine_name, uid: 0, gid: 0, gids: List::default() })
    }

    fn sys(sys: &AuthSys<'_>) -> Self {
        let mut body = Encoder::new();
        body.put(sys);
        Self { flavor: AuthFlavor::SYS, body: body.buffer().to_vec() }
    }

    /// The one to use of those that a client accepts: AUTH_SYS rather than AUTH_NONE. A list of GSS handles alone is
    /// NOENT (RFC 8881 §18.36.3: this server gave out no such handle); an empty one is taken for AUTH_NONE.
    pub fn choose<'a>(offers: &List<'a, CallbackSecParms4<'a>>) -> Result<Self, Nfsstat4>
    where
        CallbackSecParms4<'a>: Decode<'a>,
    {
        let none = Self { flavor: AuthFlavor::NONE, body: Vec::new() };
        let mut chosen = offers.is_empty().then(|| none.clone());
        for offer in offers.iter() {
            match offer {
                CallbackSecParms4::Sys(sys) => return Ok(Self::sys(&sys)),
                CallbackSecParms4::None => chosen = Some(none.clone()),
                CallbackSecParms4::Gss(_) => {}
            }
        }
        chosen.ok_or(Nfsstat4::NOENT)
    }
}
