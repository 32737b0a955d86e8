//! Rows → what went over the wire, who served it and what lay between.

use benchmaster_workload::recording::{ConnectionFacts, RpcPhase, RpcRecording, RpcRow};
use rusqlite::{Connection, Result, Row};

use super::{all, map, name, time};
use crate::record::{
    BaselineRecord, FlowsBaseline, NetworkAchieved, NetworkRecord, RoundTripBaseline, ServerOperation,
    ServerUse, ServiceRecord,
};

pub(super) fn service(connection: &Connection, run: i64) -> Result<Option<ServiceRecord>> {
    let rows = all(connection, "SELECT * FROM services WHERE run_id = ?1", [run], |row| {
        Ok(ServiceRecord {
            url: row.get("url")?,
            server: row.get("server")?,
            network: network(row)?,
            achieved: achieved(connection, run)?,
        })
    })?;
    Ok(rows.into_iter().next())
}

fn network(row: &Row<'_>) -> Result<NetworkRecord> {
    Ok(NetworkRecord {
        means: row.get("network")?,
        delay_ns: row.get("delay_ns")?,
        jitter_ns: row.get("jitter_ns")?,
        bandwidth: row.get("bandwidth")?,
        loss: row.get("loss")?,
        base_rtt_ns: row.get("base_rtt_ns")?,
        note: row.get("network_note")?,
    })
}

fn achieved(connection: &Connection, run: i64) -> Result<Option<NetworkAchieved>> {
    let rows = all(connection, "SELECT * FROM network_achieved WHERE run_id = ?1", [run], |row| {
        Ok(NetworkAchieved {
            packets: row.get("packets")?,
            lost: row.get("lost")?,
            overflowed: row.get("overflowed")?,
            lateness_p99_ns: row.get("lateness_p99_ns")?,
            lateness_max_ns: row.get("lateness_max_ns")?,
        })
    })?;
    Ok(rows.into_iter().next())
}

pub(super) fn baselines(connection: &Connection) -> Result<Vec<BaselineRecord>> {
    all(connection, "SELECT * FROM baselines ORDER BY baseline_id", [], |row| {
        let id: i64 = row.get("baseline_id")?;
        let flows = "SELECT * FROM baseline_flows WHERE baseline_id = ?1 ORDER BY ordinal";
        let round_trip = match row.get("rtt_count")? {
            None => None,
            Some(count) => Some(RoundTripBaseline {
                count,
                min_ns: row.get("rtt_min_ns")?,
                median_ns: row.get("rtt_median_ns")?,
                p99_ns: row.get("rtt_p99_ns")?,
            }),
        };
        Ok(BaselineRecord {
            session: row.get("session")?,
            time: time(row, "time")?,
            client: row.get("client")?,
            target: row.get("target")?,
            network: network(row)?,
            round_trip,
            flows: all(connection, flows, [id], |row| {
                Ok(FlowsBaseline {
                    flows: row.get("flows")?,
                    direction: row.get("direction")?,
                    count: row.get("count")?,
                    throughput: row.get("throughput")?,
                    half_width: row.get("half_width")?,
                    fairness: row.get("fairness")?,
                    retransmissions: row.get("retransmissions")?,
                })
            })?,
            result: row.get("result")?,
        })
    })
}

pub(super) fn server_use(connection: &Connection, run: i64) -> Result<Vec<ServerUse>> {
    all(connection, "SELECT * FROM server_use WHERE run_id = ?1 ORDER BY ordinal", [run], |row| {
        let ordinal: u32 = row.get("ordinal")?;
        let sql = "SELECT * FROM server_operations WHERE run_id = ?1 AND use_ordinal = ?2 ORDER BY ordinal";
        Ok(ServerUse {
            workload: row.get("workload")?,
            calls: row.get("calls")?,
            connections: row.get("connections")?,
            replayed: row.get("replayed")?,
            cpu_ns: row.get("cpu_ns")?,
            operations: all(connection, sql, (run, ordinal), |row| {
                Ok(ServerOperation {
                    protocol: row.get("protocol")?,
                    operation: row.get("operation")?,
                    ops: row.get("ops")?,
                    errors: row.get("errors")?,
                    bytes_received: row.get("bytes_received")?,
                    bytes_sent: row.get("bytes_sent")?,
                    service_ns: row.get("service_ns")?,
                })
            })?,
        })
    })
}

pub(super) fn rpc(connection: &Connection, recording: i64) -> Result<Option<RpcRecording>> {
    let rows = all(connection, "SELECT * FROM rpc_clients WHERE recording_id = ?1", [recording], |row| {
        let texts = "SELECT text FROM rpc_problems WHERE recording_id = ?1 ORDER BY ordinal";
        Ok(RpcRecording {
            source: name(row, "source")?,
            phases: phases(connection, recording)?,
            client_cpu_ns: (row.get("cpu_user_ns")?, row.get("cpu_system_ns")?),
            connection: ConnectionFacts {
                server: row.get("server")?,
                version: row.get("version")?,
                rsize: row.get("rsize")?,
                wsize: row.get("wsize")?,
                nconnect: row.get("nconnect")?,
                slots: row.get("slots")?,
                clients: row.get("clients")?,
                threads: row.get("threads")?,
            },
            problems: all(connection, texts, [recording], |row| row.get(0))?,
        })
    })?;
    Ok(rows.into_iter().next())
}

fn phases(connection: &Connection, recording: i64) -> Result<Vec<RpcPhase>> {
    let sql = "SELECT * FROM rpc_phases WHERE recording_id = ?1 ORDER BY ordinal";
    all(connection, sql, [recording], |row| {
        let ordinal: u32 = row.get("ordinal")?;
        let rows = "SELECT * FROM rpcs WHERE recording_id = ?1 AND phase_ordinal = ?2 ORDER BY ordinal";
        let events = "SELECT event, count FROM rpc_events WHERE recording_id = ?1 AND phase_ordinal = ?2";
        Ok(RpcPhase {
            phase: row.get("phase")?,
            rows: all(connection, rows, (recording, ordinal), |row| {
                Ok(RpcRow {
                    program: row.get("program")?,
                    operation: row.get("operation")?,
                    ops: row.get("ops")?,
                    transmissions: row.get("transmissions")?,
                    timeouts: row.get("timeouts")?,
                    bytes_sent: row.get("bytes_sent")?,
                    bytes_received: row.get("bytes_received")?,
                    queue_ns: row.get("queue_ns")?,
                    rtt_ns: row.get("rtt_ns")?,
                    execute_ns: row.get("execute_ns")?,
                    errors: row.get("errors")?,
                })
            })?,
            events: map(connection, events, (recording, ordinal))?,
        })
    })
}
