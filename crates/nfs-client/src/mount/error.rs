//! Why an export could not be mounted.

use std::io;
use std::net::SocketAddr;

use benchmaster_nfs_proto::mount::Mountstat3;
use benchmaster_nfs_proto::rpc::AuthStat;
use benchmaster_rpc_gss::GssError;
use benchmaster_rpc_tls::TlsError;

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
    #[error("cannot resolve NFS server `{host}` ({error}); check the name, or give its address")]
    Resolve {
        /// Host name as given.
        host: String,
        /// Cause.
        error: io::Error,
    },
    /// No connection to the server could be made.
    #[error("NFS server {server} cannot be reached ({error}); {fix}")]
    Connect {
        /// Host and port of the server.
        server: String,
        /// Cause.
        error: io::Error,
        /// What the user can do about it.
        fix: &'static str,
    },
    /// Server and client do not come to a TLS session; nothing was sent without it.
    #[error("NFS server {server} cannot be reached over TLS: {error}; {fix}")]
    Tls {
        /// Host and port of the server.
        server: String,
        /// Cause.
        error: TlsError,
        /// What the user can do about it.
        fix: &'static str,
    },
    /// Server and client do not come to a context of Kerberos; nothing was called without it.
    #[error("NFS server {server} cannot be used with Kerberos: {error}; {fix}")]
    Kerberos {
        /// Host and port of the server.
        server: String,
        /// Cause.
        error: GssError,
        /// What the user can do about it.
        fix: &'static str,
    },
    /// An address given in `addresses` cannot be used in one session with the first one.
    #[error("{address} cannot be used beside {server}: {error}; remove it from `addresses`")]
    Trunk {
        /// The address.
        address: SocketAddr,
        /// Host and port of the server.
        server: String,
        /// Cause.
        error: NfsError,
    },
    /// The server, or something on the way to the export, said no.
    #[error("{export} of NFS server {server} cannot be mounted with version {version}: {error}; {fix}")]
    Refused {
        /// Host and port of the server.
        server: String,
        /// Path of the export.
        export: String,
        /// NFS version as in the options.
        version: &'static str,
        /// Cause.
        error: NfsError,
        /// What the user can do about it.
        fix: &'static str,
    },
}

impl MountError {
    /// No connection to a server.
    pub(crate) fn connect(options: &MountOptions, error: io::Error) -> Self {
        if let Some(error) = TlsError::of(&error) {
            return Self::tls(options, error.clone());
        }
        if let Some(error) = error.get_ref().and_then(|inner| inner.downcast_ref::<GssError>()) {
            return Self::kerberos(options, error.clone());
        }
        let fix = match error.kind() {
            io::ErrorKind::ConnectionRefused => {
                "start the server, or give its port as nfs://server:PORT/export"
            }
            io::ErrorKind::TimedOut => "check the address and any firewall in between",
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => "check address and routes",
            _ => "check address and port",
        };
        Self::Connect { server: server(options), error, fix }
    }

    /// No session with a server over one of its addresses.
    pub(crate) fn trunk(options: &MountOptions, address: SocketAddr, error: NfsError) -> Self {
        Self::Trunk { address, server: server(options), error }
    }

    /// No TLS with a server.
    pub(crate) fn tls(options: &MountOptions, error: TlsError) -> Self {
        let fix = error.fix();
        Self::Tls { server: server(options), error, fix }
    }

    /// No context of Kerberos with a server.
    pub(crate) fn kerberos(options: &MountOptions, error: GssError) -> Self {
        let fix = match error {
            GssError::NoLibrary { .. } => "without it, use sec=sys",
            _ => {
                "check the keytab or `klist`, the realm in krb5.conf (or in the file that KRB5_CONFIG names), and the server's name (krb5_server)"
            }
        };
        Self::Kerberos { server: server(options), error, fix }
    }

    /// No place to listen for callbacks (version 4.0).
    pub(crate) fn callbacks(options: &MountOptions, error: io::Error) -> Self {
        let fix = "version 4.0 needs a port for callbacks; version=4.1 does not";
        Self::Connect { server: server(options), error, fix }
    }

    /// The server said no.
    pub(crate) fn refused(options: &MountOptions, error: NfsError) -> Self {
        const WRONG_EXPORT: &str = "check the path of the export: it is what the server calls it";
        const ACCESS: &str = "export it to this host and user, with the option `insecure`";
        const VERSION: &str = "choose a version that the server supports: version=3, 4.0, 4.1, 4.2";
        const TOO_WEAK: &str =
            "the server asks for TLS or Kerberos: add xprtsec=tls and tls_ca=FILE, or sec=krb5p";
        const SECURITY: &str = "mount it with one of those";
        const SILENT: &str =
            "the server accepted the connection but does not reply; check that it is an NFS server";
        let fix = match error {
            NfsError::Rpc(RpcError::Denied(AuthStat::TOOWEAK)) => TOO_WEAK,
            NfsError::WrongSecurity { .. } => SECURITY,
            NfsError::Rpc(RpcError::VersionMismatch { .. } | RpcError::ProgramUnavailable(_)) => VERSION,
            NfsError::V4(status) if status.0 == MINOR_VERS_MISMATCH => VERSION,
            NfsError::Rpc(RpcError::Denied(_)) | NfsError::Mount(Mountstat3::ACCES | Mountstat3::PERM) => {
                ACCESS
            }
            NfsError::Rpc(RpcError::TimedOut) => SILENT,
            _ => match error.errno() {
                libc::ENOENT | libc::ENOTDIR => WRONG_EXPORT,
                libc::EACCES | libc::EPERM => ACCESS,
                _ => "see the server's log",
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
    if options.host.contains(':') {
        format!("[{}]:{}", options.host, options.nfs_port())
    } else {
        format!("{}:{}", options.host, options.nfs_port())
    }
}
