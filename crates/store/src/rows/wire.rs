//! What went over the wire, the server, and the network between.

use benchmaster_record::recording::{ConnectionFacts, RpcCounters, RpcPhase, RpcRecording, RpcRow};
use benchmaster_record::results::{
    BaselineRecord, FlowsBaseline, NetworkAchieved, NetworkRecord, RoundTripBaseline, RunRecord,
    ServerOperation, ServerUse, ServiceRecord,
};
use rusqlite::{Connection, Result, Row, Transaction};

use super::cell::{Cell, Columns, NewRow};
use super::{Inserted, RowError, all, load_list, map, one};

columns! {
    NetworkRecord {
        emulator = "network", delay_ns, jitter_ns, bandwidth, loss, base_rtt_ns, note = "network_note"
    }
    NetworkAchieved { packets, lost, overflowed, lateness_p99_ns, lateness_max_ns }
    RoundTripBaseline {
        count = "rtt_count", min_ns = "rtt_min_ns", median_ns = "rtt_median_ns", p99_ns = "rtt_p99_ns"
    }
    FlowsBaseline { flows, direction, count, throughput, half_width, fairness, retransmissions }
    ServerOperation { protocol, operation, ops, errors, bytes_received, bytes_sent, service_ns }
    ConnectionFacts { server, version, rsize, wsize, nconnect, slots, clients, threads, tls }
    RpcRow { program, operation; counters }
    RpcCounters {
        ops, transmissions, timeouts, bytes_sent, bytes_received, queue_ns, rtt_ns, execute_ns, errors
    }
}

/// What a network is capable of.
pub(crate) fn insert_baseline(transaction: &Transaction<'_>, baseline: &BaselineRecord) -> Inserted {
    check_network(&baseline.network)?;
    let row = store!(NewRow::default(), baseline, { session, time, client, target, result });
    let mut row = row.with(&baseline.network);
    if let Some(round_trip) = &baseline.round_trip {
        row = row.with(round_trip);
    }
    let id = row.insert(transaction, "baselines")?;
    for (ordinal, flows) in (0u32..).zip(&baseline.flows) {
        if flows.throughput.is_nan() {
            let (count, target) = (flows.flows, &baseline.target);
            let problem = format!("the throughput of {count} flows to {target} is not a number");
            return Err(RowError::Record(problem));
        }
        NewRow::child("baseline_id", id, ordinal).with(flows).insert(transaction, "baseline_flows")?;
    }
    Ok(())
}

fn check_network(network: &NetworkRecord) -> Inserted {
    if network.loss.is_nan() {
        return Err(RowError::Record("the loss of the network is not a number".into()));
    }
    Ok(())
}

/// The server of a run, the network to it, and what the server did.
pub(super) fn insert_service(transaction: &Transaction<'_>, id: i64, run: &RunRecord) -> Inserted {
    if let Some(service) = &run.service {
        check_network(&service.network)?;
        let row = store!(NewRow::default().set("run_id", &id), service, { url, server });
        row.with(&service.network).insert(transaction, "services")?;
        if let Some(achieved) = &service.achieved {
            NewRow::default().set("run_id", &id).with(achieved).insert(transaction, "network_achieved")?;
        }
    }
    for (ordinal, used) in (0u32..).zip(&run.server_use) {
        let row = NewRow::child("run_id", id, ordinal);
        store!(row, used, { workload, calls, connections, replayed, cpu_ns, held_ns })
            .insert(transaction, "server_use")?;
        for (index, operation) in (0u32..).zip(&used.operations) {
            NewRow::child("run_id", id, index)
                .set("use_ordinal", &ordinal)
                .with(operation)
                .insert(transaction, "server_operations")?;
        }
    }
    Ok(())
}

pub(super) fn insert_rpc(connection: &Connection, id: i64, rpc: &RpcRecording) -> Inserted {
    NewRow::default()
        .set("recording_id", &id)
        .set("source", &rpc.source)
        .with(&rpc.connection)
        .set("cpu_user_ns", &rpc.client_cpu_ns.0)
        .set("cpu_system_ns", &rpc.client_cpu_ns.1)
        .insert(connection, "rpc_clients")?;
    for (ordinal, phase) in (0u32..).zip(&rpc.phases) {
        NewRow::child("recording_id", id, ordinal)
            .set("phase", &phase.phase)
            .insert(connection, "rpc_phases")?;
        for (index, row) in (0u32..).zip(&phase.rows) {
            NewRow::child("recording_id", id, index)
                .set("phase_ordinal", &ordinal)
                .with(row)
                .insert(connection, "rpcs")?;
        }
        for (event, count) in &phase.events {
            NewRow::default()
                .set("recording_id", &id)
                .set("phase_ordinal", &ordinal)
                .set("event", event)
                .set("count", count)
                .insert(connection, "rpc_events")?;
        }
    }
    for (ordinal, text) in (0u32..).zip(&rpc.problems) {
        NewRow::child("recording_id", id, ordinal).set("text", text).insert(connection, "rpc_problems")?;
    }
    Ok(())
}

pub(super) fn load_service(connection: &Connection, run: i64) -> Result<Option<ServiceRecord>> {
    one(connection, "SELECT * FROM services WHERE run_id = ?1", [run], |row| {
        let achieved = "SELECT * FROM network_achieved WHERE run_id = ?1";
        let achieved = one(connection, achieved, [run], Columns::load)?;
        Ok(load!(row, ServiceRecord { url, server; network: Columns::load(row)?, achieved }))
    })
}

pub(super) fn load_baselines(connection: &Connection) -> Result<Vec<BaselineRecord>> {
    all(connection, "SELECT * FROM baselines ORDER BY baseline_id", [], |row| {
        let flows = load_list(connection, "baseline_flows", ("baseline_id", row.get("baseline_id")?))?;
        let measured = row.get::<_, Option<u64>>("rtt_count")?.is_some();
        let round_trip = if measured { Some(Columns::load(row)?) } else { None };
        let network = Columns::load(row)?;
        Ok(load!(row, BaselineRecord { session, time, client, target, result; network, round_trip, flows }))
    })
}

pub(super) fn load_server_use(connection: &Connection, run: i64) -> Result<Vec<ServerUse>> {
    all(connection, "SELECT * FROM server_use WHERE run_id = ?1 ORDER BY ordinal", [run], |row| {
        let sql = "SELECT * FROM server_operations WHERE run_id = ?1 AND use_ordinal = ?2 ORDER BY ordinal";
        let operations = all(connection, sql, (run, row.get::<_, u32>("ordinal")?), Columns::load)?;
        Ok(load!(row, ServerUse { workload, calls, connections, replayed, cpu_ns, held_ns; operations }))
    })
}

pub(super) fn load_rpc(connection: &Connection, recording: i64) -> Result<Option<RpcRecording>> {
    one(connection, "SELECT * FROM rpc_clients WHERE recording_id = ?1", [recording], |row| {
        let texts = "SELECT text FROM rpc_problems WHERE recording_id = ?1 ORDER BY ordinal";
        Ok(load!(row, RpcRecording {
            source;
            phases: load_phases(connection, recording)?,
            client_cpu_ns: (Cell::load(row, "cpu_user_ns")?, Cell::load(row, "cpu_system_ns")?),
            connection: Columns::load(row)?,
            problems: all(connection, texts, [recording], |row| row.get(0))?,
        }))
    })
}

fn load_phases(connection: &Connection, recording: i64) -> Result<Vec<RpcPhase>> {
    let sql = "SELECT * FROM rpc_phases WHERE recording_id = ?1 ORDER BY ordinal";
    all(connection, sql, [recording], |row| {
        let ordinal: u32 = row.get("ordinal")?;
        let rows = "SELECT * FROM rpcs WHERE recording_id = ?1 AND phase_ordinal = ?2 ORDER BY ordinal";
        let events = "SELECT event, count FROM rpc_events WHERE recording_id = ?1 AND phase_ordinal = ?2";
        let rows = all(connection, rows, (recording, ordinal), Columns::load)?;
        let events = map(connection, events, (recording, ordinal))?;
        Ok(load!(row, RpcPhase { phase; rows, events }))
    })
}
