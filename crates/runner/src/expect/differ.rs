//! Where findings are not what is expected.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::{Expectation, OperationFindings, WorkloadFindings};

/// Something that is not as expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The treatment.
    pub treatment: String,
    /// The workload; empty when the whole treatment is there or not.
    pub workload: String,
    /// The operation, phase and procedure, or counter.
    pub what: String,
    /// What is different of it.
    pub change: Change,
}

/// What is different.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It was expected, and is not there.
    Missing,
    /// It is there, and was not expected.
    Unexpected,
    /// It has another value.
    Value {
        /// As in the file.
        expected: String,
        /// As found.
        found: String,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.treatment)?;
        for part in [&self.workload, &self.what].into_iter().filter(|part| !part.is_empty()) {
            write!(f, ": {part}")?;
        }
        match &self.change {
            Change::Missing => write!(f, ": expected, and not found"),
            Change::Unexpected => write!(f, ": found, and not expected"),
            Change::Value { expected, found } => write!(f, ": expected {expected}, found {found}"),
        }
    }
}

impl Expectation {
    /// Where `found` is not what this expects, in the order of the file.
    pub fn differences(&self, found: &Self) -> Vec<Difference> {
        let mut all = Vec::new();
        for (treatment, pair) in both(&self.treatment, &found.treatment) {
            let of = |workload: &str, what: String, change| Difference {
                treatment: treatment.into(),
                workload: workload.into(),
                what,
                change,
            };
            let (expected, found) = match pair {
                Pair::Missing => {
                    all.push(of("", String::new(), Change::Missing));
                    continue;
                }
                Pair::Unexpected => {
                    all.push(of("", String::new(), Change::Unexpected));
                    continue;
                }
                Pair::Both(expected, found) => (expected, found),
            };
            for (workload, pair) in both(expected, found) {
                match pair {
                    Pair::Missing => all.push(of(workload, String::new(), Change::Missing)),
                    Pair::Unexpected => all.push(of(workload, String::new(), Change::Unexpected)),
                    Pair::Both(expected, found) => {
                        let (expected, found) = (flat(expected), flat(found));
                        for (what, pair) in both(&expected, &found) {
                            let change = match pair {
                                Pair::Missing => Change::Missing,
                                Pair::Unexpected => Change::Unexpected,
                                Pair::Both(expected, found) if expected == found => continue,
                                Pair::Both(expected, found) => {
                                    Change::Value { expected: expected.clone(), found: found.clone() }
                                }
                            };
                            all.push(of(workload, what.into(), change));
                        }
                    }
                }
            }
        }
        all
    }
}

/// What two maps have at a key.
enum Pair<'a, T> {
    Missing,
    Unexpected,
    Both(&'a T, &'a T),
}

fn both<'a, T>(
    expected: &'a BTreeMap<String, T>,
    found: &'a BTreeMap<String, T>,
) -> impl Iterator<Item = (&'a str, Pair<'a, T>)> {
    let keys: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    keys.into_iter().map(|key| {
        let pair = match (expected.get(key), found.get(key)) {
            (Some(expected), Some(found)) => Pair::Both(expected, found),
            (Some(_), None) => Pair::Missing,
            (None, _) => Pair::Unexpected,
        };
        (key.as_str(), pair)
    })
}

/// Every number with the words that name it.
fn flat(findings: &WorkloadFindings) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (name, OperationFindings { count, errors, round_trips, latency }) in &findings.operations {
        all.insert(format!("operation {name}: count"), count.to_string());
        for (error, count) in errors {
            all.insert(format!("operation {name}: errors {error}"), count.to_string());
        }
        if let Some(round_trips) = round_trips {
            all.insert(format!("operation {name}: round trips"), round_trips.clone());
        }
        all.insert(format!("operation {name}: latency"), latency.join(", "));
    }
    for (phase, calls) in &findings.rpcs {
        // A procedure that is not called any more, or that is new, was called 0 times.
        all.extend(calls.iter().map(|(name, count)| (format!("RPCs {phase}: {name}"), count.to_string())));
    }
    let counters = |of: &str, counts: &BTreeMap<String, u64>| -> Vec<(String, String)> {
        counts.iter().map(|(name, count)| (format!("{of} {name}"), count.to_string())).collect()
    };
    all.extend(counters("client", &findings.client));
    all.extend(counters("server", &findings.server));
    all
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    fn texts(expected: &Expectation, found: &Expectation) -> Vec<String> {
        expected.differences(found).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_the_same_has_no_differences() {
        assert_eq!(example().differences(&example()), []);
    }

    #[test]
    fn differences_name_treatment_operation_expected_and_found() {
        let mut found = example();
        let findings = found.treatment.get_mut("delay=1ms version=4.1").unwrap().get_mut("files").unwrap();
        findings.operations.get_mut("create.create").unwrap().latency = vec!["10 x 6.01ms".into()];
        let calls = findings.rpcs.get_mut("measure").unwrap();
        calls.insert("OPEN".into(), 11);
        calls.remove("CLOSE");
        calls.insert("TEST_STATEID".into(), 1);
        findings.client.insert("vfs_open".into(), 12);
        assert_eq!(
            texts(&example(), &found),
            [
                "delay=1ms version=4.1: files: RPCs measure: CLOSE: expected, and not found",
                "delay=1ms version=4.1: files: RPCs measure: OPEN: expected 10, found 11",
                "delay=1ms version=4.1: files: RPCs measure: TEST_STATEID: found, and not expected",
                "delay=1ms version=4.1: files: client vfs_open: expected 10, found 12",
                "delay=1ms version=4.1: files: operation create.create: latency: expected 9 x 4.010752ms, 1 x 13.4s, \
                 found 10 x 6.01ms",
            ]
        );
    }

    #[test]
    fn treatments_and_workloads_that_come_or_go_are_told_once() {
        let mut other = example();
        let workloads = other.treatment.remove("delay=1ms version=4.1").unwrap();
        other.treatment.insert("delay=5ms version=4.1".into(), workloads);
        let expected = [
            "delay=1ms version=4.1: expected, and not found",
            "delay=5ms version=4.1: found, and not expected",
        ];
        assert_eq!(texts(&example(), &other), expected);
        let mut other = example();
        other.treatment.values_mut().for_each(|workloads| workloads.clear());
        assert_eq!(texts(&example(), &other), ["delay=1ms version=4.1: files: expected, and not found"]);
    }
}
