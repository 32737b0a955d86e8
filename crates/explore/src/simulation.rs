//! Time, network and server of a scenario, as one [`World`] of its clients. Nothing happens by itself: a reactor whose tasks all
//! wait lets the next event happen, and time stands still in between.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use benchmaster_nfs_client::rpc::Transport;
use benchmaster_nfs_client::world::World;
use benchmaster_nfs_proto::record::{self, Scan};
use benchmaster_nfs_server::callback::Stepper;
use benchmaster_nfs_server::dispatch::{self, Conversation, Disposition, LOOK_AGAIN, WAIT_AT_MOST};
use benchmaster_nfs_server::fs::{Time, Trouble};
use benchmaster_nfs_server::moment::Moment;
use benchmaster_nfs_server::outbox::Outbox;
use benchmaster_nfs_server::peer::Peer;
use benchmaster_nfs_server::reply::Reply;
use benchmaster_nfs_server::shared::Shared;
use benchmaster_nfs_server::state::{ClientId, ConnectionId};
use benchmaster_nfs_server::{ExportConfig, ServerConfig};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::history::{Line, Who};
use crate::oracle::Oracle;
use crate::scenario::{Dice, FaultKind, LEASE, Scenario};
use crate::wire;

mod callbacks;
mod faults;
mod network;
mod tampering;

use self::callbacks::{Callback, Listener};
use self::faults::loses;
use self::network::Network;
use self::tampering::Tampering;

/// Time of day when a scenario begins.
const EPOCH: Duration = Duration::from_secs(1_700_000_000);
/// How often the server looks after leases.
const TICK: Duration = Duration::from_millis(100);
/// What the server takes for a call.
const SERVICE: Duration = Duration::from_micros(20);
/// Longest record.
const LIMIT: usize = 4 << 20;
/// Port of all programs of the server.
pub(crate) const PORT: u16 = 2049;
/// What clients call themselves, before their number.
pub(crate) const NAME: &str = "client";
/// One who sees everything before and after the clients.
pub(crate) const AUDITOR: usize = 250;

/// The world of a scenario.
#[derive(Debug)]
pub(crate) struct Simulation {
    inner: RefCell<Inner>,
    pub(crate) oracle: Rc<RefCell<Oracle>>,
}

#[derive(Debug)]
struct Inner {
    /// What instants count from.
    origin: Instant,
    oracle: Rc<RefCell<Oracle>>,
    now: Duration,
    /// When what is not over yet will never be.
    limit: Duration,
    queue: BinaryHeap<Reverse<Due>>,
    number: u64,
    dice: Dice,
    network: Network,
    connections: Vec<Connection>,
    listeners: Vec<Listener>,
    server: Server,
    faults: Vec<FaultKind>,
    history: Vec<Line>,
    /// Until when nothing passes to and from each client.
    cut_off: Vec<Duration>,
    dead: Vec<bool>,
    /// Whose next reply is lost.
    loses: Vec<bool>,
    /// Delegations of each client that this server revoked.
    revoked: Vec<u64>,
    /// What of the next callback to each client is lost.
    loses_callback: Vec<Option<Callback>>,
    tampering: Option<Tampering>,
}

#[derive(Debug)]
struct Connection {
    client: usize,
    transport: Transport,
    /// Our end; `None` once it is closed.
    end: Option<OwnedFd>,
    /// What did not fit into the client's end yet.
    unwritten: Vec<u8>,
    /// What came and is no whole record yet.
    input: Vec<u8>,
    conversation: Conversation,
    /// Whom the server calls over it, if it made it.
    called: Option<ClientId>,
    /// Whether a callback was sent over it.
    calls: bool,
    peer: Peer,
    /// When the last bytes arrive in each direction: none overtake others.
    last: [Duration; 2],
}

impl Connection {
    fn is_stream(&self) -> bool {
        self.transport == Transport::Tcp
    }

    /// Whether the server takes this for a connection that stands.
    fn is_open(&self) -> bool {
        self.peer.outbox.as_ref().is_some_and(|outbox| outbox.is_open())
    }
}

#[derive(Debug)]
struct Server {
    config: ServerConfig,
    shared: Option<Arc<Shared>>,
    /// What is kept while it is down.
    kept: Option<Shared>,
    callbacks: Option<Stepper>,
    boots: u64,
    /// Until when it stands still.
    paused: Duration,
    /// How far its time of day is off.
    clock: i64,
}

#[derive(Debug, PartialEq, Eq)]
struct Due {
    at: Duration,
    number: u64,
    event: Event,
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Event {
    ToServer(usize, Vec<u8>),
    ToClient(usize, Vec<u8>),
    /// A client's end was closed.
    Closed(usize),
    /// A request that waits for another client, and until when.
    Again(usize, Vec<u8>, Duration),
    Tick,
    Fault(usize),
    /// The server comes back.
    Up,
    /// The network is good again.
    Calm,
    /// The disk is good again.
    Mended(Trouble),
    /// A connection that the server had made is no more.
    Unreached(ClientId),
}

impl Simulation {
    pub(crate) fn new(scenario: &Scenario, oracle: Rc<RefCell<Oracle>>) -> Result<Self, String> {
        let mut dice = Dice::new(scenario.seed, 1);
        let network = Network::new(&mut dice);
        let export =
            ExportConfig { path: "/export".into(), limit: Some(64 << 20), ..ExportConfig::default() };
        let config = ServerConfig {
            listen: SocketAddr::from(([10, 0, 0, 1], PORT)),
            threads: 1,
            exports: vec![export],
            lease: LEASE,
            write_delegations: dice.one_in(2),
            seed: scenario.seed,
            memory: 1 << 30,
            volatile: scenario.has(loses),
            ..ServerConfig::default()
        };
        let server = Server {
            config,
            shared: None,
            kept: None,
            callbacks: None,
            boots: 0,
            paused: Duration::ZERO,
            clock: 0,
        };
        let mut inner = Inner {
            origin: Instant::now(),
            oracle: Rc::clone(&oracle),
            now: Duration::ZERO,
            limit: Duration::from_secs(600),
            queue: BinaryHeap::new(),
            number: 0,
            dice,
            network,
            connections: Vec::new(),
            listeners: Vec::new(),
            server,
            faults: scenario.faults.iter().map(|fault| fault.kind).collect(),
            history: Vec::new(),
            cut_off: vec![Duration::ZERO; AUDITOR + 1],
            dead: vec![false; AUDITOR + 1],
            loses: vec![false; AUDITOR + 1],
            revoked: vec![0; scenario.clients.len()],
            loses_callback: vec![None; AUDITOR + 1],
            tampering: None,
        };
        inner.up()?;
        inner.put(TICK, Event::Tick);
        Ok(Self { inner: RefCell::new(inner), oracle })
    }

    /// Time since the beginning.
    pub(crate) fn elapsed(&self) -> Duration {
        self.inner.borrow().now
    }

    /// From now on faults happen, and nothing may take longer than until `limit`.
    pub(crate) fn begin(&self, scenario: &Scenario, limit: Duration) {
        let mut inner = self.inner.borrow_mut();
        let now = inner.now;
        for (number, fault) in scenario.faults.iter().enumerate() {
            inner.put(now + fault.at, Event::Fault(number));
        }
        inner.limit = now + limit;
    }

    /// From now on the server's messages are changed at random, `permille` of a thousand.
    pub(crate) fn tamper(&self, seed: u64, permille: u64) {
        self.inner.borrow_mut().tampering = Some(Tampering::new(seed, permille));
    }

    /// All faults are over, also those that did not happen yet; nothing may take longer than until `limit` from now.
    pub(crate) fn heal(&self, limit: Duration) -> Result<(), String> {
        let mut inner = self.inner.borrow_mut();
        inner.queue.retain(|Reverse(due)| !matches!(due.event, Event::Fault(_) | Event::Up));
        inner.network.permille = 0;
        inner.tampering = None;
        Trouble::ALL.into_iter().for_each(|what| inner.mend(what));
        if inner.server.shared.is_none() {
            inner.up()?;
        }
        inner.arrive();
        inner.limit = inner.now + limit;
        Ok(())
    }

    pub(crate) fn note(&self, who: Who, what: String) {
        let mut inner = self.inner.borrow_mut();
        let at = inner.now;
        inner.history.push(Line { at, who, what });
    }

    /// A client is no more: nothing leaves or reaches it, and the server does not learn of it.
    pub(crate) fn kill(&self, client: usize) {
        self.inner.borrow_mut().dead[client] = true;
        self.oracle.borrow_mut().died(client);
    }

    pub(crate) fn history(&self) -> Vec<Line> {
        std::mem::take(&mut self.inner.borrow_mut().history)
    }
}

impl World for Simulation {
    fn now(&self) -> Instant {
        self.inner.borrow().instant()
    }

    fn random(&self) -> u64 {
        self.inner.borrow_mut().dice.any()
    }

    fn connect(&self, to: SocketAddr, transport: Transport) -> io::Result<OwnedFd> {
        let mut inner = self.inner.borrow_mut();
        let client = client_of(to)?;
        if inner.dead.get(client) != Some(&false) {
            return Err(io::ErrorKind::NetworkUnreachable.into());
        }
        if transport == Transport::Tcp {
            if inner.cut_off[client] > inner.now {
                return Err(io::ErrorKind::TimedOut.into());
            }
            if inner.server.shared.is_none() || to.port() != PORT {
                return Err(io::ErrorKind::ConnectionRefused.into());
            }
        }
        let kind = match transport {
            Transport::Tcp => SocketType::STREAM,
            Transport::Udp => SocketType::DGRAM,
        };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
        let number = inner.connect(client, transport, ours);
        inner.line(Who::ToServer(client as u8), format!("connection {number} is made"));
        Ok(theirs)
    }

    fn listen(&self, server: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
        self.inner.borrow_mut().listen(client_of(server)?)
    }

    fn advance(&self, timer: Option<Instant>) -> io::Result<()> {
        let mut inner = self.inner.borrow_mut();
        inner.collect();
        let timer = timer.map(|timer| timer.saturating_duration_since(inner.origin));
        let event = inner.queue.peek().map(|Reverse(due)| due.at);
        let next = [timer, event].into_iter().flatten().min().unwrap_or(Duration::MAX);
        if next > inner.limit {
            return Err(io::Error::other("it does not end"));
        }
        inner.now = inner.now.max(next);
        if timer.is_some_and(|timer| event.is_none_or(|event| timer <= event)) {
            return Ok(());
        }
        if let Some(Reverse(due)) = inner.queue.pop() {
            inner.happen(due.event);
        }
        Ok(())
    }
}

/// Who calls the server by this address: each client has its own.
fn client_of(server: SocketAddr) -> io::Result<usize> {
    match server.ip() {
        IpAddr::V4(address) => Ok(usize::from(address.octets()[3])),
        IpAddr::V6(_) => Err(io::ErrorKind::AddrNotAvailable.into()),
    }
}

impl Inner {
    /// A connection between a client and the server; its number.
    fn connect(&mut self, client: usize, transport: Transport, end: OwnedFd) -> usize {
        let number = self.connections.len();
        let outbox = (transport == Transport::Tcp).then(Arc::<Outbox>::default);
        let peer = Peer {
            connection: ConnectionId(number as u64 + 1),
            address: SocketAddr::from(([10, 0, 1, client as u8], 700 + (number % 60_000) as u16)),
            local: self.server.config.listen,
            outbox,
            protection: Default::default(),
        };
        self.connections.push(Connection {
            client,
            transport,
            end: Some(end),
            unwritten: Vec::new(),
            input: Vec::new(),
            conversation: Conversation::default(),
            called: None,
            calls: false,
            peer,
            last: [self.now; 2],
        });
        number
    }

    fn put(&mut self, at: Duration, event: Event) {
        self.number += 1;
        self.queue.push(Reverse(Due { at, number: self.number, event }));
    }

    fn line(&mut self, who: Who, what: String) {
        self.history.push(Line { at: self.now, who, what });
    }

    fn instant(&self) -> Instant {
        self.origin + self.now
    }

    /// The server's reading of both clocks.
    fn moment(&self) -> Moment {
        let wall = EPOCH + self.now;
        let wall = Time { seconds: wall.as_secs() as i64 + self.server.clock, nanos: wall.subsec_nanos() };
        Moment { instant: self.instant(), wall }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Tick => {
                let at = self.now + TICK;
                if self.server.paused <= self.now {
                    self.tick();
                }
                self.put(at, Event::Tick);
            }
            Event::ToServer(number, bytes) => {
                if self.server.paused > self.now {
                    let at = self.server.paused;
                    self.put(at, Event::ToServer(number, bytes));
                    return;
                }
                self.received(number, &bytes);
            }
            Event::ToClient(number, bytes) => {
                let connection = &mut self.connections[number];
                let client = connection.client;
                if self.dead[client] {
                    return;
                }
                let what = wire::answer(&bytes, connection.transport);
                if !connection.is_stream() {
                    if let Some(end) = &connection.end {
                        // A full queue drops datagrams.
                        let _ = rustix::io::write(end, &bytes);
                    }
                } else {
                    connection.unwritten.extend_from_slice(&bytes);
                    self.push_rest(number);
                }
                self.line(Who::ToClient(client as u8), what);
            }
            Event::Closed(number) => self.close(number),
            Event::Again(number, message, until) => {
                if self.server.paused > self.now {
                    let at = self.server.paused;
                    self.put(at, Event::Again(number, message, until));
                } else if self.connections[number].is_open() {
                    self.handle(number, &message, Some(until));
                }
            }
            Event::Fault(number) => self.strike(self.faults[number]),
            Event::Up => {
                if let Err(error) = self.up() {
                    self.line(Who::Server, format!("cannot be started again: {error}"));
                }
            }
            Event::Calm => self.network.permille = 0,
            Event::Mended(what) => self.mend(what),
            Event::Unreached(client) => self.unreached(client),
        }
    }

    /// Breaks a connection.
    fn close(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        connection.end = None;
        connection.input.clear();
        connection.unwritten.clear();
        if let Some(outbox) = &connection.peer.outbox {
            outbox.close();
        }
        if let Some(client) = connection.called.take() {
            self.put(self.now, Event::Unreached(client));
        }
    }

    fn close_stream(&mut self, number: usize) {
        if self.connections[number].is_stream() {
            self.close(number);
        }
    }

    /// Starts the server, with what it kept.
    fn up(&mut self) -> Result<(), String> {
        let now = self.moment();
        self.server.boots += 1;
        let boot = self.dice.any();
        let shared = match self.server.kept.take() {
            Some(kept) => kept.restarted(boot, now.instant).map_err(|error| error.to_string())?,
            None if self.server.boots > 1 => return Err("what it kept is still in use".into()),
            None => {
                let config = self.server.config.clone();
                Shared::detached(config, 77, boot, now).map_err(|error| error.to_string())?
            }
        };
        let shared = Arc::new(shared);
        self.revoked.fill(0);
        self.server.callbacks =
            Some(Stepper::new(Arc::clone(&shared), now.instant).map_err(|error| error.to_string())?);
        self.server.shared = Some(shared);
        self.line(Who::Server, format!("starts (boot {})", self.server.boots));
        Ok(())
    }

    fn tick(&mut self) {
        let Some(shared) = self.server.shared.clone() else { return };
        shared.tick(self.instant());
        self.look_at_delegations(&shared);
        drop(shared);
        self.call_back();
    }

    /// Bytes reached the server.
    fn received(&mut self, number: usize, bytes: &[u8]) {
        if self.server.shared.is_none() {
            return;
        }
        let connection = &mut self.connections[number];
        let (called, stream) = (connection.called, connection.is_stream());
        if stream && !connection.is_open() {
            return;
        }
        if !stream {
            self.handle(number, bytes, None);
            return;
        }
        connection.input.extend_from_slice(bytes);
        loop {
            let input = &mut self.connections[number].input;
            let message = match record::next_record(input, LIMIT) {
                Ok(Scan::Record { payload, consumed }) => {
                    let message = input[payload].to_vec();
                    input.drain(..consumed);
                    message
                }
                Ok(Scan::Need(_)) => return,
                // Our client sends whole records.
                Ok(Scan::Fragmented) | Err(_) => return self.close(number),
            };
            if self.loses_reply(number, &message) {
                return;
            }
            match called {
                Some(client) => self.called_back(client, number, &message),
                None => self.handle(number, &message, None),
            }
        }
    }

    /// The server handles a message; `waited` is until when it may wait, the second time.
    fn handle(&mut self, number: usize, message: &[u8], waited: Option<Duration>) {
        let Some(shared) = self.server.shared.clone() else { return };
        let (now, moment, struck) = (self.now, self.moment(), shared.struck());
        let verifier = shared.write_verifier();
        let connection = &mut self.connections[number];
        let client = connection.client;
        let stream = connection.is_stream();
        connection.conversation.may_wait = stream && waited.is_none_or(|until| now < until);
        let mut reply = Reply::new();
        let mark = reply.mark();
        let peer = connection.peer.clone();
        let disposition =
            dispatch::handle(&shared, &peer, &mut connection.conversation, message, &mut reply, moment);
        let bytes = reply.copy_since(mark);
        drop(reply);
        let struck = shared.struck() > struck;
        if shared.write_verifier() != verifier {
            self.oracle.borrow_mut().forgot();
        }
        drop(shared);
        let what = wire::call(message);
        let (changes, renews) = (wire::changes(&what), wire::renews(&what));
        self.line(Who::ToServer(client as u8), what);
        if renews && client < AUDITOR {
            self.oracle.borrow_mut().heard(client, now);
        }
        if struck {
            self.line(Who::Server, "the disk fails".into());
            if client < AUDITOR {
                self.oracle.borrow_mut().struck(client);
            }
        }
        let send = match disposition {
            Disposition::Send => (!bytes.is_empty()).then_some(Duration::ZERO),
            Disposition::Hold(delay, _) => Some(delay),
            // Simulated servers have no certificates.
            Disposition::Drop | Disposition::StartTls => None,
            Disposition::Disconnect => {
                self.close(number);
                None
            }
            Disposition::Again => {
                let until = waited.unwrap_or(now + WAIT_AT_MOST);
                self.put(now + LOOK_AGAIN, Event::Again(number, message.to_vec(), until));
                None
            }
        };
        if changes && send.is_some() && std::mem::take(&mut self.loses[client]) {
            self.line(Who::ToClient(client as u8), "lost".into());
            if stream {
                self.close(number);
            }
        } else if let Some(delay) = send {
            self.say(number, bytes, delay + SERVICE);
        }
        self.call_back();
    }
}
