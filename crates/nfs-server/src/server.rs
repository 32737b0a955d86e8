//! A running server: shared parts, start and stop.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex};
use quanta::Clock;
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::arrivals::Arrivals;
use crate::callback::Callbacks;
use crate::config::ServerConfig;
use crate::dispatch::Moment;
use crate::drc::ReplyCache;
use crate::exports::{ExportError, Exports};
use crate::inject::Injector;
use crate::mount::Mounts;
use crate::net::{Datagrams, Listener, Mailbox, Message, Worker};
use crate::nlm::callback::Patience;
use crate::nlm::{self, LockCallbacks, Shares};
use crate::snapshot::{self, Meta, SnapshotError};
use crate::state::{Effect, Effects, State};
use crate::stats::{Report, Statistics};

/// What all threads of a server share.
#[derive(Debug)]
pub struct Shared {
    /// As started.
    pub config: ServerConfig,
    /// Files.
    pub exports: Exports,
    /// Clients.
    pub state: State,
    /// Calls to clients: a thread of the server runs [`Callbacks::run`], and REPLY records go to [`Callbacks::reply`].
    pub callbacks: Callbacks,
    /// Injected behaviour.
    pub injector: Injector,
    /// Counters.
    pub statistics: Statistics,
    /// When clients began.
    pub arrivals: Arrivals,
    /// Replies to requests that must not be executed twice.
    pub replies: ReplyCache,
    /// Mounts that clients told of.
    pub(crate) mounts: Mounts,
    /// DOS share modes of NLM clients.
    pub(crate) shares: Shares,
    /// Calls to lock managers of clients: locks granted after waiting.
    pub(crate) lock_callbacks: LockCallbacks,
    /// Cheap clock for service times.
    pub(crate) clock: Clock,
    /// Number of this server in its handles; the same after a restart with state.
    pub instance: u32,
    /// Differs at every start: verifier of WRITE and COMMIT, part of client ids and stateids.
    pub boot: u64,
    /// Where it listens.
    pub address: SocketAddr,
    /// Where it answers as portmapper.
    pub portmap: Option<SocketAddr>,
    /// When it started.
    pub started: Instant,
}

/// What tells one start of a server from another.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// Number in handles.
    pub(crate) instance: u32,
    /// Number of this start.
    pub(crate) boot: u64,
    /// Names of clients that may reclaim.
    pub(crate) known_clients: Vec<Vec<u8>>,
}

impl Shared {
    pub(crate) fn new(
        config: ServerConfig,
        exports: Exports,
        identity: Identity,
        address: SocketAddr,
        portmap: Option<SocketAddr>,
    ) -> io::Result<Self> {
        let started = Instant::now();
        Ok(Self {
            exports,
            state: State::new(&config, identity.boot, started, identity.known_clients),
            callbacks: Callbacks::new(config.lease)?,
            injector: Injector::new(config.rules.clone(), config.seed),
            statistics: Statistics::new(config.threads + 1),
            arrivals: Arrivals::default(),
            replies: ReplyCache::default(),
            mounts: Mounts::default(),
            shares: Shares::default(),
            lock_callbacks: LockCallbacks::default(),
            clock: Clock::new(),
            instance: identity.instance,
            boot: identity.boot,
            address,
            portmap,
            started,
            config,
        })
    }

    /// A server without sockets and threads: [`crate::dispatch::handle`] is all that happens. Servers of the same instance and
    /// boot number give the same handles and identifiers for the same requests.
    pub fn detached(
        config: ServerConfig,
        instance: u32,
        boot: u64,
        now: Moment,
    ) -> Result<Self, ServerError> {
        let exports = Exports::new(&config, now.wall)?;
        let identity = Identity { instance, boot, known_clients: Vec::new() };
        let address = config.listen;
        let mut detached = Self::new(config, exports, identity, address, None)?;
        detached.lock_callbacks = LockCallbacks::new(Patience { tries: 0, ..Patience::default() });
        Ok(detached)
    }

    /// Carries out what state changes asked for. Call it with no lock held.
    pub fn apply(&self, effects: &mut Effects) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Release(id) => {
                    if let Ok((fs, node)) = self.exports.file(id) {
                        fs.release(node);
                    }
                }
                Effect::NlmGranted(waiter) => self.lock_callbacks.granted(&waiter),
                callback => self.callbacks.submit(callback),
            }
        }
    }

    /// Everything counted so far.
    pub fn report(&self) -> Report {
        let state = self.state.report();
        self.statistics.report(self.started.elapsed(), state, self.injector.struck())
    }
}

/// Why a server cannot start, or cannot stop as it should.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// An address cannot be listened on.
    #[error("cannot listen on {protocol} {address}: {source}")]
    Listen {
        /// `TCP` or `UDP`.
        protocol: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The exports make no name space.
    #[error(transparent)]
    Exports(#[from] ExportError),
    /// State cannot be read or written.
    #[error(transparent)]
    State(#[from] SnapshotError),
    /// The system gives no epoll, timer, thread or the like.
    #[error("cannot start serving: {0}")]
    System(#[from] io::Error),
}

/// A running server; dropping it stops it.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    mailboxes: Vec<Arc<Mailbox>>,
    stopping: Arc<Stopping>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Wakes the housekeeping thread for the last time.
#[derive(Debug, Default)]
struct Stopping {
    stop: Mutex<bool>,
    told: Condvar,
}

/// How often leases, recalls and injected disconnects are looked after.
const TICK: Duration = Duration::from_millis(100);

impl Server {
    /// Starts serving. When it returns, clients can connect. Raises the process's limit of open files as far as it may: every
    /// connection takes one.
    pub fn start(config: ServerConfig) -> Result<Self, ServerError> {
        let mut files = getrlimit(Resource::Nofile);
        files.current = files.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, files) {
            tracing::debug!(%error, "limit of open files");
        }
        let (listener, socket) = bind(config.listen)?;
        let address = listener.local_addr()?;
        let portmap = config.portmap.map(bind).transpose()?;
        let portmap_address = portmap.as_ref().map(|(listener, _)| listener.local_addr()).transpose()?;
        let (exports, identity) = load(&config)?;
        let mailboxes = (0..config.threads.max(1))
            .map(|_| Mailbox::new().map(Arc::new))
            .collect::<io::Result<Vec<_>>>()?;
        let shared = Arc::new(Shared::new(config, exports, identity, address, portmap_address)?);

        let mut listeners = vec![Listener::new(listener, mailboxes.clone())?];
        let mut sockets = vec![Datagrams::new(socket)?];
        if let Some((listener, socket)) = portmap {
            listeners.push(Listener::new(listener, mailboxes.clone())?);
            sockets.push(Datagrams::new(socket)?);
        }
        let mut threads = Vec::new();
        for (number, mailbox) in mailboxes.iter().enumerate() {
            let first = number == 0;
            let (listeners, sockets) = match first {
                true => (std::mem::take(&mut listeners), std::mem::take(&mut sockets)),
                false => Default::default(),
            };
            let worker = Worker::new(Arc::clone(&shared), Arc::clone(mailbox), listeners, sockets)?;
            threads.push(spawn(format!("nfs-{number}"), move || worker.run())?);
        }
        let stopping = Arc::new(Stopping::default());
        {
            let (shared, stopping, mailboxes) =
                (Arc::clone(&shared), Arc::clone(&stopping), mailboxes.clone());
            threads.push(spawn("nfs-housekeeping".into(), move || {
                keep_house(&shared, &stopping, &mailboxes);
                Ok(())
            })?);
        }
        {
            let shared = Arc::clone(&shared);
            threads.push(spawn("nfs-callbacks".into(), move || {
                shared.callbacks.run(&shared.state, shared.instance, |effects| shared.apply(effects))
            })?);
        }
        Ok(Self { shared, mailboxes, stopping, threads: Mutex::new(threads) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// Where it answers as portmapper.
    pub fn portmap_address(&self) -> Option<SocketAddr> {
        self.shared.portmap
    }

    /// What its threads share.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// Everything counted so far.
    pub fn report(&self) -> Report {
        self.shared.report()
    }

    /// When the first requests of connections came.
    pub fn arrivals(&self) -> &Arrivals {
        &self.shared.arrivals
    }

    /// Closes all connections, or those of a client, as an injected disconnect does.
    pub fn disconnect(&self, client: Option<crate::stats::ClientIndex>) {
        disconnect(&self.mailboxes, client);
    }

    /// Stops: finishes the requests in hand, closes all connections, and writes the state where that was asked for. A second
    /// call does nothing.
    pub fn stop(&self) -> Result<(), ServerError> {
        let threads = std::mem::take(&mut *self.threads.lock());
        if threads.is_empty() {
            return Ok(());
        }
        self.mailboxes.iter().for_each(|mailbox| mailbox.post(Message::Stop));
        *self.stopping.stop.lock() = true;
        self.stopping.told.notify_all();
        self.shared.callbacks.stop();
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread of the server panicked");
            }
        }
        if let Some(path) = &self.shared.config.state {
            let clients = self.shared.state.read().clients.known_clients();
            let meta = Meta { instance: self.shared.instance, clients };
            snapshot::save(path, &self.shared.exports, &meta)?;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            tracing::error!(%error, "stopping");
        }
    }
}

/// TCP and UDP on the same port.
fn bind(address: SocketAddr) -> Result<(TcpListener, UdpSocket), ServerError> {
    /// How often another free port is tried when UDP does not get the one that TCP got.
    const ATTEMPTS: usize = 16;
    let failed = |protocol, address| move |source| ServerError::Listen { protocol, address, source };
    let mut attempt = 0;
    loop {
        let listener = TcpListener::bind(address).map_err(failed("TCP", address))?;
        let bound = listener.local_addr()?;
        match UdpSocket::bind(bound) {
            Ok(socket) => return Ok((listener, socket)),
            Err(_) if address.port() == 0 && attempt < ATTEMPTS => attempt += 1,
            Err(source) => return Err(failed("UDP", bound)(source)),
        }
    }
}

/// The exports and who the server is: from the state file, or new.
fn load(config: &ServerConfig) -> Result<(Exports, Identity), ServerError> {
    let now = Moment::now().wall;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let boot = since.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(44);
    let kept = match &config.state {
        Some(path) => snapshot::load(path, config, now)?,
        None => None,
    };
    Ok(match kept {
        Some((exports, meta)) => {
            (exports, Identity { instance: meta.instance, boot, known_clients: meta.clients })
        }
        None => {
            let instance = (boot ^ boot >> 32) as u32;
            (Exports::new(config, now)?, Identity { instance, boot, known_clients: Vec::new() })
        }
    })
}

fn spawn(
    name: String,
    body: impl FnOnce() -> io::Result<()> + Send + 'static,
) -> Result<JoinHandle<()>, ServerError> {
    let body = move || {
        if let Err(error) = body() {
            tracing::error!(%error, "a thread of the server ended");
        }
    };
    Ok(thread::Builder::new().name(name).spawn(body)?)
}

fn keep_house(shared: &Shared, stopping: &Stopping, mailboxes: &[Arc<Mailbox>]) {
    let mut stop = stopping.stop.lock();
    while !*stop {
        stopping.told.wait_for(&mut stop, TICK);
        let now = Instant::now();
        let mut effects = shared.state.tick(now);
        nlm::tick(shared, &mut effects);
        shared.apply(&mut effects);
        for client in shared.injector.disconnects_due(now) {
            disconnect(mailboxes, client);
        }
    }
}

fn disconnect(mailboxes: &[Arc<Mailbox>], client: Option<crate::stats::ClientIndex>) {
    mailboxes.iter().for_each(|mailbox| mailbox.post(Message::Close(client)));
}
