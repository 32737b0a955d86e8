//! A running server: shared parts, start and stop. (Signatures first.)

use std::net::SocketAddr;

use crate::callback::Callbacks;
use crate::config::ServerConfig;
use crate::drc::ReplyCache;
use crate::exports::Exports;
use crate::inject::Injector;
use crate::mount::Mounts;
use crate::nlm::{LockCallbacks, Shares};
use crate::state::{Effect, Effects, State};
use crate::stats::Statistics;

/// What all threads of a server share.
#[derive(Debug)]
pub struct Shared {
    /// As started.
    pub config: ServerConfig,
    /// Files.
    pub exports: Exports,
    /// Clients.
    pub state: State,
    /// Calls to clients: a thread of the server runs [`Callbacks::run`], and REPLY records go to [`Callbacks::reply`].
    pub callbacks: Callbacks,
    /// Injected behaviour.
    pub injector: Injector,
    /// Counters.
    pub statistics: Statistics,
    /// Replies to requests that must not be executed twice.
    pub replies: ReplyCache,
    /// Mounts that clients told of.
    pub(crate) mounts: Mounts,
    /// DOS share modes of NLM clients.
    pub(crate) shares: Shares,
    /// Calls to lock managers of clients: locks granted after waiting.
    pub(crate) lock_callbacks: LockCallbacks,
    /// Number of this server in its handles; the same after a restart with state.
    pub instance: u32,
    /// Differs at every start: verifier of WRITE and COMMIT, part of client ids and stateids.
    pub boot: u64,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Shared {
    /// Carries out what state changes asked for. Call it with no lock held.
    pub fn apply(&self, effects: &mut Effects) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Release(id) => {
                    if let Ok((fs, node)) = self.exports.file(id) {
                        fs.release(node);
                    }
                }
                Effect::NlmGranted(waiter) => self.lock_callbacks.granted(&waiter),
                callback => self.callbacks.submit(callback),
            }
        }
    }
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {}

/// A running server; dropping it stops it.
#[derive(Debug)]
pub struct Server {}
