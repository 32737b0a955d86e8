//! Records → rows. Every function works in the caller's transaction.

mod beside;
mod course;
mod lab;
mod wire;

pub(crate) use self::course::hook;
pub(crate) use self::wire::baseline;

use std::collections::BTreeMap;

use benchmaster_telemetry::Environment;
use benchmaster_workload::recording::{OperationStats, Recording, SeriesRecording, WorkerRecording};
use rusqlite::{Connection, Transaction, named_params, params};
use serde::Serialize;

use crate::record::{Check, Replication, RunRecord, StageRecord, StudyRecord, TreatmentRecord};

/// Why a record did not become rows.
#[derive(Debug)]
pub(crate) enum RowError {
    Sqlite(rusqlite::Error),
    Record(String),
}

impl From<rusqlite::Error> for RowError {
    fn from(error: rusqlite::Error) -> Self {
        match error {
            // An unsigned number above 2^63, which SQLite cannot hold.
            rusqlite::Error::ToSqlConversionFailure(_) => Self::Record(error.to_string()),
            error => Self::Sqlite(error),
        }
    }
}

type Rows = Result<(), RowError>;

pub(crate) fn study(transaction: &Transaction<'_>, study: &StudyRecord) -> Rows {
    check_study(study)?;
    let (min, max, width) = columns_of(study.replicates);
    execute(
        transaction,
        "INSERT INTO studies VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        params![
            study.id,
            study.name,
            study.description,
            study.text,
            study.seed.to_string(),
            study.generator,
            study.design,
            study.order,
            min,
            max,
            width,
            study.confidence,
            study.primary_response,
            study.version,
            json(&study.design_details)?
        ],
    )?;
    for (factor, record) in (0u32..).zip(&study.factors) {
        execute(transaction, "INSERT INTO factors VALUES (?1, ?2)", params![factor, record.name])?;
        for (level, (name, settings)) in (0u32..).zip(record.levels.iter().zip(&record.settings)) {
            let value = record.values.as_ref().and_then(|values| values.get(level as usize));
            let sql = "INSERT INTO levels VALUES (?1, ?2, ?3, ?4)";
            execute(transaction, sql, params![factor, level, name, value])?;
            for (parameter, value) in settings {
                let sql = "INSERT INTO settings VALUES (?1, ?2, ?3, ?4)";
                execute(transaction, sql, params![factor, level, parameter, value])?;
            }
        }
    }
    for record in &study.treatments {
        treatment(transaction, record)?;
    }
    for (ordinal, workload) in (0u32..).zip(&study.workloads) {
        let sql = "INSERT INTO workloads VALUES (?1, ?2, ?3)";
        execute(transaction, sql, params![ordinal, workload.name, workload.use_name])?;
    }
    for record in &study.stages {
        stage(transaction, record)?;
    }
    Ok(())
}

fn treatment(transaction: &Transaction<'_>, treatment: &TreatmentRecord) -> Rows {
    execute(
        transaction,
        "INSERT INTO treatments VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            treatment.index,
            treatment.label,
            treatment.stage,
            treatment.block,
            treatment.whole_plot,
            treatment.centre
        ],
    )?;
    for (factor, level) in (0u32..).zip(&treatment.levels) {
        let sql = "INSERT INTO treatment_levels VALUES (?1, ?2, ?3)";
        execute(transaction, sql, params![treatment.index, factor, level])?;
    }
    Ok(())
}

fn stage(transaction: &Transaction<'_>, stage: &StageRecord) -> Rows {
    let (min, max, width) = columns_of(stage.replicates);
    let made = stage.made.to_string();
    execute(
        transaction,
        "INSERT INTO stages VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![stage.number, name_of(&stage.kind)?, stage.reason, min, max, width, made],
    )?;
    for treatment in &stage.treatments {
        let sql = "INSERT INTO stage_treatments VALUES (?1, ?2)";
        execute(transaction, sql, params![stage.number, treatment])?;
    }
    Ok(())
}

/// Adds a stage to `study` and to the database; the new treatments are those at the end of `study`, which the caller has
/// put there.
pub(crate) fn add_stage(transaction: &Transaction<'_>, study: &StudyRecord, new: usize) -> Rows {
    check_study(study)?;
    let first = study.treatments.len().saturating_sub(new);
    for record in study.treatments.iter().skip(first) {
        treatment(transaction, record)?;
    }
    match study.stages.last() {
        Some(added) => stage(transaction, added),
        None => Ok(()),
    }
}

fn columns_of(replicates: Replication) -> (u32, u32, Option<f64>) {
    match replicates {
        Replication::Fixed(n) => (n, n, None),
        Replication::Sequential { min, max, relative_half_width } => (min, max, Some(relative_half_width)),
    }
}

fn json<T: Serialize>(value: &T) -> Result<String, RowError> {
    serde_json::to_string(value).map_err(|error| RowError::Record(error.to_string()))
}

/// What the tables cannot express, and would thus come back as something else.
fn check_study(study: &StudyRecord) -> Rows {
    let fault = |problem: String| Err(RowError::Record(problem));
    for factor in &study.factors {
        if factor.levels.len() != factor.settings.len() {
            return fault(format!("factor `{}` does not have settings for each level", factor.name));
        }
        let values = factor.values.as_deref();
        if values.is_some_and(|v| v.len() != factor.levels.len() || v.iter().any(|v| !v.is_finite())) {
            return fault(format!("factor `{}` does not have a value for each level", factor.name));
        }
    }
    for (index, treatment) in (0u32..).zip(&study.treatments) {
        if treatment.index != index {
            return fault(format!(
                "treatment `{}` is number {index}, not {}",
                treatment.label, treatment.index
            ));
        }
        let levels = treatment.levels.iter().zip(&study.factors);
        if treatment.levels.len() != study.factors.len()
            || levels.clone().any(|(&level, factor)| level as usize >= factor.levels.len())
        {
            return fault(format!("treatment `{}` does not have a level of each factor", treatment.label));
        }
    }
    for (number, stage) in (1u32..).zip(&study.stages) {
        let label = stage.kind.name();
        if stage.number != number {
            return fault(format!("the stage `{label}` is number {number}, not {}", stage.number));
        }
        let known = |treatment: &u32| {
            study.treatments.get(*treatment as usize).is_some_and(|treatment| treatment.stage <= number)
        };
        let ascending = stage.treatments.is_sorted_by(|a, b| a < b);
        if stage.treatments.is_empty() || !ascending || !stage.treatments.iter().all(known) {
            return fault(format!("stage {number} does not run treatments of the study, each once"));
        }
    }
    let stages = study.stages.len();
    if let Some(treatment) = study.treatments.iter().find(|treatment| treatment.stage as usize > stages) {
        return fault(format!(
            "treatment `{}` is of stage {}, which is not there",
            treatment.label, treatment.stage
        ));
    }
    let widths = std::iter::once(&study.replicates).chain(study.stages.iter().map(|stage| &stage.replicates));
    for replicates in widths {
        match replicates {
            Replication::Sequential { relative_half_width, .. } if !relative_half_width.is_finite() => {
                return fault(format!("the relative half width {relative_half_width} is no number"));
            }
            _ => {}
        }
    }
    Ok(())
}

pub(crate) fn environments(
    transaction: &Transaction<'_>,
    session: u32,
    all: &BTreeMap<String, Environment>,
) -> Rows {
    execute(transaction, "DELETE FROM environments WHERE session = ?1", params![session])?;
    for (name, e) in all {
        let t = e.target.as_ref();
        execute(
            transaction,
            "INSERT INTO environments VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, \
             ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24)",
            params![
                session,
                name,
                e.host,
                e.benchmaster,
                e.kernel,
                e.distribution,
                e.cpu_model,
                e.processors,
                e.processors_allowed,
                e.memory_total,
                e.memory_available,
                e.clock_source,
                e.virtualization,
                e.governor,
                t.map(|t| &t.path),
                t.map(|t| &t.mount_point),
                t.map(|t| &t.source),
                t.map(|t| &t.file_system),
                t.map(|t| &t.options),
                t.map(|t| &t.mount_line),
                t.map(|t| t.total_bytes),
                t.map(|t| t.free_bytes),
                t.and_then(|t| t.free_files),
                t.and_then(|t| t.read_ahead_kib)
            ],
        )?;
        for (sysctl, value) in &e.sysctls {
            let sql = "INSERT INTO sysctls VALUES (?1, ?2, ?3, ?4)";
            execute(transaction, sql, params![session, name, sysctl, value])?;
        }
    }
    Ok(())
}

pub(crate) fn run(transaction: &Transaction<'_>, run: &RunRecord) -> Rows {
    execute(
        transaction,
        "INSERT INTO runs (treatment, replicate, position, session, started, elapsed_ns, failure, stage, block, \
         whole_plot) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            run.key.treatment,
            run.key.replicate,
            run.position,
            run.session,
            run.started.to_string(),
            run.elapsed_ns,
            run.failure,
            run.stage,
            run.block,
            run.whole_plot
        ],
    )?;
    let id = transaction.last_insert_rowid();
    for (ordinal, record) in (0u32..).zip(&run.recordings) {
        recording(transaction, id, ordinal, record)?;
    }
    for (ordinal, response) in (0u32..).zip(&run.responses) {
        if response.value.is_nan() {
            return Err(RowError::Record(format!("the response `{}` is not a number", response.name)));
        }
        let unit = name_of(&response.unit)?;
        let sql = "INSERT INTO responses VALUES (?1, ?2, ?3, ?4, ?5)";
        execute(transaction, sql, params![id, ordinal, response.name, response.value, unit])?;
    }
    for (ordinal, record) in (0u32..).zip(&run.checks) {
        check(transaction, id, ordinal, record)?;
    }
    for (ordinal, event) in (0u32..).zip(&run.events) {
        let sql = "INSERT INTO events VALUES (?1, ?2, ?3, ?4, ?5)";
        execute(transaction, sql, params![id, ordinal, event.time.to_string(), event.kind, event.text])?;
    }
    for (workload, path) in &run.traces {
        execute(transaction, "INSERT INTO traces VALUES (?1, ?2, ?3)", params![id, workload, path])?;
    }
    course::retries(transaction, id, &run.retries)?;
    if let Some(record) = &run.lab {
        lab::lab(transaction, id, record)?;
    }
    wire::run(transaction, id, run)
}

fn check(connection: &Connection, run: i64, ordinal: u32, check: &Check) -> Rows {
    let sql = "INSERT INTO checks VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let severity = name_of(&check.severity)?;
    execute(connection, sql, params![run, ordinal, check.id, severity, check.workload, check.message])?;
    for (name, value) in &check.evidence {
        let sql = "INSERT INTO check_evidence VALUES (?1, ?2, ?3, ?4)";
        execute(connection, sql, params![run, ordinal, name, value])?;
    }
    Ok(())
}

fn recording(connection: &Connection, run: i64, ordinal: u32, r: &Recording) -> Rows {
    execute(
        connection,
        "INSERT INTO recordings (run_id, ordinal, workload, timed, started_unix_ns, length_ns, interval_ns, cut_ns, \
         cut_reason, cache_requested, cache_done, process_user_ns, process_system_ns, host_busy, host_steal, \
         processors, clock_step_ns, clock_drift, trace_stall_ns, free_before_bytes, free_after_bytes, null_rate, \
         verified_bytes, corruption, operations_hash) VALUES (:run, :ordinal, :workload, :timed, :started, :length, :interval, :cut, \
         :cut_reason, :cache_requested, :cache_done, :user, :system, :busy, :steal, :processors, :step, :drift, \
         :stall, :free_before, :free_after, :null_rate, :verified, :corruption, :operations_hash)",
        named_params! {
            ":run": run,
            ":ordinal": ordinal,
            ":workload": r.workload,
            ":timed": r.timed,
            ":started": r.started_unix_ns,
            ":length": r.length_ns,
            ":interval": r.interval_ns,
            ":cut": r.cut_ns,
            ":cut_reason": r.cut_reason,
            ":cache_requested": r.cache.requested,
            ":cache_done": r.cache.done,
            ":user": r.host.process_user_ns,
            ":system": r.host.process_system_ns,
            ":busy": r.host.host_busy,
            ":steal": r.host.host_steal,
            ":processors": r.host.processors,
            ":step": r.host.clock_step_ns,
            ":drift": r.host.clock_drift,
            ":stall": r.host.trace_stall_ns,
            ":free_before": r.host.free_before,
            ":free_after": r.host.free_after,
            ":null_rate": r.host.null_rate,
            ":verified": r.verified_bytes,
            ":corruption": r.corruption,
            ":operations_hash": r.operations_hash().map(hexadecimal),
        },
    )?;
    let id = connection.last_insert_rowid();
    for (ordinal, p) in (0u32..).zip(&r.phases) {
        let sql = "INSERT INTO phases VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        execute(
            connection,
            sql,
            params![id, ordinal, p.phase, p.start_ns, p.end_ns, p.operations, p.errors],
        )?;
    }
    for (ordinal, f) in (0u32..).zip(&r.filesets) {
        let sql = "INSERT INTO filesets VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        execute(connection, sql, params![id, ordinal, f.name, f.files, f.bytes, f.reused, f.cached_bytes])?;
    }
    for (ordinal, text) in (0u32..).zip(&r.error_details) {
        execute(connection, "INSERT INTO error_details VALUES (?1, ?2, ?3)", params![id, ordinal, text])?;
    }
    let mut series_ids = Vec::with_capacity(r.series.len());
    for (ordinal, record) in (0u32..).zip(&r.series) {
        series_ids.push(series(connection, id, ordinal, record)?);
    }
    for (ordinal, record) in (0u32..).zip(&r.workers) {
        worker(connection, id, ordinal, record, &series_ids)?;
    }
    if let Some(rpc) = &r.rpc {
        wire::rpc(connection, id, rpc)?;
    }
    beside::recording(connection, id, r)
}

fn series(
    connection: &Connection,
    recording: i64,
    ordinal: u32,
    s: &SeriesRecording,
) -> Result<i64, RowError> {
    let t = &s.total;
    let q = Quantiles::of(t, &s.key.label)?;
    if let Some(service) = &s.service {
        service.decode().map_err(|e| RowError::Record(format!("service times of `{}`: {e}", s.key.label)))?;
    }
    execute(
        connection,
        "INSERT INTO operations (recording_id, ordinal, worker_group, label, operation, count, bytes, errors, sum_ns, \
         min_ns, mean_ns, p50_ns, p99_ns, p999_ns, max_ns, histogram, service_histogram, first_start_ns, last_end_ns) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
        params![
            recording,
            ordinal,
            s.key.group,
            s.key.label,
            s.key.operation.name(),
            t.count,
            t.bytes,
            t.errors,
            t.sum_ns,
            q.min,
            q.mean,
            q.p50,
            q.p99,
            q.p999,
            q.max,
            t.latency.0,
            s.service.as_ref().map(|h| &h.0),
            s.span.map(|(first, _)| first),
            s.span.map(|(_, last)| last)
        ],
    )?;
    let id = connection.last_insert_rowid();
    for (error, count) in &s.errors {
        let sql = "INSERT INTO operation_errors VALUES (?1, ?2, ?3)";
        execute(connection, sql, params![id, error, count])?;
    }
    for interval in &s.intervals {
        let t = &interval.stats;
        let q = Quantiles::of(t, &s.key.label)?;
        execute(
            connection,
            "INSERT INTO intervals VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
            params![
                id,
                interval.index,
                t.count,
                t.bytes,
                t.errors,
                t.sum_ns,
                q.min,
                q.mean,
                q.p50,
                q.p99,
                q.p999,
                q.max,
                t.latency.0
            ],
        )?;
    }
    Ok(id)
}

fn worker(
    connection: &Connection,
    recording: i64,
    ordinal: u32,
    w: &WorkerRecording,
    series_ids: &[i64],
) -> Rows {
    execute(
        connection,
        "INSERT INTO workers (recording_id, ordinal, client, worker_group, worker, start_ns, end_ns, cpu_user_ns, \
         cpu_system_ns, stop, stream_operations, stream_hash, operations_hash) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        params![
            recording,
            ordinal,
            w.client,
            w.group,
            w.worker,
            w.start_ns,
            w.end_ns,
            w.cpu_ns.map(|(user, _)| user),
            w.cpu_ns.map(|(_, system)| system),
            name_of(&w.stop)?,
            w.stream.first,
            hexadecimal(w.stream.hash),
            hexadecimal(w.stream.all)
        ],
    )?;
    let id = connection.last_insert_rowid();
    for (ordinal, s) in (0u32..).zip(&w.series) {
        let Some(series) = series_ids.get(s.series as usize) else {
            let problem = format!("worker {} has series {}, which the recording lacks", w.worker, s.series);
            return Err(RowError::Record(problem));
        };
        execute(
            connection,
            "INSERT INTO worker_operations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                id,
                ordinal,
                series,
                s.count,
                s.bytes,
                s.errors,
                s.sum_ns,
                s.first_latency_ns,
                s.first_start_ns,
                s.last_end_ns
            ],
        )?;
    }
    Ok(())
}

/// The histogram in columns, for those who have no HDR decoder. All are absent when nothing was counted.
#[derive(Default)]
struct Quantiles {
    min: Option<u64>,
    mean: Option<f64>,
    p50: Option<u64>,
    p99: Option<u64>,
    p999: Option<u64>,
    max: Option<u64>,
}

impl Quantiles {
    fn of(stats: &OperationStats, label: &str) -> Result<Self, RowError> {
        if stats.latency.0.is_empty() {
            return Ok(Self::default());
        }
        let histogram =
            stats.latency.decode().map_err(|e| RowError::Record(format!("latencies of `{label}`: {e}")))?;
        if histogram.is_empty() {
            return Ok(Self::default());
        }
        let at = |quantile| Some(histogram.value_at_quantile(quantile));
        Ok(Self {
            min: Some(histogram.min()),
            mean: (stats.count > 0).then(|| stats.sum_ns as f64 / stats.count as f64),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: Some(histogram.max()),
        })
    }
}

/// The name that serde gives an enumerator.
pub(crate) fn name_of(value: &impl Serialize) -> Result<String, RowError> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => Ok(name),
        other => Err(RowError::Record(format!("{other:?} is not a name"))),
    }
}

fn execute(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
) -> Result<usize, rusqlite::Error> {
    connection.prepare_cached(sql)?.execute(parameters)
}

/// SQLite's integers have a sign, and hashes are compared by eye.
fn hexadecimal(hash: u64) -> String {
    format!("{hash:016x}")
}
