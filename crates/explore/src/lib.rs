//! Faults drawn from a seed: the NFS client and server of this project on virtual time, in one thread, with a simulated
//! network, and an oracle that knows what must be true.
//!
//! * [`scenario`]: what clients do and what goes wrong, drawn from a seed.
//! * `simulation`: time, network and server; a [`World`](benchmaster_nfs_client::world::World) of the clients.
//! * `actor`: a client that carries its operations out and tells the oracle.
//! * `oracle`: what was promised, and what may be seen.
//! * [`run()`]: one scenario from beginning to end.
//! * [`shrink`]: the smallest scenario that still fails.
//! * [`study`]: faults of a study in the lab, which has the real Linux client and server.
//!
//! After FoundationDB's and TigerBeetle's simulators: time and chance are arguments of everything below, so that a seed gives
//! the same history, byte for byte.
#![deny(missing_docs)]

mod actor;
mod history;
mod oracle;
pub mod run;
pub mod scenario;
pub mod shrink;
mod simulation;
pub mod study;
mod wire;

pub use run::{Outcome, Violation, run, run_tampered};
pub use scenario::Scenario;
