//! Traps of machines that were cloned, of virtual network cards, and of servers that have just started.

use std::collections::BTreeMap;

use super::machines::ClientLook;
use super::rule::{all_of_it, in_lab};
use crate::prelude::*;

pub(crate) static SHARED_CLIENT_ID: Rule = Rule {
    check: shared_client_id,
    finding: Follows::Finding(Consequence {
        could: |measured| {
            let clients = measured.recording.agents.iter().filter(|agent| agent.clients > 0).count();
            let version = measured.rpcs().and_then(|(rpc, _)| rpc.connection.version);
            when(version.is_some_and(NfsVersion::has_state) && (clients > 1 || measured.run.lab.is_some()))
        },
        numbers: &[
            ("clients", "clients of one name"),
            ("sessions_made", "client ids and sessions created in the measured phase"),
        ],
        cost: all_of_it,
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::SharedClientId)
};

/// Whether an NFSv4 server distinguishes the kernel's clients by host names: since 4.1, while the name of 4.0 has the
/// address in it.
fn named_by_host(s: Subject<'_>) -> bool {
    let rpc = s.recording.rpc.as_ref().filter(|rpc| rpc.source == RpcSource::Kernel);
    rpc.is_some_and(|rpc| rpc.connection.version.is_some_and(NfsVersion::has_sessions))
}

/// Calls of a kind while it was measured.
fn calls(s: Subject<'_>, operation: &str) -> u64 {
    let phase = s.recording.rpc.as_ref().and_then(|rpc| rpc.phase(Phase::Measure));
    phase.and_then(|phase| phase.row(operation)).map_or(0, |row| row.ops)
}

/// Machines by how they identify themselves to the server, in their order.
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
        _ => format!(", and created {} sessions in the measured phase", calls("CREATE_SESSION")),
    };
    let known = s.lab.and_then(|lab| lab.server.as_ref()).map(|(_, after)| {
        let confirmed = after.clients.iter().filter(|client| client.confirmed).count();
        format!("; the server knows {confirmed} of them")
    });
    let message = format!(
        "{} clients share an NFSv4 client id ({}): all identify themselves as `{name}`, so each takes the other's lease \
         away{again}{}.",
        machines.len(),
        machines.join(", "),
        known.unwrap_or_default()
    );
    let evidence = [
        Evidence::number("clients", machines.len() as f64),
        Evidence::number("sessions_made", stolen as f64),
    ];
    failed(s, CheckKind::SharedClientId, Severity::Invalid, message, evidence)
}

pub(crate) static LOST_WAKE_UPS: Rule = Rule {
    check: lost_wake_ups,
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Likely,
        could: in_lab,
        numbers: &[
            ("stalls", "operations that stalled for 200 ms or a multiple of it"),
            ("operations", "operations that could have"),
            ("segments_sent_again", "segments that TCP retransmitted"),
        ],
        cost: |failed| {
            let waited = failed.number("stalls")? * 0.2e9;
            Some(waited / (failed.measured.operation_ns() as f64).max(waited))
        },
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::LostWakeUps)
};

/// The shortest time after which Linux' TCP sends a segment again.
const RETRANSMIT_NS: u64 = 200_000_000;

fn lost_wake_ups(s: Subject<'_>) -> Option<Check> {
    // Emulated loss causes retransmissions as well.
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
    // A client that recovers its state stalls for other reasons; and what was not retransmitted was not lost.
    let again = retransmitted(s);
    if calls(s, "CREATE_SESSION") > 0 || again.is_some_and(|again| again < 1.0) {
        return None;
    }
    let times = again.map_or_else(String::new, |again| format!(" ({again:.0} times)"));
    let message = format!(
        "{stalls} of {count} operations stalled for 200 ms or a multiple of it without emulated packet loss: packets \
         waited in a machine that was not woken up, until TCP retransmitted them{times}; the longest latencies are those \
         of the back end, not of NFS."
    );
    let evidence = [
        Evidence::number("stalls", stalls as f64),
        Evidence::number("operations", count as f64),
        Evidence::number("segments_sent_again", again.unwrap_or(0.0)),
    ];
    failed(s, CheckKind::LostWakeUps, Severity::Warning, message, evidence)
}

/// Segments that TCP retransmitted on all hosts; `None` when that was not sampled.
fn retransmitted(s: Subject<'_>) -> Option<f64> {
    let series = s.recording.samples.iter().flat_map(|host| &host.samples.series);
    let series = series.filter(|series| {
        let key = &series.key;
        (&key.sampler[..], &key.metric[..], &key.instance[..]) == ("net", "RetransSegs", "Tcp")
    });
    let risen = series.filter_map(|series| Some(series.points.last()?.value - series.points.first()?.value));
    risen.filter(|value| value.is_finite()).reduce(|a, b| a + b)
}

pub(crate) static NEIGHBOURS: Rule = Rule {
    check: neighbours,
    finding: Follows::Finding(Consequence {
        could: in_lab,
        numbers: &[("clients", "clients that resolve it")],
        cost: all_of_it,
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::Neighbours)
};

fn neighbours(s: Subject<'_>) -> Option<Check> {
    let lab = s.lab?;
    let server = &lab.server_address;
    let of_server = |client: &ClientLook| {
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
                "{} reaches the server's {server} on {} and {} on {} at the same hardware address {}: a bridge answers for \
                 another network, and requests bypass the one to be measured.",
                client.machine, data.device, other.address, other.device, data.hardware
            );
            return failed(s, CheckKind::Neighbours, Severity::Invalid, message, []);
        }
    }
    let asked =
        lab.clients.iter().filter(|client| of_server(client).is_some_and(|neighbour| !neighbour.permanent));
    let machines: Vec<_> = asked.map(|client| client.machine.as_str()).collect();
    if machines.is_empty() {
        return None;
    }
    let message = format!(
        "The server's hardware address is resolved over the measured network by {}: some requests wait for the answer first.",
        machines.join(", ")
    );
    let evidence = [Evidence::number("clients", machines.len() as f64)];
    failed(s, CheckKind::Neighbours, Severity::Warning, message, evidence)
}

pub(crate) static KERNEL_WARNING: Rule = Rule {
    // Consoles are read by the session: see `kernel_warning`.
    check: |_| None,
    finding: Follows::Finding(Consequence {
        could: in_lab,
        // It is of the whole run, and reported once.
        worth: |failed| {
            let first = failed.measured.run.recordings.first();
            failed.check.workload.is_some()
                || first.is_none_or(|first| first.workload == failed.measured.recording.workload)
        },
        numbers: &[("lines", "lines of the warning")],
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::KernelWarning)
};

/// The check of a run during which the kernel of a machine printed a warning of `lines` lines.
pub fn kernel_warning(message: String, lines: usize) -> Check {
    Check {
        kind: CheckKind::KernelWarning,
        severity: Severity::Warning,
        workload: None,
        message,
        evidence: vec![Evidence::number("lines", lines as f64)],
    }
}
