//! What happened, in order.

use std::time::Duration;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Line {
    /// Time since the beginning.
    pub at: Duration,
    /// Who did it.
    pub who: Who,
    /// What it was.
    pub what: String,
}

/// Where something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Who {
    /// In a client.
    Client(u8),
    /// On the way from a client to the server.
    ToServer(u8),
    /// On the way from the server to a client.
    ToClient(u8),
    /// In the server.
    Server,
    /// By the scenario.
    Fault,
}
