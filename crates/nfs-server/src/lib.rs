//! In-memory NFS server: v2, v3 (with MOUNT, NLM, portmap), v4.0, v4.1 and v4.2 on one port, with injectable behaviour.
//!
//! The way of a request: [`net`] cuts records out of what one receive brought and hands each to [`dispatch`], which
//! checks the RPC header and calls the program's module (`v2`, `v3`, `v4`, `mount`, `nlm`, `portmap`). These work on
//! [`exports`] (one [`fs::FileSystem`] per export) and [`state`] (clients, sessions, opens, locks, delegations) and
//! append their results to a [`reply::Reply`]; all replies of one receive leave in one vectored send. READ data is
//! never copied: replies refer to the file's reference-counted pages.
//!
//! Locks are taken in this order: session slot → state tables → rename lock → inodes (by ascending number). Nothing is
//! sent while one is held: state changes return [`state::Effects`], which the caller carries out afterwards.

#![deny(missing_docs)]

pub mod arrivals;
pub mod callback;
pub mod config;
pub mod cred;
pub mod disk;
pub mod dispatch;
pub mod error;
pub mod exports;
pub mod fs;
pub mod handle;
pub mod inject;
pub mod moment;
pub mod net;
pub mod outbox;
pub mod peer;
pub mod reply;
pub mod server;
pub mod shared;
pub mod snapshot;
pub mod state;
pub mod stats;

mod call;
mod drc;
mod lives;
mod mailbox;
mod memory;
mod mount;
mod nlm;
mod portmap;
mod stateless;
mod status;
pub mod thread;
pub mod users;
mod v2;
mod v3;
mod v4;
pub mod wal;

pub use config::{ExportConfig, ServerConfig, ServerKerberos};
pub use error::ServerError;
pub use server::{Crash, Loss, Server};
pub use wal::Durability;
