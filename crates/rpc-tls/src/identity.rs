//! Who we are and whom we trust, from PEM files.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig, version};

use crate::ALPN;
use crate::error::TlsError;

/// Files of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFiles {
    /// Certificates of the authorities whose servers are trusted.
    pub ca: PathBuf,
    /// The client's own certificate, its issuers behind it, and its private key: with them the client authenticates itself.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Files of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerFiles {
    /// The server's certificate, its issuers behind it.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Certificates of the authorities whose clients are trusted: with them, a client without such a certificate is
    /// refused.
    pub ca: Option<PathBuf>,
}

/// What a client needs for TLS with one server. Clones share the tickets with which sessions are resumed.
#[derive(Debug, Clone)]
pub struct ClientTls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) name: ServerName<'static>,
}

/// What a server needs for TLS.
#[derive(Debug, Clone)]
pub struct ServerTls {
    pub(crate) config: Arc<ServerConfig>,
}

/// Tickets that a client keeps; a server gives two for each full handshake.
const TICKETS: usize = 256;

impl ClientTls {
    /// Reads the files; `host` is the name or address of the server, which its certificate must have among its subject
    /// alternative names (RFC 9289 §5.2.1).
    ///
    /// # Errors
    /// [`TlsError::File`] when a file cannot be read or does not contain what it should, [`TlsError::Name`].
    pub fn new(host: &str, files: &ClientFiles) -> Result<Self, TlsError> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(host.to_owned()))?;
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&version::TLS13])
            .map_err(setup)?
            .with_root_certificates(roots(&files.ca)?);
        let mut config = match &files.identity {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => builder
                .with_client_auth_cert(certificates(cert)?, private_key(key)?)
                .map_err(|error| TlsError::file(cert, unfit(&error)))?,
        };
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.enable_secret_extraction = true;
        config.resumption = Resumption::in_memory_sessions(TICKETS);
        Ok(Self { config: Arc::new(config), name })
    }
}

impl ServerTls {
    /// Reads the files.
    ///
    /// # Errors
    /// [`TlsError::File`] when a file cannot be read or does not contain what it should.
    pub fn new(files: &ServerFiles) -> Result<Self, TlsError> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&version::TLS13])
            .map_err(setup)?;
        let builder = match &files.ca {
            None => builder.with_no_client_auth(),
            Some(ca) => {
                let roots = Arc::new(roots(ca)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| TlsError::file(ca, error))?)
            }
        };
        let mut config = builder
            .with_single_cert(certificates(&files.cert)?, private_key(&files.key)?)
            .map_err(|error| TlsError::file(&files.cert, unfit(&error)))?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        config.enable_secret_extraction = true;
        config.ticketer = ring::Ticketer::new().map_err(setup)?;
        Ok(Self { config: Arc::new(config) })
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn setup(error: impl ToString) -> TlsError {
    TlsError::Setup(error.to_string())
}

fn unfit(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InconsistentKeys(_) => "the private key is not the one of this certificate".into(),
        other => other.to_string(),
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let found: Vec<_> = read.map_err(|error| TlsError::file(path, unreadable(&error)))?;
    if found.is_empty() {
        return Err(TlsError::file(path, "has no certificate in PEM form (-----BEGIN CERTIFICATE-----)"));
    }
    Ok(found)
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| {
        TlsError::file(
            path,
            match error {
                rustls::pki_types::pem::Error::NoItemsFound => {
                    "has no private key in PEM form (-----BEGIN PRIVATE KEY-----)".to_owned()
                }
                other => unreadable(&other),
            },
        )
    })
}

fn unreadable(error: &rustls::pki_types::pem::Error) -> String {
    match error {
        rustls::pki_types::pem::Error::Io(error) => error.to_string(),
        other => format!("is no PEM file: {other}"),
    }
}

fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| TlsError::file(path, error))?;
    }
    Ok(roots)
}
