//! The link between clients and server: what it carries, and how much of that was used.

use std::collections::BTreeSet;

use super::account::is_loopback;
use crate::measured::Measured;

/// Share of the bandwidth from which on it is the limit.
const FULL: f64 = 0.85;
/// Beyond this a measured capacity is not what it was thought to be.
const BEYOND: f64 = 1.15;
/// The MTU of Ethernet.
const MTU: u32 = 1_500;
/// Bytes of the headers of IP and TCP, with timestamps.
const HEADERS: f64 = 52.0;
/// Bytes of an Ethernet header.
const ETHERNET: f64 = 14.0;
pub(super) const OF_SERVER: &str = "the emulated bandwidth of the server's link";

/// How much of a network's capacity was used.
pub(super) struct Usage {
    /// Bytes per second on the wire, as the capacity counts them.
    pub(super) rate: f64,
    pub(super) capacity: f64,
    /// Links that have it together.
    pub(super) links: f64,
    /// Where the capacity is from, in words.
    pub(super) from: &'static str,
    /// Whether the capacity is one that the study sets.
    pub(super) emulated: bool,
    pub(super) direction: &'static str,
}

impl Usage {
    pub(super) fn share(&self) -> f64 {
        self.rate / self.capacity
    }

    /// Whether the capacity was used up.
    pub(super) fn is_limit(&self) -> bool {
        self.share() >= FULL && !self.is_beyond()
    }

    /// Whether more went through than was thought possible. Of an emulated network it is known how much that is: what is beyond
    /// it went before the phase began or after it ended.
    pub(super) fn is_beyond(&self) -> bool {
        !self.emulated && self.share() > BEYOND
    }
}

/// Bytes of TCP's data in a segment of the emulated network, or else of Ethernet.
pub(super) fn segment(measured: &Measured<'_>) -> f64 {
    let mtu = measured.run.parameters.mtu.unwrap_or(MTU);
    (f64::from(mtu) - HEADERS).max(1.0)
}

/// Bytes of Ethernet frames per byte of TCP's data, without gap and preamble: emulations do not count them in what they carried.
pub(super) fn frames(measured: &Measured<'_>) -> f64 {
    (segment(measured) + HEADERS + ETHERNET) / segment(measured)
}

/// Hosts with clients; 1 where there are no agents.
fn hosts(measured: &Measured<'_>) -> usize {
    let clients = measured.recording.agents.iter().filter(|agent| agent.clients > 0);
    clients.map(|agent| &agent.host).collect::<BTreeSet<_>>().len().max(1)
}

/// The use of the network; `None` where calls were not counted or its capacity is not known.
pub(super) fn usage(measured: &Measured<'_>) -> Option<Usage> {
    let calls = measured.calls()?;
    let seconds = measured.seconds().max(1e-9);
    let (bytes, direction, name) = if calls.bytes_received >= calls.bytes_sent {
        (calls.bytes_received as f64, "to the clients", "receive")
    } else {
        (calls.bytes_sent as f64, "to the server", "send")
    };
    let clients = measured.rpcs().map_or(1, |(rpc, _)| rpc.connection.clients.max(1));
    let emulated = measured
        .network()
        .and_then(|network| network.bandwidth)
        .map(|bits| (bits as f64 / 8.0 * f64::from(clients), "the emulated bandwidth of the clients' links"));
    let shared = measured.run.parameters.server_bandwidth.map(|bandwidth| (bandwidth, OF_SERVER));
    let capacity = [emulated, shared].into_iter().flatten().min_by(|(a, _), (b, _)| a.total_cmp(b));
    if let Some((capacity, from)) = capacity.filter(|(capacity, _)| *capacity > 0.0) {
        return Some(Usage {
            rate: bytes * frames(measured) / seconds,
            capacity,
            links: if from == OF_SERVER { 1.0 } else { f64::from(clients) },
            from,
            emulated: true,
            direction,
        });
    }
    // What raw TCP reaches within one host is what its processors do, and no link.
    if is_loopback(measured) && measured.recording.agents.is_empty() {
        return None;
    }
    let flows = measured.baselines().flat_map(|baseline| &baseline.flows);
    let most =
        flows.filter(|flows| flows.direction == name).map(|flows| flows.throughput).max_by(f64::total_cmp)?;
    let rate = bytes / seconds / hosts(measured) as f64;
    (most > 0.0).then_some(Usage {
        rate,
        capacity: most,
        links: 1.0,
        from: "the most that raw TCP reached (baseline)",
        emulated: false,
        direction,
    })
}
