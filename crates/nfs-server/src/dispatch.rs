//! From a record to a reply: RPC header, authentication, injected behaviour, program, version, procedure, statistics.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::fs::Time;
use crate::net::Outbox;
use crate::reply::Reply;
use crate::server::Shared;
use crate::state::ConnectionId;

/// One reading of both clocks, shared by all requests of a receive.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Monotonic: leases, timers.
    pub instant: Instant,
    /// Wall clock: file times.
    pub wall: Time,
}

/// Where requests come from.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Which connection (every datagram of UDP is its own).
    pub connection: ConnectionId,
    /// Remote address.
    pub address: SocketAddr,
    /// Local address.
    pub local: SocketAddr,
    /// How to send calls to the client over this connection (callbacks of 4.1); `None` for UDP.
    pub outbox: Option<Arc<Outbox>>,
}

/// What to do with what was appended to the reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// Send it with the others (nothing may have been appended: a message that gets no reply).
    Send,
    /// Send it after so long.
    Hold(Duration),
    /// Take it back: the reply is lost (injected).
    Drop,
    /// Close the connection, unsent.
    Disconnect,
}

/// Handles one RPC message (without record mark): appends the reply message (without record mark) to `reply`.
#[allow(unused_variables, clippy::todo)] // Signatures first.
pub fn handle(server: &Shared, peer: &Peer, message: &[u8], reply: &mut Reply, now: Moment) -> Disposition {
    todo!()
}
