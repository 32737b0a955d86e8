//! The handshake, by rustls, without a socket.

use std::time::{Duration, Instant};

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{CommonState, HandshakeKind};

use crate::ALPN;
use crate::error::{Refusal, TlsError};
use crate::identity::{ClientTls, ServerTls};
use crate::record::{Cipher, whole};
use crate::session::{Facts, Kernel, Session};

/// Most bytes of a handshake, and of what comes right behind it. Chains of certificates are a few KiB.
const MOST: usize = 128 << 10;

/// A handshake under way: what is received goes in, what is to be sent comes out.
#[derive(Debug)]
pub struct Handshake {
    role: Role,
    input: Vec<u8>,
    /// Bytes at the front of `input` that rustls has seen: whole records, one more at a time, so that what follows the
    /// handshake stays here.
    shown: usize,
    output: Vec<u8>,
    busy: Duration,
}

enum Role {
    Client(Box<UnbufferedClientConnection>),
    Server(Box<UnbufferedServerConnection>),
}

impl std::fmt::Debug for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Client(_) => "Client",
            Self::Server(_) => "Server",
        })
    }
}

/// How far a handshake is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It needs more from the peer.
    More,
    /// It is done, once its output has been sent.
    Done,
}

/// What rustls wants next.
enum Wish {
    Again,
    Input,
    Nothing,
}

impl Handshake {
    /// A client's. [`Self::advance`] with nothing makes the first message.
    ///
    /// # Errors
    /// [`TlsError::Setup`].
    pub fn client(tls: &ClientTls) -> Result<Self, TlsError> {
        let connection = UnbufferedClientConnection::new(tls.config.clone(), tls.name.clone())?;
        Ok(Self::new(Role::Client(Box::new(connection))))
    }

    /// A server's.
    ///
    /// # Errors
    /// [`TlsError::Setup`].
    pub fn server(tls: &ServerTls) -> Result<Self, TlsError> {
        Ok(Self::new(Role::Server(Box::new(UnbufferedServerConnection::new(tls.config.clone())?))))
    }

    fn new(role: Role) -> Self {
        Self { role, input: Vec::new(), shown: 0, output: Vec::new(), busy: Duration::ZERO }
    }

    /// What is to be sent. There may be something after an error, too: the alert that tells the peer.
    pub fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output
    }

    /// Takes what was received.
    ///
    /// # Errors
    /// Why the handshake fails.
    pub fn advance(&mut self, received: &[u8]) -> Result<Step, TlsError> {
        let began = Instant::now();
        self.input.extend_from_slice(received);
        let step = self.run();
        self.busy += began.elapsed();
        if step.is_err() {
            // The alert.
            let _ = self.wish();
        }
        step
    }

    fn run(&mut self) -> Result<Step, TlsError> {
        loop {
            match self.wish()? {
                Wish::Again => {}
                Wish::Nothing => return Ok(Step::Done),
                Wish::Input => match whole(&self.input[self.shown..])? {
                    Some(len) => self.shown += len,
                    None if self.input.len() > MOST => {
                        return Err(TlsError::Protocol("a handshake that is too long".into()));
                    }
                    None => return Ok(Step::More),
                },
            }
        }
    }

    fn wish(&mut self) -> Result<Wish, TlsError> {
        let shown = &mut self.input[..self.shown];
        let (discard, wish) = match &mut self.role {
            Role::Client(connection) => wish(connection.process_tls_records(shown), &mut self.output),
            Role::Server(connection) => wish(connection.process_tls_records(shown), &mut self.output),
        };
        self.input.drain(..discard);
        self.shown -= discard;
        wish
    }

    /// What came behind the handshake.
    #[cfg(test)]
    pub(crate) fn input_of_session(&mut self, received: &[u8]) {
        self.input.extend_from_slice(received);
    }

    /// The session, after [`Step::Done`].
    ///
    /// # Errors
    /// When the peers did not agree on `sunrpc`, or the keys cannot be had.
    pub fn finish(self) -> Result<Session, TlsError> {
        let state: &CommonState = match &self.role {
            Role::Client(connection) => connection,
            Role::Server(connection) => connection,
        };
        if state.alpn_protocol() != Some(ALPN) {
            return Err(TlsError::Refused(Refusal::Protocol));
        }
        let resumed = state.handshake_kind() == Some(HandshakeKind::Resumed);
        let certified = state.peer_certificates().is_some();
        let (secrets, kernel) = match self.role {
            Role::Client(connection) => {
                let (secrets, kernel) = connection.dangerous_into_kernel_connection()?;
                (secrets, Kernel::Client(kernel))
            }
            Role::Server(connection) => {
                let (secrets, kernel) = connection.dangerous_into_kernel_connection()?;
                (secrets, Kernel::Server(kernel))
            }
        };
        let suite = kernel.suite();
        let facts = Facts {
            suite: suite.suite().as_str().unwrap_or("unknown"),
            resumed,
            peer_certified: certified,
            busy: self.busy,
        };
        let limit = suite.tls13().map_or(u64::MAX, |suite| suite.common.confidentiality_limit);
        let ciphers = (Cipher::new(secrets.tx)?, Cipher::new(secrets.rx)?);
        Session::new(ciphers, kernel, facts, limit / 2, &self.input[self.shown..])
    }
}

/// What rustls wants; what it has to send is appended to `output`.
fn wish<D>(status: UnbufferedStatus<'_, '_, D>, output: &mut Vec<u8>) -> (usize, Result<Wish, TlsError>) {
    let wish = match status.state {
        Err(error) => Err(error.into()),
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            let from = output.len();
            let encoded = match data.encode(&mut []) {
                Err(EncodeError::InsufficientSize(needed)) => {
                    output.resize(from + needed.required_size, 0);
                    data.encode(&mut output[from..])
                }
                other => other,
            };
            encoded.map(|_| Wish::Again).map_err(|error| TlsError::Setup(error.to_string()))
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            // All of `output` is sent before anything else.
            data.done();
            Ok(Wish::Again)
        }
        Ok(ConnectionState::BlockedHandshake) => Ok(Wish::Input),
        Ok(ConnectionState::WriteTraffic(_)) => Ok(Wish::Nothing),
        Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Err(TlsError::Ended),
        Ok(_) => Err(TlsError::Protocol("data before the end of the handshake".into())),
    };
    (status.discard, wish)
}
