//! A relay between clients and a server: what it is given leaves it a chosen time later, in each direction.
//!
//! One thread takes connections, opens one to the target for each, and forwards bytes in both directions, each not
//! before its time and in order. The end of a direction (half-close) and resets travel with the same delay. The
//! handshake of a new connection costs a round trip as on a real network: the first bytes of the client leave it
//! three delays after the connection was accepted, the first of the server arrive four delays after it at the
//! earliest.
//!
//! # What it is right for
//! The relay acknowledges on both sides at once, as the sender's own kernel: congestion windows grow over a network
//! without delay, and a window is never what limits a transfer, but the relay's queue. Latency of requests and
//! replies is right; the throughput of bulk transfers over a long network is **not** what TCP would reach there. Nor
//! are loss, bandwidth or reordering emulated. A client learns that the target refused its connection by a reset
//! after it was accepted.
//!
//! The target sees the address of the relay and an unprivileged port, in place of those of the client.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};

use crate::namespace::{Namespace, NamespaceError};

mod achieved;
mod arrival;
mod connection;
mod pipe;
mod worker;

pub use achieved::Achieved;

use achieved::Counters;
use worker::Worker;

/// The longest delay: ten seconds.
pub const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// Configuration of a relay.
#[derive(Debug, Clone)]
pub struct RelayConfig {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where its connections lead.
    pub target: SocketAddr,
    /// Delay in each direction; a round trip takes twice as long. At most [`LONGEST_DELAY`].
    pub delay: Duration,
    /// Most bytes under way in each direction of a connection. `None`: as many as 10 Gbit/s carry in the time of the
    /// delay, and 1 MiB. When this many are under way, nothing more is read from the sender.
    pub queue: Option<usize>,
    /// The network namespace in which it listens; `None`: that of the calling thread, in which the target is too.
    pub listen_in: Option<Arc<Namespace>>,
}

impl RelayConfig {
    /// A relay on a free port of 127.0.0.1.
    pub fn new(target: SocketAddr, delay: Duration) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            target,
            delay,
            queue: None,
            listen_in: None,
        }
    }
}

/// Why a relay could not start.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The delay is longer than [`LONGEST_DELAY`].
    #[error("the delay {0:?} exceeds the maximum, {LONGEST_DELAY:?}")]
    Delay(Duration),
    /// The address is in use, or not one of this host.
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    /// The namespace to listen in cannot be entered.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The kernel has no descriptor, memory or thread left.
    #[error("cannot start the relay")]
    Resources(#[from] io::Error),
}

/// What the thread shares with the outside.
#[derive(Debug)]
struct Shared {
    target: SocketAddr,
    queue: Option<usize>,
    /// In nanoseconds.
    delay: AtomicU64,
    stop: AtomicBool,
    counters: Counters,
}

impl Shared {
    fn delay(&self) -> Duration {
        Duration::from_nanos(self.delay.load(Ordering::Relaxed))
    }

    /// Most bytes under way in a direction of a connection.
    fn queue(&self) -> usize {
        const BYTES_PER_NANOSECOND: f64 = 1.25;
        let carried = self.delay.load(Ordering::Relaxed) as f64 * BYTES_PER_NANOSECOND;
        self.queue.unwrap_or((1 << 20) + carried as usize).max(1)
    }
}

/// A running relay; dropping it stops it.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    wake: Arc<std::os::fd::OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts one. Its address takes connections from the moment this returns.
    ///
    /// # Errors
    /// See [`RelayError`]. That the target cannot be reached is no error here: its connections are reset.
    pub fn start(config: RelayConfig) -> Result<Self, RelayError> {
        if config.delay > LONGEST_DELAY {
            return Err(RelayError::Delay(config.delay));
        }
        let failed = |source| RelayError::Listen { address: config.listen, source };
        let listener = match &config.listen_in {
            None => TcpListener::bind(config.listen),
            Some(namespace) => namespace.run(|| TcpListener::bind(config.listen))?,
        };
        let listener = listener.map_err(failed)?;
        let address = listener.local_addr()?;
        let wake =
            Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(io::Error::from)?);
        let shared = Arc::new(Shared {
            target: config.target,
            queue: config.queue,
            delay: AtomicU64::new(nanoseconds(config.delay)),
            stop: AtomicBool::new(false),
            counters: Counters::new(),
        });
        let worker = Worker::new(Arc::clone(&shared), listener, Arc::clone(&wake))?;
        let thread = std::thread::Builder::new().name("relay".into()).spawn(move || worker.run())?;
        Ok(Self { address, shared, wake, thread: Some(thread) })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The delay in each direction now.
    pub fn delay(&self) -> Duration {
        self.shared.delay()
    }

    /// Changes the delay of what arrives from now on. What is under way keeps its time, and is never overtaken.
    ///
    /// # Errors
    /// [`RelayError::Delay`].
    pub fn set_delay(&self, delay: Duration) -> Result<(), RelayError> {
        if delay > LONGEST_DELAY {
            return Err(RelayError::Delay(delay));
        }
        self.shared.delay.store(nanoseconds(delay), Ordering::Relaxed);
        Ok(())
    }

    /// What it forwarded so far, and how late.
    pub fn achieved(&self) -> Achieved {
        self.shared.counters.achieved()
    }

    /// Closes all connections, also those with bytes under way, and returns what was achieved.
    pub fn stop(mut self) -> Achieved {
        self.end();
        self.achieved()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        // The counter is never full: this is the only write.
        let _ = rustix::io::write(&*self.wake, &1u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // It does not panic; there would be nothing left to stop if it had.
            let _ = thread.join();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end();
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
