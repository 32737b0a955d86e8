//! Counters of mounts in the text format of Prometheus (0.0.4).
//!
//! They are the kernel's own, since the mount, so that rates are formed where they are stored. A mount has at most
//! [`MOST_SERIES`] series, whatever its kernel counts: which operations have series of their own depends on nothing but the
//! operations that the kernel knows. Chosen by use, a call would move from one counter to another, and one of them would go
//! back.

use std::fmt::Write;

use benchmaster_telemetry::mountstats::{Mountstats, NfsMount, Operation};

use super::interval::sum;
use super::version;

/// No mount has more.
pub const MOST_SERIES: usize = 60;

/// Operations of a mount that have series of their own; all others together are `other`.
const NAMED: usize = 12;

/// Which they are: the first of these that the kernel lists, which are not the same for every version of NFS.
const OPERATIONS: [&str; 14] = [
    "READ",
    "WRITE",
    "COMMIT",
    "GETATTR",
    "SETATTR",
    "LOOKUP",
    "ACCESS",
    "OPEN",
    "CLOSE",
    "REMOVE",
    "RENAME",
    "READDIR",
    "CREATE",
    "READDIRPLUS",
];

const _: () = assert!(1 + OF_MOUNTS.len() + OF_OPERATIONS.len() * (NAMED + 1) <= MOST_SERIES);

/// What all names begin with.
const PREFIX: &str = "benchmaster_nfs_";

/// A metric: its name, a counter if it ends in `_total`; its meaning; and how it is computed from what is counted, `None` where
/// the kernel does not count it.
struct Metric<T>(&'static str, &'static str, fn(&T) -> Option<f64>);

/// A mount and the sum over its operations.
struct Counted {
    mount: NfsMount,
    total: Operation,
    /// Labels, without braces.
    labels: String,
    /// Operations with series of their own, then `other`.
    operations: Vec<Operation>,
}

const MOUNTS: Metric<Mountstats> = Metric("mounts", "NFS mounts.", |stats| number(stats.mounts.len() as u64));

const INFO: Metric<Counted> = Metric("mount_info", "1, with the version of NFS as a label.", |_| number(1));

const OF_MOUNTS: [Metric<Counted>; 19] = [
    Metric("application_read_bytes_total", "Bytes that programs read.", |of| {
        of.bytes(&["normal_read", "direct_read"])
    }),
    Metric("application_written_bytes_total", "Bytes that programs wrote.", |of| {
        of.bytes(&["normal_written", "direct_written"])
    }),
    Metric("server_read_bytes_total", "Bytes of files read from the server.", |of| {
        of.bytes(&["server_read"])
    }),
    Metric("server_written_bytes_total", "Bytes of files written to the server.", |of| {
        of.bytes(&["server_written"])
    }),
    Metric("opens_total", "Files and directories that programs opened.", |of| of.event("vfs_open")),
    Metric("delays_total", "Replies that asked the client to try again later.", |of| of.event("delay")),
    Metric("sent_bytes_total", "Bytes of requests, with RPC headers.", |of| number(of.total.bytes_sent)),
    Metric("received_bytes_total", "Bytes of replies, with RPC headers.", |of| {
        number(of.total.bytes_received)
    }),
    Metric("transmissions_total", "Requests sent for the calls that completed.", |of| {
        number(of.total.transmissions)
    }),
    Metric("major_timeouts_total", "Major timeouts: no reply to any retransmission.", |of| {
        number(of.total.timeouts)
    }),
    Metric("queue_seconds_total", "Time of calls until their request was sent.", |of| {
        seconds(of.total.queue_ms)
    }),
    Metric("execution_seconds_total", "Time of calls from start to end.", |of| seconds(of.total.execute_ms)),
    Metric("connections", "Connections to the server.", |of| Some(of.mount.transports.len() as f64)),
    Metric("sends_total", "Requests sent on all connections.", |of| of.connections("sends")),
    Metric(
        "slot_waits_total",
        "Requests that were waiting for a slot, summed over sends: divided by sends, their mean.",
        |of| of.connections("backlog_u"),
    ),
    Metric(
        "outstanding_total",
        "Requests that were waiting for replies, summed over sends: divided by sends, their mean.",
        |of| of.connections("pending_u"),
    ),
    Metric("unknown_replies_total", "Replies to requests that are not known.", |of| {
        of.connections("bad_xids")
    }),
    Metric("connects_total", "Connections made.", |of| of.connections("connects")),
    Metric("most_slots", "Most slots in use so far on one connection.", |of| of.most_slots()),
];

const OF_OPERATIONS: [Metric<Operation>; 3] = [
    Metric("calls_total", "Calls completed.", |of| number(of.ops)),
    Metric("errors_total", "Calls that ended with an error (Linux 5.3 and later).", |of| {
        of.errors.and_then(number)
    }),
    Metric(
        "round_trip_seconds_total",
        "Time of calls from sending the request to the reply: network and server.",
        |of| seconds(of.rtt_ms),
    ),
];

fn number(count: u64) -> Option<f64> {
    Some(count as f64)
}

fn seconds(milliseconds: u64) -> Option<f64> {
    Some(milliseconds as f64 / 1000.0)
}

impl Counted {
    fn of(mount: NfsMount) -> Self {
        let known = OPERATIONS.iter().filter_map(|name| mount.operation(name));
        let mut operations: Vec<Operation> = known.take(NAMED).cloned().collect();
        let others = mount.operations.iter().filter(|one| operations.iter().all(|own| own.name != one.name));
        let others = Operation { name: "other".into(), ..sum(others) };
        operations.push(others);
        let labels = format!(
            "device=\"{}\",mount_point=\"{}\"",
            escaped(&mount.device),
            escaped(&mount.mount_point.to_string_lossy())
        );
        Self { total: sum(&mount.operations), labels, operations, mount }
    }

    fn bytes(&self, names: &[&str]) -> Option<f64> {
        let values = names.iter().map(|name| self.mount.bytes.get(name));
        values.sum::<Option<i128>>().map(|bytes| bytes as f64)
    }

    fn event(&self, name: &str) -> Option<f64> {
        self.mount.events.get(name).map(|count| count as f64)
    }

    fn most_slots(&self) -> Option<f64> {
        let slots = self.mount.transports.iter().filter_map(|one| one.numbers.get("max_slots"));
        slots.max().map(|slots| slots as f64)
    }

    /// The sum over connections that count it.
    fn connections(&self, name: &str) -> Option<f64> {
        let values = self.mount.transports.iter().filter_map(|one| one.numbers.get(name));
        values.reduce(|a, b| a.saturating_add(b)).map(|sum| sum as f64)
    }
}

/// What Prometheus reads.
pub fn exposition(stats: &Mountstats) -> String {
    let mut text = String::new();
    family(&mut text, &MOUNTS, [(String::new(), stats)]);
    let mut mounts: Vec<Counted> = Vec::new();
    for mount in &stats.mounts {
        let counted = Counted::of(mount.clone());
        // Series have different labels. Of two such mounts the later one is on top.
        mounts.retain(|other| other.labels != counted.labels);
        mounts.push(counted);
    }
    let with_version =
        |one: &Counted| format!("{{{},version=\"{}\"}}", one.labels, escaped(version(&one.mount)));
    family(&mut text, &INFO, mounts.iter().map(|one| (with_version(one), one)));
    for metric in &OF_MOUNTS {
        family(&mut text, metric, mounts.iter().map(|one| (format!("{{{}}}", one.labels), one)));
    }
    for metric in &OF_OPERATIONS {
        let series = mounts.iter().flat_map(|one| {
            let labels = |operation: &Operation| {
                format!("{{{},operation=\"{}\"}}", one.labels, escaped(&operation.name))
            };
            one.operations.iter().map(move |operation| (labels(operation), operation))
        });
        family(&mut text, metric, series);
    }
    text
}

/// A metric with all its series; nothing if it has none.
fn family<'a, T: 'a>(
    text: &mut String,
    metric: &Metric<T>,
    series: impl IntoIterator<Item = (String, &'a T)>,
) {
    let Metric(name, help, value) = metric;
    let kind = kind(name);
    let mut head = Some(format!("# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} {kind}\n"));
    for (labels, of) in series {
        if let Some(value) = value(of) {
            text.push_str(&head.take().unwrap_or_default());
            // Writing into a string never fails.
            let _ = writeln!(text, "{PREFIX}{name}{labels} {value}");
        }
    }
}

fn kind(name: &str) -> &'static str {
    if name.ends_with("_total") { "counter" } else { "gauge" }
}

/// A label's value.
fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests;
