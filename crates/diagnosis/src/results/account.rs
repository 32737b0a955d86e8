//! Where the time of calls goes: parts that add up to all of it, each only as far as it is known.
//!
//! A call waits on its client until it is sent, is on its way, waits in the queues of the network, is served, and comes
//! back. Counters tell some of this exactly, some of it within bounds. What remains is called unknown.

use serde::Serialize;

use crate::diagnosis::Spent;
use crate::prelude::*;
use crate::results::conditions::tcp_stalls::held_by_losses;
use crate::results::link::{Usage, frames, usage};

/// Fewer calls say little.
const LEAST_CALLS: u64 = 20;
/// Bytes that TCP sends in the first round trip after a pause (RFC 6928); it doubles them in each that follows.
const FIRST_WINDOW: f64 = 10.0 * 1448.0;
/// Bytes of a segment: what takes no time to speak of on a link of any speed.
const SEGMENT: f64 = 1448.0;
/// Use of a link up to which nothing to speak of waits in front of it: half of M/M/1's mean queue of ρ² / (1 − ρ) at 0.5.
const NO_QUEUE: f64 = 0.5;
/// How near TCP's round trip is to that of the calls when acknowledgements come with the replies, and tell of no network.
const WITH_REPLIES: f64 = 0.5;

/// A part of the time of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// On the client, until the request is handed to the socket.
    ClientQueue,
    /// Until a request was sent again.
    Resent,
    /// The way there and back, with nothing else on it.
    Path,
    /// Bytes at the bandwidth of the network.
    Transmission,
    /// In the sockets of both ends, by Nagle's algorithm.
    HeldBack,
    /// In the queues of the network, and for lost segments.
    NetworkQueue,
    /// On the server.
    Server,
    /// Processing on the clients' host: of the clients, and of server and emulated network where they are there as well.
    Host,
    /// What the counters do not divide.
    Unknown,
}

impl Part {
    /// All parts, in the order in which a call has them.
    pub const ALL: [Self; 9] = [
        Self::ClientQueue,
        Self::Resent,
        Self::Path,
        Self::Transmission,
        Self::HeldBack,
        Self::NetworkQueue,
        Self::Server,
        Self::Host,
        Self::Unknown,
    ];

    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::ClientQueue => "waiting on the client",
            Self::Resent => "before requests were sent again",
            Self::Path => "way there and back",
            Self::Transmission => "bytes at the network's bandwidth",
            Self::HeldBack => "held back by Nagle's algorithm",
            Self::NetworkQueue => "queues and losses of the network",
            Self::Server => "server",
            Self::Host => "processing on this host",
            Self::Unknown => "unknown",
        }
    }
}

/// Where the time of all calls of a measured phase went, in nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Account {
    parts: [f64; Part::ALL.len()],
    /// Why something of it is not known.
    pub(crate) missing: Option<&'static str>,
    pub(crate) calls: u64,
}

impl Account {
    /// The time of a part.
    pub(crate) fn ns(&self, part: Part) -> f64 {
        self.parts[part as usize]
    }

    /// Of all calls.
    pub(crate) fn whole(&self) -> f64 {
        self.parts.iter().sum()
    }

    /// The share of a part, from 0 to 1; all of them add up to 1.
    pub(crate) fn share(&self, part: Part) -> f64 {
        share(self.ns(part), self.whole())
    }

    /// Of a workload of a run; `None` where calls were not counted, or hardly any was made.
    pub(crate) fn of(measured: &Measured<'_>) -> Option<Self> {
        let (_, phase) = measured.rpcs()?;
        let calls = phase.total();
        if measured.is_virtual() || calls.ops < LEAST_CALLS || calls.execute_ns == 0 {
            return None;
        }
        let mut open = Open { parts: [0.0; Part::ALL.len()], left: calls.execute_ns as f64 };
        open.take(Part::ClientQueue, calls.queue_ns as f64);
        open.take(Part::Resent, open.left - calls.rtt_ns as f64);
        let Some(round_trip) = round_trip(measured) else {
            return Some(open.close(calls.ops, Some(NO_ROUND_TRIP)));
        };
        open.take(Part::Path, on_the_way(phase, round_trip));
        let used = usage(measured);
        open.take(Part::Transmission, transmission(measured, phase, used.as_ref()));
        let missing = divide(measured, phase, used.as_ref(), round_trip, &mut open);
        Some(open.close(calls.ops, missing))
    }
}

/// The share of each part, mean over runs; all of them add up to 1.
pub(super) fn shares(of_runs: &[Account]) -> Vec<Spent> {
    let mean = |part: Part| {
        of_runs.iter().map(|account| account.share(part)).sum::<f64>() / of_runs.len().max(1) as f64
    };
    Part::ALL
        .iter()
        .map(|part| Spent { part: *part, share: mean(*part) })
        .filter(|spent| spent.share > 0.0)
        .collect()
}

const NO_ROUND_TRIP: &str = "the round trip to the server is not known: measure it with `baseline = true` in `[run]`, or sample `tcp_info` in `[sampling]`";
pub(crate) const NO_BOUND: &str = "whether requests wait in the network or on the server is not known: sample `tcp_info` in `[sampling]`, or measure what the network is capable of \
                        with `baseline = true` in `[run]`";

/// What is not yet anybody's.
struct Open {
    parts: [f64; Part::ALL.len()],
    left: f64,
}

impl Open {
    fn take(&mut self, part: Part, ns: f64) {
        let ns = ns.clamp(0.0, self.left.max(0.0));
        self.parts[part as usize] += ns;
        self.left -= ns;
    }

    fn close(mut self, calls: u64, missing: Option<&'static str>) -> Account {
        self.take(Part::Unknown, self.left);
        Account { parts: self.parts, missing, calls }
    }
}

/// A server on the clients' host, and nothing between them that is asked to take time.
pub(crate) fn is_loopback(measured: &Measured<'_>) -> bool {
    measured.is_embedded() && measured.network().is_none_or(|network| !network.is_emulated())
}

/// Round trip of an empty path. That of the emulation is its delay alone: what it takes besides is processing.
fn round_trip(measured: &Measured<'_>) -> Option<f64> {
    match measured.network().filter(|network| network.is_emulated()) {
        Some(network) => Some(2.0 * network.delay_ns as f64),
        None if is_loopback(measured) => Some(0.0),
        None => measured.round_trip_ns(),
    }
}

/// The most round trips that a call of this kind takes: one for each of TCP's windows that its bytes fill, each twice as
/// large as that before, if the connection begins anew.
pub(crate) fn trips(row: &RpcRow) -> f64 {
    let each = row.bytes_sent.max(row.bytes_received) as f64 / row.ops.max(1) as f64;
    (1.0 + each / FIRST_WINDOW).log2().max(1.0)
}

fn of_nfs(phase: &RpcPhase) -> impl Iterator<Item = &RpcRow> {
    phase.rows.iter().filter(|row| row.ops > 0)
}

/// One round trip for each call.
fn on_the_way(phase: &RpcPhase, round_trip: f64) -> f64 {
    of_nfs(phase).map(|row| (row.ops as f64 * round_trip).min(row.rtt_ns as f64)).sum()
}

/// The most that calls can have waited for further windows of TCP.
fn windows(phase: &RpcPhase, round_trip: f64) -> f64 {
    of_nfs(phase).map(|row| row.ops as f64 * (trips(row) - 1.0) * round_trip).sum()
}

/// Time of the bytes on links of a known capacity: what the study sets, or what raw TCP reached.
fn transmission(measured: &Measured<'_>, phase: &RpcPhase, used: Option<&Usage>) -> f64 {
    let declared = measured.network().and_then(|network| network.bandwidth).map(|bits| bits as f64 / 8.0);
    let Some(capacity) = declared.or(used.map(|used| used.capacity)) else { return 0.0 };
    let bytes = |row: &RpcRow| (row.bytes_sent + row.bytes_received) as f64;
    let frames = if declared.is_some() { frames(measured) } else { 1.0 };
    of_nfs(phase).map(bytes).sum::<f64>() * frames / capacity.max(1.0) * 1e9
}

/// Divides what is left between network, server and host, as far as counters allow. Returns what would tell more.
fn divide(
    measured: &Measured<'_>,
    phase: &RpcPhase,
    used: Option<&Usage>,
    round_trip: f64,
    open: &mut Open,
) -> Option<&'static str> {
    let full = used.is_some_and(|used| used.is_limit());
    let lossy = measured.network().is_some_and(|network| network.loss > 0.0);
    if let Some(own) = own_time(measured) {
        open.take(Part::Server, own);
        open.take(
            Part::HeldBack,
            held_back(measured, phase, round_trip)
                .min(open.left - measured.recording.host.process_ns() as f64),
        );
        // Everything is on this host: what links do not hold up, and losses do not, its processors do. How fast an emulation
        // without a limit is depends on the processors as well.
        let waits = lossy || used.is_some_and(|used| used.emulated && used.share() > NO_QUEUE);
        open.take(Part::Unknown, if waits { 0.0 } else { windows(phase, round_trip) });
        open.take(if waits { Part::NetworkQueue } else { Part::Host }, open.left);
        return None;
    }
    open.take(Part::Host, clients_work(measured));
    // Of a network that is not lossy by the study's doing: what its connections counted.
    let held = held_by_losses(measured).map_or(0.0, |share| share * phase.total().execute_ns as f64);
    open.take(Part::NetworkQueue, held);
    open.take(Part::Unknown, windows(phase, round_trip));
    if full {
        open.take(Part::NetworkQueue, open.left);
        return None;
    }
    let Some(most) = most_queued(measured, phase, round_trip, used.map(Usage::share)) else {
        return Some(NO_BOUND);
    };
    if used.is_none()
        && measured.network().is_none_or(|network| !network.is_emulated())
        && !is_loopback(measured)
    {
        // How long their bytes take is not known.
        open.take(Part::Unknown, of_large_calls(phase, round_trip));
    }
    open.take(Part::Server, open.left - most);
    (open.left > 0.0 && most > 0.0 || open.parts[Part::Unknown as usize] > 0.0).then_some(NO_BOUND)
}

/// The most that calls can have waited for acknowledgements of what was sent before: a round trip at each end that holds small
/// segments back, if more than one call is under way on a connection.
fn held_back(measured: &Measured<'_>, phase: &RpcPhase, round_trip: f64) -> f64 {
    let small = |row: &&RpcRow| (row.bytes_sent.min(row.bytes_received) as f64) < SEGMENT * row.ops as f64;
    let calls: u64 = of_nfs(phase).filter(small).map(|row| row.ops).sum();
    let ends = measured.run.parameters.nagle.count();
    if under_way(measured) > 1.0 { f64::from(ends) * calls as f64 * round_trip } else { 0.0 }
}

/// Calls under way on a connection, on average (Little's law).
pub(crate) fn under_way(measured: &Measured<'_>) -> f64 {
    let Some((rpc, phase)) = measured.rpcs() else { return 0.0 };
    let length = measured.recording.length_ns.max(1) as f64;
    phase.total().execute_ns as f64 / length / f64::from(rpc.connection.count())
}

/// CPU time of the user-space clients, which is in the round trips of their calls.
fn clients_work(measured: &Measured<'_>) -> f64 {
    let own = measured.rpcs().filter(|(rpc, _)| rpc.source == RpcSource::Client);
    own.map_or(0.0, |(rpc, _)| (rpc.client_cpu_ns.0 + rpc.client_cpu_ns.1) as f64)
}

/// What calls with more bytes than a segment take beyond the way.
fn of_large_calls(phase: &RpcPhase, round_trip: f64) -> f64 {
    let large = |row: &&RpcRow| row.bytes_sent.max(row.bytes_received) as f64 > SEGMENT * row.ops as f64;
    let beyond = |row: &RpcRow| (row.rtt_ns as f64 - row.ops as f64 * trips(row) * round_trip).max(0.0);
    of_nfs(phase).filter(large).map(beyond).sum()
}

/// What the embedded server says that it took itself, delays that it was asked for included; `None` where it does not.
pub(crate) fn own_time(measured: &Measured<'_>) -> Option<f64> {
    let used = measured.server().filter(|_| measured.is_embedded())?;
    let held = used.held_ns?;
    // Of compounds the whole counts, of which their operations are parts.
    let whole = |protocol: &str, operation: &str| protocol != "v4" || operation == "COMPOUND";
    let compounds = used.operations.iter().any(|one| one.operation == "COMPOUND");
    let served = used.operations.iter().filter(|one| !compounds || whole(&one.protocol, &one.operation));
    Some(served.map(|one| one.service_ns as f64).sum::<f64>() + held as f64)
}

/// The most that calls can have waited in the network's queues: the least of the bounds that there are.
fn most_queued(measured: &Measured<'_>, phase: &RpcPhase, round_trip: f64, used: Option<f64>) -> Option<f64> {
    let calls = &phase.total();
    let lossy = measured.network().is_some_and(|network| network.loss > 0.0);
    let emulated = measured.network().is_some_and(|network| network.is_emulated());
    // Links that nothing bounds, or that are hardly used, have no queues.
    let unbounded = (emulated || is_loopback(measured)) && used.is_none();
    if !lossy && (unbounded || used.is_some_and(|used| used <= NO_QUEUE)) {
        return Some(0.0);
    }
    // Acknowledgements that come with the replies tell nothing.
    let by_tcp = tcp_wait_ns(measured).map(|wait| wait * calls.ops as f64);
    let by_tcp = by_tcp.filter(|wait| *wait < WITH_REPLIES * calls.rtt_ns as f64);
    let by_operation = cheapest_ns(phase, round_trip).map(|least| least * calls.ops as f64);
    by_tcp.into_iter().chain(by_operation).reduce(f64::min)
}

/// By how much TCP's round trips were longer than the shortest, on average. `None` where they were not sampled.
fn tcp_wait_ns(measured: &Measured<'_>) -> Option<f64> {
    let (mut waits, mut weights) = (0.0, 0.0);
    for host in measured.clients() {
        for rtt in host.samples.of("tcp_info", "rtt") {
            let of = |metric: &str| host.samples.find("tcp_info", metric, &rtt.key.instance);
            let (Some(mean), Some(least)) =
                (measured.mean_of(rtt), of("min_rtt").and_then(|series| measured.mean_of(series)))
            else {
                continue;
            };
            let weight = of("segments_out").and_then(|series| measured.growth(series)).unwrap_or(1.0);
            waits += (mean - least).max(0.0) * weight;
            weights += weight;
        }
    }
    (weights > 0.0).then(|| waits / weights)
}

/// What the quickest kind of call takes beyond the way: the queues of the network hold up all kinds alike.
fn cheapest_ns(phase: &RpcPhase, round_trip: f64) -> Option<f64> {
    let kinds = || of_nfs(phase).filter(|row| row.ops >= LEAST_CALLS && row.program.starts_with("NFS"));
    let beyond = |row: &RpcRow| (row.rtt_ns as f64 / row.ops as f64 - round_trip).max(0.0);
    (kinds().count() > 1).then(|| kinds().map(beyond).reduce(f64::min))?
}

#[cfg(test)]
mod tests;
