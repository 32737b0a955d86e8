//! RPC-with-TLS (RFC 9289): who the peers are, the handshake, and records of TLS 1.3 on a socket.
//!
//! rustls makes the handshake and keeps the tickets; then it hands over the traffic keys ([`rustls::kernel`]), and
//! [`Session`] seals and opens the records itself. Data of a READ go from the pages of a file into the record that is
//! encrypted in place, and from the record that was decrypted in place to where the caller wants them: one copy at each end.
//!
//! Only TLS 1.3, only with the protocol name `sunrpc` (RFC 9289 §5), never with early data (§6).

mod certificates;
mod error;
mod handshake;
mod identity;
mod probe;
mod record;
mod session;
mod spare;

pub use self::certificates::{Authority, CA_FILE, CLIENT_FILES, Lifetime, Maker, Pem, SERVER_FILES};
pub use self::error::{Refusal, TlsError};
pub use self::handshake::{Handshake, Step};
pub use self::identity::{ClientFiles, ClientTls, ServerFiles, ServerTls};
pub use self::probe::{answer, is_probe, null, probe, reply_to_probe};
pub use self::session::{Facts, Session, Traffic};

/// The name of RPC in the application-layer protocol negotiation (RFC 9289 §7.2).
pub const ALPN: &[u8] = b"sunrpc";

#[cfg(test)]
mod tests;
