//! A user-space NFS client: every version, data and metadata, with sessions, locks and delegations, for load and for
//! measurement.
//!
//! * [`reactor`]: one thread's tasks, timers and sockets.
//! * [`rpc`]: calls over connections that come back by themselves, every one of them counted.
//! * [`counters`]: what was called, as Linux' `mountstats` counts it, and every recovery.
//! * [`delay`]: pauses before a call is made again.
//! * [`options`]: where an export is and how it is used, as a URL.
//! * [`mount`]: a mounted export: paths, open files, data, whatever the version.
//! * [`buffer`]: memory whose data a mount keeps without a copy.
//! * [`cache`]: what is kept of files between calls, as Linux does it.
//! * [`world`]: time, chance and connections, those of the system or of a simulation.
//! * [`protocol`]: the operations that every version has, and what they are made of ([`types`], [`error`]).
#![deny(missing_docs)]

pub mod buffer;
pub mod cache;
mod connect;
pub mod counters;
pub mod delay;
pub mod error;
mod hash;
mod listing;
pub mod mount;
mod mountd;
pub mod nlm;
pub mod ops;
pub mod options;
mod portmap;
pub mod protocol;
pub mod reactor;
pub mod rpc;
mod stateless;
pub mod types;
pub mod v2;
pub mod v3;
pub mod v4;
pub mod world;
