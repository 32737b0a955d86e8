//! Made-up results of a study: only what is said of them is there.
#![allow(dead_code, unreachable_pub, reason = "each of those who use it needs a part of it")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "of tests")]

use benchmaster_record::nfs::NfsVersion;
use benchmaster_record::phase::Phase;
use benchmaster_record::results::ServedBy;
use std::collections::BTreeMap;

use benchmaster_record::model::OperationKind;
use benchmaster_record::recording::{
    AgentRecording, CacheAction, ConnectionFacts, EncodedHistogram, FilesetFacts, HostSamples, HostUse,
    IntervalStats, OperationStats, Recording, RpcCounters, RpcPhase, RpcRecording, RpcRow, RpcSource,
    SeriesKey, SeriesRecording, TraceRecord, WorkerRecording, WorkerSeries, latency_histogram,
};
use benchmaster_record::results::{
    Check, CheckKind, Evidence, NetworkRecord, Response, RunKey, RunParameters, RunRecord, ServiceRecord,
    SessionEnd, SessionRecord, Severity, StudyResults, Unit,
};
use benchmaster_record::samples::{Kind, MetricKey, Point, Samples, Series};
use benchmaster_study::file::StudyFile;
use benchmaster_study::plan::{Plan, PlannedTreatment};
use jiff::Timestamp;

use super::Details;

/// Results without runs, of a study as it is written.
pub fn study(text: &str) -> StudyResults {
    let file = StudyFile::parse("made.toml", text).unwrap_or_else(|problems| panic!("{problems}"));
    let plan = Plan::from_study(&file, "0.0.0").unwrap_or_else(|problems| panic!("{problems}"));
    let session = SessionRecord {
        id: 1,
        started: Timestamp::UNIX_EPOCH,
        ended: Some((Timestamp::UNIX_EPOCH, SessionEnd::Complete)),
        lost_run: None,
        command: "benchmaster run made.toml".into(),
        environment: BTreeMap::new(),
    };
    StudyResults {
        study: plan.study,
        runs: vec![],
        sessions: vec![session],
        hooks: vec![],
        baselines: vec![],
    }
}

/// A study of a directory or an export with one workload, and a factor whose levels set one parameter.
pub fn factor(
    (workload, uses): (&str, &str),
    name: &str,
    parameter: &str,
    levels: &[&str],
    more: &str,
) -> StudyResults {
    let levels = levels.join(", ");
    study(&format!(
        "[study]\nname = \"made\"\n[factors.{name}]\nparameter = \"{parameter}\"\nlevels = [{levels}]\n[design]\nreplicates = 3\n{more}\n\
         [workload.{workload}]\nuse = \"{uses}\"\n"
    ))
}

/// The same results with what every run was asked to do, from the text of the study; without where that cannot be read.
pub fn with_parameters(results: &StudyResults) -> StudyResults {
    let mut results = results.clone();
    let plan = Plan::of_results(&results.study).ok();
    for run in results.runs.iter_mut().filter(|run| run.parameters.workloads.is_empty()) {
        let planned = plan.as_ref().and_then(|plan| plan.treatment(run.key.treatment, run.block));
        let planned = planned.map(PlannedTreatment::parameters).unwrap_or_default();
        if run.parameters == RunParameters::default() {
            run.parameters = planned;
        } else {
            run.parameters.workloads = planned.workloads;
        }
    }
    results
}

/// Adds a run of a treatment with these responses.
pub fn add(
    results: &mut StudyResults,
    treatment: u32,
    recordings: Vec<Recording>,
    responses: &[(&str, f64, Unit)],
) {
    let replicate = results.runs.iter().filter(|run| run.key.treatment == treatment).count() as u32;
    let responses = responses.iter().map(|(name, value, unit)| Response {
        name: (*name).into(),
        value: *value,
        unit: *unit,
    });
    results.runs.push(RunRecord {
        key: RunKey { treatment, replicate },
        position: results.runs.len() as u32,
        stage: 0,
        block: None,
        whole_plot: None,
        session: 1,
        parameters: RunParameters::default(),
        started: Timestamp::UNIX_EPOCH,
        elapsed_ns: 1_000_000_000,
        failure: None,
        recordings,
        responses: responses.collect(),
        checks: vec![],
        events: vec![],
        traces: BTreeMap::new(),
        service: None,
        lab: None,
        server_use: vec![],
        retries: vec![],
    });
}

/// A treatment by its label.
pub fn treatment(results: &StudyResults, label: &str) -> u32 {
    let labels: Vec<_> = results.study.treatments.iter().map(|treatment| &treatment.label).collect();
    let found = results.study.treatments.iter().find(|treatment| treatment.label == label);
    found.unwrap_or_else(|| panic!("{label} is none of {labels:?}")).index
}

/// A check that was stored.
pub fn check(kind: CheckKind, workload: &str, evidence: &[(&str, f64)]) -> Check {
    Check {
        kind,
        severity: Severity::Warning,
        workload: Some(workload.into()),
        message: "Made.".into(),
        evidence: evidence.iter().map(|(name, value)| Evidence::number(*name, *value)).collect(),
    }
}

/// The server and the network of a run.
pub fn service(url: &str) -> ServiceRecord {
    ServiceRecord {
        url: url.into(),
        server: ServedBy::External,
        network: NetworkRecord::default(),
        achieved: None,
    }
}

/// A workload without any operation.
pub fn recording(workload: &str, seconds: f64) -> Recording {
    Recording {
        workload: workload.into(),
        timed: true,
        started_unix_ns: 0,
        length_ns: (seconds * 1e9) as u64,
        interval_ns: 1_000_000_000,
        cut_ns: 0,
        cut_reason: "nothing was cut".into(),
        series: vec![],
        workers: vec![],
        phases: vec![],
        filesets: vec![],
        cache: CacheAction::default(),
        host: HostUse { processors: 8, ..HostUse::default() },
        error_details: vec![],
        verified_bytes: None,
        corruption: None,
        witness: None,
        rpc: None,
        agents: vec![],
        start: None,
        samples: vec![],
        collected: vec![],
        parts: vec![],
        slow: vec![],
        replay: None,
    }
}

fn stats(latencies: &[(u64, u64)], bytes_each: u64) -> OperationStats {
    let mut histogram = latency_histogram();
    let (mut count, mut sum_ns) = (0, 0);
    for &(ns, times) in latencies {
        histogram.saturating_record_n(ns, times);
        count += times;
        sum_ns += ns * times;
    }
    OperationStats {
        count,
        bytes: count * bytes_each,
        errors: 0,
        sum_ns,
        latency: EncodedHistogram::encode(&histogram),
    }
}

/// Adds a series of operations of these latencies in nanoseconds, each so many times.
pub fn series(recording: &mut Recording, kind: OperationKind, bytes_each: u64, latencies: &[(u64, u64)]) {
    recording.series.push(SeriesRecording {
        key: SeriesKey { group: "main".into(), label: kind.name().into(), operation: kind },
        total: stats(latencies, bytes_each),
        intervals: vec![],
        errors: BTreeMap::new(),
        span: Some((0, recording.length_ns)),
        service: None,
    });
}

/// Adds a series by intervals of a second: operations, bytes, and the latency of each in nanoseconds.
pub fn intervals(
    recording: &mut Recording,
    kind: OperationKind,
    intervals: u32,
    of: impl Fn(u32) -> (u64, u64, f64),
) {
    series(recording, kind, 0, &[]);
    let mut all = Vec::new();
    let mut bytes = 0;
    let made: Vec<_> = (0..intervals)
        .map(|index| {
            let (count, moved, ns) = of(index);
            all.push((ns as u64, count));
            bytes += moved;
            IntervalStats { index, stats: OperationStats { bytes: moved, ..stats(&[(ns as u64, count)], 0) } }
        })
        .filter(|interval| interval.stats.count > 0)
        .collect();
    if let Some(series) = recording.series.last_mut() {
        series.total = OperationStats { bytes, ..stats(&all, 0) };
        series.intervals = made;
    }
}

/// Makes clients with one worker each, that share all operations in these proportions.
pub fn workers(recording: &mut Recording, shares: &[f64]) {
    let sum: f64 = shares.iter().sum();
    recording.workers = (0..)
        .zip(shares)
        .map(|(client, share)| {
            let part = |number: u64| (number as f64 * share / sum).round() as u64;
            let of = |(number, series): (u32, &SeriesRecording)| WorkerSeries {
                series: number,
                count: part(series.total.count),
                bytes: part(series.total.bytes),
                sum_ns: part(series.total.sum_ns),
                first_start_ns: Some(0),
                last_end_ns: Some(recording.length_ns),
                ..WorkerSeries::default()
            };
            WorkerRecording {
                client,
                group: "main".into(),
                worker: 0,
                start_ns: 0,
                end_ns: recording.length_ns,
                series: (0..).zip(&recording.series).map(of).collect(),
                ..WorkerRecording::default()
            }
        })
        .collect();
}

/// Files that a workload uses.
pub fn files(recording: &mut Recording, files: u64, bytes: u64) {
    let name = "files".into();
    recording.filesets.push(FilesetFacts { name, files, bytes, reused: false, cached_bytes: None });
}

/// One kind of call: operation, calls, bytes of each reply, mean queue and round trip in microseconds.
pub type Call<'a> = (&'a str, u64, u64, f64, f64);

/// RPCs of the measured phase.
pub fn rpcs(recording: &mut Recording, source: RpcSource, version: &str, calls: &[Call<'_>]) {
    let rows = calls.iter().map(|&(operation, ops, reply, queue_us, rtt_us)| {
        let sum = |us: f64| (us * 1e3 * ops as f64) as u64;
        RpcRow {
            program: if version.starts_with('4') { "NFSv4" } else { "NFSv3" }.into(),
            operation: operation.into(),
            counters: RpcCounters {
                ops,
                transmissions: ops,
                timeouts: 0,
                bytes_sent: ops * 200,
                bytes_received: ops * reply,
                queue_ns: sum(queue_us),
                rtt_ns: sum(rtt_us),
                execute_ns: sum(queue_us + rtt_us),
                errors: 0,
            },
        }
    });
    let measure = RpcPhase { phase: Phase::Measure, rows: rows.collect(), events: BTreeMap::new() };
    recording.rpc = Some(RpcRecording {
        source,
        phases: vec![measure],
        client_cpu_ns: (0, 0),
        connection: ConnectionFacts {
            server: "nfs://server/export".into(),
            version: NfsVersion::from_name(version),
            rsize: 1 << 20,
            wsize: 1 << 20,
            nconnect: 1,
            slots: version.starts_with('4').then_some(64),
            clients: 1,
            threads: None,
            tls: None,
        },
        problems: vec![],
    });
}

/// Events of the measured phase.
pub fn events(recording: &mut Recording, events: &[(&str, u64)]) {
    let phase = recording.rpc.as_mut().and_then(|rpc| rpc.phases.first_mut()).unwrap();
    phase.events.extend(events.iter().map(|(name, count)| ((*name).into(), *count)));
}

/// Agents with one client each, and one without for the server.
pub fn agents(recording: &mut Recording, clients: u32) {
    let agent = |name: String, first_client: u32, clients: u32| AgentRecording {
        host: name.clone(),
        name,
        first_client,
        clients,
        ..AgentRecording::default()
    };
    recording.agents = (0..clients).map(|client| agent(format!("c{}", client + 1), client, 1)).collect();
    recording.agents.push(agent("server".into(), 0, 0));
}

/// Samples of an agent: a reading at each of these times in seconds.
pub fn sample(
    recording: &mut Recording,
    agent: &str,
    of: (&str, &str, &str),
    kind: Kind,
    points: &[(f64, f64)],
) {
    let (sampler, metric, instance) = of;
    if !recording.samples.iter().any(|host| host.agent == agent) {
        recording.samples.push(HostSamples { agent: agent.into(), samples: Samples::default() });
    }
    let host = recording.samples.iter_mut().find(|host| host.agent == agent).unwrap();
    host.samples.series.push(Series {
        key: MetricKey { sampler: sampler.into(), metric: metric.into(), instance: instance.into() },
        kind,
        unit: "1".into(),
        points: points.iter().map(|(s, value)| Point { time_ns: (s * 1e9) as i64, value: *value }).collect(),
    });
}

/// Traces of the runs of a study, by workload: all runs have the same.
#[derive(Debug, Default)]
pub struct Traces(pub BTreeMap<String, Vec<TraceRecord>>);

impl Details for Traces {
    fn trace(
        &self,
        _: &RunRecord,
        workload: &str,
        take: &mut dyn FnMut(&[TraceRecord]),
    ) -> Option<Result<(), String>> {
        let records = self.0.get(workload)?;
        records.chunks(1000).for_each(take);
        Some(Ok(()))
    }
}
