//! Rows → agents, their samples and what attached commands printed.

use std::borrow::Cow;

use benchmaster_telemetry::sampling::{Cost, MetricKey, Point, SamplerCost, SamplerProblem, Samples, Series};
use benchmaster_workload::recording::{
    AgentRecording, ClockFacts, Collected, HostSamples, HostUse, StartFacts,
};
use rusqlite::{Connection, Result, Row};

use super::{Parts, all, name, real};

pub(super) fn agents(connection: &Connection, recording: i64) -> Result<Vec<AgentRecording>> {
    all(connection, "SELECT * FROM agents WHERE recording_id = ?1 ORDER BY ordinal", [recording], |row| {
        Ok(AgentRecording {
            name: row.get("name")?,
            host: row.get("host")?,
            pid: row.get("pid")?,
            first_client: row.get("first_client")?,
            clients: row.get("clients")?,
            clock: ClockFacts {
                offset_ns: row.get("offset_ns")?,
                bound_ns: row.get("bound_ns")?,
                exchanges: row.get("exchanges")?,
                drift: row.get("drift")?,
            },
            host_use: host_use(row)?,
        })
    })
}

/// Use of a host, from a row of `recordings` or `agents`.
pub(super) fn host_use(row: &Row<'_>) -> Result<HostUse> {
    Ok(HostUse {
        process_user_ns: row.get("process_user_ns")?,
        process_system_ns: row.get("process_system_ns")?,
        host_busy: row.get("host_busy")?,
        host_steal: row.get("host_steal")?,
        processors: row.get("processors")?,
        clock_step_ns: row.get("clock_step_ns")?,
        clock_drift: real(row, "clock_drift")?,
        trace_stall_ns: row.get("trace_stall_ns")?,
        free_before: row.get("free_before_bytes")?,
        free_after: row.get("free_after_bytes")?,
        null_rate: row.get("null_rate")?,
    })
}

pub(super) fn start(connection: &Connection, recording: i64) -> Result<Option<StartFacts>> {
    let rows = all(connection, "SELECT * FROM starts WHERE recording_id = ?1", [recording], |row| {
        Ok(StartFacts {
            spread_ns: row.get("spread_ns")?,
            bound_ns: row.get("bound_ns")?,
            server_spread_ns: row.get("server_spread_ns")?,
            stagger_ns: row.get("stagger_ns")?,
        })
    })?;
    Ok(rows.into_iter().next())
}

pub(super) fn collected(connection: &Connection, recording: i64, parts: Parts) -> Result<Vec<Collected>> {
    let sql = match parts {
        Parts::All => "SELECT * FROM collected WHERE recording_id = ?1 ORDER BY ordinal",
        Parts::Small => {
            "SELECT name, agent, command, ended, x'' AS output, lost, start_ns, end_ns FROM collected \
             WHERE recording_id = ?1 ORDER BY ordinal"
        }
    };
    all(connection, sql, [recording], |row| {
        Ok(Collected {
            name: row.get("name")?,
            agent: row.get("agent")?,
            command: row.get("command")?,
            ended: row.get("ended")?,
            output: row.get("output")?,
            lost: row.get("lost")?,
            start_ns: row.get("start_ns")?,
            end_ns: row.get("end_ns")?,
        })
    })
}

pub(super) fn samples(connection: &Connection, recording: i64, parts: Parts) -> Result<Vec<HostSamples>> {
    let sql = "SELECT * FROM samplings WHERE recording_id = ?1 ORDER BY ordinal";
    all(connection, sql, [recording], |row| {
        let id: i64 = row.get("sampling_id")?;
        let costs = "SELECT * FROM sampler_costs WHERE sampling_id = ?1";
        let problems = "SELECT * FROM sampling_problems WHERE sampling_id = ?1 ORDER BY ordinal";
        let samplers = all(connection, costs, [id], |row| {
            let cost = SamplerCost { cpu_ns: row.get("cpu_ns")?, reads: row.get("reads")? };
            Ok((row.get("sampler")?, cost))
        })?;
        let series = match parts {
            Parts::All => series(connection, id)?,
            Parts::Small => Vec::new(),
        };
        Ok(HostSamples {
            agent: row.get("agent")?,
            samples: Samples {
                series,
                ticks: row.get("ticks")?,
                late: row.get("late")?,
                problems: all(connection, problems, [id], |row| {
                    Ok(SamplerProblem { sampler: row.get("sampler")?, problem: row.get("problem")? })
                })?,
                cost: Cost {
                    cpu_ns: row.get("cpu_ns")?,
                    elapsed_ns: row.get("elapsed_ns")?,
                    samplers: samplers.into_iter().collect(),
                },
            },
        })
    })
}

fn series(connection: &Connection, sampling: i64) -> Result<Vec<Series>> {
    let sql =
        "SELECT * FROM sample_series JOIN metrics USING (metric_id) WHERE sampling_id = ?1 ORDER BY ordinal";
    all(connection, sql, [sampling], |row| {
        let id: i64 = row.get("sample_series_id")?;
        let points = "SELECT time_ns, value FROM samples WHERE sample_series_id = ?1 ORDER BY time_ns";
        Ok(Series {
            key: MetricKey {
                sampler: row.get("sampler")?,
                metric: row.get("metric")?,
                instance: row.get("instance")?,
            },
            kind: name(row, "kind")?,
            unit: Cow::Owned(row.get("unit")?),
            points: all(connection, points, [id], |row| {
                Ok(Point { time_ns: row.get(0)?, value: row.get::<_, Option<f64>>(1)?.unwrap_or(f64::NAN) })
            })?,
        })
    })
}
