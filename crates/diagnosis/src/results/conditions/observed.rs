//! What each client of a run counted, as if its `mountstats` had been read before and after: what tells of a client in production
//! tells of a run as well.

use std::collections::BTreeMap;
use std::path::Path;

use benchmaster_record::model::OperationKind;
use benchmaster_record::nfs::NfsVersion;
use benchmaster_record::recording::{HostSamples, RpcPhase, RpcRecording, RpcSource};
use benchmaster_telemetry::mountstats::{NfsMount, Numbers, Operation, RpcProgram, Transport};

use crate::measured::Measured;
use crate::mountstats::observed::Observed;

/// Numbers by their names.
type Named = BTreeMap<String, u64>;

/// What was counted of a mount in the measured phase.
#[derive(Debug, Default)]
struct Counts {
    events: Named,
    bytes: Named,
    /// By their number.
    transports: BTreeMap<String, Named>,
    /// By name.
    operations: BTreeMap<String, Operation>,
}

/// What each client counted of its mount, as its `mountstats` would have it.
pub(in crate::results) fn mounts<'m>(measured: &'m Measured<'_>) -> &'m [Observed] {
    measured.mounts.get_or_init(|| observed(measured))
}

/// The clients of a run: each host of the kernel's that was sampled, else all clients together by their RPCs.
fn observed(measured: &Measured<'_>) -> Vec<Observed> {
    let Some((rpc, phase)) = measured.rpcs() else { return Vec::new() };
    let sampled: Vec<(String, Counts)> = match rpc.source {
        RpcSource::Kernel => {
            let hosts = measured.clients();
            hosts.filter_map(|host| Some((host.agent.clone(), of_host(measured, host)?))).collect()
        }
        RpcSource::Client => Vec::new(),
    };
    let clients = if sampled.is_empty() {
        vec![("all clients".to_owned(), of_rpcs(measured, rpc, phase))]
    } else {
        sampled
    };
    let mut options = options(measured, rpc);
    if rpc.source == RpcSource::Client && !options.contains("delay_initial=") {
        options += ",delay_initial=0.1";
    }
    let of_client =
        |(client, counts)| Observed::since_mounted(client, mount(measured, rpc, &options, counts));
    let mut observed: Vec<Observed> = clients.into_iter().map(of_client).collect();
    observed.retain(|one| one.calls() > 0);
    let done = |kind| measured.of_kind(kind).map(|series| series.total.count).sum::<u64>();
    let asked_for = (done(OperationKind::Stat) + done(OperationKind::Access)) / observed.len().max(1) as u64;
    observed.iter_mut().for_each(|one| (one.since_mount, one.asked_for) = (false, asked_for));
    observed
}

/// What was asked for when it was mounted, and what was agreed on.
fn options(measured: &Measured<'_>, rpc: &RpcRecording) -> String {
    let asked = asked(measured);
    let facts = &rpc.connection;
    let agreed = ["vers", "rsize", "wsize"];
    let mut options: Vec<String> = asked
        .iter()
        .filter(|option| !agreed.contains(&option.split('=').next().unwrap_or_default()))
        .cloned()
        .collect();
    options.extend(facts.version.map(|version| format!("vers={version}")));
    for (name, size) in [("rsize", facts.rsize), ("wsize", facts.wsize)] {
        if size > 0 {
            options.push(format!("{name}={size}"));
        }
    }
    options.join(",")
}

/// Options as they were written, in the words of nfs(5): those of the mount of this run if they are known, else those of the
/// target's mount when the session began.
pub(in crate::results) fn asked(measured: &Measured<'_>) -> Vec<String> {
    let service = measured.run.service.as_ref();
    if let Some((place, options)) = service.and_then(|service| service.url.split_once('?')) {
        let split = if place.contains("://") { '&' } else { ',' };
        return options.split(split).filter_map(in_words_of_nfs).collect();
    }
    if service.is_some() {
        return Vec::new();
    }
    let hosts = measured.environments().into_iter().flat_map(BTreeMap::values);
    let target =
        hosts.filter_map(|host| host.target.as_ref()).find(|target| target.file_system.starts_with("nfs"));
    target.map_or_else(Vec::new, |target| target.options.split(',').map(str::to_owned).collect())
}

/// An option of a URL as nfs(5) has it; those that the kernel has the same way stay as they are.
fn in_words_of_nfs(option: &str) -> Option<String> {
    let (name, value) = option.split_once('=').unwrap_or((option, ""));
    let seconds = || value.parse::<benchmaster_units::TimeSpan>().ok().map(|span| span.0.as_secs_f64());
    Some(match (name, value) {
        ("version", value) => format!("vers={value}"),
        ("sync", "file" | "data") => "sync".into(),
        ("sync", "none") => return None,
        ("timeo", _) => match seconds() {
            Some(seconds) => format!("timeo={:.0}", seconds * 10.0),
            None => option.to_owned(),
        },
        ("delay_initial", _) => match seconds() {
            Some(seconds) => format!("{name}={seconds}"),
            None => option.to_owned(),
        },
        ("actimeo" | "acregmin" | "acregmax" | "acdirmin" | "acdirmax", _) => match seconds() {
            Some(seconds) => format!("{name}={seconds:.0}"),
            None => option.to_owned(),
        },
        _ => option.to_owned(),
    })
}

/// What the samples of a host say of its mount.
fn of_host(measured: &Measured<'_>, host: &HostSamples) -> Option<Counts> {
    let mut counts = Counts::default();
    let series = host.samples.series.iter().filter(|series| series.key.sampler == "mountstats");
    for series in series {
        let (metric, instance) = (series.key.metric.as_str(), series.key.instance.as_str());
        let grown = || measured.growth(series).filter(|grown| *grown > 0.0);
        if let Some((_, transport)) = instance.split_once(" xprt ") {
            let last = series.points.last().map_or(0.0, |point| point.value);
            let value = if matches!(metric, "max_slots" | "port") { last } else { grown().unwrap_or(0.0) };
            let number = transport.split(' ').next().unwrap_or_default();
            let key = format!("{number:0>4}");
            counts.transports.entry(key).or_default().insert(metric.to_owned(), value.round() as u64);
        } else if let Some((column, unit)) = column(metric) {
            let Some((grown, (_, operation))) = grown().zip(instance.rsplit_once(' ')) else { continue };
            *column(counts.operations.entry(operation.to_owned()).or_default()) =
                (grown / unit).round() as u64;
        } else {
            let named =
                if Numbers::EVENTS.contains(&metric) { &mut counts.events } else { &mut counts.bytes };
            named.insert(metric.to_owned(), grown().unwrap_or(0.0).round() as u64);
        }
    }
    (!counts.operations.is_empty()).then_some(counts)
}

type Column = fn(&mut Operation) -> &mut u64;

/// A column of an operation, by the name of its metric, and how many of the metric's units are one of its own.
fn column(metric: &str) -> Option<(Column, f64)> {
    Some(match metric {
        "ops" => (|of| &mut of.ops, 1.0),
        "transmissions" => (|of| &mut of.transmissions, 1.0),
        "timeouts" => (|of| &mut of.timeouts, 1.0),
        "bytes_sent" => (|of| &mut of.bytes_sent, 1.0),
        "bytes_received" => (|of| &mut of.bytes_received, 1.0),
        "queue_time" => (|of| &mut of.queue_ms, 1e6),
        "rtt_time" => (|of| &mut of.rtt_ms, 1e6),
        "execute_time" => (|of| &mut of.execute_ms, 1e6),
        "errors" => (|of| of.errors.get_or_insert(0), 1.0),
        _ => return None,
    })
}

/// What the RPCs of all clients say.
fn of_rpcs(measured: &Measured<'_>, rpc: &RpcRecording, phase: &RpcPhase) -> Counts {
    let mut counts = Counts::default();
    let nfs = phase.rows.iter().filter(|row| row.program.starts_with("NFS"));
    for row in nfs {
        let sum = counts.operations.entry(row.operation.clone()).or_default();
        sum.ops += row.ops;
        sum.transmissions += row.transmissions;
        sum.timeouts += row.timeouts;
        sum.bytes_sent += row.bytes_sent;
        sum.bytes_received += row.bytes_received;
        sum.queue_ms += row.queue_ns / 1_000_000;
        sum.rtt_ms += row.rtt_ns / 1_000_000;
        sum.execute_ms += row.execute_ns / 1_000_000;
        *sum.errors.get_or_insert(0) += row.errors;
    }
    let done = |kind| measured.of_kind(kind).map(|series| series.total.count).sum::<u64>();
    let event = |name: &str| phase.events.get(name).copied().unwrap_or(0);
    counts.events = [
        ("vfs_open", done(OperationKind::Open) + done(OperationKind::Create)),
        ("vfs_fsync", done(OperationKind::Fsync) + done(OperationKind::Fdatasync)),
        ("delay", event("delay")),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    counts.bytes = [
        ("normal_read", measured.bytes(OperationKind::Read)),
        ("normal_written", measured.bytes(OperationKind::Write)),
        ("server_read", counts.operations.get("READ").map_or(0, |read| read.bytes_received)),
        ("server_written", counts.operations.get("WRITE").map_or(0, |write| write.bytes_sent)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    if rpc.connection.nconnect > 0 {
        let sends = counts.operations.values().map(|operation| operation.transmissions).sum();
        let transport = [("connects", event("reconnect")), ("sends", sends)];
        counts.transports.insert("0".into(), transport.map(|(name, value)| (name.to_owned(), value)).into());
    }
    counts
}

/// The counts as those of a mount.
fn mount(measured: &Measured<'_>, rpc: &RpcRecording, options: &str, counts: Counts) -> NfsMount {
    let facts = &rpc.connection;
    let version = facts.version.map_or(4, NfsVersion::major);
    let numbers =
        |names, named: &Named| Numbers::named_by(names, |name| named.get(name).copied().unwrap_or(0));
    let transport = |named: &Named| Transport {
        kind: "tcp".to_owned(),
        numbers: numbers(Numbers::transport("tcp"), named),
    };
    let operation = |(name, mut operation): (String, Operation)| {
        operation.name = name;
        operation.errors.get_or_insert(0);
        operation
    };
    NfsMount {
        device: if facts.server.is_empty() { "server:/export".to_owned() } else { facts.server.clone() },
        mount_point: Path::new("/").join(&measured.recording.workload),
        file_system: if version == 4 { "nfs4" } else { "nfs" }.to_owned(),
        version: "1.1".to_owned(),
        options: options.to_owned(),
        age: measured.seconds().max(1.0).round_ties_even() as u64,
        implementation: None,
        capabilities: String::new(),
        nfsv4: None,
        security: String::new(),
        events: numbers(Numbers::EVENTS, &counts.events),
        bytes: numbers(Numbers::BYTES, &counts.bytes),
        cache: None,
        rpc: Some(RpcProgram {
            iostats: "1.1".to_owned(),
            program: 100_003,
            version,
            name: "nfs".to_owned(),
        }),
        transports: counts.transports.values().map(transport).collect(),
        operations: counts.operations.into_iter().map(operation).collect(),
        other: Vec::new(),
    }
}
