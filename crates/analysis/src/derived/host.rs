//! What the operations cost the hosts at both ends, and how well the clients began together.

use benchmaster_record::recording::{AgentRecording, HostSamples, Recording};
use benchmaster_record::results::Response;
use benchmaster_record::results::{ServerUse, Unit};
use benchmaster_telemetry::derived::derive;

use super::{operations, ratio, response};

pub(super) fn responses(recording: &Recording, server: Option<&ServerUse>) -> Vec<Response> {
    let mut list = Vec::new();
    let clients = recording.workers.iter().map(|worker| worker.client).max().map_or(0, |last| last + 1);
    if let Some(start) = recording.start.filter(|_| clients > 1) {
        list.push(response("start_spread", start.spread_ns as f64, Unit::Nanoseconds));
    }
    let operations = operations(recording) as f64;
    let process = recording.host.process_ns() as f64;
    let mut per = |what: &str, cpu: f64, number: f64| {
        list.extend(ratio(cpu, number).map(|each| response(what, each, Unit::Nanoseconds)));
    };
    per("process_cpu_per_operation", process, operations);
    if let Some((used, cpu)) = server.and_then(|used| Some((used, used.cpu_ns?))) {
        per("server_cpu_per_operation", cpu as f64, operations);
        per("server_cpu_per_rpc", cpu as f64, used.calls as f64);
    }
    if operations > 0.0 {
        list.extend(
            ratio(process, recording.length_ns as f64).map(|share| response("cpu_share", share, Unit::Ratio)),
        );
    }
    let of = |server: bool| busy(recording, move |agent| (agent.clients == 0) == server);
    list.extend(of(false).map(|share| response("client_busy", share, Unit::Ratio)));
    list.extend(of(true).map(|share| response("server_busy", share, Unit::Ratio)));
    list.extend(cost(&recording.samples).map(|share| response("sampling_cost", share, Unit::Ratio)));
    list
}

/// Mean share of the processors of hosts that was busy, each host counted once. A process without clients does not look at
/// its host by itself, but its samplers may.
fn busy(recording: &Recording, wanted: impl Fn(&AgentRecording) -> bool) -> Option<f64> {
    let mut hosts: Vec<(&str, f64)> = Vec::new();
    for agent in recording.agents.iter().filter(|agent| wanted(agent)) {
        let share = agent.host_use.host_busy.or_else(|| sampled_busy(recording, &agent.name));
        match share {
            Some(share) if hosts.iter().all(|(host, _)| *host != agent.host) => {
                hosts.push((&agent.host, share));
            }
            _ => {}
        }
    }
    ratio(hosts.iter().map(|(_, busy)| busy).sum(), hosts.len() as f64)
}

fn sampled_busy(recording: &Recording, agent: &str) -> Option<f64> {
    let host = recording.samples.iter().find(|host| host.agent == agent)?;
    let derived = derive(&host.samples, 0, i64::try_from(recording.length_ns).ok()?);
    derived.get("cpu.busy").map(|busy| busy.value)
}

/// What sampling took of one processor: mean over those that sampled.
fn cost(samples: &[HostSamples]) -> Option<f64> {
    let shares: Vec<f64> = samples.iter().filter_map(|host| host.samples.cost.share()).collect();
    ratio(shares.iter().sum(), shares.len() as f64)
}
