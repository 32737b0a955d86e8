//! The embedded server's counters: what it did while a workload was measured, and samples of it.

use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use benchmaster_clock::monotonic_ns;
use benchmaster_nfs_server::Server;
use benchmaster_nfs_server::arrivals::Arrival;
use benchmaster_nfs_server::disk::DiskReport;
use benchmaster_nfs_server::inject::Rule;
use benchmaster_nfs_server::stats::{OperationReport, Report};
use benchmaster_record::recording::Recording;
use benchmaster_record::results::{ServerOperation, ServerUse};
use benchmaster_telemetry::process::named_threads_cpu_ns;
use benchmaster_telemetry::samplers::{diskstats, jbd2};
use benchmaster_telemetry::sampling::{MetricInfo, Reading as Sample, SampleError, Sampler, Sink};

/// The `agent` of samples of the embedded server.
pub(crate) const SERVER_AGENT: &str = "embedded server";

/// Whether a thread of this name belongs to the embedded server.
fn is_server_thread(name: &str) -> bool {
    let number = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
    name.strip_prefix("nfs-").is_some_and(number)
        || ["nfs-housekeepin", "nfs-callbacks", "nlm-callback"].contains(&name)
}

/// Counters of the embedded server at one time.
#[derive(Debug)]
pub(super) struct Reading {
    report: Report,
    cpu_ns: Option<u64>,
}

impl Reading {
    pub(super) fn now(server: &Server) -> Self {
        Self { report: server.report(), cpu_ns: named_threads_cpu_ns(is_server_thread) }
    }

    /// What was counted until `later`.
    pub(super) fn until(&self, later: &Self, workload: &str) -> ServerUse {
        let (then, now) = (&self.report.transport, &later.report.transport);
        let operations = later.report.operations.iter().filter_map(|now| {
            let same =
                |then: &&OperationReport| (then.protocol, then.operation) == (now.protocol, now.operation);
            let then = self.report.operations.iter().find(same);
            let since = |now: u64, then: Option<u64>| now - then.unwrap_or(0);
            let operation = ServerOperation {
                protocol: now.protocol.to_owned(),
                operation: now.operation.to_owned(),
                ops: since(now.ops, then.map(|then| then.ops)),
                errors: since(now.errors, then.map(|then| then.errors)),
                bytes_received: since(now.bytes_received, then.map(|then| then.bytes_received)),
                bytes_sent: since(now.bytes_sent, then.map(|then| then.bytes_sent)),
                service_ns: since(now.service.total_ns, then.map(|then| then.service.total_ns)),
            };
            (operation.ops > 0).then_some(operation)
        });
        ServerUse {
            workload: workload.to_owned(),
            calls: now.calls - then.calls,
            connections: now.connections - then.connections,
            replayed: now.replayed - then.replayed,
            cpu_ns: self.cpu_ns.zip(later.cpu_ns).map(|(then, now)| now.saturating_sub(then)),
            held_ns: self.held_ns(later),
            operations: operations.collect(),
        }
    }

    /// For how long rules of injection, and the disk, held replies back until `later`.
    fn held_ns(&self, later: &Self) -> Option<u64> {
        let held = |(text, struck): &(String, u64)| {
            let before = self.report.injected.iter().find(|(other, _)| other == text);
            let struck = struck - before.map_or(0, |(_, struck)| *struck);
            let each = text.parse::<Rule>().ok()?.held();
            match (struck, each) {
                (0, _) => Some(0),
                (_, None) => None,
                (struck, Some(each)) => Some(struck.saturating_mul(each.as_nanos() as u64)),
            }
        };
        let of_disk = |reading: &Self| reading.report.disk.map_or(0, |disk| disk.held_ns);
        let injected: Option<u64> = later.report.injected.iter().map(held).sum();
        Some(injected? + of_disk(later) - of_disk(self))
    }
}

/// The start of the measured phase on this host's monotonic clock.
pub(super) fn start_monotonic_ns(recording: &Recording) -> i64 {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
    recording.started_unix_ns - (unix - monotonic_ns())
}

/// Stores how well the clients began together as the embedded server saw it: from the first request of the first client to
/// that of the last, once the measured phase had begun. Not where starts are staggered, or where a client sent nothing.
pub(super) fn note_arrivals(recording: &mut Recording, arrivals: &[Arrival], start_ns: i64, clients: u32) {
    // The start is known from wall-clock time, to some microseconds.
    const SLACK_NS: i64 = 50_000;
    let connections = recording.rpc.as_ref().map_or(1, |rpc| rpc.connection.nconnect.max(1));
    let Some(facts) = recording.start.as_mut().filter(|facts| facts.stagger_ns == 0) else { return };
    let after: Vec<i64> = arrivals
        .iter()
        .map(|arrival| arrival.monotonic_ns)
        .filter(|time| *time >= start_ns - SLACK_NS)
        .take(clients.saturating_mul(connections) as usize)
        .collect();
    if let (Some(first), Some(last), true) = (after.first(), after.last(), after.len() >= clients as usize) {
        facts.server_spread_ns = Some((last - first).unsigned_abs());
    }
}

/// Reads the embedded server like a part of the system.
#[derive(Debug)]
pub(super) struct ServerSampler(pub(super) Arc<Server>);

const METRICS: [MetricInfo; 8] = [
    MetricInfo::counter("calls", "1", "", "RPC calls received"),
    MetricInfo::counter("connections", "1", "", "connections accepted"),
    MetricInfo::counter("replayed", "1", "", "repeated requests answered without being executed again"),
    MetricInfo::counter("cpu", "ns", "", "CPU time of the server's threads, user and kernel together"),
    MetricInfo::counter("operations", "1", "protocol and operation", "executions"),
    MetricInfo::counter("errors", "1", "protocol and operation", "executions with an error as result"),
    MetricInfo::counter("bytes", "B", "protocol and operation", "bytes of requests and replies"),
    MetricInfo::counter("service", "ns", "protocol and operation", "time from decoding to encoded result"),
];

impl Sampler for ServerSampler {
    fn name(&self) -> &'static str {
        "server"
    }

    fn read(&mut self, out: &mut Sample<'_>) -> Result<(), SampleError> {
        let Reading { report, cpu_ns } = Reading::now(&self.0);
        let [calls, connections, replayed, cpu, operations, errors, bytes, service] =
            METRICS.map(|m| m.metric());
        out.put(calls, "", report.transport.calls as f64);
        out.put(connections, "", report.transport.connections as f64);
        out.put(replayed, "", report.transport.replayed as f64);
        if let Some(ns) = cpu_ns {
            out.put(cpu, "", ns as f64);
        }
        for of in report.operations.iter().filter(|of| of.ops > 0) {
            let instance = format!("{} {}", of.protocol, of.operation);
            out.put(operations, &instance, of.ops as f64);
            out.put(errors, &instance, of.errors as f64);
            out.put(bytes, &instance, (of.bytes_received + of.bytes_sent) as f64);
            out.put(service, &instance, of.service.total_ns as f64);
        }
        Ok(())
    }
}

/// The instance under which the model of a disk is sampled.
const DISK: &str = "model";

/// A metric of `/proc/diskstats`, and its value.
type Row = (&'static str, fn(&DiskReport) -> u64);

const ROWS: [Row; 13] = [
    ("reads", |disk| disk.reads),
    ("read_bytes", |disk| disk.read_bytes),
    ("read_time", |disk| disk.read_ns),
    ("writes", |disk| disk.writes),
    ("written_bytes", |disk| disk.written_bytes),
    ("write_time", |disk| disk.write_ns),
    ("in_flight", |disk| disk.in_flight),
    ("busy_time", |disk| disk.busy_ns),
    ("queue_time", |disk| disk.queue_ns),
    ("flushes", |disk| disk.flushes),
    ("flush_time", |disk| disk.flush_ns),
    ("reads_merged", |_| 0),
    ("writes_merged", |_| 0),
];

/// The model of a disk as the kernel's `/proc/diskstats` would have it.
#[derive(Debug)]
pub(super) struct DiskSampler(Arc<Server>);

/// Its journal as `/proc/fs/jbd2` would have it, and what only a model knows.
#[derive(Debug)]
pub(super) struct JournalSampler(Arc<Server>);

/// What is in memory before it.
#[derive(Debug)]
pub(super) struct PageCacheSampler(Arc<Server>);

const LOGGED_BLOCKS: MetricInfo =
    MetricInfo::counter("logged_blocks", "1", "journal", "blocks written to the journal, exactly");

const PAGE_CACHE: [MetricInfo; 5] = [
    MetricInfo::counter("asked", "B", "", "bytes that clients wrote"),
    MetricInfo::counter("data_blocks", "1", "", "blocks of 4 KiB of file data written to the disk"),
    MetricInfo::gauge("dirty", "B", "", "bytes of file data that the disk does not have"),
    MetricInfo::counter("hits", "1", "", "pages read from memory"),
    MetricInfo::counter("misses", "1", "", "pages read from the disk"),
];

/// The samplers of the server's disk; none where it has no disk.
pub(super) fn disk_samplers(server: &Arc<Server>) -> Vec<Box<dyn Sampler>> {
    if server.shared().disk.is_none() {
        return Vec::new();
    }
    vec![
        Box::new(DiskSampler(Arc::clone(server))),
        Box::new(JournalSampler(Arc::clone(server))),
        Box::new(PageCacheSampler(Arc::clone(server))),
    ]
}

fn disk_of(server: &Server) -> DiskReport {
    server.shared().disk.as_ref().map(|disk| disk.report(Instant::now())).unwrap_or_default()
}

/// Puts in values under the names that a sampler of the kernel has for them.
fn put(out: &mut Sample<'_>, metrics: &[MetricInfo], values: &[(&str, f64)]) {
    for (name, value) in values {
        if let Some(metric) = metrics.iter().find(|metric| metric.name == *name) {
            out.put(metric.metric(), DISK, *value);
        }
    }
}

impl Sampler for DiskSampler {
    fn name(&self) -> &'static str {
        "diskstats"
    }

    fn read(&mut self, out: &mut Sample<'_>) -> Result<(), SampleError> {
        let disk = disk_of(&self.0);
        let values = ROWS.map(|(name, value)| (name, value(&disk) as f64));
        put(out, diskstats::METRICS, &values);
        Ok(())
    }
}

impl Sampler for JournalSampler {
    fn name(&self) -> &'static str {
        "jbd2"
    }

    fn read(&mut self, out: &mut Sample<'_>) -> Result<(), SampleError> {
        let disk = disk_of(&self.0);
        let mean = |sum: u64| sum as f64 / disk.transactions.max(1) as f64;
        let values = [
            ("transactions", disk.transactions as f64),
            ("requested", disk.requested as f64),
            ("mean_running", mean(disk.running_ns)),
            ("mean_commit", mean(disk.commit_ns)),
            // Whole numbers, as the kernel's.
            ("mean_handles", mean(disk.handles).floor()),
            ("mean_blocks", mean(disk.metadata_blocks).floor()),
            ("mean_logged_blocks", mean(disk.journal_blocks).floor()),
        ];
        put(out, jbd2::METRICS, &values);
        out.put(LOGGED_BLOCKS.metric(), DISK, disk.journal_blocks as f64);
        Ok(())
    }
}

impl Sampler for PageCacheSampler {
    fn name(&self) -> &'static str {
        "page_cache"
    }

    fn read(&mut self, out: &mut Sample<'_>) -> Result<(), SampleError> {
        let disk = disk_of(&self.0);
        let values =
            [disk.asked_bytes, disk.data_blocks, disk.dirty_bytes, disk.cache_hits, disk.cache_misses];
        for (metric, value) in PAGE_CACHE.iter().zip(values) {
            out.put(metric.metric(), "", value as f64);
        }
        Ok(())
    }
}
