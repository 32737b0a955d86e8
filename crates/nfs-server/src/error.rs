//! Why a server cannot start or stop.

use std::io;
use std::net::SocketAddr;

use crate::exports::ExportError;
use crate::snapshot::SnapshotError;

/// Why a server cannot start, or cannot stop as it should.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// An address cannot be listened on.
    #[error("cannot listen on {protocol} {address}: {source}")]
    Listen {
        /// `TCP` or `UDP`.
        protocol: &'static str,
        /// Address as configured.
        address: SocketAddr,
        /// Cause.
        source: io::Error,
    },
    /// The exports make no name space.
    #[error(transparent)]
    Exports(#[from] ExportError),
    /// State cannot be read or written.
    #[error(transparent)]
    State(#[from] SnapshotError),
    /// The system gives no epoll, timer, thread or the like.
    #[error("cannot start serving: {0}")]
    System(#[from] io::Error),
}
