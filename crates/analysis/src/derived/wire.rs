//! What the operations cost on the wire.

use benchmaster_record::model::OperationKind;
use benchmaster_record::nfs::NfsVersion;
use benchmaster_record::phase::Phase;
use benchmaster_record::recording::{Recording, RpcRow, RpcSource};
use benchmaster_record::results::Response;
use benchmaster_record::results::Unit;
use benchmaster_record::samples::{Samples, Series};
use benchmaster_telemetry::derived::growth;

use super::{operations, ratio, response};

/// Delegations granted to and recalled from our own client, which sees them; only version 4 has any.
fn delegations(recording: &Recording) -> Vec<Response> {
    let rpc = recording.rpc.as_ref();
    let own = rpc.filter(|rpc| {
        rpc.source == RpcSource::Client && rpc.connection.version.is_some_and(NfsVersion::has_state)
    });
    let Some(measured) = own.and_then(|rpc| rpc.phase(Phase::Measure)) else { return Vec::new() };
    [("delegations_granted", "delegation-granted"), ("delegations_recalled", "delegation-recalled")]
        .map(|(what, event)| {
            let count = measured.events.get(event).copied().unwrap_or_default();
            response(what, count as f64, Unit::Count)
        })
        .into()
}

/// Bytes of an operation by the application, successful ones.
fn application_bytes(recording: &Recording, kind: OperationKind) -> f64 {
    let series = recording.series.iter().filter(|series| series.key.operation == kind);
    series.map(|series| series.total.bytes).sum::<u64>() as f64
}

pub(super) fn responses(recording: &Recording) -> Vec<Response> {
    let seconds = recording.length_ns as f64 / 1e9;
    let read = application_bytes(recording, OperationKind::Read);
    let written = application_bytes(recording, OperationKind::Write);
    let mut list = Vec::new();
    for (what, bytes) in [("application_read", read), ("application_written", written)] {
        if bytes > 0.0 {
            list.extend(ratio(bytes, seconds).map(|rate| response(what, rate, Unit::BytesPerSecond)));
        }
    }
    list.extend(delegations(recording));
    let Some(rows) =
        recording.rpc.as_ref().and_then(|rpc| rpc.phase(Phase::Measure)).map(|phase| &phase.rows)
    else {
        return list;
    };
    let sum = |column: fn(&RpcRow) -> u64| rows.iter().map(column).sum::<u64>() as f64;
    let (received, sent) = (sum(|row| row.bytes_received), sum(|row| row.bytes_sent));
    let interfaces = [
        ("wire_received", "rx_bytes", received, "wire_received_per_read", read),
        ("wire_sent", "tx_bytes", sent, "wire_sent_per_written", written),
    ];
    for (what, metric, calls, per, bytes) in interfaces {
        // Interfaces that moved less than the calls are not those that the calls went through.
        let Some(moved) = of_interfaces(recording, metric).filter(|moved| *moved >= calls * 0.98) else {
            continue;
        };
        list.extend(ratio(moved, seconds).map(|rate| response(what, rate, Unit::BytesPerSecond)));
        list.extend(ratio(moved, bytes).map(|share| response(per, share, Unit::Ratio)));
    }
    list.extend(tcp(recording));
    let ratios = [
        ("rpc_received_per_read", received, read),
        ("rpc_sent_per_written", sent, written),
        ("rpc_queue_share", sum(|row| row.queue_ns), sum(|row| row.execute_ns)),
        ("rpc_retransmissions", sum(|row| row.transmissions.saturating_sub(row.ops)), sum(|row| row.ops)),
    ];
    list.extend(
        ratios
            .into_iter()
            .filter_map(|(what, part, whole)| Some(response(what, ratio(part, whole)?, Unit::Ratio))),
    );
    // Replies are a little larger than the data in them, so that nothing below 0 is the truth.
    let replies = rows.iter().filter(|row| matches!(row.operation.as_str(), "READ" | "READ_PLUS"));
    let replies = replies.map(|row| row.bytes_received).sum::<u64>() as f64;
    list.extend(
        ratio(replies, read).map(|wire| response("cached_share", (1.0 - wire).max(0.0), Unit::Ratio)),
    );
    list.extend(kinds(recording, rows));
    list
}

/// The samples of hosts with clients.
fn of_clients(recording: &Recording) -> impl Iterator<Item = &Samples> {
    recording.samples.iter().filter(|host| recording.has_clients(&host.agent)).map(|host| &host.samples)
}

/// By how much counters grew in the measured phase; `None` when none of them was read in it.
fn grown<'s>(recording: &Recording, all: impl Iterator<Item = &'s Series>) -> Option<f64> {
    let end = i64::try_from(recording.length_ns).ok()?;
    all.filter_map(|series| growth(&series.points, 0, end)).reduce(|a, b| a + b)
}

/// Bytes through all interfaces of the clients' hosts but loopback.
fn of_interfaces(recording: &Recording, metric: &str) -> Option<f64> {
    let all = of_clients(recording).flat_map(|samples| samples.of("net", metric));
    grown(recording, all.filter(|series| series.key.instance != "lo"))
}

/// Share of the TCP segments that the clients sent again on the connections under test.
fn tcp(recording: &Recording) -> Option<Response> {
    let of = |metric| grown(recording, of_clients(recording).flat_map(move |s| s.of("tcp_info", metric)));
    let share = ratio(of("total_retransmitted")?, of("segments_out")?)?;
    Some(response("tcp_retransmissions", share, Unit::Ratio))
}

/// RPCs of each kind per operation. Kinds of NFS are named alike in all its versions, so that these can be compared.
fn kinds(recording: &Recording, rows: &[RpcRow]) -> Vec<Response> {
    let all = operations(recording) as f64;
    let kind = |row: &RpcRow| {
        let name = if row.program.starts_with("NFS") {
            format!("rpc.{}.per_operation", row.operation)
        } else {
            format!("rpc.{}_{}.per_operation", row.program, row.operation)
        };
        Some(response(name, ratio(row.ops as f64, all)?, Unit::Ratio))
    };
    rows.iter().filter(|row| row.ops > 0).filter_map(kind).collect()
}
