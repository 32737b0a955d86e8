//! What the workloads of a run recorded.

use benchmaster_record::recording::{
    CacheAction, FilesetFacts, HostUse, IntervalStats, OperationStats, OperationStream, PartRow, PhaseTiming,
    Recording, SeriesKey, SeriesRecording, SlowOperation, WorkerRecording, WorkerSeries,
};
use benchmaster_record::witness::Witness;
use rusqlite::{Connection, Result, Row};

use super::cell::{Cell, Columns, Hash, Json, NewRow, damaged};
use super::{Inserted, Parts, RowError, all, hosts, insert_list, load_list, map, wire};

columns! {
    PhaseTiming { phase, start_ns, end_ns, operations, errors }
    PartRow { part, label, key, count, sum_ns }
    SlowOperation { series, worker, start_ns, latency_ns, since, since_own }
    FilesetFacts { name, files, bytes, reused, cached_bytes }
    CacheAction { requested = "cache_requested", done = "cache_done" }
    SeriesKey { group = "worker_group", label, operation }
    OperationStats { count, bytes, errors, sum_ns, latency = "histogram" }
    HostUse {
        process_user_ns, process_system_ns, host_busy, host_steal, processors, clock_step_ns, clock_drift,
        trace_stall_ns, free_before = "free_before_bytes", free_after = "free_after_bytes",
        read_ahead_kib, written_back = "written_back_bytes", null_rate
    }
}

pub(super) fn insert_recording(connection: &Connection, row: NewRow, r: &Recording) -> Inserted {
    let row = store!(row, r, {
        workload, timed, started_unix_ns, length_ns, interval_ns, cut_ns, cut_reason, verified_bytes, corruption
    });
    let id = row
        .with(&r.cache)
        .with(&r.host)
        .set("operations_hash", &r.operations_hash().map(Hash))
        .insert(connection, "recordings")?;
    let of = ("recording_id", id);
    if let Some(witness) = &r.witness {
        insert_witness(connection, id, witness)?;
    }
    insert_list(connection, "phases", of, &r.phases)?;
    insert_list(connection, "filesets", of, &r.filesets)?;
    for (ordinal, text) in (0u32..).zip(&r.error_details) {
        NewRow::child("recording_id", id, ordinal).set("text", text).insert(connection, "error_details")?;
    }
    let mut series_ids = Vec::with_capacity(r.series.len());
    for (ordinal, series) in (0u32..).zip(&r.series) {
        series_ids.push(insert_series(connection, id, ordinal, series)?);
    }
    for (ordinal, worker) in (0u32..).zip(&r.workers) {
        insert_worker(connection, id, ordinal, worker, &series_ids)?;
    }
    insert_list(connection, "parts", of, &r.parts)?;
    insert_list(connection, "slow_operations", of, &r.slow)?;
    if let Some(rpc) = &r.rpc {
        wire::insert_rpc(connection, id, rpc)?;
    }
    hosts::insert_hosts(connection, id, r)
}

fn insert_series(
    connection: &Connection,
    recording: i64,
    ordinal: u32,
    s: &SeriesRecording,
) -> Result<i64, RowError> {
    if let Some(service) = &s.service {
        service.decode().map_err(|e| RowError::Record(format!("service times of `{}`: {e}", s.key.label)))?;
    }
    let row = NewRow::child("recording_id", recording, ordinal).with(&s.key).with(&s.total);
    let id = with_quantiles(row, &s.total, &s.key.label)?
        .set("service_histogram", &s.service)
        .set("first_start_ns", &s.span.map(|(first, _)| first))
        .set("last_end_ns", &s.span.map(|(_, last)| last))
        .insert(connection, "operations")?;
    for (error, count) in &s.errors {
        NewRow::default()
            .set("series_id", &id)
            .set("error", error)
            .set("count", count)
            .insert(connection, "operation_errors")?;
    }
    for interval in &s.intervals {
        let row = NewRow::default().set("series_id", &id).set("interval", &interval.index);
        with_quantiles(row.with(&interval.stats), &interval.stats, &s.key.label)?
            .insert(connection, "intervals")?;
    }
    Ok(id)
}

fn insert_worker(
    connection: &Connection,
    recording: i64,
    ordinal: u32,
    w: &WorkerRecording,
    series_ids: &[i64],
) -> Inserted {
    let row = store!(NewRow::child("recording_id", recording, ordinal), w, {
        client, group = "worker_group", worker, start_ns, end_ns, stop
    });
    let id = row
        .set("cpu_user_ns", &w.cpu_ns.map(|(user, _)| user))
        .set("cpu_system_ns", &w.cpu_ns.map(|(_, system)| system))
        .set("stream_operations", &w.stream.first)
        .set("stream_hash", &Hash(w.stream.hash))
        .set("operations_hash", &Hash(w.stream.all))
        .insert(connection, "workers")?;
    for (ordinal, s) in (0u32..).zip(&w.series) {
        let Some(series) = series_ids.get(s.series as usize) else {
            let problem = format!("worker {} has series {}, which the recording lacks", w.worker, s.series);
            return Err(RowError::Record(problem));
        };
        let row = NewRow::child("worker_id", id, ordinal).set("series_id", series);
        store!(row, s, { count, bytes, errors, sum_ns, first_latency_ns, first_start_ns, last_end_ns })
            .insert(connection, "worker_operations")?;
    }
    Ok(())
}

/// Adds what a histogram says as columns, for readers without an HDR decoder. Without a count there are none.
fn with_quantiles(row: NewRow, stats: &OperationStats, label: &str) -> Result<NewRow, RowError> {
    if stats.latency.0.is_empty() {
        return Ok(row);
    }
    let histogram =
        stats.latency.decode().map_err(|e| RowError::Record(format!("latencies of `{label}`: {e}")))?;
    if histogram.is_empty() {
        return Ok(row);
    }
    let mean = (stats.count > 0).then(|| stats.sum_ns as f64 / stats.count as f64);
    Ok(row
        .set("min_ns", &histogram.min())
        .set("mean_ns", &mean)
        .set("p50_ns", &histogram.value_at_quantile(0.5))
        .set("p99_ns", &histogram.value_at_quantile(0.99))
        .set("p999_ns", &histogram.value_at_quantile(0.999))
        .set("max_ns", &histogram.max()))
}

pub(super) fn load_recordings(connection: &Connection, run: i64, parts: Parts) -> Result<Vec<Recording>> {
    all(connection, "SELECT * FROM recordings WHERE run_id = ?1 ORDER BY ordinal", [run], |row| {
        let id: i64 = row.get("recording_id")?;
        let of = ("recording_id", id);
        let (series, ids): (Vec<_>, Vec<_>) = load_series(connection, id)?.into_iter().unzip();
        let texts = "SELECT text FROM error_details WHERE recording_id = ?1 ORDER BY ordinal";
        let recording = load!(row, Recording {
            workload, timed, started_unix_ns, length_ns, interval_ns, cut_ns, cut_reason, verified_bytes, corruption;
            series,
            workers: load_workers(connection, id, &ids)?,
            phases: load_list(connection, "phases", of)?,
            filesets: load_list(connection, "filesets", of)?,
            cache: Columns::load(row)?,
            host: Columns::load(row)?,
            error_details: all(connection, texts, [id], |row| row.get(0))?,
            rpc: wire::load_rpc(connection, id)?,
            agents: load_list(connection, "agents", of)?,
            start: hosts::load_start(connection, id)?,
            samples: hosts::load_samples(connection, id, parts)?,
            collected: hosts::load_collected(connection, id, parts)?,
            parts: load_known(connection, "parts", id)?,
            slow: load_known(connection, "slow_operations", id)?,
            witness: load_witness(connection, id)?,
            replay: None,
        });
        if !recording.is_coherent() {
            return Err(damaged("interval_ns", "times and intervals of a recording do not fit together"));
        }
        Ok(recording)
    })
}

/// Whether there is a table: results of earlier versions lack some.
fn has(connection: &Connection, table: &str) -> Result<bool> {
    let known = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
    Ok(!all(connection, known, [table], |_| Ok(()))?.is_empty())
}

/// A list of a table that results of earlier versions lack.
fn load_known<T: Columns>(connection: &Connection, table: &str, recording: i64) -> Result<Vec<T>> {
    if !has(connection, table)? {
        return Ok(Vec::new());
    }
    load_list(connection, table, ("recording_id", recording))
}

fn insert_witness(connection: &Connection, recording: i64, witness: &Witness) -> Inserted {
    let row = NewRow::default().set("recording_id", &recording).set("durability", &witness.durability());
    let row = store!(row, witness, { blocks, names, lost, old, torn, newer });
    row.set(
        "details",
        &Json((witness.block, witness.cut.clone(), witness.by.clone(), witness.broken.clone())),
    )
    .insert(connection, "witnesses")?;
    Ok(())
}

fn load_witness(connection: &Connection, recording: i64) -> Result<Option<Witness>> {
    if !has(connection, "witnesses")? {
        return Ok(None);
    }
    let found = all(connection, "SELECT * FROM witnesses WHERE recording_id = ?1", [recording], |row| {
        let Json((block, cut, by, broken)) = Cell::load(row, "details")?;
        Ok(load!(row, Witness { blocks, names, lost, old, torn, newer; block, cut, by, broken }))
    })?;
    Ok(found.into_iter().next())
}

/// The series with their identifiers.
fn load_series(connection: &Connection, recording: i64) -> Result<Vec<(SeriesRecording, i64)>> {
    all(connection, "SELECT * FROM operations WHERE recording_id = ?1 ORDER BY ordinal", [recording], |row| {
        let id: i64 = row.get("series_id")?;
        let intervals = "SELECT * FROM intervals WHERE series_id = ?1 ORDER BY interval";
        let errors = "SELECT error, count FROM operation_errors WHERE series_id = ?1";
        let series = SeriesRecording {
            key: Columns::load(row)?,
            total: Columns::load(row)?,
            intervals: all(connection, intervals, [id], |row| {
                Ok(IntervalStats { index: row.get("interval")?, stats: Columns::load(row)? })
            })?,
            errors: map(connection, errors, [id])?,
            span: Option::zip(Cell::load(row, "first_start_ns")?, Cell::load(row, "last_end_ns")?),
            service: Cell::load(row, "service_histogram")?,
        };
        Ok((series, id))
    })
}

fn load_workers(connection: &Connection, recording: i64, series_ids: &[i64]) -> Result<Vec<WorkerRecording>> {
    all(connection, "SELECT * FROM workers WHERE recording_id = ?1 ORDER BY ordinal", [recording], |row| {
        let sql = "SELECT * FROM worker_operations WHERE worker_id = ?1 ORDER BY ordinal";
        let series =
            all(connection, sql, [row.get::<_, i64>("worker_id")?], |row| worker_series(row, series_ids))?;
        let (Hash(hash), Hash(all)) = (Cell::load(row, "stream_hash")?, Cell::load(row, "operations_hash")?);
        Ok(load!(row, WorkerRecording {
            client, group = "worker_group", worker, start_ns, end_ns, stop;
            cpu_ns: Option::zip(Cell::load(row, "cpu_user_ns")?, Cell::load(row, "cpu_system_ns")?),
            series,
            stream: OperationStream { first: Cell::load(row, "stream_operations")?, hash, all },
        }))
    })
}

fn worker_series(row: &Row<'_>, series_ids: &[i64]) -> Result<WorkerSeries> {
    let id: i64 = row.get("series_id")?;
    let series = (0u32..).zip(series_ids).find(|(_, known)| **known == id);
    let (series, _) =
        series.ok_or_else(|| damaged("series_id", "a worker has another recording's series"))?;
    Ok(load!(row, WorkerSeries {
        count, bytes, errors, sum_ns, first_latency_ns, first_start_ns, last_end_ns; series
    }))
}
