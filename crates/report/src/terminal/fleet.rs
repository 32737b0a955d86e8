//! Clients and networks.

use benchmaster_analysis::{Analysis, Estimate};
use benchmaster_record::results::{StudyResults, Unit};

use super::grid::{Column, Text};
use crate::format::{self, rounded};
use crate::overview;

/// How the clients of each treatment began together, each agent, and what the networks are capable of.
pub(super) fn fleet(text: &mut Text, results: &StudyResults, analysis: &Analysis) {
    starts(text, results, analysis);
    for workload in &results.study.workloads {
        agents(text, results, analysis, &workload.name);
    }
    baselines(text, results);
    for run in &results.runs {
        for retry in &run.retries {
            let agent = retry.agent.as_ref().map_or(String::new(), |agent| format!(" ({agent})"));
            let label = results.study.treatments.get(run.key.treatment as usize).map_or("?", |t| &t.label);
            let line =
                format!("{label}, replicate {}: repeated{agent}: {}", run.key.replicate + 1, retry.reason);
            text.wrapped("", &line);
        }
    }
}

fn time(ns: f64) -> String {
    let sign = if ns < 0.0 { "-" } else { "" };
    format!("{sign}{}", format::time(ns.abs()))
}

fn starts(text: &mut Text, results: &StudyResults, analysis: &Analysis) {
    let rows = overview::starts(results, analysis);
    if rows.is_empty() {
        return;
    }
    text.section("first operations of the clients: how far apart");
    let spread = |e: &Estimate| rounded(e.mean, e.half_width, Unit::Nanoseconds, None).text(true);
    let at_server = |row: &overview::StartSummary<'_>| {
        row.at_server.as_ref().map_or_else(|| "-".into(), |(mean, _)| spread(mean))
    };
    text.table(
        vec![
            Column::text("treatment", rows.iter().map(|r| r.treatment.label.clone()).collect()),
            Column::text("workload", rows.iter().map(|r| r.workload.to_owned()).collect()),
            Column::number("spread", rows.iter().map(|r| spread(&r.spread)).collect(), 0),
            Column::number("largest", rows.iter().map(|r| time(r.max_ns as f64)).collect(), 0),
            Column::number("within", rows.iter().map(|r| time(r.bound_ns as f64)).collect(), 0),
            Column::number("at the server", rows.iter().map(at_server).collect(), 1),
            Column::number("n", rows.iter().map(|r| r.spread.n.to_string()).collect(), 2),
        ],
        &[],
    );
}

fn agents(text: &mut Text, results: &StudyResults, analysis: &Analysis, workload: &str) {
    let rows = overview::agents(results, analysis, workload);
    if rows.is_empty() {
        return;
    }
    let optional = |ns: Option<f64>| ns.map_or_else(|| "-".into(), |ns| time(ns));
    text.section(&format!("{workload}: agents"));
    let several = analysis.treatments.len() > 1;
    let mut columns = Vec::new();
    if several {
        columns.push(Column::text("treatment", rows.iter().map(|r| r.treatment.label.clone()).collect()));
    }
    let rate = |row: &overview::AgentSummary<'_>| match row.rate.as_ref().filter(|_| row.agent.clients > 0) {
        Some((rate, unit)) => rounded(rate.mean, rate.half_width, *unit, None).text(true),
        None => "-".into(),
    };
    let offset = |row: &overview::AgentSummary<'_>| {
        let (offset, bound) = (row.clock.offset_ns as f64, row.clock.bound_ns as f64);
        format!("{} ± {}", time(offset), time(bound))
    };
    let drift = |row: &overview::AgentSummary<'_>| {
        row.clock.drift.map_or_else(|| "-".into(), |drift| format!("{:+.2}", drift * 1e6))
    };
    let fairness = |row: &overview::AgentSummary<'_>| {
        row.fairness.as_ref().map_or_else(|| "-".into(), |index| format!("{:.3}", index.mean))
    };
    columns.extend([
        Column::text("agent", rows.iter().map(|r| r.agent.name.clone()).collect()),
        Column::text("host", rows.iter().map(|r| r.agent.host.clone()).collect()),
        Column::number("clients", rows.iter().map(|r| r.agent.clients.to_string()).collect(), 1),
        Column::number("rate per client", rows.iter().map(rate).collect(), 0),
        Column::number("Jain", rows.iter().map(fairness).collect(), 3),
        Column::number("clock", rows.iter().map(offset).collect(), 2),
        Column::number("drift [ppm]", rows.iter().map(drift).collect(), 4),
        Column::number("first op", rows.iter().map(|r| optional(r.first_ns)).collect(), 2),
        Column::number("last op", rows.iter().map(|r| optional(r.last_ns)).collect(), 3),
    ]);
    text.table(columns, &[]);
}

/// What the networks are capable of without NFS.
fn baselines(text: &mut Text, results: &StudyResults) {
    if results.baselines.is_empty() {
        return;
    }
    text.section("the network without NFS: round trip and raw TCP");
    for baseline in &results.baselines {
        let rtt = baseline.round_trip.map_or_else(String::new, |r| {
            let of = |ns: u64| time(ns as f64);
            format!("; round trip {} (min {}, p99 {})", of(r.median_ns), of(r.min_ns), of(r.p99_ns))
        });
        let flows = baseline.flows.iter().map(|f| {
            let rate = rounded(f.throughput, f.half_width, Unit::BytesPerSecond, None).text(true);
            format!("; {} {} {rate}", f.direction, format::plural(f.flows as usize, "flow"))
        });
        text.wrapped(
            "",
            &format!(
                "{} to {}, {}, {}{rtt}{}",
                baseline.client,
                baseline.target,
                baseline.network.means,
                overview::network_text(&baseline.network),
                flows.collect::<String>()
            ),
        );
    }
}
