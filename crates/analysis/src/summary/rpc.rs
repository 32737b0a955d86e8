//! What went over the wire, over the runs of a treatment.

use std::collections::BTreeMap;

use benchmaster_record::nfs::NfsVersion;
use benchmaster_record::phase::Phase;
use benchmaster_record::recording::{RpcPhase, RpcRecording, RpcRow};
use benchmaster_record::results::RunRecord;
use serde::Serialize;

use crate::runs::Estimate;

/// The RPCs of one phase of a workload.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RpcSummary {
    pub workload: String,
    pub phase: Phase,
    /// Clients whose RPCs are summed.
    pub clients: u32,
    /// How they reached the server: `NFS 4.1, rsize 1 MiB, …`.
    pub connection: String,
    /// Runs that count.
    pub runs: usize,
    /// Kinds of calls, in the order of the protocol.
    pub rows: Vec<RpcRowSummary>,
    /// Recoveries and other events, mean per run.
    pub events: BTreeMap<String, f64>,
}

/// One kind of call: means over runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RpcRowSummary {
    /// `NFSv3`, `NFSv4`, `MOUNT`, …
    pub program: String,
    /// `READ`; of NFSv4 what the compound is for.
    pub operation: String,
    /// Calls per run; 0 in a run without any.
    pub ops: Estimate,
    /// Times a request was sent, per run.
    pub transmissions: f64,
    /// Timeouts per run.
    pub timeouts: f64,
    /// Bytes sent per run.
    pub bytes_sent: f64,
    /// Bytes received per run.
    pub bytes_received: f64,
    /// Nanoseconds in the queue, per call; over runs with such calls.
    pub queue_ns: Option<Estimate>,
    /// Nanoseconds until the reply, per call.
    pub rtt_ns: Option<Estimate>,
    /// Nanoseconds from the wish to the reply, per call.
    pub execute_ns: Option<Estimate>,
    /// Calls that failed, per run.
    pub errors: f64,
}

/// A phase of a recording that counts.
type Counted<'r> = (&'r RpcRecording, &'r RpcPhase);

/// The RPCs of a treatment's runs that count, by workload and phase.
pub(super) fn rpcs(runs: &[&RunRecord], confidence: f64) -> Vec<RpcSummary> {
    let mut phases: Vec<(&str, Phase, Vec<Counted<'_>>)> = Vec::new();
    for recording in runs.iter().flat_map(|run| &run.recordings) {
        let Some(rpc) = &recording.rpc else { continue };
        for phase in &rpc.phases {
            let same = |(workload, name, _): &&mut (&str, Phase, _)| {
                *workload == recording.workload && *name == phase.phase
            };
            match phases.iter_mut().find(same) {
                Some((.., of)) => of.push((rpc, phase)),
                None => phases.push((&recording.workload, phase.phase, vec![(rpc, phase)])),
            }
        }
    }
    phases.into_iter().map(|(workload, phase, of)| summarize(workload, phase, &of, confidence)).collect()
}

fn summarize(workload: &str, phase: Phase, of: &[(&RpcRecording, &RpcPhase)], confidence: f64) -> RpcSummary {
    let runs = of.len();
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for row in of.iter().flat_map(|(_, phase)| &phase.rows) {
        let kind = (row.program.as_str(), row.operation.as_str());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    let mut events: BTreeMap<String, f64> = BTreeMap::new();
    for (event, count) in of.iter().flat_map(|(_, phase)| &phase.events) {
        *events.entry(event.clone()).or_default() += *count as f64 / runs as f64;
    }
    let none = RpcRow::default();
    let rows = kinds.into_iter().filter_map(|(program, operation)| {
        let row = |(_, phase): &(&RpcRecording, &RpcPhase)| {
            let found = phase.rows.iter().find(|row| row.program == program && row.operation == operation);
            found.cloned().unwrap_or_else(|| none.clone())
        };
        let rows: Vec<RpcRow> = of.iter().map(row).collect();
        let mean =
            |column: fn(&RpcRow) -> u64| rows.iter().map(|row| column(row) as f64).sum::<f64>() / runs as f64;
        let per_call = |column: fn(&RpcRow) -> u64| {
            let called = rows.iter().filter(|row| row.ops > 0);
            let values: Vec<f64> = called.map(|row| column(row) as f64 / row.ops as f64).collect();
            Estimate::of(&values, confidence).ok()
        };
        let ops: Vec<f64> = rows.iter().map(|row| row.ops as f64).collect();
        Some(RpcRowSummary {
            program: program.to_owned(),
            operation: operation.to_owned(),
            ops: Estimate::of(&ops, confidence).ok()?,
            transmissions: mean(|row| row.transmissions),
            timeouts: mean(|row| row.timeouts),
            bytes_sent: mean(|row| row.bytes_sent),
            bytes_received: mean(|row| row.bytes_received),
            queue_ns: per_call(|row| row.queue_ns),
            rtt_ns: per_call(|row| row.rtt_ns),
            execute_ns: per_call(|row| row.execute_ns),
            errors: mean(|row| row.errors),
        })
    });
    let rows = rows.collect();
    let first = of.first().map(|(rpc, _)| &rpc.connection);
    RpcSummary {
        workload: workload.to_owned(),
        phase,
        clients: first.map_or(1, |connection| connection.clients.max(1)),
        connection: of.first().map_or_else(String::new, |(rpc, _)| connection(rpc)),
        runs,
        rows,
        events,
    }
}

fn connection(rpc: &RpcRecording) -> String {
    let c = &rpc.connection;
    let size = |bytes: u64| benchmaster_units::ByteSize(bytes).to_string();
    let mut text = format!(
        "NFS {}, rsize {}, wsize {}",
        c.version.map_or("", NfsVersion::name),
        size(c.rsize),
        size(c.wsize)
    );
    if let Some(slots) = c.slots {
        text += &format!(", {slots} slots");
    }
    let each = if c.nconnect == 1 { "connection" } else { "connections" };
    text += &format!(", {} {each} per client", c.nconnect);
    if let Some(suite) = &c.tls {
        text += &format!(", TLS 1.3 with {suite}");
    }
    text
}

#[cfg(test)]
mod tests {
    use benchmaster_record::recording::RpcCounters;
    use benchmaster_testkit as synthetic;
    use benchmaster_testkit::study_results;

    use super::*;

    #[test]
    fn phases_are_apart_and_absent_calls_count_as_none() {
        let mut results = study_results(3, 1, 3);
        synthetic::serve(&mut results);
        for run in &mut results.runs {
            run.checks.clear();
        }
        let rare = RpcRow {
            program: "NFSv4".into(),
            operation: "RENEW".into(),
            counters: RpcCounters { ops: 3, ..RpcCounters::default() },
        };
        let rpc = results.runs[0].recordings[0].rpc.as_mut().unwrap();
        rpc.phases[1].rows.push(RpcRow { counters: RpcCounters { rtt_ns: 3_000, ..rare.counters }, ..rare });
        let runs: Vec<_> = results.runs.iter().collect();
        let found = rpcs(&runs, 0.95);
        let phases: Vec<_> = found.iter().map(|s| (s.workload.as_str(), s.phase.name(), s.runs)).collect();
        assert_eq!(phases[..3], [("write", "set-up", 3), ("write", "measure", 3), ("write", "tear-down", 3)]);
        let measured = &found[1];
        assert_eq!((measured.clients, measured.events["slot-wait"]), (2, 12.0));
        let renew = measured.rows.iter().find(|row| row.operation == "RENEW").unwrap();
        assert_eq!((renew.ops.n, renew.ops.mean), (3, 1.0));
        let rtt = renew.rtt_ns.as_ref().unwrap();
        assert_eq!((rtt.n, rtt.mean, rtt.half_width), (1, 1000.0, None), "over the one run with such calls");
        assert_eq!(measured.connection, "NFS 4.1, rsize 1MiB, wsize 1MiB, 64 slots, 1 connection per client");
    }
}
