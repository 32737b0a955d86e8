//! The names of the responses that a workload has, known before anything is run.

use std::collections::BTreeSet;

use benchmaster_builtin::{BonnieColumn, WorkloadSpec};
use benchmaster_record::model::{OperationKind, Verify, Workload};
use benchmaster_workload::program::Access;

use crate::flow_operations;
use benchmaster_record::model::leaves;

/// What is known of the latencies of each series.
pub const LATENCIES: [&str; 6] = ["mean", "p50", "p90", "p99", "p999", "max"];

/// What is known of the RPCs of a workload, over its whole measured phase.
pub const RPC_RESPONSES: [&str; 6] =
    ["rpcs", "rpcs_per_operation", "cpu_per_operation", "rpc_rtt", "rpc_queue", "rpc_execute"];

/// What a durability witness counts: blocks and names acknowledged as stable, and those of them that were not there after
/// the cut.
pub const WITNESS_RESPONSES: [&str; 2] = ["acknowledged", "lost"];

/// The names of all responses of a workload, the most important first.
///
/// * `<workload>.throughput` (when it moves data), `<workload>.operations` and `<workload>.elapsed`;
/// * `<workload>.flow_operations` where files are read or written whole;
/// * for `write-latency` also `<workload>.write_throughput`, `.flush_throughput` and `.close_throughput`;
/// * for each series, which is a label of the flow and the operation's name without one,
///   `<workload>.<series>.throughput` (when it moves data), `.operations`, both again as `.active_throughput` and
///   `.active_operations`, and `.latency.<what>`;
/// * with a durability witness, [`WITNESS_RESPONSES`];
/// * for an export, [`RPC_RESPONSES`].
pub fn response_names(name: &str, spec: &WorkloadSpec, workload: &Workload, access: Access) -> Vec<String> {
    let series = series(workload);
    let mut names = Vec::new();
    if series.iter().any(|(_, operation)| operation.moves_data()) {
        names.push(format!("{name}.throughput"));
    }
    names.extend(["operations", "elapsed"].map(|what| format!("{name}.{what}")));
    if flow_operations::has(workload) {
        names.push(format!("{name}.flow_operations"));
    }
    if workload.verify == Verify::Durability {
        names.extend(WITNESS_RESPONSES.map(|what| format!("{name}.{what}")));
    }
    names.extend(throughputs_until(spec).iter().map(|(what, _)| format!("{name}.{what}")));
    for (label, operation) in series {
        if operation.moves_data() {
            names.push(format!("{name}.{label}.throughput"));
        }
        names.push(format!("{name}.{label}.operations"));
        if operation.moves_data() {
            names.push(format!("{name}.{label}.active_throughput"));
        }
        names.push(format!("{name}.{label}.active_operations"));
        names.extend(LATENCIES.map(|what| format!("{name}.{label}.latency.{what}")));
    }
    if access == Access::Nfs {
        names.extend(RPC_RESPONSES.map(|what| format!("{name}.{what}")));
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Throughputs up to the end of the last operation of a kind.
pub fn throughputs_until(spec: &WorkloadSpec) -> &'static [(&'static str, OperationKind)] {
    match spec {
        WorkloadSpec::WriteLatency(_) => &[
            ("write_throughput", OperationKind::Write),
            ("flush_throughput", OperationKind::Fsync),
            ("close_throughput", OperationKind::Close),
        ],
        _ => &[],
    }
}

/// The response that a study is about when it does not say so: throughput for the workloads that move data for its own
/// sake, files created per second, flow operations for Filebench's, Bonnie's own for its columns, else operations per
/// second.
pub fn default_response(name: &str, spec: &WorkloadSpec) -> String {
    let data = matches!(
        spec,
        WorkloadSpec::SequentialRead(_)
            | WorkloadSpec::RandomRead(_)
            | WorkloadSpec::SequentialWrite(_)
            | WorkloadSpec::RandomWrite(_)
            | WorkloadSpec::WriteLatency(_)
    );
    let flow = matches!(
        spec,
        WorkloadSpec::FileServer(_) | WorkloadSpec::WebServer(_) | WorkloadSpec::MailServer(_)
    );
    let what = match spec {
        WorkloadSpec::Bonnie(p) => match p.column {
            BonnieColumn::CharWrite | BonnieColumn::BlockWrite | BonnieColumn::Rewrite => "write.throughput",
            BonnieColumn::CharRead | BonnieColumn::BlockRead => "read.throughput",
            BonnieColumn::Seeks => "seek.operations",
        },
        // A file is created once, however many writes it takes.
        WorkloadSpec::FileCreation(_) => "create.operations",
        _ if data => "throughput",
        _ if flow => "flow_operations",
        _ => "operations",
    };
    format!("{name}.{what}")
}

fn series(workload: &Workload) -> Vec<(String, OperationKind)> {
    let steps = workload.groups.iter().flat_map(|group| leaves(&group.flow));
    let key = |step: &benchmaster_record::model::Step| {
        let operation = step.op?;
        Some((step.label.clone().unwrap_or_else(|| operation.name().to_owned()), operation))
    };
    steps.filter_map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(spec: &WorkloadSpec) -> Vec<String> {
        response_names("w", spec, &spec.expand("w").unwrap(), Access::System)
    }

    #[test]
    fn responses_follow_from_the_flow() {
        let write = WorkloadSpec::SequentialWrite(Default::default());
        assert_eq!(default_response("w", &write), "w.throughput");
        let known = names(&write);
        assert!(
            known.contains(&"w.write.latency.p99".into()) && !known.contains(&"w.read.operations".into())
        );

        let metadata = WorkloadSpec::Metadata(Default::default());
        assert_eq!(default_response("w", &metadata), "w.operations");
        let known = names(&metadata);
        assert!(known.contains(&"w.rename.operations".into()) && !known.contains(&"w.throughput".into()));

        let create = WorkloadSpec::FileCreation(Default::default());
        assert_eq!(default_response("w", &create), "w.create.operations");
        assert!(names(&create).contains(&"w.create.operations".into()));

        let latency = names(&WorkloadSpec::WriteLatency(Default::default()));
        for name in
            ["w.throughput", "w.write_throughput", "w.close.latency.max", "w.fsync.operations", "w.elapsed"]
        {
            assert!(latency.contains(&name.into()), "{name} is not among {latency:?}");
        }
    }

    #[test]
    fn over_the_wire_there_are_responses_of_rpcs() {
        let spec = WorkloadSpec::Metadata(Default::default());
        let known = response_names("w", &spec, &spec.expand("w").unwrap(), Access::Nfs);
        assert_eq!(known.iter().filter(|name| !names(&spec).contains(name)).count(), RPC_RESPONSES.len());
        assert!(known.contains(&"w.rpcs_per_operation".into()));
    }

    #[test]
    fn a_series_that_appears_twice_is_listed_once() {
        let spec = WorkloadSpec::Metadata(Default::default());
        let mut workload = spec.expand("w").unwrap();
        workload.groups.push(workload.groups[0].clone());
        assert_eq!(response_names("w", &spec, &workload, Access::System), names(&spec));
    }
}
