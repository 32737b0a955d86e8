//! Making connections, and making them again.

use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Poll;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::xdr::{Bulk, Encoder};
use rustix::net::{SendFlags, send};
use socket2::{Domain, Protocol, Socket, Type};

use super::{Connection, Link};
use crate::counters::Event;
use crate::reactor::{EventFlags, Reactor};
use crate::rpc::outgoing::Message;
use crate::rpc::pending::State;
use crate::rpc::stream::Stream;
use crate::rpc::{LEAST_TO_CONNECT, Transport};

/// Pause before the second attempt in a row; doubled for each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Where the transaction numbers of a new connection begin: another place for each, so that a server's cache of replies
/// does not take a call for an earlier one of another connection.
pub(super) fn first_xid(reactor: &Reactor) -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    if let Some(world) = reactor.world() {
        return world.random() as u32;
    }
    let since_epoch = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let start = (since_epoch.as_micros() as u32).wrapping_mul(0x9e37_79b9);
    start ^ (reactor.process() << 16) ^ NEXT.fetch_add(0x0100_0001, Ordering::Relaxed)
}

impl Connection {
    /// Starts the tasks that keep the connection up and look for replies that do not come. They end with it.
    pub(in crate::rpc) fn keep_up(self: &Rc<Self>) {
        let (this, reactor) = (Rc::downgrade(self), self.reactor.clone());
        self.reactor.spawn(async move {
            let mut pause = Duration::ZERO;
            loop {
                let Some(connection) = this.upgrade() else { return };
                match connection.link.get() {
                    Link::Closed => return,
                    Link::Up => {
                        drop(connection);
                        changed(&this).await;
                        continue;
                    }
                    Link::Down => {}
                }
                reactor.sleep(pause).await;
                match connection.dial().await {
                    Ok(()) => pause = FIRST_PAUSE,
                    Err(error) => {
                        connection.counters.event(Event::ConnectFailed);
                        *connection.error.borrow_mut() = Some(error);
                        connection.changed.wake();
                        pause = (pause * 2).clamp(FIRST_PAUSE, LONGEST_PAUSE);
                    }
                }
            }
        });
        let (this, reactor) = (Rc::downgrade(self), self.reactor.clone());
        let period = (self.timeout / 10).clamp(Duration::from_millis(1), Duration::from_millis(250));
        self.reactor.spawn(async move {
            loop {
                reactor.sleep(period).await;
                let Some(connection) = this.upgrade() else { return };
                if connection.is_closed() {
                    return;
                }
                connection.look_for_late(reactor.now());
            }
        });
    }

    fn look_for_late(&self, now: Instant) {
        let mut stalled = false;
        for entry in self.pending.borrow_mut().iter_mut() {
            if entry.deadline.is_some_and(|deadline| deadline <= now) {
                match entry.state {
                    State::Waiting => entry.wake(State::TimedOut),
                    State::Landing => stalled = true,
                    _ => {}
                }
            }
        }
        if stalled {
            self.reset("the rest of a reply did not arrive");
        }
    }

    /// Makes the connection.
    async fn dial(self: &Rc<Self>) -> io::Result<()> {
        let fd = match self.reactor.world() {
            None => self.dial_address().await?,
            Some(world) => {
                let fd = world.connect(self.address, self.transport)?;
                self.registration.watch(std::os::fd::AsFd::as_fd(&fd), EventFlags::IN)?;
                fd
            }
        };
        if self.is_closed() {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let stream = match &self.tls {
            None => Stream::Plain(fd),
            Some(tls) => {
                let session = self.secure(&fd, tls).await?;
                if self.is_closed() {
                    return Err(io::ErrorKind::NotConnected.into());
                }
                Stream::Tls(fd, Box::new(session))
            }
        };
        self.registration.change(std::os::fd::AsFd::as_fd(&stream), EventFlags::IN)?;
        self.incoming.borrow_mut().clear();
        self.counted.take();
        *self.stream.borrow_mut() = Some(stream);
        *self.error.borrow_mut() = None;
        let generation = self.generation.get() + 1;
        self.generation.set(generation);
        self.counters.event(if generation == 1 { Event::Connect } else { Event::Reconnect });
        self.set_link(Link::Up);
        Ok(())
    }

    async fn dial_address(self: &Rc<Self>) -> io::Result<OwnedFd> {
        let (kind, protocol) = match self.transport {
            Transport::Tcp => (Type::STREAM, Protocol::TCP),
            Transport::Udp => (Type::DGRAM, Protocol::UDP),
        };
        let socket =
            Socket::new(Domain::for_address(self.address), kind.nonblocking().cloexec(), Some(protocol))?;
        if self.transport == Transport::Tcp {
            socket.set_tcp_nodelay(!self.nagle)?;
            socket.set_keepalive(true)?;
        }
        let watched = EventFlags::IN | EventFlags::OUT;
        match socket.connect(&self.address.into()) {
            Ok(()) => self.registration.watch(std::os::fd::AsFd::as_fd(&socket), watched)?,
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {
                self.registration.watch(std::os::fd::AsFd::as_fd(&socket), watched)?;
                let deadline = self.reactor.now() + self.timeout.max(LEAST_TO_CONNECT);
                let connected = std::future::poll_fn(|context| {
                    match (socket.take_error(), socket.peer_addr()) {
                        (Ok(Some(error)) | Err(error), _) => return Poll::Ready(Err(error)),
                        (Ok(None), Ok(_)) => return Poll::Ready(Ok(())),
                        (Ok(None), Err(_)) => {}
                    }
                    if self.is_closed() {
                        return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
                    }
                    self.changed.add(context);
                    Poll::Pending
                });
                let late = || Err(io::Error::from(io::ErrorKind::TimedOut));
                self.reactor.until(deadline, connected).await.unwrap_or_else(late)?;
            }
            Err(error) => return Err(error),
        }
        Ok(socket.into())
    }

    /// Why there is no connection.
    pub(in crate::rpc) fn last_error(&self) -> io::Error {
        let error = self.error.borrow_mut().take();
        error.unwrap_or_else(|| io::ErrorKind::TimedOut.into())
    }

    /// Our address.
    pub(in crate::rpc) fn local_address(&self) -> Option<SocketAddr> {
        self.with_stream(|stream| Ok(rustix::net::getsockname(stream)?)).ok()?.try_into().ok()
    }

    /// Sends a request as one datagram; returns its length. One that does not leave is sent again as a lost one is.
    pub(super) fn send_datagram(&self, xid: u32, payload: &[u8], message: Message<'_>) -> usize {
        let mut e = Encoder::new();
        message(&mut e, Bulk::Bytes(payload));
        if let Some(entry) = self.pending.borrow_mut().get(xid) {
            entry.sent = Some(self.reactor.now());
        }
        if let Ok(n) = self.with_stream(|stream| Ok(send(stream, e.buffer(), SendFlags::DONTWAIT)?)) {
            self.outgoing.borrow_mut().bytes += n as u64;
        }
        e.len()
    }
}

/// Waits for a change of the link, without keeping the connection.
async fn changed(this: &std::rc::Weak<Connection>) {
    std::future::poll_fn(|context| match this.upgrade() {
        Some(connection) if connection.link.get() == Link::Up => {
            connection.changed.add(context);
            Poll::Pending
        }
        _ => Poll::Ready(()),
    })
    .await;
}

impl Drop for Connection {
    fn drop(&mut self) {
        // Lets the task that keeps it up end.
        self.changed.wake();
    }
}
