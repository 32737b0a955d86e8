//! The client's page cache and its cures: what the papers found is found where the cause is, and not where it is cured.

use std::time::Duration;

use libtest_mimic::{Failed, Trial};

use crate::pathology::trial::diagnose;

const PATIENCE: Duration = Duration::from_secs(600);

const DESIGN: &str = "design={ kind = \"one-at-a-time\", replicates = 2 }";

/// A study of the client, made small.
struct Case {
    study: &'static str,
    changes: &'static [&'static str],
    finding: &'static str,
    /// Part of the labels of the treatments in which it is found; in no others.
    with: &'static str,
}

const CASES: [Case; 5] = [
    Case {
        study: "paper000-readahead",
        changes: &[
            "target.memory=1GiB",
            "network.server_bandwidth=10MB/s",
            "workload.read.file_size=128MiB",
            "workload.read.duration=4s",
            "factors.io_size.levels=[\"64KiB\", \"16KiB\"]",
        ],
        finding: "readahead-waste",
        with: "rule=2.6.32",
    },
    Case {
        study: "paper000-bursts",
        changes: &["workload.write.duration=6s"],
        finding: "burst-and-flush",
        with: "limit=25MiB",
    },
    Case {
        study: "paper003-client",
        changes: &["workload.write.file_size=40MB"],
        finding: "periodic-spikes",
        with: "client=linux244",
    },
    Case {
        study: "paper003-client",
        changes: &[
            "workload.write.file_size=200MB",
            "run.interval=400ms",
            "factors.server.levels=[\"38MB/s\", \"26MB/s\"]",
        ],
        finding: "latency-drift",
        with: "client=no-flushes",
    },
    Case {
        study: "paper002-synchronous",
        changes: &["factors.file_size.levels=[\"10MB\", \"20MB\"]"],
        finding: "synchronous-mount",
        with: "sync=file",
    },
];

/// They judge measured times: `quiet::`.
pub(crate) fn trials() -> impl Iterator<Item = Trial> {
    CASES.into_iter().map(|case| Trial::test(format!("quiet::client_{}", case.finding), move || trial(&case)))
}

fn trial(case: &Case) -> Result<(), Failed> {
    let place = tempfile::TempDir::new_in("/dev/shm").or_else(|_| tempfile::TempDir::new())?;
    let results = place.path().join("results");
    crate::run(case.study, &results, None, [DESIGN].iter().chain(case.changes), PATIENCE)?;
    let diagnosis = diagnose(&results)?;
    let of_this = diagnosis.findings.iter().filter(|finding| finding.id == case.finding);
    let labels: Vec<&str> = of_this
        .filter_map(|finding| finding.at.as_ref())
        .flat_map(|at| at.treatments.iter().map(|treatment| &*treatment.label))
        .collect();
    if labels.is_empty() || !labels.iter().all(|label| label.contains(case.with)) {
        return Err(format!("{} is found with {labels:?} instead of {}", case.finding, case.with).into());
    }
    Ok(())
}
