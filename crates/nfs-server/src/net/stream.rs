//! The socket of a connection, and the TLS on it.

use std::io::{self, IoSlice, IoSliceMut};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};

use benchmaster_rpc_tls::{Handshake, ServerTls, Session, Step, TlsError};
use rustix::io::Errno;
use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

use super::connection::Received;
use crate::peer::Protection;

/// Most bytes taken at a time during a handshake.
const HANDSHAKE: usize = 16 << 10;

#[derive(Debug)]
pub(super) struct Stream {
    socket: TcpStream,
    security: Security,
}

#[derive(Debug)]
enum Security {
    Plain,
    /// The client may start TLS: nothing else leaves before it is there.
    Shaking(Box<Handshake>),
    Tls(Box<Session>),
}

impl Stream {
    pub(super) fn new(socket: TcpStream) -> Self {
        Self { socket, security: Security::Plain }
    }

    /// Sends from the front of `pieces`; `None`: there is no room now.
    pub(super) fn send(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        match &mut self.security {
            Security::Plain => {
                match sendmsg(&self.socket, pieces, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)
                {
                    Ok(taken) => Ok(Some(taken)),
                    Err(Errno::INTR) => Ok(Some(0)),
                    Err(Errno::AGAIN) => Ok(None),
                    Err(error) => Err(error.into()),
                }
            }
            Security::Shaking(_) => Ok(None),
            Security::Tls(session) => session.send(&self.socket, pieces),
        }
    }

    /// Sends what was taken and is still here; whether all of it left.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        match &mut self.security {
            Security::Plain | Security::Shaking(_) => Ok(true),
            Security::Tls(session) => session.flush(&self.socket),
        }
    }

    /// Whether something that was taken waits for room in the socket.
    pub(super) fn is_sending(&self) -> bool {
        matches!(&self.security, Security::Tls(session) if session.is_sending())
    }

    /// Whether something was received that the socket will not tell of again.
    pub(super) fn is_readable(&self) -> bool {
        matches!(&self.security, Security::Tls(session) if session.is_readable())
    }

    /// Whether replies can leave, once there is room.
    pub(super) fn is_open(&self) -> bool {
        !matches!(self.security, Security::Shaking(_))
    }

    /// One receive into `parts`, from the front on.
    pub(super) fn receive(&mut self, parts: &mut [IoSliceMut<'_>]) -> Received {
        let taken = match &mut self.security {
            Security::Plain => match rustix::io::readv(&self.socket, parts) {
                Ok(taken) => Ok(Some(taken)),
                Err(Errno::AGAIN | Errno::INTR) => Ok(None),
                Err(error) => Err(error.into()),
            },
            Security::Shaking(_) => Ok(None),
            Security::Tls(session) => session.receive(&self.socket, parts),
        };
        match taken {
            Ok(None) => Received::Blocked,
            Ok(Some(0)) => Received::End,
            Ok(Some(taken)) => Received::Bytes(taken),
            Err(error) => {
                if let Some(tls) = TlsError::of(&error) {
                    log::warn!("{}: {tls}: the connection is closed", self.who());
                }
                Received::Broken
            }
        }
    }

    /// What follows is TLS.
    pub(super) fn start_tls(&mut self, tls: &ServerTls) -> Result<(), TlsError> {
        self.security = Security::Shaking(Box::new(Handshake::server(tls)?));
        Ok(())
    }

    /// Goes on with the handshake. `None`: it is not done, or there is none; else how the connection is protected.
    ///
    /// # Errors
    /// Why the connection is to be closed; the client has its alert.
    pub(super) fn shake(&mut self, buffer: &mut [u8]) -> Result<Option<(Protection, bool)>, io::Error> {
        let Security::Shaking(handshake) = &mut self.security else { return Ok(None) };
        let room = buffer.len().min(HANDSHAKE);
        let received = match rustix::io::read(&self.socket, &mut buffer[..room]) {
            Ok(0) => return Err(TlsError::Ended.into()),
            Ok(received) => received,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let step = handshake.advance(&buffer[..received]);
        // A few kilobytes into a socket whose other end waits for them.
        let output = std::mem::take(handshake.output());
        let sent = if output.is_empty() {
            Ok(0)
        } else {
            rustix::net::send(&self.socket, &output, SendFlags::NOSIGNAL)
        };
        match step? {
            _ if sent != Ok(output.len()) => Err(TlsError::Ended.into()),
            Step::More => Ok(None),
            Step::Done => {
                let Security::Shaking(handshake) = std::mem::replace(&mut self.security, Security::Plain)
                else {
                    return Ok(None);
                };
                let session = handshake.finish()?;
                let facts = *session.facts();
                self.security = Security::Tls(Box::new(session));
                log::info!(
                    "{}: TLS 1.3, {}, {}",
                    self.who(),
                    facts.suite,
                    match (facts.peer_certified, facts.resumed) {
                        (true, true) => "resumed session of a client with a certificate",
                        (true, false) => "the client has a certificate",
                        (false, true) => "resumed session of a client without a certificate",
                        (false, false) => "the client has no certificate",
                    }
                );
                let protection = if facts.peer_certified { Protection::MutualTls } else { Protection::Tls };
                Ok(Some((protection, facts.resumed)))
            }
        }
    }

    fn who(&self) -> String {
        self.socket.peer_addr().map_or_else(|_| "a client".to_owned(), |address| address.to_string())
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Security::Tls(session) = &mut self.security {
            session.close(&self.socket);
        }
    }
}
