//! Runs of the Linux client and server that were recorded in labs, by the example `evidence`.

use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_diagnosis::finding::Confidence;
use benchmaster_record::recording::Recording;
use benchmaster_record::results::{Check, LabRecord, ServiceRecord};
use serde::Deserialize;

use super::made::{self, Traces};
use super::{found, named, one};

#[derive(Deserialize)]
struct Kept {
    text: String,
    treatment: u32,
    recordings: Vec<Recording>,
    checks: Vec<Check>,
    service: Option<ServiceRecord>,
    lab: Option<LabRecord>,
}

fn diagnosis(text: &str) -> Diagnosis {
    let kept: Kept = serde_json::from_str(text).unwrap();
    let mut results = made::study(&kept.text);
    made::add(&mut results, kept.treatment, kept.recordings, &[]);
    let run = results.runs.last_mut().unwrap();
    (run.checks, run.service, run.lab) = (kept.checks, kept.service, kept.lab);
    found(&results, &Traces::default())
}

macro_rules! kept {
    ($name:literal) => {
        diagnosis(include_str!(concat!("../evidence/", $name, ".json")))
    };
}

#[test]
fn locks_of_the_linux_client_with_and_without_delegations() {
    let without = kept!("locked-read-no-delegations");
    assert_eq!(named(&without), ["delegation-not-granted", "lock-invalidates-cache", "open-close-share"]);
    // Linux 6.1 against its own server: each LOCK is followed by GETATTR and READ, as in the papers.
    assert!(
        one(&without, "lock-invalidates-cache")
            .what
            .starts_with("Each LOCK is followed by 1 GETATTR and 0.900 READ")
    );
    assert!(one(&without, "delegation-not-granted").what.ends_with("the study switches them off."));
    // 368 calls are left with delegations, too few to say what they are about.
    assert_eq!(named(&kept!("locked-read-delegations")), [""; 0]);
}

#[test]
fn recalls_among_linux_clients() {
    let recalled = kept!("delegation-recall");
    assert_eq!(named(&recalled), ["delegation-recall"]);
    let finding = one(&recalled, "delegation-recall");
    assert!(finding.what.contains("60 delegations come back"), "{}", finding.what);
    assert!(finding.cost.as_ref().unwrap().share > 0.5, "{:?}", finding.cost);
    assert_eq!(named(&kept!("no-delegations")), [""; 0]);
}

#[test]
fn readahead_of_the_linux_client() {
    // Random reads of 64 KiB with a readahead of 0, 128 KiB and 15 MiB.
    assert_eq!(named(&kept!("readahead-0")), ["single-page-reads"]);
    // Linux 6.1 does not read ahead of random reads: no more is waste.
    assert_eq!(named(&kept!("readahead-128KiB")), [""; 0]);
    assert_eq!(named(&kept!("readahead-15MiB")), [""; 0]);
}

#[test]
fn two_linux_clients_of_one_name() {
    let shared = kept!("shared-client-id");
    assert!(
        one(&shared, "shared-client-id").what.starts_with("2 clients share an NFSv4 client id (c1, c2)"),
        "{:?}",
        shared.findings
    );
    // What they do beside it is what locking does without delegations; the first calls wait until a lease is had again.
    let expected =
        ["delegation-not-granted", "lock-invalidates-cache", "open-close-share", "slow-first-call"];
    assert!(named(&shared).iter().all(|name| expected.contains(name)), "{:?}", named(&shared));
}

/// The server's threads were stopped and started again beside the workload. No check of a lab was made yet: what clients count tells it.
#[test]
fn a_linux_server_that_was_started_again() {
    // LOCK waits for the lock manager's grace period too, which takes 50 s.
    let waited = kept!("server-restart-grace");
    let grace = one(&waited, "grace-period");
    assert!(
        grace.what.contains("2 clients reclaimed it; OPEN and LOCK were refused 22 times"),
        "{}",
        grace.what
    );
    assert!(grace.what.contains("the longest open or lock took 60."), "{}", grace.what);
    assert_eq!(grace.confidence, Confidence::Likely);
    assert!(one(&waited, "session-recovery").what.contains("8 calls to recreate client ids and sessions"));
    // It was over when the clients were connected again: they lost their state, and were refused nothing.
    let quick = kept!("server-restart");
    assert!(quick.findings.iter().all(|finding| finding.id != "grace-period"), "{:?}", quick.findings);
    assert!(one(&quick, "session-recovery").what.contains("8 calls to recreate client ids and sessions"));
}
