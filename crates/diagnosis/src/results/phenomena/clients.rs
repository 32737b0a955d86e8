//! What each client did, over the run and over time.

use std::collections::BTreeMap;

use benchmaster_record::recording::Recording;
use benchmaster_record::samples::Samples;
use benchmaster_telemetry::derived::growth;

use crate::measured::Measured;

/// Starts that lie so much of the run apart are one after the other.
const STAGGERED: f64 = 0.05;
/// Parts of the run that are compared.
pub(super) const PARTS: usize = 20;

/// What the clients of one group of workers moved.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rates {
    /// The clients, by number, and bytes per second while each was active.
    pub(super) of: Vec<(u32, f64)>,
    /// Bytes of all of them.
    pub(super) bytes: u64,
    /// Operations of the client with the fewest.
    pub(super) fewest: u64,
}

/// The rates of the clients of the group that moved most; `None` when nothing was moved. Clients of other groups do other things.
pub(super) fn rates(measured: &Measured<'_>) -> Option<Rates> {
    rates_of(measured.recording)
}

/// The same of a recording.
pub(super) fn rates_of(recording: &Recording) -> Option<Rates> {
    #[derive(Default)]
    struct Client {
        bytes: u64,
        count: u64,
        active: Option<(u64, u64)>,
    }
    let mut groups: BTreeMap<&str, BTreeMap<u32, Client>> = BTreeMap::new();
    for worker in &recording.workers {
        let client = groups.entry(&worker.group).or_default().entry(worker.client).or_default();
        client.bytes += worker.series.iter().map(|series| series.bytes).sum::<u64>();
        client.count += worker.series.iter().map(|series| series.count).sum::<u64>();
        let (start, end) = client.active.unwrap_or((worker.start_ns, worker.end_ns));
        client.active = Some((start.min(worker.start_ns), end.max(worker.end_ns)));
    }
    let moved = |group: &BTreeMap<u32, Client>| group.values().map(|client| client.bytes).sum::<u64>();
    let group = groups.into_values().max_by_key(moved).filter(|group| moved(group) > 0)?;
    let rate = |client: &Client| {
        let (start, end) = client.active.unwrap_or_default();
        client.bytes as f64 * 1e9 / end.saturating_sub(start).max(1) as f64
    };
    Some(Rates {
        of: group.iter().map(|(number, client)| (*number, rate(client))).collect(),
        bytes: moved(&group),
        fewest: group.values().map(|client| client.count).min().unwrap_or(0),
    })
}

/// Bytes that each client moved in each of so many equal parts of the time in which all were at work: from the trace, else
/// from the counters of the hosts of agents with one client each. `None` where neither tells.
pub(super) fn course(measured: &Measured<'_>, parts: usize) -> Option<Vec<(u32, Vec<f64>)>> {
    let (start, part) = all_at_work(measured.recording, parts)?;
    traced(measured, start, part, parts).or_else(|| sampled(measured.recording, start, part, parts))
}

/// The beginning of the time in which all clients are at work, and the length of each of that number of parts of it.
fn all_at_work(recording: &Recording, parts: usize) -> Option<(u64, u64)> {
    let start = recording.workers.iter().map(|worker| worker.start_ns).max()?;
    let end = recording.workers.iter().map(|worker| worker.end_ns).min()?.min(recording.length_ns);
    Some((start, (end.checked_sub(start)? / parts as u64).max(1)))
}

/// The rates of clients: where they begin one after the other, those of the time in which all are at work, if its course is
/// known.
pub(super) fn together(
    recording: &Recording,
    course: impl FnOnce(usize) -> Option<Vec<(u32, Vec<f64>)>>,
) -> Option<Rates> {
    let all = rates_of(recording)?;
    let starts = || recording.workers.iter().map(|worker| worker.start_ns);
    if (starts().max()? - starts().min()?) as f64 <= STAGGERED * recording.length_ns as f64 {
        return Some(all);
    }
    let (_, part) = all_at_work(recording, PARTS)?;
    let seconds = part as f64 * PARTS as f64 / 1e9;
    let of: Vec<(u32, f64)> = course(PARTS)?
        .into_iter()
        .map(|(client, parts)| (client, parts.iter().sum::<f64>() / seconds))
        .collect();
    (of.len() == all.of.len()).then_some(Rates { of, ..all })
}

fn traced(measured: &Measured<'_>, start: u64, part: u64, parts: usize) -> Option<Vec<(u32, Vec<f64>)>> {
    let workers = &measured.recording.workers;
    let mut moved: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    measured
        .trace(&mut |batch| {
            for call in batch {
                let at = (call.start_ns + call.latency_ns).checked_sub(start).map(|ns| (ns / part) as usize);
                let (Some(at), Some(worker)) =
                    (at.filter(|at| *at < parts), workers.get(call.worker as usize))
                else {
                    continue;
                };
                moved.entry(worker.client).or_insert_with(|| vec![0.0; parts])[at] += f64::from(call.bytes);
            }
        })?
        .ok()?;
    (!moved.is_empty()).then(|| moved.into_iter().collect())
}

fn sampled(recording: &Recording, start: u64, part: u64, parts: usize) -> Option<Vec<(u32, Vec<f64>)>> {
    let alone = recording.agents.iter().filter(|agent| agent.clients == 1);
    let of = alone.map(|agent| {
        let host = recording.samples.iter().find(|host| host.agent == agent.name)?;
        let moved = (0..parts).map(|i| {
            let from = (start + part * i as u64) as i64;
            network(&host.samples, from, from + part as i64)
        });
        Some((agent.first_client, moved.collect::<Option<Vec<f64>>>()?))
    });
    let all: Vec<_> = of.collect::<Option<_>>()?;
    (all.len() > 1).then_some(all)
}

/// Bytes both ways: on the connections under test, else through all interfaces but loopback.
fn network(samples: &Samples, from: i64, to: i64) -> Option<f64> {
    let sum = |sampler: &str, metrics: [&str; 2]| {
        let series = metrics.into_iter().flat_map(|metric| samples.of(sampler, metric));
        let outside = series.filter(|series| series.key.instance != "lo");
        outside.filter_map(|series| growth(&series.points, from, to)).reduce(|a, b| a + b)
    };
    sum("tcp_info", ["bytes_received", "bytes_acked"]).or_else(|| sum("net", ["rx_bytes", "tx_bytes"]))
}
