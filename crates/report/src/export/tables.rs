//! The tables of an export.

use std::collections::BTreeMap;

use benchmaster_record::nfs::NfsVersion;

use benchmaster_record::environment::Environment;
use benchmaster_record::recording::{
    EncodedHistogram, IntervalStats, OperationStats, Recording, RpcRecording, RpcSource, SeriesRecording,
    StopReason, WorkerRecording, WorkerSeries,
};
use benchmaster_record::results::{
    Check, Response, RunRecord, ServerUse, Severity, StudyRecord, StudyResults,
};
use benchmaster_store::factor_columns;

use super::ExportError;
use super::table::{Table, TableBuilder};
use crate::document::word;

pub(super) mod hosts;

/// Every column that is not a factor, over all tables: a factor's column has the same name in each of them.
pub(super) fn fixed_columns() -> Vec<&'static str> {
    let names = "treatment label replicate position session started elapsed_ns failure severity response value unit \
                 workload group series operation timed started_unix_ns length_ns interval_ns cut_ns cut_reason \
                 cache_requested cache_done process_user_ns process_system_ns host_busy host_steal processors \
                 clock_step_ns clock_drift trace_stall_ns free_before_bytes free_after_bytes read_ahead_kib written_back_bytes null_rate verified_bytes \
                 corruption interval start_ns end_ns counted count bytes errors sum_ns min_ns mean_ns p50_ns p90_ns \
                 p99_ns p999_ns max_ns service_p50_ns service_p99_ns service_p999_ns service_max_ns client worker \
                 cpu_user_ns cpu_system_ns stop first_latency_ns first_start_ns last_end_ns check message evidence host \
                 name phase program ops transmissions timeouts bytes_sent bytes_received queue_ns rtt_ns execute_ns \
                 source url server network delay_ns version rsize wsize nconnect slots tls clients threads client_cpu_ns \
                 server_calls server_cpu_ns jitter_ns bandwidth loss base_rtt_ns lateness_p99_ns packets lost overflowed \
                 agent first_client offset_ns bound_ns exchanges drift spread_ns server_spread_ns stagger_ns reason ticks \
                 late cpu_ns problems sampler metric instance kind time_ns command ended output step succeeded time \
                 target rtt_count rtt_min_ns rtt_median_ns rtt_p99_ns flows direction throughput half_width fairness \
                 retransmissions";
    names.split(' ').collect()
}

/// All tables in a fixed order.
pub(super) fn all(results: &StudyResults) -> Result<Vec<Table>, ExportError> {
    Ok(vec![
        runs(results),
        responses(results),
        recordings(results),
        operations(results)?,
        intervals(results)?,
        workers(results),
        rpcs(results),
        services(results),
        checks(results),
        hosts::agents(results),
        hosts::clients(results),
        hosts::starts(results),
        hosts::retries(results),
        hosts::samplings(results),
        hosts::baselines(results),
        hosts::hooks(results),
        environment(results),
    ])
}

/// A recording with one of its parts.
type Part<'a, P> = (&'a RunRecord, &'a Recording, &'a P);

fn parts<'a, P>(results: &'a StudyResults, of: impl Fn(&'a Recording) -> &'a [P]) -> Vec<Part<'a, P>> {
    let mut rows = Vec::new();
    for run in &results.runs {
        for recording in &run.recordings {
            rows.extend(of(recording).iter().map(|part| (run, recording, part)));
        }
    }
    rows
}

fn runs(results: &StudyResults) -> Table {
    let rows: Vec<&RunRecord> = results.runs.iter().collect();
    of_runs("runs", &rows, &results.study, |run| run)
        .unsigned("session", |run| Some(run.session.into()))
        .text("started", |run| Some(run.started.to_string()))
        .unsigned("elapsed_ns", |run| Some(run.elapsed_ns))
        .text("failure", |run| run.failure.clone())
        .text("severity", |run| worst(run).map(word))
        .build()
}

/// One row per run and response.
pub(super) fn responses(results: &StudyResults) -> Table {
    let rows: Vec<(&RunRecord, &Response)> = results
        .runs
        .iter()
        .flat_map(|run| run.responses.iter().map(move |response| (run, response)))
        .collect();
    of_runs("responses", &rows, &results.study, |row| row.0)
        .text("response", |(_, response)| Some(response.name.as_str()))
        .real("value", |(_, response)| Some(response.value))
        .text("unit", |(_, response)| Some(response.unit.symbol()))
        .text("severity", |(run, _)| worst(run).map(word))
        .build()
}

/// One row per run and workload.
fn recordings(results: &StudyResults) -> Table {
    let rows: Vec<(&RunRecord, &Recording)> =
        results.runs.iter().flat_map(|run| run.recordings.iter().map(move |r| (run, r))).collect();
    of_runs("recordings", &rows, &results.study, |row| row.0)
        .text("workload", |(_, r)| Some(r.workload.as_str()))
        .flag("timed", |(_, r)| Some(r.timed))
        .signed("started_unix_ns", |(_, r)| Some(r.started_unix_ns))
        .unsigned("length_ns", |(_, r)| Some(r.length_ns))
        .unsigned("interval_ns", |(_, r)| Some(r.interval_ns))
        .unsigned("cut_ns", |(_, r)| Some(r.cut_ns))
        .text("cut_reason", |(_, r)| Some(r.cut_reason.as_str()))
        .text("cache_requested", |(_, r)| Some(r.cache.requested.as_str()))
        .text("cache_done", |(_, r)| Some(r.cache.done.as_str()))
        .unsigned("process_user_ns", |(_, r)| Some(r.host.process_user_ns))
        .unsigned("process_system_ns", |(_, r)| Some(r.host.process_system_ns))
        .real("host_busy", |(_, r)| r.host.host_busy)
        .real("host_steal", |(_, r)| r.host.host_steal)
        .unsigned("processors", |(_, r)| Some(r.host.processors.into()))
        .signed("clock_step_ns", |(_, r)| Some(r.host.clock_step_ns))
        .real("clock_drift", |(_, r)| Some(r.host.clock_drift))
        .unsigned("trace_stall_ns", |(_, r)| Some(r.host.trace_stall_ns))
        .unsigned("free_before_bytes", |(_, r)| r.host.free_before)
        .unsigned("free_after_bytes", |(_, r)| r.host.free_after)
        .unsigned("read_ahead_kib", |(_, r)| r.host.read_ahead_kib)
        .unsigned("written_back_bytes", |(_, r)| r.host.written_back)
        .real("null_rate", |(_, r)| r.host.null_rate)
        .unsigned("verified_bytes", |(_, r)| r.verified_bytes)
        .text("corruption", |(_, r)| r.corruption.clone())
        .build()
}

/// A series of a recording of a run.
struct SeriesOfRun<'a> {
    run: &'a RunRecord,
    recording: &'a Recording,
    series: &'a SeriesRecording,
}

fn all_series(results: &StudyResults) -> impl Iterator<Item = SeriesOfRun<'_>> {
    results.runs.iter().flat_map(|run| {
        run.recordings.iter().flat_map(move |recording| {
            recording.series.iter().map(move |series| SeriesOfRun { run, recording, series })
        })
    })
}

struct Operation<'a> {
    series_of: SeriesOfRun<'a>,
    latency: Latency,
    service: Latency,
}

fn operations(results: &StudyResults) -> Result<Table, ExportError> {
    let rows = all_series(results)
        .map(|series_of| {
            let latency = Latency::of(&series_of, &series_of.series.total.latency)?;
            let service = match &series_of.series.service {
                Some(service) => Latency::of(&series_of, service)?,
                None => Latency::default(),
            };
            Ok(Operation { series_of, latency, service })
        })
        .collect::<Result<Vec<_>, ExportError>>()?;
    let table = of_runs("operations", &rows, &results.study, |row| row.series_of.run);
    let table = of_series(table, |row| &row.series_of)
        .unsigned("length_ns", |row| Some(row.series_of.recording.length_ns))
        .unsigned("cut_ns", |row| Some(row.series_of.recording.cut_ns));
    Ok(of_stats(table, |row| &row.series_of.series.total, |row| &row.latency)
        .unsigned("service_p50_ns", |row| row.service.p50)
        .unsigned("service_p99_ns", |row| row.service.p99)
        .unsigned("service_p999_ns", |row| row.service.p999)
        .unsigned("service_max_ns", |row| row.service.max)
        .build())
}

struct Interval<'a> {
    series_of: SeriesOfRun<'a>,
    interval: &'a IntervalStats,
    latency: Latency,
}

impl Interval<'_> {
    fn start_ns(&self) -> u64 {
        u64::from(self.interval.index) * self.series_of.recording.interval_ns
    }

    /// The last interval ends with the recording.
    fn end_ns(&self) -> u64 {
        let end = self.start_ns() + self.series_of.recording.interval_ns;
        end.min(self.series_of.recording.length_ns.max(self.start_ns()))
    }
}

fn intervals(results: &StudyResults) -> Result<Table, ExportError> {
    let mut rows = Vec::new();
    for SeriesOfRun { run, recording, series } in all_series(results) {
        for interval in &series.intervals {
            let series_of = SeriesOfRun { run, recording, series };
            let latency = Latency::of(&series_of, &interval.stats.latency)?;
            rows.push(Interval { series_of, interval, latency });
        }
    }
    let table = of_runs("intervals", &rows, &results.study, |row| row.series_of.run);
    let table = of_series(table, |row| &row.series_of)
        .unsigned("interval", |row| Some(row.interval.index.into()))
        .unsigned("start_ns", |row| Some(row.start_ns()))
        .unsigned("end_ns", |row| Some(row.end_ns()))
        .flag("counted", |row| Some(row.start_ns() >= row.series_of.recording.cut_ns));
    Ok(of_stats(table, |row| &row.interval.stats, |row| &row.latency).build())
}

fn workers(results: &StudyResults) -> Table {
    let workers = parts(results, |recording| &recording.workers).into_iter();
    let rows: Vec<_> = workers
        .flat_map(|(run, recording, worker)| {
            worker.series.iter().map(move |done| (run, recording, worker, done))
        })
        .collect();
    type Row<'a> = (&'a RunRecord, &'a Recording, &'a WorkerRecording, &'a WorkerSeries);
    let key = |row: &Row<'_>| row.1.series.get(row.3.series as usize).map(|series| series.key.clone());
    of_runs("workers", &rows, &results.study, |row| row.0)
        .text("workload", |row| Some(row.1.workload.as_str()))
        .unsigned("client", |row| Some(row.2.client.into()))
        .text("group", |row| Some(row.2.group.as_str()))
        .unsigned("worker", |row| Some(row.2.worker.into()))
        .text("series", |row| key(row).map(|key| key.label))
        .text("operation", |row| key(row).map(|key| key.operation.name()))
        .unsigned("start_ns", |row| Some(row.2.start_ns))
        .unsigned("end_ns", |row| Some(row.2.end_ns))
        .unsigned("cpu_user_ns", |row| row.2.cpu_ns.map(|(user, _)| user))
        .unsigned("cpu_system_ns", |row| row.2.cpu_ns.map(|(_, system)| system))
        .text("stop", |row| Some(stop_name(row.2.stop)))
        .unsigned("count", |row| Some(row.3.count))
        .unsigned("bytes", |row| Some(row.3.bytes))
        .unsigned("errors", |row| Some(row.3.errors))
        .unsigned("sum_ns", |row| Some(row.3.sum_ns))
        .real("mean_ns", |row| mean(row.3.sum_ns, row.3.count))
        .unsigned("first_latency_ns", |row| row.3.first_latency_ns)
        .unsigned("first_start_ns", |row| row.3.first_start_ns)
        .unsigned("last_end_ns", |row| row.3.last_end_ns)
        .build()
}

/// One row per kind of call and phase, with the columns of `mountstats`.
fn rpcs(results: &StudyResults) -> Table {
    let phases = parts(results, |recording| recording.rpc.as_ref().map_or(&[][..], |rpc| &rpc.phases));
    let rows: Vec<_> = phases
        .into_iter()
        .flat_map(|(run, recording, phase)| {
            phase.rows.iter().map(move |row| (run, recording, phase.phase.name(), row))
        })
        .collect();
    of_runs("rpcs", &rows, &results.study, |row| row.0)
        .text("workload", |row| Some(row.1.workload.as_str()))
        .text("phase", |row| Some(row.2))
        .text("program", |row| Some(row.3.program.as_str()))
        .text("operation", |row| Some(row.3.operation.as_str()))
        .unsigned("ops", |row| Some(row.3.ops))
        .unsigned("transmissions", |row| Some(row.3.transmissions))
        .unsigned("timeouts", |row| Some(row.3.timeouts))
        .unsigned("bytes_sent", |row| Some(row.3.bytes_sent))
        .unsigned("bytes_received", |row| Some(row.3.bytes_received))
        .unsigned("queue_ns", |row| Some(row.3.queue_ns))
        .unsigned("rtt_ns", |row| Some(row.3.rtt_ns))
        .unsigned("execute_ns", |row| Some(row.3.execute_ns))
        .unsigned("errors", |row| Some(row.3.errors))
        .build()
}

/// One row per recording with RPCs: how the server was reached, and what it and the clients used.
fn services(results: &StudyResults) -> Table {
    let rows: Vec<Part<'_, RpcRecording>> = parts(results, |recording| recording.rpc.as_slice());
    fn used<'a>((run, recording, _): &Part<'a, RpcRecording>) -> Option<&'a ServerUse> {
        run.server_use.iter().find(|used| used.workload == recording.workload)
    }
    let service = |row: &Part<'_, RpcRecording>| row.0.service.clone();
    of_runs("services", &rows, &results.study, |row| row.0)
        .text("workload", |row| Some(row.1.workload.as_str()))
        .text("source", |row| Some(if row.2.source == RpcSource::Client { "client" } else { "kernel" }))
        .text("url", |row| {
            service(row).map_or_else(|| Some(row.2.connection.server.clone()), |s| Some(s.url))
        })
        .text("server", |row| service(row).map(|s| s.server.name()))
        .text("network", |row| service(row).map(|s| s.network.emulator.name()))
        .unsigned("delay_ns", |row| service(row).map(|s| s.network.delay_ns))
        .unsigned("jitter_ns", |row| service(row).map(|s| s.network.jitter_ns))
        .unsigned("bandwidth", |row| service(row).and_then(|s| s.network.bandwidth))
        .real("loss", |row| service(row).map(|s| s.network.loss))
        .unsigned("base_rtt_ns", |row| service(row).and_then(|s| s.network.base_rtt_ns))
        .text("version", |row| row.2.connection.version.map(NfsVersion::name))
        .unsigned("rsize", |row| Some(row.2.connection.rsize))
        .unsigned("wsize", |row| Some(row.2.connection.wsize))
        .unsigned("nconnect", |row| Some(row.2.connection.nconnect.into()))
        .unsigned("slots", |row| row.2.connection.slots.map(u64::from))
        .text("tls", |row| row.2.connection.tls.clone())
        .unsigned("clients", |row| Some(row.2.connection.clients.into()))
        .unsigned("threads", |row| row.2.connection.threads.map(u64::from))
        .unsigned("client_cpu_ns", |row| Some(row.2.client_cpu_ns.0 + row.2.client_cpu_ns.1))
        .unsigned("server_calls", |row| used(row).map(|used| used.calls))
        .unsigned("server_cpu_ns", |row| used(row).and_then(|used| used.cpu_ns))
        .unsigned("packets", |row| service(row)?.achieved?.packets)
        .unsigned("lost", |row| service(row)?.achieved?.lost)
        .unsigned("overflowed", |row| service(row)?.achieved?.overflowed)
        .unsigned("lateness_p99_ns", |row| service(row)?.achieved?.lateness_p99_ns)
        .build()
}

fn checks(results: &StudyResults) -> Table {
    let rows: Vec<(&RunRecord, &Check)> =
        results.runs.iter().flat_map(|run| run.checks.iter().map(move |check| (run, check))).collect();
    of_runs("checks", &rows, &results.study, |row| row.0)
        .text("workload", |(_, check)| check.workload.clone())
        .text("check", |(_, check)| Some(check.kind.name()))
        .text("severity", |(_, check)| Some(word(check.severity)))
        .text("message", |(_, check)| Some(check.message.as_str()))
        .text("evidence", |(_, check)| Some(evidence(check)))
        .build()
}

/// One row per session, host and fact.
fn environment(results: &StudyResults) -> Table {
    let mut rows = Vec::new();
    for session in &results.sessions {
        for (host, environment) in &session.environment {
            rows.extend(facts(environment).into_iter().map(|(name, value)| (session.id, host, name, value)));
        }
    }
    TableBuilder::new("environment", &rows)
        .unsigned("session", |row| Some(row.0.into()))
        .text("host", |row| Some(row.1.as_str()))
        .text("name", |row| Some(row.2.as_str()))
        .text("value", |row| Some(row.3.as_str()))
        .build()
}

/// The facts that are known, by name; those of the target begin with `target.`, kernel settings with `sysctl.`.
fn facts(e: &Environment) -> Vec<(String, String)> {
    let number = |n: Option<u64>| n.map(|n| n.to_string());
    let mut facts = vec![
        ("benchmaster", Some(e.benchmaster.clone())),
        ("kernel", Some(e.kernel.clone())),
        ("distribution", e.distribution.clone()),
        ("cpu_model", e.cpu_model.clone()),
        ("processors", Some(e.processors.to_string())),
        ("processors_allowed", Some(e.processors_allowed.to_string())),
        ("memory_total", number(e.memory_total)),
        ("memory_available", number(e.memory_available)),
        ("clock_source", e.clock_source.clone()),
        ("virtualization", e.virtualization.clone()),
        ("governor", e.governor.clone()),
    ];
    if let Some(t) = &e.target {
        facts.extend([
            ("target.path", Some(t.path.clone())),
            ("target.mount_point", Some(t.mount_point.clone())),
            ("target.source", Some(t.source.clone())),
            ("target.file_system", Some(t.file_system.clone())),
            ("target.options", Some(t.options.clone())),
            ("target.mount_line", Some(t.mount_line.clone())),
            ("target.total_bytes", number(Some(t.total_bytes))),
            ("target.free_bytes", number(Some(t.free_bytes))),
            ("target.free_files", number(t.free_files)),
            ("target.read_ahead_kib", number(t.read_ahead_kib)),
        ]);
    }
    let known = facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    known.chain(e.sysctls.iter().map(|(name, value)| (format!("sysctl.{name}"), value.clone()))).collect()
}

/// Begins a table with the columns that say which run a row is of.
fn of_runs<'a, R>(
    name: &'static str,
    rows: &'a [R],
    study: &StudyRecord,
    run: impl Fn(&R) -> &RunRecord,
) -> TableBuilder<'a, R> {
    let treatment = |row: &R| study.treatments.get(run(row).key.treatment as usize);
    let factors: Vec<String> = study.factors.iter().map(|factor| factor.name.clone()).collect();
    let mut table = TableBuilder::new(name, rows)
        .unsigned("treatment", |row| Some(run(row).key.treatment.into()))
        .text("label", |row| treatment(row).map(|t| t.label.clone()));
    for (index, column) in factor_columns(&factors, &fixed_columns()).into_iter().enumerate() {
        table = table.text(column, |row| {
            let level = *treatment(row)?.levels.get(index)?;
            study.factors[index].levels.get(level as usize).cloned()
        });
    }
    table
        .unsigned("replicate", |row| Some(run(row).key.replicate.into()))
        .unsigned("position", |row| Some(run(row).position.into()))
}

fn of_series<'a, R>(
    table: TableBuilder<'a, R>,
    series_of: impl Fn(&R) -> &SeriesOfRun<'_>,
) -> TableBuilder<'a, R> {
    table
        .text("workload", |row| Some(series_of(row).recording.workload.clone()))
        .text("group", |row| Some(series_of(row).series.key.group.clone()))
        .text("series", |row| Some(series_of(row).series.key.label.clone()))
        .text("operation", |row| Some(series_of(row).series.key.operation.name()))
}

fn of_stats<'a, R>(
    table: TableBuilder<'a, R>,
    stats: impl Fn(&R) -> &OperationStats,
    latency: impl Fn(&R) -> &Latency,
) -> TableBuilder<'a, R> {
    table
        .unsigned("count", |row| Some(stats(row).count))
        .unsigned("bytes", |row| Some(stats(row).bytes))
        .unsigned("errors", |row| Some(stats(row).errors))
        .unsigned("sum_ns", |row| Some(stats(row).sum_ns))
        .unsigned("min_ns", |row| latency(row).min)
        .real("mean_ns", |row| mean(stats(row).sum_ns, stats(row).count))
        .unsigned("p50_ns", |row| latency(row).p50)
        .unsigned("p90_ns", |row| latency(row).p90)
        .unsigned("p99_ns", |row| latency(row).p99)
        .unsigned("p999_ns", |row| latency(row).p999)
        .unsigned("max_ns", |row| latency(row).max)
}

/// Percentiles of a histogram; none when nothing was counted.
#[derive(Debug, Default)]
struct Latency {
    min: Option<u64>,
    p50: Option<u64>,
    p90: Option<u64>,
    p99: Option<u64>,
    p999: Option<u64>,
    max: Option<u64>,
}

impl Latency {
    fn of(series_of: &SeriesOfRun<'_>, encoded: &EncodedHistogram) -> Result<Self, ExportError> {
        if encoded.0.is_empty() {
            return Ok(Self::default());
        }
        let histogram = encoded.decode().map_err(|source| ExportError::Histogram {
            run: series_of.run.position,
            workload: series_of.recording.workload.clone(),
            series: series_of.series.key.label.clone(),
            source,
        })?;
        if histogram.is_empty() {
            return Ok(Self::default());
        }
        let at = |quantile| Some(histogram.value_at_quantile(quantile));
        Ok(Self {
            min: Some(histogram.min()),
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: Some(histogram.max()),
        })
    }
}

fn mean(sum: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| sum as f64 / count as f64)
}

/// The worst of a run's checks.
pub(super) fn worst(run: &RunRecord) -> Option<Severity> {
    run.checks.iter().map(|check| check.severity).max()
}

fn stop_name(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Time => "time",
        StopReason::Work => "work",
        StopReason::Errors => "errors",
        StopReason::Stopped => "stopped",
    }
}

/// The numbers of a check as a JSON object.
fn evidence(check: &Check) -> String {
    let numbers: BTreeMap<&str, f64> = check.evidence.iter().map(|one| (&*one.name, one.value)).collect();
    serde_json::json!(numbers).to_string()
}
