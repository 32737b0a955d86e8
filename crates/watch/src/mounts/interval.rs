//! Rates and means of an interval.

use std::time::Duration;

use benchmaster_telemetry::mountstats::{Change, ChangeError, NfsMount, Numbers, Operation, Transport};
use serde::Serialize;

/// What a mount did in an interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interval {
    /// Its length.
    pub seconds: f64,
    /// All operations together.
    pub total: OperationRates,
    /// By operation, in the kernel's order, those not used too.
    pub operations: Vec<OperationRates>,
    /// Bytes per second that applications read,
    pub application_read_bytes_per_s: f64,
    /// and wrote.
    pub application_written_bytes_per_s: f64,
    /// Bytes per second that were read from the server,
    pub server_read_bytes_per_s: f64,
    /// and written to it.
    pub server_written_bytes_per_s: f64,
    /// Share of the bytes read that came from the client's cache. `None` when nothing was read, or more from the server
    /// than by applications (read-ahead).
    pub cached_share: Option<f64>,
    /// Opens of files per second.
    pub opens_per_s: f64,
    /// Times per second that a server asked to try again later (NFS4ERR_DELAY, JUKEBOX).
    pub delays_per_s: f64,
    /// All connections together.
    pub connections: Connections,
}

/// An operation in an interval. Counts are of the interval; times are means over the calls that completed in it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct OperationRates {
    /// Its name; empty for the sum.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Calls completed.
    pub ops: u64,
    pub ops_per_s: f64,
    /// Bytes of requests per second, with RPC headers,
    pub sent_bytes_per_s: f64,
    /// and of replies.
    pub received_bytes_per_s: f64,
    /// Bytes of request and reply together of a call.
    pub bytes_per_op: Option<f64>,
    /// Milliseconds until a request was sent,
    pub queue_ms: Option<f64>,
    /// from then until its reply,
    pub rtt_ms: Option<f64>,
    /// and from the beginning of the call until its end. The kernel's sums are in whole milliseconds: a mean over n calls is
    /// right within 1/n ms.
    pub execute_ms: Option<f64>,
    /// Calls that ended with an error; `None` where the kernel (before Linux 5.3) does not count them.
    pub errors: Option<u64>,
    /// Requests that were sent again.
    pub retransmissions: u64,
    /// Major timeouts.
    pub timeouts: u64,
}

/// Connections of a mount in an interval.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Connections {
    /// How many.
    pub count: usize,
    /// What they are: `tcp`, `udp`, `rdma`.
    pub kind: String,
    /// Requests sent per second.
    pub sends_per_s: f64,
    /// Mean number of requests that waited for a free slot when one was sent; `None` when none was sent, or the kernel does
    /// not count it.
    pub backlog: Option<f64>,
    /// Mean number of requests outstanding when one was sent; `None` as above.
    pub pending: Option<f64>,
    /// Most requests outstanding so far on one of them.
    pub max_slots: Option<i128>,
    /// Replies to requests that were not known.
    pub bad_xids: u64,
    /// Connections opened anew.
    pub reconnects: u64,
}

impl Interval {
    /// What was counted between two readings that lie `time` apart.
    ///
    /// # Errors
    /// When the counters went back, or are of different mounts.
    pub fn between(earlier: &NfsMount, later: &NfsMount, time: Duration) -> Result<Self, ChangeError> {
        let change = later.since(earlier)?;
        let seconds = time.as_secs_f64();
        let bytes = |names: &[&str]| {
            let sum: i128 = names.iter().filter_map(|name| change.bytes.get(name)).sum();
            sum as f64 / seconds
        };
        let event = |name: &str| change.events.get(name).unwrap_or(0) as f64 / seconds;
        let read = bytes(&["normal_read", "direct_read"]);
        let server_read = bytes(&["server_read"]);
        Ok(Self {
            seconds,
            total: OperationRates::of(&sum(&change.operations), seconds),
            operations: change.operations.iter().map(|one| OperationRates::of(one, seconds)).collect(),
            application_read_bytes_per_s: read,
            application_written_bytes_per_s: bytes(&["normal_written", "direct_written"]),
            server_read_bytes_per_s: server_read,
            server_written_bytes_per_s: bytes(&["server_written"]),
            cached_share: (read > 0.0 && server_read <= read).then(|| 1.0 - server_read / read),
            opens_per_s: event("vfs_open"),
            delays_per_s: event("delay"),
            connections: Connections::of(&change, seconds),
        })
    }
}

/// All of them together, without a name.
pub(super) fn sum<'a>(operations: impl IntoIterator<Item = &'a Operation>) -> Operation {
    let mut sum = Operation::default();
    for one in operations {
        sum.ops = sum.ops.saturating_add(one.ops);
        sum.transmissions = sum.transmissions.saturating_add(one.transmissions);
        sum.timeouts = sum.timeouts.saturating_add(one.timeouts);
        sum.bytes_sent = sum.bytes_sent.saturating_add(one.bytes_sent);
        sum.bytes_received = sum.bytes_received.saturating_add(one.bytes_received);
        sum.queue_ms = sum.queue_ms.saturating_add(one.queue_ms);
        sum.rtt_ms = sum.rtt_ms.saturating_add(one.rtt_ms);
        sum.execute_ms = sum.execute_ms.saturating_add(one.execute_ms);
        sum.errors = one.errors.map(|errors| errors.saturating_add(sum.errors.unwrap_or(0))).or(sum.errors);
    }
    sum
}

impl OperationRates {
    fn of(operation: &Operation, seconds: f64) -> Self {
        let ops = operation.ops;
        let mean = |sum: u64| (ops > 0).then(|| sum as f64 / ops as f64);
        Self {
            name: operation.name.clone(),
            ops,
            ops_per_s: ops as f64 / seconds,
            sent_bytes_per_s: operation.bytes_sent as f64 / seconds,
            received_bytes_per_s: operation.bytes_received as f64 / seconds,
            bytes_per_op: mean(operation.bytes_sent.saturating_add(operation.bytes_received)),
            queue_ms: mean(operation.queue_ms),
            rtt_ms: mean(operation.rtt_ms),
            execute_ms: mean(operation.execute_ms),
            errors: operation.errors,
            // Transmissions are counted with the call they belong to, when that completes.
            retransmissions: operation.transmissions.saturating_sub(ops),
            timeouts: operation.timeouts,
        }
    }
}

impl Connections {
    fn of(change: &Change, seconds: f64) -> Self {
        let transports = &change.transports;
        let get =
            |name: &'static str| transports.iter().filter_map(move |one: &Transport| one.numbers.get(name));
        let total = |name: &'static str| get(name).sum::<i128>().max(0);
        let sends = total("sends");
        let per_send = |name: &'static str| {
            (sends > 0 && get(name).next().is_some()).then(|| total(name) as f64 / sends as f64)
        };
        let known = |numbers: &Numbers| numbers.get("connects").is_some();
        let kinds: Vec<&str> = transports.iter().map(|transport| transport.kind.as_str()).collect();
        Self {
            count: transports.len(),
            kind: kinds.first().map(|kind| (*kind).to_owned()).unwrap_or_default(),
            sends_per_s: sends as f64 / seconds,
            backlog: per_send("backlog_u"),
            pending: per_send("pending_u"),
            max_slots: get("max_slots").max(),
            bad_xids: u64::try_from(total("bad_xids")).unwrap_or(u64::MAX),
            reconnects: if transports.iter().any(|transport| known(&transport.numbers)) {
                u64::try_from(total("connects")).unwrap_or(u64::MAX)
            } else {
                0
            },
        }
    }
}
