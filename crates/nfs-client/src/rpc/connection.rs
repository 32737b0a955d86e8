//! One connection: kept up, its requests sent, its replies matched to calls.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::rc::{Rc, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::xdr::XdrError;

use super::incoming::Incoming;
use super::outgoing::{DIRECT, Message, Outgoing, Progress};
use super::pending::{Pending, State};
use super::stream::Stream;
use super::{Inner, RpcError, RpcOptions, RpcTls, Transport};
use benchmaster_rpc_tls::{TlsError, Traffic};

use crate::counters::{Counters, Event};
use crate::reactor::{EventFlags, Reactor, Registration, Source, Waiters};

mod dial;
mod receive;
mod secure;

/// Reads the front of a reply, and puts its data into the buffer given: bytes of the reply, whether they are all, the
/// buffer. Returns how many bytes of data are still to come.
pub(super) type Decode<'d> = &'d mut dyn FnMut(&[u8], bool, &mut [u8]) -> Result<usize, XdrError>;

/// What became of the wish to send.
pub(super) enum Sent {
    /// Queued; leaves at the end of the turn. Length of the message.
    Queued(usize),
    /// The task has to send it itself ([`Connection::send_from`]).
    Direct,
}

/// Times of a call, and the length of its reply.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) sent: Option<Instant>,
    pub(super) received: Option<Instant>,
    pub(super) bytes: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Down,
    Up,
    Closed,
}

pub(super) struct Connection {
    pub(super) number: usize,
    reactor: Reactor,
    counters: Rc<Counters>,
    rpc: Weak<Inner>,
    transport: Transport,
    nagle: bool,
    address: SocketAddr,
    timeout: Duration,
    max_message: usize,
    registration: Registration,
    tls: Option<RpcTls>,
    stream: RefCell<Option<Stream>>,
    /// What of the traffic of TLS is counted.
    counted: Cell<Traffic>,
    link: Cell<Link>,
    generation: Cell<u64>,
    /// When something was last received.
    heard: Cell<Instant>,
    /// Why the last attempt to connect failed, or the connection broke.
    error: RefCell<Option<io::Error>>,
    /// Tasks that wait for a change of `link`.
    changed: Waiters,
    pub(super) pending: RefCell<Pending>,
    outgoing: RefCell<Outgoing>,
    incoming: RefCell<Incoming>,
    /// Something was queued in this turn.
    marked: Cell<bool>,
    /// The socket was full, and is watched for room.
    full: Cell<bool>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("number", &self.number)
            .field("address", &self.address)
            .field("link", &self.link)
            .finish_non_exhaustive()
    }
}

impl Connection {
    pub(super) fn new(
        number: usize,
        reactor: &Reactor,
        counters: &Rc<Counters>,
        options: &RpcOptions,
        rpc: &Weak<Inner>,
    ) -> Rc<Self> {
        Rc::new_cyclic(|this: &Weak<Self>| Self {
            number,
            reactor: reactor.clone(),
            counters: counters.clone(),
            rpc: rpc.clone(),
            transport: options.transport,
            nagle: options.nagle,
            address: options.address_of(number),
            timeout: options.timeout,
            max_message: options.max_message,
            registration: reactor.register(this.clone() as Weak<dyn Source>),
            tls: options.tls.clone(),
            stream: RefCell::new(None),
            counted: Cell::default(),
            link: Cell::new(Link::Down),
            generation: Cell::new(0),
            heard: Cell::new(reactor.now()),
            error: RefCell::new(None),
            changed: Waiters::default(),
            pending: RefCell::new(Pending::new(dial::first_xid(reactor))),
            outgoing: RefCell::default(),
            incoming: RefCell::new(Incoming::new()),
            marked: Cell::new(false),
            full: Cell::new(false),
        })
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation.get()
    }

    pub(super) fn heard(&self) -> Instant {
        self.heard.get()
    }

    pub(super) fn is_up(&self) -> bool {
        self.link.get() == Link::Up
    }

    pub(super) fn is_closed(&self) -> bool {
        self.link.get() == Link::Closed
    }

    pub(super) fn failure(&self) -> RpcError {
        if self.is_closed() {
            return RpcError::Closed;
        }
        let insecure = self.error.borrow().as_ref().and_then(TlsError::of).is_some();
        if insecure { RpcError::Insecure } else { RpcError::TimedOut }
    }

    pub(super) fn wire_bytes(&self) -> (u64, u64) {
        (self.outgoing.borrow().bytes, self.incoming.borrow().bytes)
    }

    /// Waits until the connection is up; `false` when it is not before `deadline`, or closed.
    pub(super) async fn up(&self, deadline: Instant) -> bool {
        if self.link.get() == Link::Up {
            return true;
        }
        self.reactor.until(deadline, self.changed.until(|| self.link.get() != Link::Down)).await;
        self.link.get() == Link::Up
    }

    /// Waits until the connection is up, or could not be made; `true` when it is up.
    pub(super) async fn tried(&self, deadline: Instant) -> bool {
        let tried = || self.link.get() != Link::Down || self.error.borrow().is_some();
        self.reactor.until(deadline, self.changed.until(tried)).await;
        self.link.get() == Link::Up
    }

    /// Waits until the connection is up in another generation than `seen`, or closed.
    pub(super) async fn renewed(&self, seen: u64) {
        let renewed = || match self.link.get() {
            Link::Down => false,
            Link::Up => self.generation.get() != seen,
            Link::Closed => true,
        };
        self.changed.until(renewed).await;
    }

    fn set_link(&self, link: Link) {
        self.link.set(link);
        self.changed.wake();
    }

    /// Takes a place for a call.
    pub(super) fn place(&self, lands: bool) -> PendingCall<'_> {
        PendingCall::new(self, &self.pending, lands)
    }

    /// A call was given up or is done; it was in this state.
    pub(super) fn given_up(&self, xid: u32, state: &State) {
        match state {
            State::Ready(..) => self.incoming.borrow_mut().untaken -= 1,
            // The rest of its reply would have no receiver.
            State::Landing => self.reset("a call was given up while its reply came"),
            State::Waiting | State::Idle if self.outgoing.borrow().is_sending(xid) => {
                self.reset("a call was given up while it was sent");
            }
            _ => {}
        }
    }

    pub(super) fn times(&self, place: &PendingCall<'_>) -> Times {
        let mut pending = self.pending.borrow_mut();
        pending.get(place.xid()).map_or_else(Times::default, |entry| Times {
            sent: entry.sent,
            received: entry.received,
            bytes: entry.bytes,
        })
    }

    /// Queues a request, if its payload is small; its reply is waited for until `at`.
    pub(super) fn send(
        &self,
        place: &PendingCall<'_>,
        payload: &[u8],
        message: Message<'_>,
        at: Instant,
    ) -> Sent {
        let xid = place.xid();
        match self.transport {
            Transport::Udp => {
                self.begin_waiting(xid, Some(at));
                return Sent::Queued(self.send_datagram(xid, payload, message));
            }
            Transport::Tcp if payload.len() >= DIRECT => return Sent::Direct,
            Transport::Tcp => {}
        }
        self.begin_waiting(xid, Some(at));
        let bytes = self.outgoing.borrow_mut().queue(xid, payload, message);
        self.mark();
        Sent::Queued(bytes)
    }

    /// Sends a request whose payload is large; returns its length, or 0 when the connection broke before.
    pub(super) async fn send_from(
        &self,
        place: &PendingCall<'_>,
        payload: &[u8],
        message: Message<'_>,
        deadline: Instant,
    ) -> usize {
        let (xid, generation) = (place.xid(), self.generation.get());
        let mut queued = None;
        let sending = poll_fn(|context| {
            if self.link.get() != Link::Up || self.generation.get() != generation {
                if let Some(entry) = self.pending.borrow_mut().get(xid) {
                    entry.state = State::Lost;
                }
                return Poll::Ready(());
            }
            if queued.is_none() {
                queued = self.outgoing.borrow_mut().queue_direct(xid, payload, message, context.waker());
                if queued.is_none() {
                    return Poll::Pending;
                }
                self.begin_waiting(xid, None);
            }
            if !self.outgoing.borrow().is_sending(xid) {
                return Poll::Ready(());
            }
            self.stamp();
            let sent = self.with_stream(|stream| {
                self.outgoing.borrow_mut().send_payload(stream, payload, context.waker())
            });
            match sent {
                Ok(Progress::Done) => {
                    self.mark();
                    Poll::Ready(())
                }
                Ok(Progress::Full) => {
                    self.watch_room(true);
                    Poll::Pending
                }
                Err(error) => {
                    self.broken(error);
                    Poll::Ready(())
                }
            }
        });
        if self.reactor.until(deadline, sending).await.is_none() {
            self.reset("the server does not read");
        }
        queued.unwrap_or_default()
    }

    fn begin_waiting(&self, xid: u32, until: Option<Instant>) {
        if let Some(entry) = self.pending.borrow_mut().get(xid) {
            entry.state = State::Waiting;
            entry.deadline = until.or(entry.deadline);
        }
    }

    fn mark(&self) {
        if !self.marked.replace(true) {
            self.registration.mark();
        }
    }

    /// Notes the time for all requests that leave now.
    fn stamp(&self) {
        let mut outgoing = self.outgoing.borrow_mut();
        if outgoing.unstamped.is_empty() {
            return;
        }
        let now = self.reactor.now();
        let mut pending = self.pending.borrow_mut();
        for xid in outgoing.unstamped.drain(..) {
            if let Some(entry) = pending.get(xid) {
                entry.sent = Some(now);
            }
        }
    }

    fn with_stream<T>(&self, work: impl FnOnce(&mut Stream) -> io::Result<T>) -> io::Result<T> {
        match &mut *self.stream.borrow_mut() {
            Some(stream) => work(stream),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Counts what went through TLS since the last time.
    fn count_traffic(&self) {
        let traffic = self.stream.borrow().as_ref().and_then(Stream::traffic);
        let Some(now) = traffic else { return };
        let before = self.counted.replace(now);
        for (event, now, before) in [
            (Event::TlsRecordsSent, now.records_sent, before.records_sent),
            (Event::TlsRecordsReceived, now.records_received, before.records_received),
            (Event::TlsBytesSent, now.bytes_sent, before.bytes_sent),
            (Event::TlsBytesReceived, now.bytes_received, before.bytes_received),
            (Event::TlsCipher, now.cipher_ns / 1000, before.cipher_ns / 1000),
        ] {
            self.counters.add(event, now - before);
        }
    }

    fn flush(&self) {
        if self.link.get() != Link::Up {
            return;
        }
        self.stamp();
        let flushed = self.with_stream(|stream| self.outgoing.borrow_mut().flush(stream));
        self.count_traffic();
        match flushed {
            Ok(Progress::Done) => {
                if self.full.get() && !self.outgoing.borrow().is_waiting() {
                    self.watch_room(false);
                }
            }
            Ok(Progress::Full) => self.watch_room(true),
            Err(error) => self.broken(error),
        }
    }

    fn watch_room(&self, wanted: bool) {
        if self.full.replace(wanted) == wanted {
            return;
        }
        let flags = if wanted { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        if let Err(error) = self.with_stream(|stream| self.registration.change(stream.as_fd(), flags)) {
            self.broken(error);
        }
    }

    /// Closes the connection, to be re-established.
    pub(super) fn reset(&self, why: &'static str) {
        self.broken(io::Error::other(why));
    }

    /// The connection is no more.
    fn broken(&self, error: io::Error) {
        if self.link.get() != Link::Up {
            return;
        }
        if TlsError::of(&error).is_some() {
            self.counters.event(Event::TlsBroken);
        }
        *self.error.borrow_mut() = Some(error);
        self.take_down(Link::Down);
    }

    /// Closes the connection for good.
    pub(super) fn close(&self) {
        self.take_down(Link::Closed);
    }

    fn take_down(&self, link: Link) {
        // Closing the descriptor takes it out of the reactor.
        self.count_traffic();
        let stream = self.stream.borrow_mut().take();
        if let Some(mut stream) = stream {
            stream.close();
        }
        self.full.set(false);
        let mut incoming = self.incoming.borrow_mut();
        self.keep_untaken(&mut incoming);
        incoming.clear();
        drop(incoming);
        for entry in self.pending.borrow_mut().iter_mut() {
            if matches!(entry.state, State::Waiting | State::Landing) {
                entry.wake(State::Lost);
            }
        }
        self.outgoing.borrow_mut().clear();
        self.set_link(link);
    }
}

/// A call's place in the table of a connection; gives it back when dropped, that is also when the call is given up.
pub(super) struct PendingCall<'c> {
    connection: &'c Connection,
    xid: u32,
}

impl<'c> PendingCall<'c> {
    pub(super) fn new(connection: &'c Connection, pending: &RefCell<Pending>, lands: bool) -> Self {
        Self { connection, xid: pending.borrow_mut().take(lands) }
    }

    pub(super) fn xid(&self) -> u32 {
        self.xid
    }

    /// The reply is waited for until `at`.
    pub(super) fn wait_until(&self, at: Instant) {
        if let Some(entry) = self.connection.pending.borrow_mut().get(self.xid) {
            entry.deadline = Some(at);
        }
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        let state = self.connection.pending.borrow_mut().free(self.xid);
        self.connection.given_up(self.xid, &state);
    }
}

impl Source for Connection {
    fn ready(&self, flags: EventFlags) {
        if self.link.get() != Link::Up {
            // Being made: the dialling task looks.
            self.changed.wake();
            return;
        }
        if flags.contains(EventFlags::OUT) {
            self.outgoing.borrow_mut().writable();
            self.mark();
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
            self.receive();
        }
    }

    fn end_of_turn(&self) {
        self.marked.set(false);
        self.flush();
    }
}
