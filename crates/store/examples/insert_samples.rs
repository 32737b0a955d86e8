//! How long it takes to store and to read a run with many samples: five agents with 500 metrics of 600 points each.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "an example")]

use std::fs;
use std::time::Instant;

use benchmaster_record::samples::{Kind, MetricKey, Point, Series};
use benchmaster_store::Store;
use benchmaster_testkit::{spread, study_results};

fn main() {
    let mut results = study_results(1, 1, 1);
    spread(&mut results);
    let mut run = results.runs.remove(0);
    run.session = 1;
    run.recordings.truncate(1);
    let series = |metric: u32| Series {
        key: MetricKey { sampler: "made_up".into(), metric: format!("m{metric}"), instance: String::new() },
        kind: Kind::Counter,
        unit: "B".into(),
        points: (0..600u32)
            .map(|i| Point {
                time_ns: i64::from(i) * 100_012_345,
                value: f64::from(i) * 12_345.0 + f64::from(metric),
            })
            .collect(),
    };
    let mut host = run.recordings[0].samples[0].clone();
    host.samples.series = (0..500).map(series).collect();
    run.recordings[0].samples = vec![host; 5];

    let directory = tempfile::tempdir().unwrap();
    let mut store = Store::create(directory.path(), &results.study).unwrap();
    let session = &results.sessions[0];
    store.begin_session(&session.command, session.started, &session.environment).unwrap();
    let began = Instant::now();
    store.commit_run(&run).unwrap();
    println!("stored 1 500 000 points in {:.2} s", began.elapsed().as_secs_f64());
    drop(store);
    let size = fs::metadata(directory.path().join("results.db")).unwrap().len();
    println!("the database has {:.1} MB", size as f64 / 1e6);
    let began = Instant::now();
    let read = Store::load_run(directory.path(), run.key).unwrap().unwrap();
    assert_eq!(read, run);
    println!("read and compared in {:.2} s", began.elapsed().as_secs_f64());
    let began = Instant::now();
    Store::load(directory.path()).unwrap();
    println!("read without points in {:.3} s", began.elapsed().as_secs_f64());
}
