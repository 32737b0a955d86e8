//! The order of runs: complete, without repetition, and the same wherever a study is interrupted.
use std::collections::HashSet;

use benchmaster_analysis::schedule::{Next, TreatmentDecision, next};
use benchmaster_record::results::{Replication, RunKey, StudyRecord};
use benchmaster_stats::stopping::Decision;
use benchmaster_study::file::StudyFile;
use benchmaster_study::plan::Plan;
use proptest::prelude::*;

type Done = Vec<(RunKey, Option<f64>)>;

fn study(treatments: usize, replicates: Replication, listed: bool, seed: u64) -> StudyRecord {
    let levels: Vec<_> = (0..treatments).map(|n| n + 1).collect();
    let factors = match treatments {
        1 => String::new(),
        _ => format!("[factors.f]\nparameter = \"workload.w.workers\"\nlevels = {levels:?}\n"),
    };
    let text = format!(
        "[study]\nname = \"s\"\n[target]\npath = \"/x\"\n{factors}[workload.w]\nuse = \"metadata\"\n"
    );
    let mut study = Plan::from_study(&StudyFile::parse("s.toml", &text).unwrap(), "1").unwrap().study;
    study.replicates = replicates;
    study.order = if listed { "listed" } else { "random" }.into();
    study.seed = seed;
    study
}

/// The result of a run: a function of its key, so that it is the same whenever it is done.
fn result(key: RunKey, noise: f64, failing: u32) -> Option<f64> {
    let mixed = (key.treatment * 7919 + key.replicate * 104_729).wrapping_mul(2_654_435_761) >> 8;
    let unit = f64::from(mixed % 1000) / 1000.0;
    // The more treatments, the noisier.
    (failing == 0 || !mixed.is_multiple_of(failing))
        .then_some(100.0 + noise * (f64::from(key.treatment) + 0.2) * (unit - 0.5))
}

/// Runs on from what is done until there is nothing left.
fn execute(study: &StudyRecord, mut done: Done, noise: f64, failing: u32) -> (Done, Vec<TreatmentDecision>) {
    loop {
        match next(study, &done) {
            Next::Run { key, position, .. } => {
                assert_eq!(position as usize, done.len());
                assert!(done.len() < 10_000, "it does not end");
                done.push((key, result(key, noise, failing)));
            }
            Next::Done { decisions } => return (done, decisions),
        }
    }
}

#[test]
fn fixed_replicates_are_all_done() {
    let (done, decisions) = execute(&study(3, Replication::Fixed(4), true, 1), Vec::new(), 1.0, 5);
    let keys: Vec<_> = done.iter().map(|(key, _)| (key.treatment, key.replicate)).collect();
    let listed: Vec<_> =
        (0..4).flat_map(|replicate| (0..3).map(move |treatment| (treatment, replicate))).collect();
    assert_eq!(keys, listed);
    assert!(decisions.iter().all(|d| d.runs == 4 && d.decision.is_none()));
    let failed: u32 = decisions.iter().map(|d| d.failed).sum();
    assert_eq!(failed as usize, done.iter().filter(|(_, value)| value.is_none()).count());
    assert!(failed > 0, "no run failed in this test");
}

#[test]
fn treatments_stop_when_they_are_tight() {
    let replicates = Replication::Sequential { min: 5, max: 12, relative_half_width: 0.02 };
    let (done, decisions) = execute(&study(4, replicates, false, 9), Vec::new(), 20.0, 0);
    let runs: Vec<_> = decisions.iter().map(|d| d.runs).collect();
    assert_eq!(done.len() as u32, runs.iter().sum::<u32>());
    assert!(matches!(decisions[0].decision, Some(Decision::Tight { n: 5, .. })), "{decisions:?}");
    assert!(matches!(decisions[3].decision, Some(Decision::NotTight { n: 12, .. })), "{decisions:?}");
    assert_eq!((runs[0], runs[3]), (5, 12));
}

#[test]
fn failed_runs_are_not_repeated_and_give_no_value() {
    let replicates = Replication::Sequential { min: 2, max: 6, relative_half_width: 0.5 };
    let all_fail = |study: &StudyRecord| {
        let mut done = Done::new();
        while let Next::Run { key, .. } = next(study, &done) {
            done.push((key, None));
        }
        (done.len(), next(study, &done))
    };
    let (count, end) = all_fail(&study(2, replicates, false, 1));
    assert_eq!(count, 12);
    let Next::Done { decisions } = end else { panic!("{end:?}") };
    for decision in decisions {
        assert_eq!((decision.runs, decision.failed), (6, 6));
        assert_eq!(decision.decision, Some(Decision::NotTight { n: 0, relative_half_width: None }));
    }
}

#[test]
fn a_study_without_runs_left_to_do_is_done() {
    let study = study(1, Replication::Fixed(1), false, 1);
    let key = RunKey { treatment: 0, replicate: 0 };
    assert!(
        matches!(next(&study, &[]), Next::Run { key: first, position: 0, begins_block: true, .. } if first == key)
    );
    assert!(matches!(next(&study, &[(key, None)]), Next::Done { .. }));
}

fn replication() -> impl Strategy<Value = Replication> {
    prop_oneof![
        (1u32..6).prop_map(Replication::Fixed),
        (2u32..5, 0u32..6, 0.005f64..0.1).prop_map(|(min, more, relative_half_width)| {
            Replication::Sequential { min, max: min + more, relative_half_width }
        }),
    ]
}

proptest! {
    #[test]
    fn any_prefix_resumed_gives_the_same_runs(
        treatments in 1usize..6, replicates in replication(), listed: bool, seed: u64,
        noise in 0.0f64..40.0, failing in 0u32..5, cut in any::<prop::sample::Index>(),
    ) {
        let study = study(treatments, replicates, listed, seed);
        let (whole, decisions) = execute(&study, Vec::new(), noise, failing);
        let keys: HashSet<_> = whole.iter().map(|(key, _)| *key).collect();
        prop_assert_eq!(keys.len(), whole.len(), "a run was done twice");

        let (min, max) = match replicates {
            Replication::Fixed(n) => (n, n),
            Replication::Sequential { min, max, .. } => (min, max),
        };
        for decision in &decisions {
            prop_assert!((min..=max).contains(&decision.runs));
            for replicate in 0..decision.runs {
                let key = RunKey { treatment: decision.treatment, replicate };
                prop_assert!(keys.contains(&key), "{:?} was left out", key);
            }
        }

        let prefix = whole[..cut.index(whole.len() + 1)].to_vec();
        // The store lists runs in any order.
        let mut shuffled = prefix.clone();
        shuffled.reverse();
        prop_assert_eq!(next(&study, &prefix), next(&study, &shuffled));
        let (resumed, again) = execute(&study, prefix, noise, failing);
        prop_assert_eq!(resumed, whole);
        prop_assert_eq!(again, decisions);
    }
}
