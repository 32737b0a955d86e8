//! What went over the wire, who served it and what lay between → rows.

use benchmaster_workload::recording::RpcRecording;
use rusqlite::{Connection, Transaction, params};

use super::{RowError, Rows, execute, name_of};
use crate::record::{BaselineRecord, NetworkRecord, RunRecord};

/// What a network is capable of.
pub(crate) fn baseline(transaction: &Transaction<'_>, b: &BaselineRecord) -> Rows {
    let (n, rtt) = (&b.network, b.round_trip);
    check_network(n)?;
    execute(
        transaction,
        "INSERT INTO baselines (session, time, client, target, network, delay_ns, jitter_ns, bandwidth, loss, \
         base_rtt_ns, network_note, rtt_count, rtt_min_ns, rtt_median_ns, rtt_p99_ns, result) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        params![
            b.session,
            b.time.to_string(),
            b.client,
            b.target,
            n.means,
            n.delay_ns,
            n.jitter_ns,
            n.bandwidth,
            n.loss,
            n.base_rtt_ns,
            n.note,
            rtt.map(|r| r.count),
            rtt.map(|r| r.min_ns),
            rtt.map(|r| r.median_ns),
            rtt.map(|r| r.p99_ns),
            b.result
        ],
    )?;
    let id = transaction.last_insert_rowid();
    for (ordinal, f) in (0u32..).zip(&b.flows) {
        if f.throughput.is_nan() {
            let problem = format!("the throughput of {} flows to {} is not a number", f.flows, b.target);
            return Err(RowError::Record(problem));
        }
        execute(
            transaction,
            "INSERT INTO baseline_flows VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                id,
                ordinal,
                f.flows,
                f.direction,
                f.count,
                f.throughput,
                f.half_width,
                f.fairness,
                f.retransmissions
            ],
        )?;
    }
    Ok(())
}

fn check_network(network: &NetworkRecord) -> Rows {
    match network.loss.is_nan() {
        true => Err(RowError::Record("the loss of the network is not a number".into())),
        false => Ok(()),
    }
}

pub(super) fn run(transaction: &Transaction<'_>, id: i64, run: &RunRecord) -> Rows {
    if let Some(s) = &run.service {
        let n = &s.network;
        check_network(n)?;
        execute(
            transaction,
            "INSERT INTO services (run_id, url, server, network, delay_ns, network_note, jitter_ns, bandwidth, loss, \
             base_rtt_ns) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            params![
                id,
                s.url,
                s.server,
                n.means,
                n.delay_ns,
                n.note,
                n.jitter_ns,
                n.bandwidth,
                n.loss,
                n.base_rtt_ns
            ],
        )?;
        if let Some(a) = &s.achieved {
            let values = params![id, a.packets, a.lost, a.overflowed, a.lateness_p99_ns, a.lateness_max_ns];
            execute(transaction, "INSERT INTO network_achieved VALUES (?1, ?2, ?3, ?4, ?5, ?6)", values)?;
        }
    }
    for (ordinal, u) in (0u32..).zip(&run.server_use) {
        let sql = "INSERT INTO server_use VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        let values = params![id, ordinal, u.workload, u.calls, u.connections, u.replayed, u.cpu_ns];
        execute(transaction, sql, values)?;
        for (index, o) in (0u32..).zip(&u.operations) {
            let sql = "INSERT INTO server_operations VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)";
            execute(
                transaction,
                sql,
                params![
                    id,
                    ordinal,
                    index,
                    o.protocol,
                    o.operation,
                    o.ops,
                    o.errors,
                    o.bytes_received,
                    o.bytes_sent,
                    o.service_ns
                ],
            )?;
        }
    }
    Ok(())
}

pub(super) fn rpc(connection: &Connection, id: i64, rpc: &RpcRecording) -> Rows {
    let c = &rpc.connection;
    execute(
        connection,
        "INSERT INTO rpc_clients VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        params![
            id,
            name_of(&rpc.source)?,
            c.server,
            c.version,
            c.rsize,
            c.wsize,
            c.nconnect,
            c.slots,
            c.clients,
            c.threads,
            rpc.client_cpu_ns.0,
            rpc.client_cpu_ns.1
        ],
    )?;
    for (ordinal, phase) in (0u32..).zip(&rpc.phases) {
        execute(connection, "INSERT INTO rpc_phases VALUES (?1, ?2, ?3)", params![id, ordinal, phase.phase])?;
        for (index, r) in (0u32..).zip(&phase.rows) {
            execute(
                connection,
                "INSERT INTO rpcs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
                params![
                    id,
                    ordinal,
                    index,
                    r.program,
                    r.operation,
                    r.ops,
                    r.transmissions,
                    r.timeouts,
                    r.bytes_sent,
                    r.bytes_received,
                    r.queue_ns,
                    r.rtt_ns,
                    r.execute_ns,
                    r.errors
                ],
            )?;
        }
        for (event, count) in &phase.events {
            let sql = "INSERT INTO rpc_events VALUES (?1, ?2, ?3, ?4)";
            execute(connection, sql, params![id, ordinal, event, count])?;
        }
    }
    for (ordinal, text) in (0u32..).zip(&rpc.problems) {
        execute(connection, "INSERT INTO rpc_problems VALUES (?1, ?2, ?3)", params![id, ordinal, text])?;
    }
    Ok(())
}
