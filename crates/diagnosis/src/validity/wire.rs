//! Checks of what went over the wire, who served it, and what lay between.

use benchmaster_record::model::{Claim, OperationKind};
use benchmaster_record::phase::Phase;
use benchmaster_record::recording::{RpcPhase, RpcRecording, RpcRow, RpcSource};
use benchmaster_record::results::Emulator;
use benchmaster_record::results::ServedBy;
use benchmaster_record::results::{Check, Severity};

use super::{Subject, found, percent, size};

/// All of them.
pub(super) const CHECKS: [fn(Subject<'_>) -> Option<Check>; 9] = [
    client_cached_reads,
    problems,
    retransmissions,
    timeouts,
    reconnects,
    slots_exhausted,
    rpc_errors,
    emulated_network,
    shared_host,
];

fn measured<'r>(s: Subject<'r>) -> Option<(&'r RpcRecording, &'r RpcPhase)> {
    let rpc = s.recording.rpc.as_ref()?;
    Some((rpc, rpc.phase(Phase::Measure)?))
}

/// `READ 12, WRITE 3`: the kinds of calls of which `count` is not 0.
fn by_operation(phase: &RpcPhase, count: impl Fn(&RpcRow) -> u64) -> (u64, String) {
    let counted = phase.rows.iter().map(|row| (count(row), row)).filter(|(count, _)| *count > 0);
    let text = counted.clone().map(|(count, row)| format!("{} {count}", row.operation)).collect::<Vec<_>>();
    (counted.map(|(count, _)| count).sum(), text.join(", "))
}

/// Whether it is known how much of what was read went over the wire: no guess from page caches is needed then.
pub(super) fn counts_reads(s: Subject<'_>) -> bool {
    measured(s).is_some()
}

/// What was read and did not go over the wire came from a cache: the user-space client's own, or the kernel client's.
fn client_cached_reads(s: Subject<'_>) -> Option<Check> {
    let (rpc, phase) = measured(s)?;
    if s.workload.claims == Claim::Cache {
        return None;
    }
    let reads = s.recording.series.iter().filter(|series| series.key.operation == OperationKind::Read);
    let read: u64 = reads.map(|series| series.total.bytes).sum();
    let wire: u64 =
        phase.rows.iter().filter(|row| row.operation.starts_with("READ")).map(|r| r.bytes_received).sum();
    let cached = read.saturating_sub(wire);
    if cached * 20 <= read {
        return None;
    }
    let share = cached as f64 / read as f64;
    let instead = match rpc.source {
        RpcSource::Client => "use `cache = \"off\"`",
        RpcSource::Kernel => {
            "use a larger `file_size`, `direct = true`, or `cache = \"remount\"` if they were cached before"
        }
    };
    let message = format!(
        "reads came from the client's cache: {} of {} never went over the wire; {instead}, or say `claims = \"cache\"`",
        percent(share),
        size(read)
    );
    found(s, "cached-reads", Severity::Warning, message, [("read", read as f64), ("cached_share", share)])
}

fn problems(s: Subject<'_>) -> Option<Check> {
    let problems = &s.recording.rpc.as_ref()?.problems;
    let first = problems.first()?;
    let more = match problems.len() {
        1 => String::new(),
        n => format!(" (and {} more)", n - 1),
    };
    let message = format!("the clients did not end in good order: {first}{more}");
    found(s, "client-state", Severity::Warning, message, [("problems", problems.len() as f64)])
}

fn retransmissions(s: Subject<'_>) -> Option<Check> {
    let (_, phase) = measured(s)?;
    let (again, which) = by_operation(phase, |row| row.transmissions.saturating_sub(row.ops));
    if again == 0 {
        return None;
    }
    let message =
        format!("{again} requests were sent more than once ({which}): replies were lost or came too late");
    found(s, "rpc-retransmissions", Severity::Warning, message, [("again", again as f64)])
}

fn timeouts(s: Subject<'_>) -> Option<Check> {
    let (_, phase) = measured(s)?;
    let (timeouts, which) = by_operation(phase, |row| row.timeouts);
    if timeouts == 0 {
        return None;
    }
    let message = format!(
        "no reply came in all of their time for {timeouts} requests ({which}): major timeouts; the times waited are in all latencies"
    );
    found(s, "rpc-timeouts", Severity::Warning, message, [("timeouts", timeouts as f64)])
}

fn reconnects(s: Subject<'_>) -> Option<Check> {
    let (_, phase) = measured(s)?;
    let count = *phase.events.get("reconnect").filter(|count| **count > 0)?;
    let message =
        format!("connections to the server broke and were made again {count} times while it was measured");
    found(s, "reconnects", Severity::Warning, message, [("reconnects", count as f64)])
}

fn slots_exhausted(s: Subject<'_>) -> Option<Check> {
    let (rpc, phase) = measured(s)?;
    let waits = *phase.events.get("slot-wait").filter(|waits| **waits > 0)?;
    let sum = |column: fn(&RpcRow) -> u64| phase.rows.iter().map(column).sum::<u64>() as f64;
    let (calls, share) = (sum(|row| row.ops), sum(|row| row.queue_ns) / sum(|row| row.execute_ns).max(1.0));
    if share < 0.1 {
        return None;
    }
    let slots = rpc.connection.slots.map_or_else(String::new, |slots| format!(" of {slots}"));
    let message = format!(
        "session slots{slots} were used up: {} of the calls waited for one, and calls spent {} of their time waiting to be \
         sent; the number of slots is measured as much as the server",
        percent(waits as f64 / calls.max(1.0)),
        percent(share)
    );
    let evidence = [("waits", waits as f64), ("calls", calls), ("queue_share", share)];
    found(s, "slots-exhausted", Severity::Warning, message, evidence)
}

fn rpc_errors(s: Subject<'_>) -> Option<Check> {
    let (_, phase) = measured(s)?;
    let (errors, which) = by_operation(phase, |row| row.errors);
    if errors == 0 {
        return None;
    }
    let message = format!(
        "{errors} RPCs were answered with an error ({which}); errors that made operations fail are counted with those"
    );
    found(s, "rpc-errors", Severity::Note, message, [("errors", errors as f64)])
}

/// Segments that TCP sends before the first acknowledgement (RFC 6928 §2), in bytes.
const INITIAL_WINDOW: f64 = 14_600.0;

fn emulated_network(s: Subject<'_>) -> Option<Check> {
    let service = s
        .service
        .filter(|service| service.network.emulator == Emulator::Relay && service.network.delay_ns > 0)?;
    let bytes: u64 = s.recording.series.iter().map(|series| series.total.bytes).sum();
    if bytes == 0 {
        return None;
    }
    let rpc = s.recording.rpc.as_ref();
    let connections = rpc.map_or(1, |rpc| rpc.connection.clients.max(1) * rpc.connection.nconnect.max(1));
    let rate = bytes as f64 * 1e9 / s.recording.length_ns.max(1) as f64;
    let in_flight = rate * 2.0 * service.network.delay_ns as f64 / 1e9 / f64::from(connections);
    let evidence = [("delay_ns", service.network.delay_ns as f64), ("in_flight", in_flight)];
    let delay = service.network.delay_ns as f64 / 1e6;
    let (severity, why) = if in_flight > INITIAL_WINDOW {
        (
            Severity::Warning,
            "the relay acknowledges locally, so TCP's windows did not limit it as they would on a real network of this length",
        )
    } else {
        (Severity::Note, "that is less than TCP's initial window, so the throughput is as on a real network")
    };
    let message = format!(
        "throughput was measured through a relay with {delay} ms one-way delay and {} under way per connection: {why}",
        size(in_flight as u64)
    );
    found(s, "emulated-network", severity, message, evidence)
}

fn shared_host(s: Subject<'_>) -> Option<Check> {
    s.service.filter(|service| service.server == ServedBy::Embedded)?;
    let seconds = s.recording.length_ns as f64 / 1e9;
    let processors = |nanos: u64| nanos as f64 / 1e9 / seconds.max(1e-9);
    let server = s.server.and_then(|server| server.cpu_ns).map(processors);
    let client =
        s.recording.rpc.as_ref().map_or(0.0, |rpc| processors(rpc.client_cpu_ns.0 + rpc.client_cpu_ns.1));
    let told = match server {
        Some(server) => format!("it used {server:.2} of them, the clients {client:.2}"),
        None => format!("the clients used {client:.2} of them"),
    };
    let message = format!(
        "the embedded server shares the {} processors of this host with the clients ({told}): rates are those of both together",
        s.recording.host.processors
    );
    let evidence = [("server_processors", server.unwrap_or(0.0)), ("client_processors", client)];
    found(s, "shared-host", Severity::Note, message, evidence)
}
