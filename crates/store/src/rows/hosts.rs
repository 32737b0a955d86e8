//! Agents, their samples and the outputs of attached commands.

use benchmaster_record::recording::{
    AgentRecording, ClockFacts, Collected, HostSamples, Recording, StartFacts,
};
use benchmaster_record::samples::{Cost, MetricKey, Point, SamplerCost, SamplerProblem, Samples, Series};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

use super::cell::{Cell, Columns, NewRow, name_of};
use super::{Inserted, Parts, RowError, all, insert_list, load_list, one};

columns! {
    AgentRecording { name, host, pid, first_client, clients; clock, host_use }
    ClockFacts { offset_ns, bound_ns, exchanges, drift }
    StartFacts { spread_ns, bound_ns, server_spread_ns, stagger_ns }
    Collected { name, agent, command, ended, output, lost, start_ns, end_ns }
    SamplerProblem { sampler, problem }
    SamplerCost { cpu_ns, reads }
    MetricKey { sampler, metric, instance }
}

pub(super) fn insert_hosts(connection: &Connection, id: i64, r: &Recording) -> Inserted {
    insert_list(connection, "agents", ("recording_id", id), &r.agents)?;
    if let Some(start) = &r.start {
        NewRow::default().set("recording_id", &id).with(start).insert(connection, "starts")?;
    }
    insert_list(connection, "collected", ("recording_id", id), &r.collected)?;
    for (ordinal, samples) in (0u32..).zip(&r.samples) {
        insert_samples(connection, id, ordinal, samples)?;
    }
    Ok(())
}

fn insert_samples(connection: &Connection, recording: i64, ordinal: u32, host: &HostSamples) -> Inserted {
    let s = &host.samples;
    let id = NewRow::child("recording_id", recording, ordinal)
        .set("agent", &host.agent)
        .set("ticks", &s.ticks)
        .set("late", &s.late)
        .set("cpu_ns", &s.cost.cpu_ns)
        .set("elapsed_ns", &s.cost.elapsed_ns)
        .insert(connection, "samplings")?;
    for (sampler, cost) in &s.cost.samplers {
        let row = NewRow::default().set("sampling_id", &id).set("sampler", sampler);
        row.with(cost).insert(connection, "sampler_costs")?;
    }
    insert_list(connection, "sampling_problems", ("sampling_id", id), &s.problems)?;
    for (ordinal, series) in (0u32..).zip(&s.series) {
        let metric = metric(connection, series)?;
        let row = NewRow::child("sampling_id", id, ordinal).set("metric_id", &metric);
        insert_points(connection, row.insert(connection, "sample_series")?, series)?;
    }
    Ok(())
}

/// The number of a metric; a new one when it is first seen.
fn metric(connection: &Connection, series: &Series) -> Result<i64, RowError> {
    let (key, kind) = (&series.key, name_of(&series.kind).map_err(RowError::Record)?);
    let known = connection
        .prepare_cached(
            "SELECT metric_id FROM metrics WHERE sampler = ?1 AND metric = ?2 AND instance = ?3 AND kind = ?4 \
             AND unit = ?5",
        )?
        .query_row(params![key.sampler, key.metric, key.instance, kind, series.unit], |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(id);
    }
    let row = NewRow::default().with(key).set("kind", &series.kind).set("unit", &series.unit.to_string());
    row.insert(connection, "metrics")
}

/// Inserts the points of a series. Of two with the same time the later one is kept: an unsteady clock must not fail the run.
fn insert_points(connection: &Connection, id: i64, series: &Series) -> Inserted {
    let sql = "INSERT OR REPLACE INTO samples (sample_series_id, time_ns, value) VALUES (?1, ?2, ?3)";
    let mut statement = connection.prepare_cached(sql)?;
    for point in &series.points {
        statement.execute((id, point.time_ns, point.value))?;
    }
    Ok(())
}

pub(super) fn load_start(connection: &Connection, recording: i64) -> Result<Option<StartFacts>> {
    one(connection, "SELECT * FROM starts WHERE recording_id = ?1", [recording], Columns::load)
}

pub(super) fn load_collected(
    connection: &Connection,
    recording: i64,
    parts: Parts,
) -> Result<Vec<Collected>> {
    if parts == Parts::All {
        return load_list(connection, "collected", ("recording_id", recording));
    }
    let sql = "SELECT name, agent, command, ended, x'' AS output, lost, start_ns, end_ns FROM collected \
               WHERE recording_id = ?1 ORDER BY ordinal";
    all(connection, sql, [recording], Columns::load)
}

pub(super) fn load_samples(
    connection: &Connection,
    recording: i64,
    parts: Parts,
) -> Result<Vec<HostSamples>> {
    let sql = "SELECT * FROM samplings WHERE recording_id = ?1 ORDER BY ordinal";
    all(connection, sql, [recording], |row| {
        let id: i64 = row.get("sampling_id")?;
        let costs = "SELECT * FROM sampler_costs WHERE sampling_id = ?1";
        let samplers =
            all(connection, costs, [id], |row| Ok((row.get("sampler")?, SamplerCost::load(row)?)))?;
        let series = match parts {
            Parts::All => load_series(connection, id)?,
            Parts::Small => Vec::new(),
        };
        let cost = load!(row, Cost { cpu_ns, elapsed_ns; samplers: samplers.into_iter().collect() });
        let problems = load_list(connection, "sampling_problems", ("sampling_id", id))?;
        let samples = load!(row, Samples { ticks, late; series, problems, cost });
        Ok(HostSamples { agent: row.get("agent")?, samples })
    })
}

fn load_series(connection: &Connection, sampling: i64) -> Result<Vec<Series>> {
    // Only what is read: columns are found by name, for hundreds of series of every run.
    let sql = "SELECT sample_series_id, kind, sampler, metric, instance, unit FROM sample_series JOIN metrics \
               USING (metric_id) WHERE sampling_id = ?1 ORDER BY ordinal";
    all(connection, sql, [sampling], |row| {
        let id: i64 = row.get("sample_series_id")?;
        let points = "SELECT time_ns, value FROM samples WHERE sample_series_id = ?1 ORDER BY time_ns";
        let points = all(connection, points, [id], |row| {
            Ok(Point { time_ns: row.get(0)?, value: row.get::<_, Option<f64>>(1)?.unwrap_or(f64::NAN) })
        })?;
        let unit = row.get::<_, String>("unit")?.into();
        Ok(load!(row, Series { kind; key: Columns::load(row)?, unit, points }))
    })
}
