//! Counts, bytes and service times per operation and client.
//!
//! Every thread counts in a shard of its own; reading adds the shards up. Recording takes one uncontended lock and no
//! allocation after the first time of an operation of a client.

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hashbrown::HashMap;
use hdrhistogram::Histogram;
use parking_lot::{Mutex, RwLock};
use serde::Serialize;

use crate::thread::{Counter, PerThread};

mod op;
mod report;

pub use op::Operation;
pub use report::{
    ClientReport, DelegationCounts, Nfs4ClientReport, OperationReport, Report, ServiceTime, StateReport,
};

/// A client host, counted from 1 in order of its first call. One address and one machine name of AUTH_SYS make a
/// client, whatever connections, sessions and versions it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientIndex(pub u32);

/// Counters that belong to no operation, while they count (`T` is [`Counter`]) or as they are reported (`u64`).
#[derive(Debug, Clone, Default, Serialize)]
pub struct Transport<T = Counter> {
    /// TCP connections accepted.
    pub connections: T,
    /// UDP datagrams received.
    pub datagrams: T,
    /// RPC calls received.
    pub calls: T,
    /// Messages that were no call of RPC version 2.
    pub bad_format: T,
    /// Calls whose credential was refused.
    pub bad_auth: T,
    /// Calls for programs, versions or procedures not served, or with arguments that do not decode.
    pub bad_calls: T,
    /// Repeated requests answered from the duplicate request cache.
    pub replayed: T,
    /// Repeated requests dropped because the first was in progress.
    pub dropped_duplicates: T,
    /// TLS sessions begun.
    pub tls_handshakes: T,
    /// Those of them that went on from an earlier one.
    pub tls_resumed: T,
    /// Handshakes that failed: certificates not accepted, clients that gave up.
    pub tls_failed: T,
    /// Contexts of RPCSEC_GSS established.
    pub gss_contexts: T,
    /// Contexts of RPCSEC_GSS refused.
    pub gss_failed: T,
    /// Calls with RPCSEC_GSS discarded because their sequence number was seen before, or is too old.
    pub gss_discarded: T,
}

/// Counters of a server.
pub struct Statistics {
    /// Counters that belong to no operation.
    pub transport: Transport,
    shards: PerThread<Mutex<Shard>>,
    clients: RwLock<Registry>,
    /// How many histograms there are for single clients.
    histograms: AtomicUsize,
}

#[derive(Default)]
struct Registry {
    by_name: HashMap<(IpAddr, Box<[u8]>), ClientIndex>,
    names: Vec<(IpAddr, Box<[u8]>)>,
    /// How many names an address has, and the last of them.
    by_address: HashMap<IpAddr, (usize, ClientIndex)>,
}

/// Beyond this number, clients share the last number: a flood of names must not take memory without end.
const MOST_CLIENTS: usize = 2048;
/// Beyond this number, names of one address share that address's last number.
const MOST_NAMES: usize = 256;
/// Most histograms of single clients' operations, of 16 KiB each. Those that come later are in the sum of all only.
const MOST_HISTOGRAMS: usize = 4096;

struct Shard {
    /// By client index − 1; operations by their index.
    clients: Vec<Option<PerOperation>>,
    /// Service times of those that have no histogram of their own, by operation.
    others: Box<[Option<Box<Histogram<u32>>>]>,
}

impl Default for Shard {
    fn default() -> Self {
        Self { clients: Vec::new(), others: none() }
    }
}

/// Nothing for any operation.
fn none<T>() -> Box<[Option<T>]> {
    std::iter::repeat_with(|| None).take(Operation::COUNT).collect()
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
    /// `None` where there are too many of them.
    service: Option<Box<Histogram<u32>>>,
}

/// Longest service time recorded; longer ones count as this.
const MAX_SERVICE: Duration = Duration::from_secs(100);

#[allow(clippy::expect_used, reason = "the bounds are constants, and a test makes one")]
fn histogram() -> Box<Histogram<u32>> {
    Box::new(Histogram::new_with_bounds(1, MAX_SERVICE.as_nanos() as u64, 2).expect("valid bounds"))
}

impl Counts {
    fn new(service: Option<Box<Histogram<u32>>>) -> Self {
        Self { count: 0, errors: 0, received: 0, sent: 0, nanos: 0, service }
    }

    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.errors += other.errors;
        self.received += other.received;
        self.sent += other.sent;
        self.nanos += other.nanos;
        match (&mut self.service, &other.service) {
            // Same bounds: cannot fail; if it did, the count would still be right.
            (Some(sum), Some(other)) => drop(sum.add(&**other)),
            (sum @ None, Some(other)) => *sum = Some(other.clone()),
            (_, None) => {}
        }
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
            shards: PerThread::new(threads),
            clients: RwLock::default(),
            histograms: AtomicUsize::new(0),
        }
    }

    /// The number of a client; a new one gets the next.
    pub fn client(&self, address: IpAddr, machine: &[u8]) -> ClientIndex {
        let known = self.clients.read().find(address, machine);
        known.unwrap_or_else(|| self.clients.write().find_or_add(address, machine))
    }

    /// Adds one execution of an operation.
    #[inline]
    pub fn record(&self, client: ClientIndex, operation: Operation, sample: Sample) {
        let mut shard = self.shards.mine().lock();
        let Shard { clients, others } = &mut *shard;
        let counts = counts_of(clients, client, operation, || {
            let taken = self.histograms.fetch_add(1, Ordering::Relaxed);
            (taken < MOST_HISTOGRAMS).then(histogram)
        });
        let nanos = sample.service.as_nanos() as u64;
        counts.count += 1;
        counts.errors += u64::from(sample.error);
        counts.received += sample.received;
        counts.sent += sample.sent;
        counts.nanos += nanos;
        let service = match &mut counts.service {
            Some(own) => own,
            None => others[operation.index()].get_or_insert_with(histogram),
        };
        service.saturating_record(nanos.max(1));
    }

    /// Counts of one client's operations, shards added up. No shard is locked for longer than that takes.
    fn of_client(&self, client: usize) -> Vec<(Operation, Counts)> {
        let mut sums: Box<[Option<Counts>]> = none();
        for shard in self.shards.all() {
            let shard = shard.lock();
            let Some(counts) = shard.clients.get(client).and_then(Option::as_ref) else { continue };
            for (sum, counts) in sums.iter_mut().zip(counts) {
                match (sum, counts) {
                    (Some(sum), Some(counts)) => sum.add(counts),
                    (sum @ None, Some(counts)) => *sum = Some((**counts).clone()),
                    (_, None) => {}
                }
            }
        }
        let named = |(index, counts): (usize, Option<Counts>)| Some((Operation::of_index(index), counts?));
        sums.into_iter().enumerate().filter_map(named).collect()
    }

    /// Adds the service times of those without a histogram of their own.
    fn add_others(&self, sums: &mut [Option<Counts>]) {
        for shard in self.shards.all() {
            for (sum, other) in sums.iter_mut().zip(&shard.lock().others) {
                if let (Some(sum), Some(other)) = (sum, other) {
                    sum.add(&Counts::new(Some(other.clone())));
                }
            }
        }
    }
}

impl Registry {
    fn find(&self, address: IpAddr, machine: &[u8]) -> Option<ClientIndex> {
        self.by_name.get(&Name(address, machine)).copied()
    }

    fn find_or_add(&mut self, address: IpAddr, machine: &[u8]) -> ClientIndex {
        if let Some(index) = self.find(address, machine) {
            return index;
        }
        let (names, last) = self.by_address.get(&address).copied().unwrap_or((0, ClientIndex(0)));
        if names >= MOST_NAMES {
            return last;
        }
        if self.names.len() >= MOST_CLIENTS {
            return ClientIndex(MOST_CLIENTS as u32);
        }
        let index = ClientIndex(self.names.len() as u32 + 1);
        self.names.push((address, machine.into()));
        self.by_name.insert((address, machine.into()), index);
        self.by_address.insert(address, (names + 1, index));
        index
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

/// Counts of an operation of a client; those of a new one have the histogram that `service` gives.
#[inline]
fn counts_of(
    clients: &mut Vec<Option<PerOperation>>,
    client: ClientIndex,
    operation: Operation,
    service: impl FnOnce() -> Option<Box<Histogram<u32>>>,
) -> &mut Counts {
    let index = client.0.saturating_sub(1) as usize;
    if clients.len() <= index {
        clients.resize_with(index + 1, || None);
    }
    let operations = clients[index].get_or_insert_with(none);
    operations[operation.index()].get_or_insert_with(|| Box::new(Counts::new(service())))
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
        assert_eq!(statistics.client(HERE, b"another"), ClientIndex(MOST_NAMES as u32));
        let address = |n: u32| IpAddr::V4(Ipv4Addr::from(0x0a00_0000 + n));
        let first = statistics.client(address(0), b"a");
        assert_eq!(first, ClientIndex(MOST_NAMES as u32 + 1), "names of one host leave room for others");
        for n in 0..20_000u32 {
            statistics.client(address(n), b"a");
        }
        assert_eq!(statistics.client(address(20_000), b"a"), ClientIndex(MOST_CLIENTS as u32));
        assert_eq!(statistics.clients.read().names.len(), MOST_CLIENTS);
        assert_eq!(statistics.client(address(0), b"a"), first);
    }

    /// Counts stay exact, and so does the histogram of all clients together.
    #[test]
    fn histograms_are_bounded_and_none_is_lost_from_the_sum() {
        let statistics = Statistics::new(2);
        let operations: Vec<_> = (0..22).map(|n| Operation::V3(Proc3(n))).collect();
        let clients = MOST_CLIENTS as u32;
        for n in 0..clients {
            let client = statistics.client(IpAddr::V4(Ipv4Addr::from(n)), b"");
            for operation in &operations {
                let service = Duration::from_nanos(1000);
                statistics.record(client, *operation, Sample { service, ..Sample::default() });
            }
        }
        let kept = |shard: &Mutex<Shard>| {
            let shard = shard.lock();
            let own = shard.clients.iter().flatten().flatten().flatten().filter(|it| it.service.is_some());
            own.count() + shard.others.iter().flatten().count()
        };
        let histograms: usize = statistics.shards.all().map(kept).sum();
        assert!(histograms <= MOST_HISTOGRAMS + 2 * operations.len(), "{histograms}");
        let report = statistics.report(Duration::from_secs(1), StateReport::default(), Vec::new());
        assert_eq!((report.clients.len(), report.operations.len()), (MOST_CLIENTS, operations.len()));
        for operation in &report.operations {
            let times: u64 = operation.service.histogram.iter().map(|(_, count)| count).sum();
            assert_eq!((operation.ops, times), (u64::from(clients), u64::from(clients)));
        }
        let last = &report.clients[MOST_CLIENTS - 1].operations[0];
        assert_eq!((last.ops, last.service.total_ns, last.service.histogram.len()), (1, 1000, 0));
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
        let totals = statistics.of_client(0);
        let [(operation, counts)] = totals.as_slice() else { panic!("{totals:?}") };
        assert_eq!((*operation, counts.count, counts.errors), (read, 8000, 8));
        assert_eq!((counts.received, counts.sent), (800_000, 8000 * 4096));
        let service = counts.service.as_ref().unwrap();
        assert_eq!(service.len(), 8000);
        let median = service.value_at_quantile(0.5);
        assert!((1480..=1520).contains(&median), "{median}");
    }

    #[test]
    fn hours_of_service_time_are_not_lost() {
        let statistics = Statistics::new(1);
        let client = statistics.client(HERE, b"a");
        let sample = Sample { service: Duration::from_secs(7200), ..Sample::default() };
        statistics.record(client, Operation::Compound, sample);
        assert_eq!(statistics.of_client(0)[0].1.service.as_ref().unwrap().len(), 1);
    }
}
