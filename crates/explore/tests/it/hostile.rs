//! Clients of a server that lies.

use std::panic::catch_unwind;
use std::time::Duration;

use benchmaster_explore::scenario::{Scenario, Space};
use benchmaster_explore::{Outcome, run_tampered};

fn outcome(seed: u64) -> Outcome {
    let scenario = Scenario::draw(seed, &Space::default());
    // From one message of 1,000 to one of 4.
    run_tampered(&scenario, [1, 10, 50, 250][(seed % 4) as usize]).unwrap()
}

/// No panic, no loop, and no allocation of what a number promises.
fn survive(seeds: std::ops::Range<u64>) {
    let mut changed = 0;
    let mut panicked = Vec::new();
    for seed in seeds.clone() {
        let Ok(outcome) = catch_unwind(|| outcome(seed)) else {
            panicked.push(seed);
            continue;
        };
        changed += outcome.history.iter().filter(|line| line.what == "changed on its way").count();
        let end = outcome.history.last().map_or(Duration::ZERO, |line| line.at);
        assert!(end < Duration::from_secs(1000), "seed {seed} ends after {end:?}");
    }
    assert!(panicked.is_empty(), "clients panic in {panicked:?}");
    let count = (seeds.end - seeds.start) as usize;
    assert!(changed > count, "{changed} messages of {count} scenarios were changed");
}

#[test]
fn what_a_hostile_server_says_breaks_no_client() {
    survive(0..200);
}

#[test]
#[ignore = "full tier: minutes"]
fn what_a_hostile_server_says_breaks_no_client_in_many_seeds() {
    survive(10_000..15_000);
}

#[test]
fn changes_are_those_of_the_seed() {
    for seed in 300..310 {
        assert_eq!(outcome(seed).fingerprint(), outcome(seed).fingerprint(), "seed {seed}");
    }
}
