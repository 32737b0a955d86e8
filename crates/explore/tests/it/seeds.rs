//! The unbroken client and server.

use benchmaster_explore::scenario::{FaultKind, Scenario, Space};
use benchmaster_explore::shrink::shrink;
use benchmaster_explore::{Outcome, run};
use benchmaster_record::nfs::NfsVersion;

fn outcome(seed: u64) -> (Scenario, Outcome) {
    let scenario = Scenario::draw(seed, &Space::default());
    let outcome = run(&scenario).unwrap();
    (scenario, outcome)
}

#[test]
fn every_promise_is_kept_in_the_first_seeds() {
    for seed in 0..150 {
        let (scenario, outcome) = outcome(seed);
        if let Some(violation) = outcome.violation {
            let shrunk = shrink(&scenario, &violation, 200);
            panic!("seed {seed}: {violation:?}; smaller: {:#?}: {}", shrunk.scenario, shrunk.violation.what);
        }
    }
}

#[test]
fn a_seed_has_one_history() {
    for seed in 200..230 {
        let (first, second) = (outcome(seed).1, outcome(seed).1);
        assert_eq!(first.history, second.history, "seed {seed}");
        assert_eq!(first.fingerprint(), second.fingerprint());
    }
    assert_ne!(outcome(200).1.fingerprint(), outcome(201).1.fingerprint());
}

/// Scenarios are drawn from all that can go wrong.
#[test]
fn scenarios_have_every_version_operation_and_fault() {
    let scenarios: Vec<Scenario> = (0..500).map(|seed| Scenario::draw(seed, &Space::default())).collect();
    for version in [NfsVersion::V3, NfsVersion::V40, NfsVersion::V41, NfsVersion::V42] {
        assert!(scenarios.iter().any(|scenario| scenario.version == version), "{version}");
    }
    assert!(
        scenarios.iter().any(|scenario| scenario.udp) && scenarios.iter().any(|scenario| scenario.cached)
    );
    let words = |texts: Vec<String>| -> std::collections::BTreeSet<String> {
        texts.iter().map(|text| text.split(['(', ' ', '{']).next().unwrap_or_default().to_owned()).collect()
    };
    let steps = || scenarios.iter().flat_map(|scenario| scenario.clients.iter().flatten());
    let operations = words(steps().map(|step| format!("{:?}", step.op)).collect());
    assert_eq!(operations.len(), 15, "{operations:?}");
    let faults = || scenarios.iter().flat_map(|scenario| &scenario.faults);
    let kinds = words(faults().map(|fault| format!("{:?}", fault.kind)).collect());
    assert_eq!(kinds.len(), 10, "{kinds:?}");
    for power in [false, true] {
        let is = |kind: &FaultKind| matches!(kind, FaultKind::Restart { power: is, .. } if *is == power);
        assert!(faults().any(|fault| is(&fault.kind)));
    }
}

#[test]
#[ignore = "full tier: 3,000 seeds"]
fn every_promise_is_kept_in_many_seeds() {
    for seed in 1_000..4_000 {
        let (_, outcome) = outcome(seed);
        assert_eq!(outcome.violation, None, "seed {seed}");
    }
}
