//! Locks as NLM clients ask for them.

use std::net::IpAddr;

use super::interval::Range;
use crate::handle::FileId;

/// A machine with NLM: its name is its own word, so that it counts only together with the address of its calls.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NlmHost {
    /// Where its calls come from.
    pub address: IpAddr,
    /// What it calls itself (`caller_name`, `mon_name`).
    pub name: Box<[u8]>,
}

/// A process of an NLM client that owns locks.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NlmOwner {
    /// Machine of the client: FREE_ALL and SM_NOTIFY from it drop all its locks.
    pub host: NlmHost,
    /// Lock owner (`oh`), opaque.
    pub oh: Box<[u8]>,
    /// Process id of the owner on the client.
    pub svid: i32,
}

/// A lock that an NLM client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NlmLock {
    /// Locked file.
    pub file: FileId,
    /// Owner of the lock.
    pub owner: NlmOwner,
    /// Locked bytes.
    pub range: Range,
    /// Whether no other lock may overlap.
    pub exclusive: bool,
}

/// A lock that waits, and after [`super::Effect::NlmGranted`] is held: what the callback needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NlmWaiter {
    /// Lock that was asked for.
    pub lock: NlmLock,
    /// Version of NLM that the client speaks.
    pub version: u32,
    /// The way to the client's lock manager.
    pub route: Route,
    /// The file's handle as the client named it.
    pub handle: Box<[u8]>,
    /// Cookie of the LOCK call.
    pub cookie: Box<[u8]>,
}

/// Addresses between which a client and the server talk: clients take callbacks only from the address that they call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Route {
    /// Address of the client.
    pub client: IpAddr,
    /// The server's; unspecified where it is not known.
    pub server: IpAddr,
    /// The client came over TLS: it is not called, as that would be in the clear.
    pub secured: bool,
}
