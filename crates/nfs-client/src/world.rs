//! What a reactor takes from outside of its thread: time, chance, and connections. Those of the system, or of a simulation in
//! which whole clients run on virtual time and the same seed gives the same history.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::{Instant, UNIX_EPOCH};

use crate::rpc::Transport;

/// A simulated surrounding of clients. Everything happens on the reactor's thread.
pub trait World: fmt::Debug {
    /// Current virtual time; it stands still except in [`Self::advance`].
    fn now(&self) -> Instant;

    /// The next number of the seed.
    fn random(&self) -> u64;

    /// A socket that is connected to `to`: a stream for TCP, datagrams for UDP, not blocking.
    ///
    /// # Errors
    /// What `connect` would return, such as [`io::ErrorKind::ConnectionRefused`].
    fn connect(&self, to: SocketAddr, transport: Transport) -> io::Result<OwnedFd>;

    /// A socket that listens for connections of the server at `server` (callbacks of version 4.0), and its address.
    ///
    /// # Errors
    /// What `listen` would return.
    fn listen(&self, server: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)>;

    /// No task can go on: lets the next thing happen, at the latest what comes at `timer`, where a task waits for that time.
    /// Moves the time to it.
    ///
    /// # Errors
    /// When nothing will ever happen, which ends the run.
    fn advance(&self, timer: Option<Instant>) -> io::Result<()>;
}

/// A number that no other process draws, nor this one again.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one((UNIX_EPOCH.elapsed().unwrap_or_default(), std::process::id()))
}
