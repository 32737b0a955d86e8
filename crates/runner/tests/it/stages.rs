//! A study that is stopped, resumed and extended in its results directory.
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use benchmaster_analysis::schedule::is_complete;
use benchmaster_record::results::{RunRecord, SessionEnd, StageKind, StudyResults};
use benchmaster_runner::{Outcome, Request, RunEvent, run};
use benchmaster_store::Store;
use benchmaster_study::file::StudyFile;
use benchmaster_study::plan::Plan;
use benchmaster_study::plan::extend::Extension;
use jiff::Timestamp;

/// Four treatments of one short workload.
fn plan(target: &Path, design: &str) -> Plan {
    let text = format!(
        "[study]\nname = \"stages\"\n[target]\npath = {target:?}\n[sampling]\nenabled = false\n\
         [factors.a]\nparameter = \"workload.w.io_size\"\nlevels = [\"4KiB\", \"8KiB\"]\n\
         [factors.b]\nparameter = \"workload.w.workers\"\nlevels = [1, 2]\n\
         [factors.c]\nparameter = \"run.filesets\"\nlevels = [\"fresh\", \"reuse\"]\n\
         [design]\n{design}\n[workload.w]\nuse = \"sequential-write\"\nfile_size = \"32KiB\"\nduration = \"5ms\"\n\
         [run]\ninterval = \"1ms\"\n"
    );
    let made = StudyFile::parse("s.toml", &text).and_then(|file| Plan::from_study(&file, "1"));
    made.unwrap_or_else(|found| panic!("{found}"))
}

/// Runs on until `runs` more are stored, or to the end.
fn go_on(plan: &Plan, directory: &Path, runs: usize) -> Outcome {
    let stop = AtomicBool::new(false);
    let mut stored = 0;
    let request = Request { plan, directory, command: "test", stop: &stop, faults: None };
    run(&request, &mut |event, _| {
        if let RunEvent::RunStored { .. } = event {
            stored += 1;
            stop.store(stored >= runs, Ordering::Relaxed);
        }
    })
    .unwrap()
}

/// Treatment, replicate and stage of a run, and its block and whole plot.
type Run = ([u32; 3], [Option<u32>; 2]);

fn places(results: &StudyResults) -> Vec<Run> {
    let of =
        |run: &RunRecord| ([run.key.treatment, run.key.replicate, run.stage], [run.block, run.whole_plot]);
    results.runs.iter().map(of).collect()
}

#[test]
fn a_study_is_stopped_extended_and_resumed_with_the_same_file() {
    let design = "kind = \"fractional\"\nresolution = 3\nreplicates = 2\nblocks = \"replicates\"\nhard_to_change = [\"a\"]";
    let (target, whole, parts) =
        (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(target.path(), design);
    let (whole, parts) = (whole.path().join("r"), parts.path().join("r"));
    let extend = |directory: &Path| {
        let mut store = Store::open(directory).unwrap();
        let stored = Plan::of_results(store.study()).unwrap();
        let proposal = stored.extend(&Extension::Fold(vec![0]), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!((proposal.stage.kind, proposal.new.len()), (StageKind::Foldover, 4));
        store.add_stage(&proposal.stage, &proposal.new).unwrap();
    };

    assert_eq!(go_on(&plan, &whole, usize::MAX), Outcome::Complete);
    assert!(is_complete(&Store::load(&whole).unwrap()));
    extend(&whole);
    assert!(!is_complete(&Store::load(&whole).unwrap()), "the stage is left to do");
    assert_eq!(go_on(&plan, &whole, usize::MAX), Outcome::Complete);
    let expected = places(&Store::load(&whole).unwrap());
    assert_eq!(expected.len(), 16);
    assert!(expected[..8].iter().all(|run| run.0[2] == 0) && expected[8..].iter().all(|run| run.0[2] == 1));
    assert!(expected.iter().all(|run| run.1.iter().all(Option::is_some)));

    // The same, extended before it is complete and stopped everywhere.
    assert_eq!(go_on(&plan, &parts, 3), Outcome::Stopped);
    extend(&parts);
    assert_eq!(go_on(&plan, &parts, 6), Outcome::Stopped);
    assert_eq!(go_on(&plan, &parts, 4), Outcome::Stopped);
    assert_eq!(go_on(&plan, &parts, usize::MAX), Outcome::Complete);
    let results = Store::load(&parts).unwrap();
    assert_eq!(places(&results), expected);
    assert_eq!(results.sessions.last().unwrap().ended.map(|(_, end)| end), Some(SessionEnd::Complete));
    assert!(is_complete(&results));
    assert_eq!(go_on(&plan, &parts, 0), Outcome::Complete, "nothing is left to do");
}

#[test]
fn a_block_waits_for_its_time_of_day_and_can_be_interrupted() {
    let (target, results) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Never now, and never in the next minutes.
    let far = Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::system())
        .saturating_add(jiff::SignedDuration::from_hours(12));
    let design = format!(
        "replicates = 2\n[[design.blocks]]\nname = \"now\"\n[[design.blocks]]\nname = \"later\"\nat = \"{}\"",
        far.strftime("%H:%M")
    );
    let plan = plan(target.path(), &design);
    let stop = AtomicBool::new(false);
    let directory = results.path().join("r");
    let request = Request { plan: &plan, directory: &directory, command: "test", stop: &stop, faults: None };
    let mut waited = Vec::new();
    let outcome = run(&request, &mut |event, _| {
        if let RunEvent::Waiting { block, until } = event {
            waited.push((block.to_owned(), until.strftime("%H:%M").to_string()));
            stop.store(true, Ordering::Relaxed);
        }
    });
    assert_eq!(outcome.unwrap(), Outcome::Stopped);
    assert_eq!(waited, [("later".to_owned(), far.strftime("%H:%M").to_string())]);
    let runs = Store::load(&directory).unwrap().runs;
    assert_eq!(runs.len(), 8, "the first block is complete");
    assert!(runs.iter().all(|run| run.block == Some(0)));
}
