//! Traps of machines that were cloned, of virtual network cards, and of servers that have just started.

use benchmaster_record::nfs::NfsVersion;
use benchmaster_record::phase::Phase;
use std::collections::BTreeMap;

use benchmaster_record::model::OperationKind;
use benchmaster_record::recording::RpcSource;
use benchmaster_record::results::{Check, Severity};

use super::{Subject, found};

/// All of them.
pub(super) const CHECKS: [fn(Subject<'_>) -> Option<Check>; 4] =
    [shared_client_id, lost_wake_ups, grace_period, neighbours];

/// Whether the kernel's clients have names by which an NFSv4 server tells them apart: since 4.1 that of the host, while
/// that of 4.0 has the address in it.
fn named_by_host(s: Subject<'_>) -> bool {
    let rpc = s.recording.rpc.as_ref().filter(|rpc| rpc.source == RpcSource::Kernel);
    rpc.is_some_and(|rpc| rpc.connection.version.is_some_and(NfsVersion::has_sessions))
}

/// Calls of a kind while it was measured.
fn calls(s: Subject<'_>, operation: &str) -> u64 {
    let phase = s.recording.rpc.as_ref().and_then(|rpc| rpc.phase(Phase::Measure));
    phase.and_then(|phase| phase.row(operation)).map_or(0, |row| row.ops)
}

/// Machines by what they tell the server of themselves, in their order.
fn by_name(s: Subject<'_>) -> BTreeMap<String, Vec<String>> {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut add = |name: String, machine: &str| {
        let machines = names.entry(name).or_default();
        if !machines.iter().any(|known| known == machine) {
            machines.push(machine.to_owned());
        }
    };
    match s.lab {
        Some(lab) => {
            for client in &lab.clients {
                add(format!("{} {}", client.host, client.unique).trim().to_owned(), &client.machine);
            }
        }
        // Agents that this host started itself share its name by right.
        None => {
            let elsewhere = |name: &str| !name.starts_with("local-");
            for agent in s.recording.agents.iter().filter(|agent| agent.clients > 0 && elsewhere(&agent.name))
            {
                add(agent.host.clone(), &agent.name);
            }
        }
    }
    names
}

fn shared_client_id(s: Subject<'_>) -> Option<Check> {
    if !named_by_host(s) {
        return None;
    }
    let names = by_name(s);
    let (name, machines) = names.iter().find(|(_, machines)| machines.len() > 1)?;
    let calls = |operation: &str| calls(s, operation);
    let stolen = calls("EXCHANGE_ID") + calls("CREATE_SESSION");
    let again = match stolen {
        0 => String::new(),
        _ => format!(", and sessions were made anew {} times while it was measured", calls("CREATE_SESSION")),
    };
    let known = s.lab.and_then(|lab| lab.server.as_ref()).map(|(_, after)| {
        let confirmed = after.clients.iter().filter(|client| client.confirmed).count();
        format!("; the server knows {confirmed} of them")
    });
    let message = format!(
        "{} clients share an NFSv4 client id ({}): all call themselves `{name}`, so that each takes the other's lease away{}{again}; \
         give them different host names, or `nfs.nfs4_unique_id`",
        machines.len(),
        machines.join(", "),
        known.unwrap_or_default()
    );
    let evidence = [("clients", machines.len() as f64), ("sessions_made", stolen as f64)];
    found(s, "shared-client-id", Severity::Invalid, message, evidence)
}

/// The shortest time after which Linux' TCP sends a segment again.
const RETRANSMIT_NS: u64 = 200_000_000;

fn lost_wake_ups(s: Subject<'_>) -> Option<Check> {
    // Where packets are lost on purpose they are sent again as well.
    let network = s.service.map(|service| &service.network);
    let overflowed = s.service.and_then(|service| service.achieved.as_ref()?.overflowed).unwrap_or(0);
    if s.lab.is_none() || network.is_some_and(|network| network.loss > 0.0) || overflowed > 0 {
        return None;
    }
    let round_trip = network.map_or(0, |network| 2 * network.delay_ns);
    let (mut stalls, mut slow, mut count) = (0, 0, 0);
    for series in &s.recording.series {
        let Ok(latency) = series.total.latency.decode() else { continue };
        // Where most take that long it is the work, not the network.
        if latency.value_at_quantile(0.9) > RETRANSMIT_NS / 4 + 4 * round_trip {
            continue;
        }
        count += latency.len();
        for bucket in latency.iter_recorded() {
            let (at, times) = (bucket.value_iterated_to(), bucket.count_at_value());
            if at < RETRANSMIT_NS * 3 / 4 {
                continue;
            }
            slow += times;
            // After the time, and a reply's way; a bucket is 1 % wide.
            let over = (at + at / 50) % RETRANSMIT_NS;
            let allowed = 25_000_000 + at / 50 + 2 * round_trip;
            stalls += if at >= RETRANSMIT_NS * 97 / 100 && over <= allowed { times } else { 0 };
        }
    }
    // Chance puts one of eight slow ones there.
    if stalls < 2 || stalls * 2 < slow {
        return None;
    }
    // A client that recovers its state stands still for other reasons; and what nobody sent again was not lost.
    let again = retransmitted(s);
    if calls(s, "CREATE_SESSION") > 0 || again.is_some_and(|again| again < 1.0) {
        return None;
    }
    let times = again.map_or_else(String::new, |again| format!(" ({again:.0} times)"));
    let message = format!(
        "{stalls} of {count} operations stood still for 200 ms or a multiple of it, and no packet was lost on purpose: packets \
         waited in a machine that was not woken up, until TCP sent them again{times}; the longest latencies are those \
         of the back-end, not of NFS"
    );
    let evidence = [
        ("stalls", stalls as f64),
        ("operations", count as f64),
        ("segments_sent_again", again.unwrap_or(0.0)),
    ];
    found(s, "lost-wake-ups", Severity::Warning, message, evidence)
}

/// Segments that TCP sent again on all hosts; `None` when that was not sampled.
fn retransmitted(s: Subject<'_>) -> Option<f64> {
    let series = s.recording.samples.iter().flat_map(|host| &host.samples.series);
    let series = series.filter(|series| {
        let key = &series.key;
        (&key.sampler[..], &key.metric[..], &key.instance[..]) == ("net", "RetransSegs", "Tcp")
    });
    let risen = series.filter_map(|series| Some(series.points.last()?.value - series.points.first()?.value));
    risen.filter(|value| value.is_finite()).reduce(|a, b| a + b)
}

fn grace_period(s: Subject<'_>) -> Option<Check> {
    let (before, after) = s.lab?.server.as_ref()?;
    let began = match (before.grace_ended, before.lock_grace_ended) {
        (Some(false), _) => {
            "was in its grace period when the measured phase began, and lets nobody open or lock anew until it is over"
        }
        (_, Some(false)) => {
            "was in its lock manager's grace period when the measured phase began, and lets nobody lock anew until it is over"
        }
        _ if before.restarted(after) == Some(true) => {
            "was started again while it was measured, and clients had back what they had opened and locked; for the length of \
             its grace period it lets nobody open or lock anew"
        }
        _ => return None,
    };
    let restarted = before.restarted(after) == Some(true);
    let takes_state =
        |kind| matches!(kind, OperationKind::Open | OperationKind::Create | OperationKind::Lock);
    let longest = s.recording.series.iter().filter(|series| takes_state(series.key.operation));
    let longest = longest.filter_map(|series| Some(series.total.latency.decode().ok()?.max())).max();
    let waited = match longest {
        Some(ns) if ns > 500_000_000 => format!(": the longest waited {:.1} s", ns as f64 / 1e9),
        _ => String::new(),
    };
    // A restart that was not meant is mended elsewhere.
    let advice = if restarted { "" } else { "; begin later, or with a shorter `lease`" };
    let message = format!("the server {began}{waited}{advice}");
    let evidence =
        [("longest_ns", longest.unwrap_or(0) as f64), ("restarted", f64::from(u8::from(restarted)))];
    found(s, "grace-period", Severity::Warning, message, evidence)
}

fn neighbours(s: Subject<'_>) -> Option<Check> {
    let lab = s.lab?;
    let server = &lab.server_address;
    let of_server = |client: &crate::validity::machines::ClientLook| {
        client.neighbours.iter().find(|neighbour| neighbour.address == *server).cloned()
    };
    // Two bridges in one namespace answer for each other.
    for client in &lab.clients {
        let Some(data) = of_server(client) else { continue };
        let other = client
            .neighbours
            .iter()
            .find(|other| other.device != data.device && other.hardware == data.hardware);
        if let Some(other) = other {
            let message = format!(
                "{} reaches the server's {server} on {} and {} on {} at the same hardware address {}: somebody answers for \
                 another network, and requests go round the one that was to be measured",
                client.machine, data.device, other.address, other.device, data.hardware
            );
            return found(s, "neighbours", Severity::Invalid, message, []);
        }
    }
    let asked =
        lab.clients.iter().filter(|client| of_server(client).is_some_and(|neighbour| !neighbour.permanent));
    let machines: Vec<_> = asked.map(|client| client.machine.as_str()).collect();
    if machines.is_empty() {
        return None;
    }
    let message = format!(
        "{} ask for the server's hardware address over the network that is measured: now and then a request waits for that \
         answer first; enter it for good (`ip neigh replace {server} lladdr … nud permanent`)",
        machines.join(", ")
    );
    found(s, "neighbours", Severity::Warning, message, [("clients", machines.len() as f64)])
}
