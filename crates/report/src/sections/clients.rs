//! Clients and networks.

use std::collections::BTreeMap;

use benchmaster_analysis::{Analysis, TreatmentSummary};
use benchmaster_record::results::{
    BaselineRecord, FlowsBaseline, NetworkAchieved, NetworkRecord, RoundTripBaseline, RunRecord,
    ServiceRecord, StudyResults, Unit,
};

use super::results::{estimate_cell, show};
use crate::document::{Cell, Table};
use crate::format;
use crate::overview::{self, AgentSummary, LoadSummary, network_text, unbroken};

/// How the clients began together, and each agent.
pub(crate) fn clients(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let starts = Table::of("Synchronisation of the clients' start", overview::starts(results, analysis))
        .column("treatment", |start| Cell::name(&start.treatment.label))
        .column("workload", |start| Cell::text(start.workload))
        .column("#spread of the first operations", |start| show(&start.spread, Unit::Nanoseconds, None))
        .column("#largest", |start| time(start.max_ns as f64))
        .column("#error bound", |start| time(start.bound_ns as f64))
        .column("#seen by the server|1", |start| {
            let mean = start.at_server.as_ref().map(|(mean, _)| show(mean, Unit::Nanoseconds, None));
            mean.unwrap_or_else(Cell::none)
        })
        .column("#largest there|3", |start| Cell::time(start.at_server.as_ref().map(|(_, max)| *max as f64)))
        .column("#planned stagger|4", |start| {
            Cell::time(Some(start.stagger_ns as f64).filter(|stagger| *stagger > 0.0))
        })
        .column("#n|2", |start| Cell::count(start.spread.n))
        .note(
            "Time between the first operations of the first and the last client, each relative to its \
             planned start, on one clock; mean ± half width over runs. Error bound: sum of the two largest clock errors.",
        );
    let workloads = || results.study.workloads.iter().map(|workload| workload.name.as_str());
    let loads = workloads().flat_map(|workload| overview::loads(results, analysis, workload));
    let agents = workloads().filter_map(|workload| agents(results, analysis, workload));
    starts.filled().into_iter().chain(self::loads(loads)).chain(agents).collect()
}

/// What the clients did together and each, and who was slowest, first and last.
fn loads<'a>(loads: impl Iterator<Item = LoadSummary<'a>>) -> Option<Table> {
    let named = |agent: Option<(&str, f64)>, text: &dyn Fn(f64) -> String| {
        agent.map_or_else(Cell::none, |(name, value)| Cell::text(format!("{name} ({})", text(value))))
    };
    let rate = |value: f64, unit| format::rounded(value, None, unit, None).text(true);
    Table::of("Load of the clients", loads)
        .column("treatment", |row| Cell::name(&row.treatment.label))
        .column("workload", |row| Cell::text(row.workload))
        .column("#clients", |row| Cell::count(row.clients as usize))
        .column("#hosts|2", |row| Cell::count(row.hosts))
        .column("#all clients", |row| show(&row.total, row.unit, None))
        .column("#per client", |row| show(&row.each, row.unit, None))
        .column("slowest agent, per client|1", |row| named(row.slowest, &|value| rate(value, row.unit)))
        .column("first done|3", |row| named(row.first_done, &format::time))
        .column("last done|3", |row| named(row.last_done, &format::time))
        .note(
            "Rates over the whole measured phase; mean ± half width over runs. Slowest, first and last: agents by their \
             means over runs, since the common start.",
        )
        .filled()
}

/// Agents of a treatment that are listed; of more, the slowest.
const MOST_AGENTS: usize = 100;

/// Which agents are listed, by treatment and rate of each: all of a treatment, or the slowest.
fn listed(agents: &[(u32, f64)]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..agents.len()).collect();
    order.sort_by(|a, b| agents[*a].1.total_cmp(&agents[*b].1));
    let mut of: BTreeMap<u32, usize> = BTreeMap::new();
    let mut listed = vec![false; agents.len()];
    for agent in order {
        let count = of.entry(agents[agent].0).or_default();
        *count += 1;
        listed[agent] = *count <= MOST_AGENTS;
    }
    listed
}

fn agents(results: &StudyResults, analysis: &Analysis, workload: &str) -> Option<Table> {
    let agents = overview::agents(results, analysis, workload);
    // Observers have no rate, and are listed.
    let rate = |agent: &AgentSummary<'_>| agent.rate.as_ref().map_or(0.0, |(rate, _)| rate.mean);
    let rates: Vec<(u32, f64)> = agents.iter().map(|agent| (agent.treatment.index, rate(agent))).collect();
    let listed = listed(&rates);
    let left_out = listed.iter().filter(|listed| !**listed).count();
    let agents = agents.into_iter().zip(listed).filter_map(|(agent, listed)| listed.then_some(agent));
    let more = match left_out {
        0 => String::new(),
        more => format!(" The slowest are listed, without {more} faster ones, which are in the database."),
    };
    Table::of(format!("{workload}: agents"), agents)
        .column("treatment", |row| Cell::name(&row.treatment.label))
        .column("agent", |row| Cell::text(&row.agent.name))
        .column("host", |row| Cell::text(&row.agent.host))
        .column("#clients|1", |row| match row.agent.clients {
            0 => Cell::text("observer"),
            n => Cell::count(n as usize),
        })
        .column("#rate per client", |row| match &row.rate {
            Some((rate, unit)) if row.agent.clients > 0 => show(rate, *unit, None),
            _ => Cell::none(),
        })
        .column("#Jain's index|4", |row| {
            row.fairness.as_ref().map_or_else(Cell::none, |index| show(index, Unit::Ratio, None))
        })
        .column("#first operation|3", |row| Cell::time(row.first_ns))
        .column("#last operation|5", |row| Cell::time(row.last_ns))
        .column("#clock offset|2", |row| time(row.clock.offset_ns as f64))
        .column("#error bound|2", |row| time(row.clock.bound_ns as f64))
        .column("#drift [ppm]|6", |row| Cell::some(row.clock.drift, |drift| format!("{:+.2}", drift * 1e6)))
        .column("#n|7", |row| Cell::count(row.runs))
        .note(format!(
            "Clocks against the controller's: offset and drift of the last run, largest bound of all. First and \
             last operation: means over runs, since the common start. Rates cover the whole measured phase.{more}"
        ))
        .filled()
}

fn time(ns: f64) -> Cell {
    Cell::time(Some(ns))
}

/// A treatment whose network is emulated or was measured before its runs.
struct Networked<'a> {
    treatment: &'a TreatmentSummary,
    services: Vec<&'a ServiceRecord>,
    network: &'a NetworkRecord,
    baseline: Option<&'a BaselineRecord>,
}

impl<'a> Networked<'a> {
    fn of(results: &'a StudyResults, treatment: &'a TreatmentSummary) -> Option<Self> {
        let runs = overview::counted_runs(results, treatment.index);
        let services: Vec<_> = runs.filter_map(|run| run.service.as_ref()).collect();
        let network = &services.first()?.network;
        let baseline = results.baseline_of(network);
        (network.is_emulated() || baseline.is_some()).then_some(Self {
            treatment,
            services,
            network,
            baseline,
        })
    }

    /// The fastest flows in a direction.
    fn raw(&self, direction: &str) -> Cell {
        let flows = self.baseline.into_iter().flat_map(|b| &b.flows).filter(|f| f.direction == direction);
        flows.max_by(|a, b| a.throughput.total_cmp(&b.throughput)).map_or_else(Cell::none, |flows| {
            let rate = format::rounded(flows.throughput, flows.half_width, Unit::BytesPerSecond, None);
            let flow = format::plural(flows.flows as usize, "flow");
            Cell::number(format!("{}, {flow}", rate.text(true)), flows.throughput)
        })
    }

    fn achieved(&self, of: fn(&NetworkAchieved) -> Option<u64>) -> impl Iterator<Item = u64> {
        self.services.iter().filter_map(move |service| of(service.achieved.as_ref()?))
    }
}

/// The networks with their baselines beside the results, as papers print them.
pub(crate) fn networks(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let primary = &analysis.primary_response;
    let treatments = analysis.treatments.iter().filter_map(|treatment| Networked::of(results, treatment));
    let treatments: Vec<_> = treatments.collect();
    let mut note = "Raw TCP and the round trip (median) were measured without NFS before the runs; for several \
                    numbers of flows, the best is shown. Lateness is the largest p99 of all runs, losses are sums over runs."
        .to_owned();
    for network in treatments.iter().map(|row| row.network).filter(|network| !network.note.is_empty()) {
        let means = format!(" {}: {}.", network.emulator, network.note);
        if !note.contains(&means) {
            note += &means;
        }
    }
    let time = |ns: Option<u64>| Cell::time(ns.map(|ns| ns as f64));
    let table = Table::of("Networks with their baselines, and the result", treatments)
        .column("treatment", |row| Cell::name(&row.treatment.label))
        .column("emulator", |row| Cell::text(row.network.emulator.name()))
        .column("network", |row| Cell::text(unbroken(&network_text(row.network))))
        .column("#RTT measured", |row| time(row.baseline.and_then(|b| Some(b.round_trip?.median_ns))))
        .column("#raw TCP to the clients|3", |row| row.raw("receive"))
        .column("#raw TCP to the server|3", |row| row.raw("send"))
        .column(&format!("#{primary}"), |row| estimate_cell(row.treatment.response(primary), None))
        .column("#base RTT|4", |row| time(row.network.base_rtt_ns))
        .column("#late (p99)|5", |row| time(row.achieved(|a| a.lateness_p99_ns).max()))
        .column("#lost|6", |row| Cell::whole(row.achieved(|a| a.lost).reduce(|a, b| a + b)))
        .column("#overflowed|7", |row| Cell::whole(row.achieved(|a| a.overflowed).reduce(|a, b| a + b)))
        .note(note);
    table.filled().into_iter().chain(baselines(results)).collect()
}

fn baselines(results: &StudyResults) -> Option<Table> {
    // A baseline without flows has the round trip alone.
    let rows = results.baselines.iter().flat_map(|baseline| {
        let alone = baseline.flows.is_empty().then_some((baseline, None));
        alone.into_iter().chain(baseline.flows.iter().map(move |flows| (baseline, Some(flows))))
    });
    type Row<'a> = (&'a BaselineRecord, Option<&'a FlowsBaseline>);
    let rtt = |of: fn(&RoundTripBaseline) -> u64| {
        move |(baseline, _): &Row<'_>| Cell::time(baseline.round_trip.as_ref().map(|trip| of(trip) as f64))
    };
    let flows =
        |cell: fn(&FlowsBaseline) -> Cell| move |(_, flows): &Row<'_>| flows.map_or_else(Cell::none, cell);
    Table::of("Baselines of the network", rows)
        .column("from", |(baseline, _)| Cell::text(&baseline.client))
        .column("against", |(baseline, _)| Cell::text(&baseline.target))
        .column("emulator|3", |(baseline, _)| Cell::text(baseline.network.emulator.name()))
        .column("network", |(baseline, _)| Cell::text(unbroken(&network_text(&baseline.network))))
        .column("#RTT min|4", rtt(|trip| trip.min_ns))
        .column("#median", rtt(|trip| trip.median_ns))
        .column("#p99|5", rtt(|trip| trip.p99_ns))
        .column("direction", flows(|f| Cell::text(&f.direction)))
        .column("#flows", flows(|f| Cell::count(f.flows as usize)))
        .column("#raw TCP", flows(|f| Cell::estimate(f.throughput, f.half_width, Unit::BytesPerSecond, None)))
        .column("#Jain's index|6", flows(|f| Cell::fixed(f.fairness, 3)))
        .column("#retransmitted|7", flows(|f| Cell::whole(f.retransmissions)))
        .column("#n|2", flows(|f| Cell::count(f.count as usize)))
        .note("Mean ± half width of the 95 % interval over repetitions; absent for a single repetition.")
        .filled()
}

/// Attempts that failed and were repeated.
pub(crate) fn retries(results: &StudyResults) -> Option<Table> {
    let retries = results.runs.iter().flat_map(|run| run.retries.iter().map(move |retry| (run, retry)));
    Table::of("Failed attempts, repeated", retries)
        .column("run", |(run, _)| Cell::text(run_text(results, run)))
        .column("agent", |(_, retry)| retry.agent.as_ref().map_or_else(Cell::none, Cell::text))
        .column("#after", |(_, retry)| time(retry.elapsed_ns as f64))
        .column("reason", |(_, retry)| Cell::text(&retry.reason))
        .filled()
}

/// `sync=on, replicate 2`.
pub(crate) fn run_text(results: &StudyResults, run: &RunRecord) -> String {
    let treatment = results.study.treatments.get(run.key.treatment as usize);
    format!("{}, replicate {}", treatment.map_or("?", |t| &t.label), run.key.replicate + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_agents_the_slowest_are_listed() {
        let few: Vec<(u32, f64)> = (0..100).map(|agent| (0, f64::from(agent))).collect();
        assert!(listed(&few).into_iter().all(|listed| listed));
        // As fast as each other, but one that comes last.
        let mut many: Vec<(u32, f64)> = vec![(1, 5.0); 10_000];
        many.extend([(1, 4.0), (2, 9.0)]);
        let listed = listed(&many);
        assert_eq!(listed.iter().filter(|listed| **listed).count(), MOST_AGENTS + 1);
        assert!(listed[0] && listed[98] && !listed[99] && listed[10_000] && listed[10_001]);
    }
}
