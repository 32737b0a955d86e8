//! Clients and networks.

use benchmaster_analysis::Analysis;
use benchmaster_record::results::{RunRecord, StudyResults, Unit};

use super::results::show;
use crate::document::{Cell, Table};
use crate::format;
use crate::overview::{self, network_text, unbroken};

/// How the clients began together, and each agent.
pub(crate) fn clients(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let mut tables = Vec::new();
    let head = [
        "treatment",
        "workload",
        "#spread of the first operations",
        "#largest",
        "#error bound",
        "#seen by the server|1",
        "#largest there|3",
        "#planned stagger|4",
        "#n|2",
    ];
    let mut table = Table::new("Synchronisation of the clients' start", &head);
    for start in overview::starts(results, analysis) {
        table.row([
            Cell::name(&start.treatment.label),
            Cell::text(start.workload),
            show(&start.spread, Unit::Nanoseconds, None),
            time(start.max_ns as f64),
            time(start.bound_ns as f64),
            start.at_server.as_ref().map_or_else(Cell::none, |(mean, _)| show(mean, Unit::Nanoseconds, None)),
            start.at_server.as_ref().map_or_else(Cell::none, |(_, max)| time(*max as f64)),
            match start.stagger_ns {
                0 => Cell::none(),
                ns => time(ns as f64),
            },
            Cell::count(start.spread.n),
        ]);
    }
    table.note = "Time between the first operations of the first and the last client, each relative to its \
     planned start, on one clock; mean ± half width over runs. Error bound: sum of the two largest clock errors."
        .into();
    if !table.rows.is_empty() {
        tables.push(table);
    }
    for workload in &results.study.workloads {
        tables.extend(agents(results, analysis, &workload.name));
    }
    tables
}

fn agents(results: &StudyResults, analysis: &Analysis, workload: &str) -> Option<Table> {
    let head = [
        "treatment",
        "agent",
        "host",
        "#clients|1",
        "#rate per client",
        "#Jain's index|4",
        "#first operation|3",
        "#last operation|5",
        "#clock offset|2",
        "#error bound|2",
        "#drift [ppm]|6",
        "#n|7",
    ];
    let mut table = Table::new(format!("{workload}: agents"), &head);
    for row in overview::agents(results, analysis, workload) {
        table.row([
            Cell::name(&row.treatment.label),
            Cell::text(&row.agent.name),
            Cell::text(&row.agent.host),
            match row.agent.clients {
                0 => Cell::text("observer"),
                n => Cell::count(n as usize),
            },
            match row.rate.as_ref().filter(|_| row.agent.clients > 0) {
                Some((rate, unit)) => show(rate, *unit, None),
                None => Cell::none(),
            },
            row.fairness.as_ref().map_or_else(Cell::none, |index| show(index, Unit::Ratio, None)),
            Cell::time(row.first_ns),
            Cell::time(row.last_ns),
            time(row.clock.offset_ns as f64),
            time(row.clock.bound_ns as f64),
            Cell::some(row.clock.drift, |drift| format!("{:+.2}", drift * 1e6)),
            Cell::count(row.runs),
        ]);
    }
    table.note = "Clocks against the controller's: offset and drift of the last run, largest bound of all. First and \
                  last operation: means over runs, since the common start. Rates cover the whole measured phase."
        .into();
    table.filled()
}

fn time(ns: f64) -> Cell {
    Cell::time(Some(ns))
}

/// The networks with their baselines beside the results, as papers print them.
pub(crate) fn networks(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let mut tables = Vec::new();
    let primary = &analysis.primary_response;
    let result = format!("#{primary}");
    let head = [
        "treatment",
        "emulator",
        "network",
        "#RTT measured",
        "#raw TCP to the clients|3",
        "#raw TCP to the server|3",
        &result,
        "#base RTT|4",
        "#late (p99)|5",
        "#lost|6",
        "#overflowed|7",
    ];
    let mut table = Table::new("Networks with their baselines, and the result", &head);
    let mut notes: Vec<String> = Vec::new();
    for treatment in &analysis.treatments {
        let services: Vec<_> =
            overview::counted_runs(results, treatment.index).filter_map(|run| run.service.as_ref()).collect();
        let Some(first) = services.first() else { continue };
        let network = &first.network;
        let baseline = results.baseline_of(network);
        if !network.is_emulated() && baseline.is_none() {
            continue;
        }
        let means = format!("{}: {}.", network.emulator, network.note);
        if !network.note.is_empty() && !notes.contains(&means) {
            notes.push(means);
        }
        let achieved = || services.iter().filter_map(|service| service.achieved.as_ref());
        let number = |n: Option<u64>| n.map_or_else(Cell::none, |n| Cell::count(n as usize));
        let optional = |ns: Option<u64>| Cell::time(ns.map(|ns| ns as f64));
        let raw = |direction: &str| {
            let of = baseline.into_iter().flat_map(|b| &b.flows).filter(|f| f.direction == direction);
            of.max_by(|a, b| a.throughput.total_cmp(&b.throughput)).map_or_else(Cell::none, |flows| {
                let text = format::rounded(flows.throughput, flows.half_width, Unit::BytesPerSecond, None)
                    .text(true);
                let flow = format::plural(flows.flows as usize, "flow");
                Cell::number(format!("{text}, {flow}"), flows.throughput)
            })
        };
        let estimate = treatment.response(primary).and_then(|r| Some((r.estimate.as_ref()?, r.unit)));
        table.row([
            Cell::name(&treatment.label),
            Cell::text(network.emulator.name()),
            Cell::text(unbroken(&network_text(network))),
            optional(baseline.and_then(|b| b.round_trip).map(|r| r.median_ns)),
            raw("receive"),
            raw("send"),
            estimate.map_or_else(Cell::none, |(estimate, unit)| show(estimate, unit, None)),
            optional(network.base_rtt_ns),
            optional(achieved().filter_map(|a| a.lateness_p99_ns).max()),
            number(achieved().filter_map(|a| a.lost).reduce(|a, b| a + b)),
            number(achieved().filter_map(|a| a.overflowed).reduce(|a, b| a + b)),
        ]);
    }
    let mut note =
        "Raw TCP and the round trip (median) were measured without NFS before the runs; for several \
     numbers of flows, the best is shown. Lateness is the largest p99 of all runs, losses are sums over runs."
            .to_owned();
    notes.iter().for_each(|means| note += &format!(" {means}"));
    table.note = note;
    if !table.rows.is_empty() {
        tables.push(table);
    }
    tables.extend(baselines(results));
    tables
}

fn baselines(results: &StudyResults) -> Option<Table> {
    let head = [
        "from",
        "against",
        "emulator|3",
        "network",
        "#RTT min|4",
        "#median",
        "#p99|5",
        "direction",
        "#flows",
        "#raw TCP",
        "#Jain's index|6",
        "#retransmitted|7",
        "#n|2",
    ];
    let mut table = Table::new("Baselines of the network", &head);
    for baseline in &results.baselines {
        let rtt = |of: fn(&benchmaster_record::results::RoundTripBaseline) -> u64| {
            baseline.round_trip.as_ref().map_or_else(Cell::none, |r| time(of(r) as f64))
        };
        let start = || {
            [
                Cell::text(&baseline.client),
                Cell::text(&baseline.target),
                Cell::text(baseline.network.emulator.name()),
                Cell::text(unbroken(&network_text(&baseline.network))),
                rtt(|r| r.min_ns),
                rtt(|r| r.median_ns),
                rtt(|r| r.p99_ns),
            ]
        };
        if baseline.flows.is_empty() {
            table.row(start().into_iter().chain((0..6).map(|_| Cell::none())));
        }
        for f in &baseline.flows {
            let rest = [
                Cell::text(&f.direction),
                Cell::count(f.flows as usize),
                Cell::estimate(f.throughput, f.half_width, Unit::BytesPerSecond, None),
                Cell::fixed(f.fairness, 3),
                f.retransmissions.map_or_else(Cell::none, |n| Cell::count(n as usize)),
                Cell::count(f.count as usize),
            ];
            table.row(start().into_iter().chain(rest));
        }
    }
    table.note =
        "Mean ± half width of the 95 % interval over repetitions; absent for a single repetition.".into();
    table.filled()
}

/// Attempts that failed and were repeated.
pub(crate) fn retries(results: &StudyResults) -> Option<Table> {
    let head = ["run", "agent", "#after", "reason"];
    let mut table = Table::new("Failed attempts, repeated", &head);
    for run in &results.runs {
        for retry in &run.retries {
            table.row([
                Cell::text(run_text(results, run)),
                retry.agent.as_ref().map_or_else(Cell::none, Cell::text),
                time(retry.elapsed_ns as f64),
                Cell::text(&retry.reason),
            ]);
        }
    }
    table.filled()
}

/// `sync=on, replicate 2`.
pub(crate) fn run_text(results: &StudyResults, run: &RunRecord) -> String {
    let treatment = results.study.treatments.get(run.key.treatment as usize);
    format!("{}, replicate {}", treatment.map_or("?", |t| &t.label), run.key.replicate + 1)
}
