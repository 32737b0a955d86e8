//! Counts, bytes and service times per operation and client.
//!
//! Every thread counts in a shard of its own; reading adds the shards up. Recording takes one uncontended lock and no
//! allocation after the first time of an operation of a client.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use hashbrown::HashMap;
use hdrhistogram::Histogram;
use parking_lot::{Mutex, RwLock};

mod op;
mod report;

pub use op::Operation;
pub use report::{
    ClientReport, DelegationCounts, Nfs4ClientReport, OperationReport, Report, ServiceTime, StateReport,
    TransportReport,
};

/// A client host, counted from 1 in order of its first call. One address and one machine name of AUTH_SYS make a
/// client, whatever connections, sessions and versions it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientIndex(pub u32);

/// Counters that belong to no operation.
#[derive(Debug, Default)]
pub struct Transport {
    /// TCP connections accepted.
    pub connections: AtomicU64,
    /// UDP datagrams received.
    pub datagrams: AtomicU64,
    /// RPC calls received.
    pub calls: AtomicU64,
    /// Messages that were no call of RPC version 2.
    pub bad_format: AtomicU64,
    /// Calls whose credential was refused.
    pub bad_auth: AtomicU64,
    /// Calls for programs, versions or procedures not served, or with arguments that do not decode.
    pub bad_calls: AtomicU64,
    /// Repeated requests answered from the duplicate request cache.
    pub replayed: AtomicU64,
    /// Repeated requests dropped because the first was in progress.
    pub dropped_duplicates: AtomicU64,
}

/// Counters of a server.
pub struct Statistics {
    /// Counters that belong to no operation.
    pub transport: Transport,
    shards: Vec<Mutex<Shard>>,
    clients: RwLock<Registry>,
}

#[derive(Default)]
struct Registry {
    by_name: HashMap<(IpAddr, Box<[u8]>), ClientIndex>,
    names: Vec<(IpAddr, Box<[u8]>)>,
}

#[derive(Default)]
struct Shard {
    /// By client index − 1; operations by their index.
    clients: Vec<Option<PerOperation>>,
}

/// Counts of a client's operations, those that it has used.
type PerOperation = Box<[Option<Box<Counts>>]>;

/// Counts of one operation of one client.
#[derive(Debug, Clone)]
struct Counts {
    count: u64,
    errors: u64,
    received: u64,
    sent: u64,
    nanos: u64,
    service: Histogram<u32>,
}

/// Longest service time recorded; longer ones count as this.
const MAX_SERVICE: Duration = Duration::from_secs(100);

impl Counts {
    #[allow(clippy::expect_used, reason = "the bounds are constants, and a test makes one")]
    fn new() -> Self {
        let service = Histogram::new_with_bounds(1, MAX_SERVICE.as_nanos() as u64, 2).expect("valid bounds");
        Self { count: 0, errors: 0, received: 0, sent: 0, nanos: 0, service }
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.errors += other.errors;
        self.received += other.received;
        self.sent += other.sent;
        self.nanos += other.nanos;
        // Same bounds: cannot fail; if it did, the count would still be right.
        let _ = self.service.add(&other.service);
    }
}

/// What one execution of an operation cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sample {
    /// Bytes of the request (of the whole call; of an operation's arguments within a COMPOUND).
    pub received: u64,
    /// Bytes of the reply (or of the operation's result).
    pub sent: u64,
    /// Time from decoding to encoded result.
    pub service: Duration,
    /// Whether the status was an error.
    pub error: bool,
}

impl Statistics {
    /// Nothing counted; one shard for each of `threads`.
    pub fn new(threads: usize) -> Self {
        Self {
            transport: Transport::default(),
            shards: (0..threads.max(1)).map(|_| Mutex::default()).collect(),
            clients: RwLock::default(),
        }
    }

    /// The number of a client; a new one gets the next.
    pub fn client(&self, address: IpAddr, machine: &[u8]) -> ClientIndex {
        /// Beyond this number, clients share the last number: a flood of names must not take memory without end.
        const MOST_CLIENTS: usize = 10_000;
        let known = self.clients.read().find(address, machine);
        known.unwrap_or_else(|| {
            let mut registry = self.clients.write();
            if let Some(index) = registry.find(address, machine) {
                return index;
            }
            if registry.names.len() >= MOST_CLIENTS {
                return ClientIndex(MOST_CLIENTS as u32);
            }
            let index = ClientIndex(registry.names.len() as u32 + 1);
            registry.names.push((address, machine.into()));
            registry.by_name.insert((address, machine.into()), index);
            index
        })
    }

    /// Adds one execution of an operation.
    #[inline]
    pub fn record(&self, client: ClientIndex, operation: Operation, sample: Sample) {
        let mut shard = self.shards[shard_of_this_thread() % self.shards.len()].lock();
        let counts = shard.counts(client, operation);
        let nanos = sample.service.as_nanos() as u64;
        counts.count += 1;
        counts.errors += u64::from(sample.error);
        counts.received += sample.received;
        counts.sent += sample.sent;
        counts.nanos += nanos;
        counts.service.saturating_record(nanos.max(1));
    }

    /// Counts of every client and operation seen, shards added up.
    fn totals(&self) -> Vec<Vec<(Operation, Counts)>> {
        let clients = self.clients.read().names.len();
        let mut totals: Vec<Vec<Option<Box<Counts>>>> = vec![vec![None; Operation::COUNT]; clients];
        for shard in &self.shards {
            for (total, client) in totals.iter_mut().zip(&shard.lock().clients) {
                for (sum, counts) in total.iter_mut().zip(client.iter().flatten()) {
                    match (sum, counts) {
                        (Some(sum), Some(counts)) => sum.add(counts),
                        (sum @ None, Some(counts)) => *sum = Some(counts.clone()),
                        (_, None) => {}
                    }
                }
            }
        }
        let named = |(index, counts): (usize, Option<Box<Counts>>)| {
            counts.map(|counts| (Operation::of_index(index), *counts))
        };
        totals.into_iter().map(|client| client.into_iter().enumerate().filter_map(named).collect()).collect()
    }
}

impl Registry {
    fn find(&self, address: IpAddr, machine: &[u8]) -> Option<ClientIndex> {
        self.by_name.get(&Name(address, machine)).copied()
    }
}

/// A borrowed key of [`Registry::by_name`].
#[derive(Hash)]
struct Name<'a>(IpAddr, &'a [u8]);

impl hashbrown::Equivalent<(IpAddr, Box<[u8]>)> for Name<'_> {
    fn equivalent(&self, key: &(IpAddr, Box<[u8]>)) -> bool {
        self.0 == key.0 && *self.1 == *key.1
    }
}

impl Shard {
    #[inline]
    fn counts(&mut self, client: ClientIndex, operation: Operation) -> &mut Counts {
        let index = client.0.saturating_sub(1) as usize;
        if self.clients.len() <= index {
            self.clients.resize_with(index + 1, || None);
        }
        let operations = self.clients[index]
            .get_or_insert_with(|| std::iter::repeat_with(|| None).take(Operation::COUNT).collect());
        operations[operation.index()].get_or_insert_with(|| Box::new(Counts::new()))
    }
}

fn shard_of_this_thread() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static SHARD: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    SHARD.with(|shard| *shard)
}

impl fmt::Debug for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Statistics").field("transport", &self.transport).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use benchmaster_nfs_proto::v3::Proc3;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn clients_are_counted_by_address_and_machine_name() {
        let statistics = Statistics::new(1);
        assert_eq!(statistics.client(HERE, b"a"), ClientIndex(1));
        assert_eq!(statistics.client(HERE, b"b"), ClientIndex(2));
        assert_eq!(statistics.client(HERE, b"a"), ClientIndex(1));
        assert_eq!(statistics.client(IpAddr::V4(Ipv4Addr::UNSPECIFIED), b"a"), ClientIndex(3));
    }

    #[test]
    fn a_flood_of_names_ends_in_one_client() {
        let statistics = Statistics::new(1);
        for n in 0..20_000u32 {
            statistics.client(HERE, &n.to_be_bytes());
        }
        assert_eq!(statistics.client(HERE, b"another"), ClientIndex(10_000));
        assert_eq!(statistics.clients.read().names.len(), 10_000);
    }

    #[test]
    fn shards_add_up() {
        let statistics = Statistics::new(4);
        let client = statistics.client(HERE, b"a");
        let read = Operation::V3(Proc3::READ);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for n in 0..1000 {
                        let service = Duration::from_nanos(1000 + n);
                        let sample = Sample { received: 100, sent: 4096, service, error: n == 0 };
                        statistics.record(client, read, sample);
                    }
                });
            }
        });
        let totals = statistics.totals();
        let [(operation, counts)] = totals[0].as_slice() else { panic!("{totals:?}") };
        assert_eq!((*operation, counts.count, counts.errors), (read, 8000, 8));
        assert_eq!((counts.received, counts.sent), (800_000, 8000 * 4096));
        assert_eq!(counts.service.len(), 8000);
        let median = counts.service.value_at_quantile(0.5);
        assert!((1480..=1520).contains(&median), "{median}");
    }

    #[test]
    fn hours_of_service_time_are_not_lost() {
        let statistics = Statistics::new(1);
        let client = statistics.client(HERE, b"a");
        let sample = Sample { service: Duration::from_secs(7200), ..Sample::default() };
        statistics.record(client, Operation::Compound, sample);
        assert_eq!(statistics.totals()[0][0].1.service.len(), 1);
    }
}
