//! Why there is no TLS.

use std::io;
use std::path::PathBuf;

use rustls::AlertDescription;

/// What went wrong with TLS.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file of keys or certificates cannot be used.
    #[error("{file}: {problem}", file = path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The name of the server is neither a DNS name nor an address.
    #[error("`{0}` is no name that a certificate can have; write a DNS name or an IP address")]
    Name(String),
    /// rustls refuses the configuration.
    #[error("TLS cannot be set up: {0}")]
    Setup(String),
    /// The server answered the AUTH_TLS probe without STARTTLS: it has no TLS, or something on the way says so (RFC 9289
    /// §6.1.1).
    #[error("the server does not offer TLS ({answer}), and no call is sent without it")]
    NotOffered {
        /// What it answered.
        answer: &'static str,
    },
    /// Our side refuses the peer: its certificate, its protocol.
    #[error("{0}")]
    Refused(Refusal),
    /// The peer refuses us.
    #[error("the peer ended the TLS session ({0})")]
    Alert(&'static str),
    /// A record that does not open: changed on the way, or out of order.
    #[error("a TLS record was changed on the way or does not belong here")]
    Record,
    /// The peer broke the protocol in another way.
    #[error("the peer breaks the TLS protocol: {0}")]
    Protocol(String),
    /// The server ended the connection behind the handshake.
    #[error(
        "the server ends the connection after the handshake, as it does when it does not accept the client's certificate"
    )]
    Dropped,
    /// The connection ended in the middle of the handshake.
    #[error("the connection ended during the TLS handshake")]
    Ended,
}

/// Why a peer was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Its certificate is not signed by an authority that we trust.
    #[error("the certificate is not signed by an authority in the CA file")]
    Issuer,
    /// It has expired, or is not valid yet.
    #[error("the certificate has expired or is not valid yet")]
    Expired,
    /// It has another name.
    #[error("the certificate is for {presented}, not for {expected}")]
    Name {
        /// The name that was asked for.
        expected: String,
        /// Those that it has.
        presented: String,
    },
    /// It did not agree on the protocol `sunrpc`.
    #[error("the peer does not agree on the protocol `sunrpc` (ALPN)")]
    Protocol,
    /// A client without a certificate where one is required.
    #[error("the client presents no certificate")]
    NoCertificate,
    /// The certificate has another fault.
    #[error("the certificate is not accepted: {0}")]
    Certificate(String),
}

impl TlsError {
    /// What can be done about it, at the client.
    pub fn fix(&self) -> &'static str {
        match self {
            Self::File { .. } | Self::Name(_) | Self::Setup(_) => {
                "give readable PEM files: tls_ca, tls_cert, tls_key"
            }
            Self::NotOffered { .. } => {
                "give the server a certificate (`benchmaster serve --tls CERT,KEY`), or ask for xprtsec=none"
            }
            Self::Refused(Refusal::Issuer) => "give the server's CA with tls_ca=FILE",
            Self::Refused(Refusal::Name { .. }) => "use the name in the URL that the certificate has",
            Self::Refused(Refusal::Protocol) => "check that the port is the server's NFS port",
            Self::Refused(_) => "renew the server's certificate",
            Self::Alert(_) | Self::Dropped => {
                "check the client's certificate (xprtsec=mtls, tls_cert, tls_key) against the server's CA"
            }
            Self::Record | Self::Protocol(_) | Self::Ended => {
                "see the server's log, and what is between client and server"
            }
        }
    }

    /// The error inside one of a socket, if it is one.
    pub fn of(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }

    /// An alert of the peer, by its number (RFC 8446 §6).
    pub(crate) fn alert(number: u8) -> Self {
        Self::Alert(AlertDescription::from(number).as_str().unwrap_or("an unknown alert"))
    }

    pub(crate) fn file(path: &std::path::Path, problem: impl ToString) -> Self {
        Self::File { path: path.to_owned(), problem: problem.to_string() }
    }
}

impl From<TlsError> for io::Error {
    /// [`io::ErrorKind::PermissionDenied`] for what will not change by trying again at once; else
    /// [`io::ErrorKind::InvalidData`].
    fn from(error: TlsError) -> Self {
        let kind = match error {
            TlsError::Record | TlsError::Protocol(_) => io::ErrorKind::InvalidData,
            TlsError::Ended => io::ErrorKind::UnexpectedEof,
            _ => io::ErrorKind::PermissionDenied,
        };
        Self::new(kind, error)
    }
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        use rustls::{CertificateError as Bad, Error, InvalidMessage, PeerIncompatible};
        match error {
            Error::InvalidCertificate(bad) => Self::Refused(match bad {
                Bad::UnknownIssuer | Bad::BadSignature => Refusal::Issuer,
                Bad::Expired
                | Bad::ExpiredContext { .. }
                | Bad::NotValidYet
                | Bad::NotValidYetContext { .. } => Refusal::Expired,
                Bad::NotValidForName => {
                    Refusal::Name { expected: "the server's name".into(), presented: "another name".into() }
                }
                Bad::NotValidForNameContext { expected, presented } => {
                    let presented = match &*presented {
                        [] => "no name".to_owned(),
                        names => names.iter().map(|name| readable(name)).collect::<Vec<_>>().join(", "),
                    };
                    Refusal::Name { expected: expected.to_str().into_owned(), presented }
                }
                other => Refusal::Certificate(other.to_string()),
            }),
            Error::NoCertificatesPresented => Self::Refused(Refusal::NoCertificate),
            Error::NoApplicationProtocol => Self::Refused(Refusal::Protocol),
            Error::AlertReceived(alert) => Self::Alert(alert.as_str().unwrap_or("an unknown alert")),
            Error::DecryptError => Self::Record,
            Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
                Self::Protocol("no TLS record".into())
            }
            Error::PeerIncompatible(PeerIncompatible::ServerDoesNotSupportTls12Or13) => {
                Self::Protocol("no TLS 1.3".into())
            }
            other => Self::Protocol(other.to_string()),
        }
    }
}

/// `DnsName("server")`, as rustls has it, without the wrapping.
fn readable(name: &str) -> String {
    let inner = name.split_once('(').map_or(name, |(_, rest)| rest.trim_end_matches(')'));
    inner.trim_matches('"').to_owned()
}
