//! A results directory is what was put into it, whatever happens to the process on the way.

mod stages;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use benchmaster_record::results::{
    BaselineRecord, Evidence, HookRecord, NetworkAchieved, NetworkRecord, Replication, RunKey, SessionEnd,
    StudyResults,
};
use benchmaster_store::{CreateError, DatabaseError, LoadError, LockError, OpenError, Store, WriteError};
use benchmaster_testkit as synthetic;
use benchmaster_testkit::{Random, damage, study_results};
use proptest::prelude::*;
use rusqlite::Connection;
use tempfile::tempdir;

fn written(results: &StudyResults) -> tempfile::TempDir {
    let directory = tempdir().unwrap();
    synthetic::write(directory.path(), results).unwrap();
    directory
}

fn sql(directory: &Path) -> Connection {
    Connection::open(directory.join("results.db")).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]
    #[test]
    fn what_is_written_is_read(seed: u64, treatments in 1u32..5, replicates in 1u32..4) {
        let results = study_results(seed, treatments, replicates);
        let directory = written(&results);
        prop_assert_eq!(Store::load(directory.path()).unwrap(), results);
    }
}

#[test]
fn everything_optional_is_read_as_written() {
    let mut results = study_results(11, 3, 5);
    results.study.replicates = Replication::Sequential { min: 5, max: 30, relative_half_width: 0.05 };
    results.study.seed = u64::MAX;
    results.study.description = None;
    results.study.text = "# no newline at the end, \u{e4}\u{0} and a NUL".into();
    synthetic::fail(&mut results.runs[1], "agent died");
    results.runs[2].traces.insert("write".into(), "traces/run-0-0-write.parquet".into());
    synthetic::in_lab(&mut results, "uml", "6.1.176");
    results.runs[3].lab = None;
    results.runs[3].recordings[0].corruption = Some("data/0001 at 4096: expected 1, found 2".into());
    results.runs[3].recordings[0].host.host_busy = None;
    results.runs[3].recordings[0].series.clear();
    results.runs[3].recordings[0].workers.iter_mut().for_each(|w| w.series.clear());
    results.runs[4].recordings.clear();
    let series = &mut results.runs[5].recordings[0].series[0];
    series.total = Default::default();
    series.intervals.clear();
    let environment = results.sessions[0].environment.get_mut("client1").unwrap();
    environment.target = None;
    environment.sysctls.clear();
    results.sessions[1].ended = results.sessions[1].ended.map(|(time, _)| (time, SessionEnd::Stopped));
    let directory = written(&results);
    assert_eq!(Store::load(directory.path()).unwrap(), results);
    assert_eq!(fs::read_to_string(directory.path().join("study.toml")).unwrap(), results.study.text);
}

#[test]
fn evidence_that_is_no_number_is_refused() {
    let mut results = study_results(1, 1, 1);
    results.runs[0].checks[0].evidence.push(Evidence::number("ratio", f64::NAN));
    let directory = tempdir().unwrap();
    let error = synthetic::write(directory.path(), &results).unwrap_err().to_string();
    assert!(error.contains("ratio of the check `cached-reads` is not a number"), "{error}");
}

#[test]
fn a_killed_session_loses_its_run_in_flight_only() {
    let directory = tempdir().unwrap();
    let results = study_results(2, 2, 2);
    let mut store = Store::create(directory.path(), &results.study).unwrap();
    let [first, second] = &results.sessions[..] else { panic!("two sessions") };
    assert_eq!(store.begin_session("a", first.started, &first.environment).unwrap(), 1);
    let mut run = results.runs[0].clone();
    run.traces.insert("write".into(), "traces/run-0-0-write.parquet".into());
    let traces = directory.path().join("traces");
    fs::create_dir(&traces).unwrap();
    let leftover = ["run-1-1-write.parquet", "run-1-1-read.parquet.partial"];
    for name in leftover.iter().chain(&["run-0-0-write.parquet", "notes.txt"]) {
        fs::write(traces.join(name), "x").unwrap();
    }
    store.begin_run(1, run.key, 0).unwrap();
    store.commit_run(&run).unwrap();
    store.begin_run(1, results.runs[1].key, 1).unwrap();
    drop(store);

    assert_eq!(Store::load(directory.path()).unwrap().sessions[0].lost_run, None);
    let mut store = Store::open(directory.path()).unwrap();
    assert_eq!(store.study(), &results.study);
    assert_eq!(store.begin_session("b", second.started, &second.environment).unwrap(), 2);
    let completed = store.completed().unwrap();
    assert_eq!(completed.len(), 1);
    assert_eq!((completed[0].key, completed[0].position), (run.key, 0));
    assert_eq!(completed[0].responses, run.responses);
    for name in leftover {
        assert!(!traces.join(name).exists(), "{name} is left over");
    }
    assert!(traces.join("run-0-0-write.parquet").exists() && traces.join("notes.txt").exists());

    // A session that ends while a run is in flight loses that run as well.
    store.begin_run(2, results.runs[2].key, 1).unwrap();
    store.end_session(2, second.started, SessionEnd::Stopped).unwrap();
    store.set_environment(2, &BTreeMap::new()).unwrap();
    let found = Store::load(directory.path()).unwrap();
    assert_eq!(found.runs, [run]);
    assert_eq!(found.sessions[0].lost_run, Some(results.runs[1].key));
    assert_eq!(found.sessions[0].ended, None);
    assert_eq!(found.sessions[1].lost_run, Some(results.runs[2].key));
    assert_eq!(found.sessions[1].ended, Some((second.started, SessionEnd::Stopped)));
    assert!(found.sessions[1].environment.is_empty());
}

#[test]
fn only_one_store_at_a_time_but_readers_any_time() {
    let directory = tempdir().unwrap();
    let path = directory.path();
    let results = study_results(3, 2, 1);
    let mut store = Store::create(path, &results.study).unwrap();
    store.begin_session("a", results.sessions[0].started, &BTreeMap::new()).unwrap();
    let error = Store::open(path).unwrap_err();
    assert!(matches!(&error, OpenError::Lock(LockError::Running(at)) if at == path));
    assert_eq!(
        error.to_string(),
        format!("another run is on in `{}`: wait for its end, or stop it first", path.display())
    );
    assert!(Store::load(path).unwrap().runs.is_empty());
    let mut run = results.runs[0].clone();
    run.session = 1;
    store.commit_run(&run).unwrap();
    assert_eq!(Store::load(path).unwrap().runs, [run]);
    drop(store);
    Store::open(path).unwrap();
    let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, [".lock", "results.db", "study.toml"]);
}

#[test]
fn a_run_is_stored_once_and_whole() {
    let results = study_results(4, 2, 1);
    let directory = written(&results);
    let mut store = Store::open(directory.path()).unwrap();
    let error = store.commit_run(&results.runs[0]).unwrap_err();
    assert!(matches!(error, WriteError::Doubled { key, .. } if key == results.runs[0].key), "{error}");
    assert!(matches!(store.begin_run(2, results.runs[0].key, 0), Err(WriteError::Doubled { .. })));

    let mut run = results.runs[0].clone();
    run.position = 9;
    run.key.replicate = 7;
    let refuse = |store: &mut Store, run: &_, why: &str| {
        let error = store.commit_run(run).unwrap_err();
        assert!(matches!(error, WriteError::Record { .. }), "{error}");
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(Store::load(directory.path()).unwrap(), results);
    };
    let mut bad = run.clone();
    bad.session = 3;
    refuse(&mut store, &bad, "there is no session 3");
    let mut bad = run.clone();
    bad.key = RunKey { treatment: 5, replicate: 0 };
    refuse(&mut store, &bad, "the study has no treatment 5");
    // Each of these fails after rows have been written.
    let mut bad = run.clone();
    bad.responses[1].value = f64::NAN;
    refuse(&mut store, &bad, "`write.operations` is not a number");
    let mut bad = run.clone();
    bad.recordings[1].series[0].total.latency.0.truncate(9);
    refuse(&mut store, &bad, "latencies of `open`");
    let mut bad = run.clone();
    bad.recordings[1].workers[2].series[0].series = 2;
    refuse(&mut store, &bad, "worker 2 has series 2");
    let mut bad = run.clone();
    bad.recordings[1].length_ns = u64::MAX;
    refuse(&mut store, &bad, "out of range");
    store.commit_run(&run).unwrap();
}

#[test]
fn a_directory_of_something_else_is_left_alone() {
    let directory = tempdir().unwrap();
    let study = study_results(1, 1, 1).study;
    fs::write(directory.path().join("study.toml"), "the user's own").unwrap();
    let error = Store::create(directory.path(), &study).unwrap_err();
    assert!(
        matches!(&error, CreateError::NotEmpty { found, .. } if found == Path::new("study.toml")),
        "{error}"
    );
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    assert!(matches!(Store::open(directory.path()), Err(OpenError::Missing(_))));
    assert!(matches!(Store::load(directory.path()), Err(LoadError::Missing(_))));

    let results = study_results(1, 1, 1);
    let directory = written(&results);
    assert!(matches!(Store::create(directory.path(), &study), Err(CreateError::Exists(_))));
    assert_eq!(Store::load(directory.path()).unwrap(), results);
}

#[test]
fn a_creation_that_was_killed_is_made_anew() {
    let results = study_results(1, 2, 1);
    let whole = written(&results);
    let database = fs::read(whole.path().join("results.db")).unwrap();
    let half = &database[..database.len() / 2];
    // What kill -9 can leave behind, step by step.
    let states: [&[(&str, &[u8])]; 6] = [
        &[],
        &[(".lock", b"")],
        &[(".lock", b""), ("results.db.partial", b"")],
        &[(".lock", b""), ("results.db.partial", half), ("results.db.partial-journal", half)],
        &[(".lock", b""), ("results.db.partial", &database), ("study.toml.partial", b"[stu")],
        &[(".lock", b""), ("results.db.partial", &database), ("study.toml", results.study.text.as_bytes())],
    ];
    for state in states {
        let parent = tempdir().unwrap();
        let directory = parent.path().join("new/results");
        fs::create_dir_all(&directory).unwrap();
        for (name, content) in state {
            fs::write(directory.join(name), content).unwrap();
        }
        assert!(!Store::exists(&directory));
        assert!(matches!(Store::open(&directory), Err(OpenError::Missing(_))));
        synthetic::write(&directory, &results).unwrap();
        assert_eq!(Store::load(&directory).unwrap(), results);
        assert_eq!(fs::read_to_string(directory.join("study.toml")).unwrap(), results.study.text);
    }
}

#[test]
fn a_plan_that_contradicts_itself_is_refused() {
    let good = study_results(1, 4, 1).study;
    let refuse = |study: &_, why: &str| {
        let directory = tempdir().unwrap();
        let error = Store::create(directory.path(), study).unwrap_err();
        assert!(matches!(&error, CreateError::Plan(problem) if problem.contains(why)), "{error}");
        assert!(!Store::exists(directory.path()));
    };
    let mut study = good.clone();
    study.treatments[1].index = 3;
    refuse(&study, "is number 1, not 3");
    let mut study = good.clone();
    study.treatments[1].levels[0] = 9;
    refuse(&study, "does not have a level of each factor");
    let mut study = good;
    study.factors[0].settings.pop();
    refuse(&study, "settings for each level");
}

#[test]
fn damage_and_strangers_are_named() {
    let results = study_results(1, 2, 2);
    let kind = |change: &dyn Fn(&Path)| {
        let directory = written(&results);
        change(&directory.path().join("results.db"));
        let error = match Store::load(directory.path()) {
            Err(LoadError::Database(error)) => error,
            other => panic!("{other:?}"),
        };
        assert!(error.to_string().contains(&directory.path().display().to_string()), "{error}");
        error
    };
    let overwritten = kind(&|path| {
        let mut bytes = fs::read(path).unwrap();
        let half = bytes.len() / 2;
        bytes[half..].fill(0xa5);
        fs::write(path, bytes).unwrap();
    });
    assert!(matches!(overwritten, DatabaseError::Damaged { .. }), "{overwritten}");
    let truncated =
        kind(&|path| fs::File::options().write(true).open(path).unwrap().set_len(40_000).unwrap());
    assert!(matches!(truncated, DatabaseError::Damaged { .. }), "{truncated}");
    let text = kind(&|path| fs::write(path, "not a database, but long enough to be one".repeat(99)).unwrap());
    assert!(matches!(text, DatabaseError::Damaged { .. }), "{text}");
    let name = kind(&|path| {
        Connection::open(path)
            .unwrap()
            .execute("UPDATE operations SET operation = 'fly'", [])
            .map(drop)
            .unwrap()
    });
    assert!(name.to_string().contains("`fly` is not a known operation"), "{name}");
    for outside in ["/etc/passwd", "traces/../../other"] {
        let sql = "INSERT INTO traces (run_id, workload, path) SELECT run_id, 'write', ?1 FROM runs";
        let named = kind(&|path| {
            Connection::open(path).unwrap().execute(sql, [outside]).unwrap();
        });
        assert!(named.to_string().contains("leads out of the directory of the results"), "{named}");
    }
    let foreign = kind(&|path| {
        fs::remove_file(path).unwrap();
        Connection::open(path).unwrap().execute_batch("CREATE TABLE addresses (name TEXT)").unwrap();
    });
    assert!(matches!(foreign, DatabaseError::Foreign { .. }), "{foreign}");
    let other =
        kind(&|path| Connection::open(path).unwrap().pragma_update(None, "user_version", 99).unwrap());
    assert!(matches!(other, DatabaseError::Version { found: 99, known: 1, .. }), "{other}");
}

/// A day of 1 ms intervals, and what 10,000 workers wait for in it.
#[test]
fn long_runs_of_large_fleets_are_kept() {
    let mut results = study_results(1, 1, 1);
    let recording = &mut results.runs[0].recordings[0];
    let day = 86_400_000_000_000;
    (recording.length_ns, recording.interval_ns) = (day, 1_000_000);
    recording.series[0].total.sum_ns = 10_000 * day;
    let directory = written(&results);
    assert_eq!(Store::load(directory.path()).unwrap().runs[0].recordings[0].length_ns, day);
}

#[test]
fn changed_bytes_are_read_or_refused() {
    let results = study_results(1, 2, 2);
    let directory = written(&results);
    let path = directory.path().join("results.db");
    let good = fs::read(&path).unwrap();
    let (mut random, mut refused) = (Random(5), 0);
    for _ in 0..150 {
        let mut bytes = good.clone();
        damage(&mut bytes, 20, &mut random);
        fs::write(&path, bytes).unwrap();
        let whole = results.runs.iter().map(|run| Store::load_run(directory.path(), run.key));
        refused +=
            usize::from(Store::load(directory.path()).is_err() || whole.into_iter().any(|run| run.is_err()));
    }
    assert!(refused > 50, "{refused} of 150 were refused");
}

#[test]
fn results_are_read_where_nothing_can_be_written() {
    let results = study_results(1, 2, 1);
    let directory = written(&results);
    // Even root cannot make the shared memory of the log now: SQLite follows no link here.
    std::os::unix::fs::symlink("elsewhere", directory.path().join("results.db-shm")).unwrap();
    assert_eq!(Store::load(directory.path()).unwrap(), results);
    let error = Store::open(directory.path()).unwrap_err();
    assert!(matches!(error, OpenError::Database(DatabaseError::Access { .. })), "{error}");
    // With a log that may hold more, reading the database alone would show an older state.
    fs::write(directory.path().join("results.db-wal"), [0; 100]).unwrap();
    let error = Store::load(directory.path()).unwrap_err();
    assert!(matches!(error, LoadError::Database(DatabaseError::Access { .. })), "{error}");
    assert!(error.to_string().contains("copy the directory to a place you may write to"), "{error}");
}

#[test]
fn columns_say_what_the_histograms_say() {
    let results = study_results(8, 4, 1);
    let directory = written(&results);
    let connection = sql(directory.path());
    let mut statement = connection
        .prepare(
            "SELECT min_ns, mean_ns, p50_ns, p99_ns, p999_ns, max_ns FROM operations JOIN recordings r USING \
             (recording_id) JOIN runs USING (run_id) ORDER BY position, r.ordinal, operations.ordinal",
        )
        .unwrap();
    let mut rows = statement.query([]).unwrap();
    for series in results.runs.iter().flat_map(|r| &r.recordings).flat_map(|r| &r.series) {
        let row = rows.next().unwrap().unwrap();
        let histogram = series.total.latency.decode().unwrap();
        assert_eq!(row.get::<_, u64>(0).unwrap(), histogram.min());
        assert_eq!(row.get::<_, f64>(1).unwrap(), series.total.sum_ns as f64 / series.total.count as f64);
        for (column, quantile) in [(2, 0.5), (3, 0.99), (4, 0.999)] {
            assert_eq!(row.get::<_, u64>(column).unwrap(), histogram.value_at_quantile(quantile));
        }
        assert_eq!(row.get::<_, u64>(5).unwrap(), histogram.max());
    }
    assert!(rows.next().unwrap().is_none());
}

#[test]
fn views_join_levels_and_severity() {
    let results = study_results(8, 4, 2);
    let directory = written(&results);
    let connection = sql(directory.path());
    let run = results.runs.last().unwrap();
    let treatment = &results.study.treatments[run.key.treatment as usize];
    let row: (String, String, String, f64, String, String) = connection
        .query_row(
            "SELECT label, io_size, sync, value, unit, severity FROM run_responses \
             WHERE response = 'write.throughput' AND treatment = ?1 AND replicate = ?2",
            [run.key.treatment, run.key.replicate],
            |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?, r.get(5)?)),
        )
        .unwrap();
    let level =
        |factor: usize| results.study.factors[factor].levels[treatment.levels[factor] as usize].clone();
    let value = run.responses[0].value;
    assert_eq!(row, (treatment.label.clone(), level(0), level(1), value, "B/s".into(), "invalid".into()));
    // A run with a warning and a note counts as the worse of them.
    let warned: String = connection
        .query_row("SELECT DISTINCT severity FROM run_responses WHERE position = 0", [], |r| r.get(0))
        .unwrap();
    assert_eq!(warned, "warning");
    // The last interval is a little shorter than the others; its rate is not lower for it.
    let (rate, count): (f64, f64) = connection
        .query_row("SELECT operations_per_second, count FROM run_intervals WHERE interval = 19", [], |r| {
            Ok((r.get(0)?, r.get(1)?))
        })
        .unwrap();
    assert!((rate / count - 1e9 / (1e9 - 1_234_567.0)).abs() < 1e-9);
}

#[test]
fn what_went_over_the_wire_is_read_as_written() {
    let mut results = study_results(4, 2, 2);
    synthetic::serve(&mut results);
    let run = &mut results.runs[0];
    run.service = None;
    run.server_use[0].cpu_ns = None;
    run.server_use[1].operations.clear();
    let rpc = run.recordings[0].rpc.as_mut().unwrap();
    rpc.problems = vec!["2 calls outstanding".into(), "unmount: timed out".into()];
    rpc.phases[0].rows.clear();
    rpc.connection.slots = None;
    run.recordings[1].rpc = None;
    let directory = written(&results);
    assert_eq!(Store::load(directory.path()).unwrap(), results);
}

#[test]
fn what_many_hosts_add_is_read_as_written() {
    let mut results = study_results(21, 2, 2);
    synthetic::serve(&mut results);
    synthetic::spread(&mut results);
    let run = &mut results.runs[1];
    run.service.as_mut().unwrap().achieved = Some(NetworkAchieved::default());
    let recording = &mut run.recordings[0];
    recording.start = None;
    recording.agents[1].clock.drift = None;
    recording.collected[0].output = vec![0, 255, 10, 13];
    let samples = &mut recording.samples[0].samples;
    samples.series[0].points.clear();
    samples.series[1].points[2].value = 1e300;
    samples.late = 3;
    samples.cost.samplers.clear();
    run.recordings[1].samples.clear();
    results.runs[2].service.as_mut().unwrap().network = NetworkRecord::default();
    results.baselines[0].round_trip = None;
    results.baselines[0].network.bandwidth = None;
    results.baselines[1].flows.clear();
    results.hooks[0].succeeded = false;
    let directory = written(&results);
    assert_eq!(Store::load(directory.path()).unwrap(), synthetic::as_loaded(&results));
    for run in &results.runs {
        assert_eq!(Store::load_run(directory.path(), run.key).unwrap().as_ref(), Some(run));
    }
    let unknown = RunKey { treatment: 1, replicate: 9 };
    assert_eq!(Store::load_run(directory.path(), unknown).unwrap(), None);
}

/// A strange clock or a division by zero in a sampler must not cost the run.
#[test]
fn odd_samples_do_not_fail_a_run() {
    let mut results = study_results(22, 1, 1);
    synthetic::spread(&mut results);
    let series = &mut results.runs[0].recordings[0].samples[0].samples.series;
    let twice = series[0].clone();
    series.push(twice);
    let points = &mut series[1].points;
    points[3].time_ns = points[2].time_ns;
    (points[4].value, points[5].value) = (f64::NAN, f64::INFINITY);
    let expected = points.clone();
    let directory = written(&results);
    let run = Store::load_run(directory.path(), results.runs[0].key).unwrap().unwrap();
    let series = &run.recordings[0].samples[0].samples.series;
    assert_eq!(series.first(), series.last());
    let found = &series[1].points;
    assert_eq!(found.len(), expected.len() - 1);
    assert_eq!((found[1], found[2]), (expected[1], expected[3]));
    assert!(found[3].value.is_nan() && found[4].value == f64::INFINITY);
}

#[test]
fn metrics_are_stored_once() {
    let mut results = study_results(23, 2, 3);
    synthetic::spread(&mut results);
    let directory = written(&results);
    let connection = sql(directory.path());
    let count = |table: &str| -> u32 {
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    assert_eq!(count("metrics"), 22);
    assert_eq!(count("sample_series"), 6 * 2 * (16 + 16 + 17));
}

#[test]
fn the_view_of_rates_is_that_of_the_counters() {
    let mut results = study_results(24, 1, 1);
    synthetic::spread(&mut results);
    let host = &mut results.runs[0].recordings[0].samples[1];
    let series = host.samples.series.iter_mut().find(|series| series.key.metric == "rx_bytes").unwrap();
    series.points.truncate(4);
    for (point, value) in series.points.iter_mut().zip([1e6, 4e6, 4e6, 5.0]) {
        point.value = value;
    }
    series.points[2].time_ns += 2_000_000_000;
    series.points[3].time_ns += 4_000_000_000;
    let directory = written(&results);
    let connection = sql(directory.path());
    let mut statement = connection
        .prepare(
            "SELECT end_s - start_s, per_second FROM run_sample_rates WHERE workload = 'write' AND agent = 'c2' \
             AND metric = 'rx_bytes' ORDER BY start_s",
        )
        .unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let rows: Vec<(f64, Option<f64>)> = rows.map(Result::unwrap).collect();
    let seconds: Vec<f64> = rows.iter().map(|row| row.0.round()).collect();
    assert_eq!(seconds, [1.0, 3.0, 3.0]);
    assert_eq!(rows.iter().map(|row| row.1).collect::<Vec<_>>(), [Some(3e6), Some(0.0), None]);
    let gauges: u32 = connection
        .query_row("SELECT count(*) FROM run_sample_rates WHERE metric = 'Dirty'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(gauges, 0);
}

#[test]
fn clients_are_shown_with_their_agents() {
    let mut results = study_results(25, 1, 1);
    synthetic::spread(&mut results);
    let directory = written(&results);
    let connection = sql(directory.path());
    let mut statement = connection
        .prepare(
            "SELECT client, agent, host, first_start_ns, bytes FROM run_clients WHERE workload = 'write'",
        )
        .unwrap();
    let rows =
        statement.query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?))).unwrap();
    let rows: Vec<(u32, String, String, u64, u64)> = rows.map(Result::unwrap).collect();
    assert_eq!(rows.iter().map(|row| &row.1[..]).collect::<Vec<_>>(), ["c1", "c1", "c2", "c2"]);
    assert_eq!(rows[2].2, "node-2");
    let write = &results.runs[0].recordings[0];
    let firsts: Vec<u64> = write
        .workers
        .iter()
        .map(|w| w.series.iter().filter_map(|s| s.first_start_ns).min().unwrap())
        .collect();
    assert_eq!(rows.iter().map(|row| row.3).collect::<Vec<_>>(), firsts);
    let bytes: u64 = write.series.iter().map(|series| series.total.bytes).sum();
    assert_eq!(rows.iter().map(|row| row.4).sum::<u64>(), bytes);
}

#[test]
fn what_belongs_to_no_session_is_refused() {
    let mut results = study_results(26, 1, 1);
    synthetic::spread(&mut results);
    let directory = written(&results);
    let mut store = Store::open(directory.path()).unwrap();
    let hook = HookRecord { session: 7, ..results.hooks[0].clone() };
    assert!(store.add_hook(&hook).unwrap_err().to_string().contains("there is no session 7"));
    let mut baseline = BaselineRecord { session: 7, ..results.baselines[0].clone() };
    assert!(store.add_baseline(&baseline).unwrap_err().to_string().contains("there is no session 7"));
    (baseline.session, baseline.flows[1].throughput) = (1, f64::NAN);
    let error = store.add_baseline(&baseline).unwrap_err();
    assert!(error.to_string().contains("the throughput of 4 flows to filer is not a number"), "{error}");
    assert_eq!(Store::load(directory.path()).unwrap().baselines, results.baselines);
}
