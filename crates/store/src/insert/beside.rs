//! Agents, their samples and what attached commands printed → rows.

use benchmaster_telemetry::sampling::{Samples, Series};
use benchmaster_workload::recording::{AgentRecording, Collected, HostSamples, Recording};
use rusqlite::{Connection, OptionalExtension, named_params, params};

use super::{RowError, Rows, execute, name_of};

pub(super) fn recording(connection: &Connection, id: i64, r: &Recording) -> Rows {
    for (ordinal, record) in (0u32..).zip(&r.agents) {
        agent(connection, id, ordinal, record)?;
    }
    if let Some(s) = &r.start {
        let sql = "INSERT INTO starts VALUES (?1, ?2, ?3, ?4, ?5)";
        let values = params![id, s.spread_ns, s.bound_ns, s.server_spread_ns, s.stagger_ns];
        execute(connection, sql, values)?;
    }
    for (ordinal, record) in (0u32..).zip(&r.collected) {
        collected(connection, id, ordinal, record)?;
    }
    for (ordinal, record) in (0u32..).zip(&r.samples) {
        sampling(connection, id, ordinal, record)?;
    }
    Ok(())
}

fn agent(connection: &Connection, recording: i64, ordinal: u32, a: &AgentRecording) -> Rows {
    let h = &a.host_use;
    execute(
        connection,
        "INSERT INTO agents VALUES (:recording, :ordinal, :name, :host, :pid, :first, :clients, :offset, :bound, \
         :exchanges, :drift, :user, :system, :busy, :steal, :processors, :step, :clock_drift, :stall, :free_before, \
         :free_after, :null_rate)",
        named_params! {
            ":recording": recording,
            ":ordinal": ordinal,
            ":name": a.name,
            ":host": a.host,
            ":pid": a.pid,
            ":first": a.first_client,
            ":clients": a.clients,
            ":offset": a.clock.offset_ns,
            ":bound": a.clock.bound_ns,
            ":exchanges": a.clock.exchanges,
            ":drift": a.clock.drift,
            ":user": h.process_user_ns,
            ":system": h.process_system_ns,
            ":busy": h.host_busy,
            ":steal": h.host_steal,
            ":processors": h.processors,
            ":step": h.clock_step_ns,
            ":clock_drift": h.clock_drift,
            ":stall": h.trace_stall_ns,
            ":free_before": h.free_before,
            ":free_after": h.free_after,
            ":null_rate": h.null_rate,
        },
    )?;
    Ok(())
}

fn collected(connection: &Connection, recording: i64, ordinal: u32, c: &Collected) -> Rows {
    execute(
        connection,
        "INSERT INTO collected VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
        params![
            recording, ordinal, c.name, c.agent, c.command, c.ended, c.output, c.lost, c.start_ns, c.end_ns
        ],
    )?;
    Ok(())
}

fn sampling(connection: &Connection, recording: i64, ordinal: u32, record: &HostSamples) -> Rows {
    let s: &Samples = &record.samples;
    execute(
        connection,
        "INSERT INTO samplings (recording_id, ordinal, agent, ticks, late, cpu_ns, elapsed_ns) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![recording, ordinal, record.agent, s.ticks, s.late, s.cost.cpu_ns, s.cost.elapsed_ns],
    )?;
    let id = connection.last_insert_rowid();
    for (sampler, cost) in &s.cost.samplers {
        let sql = "INSERT INTO sampler_costs VALUES (?1, ?2, ?3, ?4)";
        execute(connection, sql, params![id, sampler, cost.cpu_ns, cost.reads])?;
    }
    for (ordinal, p) in (0u32..).zip(&s.problems) {
        let sql = "INSERT INTO sampling_problems VALUES (?1, ?2, ?3, ?4)";
        execute(connection, sql, params![id, ordinal, p.sampler, p.problem])?;
    }
    for (ordinal, series) in (0u32..).zip(&s.series) {
        let metric = metric(connection, series)?;
        let sql = "INSERT INTO sample_series (sampling_id, ordinal, metric_id) VALUES (?1, ?2, ?3)";
        execute(connection, sql, params![id, ordinal, metric])?;
        points(connection, connection.last_insert_rowid(), series)?;
    }
    Ok(())
}

/// The number of a metric, which it gets when it is first seen.
fn metric(connection: &Connection, series: &Series) -> Result<i64, RowError> {
    let (k, kind) = (&series.key, name_of(&series.kind)?);
    let values = params![k.sampler, k.metric, k.instance, kind, series.unit];
    let known = connection
        .prepare_cached(
            "SELECT metric_id FROM metrics WHERE sampler = ?1 AND metric = ?2 AND instance = ?3 AND kind = ?4 \
             AND unit = ?5",
        )?
        .query_row(values, |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(id);
    }
    let sql = "INSERT INTO metrics (sampler, metric, instance, kind, unit) VALUES (?1, ?2, ?3, ?4, ?5)";
    execute(connection, sql, values)?;
    Ok(connection.last_insert_rowid())
}

/// The points of a series. Of two of the same time the later one stays: a strange clock must not fail the run.
fn points(connection: &Connection, id: i64, series: &Series) -> Rows {
    let mut statement = connection.prepare_cached("INSERT OR REPLACE INTO samples VALUES (?1, ?2, ?3)")?;
    for point in &series.points {
        statement.execute((id, point.time_ns, point.value))?;
    }
    Ok(())
}
