//! Rows → records.

mod beside;
mod course;
mod lab;
mod wire;

use std::collections::BTreeMap;

use benchmaster_telemetry::Environment;
use benchmaster_telemetry::environment::TargetEnvironment;
use benchmaster_workload::model::OperationKind;
use benchmaster_workload::recording::{
    CacheAction, EncodedHistogram, FilesetFacts, IntervalStats, OperationStats, OperationStream, PhaseTiming,
    Recording, SeriesKey, SeriesRecording, WorkerRecording, WorkerSeries,
};
use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, Error, Result, Row};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as NameError, StrDeserializer};

use crate::record::{
    Check, Event, FactorRecord, Replication, Response, RunKey, RunRecord, SessionRecord, StageRecord,
    StudyRecord, StudyResults, TreatmentRecord, WorkloadRecord, numeric_values,
};

/// Everything, as the one transaction sees it that the caller has begun.
pub(crate) fn results(connection: &Connection) -> Result<StudyResults> {
    Ok(StudyResults {
        study: study(connection)?,
        runs: runs(connection)?,
        sessions: sessions(connection)?,
        hooks: course::hooks(connection)?,
        baselines: wire::baselines(connection)?,
    })
}

pub(crate) fn study(connection: &Connection) -> Result<StudyRecord> {
    // What the programs of older versions stored does not say which values are numbers; what was set does.
    let old = "SELECT design_details IS NULL FROM studies";
    let old: bool = connection.query_row(old, [], |row| row.get(0))?;
    let factors = all(connection, "SELECT factor, name FROM factors ORDER BY factor", [], |row| {
        Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?))
    })?;
    let factors = factors
        .into_iter()
        .map(|(id, name)| factor(connection, id, name, old))
        .collect::<Result<Vec<_>>>()?;
    let treatments = all(connection, "SELECT * FROM treatments ORDER BY treatment", [], |row| {
        let index = row.get("treatment")?;
        let sql = "SELECT level FROM treatment_levels WHERE treatment = ?1 ORDER BY factor";
        let levels = all(connection, sql, [index], |row| row.get(0))?;
        Ok(TreatmentRecord {
            index,
            levels,
            label: row.get("label")?,
            block: row.get("block")?,
            whole_plot: row.get("whole_plot")?,
            stage: row.get("stage")?,
            centre: row.get("centre")?,
        })
    })?;
    let stages = stages(connection)?;
    let workloads = all(connection, "SELECT name, use_name FROM workloads ORDER BY ordinal", [], |row| {
        Ok(WorkloadRecord { name: row.get(0)?, use_name: row.get(1)? })
    })?;
    connection.query_row("SELECT * FROM studies", [], |row| {
        let details: Option<String> = row.get("design_details")?;
        let details =
            details.map(|text| serde_json::from_str(&text).map_err(|e| damaged("design_details", e)));
        let seed: String = row.get("seed")?;
        Ok(StudyRecord {
            name: row.get("name")?,
            description: row.get("description")?,
            text: row.get("text")?,
            id: row.get("id")?,
            seed: seed.parse().map_err(|e| damaged("seed", e))?,
            generator: row.get("generator")?,
            design: row.get("design")?,
            design_details: details.transpose()?.unwrap_or_default(),
            order: row.get("run_order")?,
            replicates: replication(row)?,
            confidence: row.get("confidence")?,
            primary_response: row.get("primary_response")?,
            factors,
            treatments,
            stages,
            workloads,
            version: row.get("version")?,
        })
    })
}

fn stages(connection: &Connection) -> Result<Vec<StageRecord>> {
    all(connection, "SELECT * FROM stages ORDER BY stage", [], |row| {
        let number = row.get("stage")?;
        let sql = "SELECT treatment FROM stage_treatments WHERE stage = ?1 ORDER BY treatment";
        Ok(StageRecord {
            number,
            kind: name(row, "kind")?,
            reason: row.get("reason")?,
            treatments: all(connection, sql, [number], |row| row.get(0))?,
            replicates: replication(row)?,
            made: time(row, "made")?,
        })
    })
}

fn replication(row: &Row<'_>) -> Result<Replication> {
    let (min, max) = (row.get("replicates_min")?, row.get("replicates_max")?);
    Ok(match row.get("relative_half_width")? {
        None => Replication::Fixed(max),
        Some(relative_half_width) => Replication::Sequential { min, max, relative_half_width },
    })
}

/// A factor; `old` when the database was made by a version that did not store values.
fn factor(connection: &Connection, id: u32, name: String, old: bool) -> Result<FactorRecord> {
    let sql = "SELECT level, name, value FROM levels WHERE factor = ?1 ORDER BY level";
    let levels: Vec<(u32, String, Option<f64>)> =
        all(connection, sql, [id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let sql = "SELECT parameter, value FROM settings WHERE factor = ?1 AND level = ?2";
    let settings =
        levels.iter().map(|(level, ..)| map(connection, sql, [id, *level])).collect::<Result<Vec<_>>>()?;
    let values = match old {
        true => numeric_values(&settings),
        false => levels.iter().map(|(.., value)| *value).collect(),
    };
    Ok(FactorRecord { name, levels: levels.into_iter().map(|(_, name, _)| name).collect(), settings, values })
}

fn sessions(connection: &Connection) -> Result<Vec<SessionRecord>> {
    all(connection, "SELECT * FROM sessions ORDER BY session", [], |row| {
        let id = row.get("session")?;
        let ended = match row.get::<_, Option<String>>("ended")? {
            None => None,
            Some(ended) => Some((timestamp("ended", &ended)?, name(row, "outcome")?)),
        };
        let lost = (row.get("lost_treatment")?, row.get("lost_replicate")?);
        let lost_run = match lost {
            (Some(treatment), Some(replicate)) => Some(RunKey { treatment, replicate }),
            _ => None,
        };
        Ok(SessionRecord {
            id,
            started: time(row, "started")?,
            ended,
            lost_run,
            command: row.get("command")?,
            environment: environments(connection, id)?,
        })
    })
}

fn environments(connection: &Connection, session: u32) -> Result<BTreeMap<String, Environment>> {
    let rows = all(connection, "SELECT * FROM environments WHERE session = ?1", [session], |row| {
        let target = match row.get("target_path")? {
            None => None,
            Some(path) => Some(TargetEnvironment {
                path,
                mount_point: row.get("target_mount_point")?,
                source: row.get("target_source")?,
                file_system: row.get("target_file_system")?,
                options: row.get("target_options")?,
                mount_line: row.get("target_mount_line")?,
                total_bytes: row.get("target_total_bytes")?,
                free_bytes: row.get("target_free_bytes")?,
                free_files: row.get("target_free_files")?,
                read_ahead_kib: row.get("target_read_ahead_kib")?,
            }),
        };
        let name: String = row.get("name")?;
        let sql = "SELECT name, value FROM sysctls WHERE session = ?1 AND environment = ?2";
        let environment = Environment {
            host: row.get("host")?,
            benchmaster: row.get("benchmaster")?,
            kernel: row.get("kernel")?,
            distribution: row.get("distribution")?,
            cpu_model: row.get("cpu_model")?,
            processors: row.get("processors")?,
            processors_allowed: row.get("processors_allowed")?,
            memory_total: row.get("memory_total")?,
            memory_available: row.get("memory_available")?,
            clock_source: row.get("clock_source")?,
            virtualization: row.get("virtualization")?,
            governor: row.get("governor")?,
            target,
            sysctls: map(connection, sql, (session, &name))?,
        };
        Ok((name, environment))
    })?;
    Ok(rows.into_iter().collect())
}

/// Which parts of runs are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parts {
    All,
    /// Without the points of samples and the outputs of attached commands.
    Small,
}

fn runs(connection: &Connection) -> Result<Vec<RunRecord>> {
    all(connection, "SELECT * FROM runs ORDER BY position, run_id", [], |row| {
        run(connection, row, Parts::Small)
    })
}

/// One run with all its parts.
pub(crate) fn whole_run(connection: &Connection, key: RunKey) -> Result<Option<RunRecord>> {
    let sql = "SELECT * FROM runs WHERE treatment = ?1 AND replicate = ?2";
    let rows = all(connection, sql, [key.treatment, key.replicate], |row| run(connection, row, Parts::All))?;
    Ok(rows.into_iter().next())
}

fn run(connection: &Connection, row: &Row<'_>, parts: Parts) -> Result<RunRecord> {
    let id: i64 = row.get("run_id")?;
    Ok(RunRecord {
        key: key(row)?,
        position: row.get("position")?,
        stage: row.get("stage")?,
        block: row.get("block")?,
        whole_plot: row.get("whole_plot")?,
        session: row.get("session")?,
        started: time(row, "started")?,
        elapsed_ns: row.get("elapsed_ns")?,
        failure: row.get("failure")?,
        recordings: recordings(connection, id, parts)?,
        responses: responses(connection, id)?,
        checks: checks(connection, id)?,
        events: all(connection, "SELECT * FROM events WHERE run_id = ?1 ORDER BY ordinal", [id], |row| {
            Ok(Event { time: time(row, "time")?, kind: row.get("kind")?, text: row.get("text")? })
        })?,
        traces: map(connection, "SELECT workload, path FROM traces WHERE run_id = ?1", [id])?,
        service: wire::service(connection, id)?,
        lab: lab::lab(connection, id)?,
        server_use: wire::server_use(connection, id)?,
        retries: course::retries(connection, id)?,
    })
}

pub(crate) fn key(row: &Row<'_>) -> Result<RunKey> {
    Ok(RunKey { treatment: row.get("treatment")?, replicate: row.get("replicate")? })
}

pub(crate) fn responses(connection: &Connection, run: i64) -> Result<Vec<Response>> {
    all(connection, "SELECT * FROM responses WHERE run_id = ?1 ORDER BY ordinal", [run], |row| {
        Ok(Response { name: row.get("response")?, value: row.get("value")?, unit: name(row, "unit")? })
    })
}

fn checks(connection: &Connection, run: i64) -> Result<Vec<Check>> {
    all(connection, "SELECT * FROM checks WHERE run_id = ?1 ORDER BY ordinal", [run], |row| {
        let ordinal: u32 = row.get("ordinal")?;
        let sql = "SELECT name, value FROM check_evidence WHERE run_id = ?1 AND ordinal = ?2";
        let evidence = all(connection, sql, (run, ordinal), |row| Ok((row.get(0)?, real(row, "value")?)))?;
        Ok(Check {
            id: row.get("name")?,
            severity: name(row, "severity")?,
            workload: row.get("workload")?,
            message: row.get("message")?,
            evidence: evidence.into_iter().collect(),
        })
    })
}

fn recordings(connection: &Connection, run: i64, parts: Parts) -> Result<Vec<Recording>> {
    all(connection, "SELECT * FROM recordings WHERE run_id = ?1 ORDER BY ordinal", [run], |row| {
        let id: i64 = row.get("recording_id")?;
        let (series, ids): (Vec<_>, Vec<_>) = series(connection, id)?.into_iter().unzip();
        let texts = "SELECT text FROM error_details WHERE recording_id = ?1 ORDER BY ordinal";
        Ok(Recording {
            workload: row.get("workload")?,
            timed: row.get("timed")?,
            started_unix_ns: row.get("started_unix_ns")?,
            length_ns: row.get("length_ns")?,
            interval_ns: row.get("interval_ns")?,
            cut_ns: row.get("cut_ns")?,
            cut_reason: row.get("cut_reason")?,
            series,
            workers: workers(connection, id, &ids)?,
            phases: phases(connection, id)?,
            filesets: filesets(connection, id)?,
            cache: CacheAction { requested: row.get("cache_requested")?, done: row.get("cache_done")? },
            host: beside::host_use(row)?,
            error_details: all(connection, texts, [id], |row| row.get(0))?,
            verified_bytes: row.get("verified_bytes")?,
            corruption: row.get("corruption")?,
            rpc: wire::rpc(connection, id)?,
            agents: beside::agents(connection, id)?,
            start: beside::start(connection, id)?,
            samples: beside::samples(connection, id, parts)?,
            collected: beside::collected(connection, id, parts)?,
            replay: None,
        })
    })
}

fn phases(connection: &Connection, recording: i64) -> Result<Vec<PhaseTiming>> {
    all(connection, "SELECT * FROM phases WHERE recording_id = ?1 ORDER BY ordinal", [recording], |row| {
        Ok(PhaseTiming {
            phase: row.get("phase")?,
            start_ns: row.get("start_ns")?,
            end_ns: row.get("end_ns")?,
            operations: row.get("operations")?,
            errors: row.get("errors")?,
        })
    })
}

fn filesets(connection: &Connection, recording: i64) -> Result<Vec<FilesetFacts>> {
    all(connection, "SELECT * FROM filesets WHERE recording_id = ?1 ORDER BY ordinal", [recording], |row| {
        Ok(FilesetFacts {
            name: row.get("name")?,
            files: row.get("files")?,
            bytes: row.get("bytes")?,
            reused: row.get("reused")?,
            cached_bytes: row.get("cached_bytes")?,
        })
    })
}

/// The series with their identifiers.
fn series(connection: &Connection, recording: i64) -> Result<Vec<(SeriesRecording, i64)>> {
    all(connection, "SELECT * FROM operations WHERE recording_id = ?1 ORDER BY ordinal", [recording], |row| {
        let id: i64 = row.get("series_id")?;
        let operation: String = row.get("operation")?;
        let operation = OperationKind::from_name(&operation)
            .ok_or_else(|| damaged("operation", format!("`{operation}` is not a known operation")))?;
        let intervals = "SELECT * FROM intervals WHERE series_id = ?1 ORDER BY interval";
        let errors = "SELECT error, count FROM operation_errors WHERE series_id = ?1";
        let service: Option<Vec<u8>> = row.get("service_histogram")?;
        let series = SeriesRecording {
            key: SeriesKey { group: row.get("worker_group")?, label: row.get("label")?, operation },
            total: stats(row)?,
            intervals: all(connection, intervals, [id], |row| {
                Ok(IntervalStats { index: row.get("interval")?, stats: stats(row)? })
            })?,
            errors: map(connection, errors, [id])?,
            span: Option::zip(row.get("first_start_ns")?, row.get("last_end_ns")?),
            service: service.map(EncodedHistogram),
        };
        Ok((series, id))
    })
}

fn stats(row: &Row<'_>) -> Result<OperationStats> {
    Ok(OperationStats {
        count: row.get("count")?,
        bytes: row.get("bytes")?,
        errors: row.get("errors")?,
        sum_ns: row.get("sum_ns")?,
        latency: EncodedHistogram(row.get("histogram")?),
    })
}

fn workers(connection: &Connection, recording: i64, series_ids: &[i64]) -> Result<Vec<WorkerRecording>> {
    all(connection, "SELECT * FROM workers WHERE recording_id = ?1 ORDER BY ordinal", [recording], |row| {
        let id: i64 = row.get("worker_id")?;
        let cpu: (Option<u64>, Option<u64>) = (row.get("cpu_user_ns")?, row.get("cpu_system_ns")?);
        let sql = "SELECT * FROM worker_operations WHERE worker_id = ?1 ORDER BY ordinal";
        let series = all(connection, sql, [id], |row| {
            let series_id: i64 = row.get("series_id")?;
            let series = (0u32..).zip(series_ids).find(|(_, id)| **id == series_id);
            let (series, _) =
                series.ok_or_else(|| damaged("series_id", "a worker has another recording's series"))?;
            Ok(WorkerSeries {
                series,
                count: row.get("count")?,
                bytes: row.get("bytes")?,
                errors: row.get("errors")?,
                sum_ns: row.get("sum_ns")?,
                first_latency_ns: row.get("first_latency_ns")?,
                first_start_ns: row.get("first_start_ns")?,
                last_end_ns: row.get("last_end_ns")?,
            })
        })?;
        Ok(WorkerRecording {
            client: row.get("client")?,
            group: row.get("worker_group")?,
            worker: row.get("worker")?,
            start_ns: row.get("start_ns")?,
            end_ns: row.get("end_ns")?,
            cpu_ns: cpu.0.zip(cpu.1),
            stop: name(row, "stop")?,
            series,
            stream: OperationStream {
                first: row.get::<_, Option<u64>>("stream_operations")?.unwrap_or(0),
                hash: hash(row, "stream_hash")?,
                all: hash(row, "operations_hash")?,
            },
        })
    })
}

pub(crate) fn all<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(parameters, read)?.collect()
}

/// A table of names and values.
fn map<V: rusqlite::types::FromSql>(
    connection: &Connection,
    sql: &str,
    parameters: impl rusqlite::Params,
) -> Result<BTreeMap<String, V>> {
    let pairs = all(connection, sql, parameters, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(pairs.into_iter().collect())
}

/// A hash in hexadecimal digits; 0 in databases from before there were any.
fn hash(row: &Row<'_>, column: &str) -> Result<u64> {
    let text: Option<String> = row.get(column)?;
    text.map_or(Ok(0), |text| u64::from_str_radix(&text, 16).map_err(|error| damaged(column, error)))
}

/// A number that may be NaN, which SQLite keeps as NULL.
fn real(row: &Row<'_>, column: &str) -> Result<f64> {
    Ok(row.get::<_, Option<f64>>(column)?.unwrap_or(f64::NAN))
}

/// An enumerator by the name serde gives it.
fn name<T: for<'de> Deserialize<'de>>(row: &Row<'_>, column: &str) -> Result<T> {
    let text: String = row.get(column)?;
    let deserializer: StrDeserializer<'_, NameError> = text.as_str().into_deserializer();
    T::deserialize(deserializer).map_err(|e| damaged(column, e.to_string()))
}

pub(crate) fn time(row: &Row<'_>, column: &str) -> Result<Timestamp> {
    timestamp(column, &row.get::<_, String>(column)?)
}

fn timestamp(column: &str, text: &str) -> Result<Timestamp> {
    text.parse().map_err(|e: jiff::Error| damaged(column, e.to_string()))
}

fn damaged(column: &str, error: impl ToString) -> Error {
    let text = format!("column {column}: {}", error.to_string());
    Error::FromSqlConversionFailure(0, Type::Text, text.into())
}
