//! Connections that the server opens to clients of 4.0 (RFC 7530 §3.3.3): never waiting, all in one poll set.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;

use benchmaster_nfs_proto::record::{Joiner, LAST_FRAGMENT};
use hashbrown::HashMap;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, ipproto, socket_with, sockopt};

use super::MAX_REPLY;
use crate::state::ClientId;

/// Most bytes waiting to be sent to one client.
const MAX_UNSENT: usize = 1 << 20;
const MAX_DIALLED: usize = 4096;

/// The dialled connections.
#[derive(Debug, Default)]
pub(super) struct Dials {
    by_client: HashMap<ClientId, Dial>,
    /// Where connections are made and carried by the caller.
    carried: Option<Carried>,
}

/// Connections that the caller of a [`Stepper`](super::Stepper) makes and carries.
#[derive(Debug, Default)]
struct Carried {
    open: HashMap<ClientId, SocketAddr>,
    sent: Vec<Dialled>,
}

/// A message to a client, over a connection that the server makes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialled {
    /// Whose connection it is.
    pub client: ClientId,
    /// Where the client listens.
    pub address: SocketAddr,
    /// Whether the connection is to be made now, and an earlier one to be closed.
    pub first: bool,
    /// Without a record mark.
    pub message: Vec<u8>,
}

#[derive(Debug)]
struct Dial {
    stream: TcpStream,
    address: SocketAddr,
    connected: bool,
    unsent: Vec<u8>,
    received: Joiner,
}

/// What a poll event brought.
#[derive(Debug, Default)]
pub(super) struct Arrived {
    pub(super) messages: Vec<Vec<u8>>,
    /// Whether the connection is gone.
    pub(super) closed: bool,
}

impl Dials {
    pub(super) fn carried() -> Self {
        Self { carried: Some(Carried::default()), ..Self::default() }
    }

    /// What is to be carried.
    pub(super) fn take_sent(&mut self) -> Vec<Dialled> {
        self.carried.as_mut().map_or_else(Vec::new, |carried| std::mem::take(&mut carried.sent))
    }

    /// Sends a message to a client, over a connection made now if there is none to that address.
    pub(super) fn send(
        &mut self,
        poll: impl AsFd,
        client: ClientId,
        address: SocketAddr,
        message: &[u8],
    ) -> io::Result<()> {
        if let Some(carried) = &mut self.carried {
            let first = carried.open.insert(client, address) != Some(address);
            carried.sent.push(Dialled { client, address, first, message: message.to_vec() });
            return Ok(());
        }
        if self.by_client.get(&client).is_some_and(|dial| dial.address != address) {
            self.by_client.remove(&client);
        }
        if !self.by_client.contains_key(&client) {
            if self.by_client.len() >= MAX_DIALLED {
                return Err(io::Error::other("too many callback connections"));
            }
            let dial = Dial::connect(address)?;
            // Edge-triggered: every event is followed by reading and writing all there is.
            let events = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
            epoll::add(poll, &dial.stream, EventData::new_u64(client.0), events)?;
            self.by_client.insert(client, dial);
        }
        let Some(dial) = self.by_client.get_mut(&client) else { return Ok(()) };
        if dial.unsent.len() + message.len() > MAX_UNSENT {
            return Err(ErrorKind::WouldBlock.into());
        }
        dial.unsent.extend_from_slice(&(LAST_FRAGMENT | message.len() as u32).to_be_bytes());
        dial.unsent.extend_from_slice(message);
        dial.flush()
    }

    /// Handles a poll event of a client's connection.
    pub(super) fn ready(&mut self, client: ClientId) -> Arrived {
        let mut arrived = Arrived::default();
        let Some(dial) = self.by_client.get_mut(&client) else { return arrived };
        let outcome = dial.advance(&mut arrived.messages);
        if outcome.is_err() {
            self.by_client.remove(&client);
            arrived.closed = true;
        }
        arrived
    }

    /// Closes a client's connection.
    pub(super) fn close(&mut self, client: ClientId) {
        self.by_client.remove(&client);
        if let Some(carried) = &mut self.carried {
            carried.open.remove(&client);
        }
    }

    /// Closes the connections of clients that `keep` refuses.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(ClientId) -> bool) {
        self.by_client.retain(|client, _| keep(*client));
        if let Some(carried) = &mut self.carried {
            carried.open.retain(|client, _| keep(*client));
        }
    }
}

impl Dial {
    fn connect(address: SocketAddr) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(family, SocketType::STREAM, flags, Some(ipproto::TCP))?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        Ok(Self { stream, address, connected: false, unsent: Vec::new(), received: Joiner::new() })
    }

    fn advance(&mut self, messages: &mut Vec<Vec<u8>>) -> io::Result<()> {
        sockopt::socket_error(&self.stream)??;
        if !self.connected {
            match self.stream.peer_addr() {
                Ok(_) => self.connected = true,
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.flush()?;
        self.read(messages)
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.connected && !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(sent) => drop(self.unsent.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read(&mut self, messages: &mut Vec<Vec<u8>>) -> io::Result<()> {
        let mut chunk = [0; 4096];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(len) => self.join(&chunk[..len], messages)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn join(&mut self, mut bytes: &[u8], messages: &mut Vec<Vec<u8>>) -> io::Result<()> {
        while !bytes.is_empty() {
            let fed = self.received.feed(bytes, MAX_REPLY).map_err(io::Error::other)?;
            bytes = &bytes[fed.consumed..];
            if fed.complete {
                messages.push(self.received.record().to_vec());
                self.received.clear(0);
            }
        }
        Ok(())
    }
}
