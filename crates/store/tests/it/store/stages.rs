//! Stages of sequential studies.

use benchmaster_record::results::{
    BlocksRecord, DesignRecord, Direction, GoalRecord, Replication, RunKey, StageKind, StageRecord,
    TreatmentRecord,
};

use super::*;

fn stage(number: u32, treatments: &[u32]) -> StageRecord {
    StageRecord {
        number,
        kind: StageKind::Foldover,
        reason: "all runs again with the levels of `sync` exchanged".into(),
        treatments: treatments.to_vec(),
        replicates: Replication::Sequential { min: 2, max: 5, relative_half_width: 0.1 },
        made: study_results(1, 1, 1).sessions[0].started,
    }
}

#[test]
fn a_stage_is_added_whole_or_not_at_all() {
    let mut results = study_results(31, 4, 2);
    let details = DesignRecord {
        generators: vec!["B=A".into()],
        interest: vec![vec![0], vec![0, 1]],
        hard_to_change: vec![1],
        blocks: Some(BlocksRecord::Confounded { count: 2, effects: vec![vec![0, 1]] }),
        centre_points: 0,
        excluded: vec![vec![1, 1]],
        goal: Some(GoalRecord { direction: Direction::Maximise, response: "write.throughput".into() }),
        precision: Some(0.05),
        ..DesignRecord::default()
    };
    results.study.design_details = details;
    results.study.treatments[1].block = Some(1);
    results.study.treatments[1].whole_plot = Some(0);
    let directory = written(&results);
    let before = Store::load(directory.path()).unwrap();
    assert_eq!(before, results);

    let new = TreatmentRecord {
        index: 4,
        levels: vec![1, 0],
        label: "io_size=64KiB sync=off (2)".into(),
        block: None,
        whole_plot: Some(1),
        stage: 1,
        centre: true,
    };
    let mut store = Store::open(directory.path()).unwrap();
    let mut refuse = |stage: &StageRecord, new: &[TreatmentRecord], why: &str| {
        let error = store.add_stage(stage, new).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
        assert_eq!(store.study(), &results.study, "it has no part of the stage");
    };
    refuse(&stage(2, &[0]), &[], "is number 1, not 2");
    refuse(&stage(1, &[]), &[], "stage 1 does not run treatments of the study");
    refuse(&stage(1, &[0, 0]), &[], "each once");
    refuse(&stage(1, &[0, 4]), &[], "does not run treatments of the study");
    refuse(&stage(1, &[4]), &[TreatmentRecord { index: 5, ..new.clone() }], "is number 4, not 5");
    refuse(&stage(1, &[4]), &[TreatmentRecord { stage: 0, ..new.clone() }], "is of stage 0, not of stage 1");
    refuse(
        &stage(1, &[4]),
        &[TreatmentRecord { levels: vec![9, 0], ..new.clone() }],
        "a level of each factor",
    );
    // What is written first is taken back when what follows cannot be written.
    sql(directory.path()).execute_batch("ALTER TABLE stage_treatments RENAME TO elsewhere").unwrap();
    refuse(&stage(1, &[0, 4]), std::slice::from_ref(&new), "stage_treatments");
    sql(directory.path()).execute_batch("ALTER TABLE elsewhere RENAME TO stage_treatments").unwrap();

    store.add_stage(&stage(1, &[0, 4]), std::slice::from_ref(&new)).unwrap();
    results.study.treatments.push(new);
    results.study.stages.push(stage(1, &[0, 4]));
    assert_eq!(store.study(), &results.study);
    store.add_stage(&stage(2, &[1, 4]), &[]).unwrap();
    results.study.stages.push(stage(2, &[1, 4]));
    let session = store.begin_session("again", results.sessions[0].started, &BTreeMap::new()).unwrap();
    let mut run = results.runs[0].clone();
    (run.key, run.position, run.session) = (RunKey { treatment: 4, replicate: 0 }, 8, session);
    (run.stage, run.block, run.whole_plot) = (1, None, Some(2));
    run.traces.clear();
    store.begin_run(session, run.key, 8).unwrap();
    store.commit_run(&run).unwrap();
    drop(store);
    let found = Store::load(directory.path()).unwrap();
    assert_eq!(found.study, results.study);
    assert_eq!(found.runs.last(), Some(&run));
    assert_eq!(found.study.block_name(&run).as_deref(), Some("stage 1"));
    assert_eq!(found.study.whole_plot_name(&run).as_deref(), Some("stage 1, plot 3"));
    assert_eq!(Store::open(directory.path()).unwrap().study(), &found.study);
}
