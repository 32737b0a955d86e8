//! Why a server cannot start, crash or stop.

use std::io;
use std::net::SocketAddr;

use benchmaster_rpc_tls::TlsError;

use crate::exports::ExportError;
use crate::snapshot::SnapshotError;

/// Why a server cannot start, or cannot crash or stop as it should.
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
    /// Keys or certificates cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// TLS is required where there is none.
    #[error("TLS cannot be required without a certificate: give the server one")]
    NoCertificate,
    /// Kerberos is required where there is none.
    #[error("the flavours krb5, krb5i and krb5p need the server's keys: give the server a keytab")]
    NoKeytab,
    /// Changes cannot be kept without a place.
    #[error("durability needs a state file beside which changes are kept")]
    NoState,
    /// A crash that loses what no server of this configuration loses.
    #[error("this server loses no data with the power: start it with `volatile`")]
    Steady,
    /// A crash of a server that was stopped.
    #[error("the server is stopped: there is nothing to crash")]
    Stopped,
    /// The system gives no epoll, timer, thread or the like.
    #[error("cannot start serving: {0}")]
    System(#[from] io::Error),
}
