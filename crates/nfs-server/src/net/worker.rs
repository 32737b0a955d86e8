//! A serving thread.

use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::record;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::net::sockopt;
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

use super::connection::{Connection, Control, Holding, Input, Received};
use super::delayed::{DelayedReplies, Destination};
use super::output::{Flushed, Output};
use super::stream::Stream;
use super::{Datagrams, Listener};
use crate::dispatch::{self, Conversation, Disposition, LOOK_AGAIN, WAIT_AT_MOST};
use crate::mailbox::{Mailbox, Message};
use crate::moment::Moment;
use crate::outbox::Outbox;
use crate::peer::{Peer, Protection};
use crate::reply::Reply;
use crate::shared::Shared;
use crate::state::ConnectionId;

mod later;

use later::hold;

/// Most bytes of one receive: what a connection is served before others get their turn.
const RECEIVE: usize = 512 << 10;
/// Replies are sent when there is so much, even before all requests of a receive are handled.
const SEND_AT: usize = 1 << 20;
/// Unread replies at which nothing more is read from a client.
const MOST_UNREAD: usize = 4 << 20;
/// Longest record beyond its data: header, credential, handles, names.
const RECORD_SPARE: usize = 64 << 10;
/// Requests executed, and bytes sent, after which other connections have their turn.
const TURN_REQUESTS: usize = 1024;
const TURN_BYTES: usize = 4 << 20;
/// A dead peer is noticed after so long without traffic and some probes; meanwhile its connection costs memory.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(60);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// How long clients have to read the last replies when the server stops.
const STOP_WAIT: Duration = Duration::from_millis(300);
/// Most datagrams answered in a row.
const DATAGRAMS: usize = 64;

/// Most requests that wait.
const MOST_WAITING: usize = 256;

const MAILBOX: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 1;
/// Listeners count down from here,
const LISTENER: u64 = u64::MAX - 8;
/// and datagram sockets from here.
const DATAGRAM: u64 = u64::MAX - 16;

/// Where a thread listens: for connections, and for datagrams.
pub(crate) type Places = (Vec<Listener>, Vec<Datagrams>);

#[derive(Debug)]
pub(crate) struct Worker {
    shared: Arc<Shared>,
    mailbox: Arc<Mailbox>,
    /// Its number among the threads.
    number: usize,
    listeners: Vec<Listener>,
    sockets: Vec<Datagrams>,
    datagram_senders: Conversation,
    epoll: OwnedFd,
    timer: OwnedFd,
    /// What the timer is set for.
    timer_at: Option<Instant>,
    connections: Vec<ConnectionSlot>,
    free: Vec<u32>,
    delayed: DelayedReplies,
    /// Requests that wait for another client's answer, in the order in which they came.
    waiting: VecDeque<Waiting>,
    reply: Reply,
    buffer: Vec<u8>,
    spare: Vec<u8>,
}

/// A request that is handled again until it waits no more, or has waited long enough.
#[derive(Debug)]
struct Waiting {
    due: Instant,
    until: Instant,
    /// Of its connection.
    token: u64,
    message: Vec<u8>,
}

/// A place in the table of connections; its number changes with every use, so that nothing meant for one connection
/// reaches another.
#[derive(Debug, Default)]
struct ConnectionSlot {
    uses: u32,
    connection: Option<Box<Connection>>,
}

fn token(index: u32, uses: u32) -> u64 {
    // The top bit is free for the special tokens.
    u64::from(uses & 0x7fff_ffff) << 32 | u64::from(index)
}

impl Worker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        (number, mailbox): (usize, Arc<Mailbox>),
        (listeners, sockets): Places,
    ) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        let watch =
            |fd: &dyn AsFd, token| epoll::add(&epoll, fd.as_fd(), EventData::new_u64(token), EventFlags::IN);
        watch(&*mailbox, MAILBOX)?;
        watch(&timer, TIMER)?;
        for (index, listener) in listeners.iter().enumerate() {
            watch(listener, LISTENER - index as u64)?;
        }
        for (index, socket) in sockets.iter().enumerate() {
            watch(socket, DATAGRAM - index as u64)?;
        }
        Ok(Self {
            shared,
            mailbox,
            number,
            listeners,
            sockets,
            datagram_senders: Conversation::default(),
            epoll,
            timer,
            timer_at: None,
            connections: Vec::new(),
            free: Vec::new(),
            delayed: DelayedReplies::default(),
            waiting: VecDeque::new(),
            reply: Reply::new(),
            buffer: vec![0; RECEIVE],
            spare: Vec::new(),
        })
    }

    /// Serves until [`Message::Stop`] or [`Message::Crash`]. Returns where it listened, for the next life.
    pub(crate) fn run(mut self) -> io::Result<Places> {
        let mut events: Vec<Event> = Vec::with_capacity(256);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let flags = event.flags;
                match event.data.u64() {
                    MAILBOX => {
                        if self.open_mail() {
                            return Ok((self.listeners, self.sockets));
                        }
                    }
                    TIMER => self.release_delayed(),
                    token if token > DATAGRAM => {
                        if let Some(listener) = self.listeners.get_mut((LISTENER - token) as usize) {
                            listener.accept();
                        }
                    }
                    token if token > DATAGRAM - 8 => self.datagrams((DATAGRAM - token) as usize),
                    token => self.attend(token, flags),
                }
            }
            self.set_timer();
        }
    }

    /// Whether it is time to end.
    fn open_mail(&mut self) -> bool {
        let mut ends = false;
        for message in self.mailbox.take() {
            match message {
                Message::Serve(socket, address) => self.serve(socket, address),
                Message::Outbox(token) => self.send_outbox(token),
                Message::Close(client) => {
                    for index in 0..self.connections.len() {
                        let close = self.connections[index].connection.as_ref().is_some_and(|connection| {
                            let outbox = connection.peer.outbox.as_ref();
                            client.is_none_or(|client| outbox.is_some_and(|o| o.client() == client))
                        });
                        if close {
                            self.close(index);
                        }
                    }
                }
                Message::Stop => {
                    self.finish();
                    ends = true;
                }
                Message::Crash => {
                    self.close_all();
                    // What is on its way was sent to a machine that is off.
                    self.sockets
                        .iter()
                        .for_each(|socket| while socket.receive(&mut self.buffer).is_some() {});
                    ends = true;
                }
            }
        }
        ends
    }

    /// Gives clients a moment to take the replies that wait, then closes all connections.
    fn finish(&mut self) {
        let deadline = Instant::now() + STOP_WAIT;
        loop {
            let connections = self.connections.iter_mut().filter_map(|place| place.connection.as_mut());
            let blocked =
                connections.filter(|connection| connection.is_sending()).fold(0, |n, connection| {
                    n + usize::from(connection.output.flush(&mut connection.stream) == Flushed::Blocked)
                });
            if blocked == 0 || Instant::now() >= deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.close_all();
    }

    fn close_all(&mut self) {
        (0..self.connections.len()).for_each(|index| self.close(index));
    }

    fn serve(&mut self, socket: TcpStream, address: SocketAddr) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let transport = &self.shared.statistics.transport;
        transport.connections.add(1);
        let local = socket.local_addr().unwrap_or(self.shared.address);
        let ready = socket.set_nonblocking(true).and_then(|()| {
            socket.set_nodelay(!self.shared.config.nagle)?;
            sockopt::set_socket_keepalive(&socket, true)?;
            sockopt::set_tcp_keepidle(&socket, KEEPALIVE_IDLE)?;
            Ok(sockopt::set_tcp_keepintvl(&socket, KEEPALIVE_INTERVAL)?)
        });
        let index = self.free.pop().unwrap_or_else(|| {
            self.connections.push(ConnectionSlot::default());
            (self.connections.len() - 1) as u32
        });
        let place = &mut self.connections[index as usize];
        let token = token(index, place.uses);
        let watched = EventFlags::IN;
        let added =
            ready.and_then(|()| Ok(epoll::add(&self.epoll, &socket, EventData::new_u64(token), watched)?));
        if let Err(error) = added {
            log::warn!("cannot serve the connection from {address}: {error}");
            self.free.push(index);
            self.mailbox.load.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let outbox = Some(Arc::new(Outbox::new(Arc::clone(&self.mailbox), token)));
        let connection = ConnectionId(NEXT.fetch_add(1, Ordering::Relaxed));
        place.connection = Some(Box::new(Connection {
            stream: Stream::new(socket),
            peer: Peer { connection, address, local, outbox, protection: Protection::Plain },
            conversation: Conversation::default(),
            input: Input::default(),
            output: Output::default(),
            held: Holding::default(),
            calls: false,
            round: 0,
            watched,
            ended: false,
        }));
    }

    /// Takes a connection, if it is still the one of the token.
    fn take(&mut self, token: u64) -> Option<(usize, Box<Connection>)> {
        let (uses, index) = ((token >> 32) as u32, token as u32 as usize);
        let place = self.connections.get_mut(index).filter(|place| place.uses & 0x7fff_ffff == uses)?;
        Some((index, place.connection.take()?))
    }

    fn close(&mut self, index: usize) {
        let Some(place) = self.connections.get_mut(index) else { return };
        if let Some(connection) = place.connection.take() {
            self.bury(index, connection);
        }
    }

    fn bury(&mut self, index: usize, connection: Box<Connection>) {
        if let Some(outbox) = &connection.peer.outbox {
            outbox.close();
        }
        // Closing the socket takes it off the epoll.
        drop(connection);
        self.connections[index].uses = self.connections[index].uses.wrapping_add(1);
        self.free.push(index as u32);
        self.mailbox.load.fetch_sub(1, Ordering::Relaxed);
    }

    /// Something happened on a connection.
    fn attend(&mut self, token: u64, flags: EventFlags) {
        let Some((index, mut connection)) = self.take(token) else { return };
        // Reset, or closed in both directions: what is not sent yet has no reader.
        let mut open = !flags.intersects(EventFlags::HUP | EventFlags::ERR);
        if open && flags.contains(EventFlags::OUT) {
            open = connection.output.flush(&mut connection.stream) != Flushed::Broken;
        }
        if open && connection.calls {
            open = self.send_calls(&mut connection);
        }
        if open && connection.input.is_paused() {
            open = self.resume(&mut connection, token);
        }
        if open && flags.contains(EventFlags::IN) && !connection.stream.is_open() {
            open = self.shake(&mut connection);
        }
        let readable = flags.contains(EventFlags::IN) || connection.stream.is_readable();
        if open && readable && connection.takes_input() {
            open = self.receive(&mut connection, token);
        }
        self.put_back(index, connection, open);
    }

    /// Takes a connection that was attended to back into the table, or closes it.
    fn put_back(&mut self, index: usize, mut connection: Box<Connection>, open: bool) {
        let done = connection.ended
            && !connection.is_sending()
            && connection.held.is_empty()
            && !connection.input.is_paused();
        if !open || done {
            self.bury(index, connection);
            return;
        }
        let mut wanted = EventFlags::empty();
        if connection.takes_input() {
            wanted |= EventFlags::IN;
        }
        // A pause to let others have their turn, or one whose reason is over already: nothing else would end it.
        let resumes = (!connection.is_full() && connection.input.is_paused())
            || (connection.takes_input() && connection.stream.is_readable());
        if (connection.is_sending() && connection.stream.is_open()) || resumes {
            wanted |= EventFlags::OUT;
        }
        let token = token(index as u32, self.connections[index].uses);
        if wanted != connection.watched {
            let data = EventData::new_u64(token);
            if epoll::modify(&self.epoll, &connection.stream, data, wanted).is_err() {
                self.bury(index, connection);
                return;
            }
            connection.watched = wanted;
        }
        self.connections[index].connection = Some(connection);
    }

    /// One receive and all it brings. `false`: the connection is to be closed.
    fn receive(&mut self, connection: &mut Connection, token: u64) -> bool {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut open = self.receive_once(connection, token, &mut buffer);
        // Records that came together.
        while open && connection.takes_input() && connection.stream.is_readable() {
            open = self.receive_once(connection, token, &mut buffer);
        }
        self.buffer = buffer;
        open
    }

    fn receive_once(&mut self, connection: &mut Connection, token: u64, buffer: &mut [u8]) -> bool {
        match connection.input.receive(&mut connection.stream, buffer) {
            Received::Bytes(len) => {
                let mut open = self.process(connection, token, &buffer[..len]);
                if open && connection.takes_input() && connection.input.is_large_begun() {
                    open = match connection.input.receive(&mut connection.stream, &mut []) {
                        Received::Bytes(_) => self.process(connection, token, &[]),
                        // The next event will tell again.
                        Received::Blocked | Received::End => true,
                        Received::Broken => false,
                    };
                }
                open
            }
            Received::Blocked => true,
            Received::End => {
                connection.ended = true;
                true
            }
            Received::Broken => false,
        }
    }

    /// Goes on with the handshake of TLS. `false`: the connection is to be closed.
    fn shake(&mut self, connection: &mut Connection) -> bool {
        let transport = &self.shared.statistics.transport;
        match connection.stream.shake(&mut self.buffer) {
            Ok(None) => true,
            Ok(Some((protection, resumed))) => {
                connection.peer.protection = protection;
                transport.tls_handshakes.add(1);
                transport.tls_resumed.add(u64::from(resumed));
                connection.output.flush(&mut connection.stream) != Flushed::Broken
            }
            Err(error) => {
                transport.tls_failed.add(1);
                log::warn!("no TLS with {}: {error}", connection.peer.address);
                false
            }
        }
    }

    /// Goes on with records that were left when the client did not read its replies.
    fn resume(&mut self, connection: &mut Connection, token: u64) -> bool {
        connection.is_full() || self.process(connection, token, &[])
    }

    fn process(&mut self, connection: &mut Connection, token: u64, data: &[u8]) -> bool {
        let Connection { stream, peer, conversation, input, output, held, round, .. } = connection;
        let now = Moment::now();
        self.shared.arrivals.note(round, peer.connection, peer.address);
        let limit = self.shared.config.max_io as usize + RECORD_SPARE;
        let mut spare = std::mem::take(&mut self.spare);
        let (mut requests, mut sent) = (0, 0);
        conversation.may_wait = self.waiting.len() < MOST_WAITING;
        let control = input.process(data, limit, &mut spare, &mut |message| {
            let mark = record::begin(&mut self.reply.encoder);
            match dispatch::handle(&self.shared, peer, conversation, message, &mut self.reply, now) {
                Disposition::Send => {
                    if self.reply.encoder.len_since(mark) == record::HEADER {
                        self.reply.rollback(mark);
                    } else {
                        record::end(&mut self.reply.encoder, mark);
                    }
                }
                Disposition::Hold(delay, job) => {
                    if self.reply.encoder.len_since(mark) > record::HEADER {
                        record::end(&mut self.reply.encoder, mark);
                        let reply = self.reply.split_off(mark);
                        held.add(&reply);
                        let to = Destination::Connection(token);
                        hold(
                            &self.shared,
                            self.number,
                            &mut self.delayed,
                            now.instant,
                            (delay, job),
                            to,
                            reply,
                        );
                    }
                    self.reply.rollback(mark);
                }
                Disposition::Drop => self.reply.rollback(mark),
                Disposition::Again => {
                    self.reply.rollback(mark);
                    held.expect();
                    let (due, until) = (now.instant + LOOK_AGAIN, now.instant + WAIT_AT_MOST);
                    self.waiting.push_back(Waiting { due, until, token, message: message.to_vec() });
                    conversation.may_wait = self.waiting.len() < MOST_WAITING;
                }
                Disposition::StartTls => {
                    record::end(&mut self.reply.encoder, mark);
                    return Control::StartTls;
                }
                Disposition::Disconnect => {
                    self.reply.rollback(mark);
                    return Control::Close;
                }
            }
            requests += 1;
            if self.reply.len() >= SEND_AT {
                sent += self.reply.len();
                if !self.shared.flush() {
                    self.reply.clear();
                    return Control::Close;
                }
                if output.send(stream, &mut self.reply) == Flushed::Broken {
                    return Control::Close;
                }
            }
            let enough = requests >= TURN_REQUESTS || sent >= TURN_BYTES;
            if enough || output.len() > MOST_UNREAD || held.is_full() {
                Control::Pause
            } else {
                Control::Continue
            }
        });
        self.spare = spare;
        self.shared.statistics.transport.calls.add(conversation.take_calls());
        // One write for all requests of the receive, before any reply leaves.
        if !self.shared.flush() {
            self.reply.clear();
            return false;
        }
        match (output.send(stream, &mut self.reply), control, &self.shared.tls) {
            (Flushed::Broken, ..) | (_, Control::Close, _) => false,
            // The answer to the probe is the last thing in the clear, and nothing waits behind it.
            (Flushed::All, Control::StartTls, Some(tls)) => stream.start_tls(tls).is_ok(),
            (_, Control::StartTls, _) => false,
            _ => true,
        }
    }

    fn send_outbox(&mut self, token: u64) {
        let Some((index, mut connection)) = self.take(token) else { return };
        let open = self.send_calls(&mut connection);
        self.put_back(index, connection, open);
    }

    /// Sends the calls in a connection's outbox, unless too much waits to be read already. `false`: broken.
    fn send_calls(&mut self, connection: &mut Connection) -> bool {
        connection.calls = connection.is_full();
        if connection.calls {
            return true;
        }
        let calls = connection.peer.outbox.as_ref().map(|outbox| outbox.take()).unwrap_or_default();
        for call in calls {
            let mark = record::begin(&mut self.reply.encoder);
            self.reply.encoder.raw(&call);
            record::end(&mut self.reply.encoder, mark);
        }
        connection.output.send(&mut connection.stream, &mut self.reply) != Flushed::Broken
    }

    fn datagrams(&mut self, index: usize) {
        static NEXT: AtomicU64 = AtomicU64::new(1 << 63);
        let mut buffer = std::mem::take(&mut self.buffer);
        for _ in 0..DATAGRAMS {
            let Some(socket) = self.sockets.get(index) else { break };
            let Some((len, address)) = socket.receive(&mut buffer) else { break };
            self.shared.statistics.transport.datagrams.add(1);
            let connection = ConnectionId(NEXT.fetch_add(1, Ordering::Relaxed));
            let protection = Protection::Plain;
            let peer = Peer { connection, address, local: socket.local, outbox: None, protection };
            let now = Moment::now();
            let handled = dispatch::handle(
                &self.shared,
                &peer,
                &mut self.datagram_senders,
                &buffer[..len],
                &mut self.reply,
                now,
            );
            match handled {
                _ if !self.shared.flush() => {}
                Disposition::Send if !self.reply.is_empty() => socket.send(&self.reply, address),
                Disposition::Hold(delay, job) if !self.reply.is_empty() => {
                    let (reply, to) =
                        (std::mem::take(&mut self.reply), Destination::Datagram(index, address));
                    hold(&self.shared, self.number, &mut self.delayed, now.instant, (delay, job), to, reply);
                }
                _ => {}
            }
            self.reply.clear();
        }
        let calls = self.datagram_senders.take_calls();
        self.shared.statistics.transport.calls.add(calls);
        self.buffer = buffer;
    }
}

impl Connection {
    /// Whether a client has so many replies before it that it must read some first.
    fn is_full(&self) -> bool {
        self.output.len() > MOST_UNREAD || self.held.is_full()
    }

    /// Whether something waits for room in the socket.
    fn is_sending(&self) -> bool {
        !self.output.is_empty() || self.stream.is_sending()
    }

    /// Whether more is received from the client now.
    fn takes_input(&self) -> bool {
        !self.ended && !self.input.is_paused() && !self.is_full()
    }
}
