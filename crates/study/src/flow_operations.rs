//! Flow operations: what Filebench counts. A file that is read or written whole is one, however many reads or writes that
//! takes.

use std::collections::BTreeMap;

use benchmaster_analysis::responses;
use benchmaster_record::model::{Repeat, Step, Workload};
use benchmaster_record::recording::Recording;
use benchmaster_record::results::Response;

/// The labels whose operations, added up, are the flow operations of a workload, each as often as it counts. What repeats
/// until the end of a file is counted by the operation that follows it. `None` where that cannot be told, or where nothing is
/// read or written whole: then each operation is a flow operation.
fn labels(workload: &Workload) -> Option<BTreeMap<&str, u64>> {
    let mut found = OperationCounts::default();
    workload.groups.iter().for_each(|group| found.walk(&group.flow));
    let clear = found.whole.iter().all(|(inner, follower)| {
        let once = follower.is_some_and(|label| found.single.get(label) == Some(&1));
        once && inner.iter().all(|label| !found.single.contains_key(label))
    });
    if found.whole.is_empty() || !clear {
        return None;
    }
    let mut labels: BTreeMap<&str, u64> = found.single.into_keys().map(|label| (label, 1)).collect();
    for follower in found.whole.iter().filter_map(|(_, follower)| *follower) {
        *labels.entry(follower).or_default() += 1;
    }
    Some(labels)
}

#[derive(Default)]
struct OperationCounts<'w> {
    /// Labels of operations that count one each, and how many steps have them.
    single: BTreeMap<&'w str, u64>,
    /// For each repeat until the end of a file, the labels in it and that of the operation that follows.
    whole: Vec<(Vec<&'w str>, Option<&'w str>)>,
}

impl<'w> OperationCounts<'w> {
    fn walk(&mut self, steps: &'w [Step]) {
        for (number, step) in steps.iter().enumerate() {
            if let Some(label) = label(step) {
                *self.single.entry(label).or_default() += 1;
            } else if let Some(Repeat::Until(_)) = step.repeat {
                let follower = steps.get(number + 1).and_then(label);
                self.whole.push((step.flow.iter().filter_map(label).collect(), follower));
            } else {
                self.walk(&step.flow);
                step.choose.iter().for_each(|choice| self.walk(&choice.flow));
            }
        }
    }
}

fn label(step: &Step) -> Option<&str> {
    let operation = step.op?;
    Some(step.label.as_deref().unwrap_or(operation.name()))
}

/// Whether a workload has the response.
pub fn has(workload: &Workload) -> bool {
    labels(workload).is_some()
}

/// The response `flow_operations`, where a workload has it.
pub fn response(recording: &Recording, workload: &Workload) -> Option<Response> {
    Some(responses::flow_operations(recording, &labels(workload)?))
}

#[cfg(test)]
mod tests {
    use benchmaster_analysis::responses::{counted, counted_stats};
    use benchmaster_builtin::WorkloadSpec;
    use benchmaster_testkit::study_results;

    use super::*;

    fn expanded(name: &str) -> Workload {
        WorkloadSpec::deserialize(name, toml::Table::new()).unwrap().unwrap().expand("w").unwrap()
    }

    #[test]
    fn filebenchs_workloads_have_as_many_flow_operations_as_flowops() {
        for (name, each) in [("file-server", 11), ("mail-server", 13), ("small-file-read", 3)] {
            let workload = expanded(name);
            let labels = labels(&workload).unwrap();
            // Each is done once in a repetition.
            assert_eq!(labels.values().sum::<u64>(), each, "{name}: {labels:?}");
            assert!(!labels.contains_key("read") && has(&workload));
        }
        let workload = expanded("web-server");
        let labels = labels(&workload).unwrap();
        assert_eq!(labels, BTreeMap::from([("open", 1), ("close", 2), ("append", 1)]));
    }

    #[test]
    fn where_operations_are_flow_operations_there_is_no_such_response() {
        for name in ["random-read", "metadata"] {
            assert!(!has(&expanded(name)), "{name}");
        }
        // Two files are closed in a round, and only one was read.
        let mut ambiguous = expanded("small-file-read");
        let again = ambiguous.groups[0].flow.last().unwrap().clone();
        ambiguous.groups[0].flow.push(again);
        assert!(!has(&ambiguous));
        let mut last = expanded("small-file-read");
        last.groups[0].flow.pop();
        assert!(!has(&last), "nothing follows the read");
    }

    #[test]
    fn operations_are_counted_by_their_labels() {
        let recording = study_results(1, 1, 1).runs.remove(0).recordings.remove(0);
        assert_eq!(response(&recording, &expanded("random-read")), None);
        let mut workload = expanded("small-file-read");
        let series = &recording.series[0];
        for step in workload.groups[0].flow.iter_mut().filter(|step| step.op.is_some()) {
            step.label = Some(format!("other-{}", step.op.unwrap().name()));
        }
        workload.groups[0].flow.last_mut().unwrap().label = Some(series.key.label.clone());
        let same = recording.series.iter().filter(|other| other.key.label == series.key.label);
        let count: u64 = same.map(|series| counted_stats(&recording, series).0.count).sum();
        let found = response(&recording, &workload).unwrap();
        assert_eq!(found.name, format!("{}.flow_operations", recording.workload));
        assert!((found.value - 2.0 * count as f64 / counted(&recording).seconds).abs() < 1e-6 * found.value);
    }
}
