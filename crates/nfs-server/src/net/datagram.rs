//! Requests over UDP: one message per datagram.

use std::io::{self, IoSlice};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg_addr};

use crate::reply::Reply;

#[derive(Debug)]
pub(crate) struct Datagrams {
    socket: UdpSocket,
    /// Where it is bound.
    pub(super) local: SocketAddr,
}

impl Datagrams {
    pub(crate) fn new(socket: UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        Ok(Self { socket, local })
    }

    /// The next datagram, if there is one.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> Option<(usize, SocketAddr)> {
        self.socket.recv_from(buffer).ok()
    }

    /// Sends a reply. One that does not fit, or that the socket does not take now, is lost, as datagrams are.
    pub(super) fn send(&self, reply: &Reply, to: SocketAddr) {
        let mut pieces: smallvec::SmallVec<[IoSlice<'_>; 32]> = smallvec::SmallVec::new();
        reply.pieces(0, |piece| {
            pieces.push(IoSlice::new(piece));
            true
        });
        let sent = sendmsg_addr(
            &self.socket,
            &to,
            &pieces,
            &mut SendAncillaryBuffer::default(),
            SendFlags::NOSIGNAL,
        );
        if let Err(error) = sent {
            log::debug!("reply to {to} lost: {error}");
        }
    }
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
