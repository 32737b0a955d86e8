//! Checks of what else used the client's host: the embedded server, the sampling of counters.

use benchmaster_record::results::{Check, CheckKind, Evidence, ServedBy, Severity};

use super::rule::{Consequence, Could, Follows, Rule, Subject, failed, stored, when};
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Need, Plot, Remedy};

/// Share of the processors from which on server and clients compete for them.
const CROWDED: f64 = 0.9;

pub(crate) static SHARED_HOST: Rule = Rule {
    kind: CheckKind::SharedHost,
    explanation: Explanation {
        id: "shared-host",
        group: Group::Doubt,
        title: "Server and clients competed for processors",
        mechanism: "The embedded server runs on the host of the clients. That is its purpose when a client alone is to be measured; when both together use all \
                    processors, a rate is that of the host and not of one of them.",
        formula: "found when the CPU time of server and clients together is ≥ 90 % of the processors' time, and the check `cpu-limit` passed",
        source: "the check `shared-host`; docs/server.md",
    },
    check: shared_host,
    remedy: |_| {
        Remedy::new("Serve from another host, or give server and clients processors of their own.")
            .by(Need::EmbeddedServer, "benchmaster serve --allow-remote   # on another host; taskset -c 0 benchmaster serve … on this one")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Likely,
        could: |measured| when(measured.is_embedded()),
        worth: |failed| {
            let used = |who| failed.number(who).unwrap_or(0.0);
            let processors = f64::from(failed.measured.recording.host.processors.max(1));
            used("server_processors") + used("client_processors") >= CROWDED * processors
                && stored(failed.measured, CheckKind::CpuLimit).is_none()
        },
        numbers: &[
            ("server_processors", "processors that the server used"),
            ("client_processors", "processors that the clients used"),
        ],
        cost: |failed| {
            let (server, client) = (failed.number("server_processors")?, failed.number("client_processors")?);
            Some((
                server / (server + client),
                CostOf::Result,
                "the server's share of the CPU time, which clients alone would have",
            ))
        },
        plot: Some(Plot::Counters),
    }),
};

fn shared_host(s: Subject<'_>) -> Option<Check> {
    s.service.filter(|service| service.server == ServedBy::Embedded)?;
    let seconds = s.recording.length_ns as f64 / 1e9;
    let processors = |nanos: u64| nanos as f64 / 1e9 / seconds.max(1e-9);
    let server = s.server.and_then(|server| server.cpu_ns).map(processors);
    let client =
        s.recording.rpc.as_ref().map_or(0.0, |rpc| processors(rpc.client_cpu_ns.0 + rpc.client_cpu_ns.1));
    let used = match server {
        Some(server) => format!("it used {server:.2} of them, the clients {client:.2}"),
        None => format!("the clients used {client:.2} of them"),
    };
    let message = format!(
        "The embedded server shares the {} processors of this host with the clients ({used}): rates are those of both together.",
        s.recording.host.processors
    );
    let evidence = [
        Evidence::number("server_processors", server.unwrap_or(f64::NAN)),
        Evidence::number("client_processors", client),
    ];
    failed(s, CheckKind::SharedHost, Severity::Note, message, evidence)
}

pub(crate) static SAMPLING_COST: Rule = Rule {
    kind: CheckKind::SamplingCost,
    explanation: Explanation {
        id: "sampling-cost",
        group: Group::Doubt,
        title: "Reading counters took processor time",
        mechanism: "Each reading of a counter is a file that the kernel writes and this program parses; with hundreds of processors, queues or mounts that adds up.",
        formula: "found when sampling took ≥ 5 % of a processor on a host, in a lab ≥ 25 % (the check itself notes 0.5 %)",
        source: "the check `sampling-cost`; docs/performance.md, \"Sampling\"",
    },
    check: sampling_cost,
    remedy: |_| {
        Remedy::new("Read counters less often, or only those that are needed.")
            .by(Need::Anywhere, "[sampling] interval = \"5s\"   # or samplers = [\"cpu\", \"mountstats\"]")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: |measured| {
            if measured.recording.samples.is_empty() {
                Could::Unknown("no counters were sampled: leave `[sampling]` on".into())
            } else {
                Could::Yes
            }
        },
        worth: |failed| {
            // A machine of a lab has one slow processor, and its host's load adds to the cost of reading.
            let least = if failed.measured.run.lab.is_some() { 0.25 } else { 0.05 };
            failed.number("share").is_some_and(|share| share >= least)
        },
        numbers: &[("share", "share of a processor that sampling took")],
        cost: |failed| {
            let processors = f64::from(failed.measured.recording.host.processors.max(1));
            Some((
                failed.number("share")? / processors,
                CostOf::Time,
                "processor time of sampling / processor time of the host",
            ))
        },
        plot: None,
    }),
};

fn sampling_cost(s: Subject<'_>) -> Option<Check> {
    const ALLOWED: f64 = 0.005;
    // A short phase has only the first and the last reading.
    let long = s.recording.samples.iter().filter(|host| host.samples.cost.elapsed_ns >= 2_000_000_000);
    let costs = long.filter_map(|host| Some((host, host.samples.cost.share()?)));
    let (host, share) = costs.max_by(|(_, a), (_, b)| a.total_cmp(b))?;
    if share <= ALLOWED {
        return None;
    }
    let message = format!("Reading counters took {:.2} % of a processor on {}.", share * 100.0, host.agent);
    failed(s, CheckKind::SamplingCost, Severity::Note, message, [Evidence::number("share", share)])
}
