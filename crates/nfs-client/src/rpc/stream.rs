//! The socket of a connection, and the TLS on it.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use benchmaster_rpc_tls::{Session, Traffic};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};

#[derive(Debug)]
pub(super) enum Stream {
    Plain(OwnedFd),
    Tls(OwnedFd, Box<Session>),
}

impl Stream {
    /// Sends from the front of `parts`; `None` when the socket is full.
    pub(super) fn send(&mut self, parts: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        match self {
            Self::Plain(fd) => send(fd.as_fd(), parts),
            Self::Tls(fd, session) => session.send(fd, parts),
        }
    }

    /// Sends what was taken and is still here; whether all of it left.
    pub(super) fn flush(&mut self) -> io::Result<bool> {
        match self {
            Self::Plain(_) => Ok(true),
            Self::Tls(fd, session) => session.flush(fd),
        }
    }

    /// Receives into `parts`, from the front on; `None` when nothing is there.
    pub(super) fn receive(&mut self, parts: &mut [IoSliceMut<'_>]) -> io::Result<Option<usize>> {
        let received = match (self, parts) {
            (Self::Tls(fd, session), parts) => return session.receive(fd, parts),
            (Self::Plain(fd), [part]) => recv(fd, &mut **part, RecvFlags::DONTWAIT).map(|(n, _)| n),
            (Self::Plain(fd), parts) => rustix::io::readv(fd, parts),
        };
        match received {
            Ok(n) => Ok(Some(n)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether something was received that the socket will not tell of again.
    pub(super) fn is_readable(&self) -> bool {
        matches!(self, Self::Tls(_, session) if session.is_readable())
    }

    /// What went through, where there is TLS.
    pub(super) fn traffic(&self) -> Option<Traffic> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(_, session) => Some(session.traffic()),
        }
    }

    /// Tells the server that nothing more comes.
    pub(super) fn close(&mut self) {
        if let Self::Tls(fd, session) = self {
            session.close(fd);
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(fd) | Self::Tls(fd, _) => fd.as_fd(),
        }
    }
}

/// Sends; `None` when the socket is full.
fn send(fd: BorrowedFd<'_>, parts: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
    loop {
        match sendmsg(
            fd,
            parts,
            &mut SendAncillaryBuffer::default(),
            SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
        ) {
            Ok(n) => return Ok(Some(n)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}
