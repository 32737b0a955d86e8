//! Clients, networks, sampling, and what commands printed.

use benchmaster_analysis::Analysis;
use benchmaster_record::results::{RunRecord, StudyResults, Unit};
use serde::Serialize;

use super::super::stack::Drawn;
use super::super::table::{Cell, Table};
use super::tables::show;
use crate::format;
use crate::overview::unbroken;
use crate::overview::{self, baseline_of, network_text};

/// Bytes of one output that are shown, and of all.
const OUTPUT: usize = 16 << 10;
const OUTPUTS: usize = 256 << 10;

/// What a command printed.
#[derive(Debug, Serialize)]
pub(super) struct Printed {
    title: String,
    text: String,
}

/// How the clients began together, and each agent.
pub(super) fn clients(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let mut tables = Vec::new();
    let head = [
        "treatment",
        "workload",
        "#spread of the first operations",
        "#largest",
        "#right to within",
        "#as the server saw it",
        "#largest seen by it",
        "#planned stagger",
        "#n",
    ];
    let mut table = Table::new("How well the clients began together", &head);
    for start in overview::starts(results, analysis) {
        table.row([
            Cell::text(&start.treatment.label),
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
    table.note = "Between the first operation of the first client and that of the last, each from its own planned \
                  start, on one clock; mean ± half width over runs. The bound is the sum of the two largest errors of \
                  the clocks."
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
        "#clients",
        "#rate per client",
        "#Jain's index",
        "#first operation",
        "#last operation",
        "#clock offset",
        "#right to within",
        "#drift [ppm]",
        "#n",
    ];
    let mut table = Table::new(format!("{workload}: agents"), &head);
    for row in overview::agents(results, analysis, workload) {
        let optional = |ns: Option<f64>| ns.map_or_else(Cell::none, time);
        table.row([
            Cell::text(&row.treatment.label),
            Cell::text(&row.agent.name),
            Cell::text(&row.agent.host),
            match row.agent.clients {
                0 => Cell::text("looks on"),
                n => Cell::count(n as usize),
            },
            match row.rate.as_ref().filter(|_| row.agent.clients > 0) {
                Some((rate, unit)) => show(rate, *unit, None),
                None => Cell::none(),
            },
            row.fairness.as_ref().map_or_else(Cell::none, |index| show(index, Unit::Ratio, None)),
            optional(row.first_ns),
            optional(row.last_ns),
            time(row.clock.offset_ns as f64),
            time(row.clock.bound_ns as f64),
            row.clock.drift.map_or_else(Cell::none, |d| Cell::number(format!("{:+.2}", d * 1e6), d)),
            Cell::count(row.runs),
        ]);
    }
    table.note = "Clocks against the controller's: offset and drift of the last run, largest bound of all. First and \
                  last operation: means over runs, since the common start. Rates cover the whole measured phase."
        .into();
    (!table.rows.is_empty()).then_some(table)
}

fn time(ns: f64) -> Cell {
    let sign = if ns < 0.0 { "−" } else { "" };
    Cell::number(format!("{sign}{}", format::time(ns.abs())), ns)
}

/// The networks with their baselines beside the results, as papers print them.
pub(super) fn networks(results: &StudyResults, analysis: &Analysis) -> Vec<Table> {
    let mut tables = Vec::new();
    let primary = &analysis.primary_response;
    let result = format!("#{primary}");
    let head = [
        "treatment",
        "means",
        "network",
        "#RTT measured",
        "#raw TCP to the clients",
        "#raw TCP to the server",
        &result,
        "#base RTT",
        "#late (p99)",
        "#lost",
        "#overflowed",
    ];
    let mut table = Table::new("Networks and what they are capable of, beside the result", &head);
    let mut notes: Vec<String> = Vec::new();
    for treatment in &analysis.treatments {
        let services: Vec<_> =
            overview::counted_runs(results, treatment.index).filter_map(|run| run.service.as_ref()).collect();
        let Some(first) = services.first() else { continue };
        let network = &first.network;
        let baseline = baseline_of(results, network);
        if !network.is_emulated() && baseline.is_none() {
            continue;
        }
        let means = format!("{}: {}.", network.means, network.note);
        if !network.note.is_empty() && !notes.contains(&means) {
            notes.push(means);
        }
        let achieved = || services.iter().filter_map(|service| service.achieved.as_ref());
        let number = |n: Option<u64>| n.map_or_else(Cell::none, |n| Cell::count(n as usize));
        let optional = |ns: Option<u64>| ns.map_or_else(Cell::none, |ns| time(ns as f64));
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
            Cell::text(&treatment.label),
            Cell::text(&network.means),
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
    let mut note = "Raw TCP and the round trip (median) were measured without NFS before the runs; of several numbers of \
                    flows the best is shown. Lateness is the largest p99 of all runs, losses are sums over runs."
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
        "means",
        "network",
        "#RTT min",
        "#median",
        "#p99",
        "direction",
        "#flows",
        "#raw TCP",
        "#Jain's index",
        "#sent again",
        "#n",
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
                Cell::text(&baseline.network.means),
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
            let text = format::rounded(f.throughput, f.half_width, Unit::BytesPerSecond, None).text(true);
            let rest = [
                Cell::text(&f.direction),
                Cell::count(f.flows as usize),
                Cell::number(text, f.throughput),
                f.fairness.map_or_else(Cell::none, |j| Cell::number(format!("{j:.3}"), j)),
                f.retransmissions.map_or_else(Cell::none, |n| Cell::count(n as usize)),
                Cell::count(f.count as usize),
            ];
            table.row(start().into_iter().chain(rest));
        }
    }
    table.note =
        "Mean ± half width of the 95 % interval over repetitions; without one where there was one only."
            .into();
    (!table.rows.is_empty()).then_some(table)
}

/// What sampling took, and what could not be read.
pub(super) fn sampling(results: &StudyResults) -> Vec<Table> {
    let mut rows: Vec<(&str, u64, u64, Vec<f64>)> = Vec::new();
    let mut problems: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    let recordings = results.runs.iter().flat_map(|run| &run.recordings);
    for host in recordings.flat_map(|recording| &recording.samples) {
        let (ticks, late) = (u64::from(host.samples.ticks), u64::from(host.samples.late));
        let share = host.samples.cost.share();
        match rows.iter_mut().find(|row| row.0 == host.agent) {
            Some(row) => {
                row.1 += ticks;
                row.2 += late;
                row.3.extend(share);
            }
            None => rows.push((&host.agent, ticks, late, share.into_iter().collect())),
        }
        for problem in &host.samples.problems {
            let (sampler, text) = (problem.sampler.as_str(), problem.problem.as_str());
            match problems.iter_mut().find(|known| (known.0, known.1) == (sampler, text)) {
                Some((.., agents)) if agents.contains(&host.agent.as_str()) => {}
                Some((.., agents)) => agents.push(&host.agent),
                None => problems.push((sampler, text, vec![&host.agent])),
            }
        }
    }
    let head = ["agent", "#recordings", "#ticks", "#left out", "#mean cost", "#largest cost"];
    let mut cost = Table::new("What sampling took", &head);
    for (agent, ticks, late, shares) in rows {
        let percent = |share: f64| Cell::number(format!("{:.3} %", share * 100.0), share);
        let mean = benchmaster_stats::mean(&shares);
        cost.row([
            Cell::text(agent),
            Cell::count(shares.len()),
            Cell::count(ticks as usize),
            Cell::count(late as usize),
            mean.map_or_else(Cell::none, percent),
            shares.iter().copied().reduce(f64::max).map_or_else(Cell::none, percent),
        ]);
    }
    cost.note = "CPU time of all readings as a share of one processor.".into();
    let mut unread = Table::new("What could not be sampled", &["sampler", "agents", "why"]);
    for (sampler, text, agents) in problems {
        unread.row([Cell::text(sampler), Cell::text(agents.join(", ")), Cell::text(text)]);
    }
    [cost, unread].into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// Commands that were run, and attempts that failed.
pub(super) fn course(results: &StudyResults) -> Vec<Table> {
    let run_text = |run: &RunRecord| -> String {
        let treatment = results.study.treatments.get(run.key.treatment as usize);
        format!("{}, replicate {}", treatment.map_or("?", |t| &t.label), run.key.replicate + 1)
    };
    let head = ["step", "where", "run", "command", "started", "#took", "ended"];
    let mut hooks = Table::new("Commands that the study ran", &head);
    for hook in &results.hooks {
        let run = hook.run.and_then(|key| results.runs.iter().find(|run| run.key == key));
        let ended = Cell::text(&hook.ended);
        hooks.row([
            Cell::text(&hook.step),
            Cell::text(&hook.agent),
            match (run, hook.run) {
                (Some(run), _) => Cell::text(run_text(run)),
                (None, Some(_)) => Cell::text("one that was lost"),
                (None, None) => Cell::text("whole study"),
            },
            Cell::text(&hook.command),
            Cell::text(format!("{:.0}", hook.started)),
            time(hook.elapsed_ns as f64),
            if hook.succeeded { ended } else { Cell { class: "invalid", ..ended } },
        ]);
    }
    let mut retries =
        Table::new("Attempts that failed and were repeated", &["run", "agent", "#after", "why"]);
    for run in &results.runs {
        for retry in &run.retries {
            retries.row([
                Cell::text(run_text(run)),
                retry.agent.as_ref().map_or_else(Cell::none, Cell::text),
                time(retry.elapsed_ns as f64),
                Cell::text(&retry.reason),
            ]);
        }
    }
    [retries, hooks].into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// What hooks printed, and attached commands in the runs that are drawn.
pub(super) fn printed(results: &StudyResults, drawn: &[Drawn]) -> Vec<Printed> {
    let mut left = OUTPUTS;
    let mut found = Vec::new();
    let mut add = |title: String, bytes: &[u8], lost: u64| {
        let kept = bytes.len().min(OUTPUT).min(left);
        left -= kept;
        let mut text = String::from_utf8_lossy(&bytes[..kept]).into_owned();
        match (bytes.len() - kept) as u64 + lost {
            0 => {}
            more => text += &format!("\n… {more} more bytes; those that were kept are in results.db"),
        }
        found.push(Printed { title, text });
    };
    for Drawn { run, workload, collected } in drawn {
        let label = results.study.treatments.get(run.treatment as usize).map_or("?", |t| &t.label);
        for c in collected.iter().filter(|c| !c.output.is_empty()) {
            let title = format!(
                "{} on {}: {} ({}; {label}, replicate {}, {workload})",
                c.name,
                c.agent,
                c.command,
                c.ended,
                run.replicate + 1
            );
            add(title, &c.output, c.lost);
        }
    }
    for hook in results.hooks.iter().filter(|hook| !hook.output.is_empty()) {
        add(format!("{} on {}: {}", hook.step, hook.agent, hook.command), hook.output.as_bytes(), 0);
    }
    found
}
