//! What all threads of a server share.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use benchmaster_clock::Clock;
use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_rpc_tls::ServerTls;

use crate::arrivals::Arrivals;
use crate::callback::Callbacks;
use crate::config::ServerConfig;
use crate::disk::Disk;
use crate::dispatch::Kerberos;
use crate::drc::ReplyCache;
use crate::error::ServerError;
use crate::exports::Exports;
use crate::fs::{FileSystem, FsError, Node, Time, Trouble};
use crate::inject::Injector;
use crate::moment::Moment;
use crate::mount::mounts::Mounts;
use crate::nlm;
use crate::nlm::callback::{LockCallbacks, Patience};
use crate::nlm::monitor::{self, Monitor};
use crate::nlm::share::Shares;
use crate::state::{Effect, Effects, State};
use crate::stats::{Report, Statistics};
use crate::wal::Wal;

/// What all threads of a server share.
#[derive(Debug)]
pub struct Shared {
    /// Configuration with which the server was started.
    pub config: ServerConfig,
    /// TLS, where there is a certificate.
    pub(crate) tls: Option<ServerTls>,
    /// Kerberos, where there is a keytab.
    pub(crate) kerberos: Option<Kerberos>,
    /// Exported file systems.
    pub exports: Exports,
    /// Clients, sessions, opens, locks and delegations.
    pub state: State,
    /// Calls to clients: a thread of the server runs [`Callbacks::run`], and REPLY records go to [`Callbacks::reply`].
    pub callbacks: Callbacks,
    /// Rules of injected behaviour.
    pub injector: Injector,
    /// The log of changes, if there is one.
    pub(crate) wal: Option<Arc<Wal>>,
    /// The disk behind the files, if there is one.
    pub disk: Option<Disk>,
    /// Counts and service times.
    pub statistics: Statistics,
    /// When connections sent their first requests.
    pub arrivals: Arrivals,
    /// Replies to requests that must not be executed twice.
    pub replies: ReplyCache,
    /// Mounts that clients reported.
    pub(crate) mounts: Mounts,
    /// DOS share modes of NLM clients.
    pub(crate) shares: Shares,
    /// Calls to lock managers of clients: locks granted after waiting.
    pub(crate) lock_callbacks: LockCallbacks,
    /// Hosts with locks, which get a notice of a restart.
    pub(crate) monitor: Monitor,
    /// Cheap clock for service times.
    pub(crate) clock: Clock,
    /// Number of this server in its handles; the same after a restart with state.
    pub instance: u32,
    /// Differs at every start: verifier of WRITE and COMMIT, part of client ids and stateids.
    pub boot: u64,
    /// Address on which it listens.
    pub address: SocketAddr,
    /// Where it answers as portmapper.
    pub portmap: Option<SocketAddr>,
    /// How often data were lost that were not stable.
    losses: AtomicU64,
    /// Time of the start.
    pub started: Instant,
}

/// What tells one start of a server from another.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// Number in handles.
    pub(crate) instance: u32,
    /// Number of this start.
    pub(crate) boot: u64,
    /// Clients and hosts that may reclaim, as [`Shared::known`] names them.
    pub(crate) known: Vec<Vec<u8>>,
    /// The log of changes.
    pub(crate) wal: Option<Arc<Wal>>,
}

impl Shared {
    pub(crate) fn new(
        config: ServerConfig,
        exports: Exports,
        identity: Identity,
        address: SocketAddr,
        portmap: Option<SocketAddr>,
        started: Instant,
    ) -> io::Result<Self> {
        let (state, monitor) = state(&config, identity.boot, started, identity.known);
        Ok(Self {
            tls: None,
            kerberos: Kerberos::new(&config, identity.boot, started),
            exports,
            state,
            callbacks: Callbacks::new(config.lease)?,
            wal: identity.wal,
            disk: disk(&config, started),
            injector: Injector::new(config.rules.clone(), config.seed),
            statistics: Statistics::new(config.threads + 1),
            arrivals: Arrivals::default(),
            replies: ReplyCache::new(config.memory),
            mounts: Mounts::default(),
            shares: Shares::default(),
            lock_callbacks: LockCallbacks::default(),
            monitor,
            clock: Clock::new(),
            instance: identity.instance,
            boot: identity.boot,
            address,
            portmap,
            losses: AtomicU64::new(0),
            started,
            config,
        })
    }

    /// A server without sockets and threads: [`crate::dispatch::handle`] is all that happens. Servers of the same
    /// instance and boot number give the same handles and identifiers for the same requests.
    pub fn detached(
        config: ServerConfig,
        instance: u32,
        boot: u64,
        now: Moment,
    ) -> Result<Self, ServerError> {
        let exports = Exports::new(&config, now.wall)?;
        let identity = Identity { instance, boot, known: Vec::new(), wal: None };
        let address = config.listen;
        let mut detached = Self::new(config, exports, identity, address, None, now.instant)?;
        detached.lock_callbacks = LockCallbacks::new(Patience { tries: 0, ..Patience::default() });
        Ok(detached)
    }

    /// The server after a restart that kept its files and the names of its clients: what was only in memory is forgotten.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn restarted(mut self, boot: u64, now: Instant) -> io::Result<Self> {
        let mut known = self.known();
        if is_broken(Mutant::RestartForgetsClients) {
            known.clear();
        }
        self.restart(boot, now, known)?;
        Ok(self)
    }

    /// Clients and hosts that may reclaim after a restart, each as a name with its kind in front.
    pub(crate) fn known(&self) -> Vec<Vec<u8>> {
        let clients = self.state.clients().clients().known_clients();
        let named = |kind: u8, name: Vec<u8>| [&[kind][..], &name].concat();
        let clients = clients.into_iter().map(|name| named(CLIENT, name));
        let hosts = self.monitor.known();
        clients.chain(hosts.iter().map(|host| named(HOST, monitor::to_name(host)))).collect()
    }

    /// Forgets what was only in memory; those `known` may reclaim. Statistics and rules of injection go on.
    pub(crate) fn restart(&mut self, boot: u64, now: Instant, known: Vec<Vec<u8>>) -> io::Result<()> {
        let config = &self.config;
        self.callbacks = Callbacks::new(config.lease)?;
        (self.state, self.monitor) = state(config, boot, now, known);
        self.lock_callbacks = self.lock_callbacks.afresh();
        self.exports.list().iter().for_each(|export| export.fs.forget_holds());
        self.disk = disk(config, now);
        self.replies = ReplyCache::new(config.memory);
        self.mounts = Mounts::default();
        self.shares = Shares::default();
        self.boot = boot;
        self.kerberos = Kerberos::new(config, boot, now);
        Ok(())
    }

    /// Makes safe what this thread's replies speak of. `false`: it is not, and they must not be sent.
    #[inline]
    pub(crate) fn flush(&self) -> bool {
        self.wal.as_ref().is_none_or(|wal| wal.flush())
    }

    /// A reply is repeated, which was made by a thread that may not have sent it.
    #[cold]
    pub(crate) fn repeats(&self) {
        if let Some(wal) = &self.wal {
            wal.require_all();
        }
    }

    /// Notes in the log which clients may reclaim after a crash.
    #[inline]
    pub(crate) fn note_clients(&self) {
        if let Some(wal) = &self.wal {
            self.note_clients_in(wal);
        }
    }

    // Apart: without a log, a call should not even be longer.
    #[inline(never)]
    fn note_clients_in(&self, wal: &Wal) {
        wal.note_clients(self.state.known_changes() + self.monitor.changes(), || self.known());
    }

    /// The power goes: of data that is not stable each sector of 512 bytes is lost or not, as `random` has it. Returns how
    /// many are lost. Files lose nothing unless [`ServerConfig::volatile`].
    pub fn lose_power(&self, now: Time, random: &mut dyn FnMut() -> u64) -> u64 {
        self.exports.list().iter().map(|export| export.fs.lose_power(now, random)).sum()
    }

    /// Verifier of WRITE and COMMIT: tells clients when data that were not stable may have been lost.
    pub fn write_verifier(&self) -> [u8; 8] {
        if self.injector.keeps_verifier() {
            return u64::from(self.instance).to_be_bytes();
        }
        let losses = self.losses.load(Ordering::Relaxed);
        if is_broken(Mutant::SameVerifier) { [7; 8] } else { self.boot.wrapping_add(losses).to_be_bytes() }
    }

    /// Makes a file stable. What a failing disk loses others may have written: the verifier changes (as that of Linux' server).
    pub(crate) fn commit(&self, fs: &FileSystem, file: Node, now: Time) -> Result<(), FsError> {
        fs.commit(file, now).inspect_err(|_| {
            if !is_broken(Mutant::VerifierStaysAfterError) {
                self.losses.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// From now on this goes wrong with the disk of all exports: `once`, or until [`Self::mend`].
    pub fn fail(&self, what: Trouble, once: bool) {
        self.exports.list().iter().for_each(|export| export.fs.fail(what, once));
    }

    /// This goes wrong no more.
    pub fn mend(&self, what: Trouble) {
        self.exports.list().iter().for_each(|export| export.fs.mend(what));
    }

    /// How often something went wrong with the disk.
    pub fn struck(&self) -> u64 {
        self.exports.list().iter().map(|export| export.fs.struck()).sum()
    }

    /// What is to be done about ten times a second: leases, recalls, locks that are not wanted any more, the disk.
    pub fn tick(&self, now: Instant) {
        let mut effects = self.state.tick(now);
        nlm::tick(self, &mut effects);
        self.apply(&mut effects);
        if let Some(disk) = &self.disk {
            disk.tick(now);
        }
        if let Some(kerberos) = &self.kerberos {
            kerberos.tick(now);
        }
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
                Effect::NlmGranted(waiter) => nlm::granted(self, &waiter),
                Effect::Call(client, callback) => self.callbacks.submit(client, callback),
            }
        }
    }

    /// Everything counted so far.
    pub fn report(&self) -> Report {
        let state = self.state.report();
        let disk = self.disk.as_ref().map(|disk| disk.report(Instant::now()));
        Report { disk, ..self.statistics.report(self.started.elapsed(), state, self.injector.struck()) }
    }
}

/// What stands before the name of an NFSv4 client among those that are known, and before a host with locks of NLM.
const CLIENT: u8 = 0;
const HOST: u8 = 1;

/// The state after a start, before which these were known.
fn state(config: &ServerConfig, boot: u64, now: Instant, known: Vec<Vec<u8>>) -> (State, Monitor) {
    let (mut clients, mut hosts) = (Vec::new(), Vec::new());
    for name in &known {
        match name.split_first() {
            Some((&CLIENT, client)) => clients.push(client.to_vec()),
            Some((&HOST, host)) => hosts.extend(monitor::of_name(host)),
            _ => {}
        }
    }
    let state = State::new(config, boot, now, clients);
    if !hosts.is_empty() {
        state.all().clients().await_hosts(now);
    }
    (state, Monitor::after(hosts))
}

/// The disk behind the files.
fn disk(config: &ServerConfig, now: Instant) -> Option<Disk> {
    config.disk.map(|disk| Disk::new(disk, config.export, config.threads.max(1), config.seed, now))
}
