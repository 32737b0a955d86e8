//! Calls from the server to its clients: CB_NULL, CB_RECALL, CB_GETATTR, CB_NOTIFY, CB_NOTIFY_LOCK,
//! CB_RECALL_SLOT.
//!
//! Clients with sessions are called over connections of their own (RFC 8881 §2.10.3.1), clients of 4.0 over one that
//! the server opens (RFC 7530 §3.3.3). One background thread does it all ([`Callbacks::run`]), so that no serving
//! thread ever waits: what is to be sent is [submitted](Callbacks::submit), and replies that arrive on connections of
//! clients are [handed over](Callbacks::reply).

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};

use self::dial::Dials;
use crate::shared::Shared;
use crate::state::{Callback, ClientId, ConnectionId, Effects, State};

mod dial;
mod message;
#[cfg(test)]
mod tests;
mod worker;

pub use self::dial::Dialled;

/// Longest message that can be the reply to a callback.
const MAX_REPLY: usize = 4 << 10;
/// Most replies waiting to be looked at; more are nonsense, and dropped.
const MAX_WAITING: usize = 1 << 12;

/// Callbacks to clients, and the connections that carry them.
#[derive(Debug)]
pub struct Callbacks {
    inbox: Mutex<VecDeque<Input>>,
    wake: OwnedFd,
    stop: AtomicBool,
    timing: Timing,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
struct Timing {
    /// From the call until the reply.
    reply: Duration,
    /// From the submission until a callback is given up.
    job: Duration,
}

#[derive(Debug)]
enum Input {
    Call(ClientId, Callback),
    Reply(ConnectionId, Vec<u8>),
}

impl Callbacks {
    /// Nothing to send yet.
    pub fn new(lease: Duration) -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let reply = (lease / 3).clamp(Duration::from_millis(200), Duration::from_secs(10));
        Ok(Self {
            inbox: Mutex::default(),
            wake: eventfd(0, flags)?,
            stop: AtomicBool::new(false),
            timing: Timing { reply, job: lease.min(Duration::from_secs(3600)) },
        })
    }

    /// Takes a callback to be sent.
    pub fn submit(&self, client: ClientId, callback: Callback) {
        self.push(Input::Call(client, callback));
    }

    /// Takes an RPC reply that a client sent on its own connection.
    pub fn reply(&self, connection: ConnectionId, message: &[u8]) {
        if message.len() <= MAX_REPLY && self.inbox.lock().len() < MAX_WAITING {
            self.push(Input::Reply(connection, message.to_vec()));
        }
    }

    /// Sends, waits, repeats, until [`Callbacks::stop`]: the body of the background thread. `instance` is the server's
    /// number in file handles; `apply` carries out what the answers lead to.
    pub fn run(&self, state: &State, instance: u32, apply: impl Fn(&mut Effects)) -> io::Result<()> {
        let host = Borrowed { callbacks: self, state, instance, apply };
        worker::Worker::new(host, Dials::default(), Instant::now())?.run()
    }

    /// Ends [`Callbacks::run`].
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        self.ring();
    }

    fn push(&self, input: Input) {
        self.inbox.lock().push_back(input);
        self.ring();
    }

    fn ring(&self) {
        // Fails only when the counter is full, and then the thread is awake anyway.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }
}

/// Callbacks of a server without threads ([`Shared::detached`]), done step by step at times that the caller says.
pub struct Stepper(worker::Worker<Arc<Shared>>);

impl std::fmt::Debug for Stepper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stepper")
    }
}

impl Stepper {
    /// Nothing sent yet.
    ///
    /// # Errors
    /// When the kernel has no descriptors left.
    pub fn new(server: Arc<Shared>, now: Instant) -> io::Result<Self> {
        worker::Worker::new(server, Dials::carried(), now).map(Self)
    }

    /// Sends what is due, takes the replies that came, and gives up what had no reply in time. Returns what is to be sent over
    /// connections that the server makes (4.0).
    pub fn step(&mut self, now: Instant) -> Vec<Dialled> {
        self.0.step(now);
        self.0.take_dialled()
    }

    /// A reply came over a connection that the server had made to a client.
    pub fn replied(&mut self, client: ClientId, message: &[u8], now: Instant) {
        self.0.replied(None, Some(client), message, now);
    }

    /// A connection that the server had made to a client broke, or could not be made.
    pub fn broken(&mut self, client: ClientId, now: Instant) {
        self.0.dialled_broken(client, now);
    }
}

impl worker::Host for Arc<Shared> {
    fn callbacks(&self) -> &Callbacks {
        &self.callbacks
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn instance(&self) -> u32 {
        self.instance
    }

    fn apply(&self, effects: &mut Effects) {
        Shared::apply(self, effects);
    }
}

/// What the background thread belongs to.
struct Borrowed<'c, A> {
    callbacks: &'c Callbacks,
    state: &'c State,
    instance: u32,
    apply: A,
}

impl<A: Fn(&mut Effects)> worker::Host for Borrowed<'_, A> {
    fn callbacks(&self) -> &Callbacks {
        self.callbacks
    }

    fn state(&self) -> &State {
        self.state
    }

    fn instance(&self) -> u32 {
        self.instance
    }

    fn apply(&self, effects: &mut Effects) {
        (self.apply)(effects);
    }
}
