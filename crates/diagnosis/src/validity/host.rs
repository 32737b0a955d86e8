//! Checks of what else used the client's host: the embedded server, the sampling of counters.

use benchmaster_record::results::ServedBy;

use crate::prelude::*;

/// Share of the processors from which on server and clients compete for them.
const CROWDED: f64 = 0.9;

pub(crate) static SHARED_HOST: Rule = Rule {
    check: shared_host,
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
            Some(server / (server + client))
        },
    }),
    ..Rule::of(CheckKind::SharedHost)
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
    check: sampling_cost,
    finding: Follows::Finding(Consequence {
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
            Some(failed.number("share")? / processors)
        },
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::SamplingCost)
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
