//! A running server: start, crash and stop.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use benchmaster_nfs_proto::mutant;
use benchmaster_rpc_gss::Flavors;
use benchmaster_rpc_tls::ServerTls;
use parking_lot::{MappedRwLockReadGuard, Mutex};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rustix::process::{Resource, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};

use crate::arrivals::Arrivals;
use crate::config::ServerConfig;
use crate::error::ServerError;
use crate::exports::Exports;
use crate::lives::{Lives, Present};
use crate::mailbox::{Mailbox, Message};
use crate::moment::Moment;
use crate::net::{Datagrams, Listener, Worker};
use crate::shared::{Identity, Shared};
use crate::snapshot::{self, Meta};
use crate::stats::{ClientIndex, Report};
use crate::wal::{self, Durability, Wal};

/// A running server; dropping it stops it.
#[derive(Debug)]
pub struct Server {
    lives: Arc<Lives>,
    mailboxes: Vec<Arc<Mailbox>>,
    addresses: Vec<SocketAddr>,
    portmap: Option<SocketAddr>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// What goes when a server ends without notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// The process: all connections, and what it had in memory only. The server's memory stands for its disk, so all data
    /// survive.
    Process,
    /// The power: besides, of data that were never called stable (WRITE with DATA_SYNC or FILE_SYNC, COMMIT) each 512 bytes are
    /// lost or not. Needs [`ServerConfig::volatile`].
    Power,
}

/// What a crash took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Crash {
    /// Blocks of 512 bytes that were not stable and are lost.
    pub lost_blocks: u64,
    /// NFSv4 clients, and hosts with locks of NLM, that may reclaim what they held, during a grace period of one lease time.
    pub known_clients: usize,
    /// How long nothing was served.
    pub down: Duration,
}

/// How often leases, recalls and injected disconnects are looked after.
const TICK: Duration = Duration::from_millis(100);

impl Server {
    /// Starts serving. When it returns, clients can connect. Raises the process's limit of open files as far as it
    /// may: every connection takes one.
    pub fn start(config: ServerConfig) -> Result<Self, ServerError> {
        let mut files = getrlimit(Resource::Nofile);
        files.current = files.maximum;
        if let Err(error) = setrlimit(Resource::Nofile, files) {
            log::debug!("limit of open files: {error}");
        }
        let places = bind_all(config.listen, &config.also_listen)?;
        let addresses: Vec<SocketAddr> =
            places.iter().map(|(listener, _)| listener.local_addr()).collect::<io::Result<_>>()?;
        let address = addresses.first().copied().unwrap_or(config.listen);
        let portmap = config.portmap.map(bind).transpose()?;
        let portmap_address = portmap.as_ref().map(|(listener, _)| listener.local_addr()).transpose()?;
        if config.durability != Durability::None && config.state.is_none() {
            return Err(ServerError::NoState);
        }
        if config.require_tls && config.tls.is_none() {
            return Err(ServerError::NoCertificate);
        }
        let flavors = config.exports.iter().map(|export| export.security.unwrap_or(config.security));
        if config.kerberos.is_none() && flavors.fold(Flavors::EMPTY, Flavors::or).need_kerberos() {
            return Err(ServerError::NoKeytab);
        }
        let tls = config.tls.as_ref().map(ServerTls::new).transpose()?;
        let (exports, identity) = load(&config)?;
        let mailboxes = (0..config.threads.max(1))
            .map(|_| Mailbox::new().map(Arc::new))
            .collect::<io::Result<Vec<_>>>()?;
        let mut shared = Shared::new(config, exports, identity, address, portmap_address, Instant::now())?;
        shared.tls = tls;
        let shared = Arc::new(shared);

        let (mut listeners, mut sockets) = (Vec::new(), Vec::new());
        for (listener, socket) in places.into_iter().chain(portmap) {
            listeners.push(Listener::new(listener, mailboxes.clone())?);
            sockets.push(Datagrams::new(socket)?);
        }
        let mut workers = Vec::new();
        for (number, mailbox) in mailboxes.iter().enumerate() {
            // The first one listens.
            let places = (std::mem::take(&mut listeners), std::mem::take(&mut sockets));
            workers.push(Worker::new(Arc::clone(&shared), (number, Arc::clone(mailbox)), places)?);
        }
        let lives = Arc::new(Lives::new(shared));
        let mut threads = Vec::new();
        for (number, (worker, mailbox)) in workers.into_iter().zip(&mailboxes).enumerate() {
            let (mailbox, mut worker, mut places) = (Arc::clone(mailbox), Some(worker), Default::default());
            threads.push(spawn(&lives, format!("nfs-{number}"), move |present| {
                let worker = match worker.take() {
                    Some(worker) => worker,
                    None => {
                        let (shared, place) = (Arc::clone(&present.shared), (number, Arc::clone(&mailbox)));
                        Worker::new(shared, place, std::mem::take(&mut places))?
                    }
                };
                places = worker.run()?;
                Ok(())
            })?);
        }
        let posts = mailboxes.clone();
        threads.push(spawn(&lives, "nfs-housekeeping".into(), move |present| {
            housekeeping(present, &posts);
            Ok(())
        })?);
        threads.push(spawn(&lives, "nfs-callbacks".into(), |Present { shared, .. }| {
            shared.callbacks.run(&shared.state, shared.instance, |effects| shared.apply(effects))
        })?);
        Ok(Self { lives, mailboxes, addresses, portmap: portmap_address, threads: Mutex::new(threads) })
    }

    /// Address on which it listens, the first of all.
    pub fn address(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// All addresses on which it listens, in the order of the configuration.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Where it answers as portmapper.
    pub fn portmap_address(&self) -> Option<SocketAddr> {
        self.portmap
    }

    /// What its threads share. A [crash](Server::crash) waits until it is dropped.
    pub fn shared(&self) -> MappedRwLockReadGuard<'_, Shared> {
        self.lives.shared()
    }

    /// Everything counted so far, crashes or not.
    pub fn report(&self) -> Report {
        self.shared().report()
    }

    /// When the first requests of connections came.
    pub fn arrivals(&self) -> MappedRwLockReadGuard<'_, Arrivals> {
        MappedRwLockReadGuard::map(self.shared(), |shared| &shared.arrivals)
    }

    /// Closes all connections, or those of a client, as an injected disconnect does.
    pub fn disconnect(&self, client: Option<ClientIndex>) {
        disconnect(&self.mailboxes, client);
    }

    /// Ends the server without notice and starts it again, at the same addresses: when it returns, clients can connect. All
    /// connections are closed, replies that did not leave are lost, and what servers forget in a restart is forgotten:
    /// opens, locks, delegations, sessions, caches of replies, files without a name. Files, and the names of NFSv4 clients, are
    /// as on stable storage; the write verifier changes. Statistics and rules of injection are the experimenter's and go on.
    ///
    /// `seed` draws which blocks are lost with the [power](Loss::Power). With a [`Durability`], files are what the state file and
    /// its log have, whatever the loss: what was not stable is lost, and not counted.
    ///
    /// # Errors
    /// [`ServerError::Steady`] when data cannot be lost as configured, [`ServerError::Stopped`] after [`Server::stop`], and
    /// [`ServerError::System`] when the system gives no descriptor.
    pub fn crash(&self, loss: Loss, seed: u64) -> Result<Crash, ServerError> {
        {
            let shared = self.shared();
            if loss == Loss::Power && !shared.config.volatile && shared.wal.is_none() {
                return Err(ServerError::Steady);
            }
        }
        // One after the other, and none beside a stop.
        let threads = self.threads.lock();
        if threads.is_empty() {
            return Err(ServerError::Stopped);
        }
        let began = Instant::now();
        self.lives.interrupt(|| {
            self.mailboxes.iter().for_each(|mailbox| mailbox.post(Message::Crash));
            self.shared().callbacks.stop();
        });
        let changed = self.lives.change(|shared| {
            let (now, mut lost_blocks) = (Moment::now(), 0);
            let known = if shared.wal.is_some() {
                let (exports, identity) = load(&shared.config)?;
                (shared.exports, shared.wal) = (exports, identity.wal);
                identity.known
            } else {
                if loss == Loss::Power {
                    let mut random = ChaCha8Rng::seed_from_u64(seed);
                    lost_blocks = shared.lose_power(now.wall, &mut || random.next_u64());
                }
                shared.known()
            };
            let known_clients = known.len();
            shared.restart(boot(), now.instant, known)?;
            Ok(Crash { lost_blocks, known_clients, down: began.elapsed() })
        });
        // Whatever came of it: it serves again.
        self.lives.resume();
        changed
    }

    /// Stops: finishes the requests in hand, closes all connections, and writes the state where that was asked for. A
    /// second call does nothing.
    pub fn stop(&self) -> Result<(), ServerError> {
        let threads = std::mem::take(&mut *self.threads.lock());
        if threads.is_empty() {
            return Ok(());
        }
        self.lives.end(|| {
            self.mailboxes.iter().for_each(|mailbox| mailbox.post(Message::Stop));
            self.shared().callbacks.stop();
        });
        for thread in threads {
            if thread.join().is_err() {
                log::error!("a thread of the server panicked");
            }
        }
        let shared = self.shared();
        if let Some(path) = &shared.config.state {
            let clients = shared.known();
            let number = shared.wal.as_ref().map_or(0, |wal| wal.number() + 1);
            let meta = Meta { instance: shared.instance, number, clients };
            snapshot::save(path, &shared.exports, &meta)?;
            wal::remove_others(path, None)?;
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            log::error!("stopping: {error}");
        }
    }
}

/// How often another free port is tried when it cannot be had everywhere.
const ATTEMPTS: usize = 16;
/// Connections that wait to be accepted; the kernel takes no more than its `somaxconn`.
const BACKLOG: i32 = 4096;

/// Sockets at the first address and at all others, which take the port of the first where theirs is 0.
fn bind_all(first: SocketAddr, others: &[SocketAddr]) -> Result<Vec<(TcpListener, UdpSocket)>, ServerError> {
    let at_once = || {
        let mut bound = vec![bind(first)?];
        let port = bound[0].0.local_addr()?.port();
        for other in others {
            let port = if other.port() == 0 { port } else { other.port() };
            bound.push(bind(SocketAddr::new(other.ip(), port))?);
        }
        Ok(bound)
    };
    let again = if first.port() == 0 && !others.is_empty() { ATTEMPTS } else { 0 };
    (0..again).find_map(|_| at_once().ok()).map_or_else(at_once, Ok)
}

/// With room for all clients that come back at once after a restart: one that finds none tries again a second later.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// TCP and UDP on the same port.
fn bind(address: SocketAddr) -> Result<(TcpListener, UdpSocket), ServerError> {
    let failed = |protocol, address| move |source| ServerError::Listen { protocol, address, source };
    let mut attempt = 0;
    loop {
        let listener = listen(address).map_err(failed("TCP", address))?;
        let bound = listener.local_addr()?;
        match UdpSocket::bind(bound) {
            Ok(socket) => return Ok((listener, socket)),
            Err(_) if address.port() == 0 && attempt < ATTEMPTS => attempt += 1,
            Err(source) => return Err(failed("UDP", bound)(source)),
        }
    }
}

/// The exports and who the server is: from the state file and the log beside it, or new.
fn load(config: &ServerConfig) -> Result<(Exports, Identity), ServerError> {
    let (now, boot) = (Moment::now().wall, boot());
    let kept = match &config.state {
        Some(path) => snapshot::load(path, config, now)?,
        None => None,
    };
    let crashed = kept.as_ref().and_then(|kept| kept.cut);
    let (mut exports, mut meta) = match kept {
        Some(kept) => (kept.exports, kept.meta),
        None => {
            let instance = (boot ^ boot >> 32) as u32;
            (Exports::new(config, now)?, Meta { instance, ..Meta::default() })
        }
    };
    let mut wal = None;
    if let Some(path) =
        config.state.as_deref().filter(|_| config.durability != Durability::None || crashed.is_some())
    {
        if let Some(cut) = crashed.filter(|cut| *cut > 0) {
            log::warn!(
                "{}: the last {cut} bytes are no whole change, as after an end in the middle of a write: cut off",
                wal::path(path, meta.number).display()
            );
        }
        meta.number += 1;
        let save = || Ok::<_, ServerError>(snapshot::save(path, &exports, &meta)?);
        if config.durability == Durability::None {
            save()?;
            wal::remove_others(path, None)?;
        } else {
            let started = Wal::start(path, config.durability, (meta.number, boot), &meta.clients, save)?;
            exports.log_to(wal.insert(Arc::new(started)));
        }
    }
    Ok((exports, Identity { instance: meta.instance, boot, known: meta.clients, wal }))
}

/// A number that no other start of a server has.
fn boot() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(44)
}

/// A thread that carries `body` out in each life of the server.
fn spawn(
    lives: &Arc<Lives>,
    name: String,
    mut body: impl FnMut(&Present) -> io::Result<()> + Send + 'static,
) -> Result<JoinHandle<()>, ServerError> {
    let lives = Arc::clone(lives);
    let mut present = lives.enter();
    let rule = mutant::broken();
    let lives_of_it = move || {
        mutant::break_rule(rule);
        while let Some(now) = present.take() {
            if let Err(error) = body(&now) {
                log::error!("a thread of the server ended: {error}");
                return;
            }
            drop(now);
            present = lives.enter();
        }
    };
    Ok(thread::Builder::new().name(name).spawn(lives_of_it)?)
}

fn housekeeping(present: &Present, mailboxes: &[Arc<Mailbox>]) {
    while present.lasts(TICK) {
        let (shared, now) = (&present.shared, Instant::now());
        shared.tick(now);
        wal::tend(shared, boot());
        for client in shared.injector.disconnects_due(now) {
            disconnect(mailboxes, client);
        }
    }
}

fn disconnect(mailboxes: &[Arc<Mailbox>], client: Option<ClientIndex>) {
    mailboxes.iter().for_each(|mailbox| mailbox.post(Message::Close(client)));
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[test]
    fn clients_that_come_at_once_wait_to_be_accepted() {
        let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let clients = most.trim().parse::<usize>().unwrap().min(300);
        let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let connect = |_| TcpStream::connect_timeout(&address, Duration::from_millis(900));
        let waiting: io::Result<Vec<TcpStream>> = (0..clients).map(connect).collect();
        waiting.unwrap();
    }
}
