//! Broken rules: the oracle must notice.

use benchmaster_explore::run;
use benchmaster_explore::scenario::{Scenario, Space};
use benchmaster_nfs_proto::mutant::{Mutant, break_rule};
use benchmaster_record::nfs::NfsVersion;

/// Scenarios of the versions that have the rule.
fn space(rule: Mutant) -> Space {
    let all = Space::default();
    let versions = match rule.about().split_once(':').unwrap().0.split_once(", ") {
        None => all.versions.clone(),
        Some((_, "v3")) => vec![NfsVersion::V3],
        Some((_, "v4.0")) => vec![NfsVersion::V40],
        Some((_, "v4.1")) => vec![NfsVersion::V41, NfsVersion::V42],
        Some((_, "v4")) => vec![NfsVersion::V40, NfsVersion::V41, NfsVersion::V42],
        Some((_, other)) => panic!("{other}"),
    };
    Space { versions, ..all }
}

/// The first seed below `most` that shows a broken rule.
fn found(rule: Mutant, most: u64) -> Option<(u64, String)> {
    let space = space(rule);
    break_rule(Some(rule));
    let found = (0..most).find_map(|seed| {
        let scenario = Scenario::draw(seed, &space);
        match run(&scenario) {
            Ok(outcome) => outcome.violation.map(|violation| (seed, violation.what)),
            // It does not even work without faults.
            Err(error) => Some((seed, error.to_string())),
        }
    });
    break_rule(None);
    found
}

/// Some that few seeds show.
#[test]
fn broken_rules_are_noticed() {
    for rule in [Mutant::HalfWritten, Mutant::LocksAlwaysGranted, Mutant::CloseWithoutFlush] {
        assert!(found(rule, 200).is_some(), "{rule:?}: {}", rule.about());
    }
}

#[test]
#[ignore = "full tier: 48 broken rules, up to 1,200 seeds each"]
fn broken_rules_are_noticed_in_few_seeds() {
    let most = std::env::var("MUTANT_SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(1200);
    let mut missed = Vec::new();
    for rule in Mutant::ALL {
        let begun = std::time::Instant::now();
        let result = found(*rule, most);
        println!("{:>8.1?}", begun.elapsed());
        match result {
            Some((seed, what)) => println!("{rule:?}: seed {seed}: {what}"),
            None => missed.push(*rule),
        }
    }
    for rule in &missed {
        println!("{rule:?} was not noticed in {most} seeds: {}", rule.about());
    }
    assert_eq!((Mutant::ALL.len(), missed), (48, vec![]));
}
