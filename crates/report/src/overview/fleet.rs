//! The clients of a study: who they were, how well they began together, what lay between them and the server.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use benchmaster_analysis::{Analysis, Estimate, TreatmentSummary};
use benchmaster_record::recording::{AgentRecording, ClockFacts, Recording, StartFacts};
use benchmaster_record::results::{NetworkRecord, StudyResults, Unit};
use benchmaster_stats::fairness::jain;

use super::counted_runs;
use crate::format;

/// One agent over the runs of a treatment that count.
pub(crate) struct AgentSummary<'a> {
    pub(crate) treatment: &'a TreatmentSummary,
    pub(crate) agent: &'a AgentRecording,
    pub(crate) runs: usize,
    /// Of the last run, but with the largest bound of all.
    pub(crate) clock: ClockFacts,
    /// Means over runs of the start of its first operation and the end of its last one.
    pub(crate) first_ns: Option<f64>,
    pub(crate) last_ns: Option<f64>,
    /// Bytes per second of one of its clients, or operations where no data were moved.
    pub(crate) rate: Option<(Estimate, Unit)>,
    /// Jain's index of its clients; `None` with one.
    pub(crate) fairness: Option<Estimate>,
}

/// What all clients of a treatment did, and one of them, over the runs that count. Agents with their means over runs.
pub(crate) struct LoadSummary<'a> {
    pub(crate) treatment: &'a TreatmentSummary,
    pub(crate) workload: &'a str,
    pub(crate) clients: u32,
    pub(crate) hosts: usize,
    pub(crate) unit: Unit,
    pub(crate) total: Estimate,
    /// Of one client, on average.
    pub(crate) each: Estimate,
    /// The agent whose clients were slowest, and their rate.
    pub(crate) slowest: Option<(&'a str, f64)>,
    /// The agents that ended first and last, and when.
    pub(crate) first_done: Option<(&'a str, f64)>,
    pub(crate) last_done: Option<(&'a str, f64)>,
}

/// How the clients of a treatment began together, over the runs that count.
pub(crate) struct StartSummary<'a> {
    pub(crate) treatment: &'a TreatmentSummary,
    pub(crate) workload: &'a str,
    pub(crate) spread: Estimate,
    pub(crate) max_ns: u64,
    pub(crate) bound_ns: u64,
    /// By the server's times of receipt: mean and maximum.
    pub(crate) at_server: Option<(Estimate, u64)>,
    pub(crate) stagger_ns: u64,
}

/// What one client did.
#[derive(Clone, Copy, Default)]
pub(crate) struct Client {
    pub(crate) first_start_ns: Option<u64>,
    pub(crate) last_end_ns: Option<u64>,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    pub(crate) errors: u64,
}

/// The clients of a recording by their numbers.
pub(crate) fn clients(recording: &Recording) -> BTreeMap<u32, Client> {
    let mut clients: BTreeMap<u32, Client> = BTreeMap::new();
    for worker in &recording.workers {
        let client = clients.entry(worker.client).or_default();
        for series in &worker.series {
            client.first_start_ns = client.first_start_ns.into_iter().chain(series.first_start_ns).min();
            client.last_end_ns = client.last_end_ns.max(series.last_end_ns);
            client.count += series.count;
            client.bytes += series.bytes;
            client.errors += series.errors;
        }
    }
    clients
}

/// Whether a recording is of more than one client.
fn is_of_many(recording: &Recording) -> bool {
    recording.agents.iter().map(|agent| agent.clients).sum::<u32>() > 1
}

fn recordings<'a>(
    results: &'a StudyResults,
    treatment: &TreatmentSummary,
    workload: &'a str,
) -> impl Iterator<Item = &'a Recording> {
    counted_runs(results, treatment.index)
        .flat_map(|run| &run.recordings)
        .filter(move |recording| recording.workload == workload)
}

/// A recording of several clients, each looked up once.
struct Looked<'a> {
    recording: &'a Recording,
    clients: BTreeMap<u32, Client>,
    agents: HashMap<&'a str, &'a AgentRecording>,
}

impl<'a> Looked<'a> {
    fn at(recording: &'a Recording) -> Self {
        let agents = recording.agents.iter().map(|agent| (agent.name.as_str(), agent)).collect();
        Self { recording, clients: clients(recording), agents }
    }

    /// Bytes per second, or operations where no data were moved.
    fn rate(&self, client: &Client, unit: Unit) -> f64 {
        let amount = if unit == Unit::BytesPerSecond { client.bytes } else { client.count };
        amount as f64 * 1e9 / self.recording.length_ns.max(1) as f64
    }
}

fn of_many<'a>(
    results: &'a StudyResults,
    treatment: &TreatmentSummary,
    workload: &'a str,
) -> (Vec<Looked<'a>>, Unit) {
    let all: Vec<Looked<'a>> = recordings(results, treatment, workload)
        .filter(|recording| is_of_many(recording))
        .map(Looked::at)
        .collect();
    let in_bytes = all.iter().flat_map(|at| &at.recording.series).any(|series| series.total.bytes > 0);
    (all, if in_bytes { Unit::BytesPerSecond } else { Unit::OperationsPerSecond })
}

/// The agents of a workload by treatment; none where all was one client.
pub(crate) fn agents<'a>(
    results: &'a StudyResults,
    analysis: &'a Analysis,
    workload: &'a str,
) -> Vec<AgentSummary<'a>> {
    let mut found = Vec::new();
    for treatment in &analysis.treatments {
        let (all, unit) = of_many(results, treatment, workload);
        let Some(last) = all.last() else { continue };
        let agents = last.recording.agents.iter();
        found.extend(agents.map(|agent| summary(treatment, agent, &all, unit, analysis.confidence)));
    }
    found
}

fn summary<'a>(
    treatment: &'a TreatmentSummary,
    agent: &'a AgentRecording,
    recordings: &[Looked<'a>],
    unit: Unit,
    confidence: f64,
) -> AgentSummary<'a> {
    let (mut first, mut last, mut rates, mut indices) = (vec![], vec![], vec![], vec![]);
    let mut clock = agent.clock;
    let mut runs = 0;
    for looked in recordings {
        let Some(own) = looked.agents.get(agent.name.as_str()) else { continue };
        runs += 1;
        clock.bound_ns = clock.bound_ns.max(own.clock.bound_ns);
        let own = own.first_client..own.first_client + own.clients;
        let own: Vec<Client> =
            own.map(|number| looked.clients.get(&number).copied().unwrap_or_default()).collect();
        first.extend(own.iter().filter_map(|client| client.first_start_ns).min().map(|ns| ns as f64));
        last.extend(own.iter().filter_map(|client| client.last_end_ns).max().map(|ns| ns as f64));
        let each: Vec<f64> = own.iter().map(|client| looked.rate(client, unit)).collect();
        if let Some(mean) = benchmaster_stats::mean(&each) {
            rates.push(mean);
        }
        if each.len() > 1 {
            indices.extend(jain(&each));
        }
    }
    AgentSummary {
        treatment,
        agent,
        runs,
        clock,
        first_ns: benchmaster_stats::mean(&first),
        last_ns: benchmaster_stats::mean(&last),
        rate: Estimate::of(&rates, confidence).ok().map(|estimate| (estimate, unit)),
        fairness: Estimate::of(&indices, confidence).ok(),
    }
}

/// The loads of a workload by treatment; none where there was one client.
pub(crate) fn loads<'a>(
    results: &'a StudyResults,
    analysis: &'a Analysis,
    workload: &'a str,
) -> Vec<LoadSummary<'a>> {
    let load = |treatment: &'a TreatmentSummary| {
        let (all, unit) = of_many(results, treatment, workload);
        let last = all.last()?.recording;
        let loading: Vec<_> = last.agents.iter().filter(|agent| agent.clients > 0).collect();
        let clients: u32 = loading.iter().map(|agent| agent.clients).sum();
        let sum = |looked: &Looked<'_>| -> f64 {
            looked.clients.values().map(|client| looked.rate(client, unit)).sum()
        };
        let totals: Vec<f64> = all.iter().map(sum).collect();
        let each: Vec<f64> = totals.iter().map(|total| total / f64::from(clients.max(1))).collect();
        let agents: Vec<AgentSummary<'a>> = loading
            .into_iter()
            .map(|agent| summary(treatment, agent, &all, unit, analysis.confidence))
            .collect();
        let by = |value: fn(&AgentSummary<'a>) -> Option<f64>, last: bool| {
            let valued = agents.iter().filter_map(|agent| Some((agent.agent.name.as_str(), value(agent)?)));
            let order = |a: &(&str, f64), b: &(&str, f64)| a.1.total_cmp(&b.1);
            if last { valued.max_by(order) } else { valued.min_by(order) }
        };
        let hosts: BTreeSet<&str> = agents.iter().map(|agent| agent.agent.host.as_str()).collect();
        Some(LoadSummary {
            treatment,
            workload,
            clients,
            hosts: hosts.len(),
            unit,
            total: Estimate::of(&totals, analysis.confidence).ok()?,
            each: Estimate::of(&each, analysis.confidence).ok()?,
            slowest: by(|agent| agent.rate.as_ref().map(|(rate, _)| rate.mean), false),
            first_done: by(|agent| agent.last_ns, false),
            last_done: by(|agent| agent.last_ns, true),
        })
    };
    analysis.treatments.iter().filter_map(load).collect()
}

/// How the clients of each workload and treatment began together; none where there was one client.
pub(crate) fn starts<'a>(results: &'a StudyResults, analysis: &'a Analysis) -> Vec<StartSummary<'a>> {
    let mut found = Vec::new();
    for workload in &results.study.workloads {
        for treatment in &analysis.treatments {
            let of_many = recordings(results, treatment, &workload.name).filter(|r| is_of_many(r));
            let starts: Vec<StartFacts> = of_many.filter_map(|recording| recording.start).collect();
            let spreads: Vec<f64> = starts.iter().map(|start| start.spread_ns as f64).collect();
            let Ok(spread) = Estimate::of(&spreads, analysis.confidence) else { continue };
            let at_server: Vec<u64> = starts.iter().filter_map(|start| start.server_spread_ns).collect();
            let mean: Vec<f64> = at_server.iter().map(|ns| *ns as f64).collect();
            found.push(StartSummary {
                treatment,
                workload: &workload.name,
                spread,
                max_ns: starts.iter().map(|start| start.spread_ns).max().unwrap_or(0),
                bound_ns: starts.iter().map(|start| start.bound_ns).max().unwrap_or(0),
                at_server: Estimate::of(&mean, analysis.confidence).ok().zip(at_server.iter().max().copied()),
                stagger_ns: starts.iter().map(|start| start.stagger_ns).max().unwrap_or(0),
            });
        }
    }
    found
}

/// `4 clients started within 28.1 ± 4.0 µs of each other (mean of 20 starts, largest 37.4 µs; error bound 41.0 µs)`;
/// nothing where there was one client.
pub(crate) fn start_line(results: &StudyResults, analysis: &Analysis) -> Option<String> {
    let starts = benchmaster_analysis::starts(results, analysis)?;
    let (least, most) = starts.clients;
    let clients = if least == most { most.to_string() } else { format!("{least} to {most}") };
    let text = |ns: u64| format::time(ns as f64);
    let how_many = match starts.spread.n {
        1 => "1 start".to_owned(),
        n => format!("mean of {n} starts, largest {}", text(starts.largest_ns)),
    };
    Some(format!(
        "{clients} clients started within {} of each other ({how_many}; error bound {})",
        format::estimate(starts.spread.mean, starts.spread.half_width, Unit::Nanoseconds, None),
        text(starts.bound_ns)
    ))
}

/// `10 ms one way, 10 Gbit/s, 0.1 % lost`.
pub(crate) fn network_text(network: &NetworkRecord) -> String {
    let mut parts = vec![format!("{} one way", format::time(network.delay_ns as f64))];
    if network.delay_ns == 0 {
        parts = vec!["no delay".into()];
    }
    if network.jitter_ns > 0 {
        parts.push(format!("± {} jitter", format::time(network.jitter_ns as f64)));
    }
    parts.extend(network.bandwidth.map(|bits| format::bits(bits as f64)));
    if network.loss > 0.0 {
        parts.push(format!("{} lost", format::percent(network.loss)));
    }
    parts.join(", ")
}
