//! Calls of the server to clients: over their own connections, and over those that it makes (version 4.0).

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddress, UnixListener, UnixStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use benchmaster_nfs_client::rpc::Transport;
use benchmaster_nfs_server::callback::Dialled;
use benchmaster_nfs_server::shared::Shared;
use benchmaster_nfs_server::state::ClientId;

use super::{Event, Inner, NAME, SERVICE};
use crate::history::Who;
use crate::wire;

/// Port of the first client that listens.
const FIRST_PORT: u16 = 10_000;

/// A client that waits for connections of the server.
#[derive(Debug)]
pub(super) struct Listener {
    client: usize,
    /// As the server knows it.
    address: SocketAddr,
    /// As this machine knows it.
    name: UnixAddress,
}

/// What is lost of a callback.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Callback {
    Call,
    Reply,
}

impl Inner {
    /// A socket on which a client listens, and its address.
    pub(super) fn listen(&mut self, client: usize) -> io::Result<(OwnedFd, SocketAddr)> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("benchmaster-explore-{}-{number}", std::process::id());
        let name = UnixAddress::from_abstract_name(name)?;
        let listener = UnixListener::bind_addr(&name)?;
        listener.set_nonblocking(true)?;
        let port = FIRST_PORT + self.listeners.len() as u16;
        let address = SocketAddr::from(([10, 0, 1, client as u8], port));
        self.listeners.push(Listener { client, address, name });
        Ok((listener.into(), address))
    }

    /// Lets the server call clients.
    pub(super) fn call_back(&mut self) {
        let now = self.instant();
        let dialled = self.server.callbacks.as_mut().map_or_else(Vec::new, |callbacks| callbacks.step(now));
        for call in dialled {
            self.dialled(&call);
        }
        for number in 0..self.connections.len() {
            let Some(outbox) = &self.connections[number].peer.outbox else { continue };
            for message in outbox.take() {
                self.call(number, &message);
            }
        }
    }

    fn call(&mut self, number: usize, message: &[u8]) {
        let what = wire::call(message);
        let client = self.connections[number].client;
        let compound = what.starts_with("callback");
        self.line(Who::Server, format!("calls client {client}: {what}"));
        if compound && self.loses_callback[client].take_if(|lost| *lost == Callback::Call).is_some() {
            self.line(Who::ToClient(client as u8), "lost".into());
            self.close(number);
            return;
        }
        self.say(number, message.to_vec(), Duration::ZERO);
        self.connections[number].calls |= compound;
    }

    /// Whether this message is the reply to a callback, and is lost with its connection.
    pub(super) fn loses_reply(&mut self, number: usize, message: &[u8]) -> bool {
        let connection = &mut self.connections[number];
        let client = connection.client;
        let is_reply = connection.calls && wire::is_reply(message);
        if !is_reply || self.loses_callback[client].take_if(|lost| *lost == Callback::Reply).is_none() {
            return false;
        }
        self.line(Who::ToServer(client as u8), format!("{}: lost", wire::call(message)));
        self.close(number);
        true
    }

    /// Tells of delegations that the server revoked.
    pub(super) fn look_at_delegations(&mut self, shared: &Shared) {
        for client in shared.state.report().nfs4_clients {
            // Before that its machine and process are named.
            let name = client.name.rsplit(' ').next().and_then(|name| name.strip_prefix(NAME));
            let number = name.and_then(|number| number.parse::<usize>().ok());
            let Some((number, before)) = number.and_then(|n| Some((n, self.revoked.get_mut(n)?))) else {
                continue;
            };
            if std::mem::replace(before, client.delegations.revoked) < client.delegations.revoked {
                self.line(Who::Server, format!("revokes a delegation of client {number}"));
                self.oracle.borrow_mut().revoked(number, self.now);
            }
        }
    }

    /// Sends over a connection that the server makes.
    fn dialled(&mut self, call: &Dialled) {
        let open = (0..self.connections.len())
            .rev()
            .find(|number| self.connections[*number].called == Some(call.client));
        if !call.first {
            // If it broke meanwhile the server learns of it next.
            if let Some(number) = open {
                self.call(number, &call.message);
            }
            return;
        }
        if let Some(number) = open {
            self.connections[number].called = None;
            self.close(number);
        }
        let Some(listener) = self.listeners.iter().find(|listener| listener.address == call.address) else {
            return;
        };
        let client = listener.client;
        if self.dead[client] {
            return;
        }
        let end =
            UnixStream::connect_addr(&listener.name).and_then(|end| end.set_nonblocking(true).map(|()| end));
        let Ok(end) = end else {
            self.put(self.now + SERVICE, Event::Unreached(call.client));
            return;
        };
        let number = self.connect(client, Transport::Tcp, end.into());
        self.connections[number].called = Some(call.client);
        self.line(Who::ToClient(client as u8), format!("connection {number} is made by the server"));
        self.call(number, &call.message);
    }

    /// A reply over a connection that the server had made.
    pub(super) fn called_back(&mut self, client: ClientId, number: usize, message: &[u8]) {
        let now = self.instant();
        let who = Who::ToServer(self.connections[number].client as u8);
        self.line(who, wire::call(message));
        if let Some(callbacks) = &mut self.server.callbacks {
            callbacks.replied(client, message, now);
        }
        self.call_back();
    }

    /// A connection that the server had made broke, or was refused.
    pub(super) fn unreached(&mut self, client: ClientId) {
        let now = self.instant();
        if let Some(callbacks) = &mut self.server.callbacks {
            callbacks.broken(client, now);
        }
    }
}
