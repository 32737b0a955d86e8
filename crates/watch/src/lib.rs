//! What `benchmaster watch` shows: NFS mounts of this host, operation by operation, and a running study, client by client.
//!
//! * [`mounts`]: what NFS mounts do between two readings of `mountstats`; its view, and its lines for pipes.
//! * [`study`]: the same for a running study, from the state that the runner keeps in the results directory.
//!
//! Everything here is a function of its arguments: nothing reads files, clocks or keys, and nothing prints. The caller
//! owns the terminal.

pub mod mounts;
pub mod study;

mod controls;
mod draw;
mod keys;
mod numbers;
mod screen;

pub use keys::{Action, Key};
pub use screen::Screen;
