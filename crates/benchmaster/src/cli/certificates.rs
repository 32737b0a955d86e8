//! The arguments of `certificates`.

use std::path::PathBuf;

use benchmaster_units::TimeSpan;
use clap::Args;

/// Make certificates to try TLS with
///
/// An authority of its own, a certificate and key for a server, and one for clients: files for `serve --tls`, for the options
/// `tls_ca`, `tls_cert` and `tls_key` of an nfs:// URL, and for other servers and clients of RPC-with-TLS (RFC 9289), such as
/// those of Linux. The authority's key is not kept, so that nothing more can be signed with it.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster certificates tls                     for a server on this host
  benchmaster certificates tls --name filer --name 10.0.0.1 --valid 365d
  benchmaster serve --tls tls/server.pem,tls/server.key --require-tls
  benchmaster serve --tls tls/server.pem,tls/server.key,tls/ca.pem
  benchmaster quick 'nfs://localhost/export?xprtsec=tls&tls_ca=tls/ca.pem'

Files: ca.pem, server.pem, server.key, client.pem, client.key. None is overwritten.")]
pub(crate) struct CertificatesArgs {
    /// Directory for the files; made if it is missing
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// DNS name or IP address by which clients reach the server (repeatable) [default: localhost, 127.0.0.1, ::1]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// How long they are valid
    #[arg(long, value_name = "TIME", default_value = "30d")]
    pub(crate) valid: TimeSpan,
}
