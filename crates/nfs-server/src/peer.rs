//! The other end of a connection.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::outbox::Outbox;
use crate::state::ConnectionId;

/// Where requests come from.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Which connection (every datagram of UDP is its own).
    pub connection: ConnectionId,
    /// Address of the client.
    pub address: SocketAddr,
    /// Address of the server on this connection.
    pub local: SocketAddr,
    /// How to send calls to the client over this connection (callbacks of 4.1); `None` for UDP.
    pub outbox: Option<Arc<Outbox>>,
    /// What protects what is said.
    pub protection: Protection,
}

/// What protects a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protection {
    /// Nothing: AUTH_SYS in the clear.
    #[default]
    Plain,
    /// TLS; the client has not shown who it is.
    Tls,
    /// TLS; the client has a certificate of an authority that is trusted.
    MutualTls,
}
