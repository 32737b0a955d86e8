//! The transmit queues of a host's network interface: how many, how flows are spread over them, what each is like.
//!
//! Queues share the line in turns, a packet each, as network cards do. Each flow (addresses, protocol and ports) is
//! hashed to one of them, and stays there until it is hashed again.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::link::LinkError;
use crate::toeplitz::HashKey;

/// Most transmit queues of an interface.
pub const MOST_QUEUES: u32 = 64;
/// The shortest time between two re-hashes.
pub const LEAST_REHASH: Duration = Duration::from_millis(10);
/// Entries of the table from hashes to queues.
pub(crate) const TABLE: u32 = 128;

/// The transmit queues of the interfaces of a network's hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// From 1 to [`MOST_QUEUES`].
    pub queues: u32,
    pub discipline: Discipline,
    /// Most bytes that wait in a queue, as they are on the wire. `None`: as many as without transmit queues
    /// ([`Link::queue`](crate::link::Link::queue)).
    pub limit: Option<u64>,
    /// Key of the hash. The queue of a flow is entry `hash mod 128` of a table in which queues take turns.
    pub key: HashKey,
    /// All flows are hashed with another key after each such period. What waits moves with its flow.
    pub rehash: Option<Duration>,
    /// Most bytes of a flow in its queue, but one packet at least; what comes on top waits at the sender, as with TCP's
    /// small queues (TSQ).
    pub flow_limit: Option<u64>,
}

/// The order in which packets leave a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Discipline {
    /// That in which they came. What comes when the queue is full is dropped.
    #[default]
    Fifo,
    /// Stochastic fair queueing: flows are hashed to 127 classes, which share the queue by deficit round robin. When the
    /// queue is full, the last packet of the longest class is dropped.
    Sfq,
    /// The same, with a class for each flow.
    Fq,
}

impl Discipline {
    pub const ALL: [Self; 3] = [Self::Fifo, Self::Sfq, Self::Fq];

    /// The name of Linux's queueing discipline.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Sfq => "sfq",
            Self::Fq => "fq",
        }
    }
}

impl fmt::Display for Discipline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Interface {
    /// This number of FIFO queues.
    pub fn new(queues: u32) -> Self {
        let key = HashKey::of_seed(0);
        Self { queues, discipline: Discipline::Fifo, limit: None, key, rehash: None, flow_limit: None }
    }

    /// Whether there can be such an interface.
    ///
    /// # Errors
    /// [`LinkError::Queues`], [`LinkError::Rehash`]
    pub fn check(&self) -> Result<(), LinkError> {
        if !(1..=MOST_QUEUES).contains(&self.queues) {
            return Err(LinkError::Queues(self.queues));
        }
        match self.rehash {
            Some(period) if period < LEAST_REHASH => Err(LinkError::Rehash(period)),
            _ => Ok(()),
        }
    }
}

/// What the transmit queues of a host did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterfaceReport {
    pub host: Host,
    /// In their order.
    pub queues: Vec<QueueReport>,
    /// Flows that sent something, in the order in which they were first seen.
    pub flows: Vec<FlowReport>,
}

/// Whose interface it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Host {
    Server,
    /// Counted from 0.
    Client(u32),
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => f.write_str("server"),
            Self::Client(client) => write!(f, "client {}", client + 1),
        }
    }
}

/// A transmit queue. Bytes are those on the wire, with preamble, checksum and gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct QueueReport {
    /// What waits now.
    pub bytes: u64,
    pub packets: u64,
    /// Most bytes that waited at once.
    pub longest: u64,
    /// Bytes and packets that left. A large frame is one packet.
    pub sent_bytes: u64,
    pub sent_packets: u64,
    /// Ethernet frames for which there was no room.
    pub drops: u64,
}

/// A flow: packets of the same addresses, protocol and ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowReport {
    /// `10.77.0.1:2049-10.77.1.1:900`, source first, as connections are named in samples; without ports for what is
    /// neither TCP nor UDP.
    pub name: String,
    /// The client at one of its ends, counted from 0.
    pub client: u32,
    /// The number of its queue.
    pub queue: u32,
    /// Bytes of it that left.
    pub sent_bytes: u64,
    /// Bytes that wait at the sender because of the limit per flow.
    pub held_bytes: u64,
    pub drops: u64,
}
