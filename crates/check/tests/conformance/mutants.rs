//! Broken rules of the server of this project: the checks must find them.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use benchmaster_check::nfs::check;
use benchmaster_nfs_proto::mutant::{Mutant, break_rule};
use benchmaster_nfs_server::Server;
use benchmaster_record::nfs::NfsVersion as V;

use crate::support::{all, broken, config, target};

/// Rules that faults show and that answers alone show too.
const ALSO_PLAIN: [Mutant; 18] = [
    Mutant::RepliesNotKept,
    Mutant::SessionExecutesAgain,
    Mutant::SequenceUnchecked,
    Mutant::ReclaimAfterGrace,
    Mutant::LocksAlwaysGranted,
    Mutant::NlmAlwaysGranted,
    Mutant::UnlockForgotten,
    Mutant::LeasesNeverEnd,
    Mutant::LeasesEndEarly,
    Mutant::AnyStateid,
    Mutant::RecallNotAwaited,
    Mutant::RecallNotSent,
    Mutant::DelegationBesideWriter,
    Mutant::UncheckedTruncates,
    Mutant::RenameToItself,
    Mutant::TailReturns,
    Mutant::ChangeStands,
    Mutant::SizeOfBefore,
];

/// Versions that have the rule.
fn versions(rule: Mutant) -> &'static [V] {
    match rule.about().split_once(':').unwrap().0.split_once(", ") {
        Some((_, "v3")) => &[V::V3],
        Some((_, "v4.0")) => &[V::V40],
        Some((_, "v4.2")) => &[V::V42],
        Some((_, "v4.1" | "v4")) => &[V::V41],
        None => &[V::V41, V::V3],
        Some((_, other)) => panic!("{other}"),
    }
}

/// What is found of the server with a broken rule.
fn found(rule: Mutant) -> Vec<String> {
    let of_version = |version: &V| {
        break_rule(Some(rule));
        let server = Server::start(config()).unwrap();
        break_rule(None);
        match check(&target(server.address()), *version, &|_| true, &|| true, &mut |_| {}) {
            Ok(checked) => broken(&checked),
            // It does not even work.
            Err(refusal) => vec![refusal.to_string()],
        }
    };
    versions(rule).iter().map(of_version).find(|found| !found.is_empty()).unwrap_or_default()
}

/// Some, of each kind.
#[test]
fn broken_rules_are_found() {
    for rule in [Mutant::NverifyDiffers, Mutant::GuardIgnored] {
        assert!(!found(rule).is_empty(), "{rule:?}: {}", rule.about());
    }
}

#[test]
#[ignore = "full tier: a server for each broken rule"]
fn at_least_95_of_100_broken_rules_are_found() {
    let rules: Vec<Mutant> = ALSO_PLAIN.iter().chain(Mutant::PLAIN).copied().collect();
    let (next, missed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(rule) = rules.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = found(*rule);
                    match found.first() {
                        Some(first) => println!("{rule:?}: {} findings: {first}", found.len()),
                        None => missed.lock().unwrap().push(*rule),
                    }
                }
            });
        }
    });
    let missed = missed.into_inner().unwrap();
    for rule in &missed {
        println!("{rule:?} was not found: {}", rule.about());
    }
    println!("{} of {} broken rules found", rules.len() - missed.len(), rules.len());
    assert!(rules.len() >= 60);
    assert!(missed.len() * 20 <= rules.len(), "{missed:?}");
}

/// None of the checks finds anything where nothing is broken: see `embedded`.
#[test]
fn nothing_is_found_of_the_server_as_it_is() {
    let server = Server::start(config()).unwrap();
    assert_eq!(broken(&all(&target(server.address()), V::V3)), Vec::<String>::new());
}
