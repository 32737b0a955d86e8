//! Responses that follow from several counters of a run together: the cost of operations on the wire and on both ends.
//!
//! A response is there only where all that it needs is known; what is not known is never 0.

mod host;
mod wire;

use benchmaster_record::recording::Recording;
use benchmaster_record::results::{Response, ServerUse, Unit};

/// What may be known besides the other responses of a workload, over its whole measured phase. Besides these there is
/// `<workload>.rpc.<OPERATION>.per_operation` for each kind of RPC that was made.
pub const DERIVED_RESPONSES: [&str; 22] = [
    "start_spread",
    "application_read",
    "application_written",
    "rpc_received_per_read",
    "rpc_sent_per_written",
    "wire_received",
    "wire_sent",
    "wire_received_per_read",
    "wire_sent_per_written",
    "delegations_granted",
    "delegations_recalled",
    "rpc_queue_share",
    "rpc_retransmissions",
    "cached_share",
    "process_cpu_per_operation",
    "cpu_share",
    "server_cpu_per_operation",
    "server_cpu_per_rpc",
    "client_busy",
    "server_busy",
    "tcp_retransmissions",
    "sampling_cost",
];

/// The derived responses of one workload of a run. `server` is what the embedded server did in each workload of the run;
/// only that of this one is used.
pub fn responses(recording: &Recording, server: &[ServerUse]) -> Vec<Response> {
    let server = server.iter().find(|used| used.workload == recording.workload);
    let mut found = wire::responses(recording);
    found.extend(host::responses(recording, server));
    found.retain(|response| response.value.is_finite());
    for response in &mut found {
        response.name = format!("{}.{}", recording.workload, response.name);
    }
    found
}

/// A response whose name lacks the workload.
fn response(name: impl Into<String>, value: f64, unit: Unit) -> Response {
    Response { name: name.into(), value, unit }
}

/// Operations of all series, failed ones included: a failed operation costs as well.
fn operations(recording: &Recording) -> u64 {
    recording.series.iter().map(|series| series.total.count + series.total.errors).sum()
}

/// `part / whole` where there is a whole.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use benchmaster_record::phase::Phase;
    use benchmaster_record::results::RunRecord;
    use benchmaster_testkit::{serve, spread, study_results};

    use super::*;

    fn run() -> RunRecord {
        let mut results = study_results(3, 1, 1);
        serve(&mut results);
        spread(&mut results);
        results.runs.remove(0)
    }

    fn value(list: &[Response], name: &str) -> f64 {
        let found = list.iter().find(|response| response.name == name);
        found.unwrap_or_else(|| panic!("no {name} in {list:?}")).value
    }

    fn bytes(recording: &Recording) -> f64 {
        recording.series.iter().map(|series| series.total.bytes).sum::<u64>() as f64
    }

    #[test]
    fn what_operations_cost_follows_from_the_counters() {
        let mut run = run();
        let recording = &mut run.recordings[0];
        // A counter of each host that grows evenly: 20 GB/s each over the whole phase.
        for host in &mut recording.samples {
            for series in host.samples.series.iter_mut().filter(|series| series.key.metric == "tx_bytes") {
                series.points.retain(|point| point.time_ns < 0 || point.time_ns > recording.length_ns as i64);
                for point in &mut series.points {
                    point.value = point.time_ns as f64 * 20.0 + 1e12;
                }
            }
        }
        let recording = &run.recordings[0];
        let list = responses(recording, &run.server_use);
        let seconds = recording.length_ns as f64 / 1e9;
        let close = |name: &str, expected: f64| {
            let found = value(&list, name);
            assert!((found - expected).abs() <= expected.abs() * 1e-9, "{name}: {found}, not {expected}");
        };
        close("write.application_written", bytes(recording) / seconds);
        close("write.wire_sent", 4e10);
        close("write.wire_sent_per_written", 4e10 * seconds / bytes(recording));
        let rpc = recording.rpc.as_ref().unwrap().phase(Phase::Measure).unwrap();
        let sum = |column: fn(&benchmaster_record::recording::RpcRow) -> u64| {
            rpc.rows.iter().map(column).sum::<u64>() as f64
        };
        close("write.rpc_sent_per_written", sum(|r| r.bytes_sent) / bytes(recording));
        close("write.rpc_queue_share", sum(|r| r.queue_ns) / sum(|r| r.execute_ns));
        let operations = operations(recording) as f64;
        close("write.rpc.COMMIT.per_operation", rpc.row("COMMIT").unwrap().ops as f64 / operations);
        close("write.rpc_retransmissions", sum(|r| r.transmissions - r.ops) / sum(|r| r.ops));
        let server = &run.server_use[0];
        close("write.server_cpu_per_rpc", server.cpu_ns.unwrap() as f64 / server.calls as f64);
        close("write.server_cpu_per_operation", server.cpu_ns.unwrap() as f64 / operations);
        close("write.start_spread", recording.start.unwrap().spread_ns as f64);
        close("write.client_busy", recording.host.host_busy.unwrap());
        close("write.sampling_cost", recording.samples[0].samples.cost.share().unwrap());
        assert!(!list.iter().any(|response| response.name == "write.cached_share"), "nothing was read");
    }

    #[test]
    fn reads_that_cost_no_read_came_from_a_cache() {
        let mut run = run();
        let read = bytes(&run.recordings[1]);
        let rows = &mut run.recordings[1].rpc.as_mut().unwrap().phases[1].rows;
        let row = rows.iter_mut().find(|row| row.operation == "READ").unwrap();
        row.bytes_received = (read * 0.25) as u64;
        let list = responses(&run.recordings[1], &run.server_use);
        assert!((value(&list, "read.cached_share") - 0.75).abs() < 1e-6);
        let rows = &mut run.recordings[1].rpc.as_mut().unwrap().phases[1].rows;
        rows.iter_mut().for_each(|row| row.bytes_received = (read * 1.1) as u64);
        let list = responses(&run.recordings[1], &run.server_use);
        assert_eq!(value(&list, "read.cached_share"), 0.0);
    }

    #[test]
    fn what_is_not_known_has_no_response() {
        let run = run();
        let mut recording = run.recordings[0].clone();
        // The interfaces moved less than the calls: the server is on this host.
        for host in &mut recording.samples {
            for series in host.samples.series.iter_mut().filter(|series| series.key.sampler == "net") {
                series.points.iter_mut().for_each(|point| point.value = 7.0);
            }
        }
        recording.agents[2].host_use.host_busy = None;
        let names = |recording: &Recording, server: &[ServerUse]| -> Vec<String> {
            responses(recording, server).into_iter().map(|response| response.name).collect()
        };
        let found = names(&recording, &run.server_use);
        assert!(!found.iter().any(|name| name.starts_with("write.wire")), "{found:?}");
        let busy = value(&responses(&recording, &[]), "write.server_busy");
        assert!((0.3..0.5).contains(&busy), "by its samples: {busy}");

        (recording.rpc, recording.start) = (None, None);
        recording.agents.clear();
        recording.samples.clear();
        recording.series.iter_mut().for_each(|series| series.total = Default::default());
        assert_eq!(names(&recording, &[]), [""; 0]);
    }

    #[test]
    fn names_are_those_that_are_promised() {
        let run = run();
        let lists = run.recordings.iter().flat_map(|recording| responses(recording, &run.server_use));
        let mut kinds = 0;
        for response in lists {
            let (_, what) = response.name.split_once('.').unwrap();
            let of_kind = what.starts_with("rpc.") && what.ends_with(".per_operation");
            assert!(of_kind || DERIVED_RESPONSES.contains(&what), "{what}");
            kinds += u32::from(of_kind);
        }
        assert!(kinds > 3);
    }
}
