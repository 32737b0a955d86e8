//! Why an export could not be mounted.

use std::io;

use benchmaster_nfs_proto::mount::Mountstat3;

use crate::error::NfsError;
use crate::options::{MountOptions, OptionError};
use crate::rpc::RpcError;

/// Why an export could not be mounted: names it, and says what to do.
#[derive(Debug, thiserror::Error)]
pub enum MountError {
    /// The options are wrong.
    #[error(transparent)]
    Options(#[from] OptionError),
    /// The server's name has no address.
    #[error("NFS server `{host}` is not found ({error}); check the name, or give its address")]
    Resolve {
        /// The name.
        host: String,
        /// Why.
        error: io::Error,
    },
    /// No connection.
    #[error("NFS server {server} cannot be reached ({error}); {fix}")]
    Connect {
        /// Name and port.
        server: String,
        /// Why.
        error: io::Error,
        /// What to do.
        fix: &'static str,
    },
    /// The server, or something on the way to the export, said no.
    #[error("{export} of NFS server {server} cannot be mounted with version {version}: {error}; {fix}")]
    Refused {
        /// Name and port.
        server: String,
        /// Path of the export.
        export: String,
        /// The version.
        version: &'static str,
        /// Why.
        error: NfsError,
        /// What to do.
        fix: &'static str,
    },
}

impl MountError {
    /// No connection to a server.
    pub(crate) fn connect(options: &MountOptions, error: io::Error) -> Self {
        let fix = match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                "start the server, or give its port as nfs://server:PORT/export"
            }
            io::ErrorKind::TimedOut => "check the address, and that no firewall is between",
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "check address and routes",
            _ => "check address and port",
        };
        Self::Connect { server: server(options), error, fix }
    }

    /// No place to listen for callbacks (version 4.0).
    pub(crate) fn callbacks(options: &MountOptions, error: io::Error) -> Self {
        let fix = "a port is needed for its callbacks; version=4.1 needs none";
        Self::Connect { server: server(options), error, fix }
    }

    /// The server said no.
    pub(crate) fn refused(options: &MountOptions, error: NfsError) -> Self {
        const WRONG_EXPORT: &str = "check the path of the export: it is what the server calls it";
        const ACCESS: &str =
            "let the server export it to this host and user, without asking for a privileged port";
        const VERSION: &str = "choose a version that it serves: version=3, 4.0, 4.1, 4.2";
        const SILENT: &str =
            "the server took the connection and does not answer; check that it is an NFS server";
        let fix = match error {
            NfsError::Rpc(RpcError::VersionMismatch { .. } | RpcError::ProgramUnavailable(_)) => VERSION,
            NfsError::V4(status) if status.0 == MINOR_VERS_MISMATCH => VERSION,
            NfsError::Rpc(RpcError::Denied(_)) | NfsError::Mount(Mountstat3::ACCES | Mountstat3::PERM) => {
                ACCESS
            }
            NfsError::Rpc(RpcError::TimedOut) => SILENT,
            _ => match error.errno() {
                libc::ENOENT | libc::ENOTDIR => WRONG_EXPORT,
                libc::EACCES | libc::EPERM => ACCESS,
                _ => "look into the server's log",
            },
        };
        Self::Refused {
            server: server(options),
            export: String::from_utf8_lossy(&options.export).into_owned(),
            version: options.version.name(),
            error,
            fix,
        }
    }
}

/// NFS4ERR_MINOR_VERS_MISMATCH (RFC 7530 §13.1.7).
const MINOR_VERS_MISMATCH: u32 = 10021;

fn server(options: &MountOptions) -> String {
    match options.host.contains(':') {
        true => format!("[{}]:{}", options.host, options.nfs_port()),
        false => format!("{}:{}", options.host, options.nfs_port()),
    }
}
