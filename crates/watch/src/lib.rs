//! What `benchmaster watch` shows: NFS mounts of this host, operation by operation, and a running study, client by client.
//!
//! * [`live`]: the state of a running study, which the runner leaves in the results directory about once a second.
//! * [`mounts`]: what NFS mounts do between two readings of `mountstats`; its view, and its lines for pipes.
//! * [`study`]: the same for a running study.
//!
//! Everything here is a function of what it is given: nothing reads files (but [`live`]), clocks or keys, and nothing
//! prints. The caller owns the terminal.
#![deny(missing_docs)]

pub mod live;
#[cfg(feature = "view")]
pub mod mounts;
#[cfg(feature = "view")]
pub mod study;

#[cfg(feature = "view")]
mod draw;
#[cfg(feature = "view")]
mod keys;
#[cfg(feature = "view")]
mod numbers;
#[cfg(feature = "view")]
mod screen;

#[cfg(feature = "view")]
pub use keys::{Action, Key};
#[cfg(feature = "view")]
pub use screen::Screen;
