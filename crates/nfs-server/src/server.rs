//! A running server: start and stop.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::arrivals::Arrivals;
use crate::config::ServerConfig;
use crate::error::ServerError;
use crate::exports::Exports;
use crate::mailbox::{Mailbox, Message};
use crate::moment::Moment;
use crate::net::{Datagrams, Listener, Worker};
use crate::shared::{Identity, Shared};
use crate::snapshot::{self, Meta};
use crate::stats::{ClientIndex, Report};

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
    changed: Condvar,
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
        let (listener, socket) = bind(config.listen)?;
        let address = listener.local_addr()?;
        let portmap = config.portmap.map(bind).transpose()?;
        let portmap_address = portmap.as_ref().map(|(listener, _)| listener.local_addr()).transpose()?;
        let (exports, identity) = load(&config)?;
        let mailboxes = (0..config.threads.max(1))
            .map(|_| Mailbox::new().map(Arc::new))
            .collect::<io::Result<Vec<_>>>()?;
        let shared =
            Arc::new(Shared::new(config, exports, identity, address, portmap_address, Instant::now())?);

        let mut listeners = vec![Listener::new(listener, mailboxes.clone())?];
        let mut sockets = vec![Datagrams::new(socket)?];
        if let Some((listener, socket)) = portmap {
            listeners.push(Listener::new(listener, mailboxes.clone())?);
            sockets.push(Datagrams::new(socket)?);
        }
        let mut threads = Vec::new();
        for (number, mailbox) in mailboxes.iter().enumerate() {
            let first = number == 0;
            let (listeners, sockets) = if first {
                (std::mem::take(&mut listeners), std::mem::take(&mut sockets))
            } else {
                Default::default()
            };
            let worker = Worker::new(Arc::clone(&shared), (number, Arc::clone(mailbox)), listeners, sockets)?;
            threads.push(spawn(format!("nfs-{number}"), move || worker.run())?);
        }
        let stopping = Arc::new(Stopping::default());
        {
            let (shared, stopping, mailboxes) =
                (Arc::clone(&shared), Arc::clone(&stopping), mailboxes.clone());
            threads.push(spawn("nfs-housekeeping".into(), move || {
                housekeeping(&shared, &stopping, &mailboxes);
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

    /// Address on which it listens.
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
    pub fn disconnect(&self, client: Option<ClientIndex>) {
        disconnect(&self.mailboxes, client);
    }

    /// Stops: finishes the requests in hand, closes all connections, and writes the state where that was asked for. A
    /// second call does nothing.
    pub fn stop(&self) -> Result<(), ServerError> {
        let threads = std::mem::take(&mut *self.threads.lock());
        if threads.is_empty() {
            return Ok(());
        }
        self.mailboxes.iter().for_each(|mailbox| mailbox.post(Message::Stop));
        *self.stopping.stop.lock() = true;
        self.stopping.changed.notify_all();
        self.shared.callbacks.stop();
        for thread in threads {
            if thread.join().is_err() {
                log::error!("a thread of the server panicked");
            }
        }
        if let Some(path) = &self.shared.config.state {
            let clients = self.shared.state.clients().clients().known_clients();
            let meta = Meta { instance: self.shared.instance, clients };
            snapshot::save(path, &self.shared.exports, &meta)?;
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
            log::error!("a thread of the server ended: {error}");
        }
    };
    Ok(thread::Builder::new().name(name).spawn(body)?)
}

fn housekeeping(shared: &Shared, stopping: &Stopping, mailboxes: &[Arc<Mailbox>]) {
    let mut stop = stopping.stop.lock();
    while !*stop {
        stopping.changed.wait_for(&mut stop, TICK);
        let now = Instant::now();
        shared.tick(now);
        for client in shared.injector.disconnects_due(now) {
            disconnect(mailboxes, client);
        }
    }
}

fn disconnect(mailboxes: &[Arc<Mailbox>], client: Option<ClientIndex>) {
    mailboxes.iter().for_each(|mailbox| mailbox.post(Message::Close(client)));
}
