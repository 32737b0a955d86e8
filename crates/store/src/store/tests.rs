use rusqlite::StatementStatus;
use tempfile::tempdir;

use super::*;
use benchmaster_testkit as synthetic;

#[test]
fn a_full_disk_loses_nothing_and_halves_nothing() {
    let directory = tempdir().unwrap();
    let results = synthetic::study_results(5, 3, 2);
    let mut store = Store::create(directory.path(), &results.study).unwrap();
    let session = &results.sessions[0];
    store.begin_session(&session.command, session.started, &session.environment).unwrap();
    let mut runs = results.runs.clone();
    runs.iter_mut().for_each(|run| run.session = 1);
    let (last, first) = runs.split_last().unwrap();
    for run in first {
        store.commit_run(run).unwrap();
    }

    let pages: u32 = store.connection.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    let mut refused = 0;
    // The disk gets full at every step on the way.
    for more in 0.. {
        let limit = |pages: u32| {
            store.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
        };
        limit(pages + more);
        store.begin_run(1, last.key, last.position).unwrap();
        let Err(error) = store.commit_run(last) else { break };
        assert!(
            matches!(&error, WriteError::Database(DatabaseError::Full { path }) if path.ends_with(DATABASE))
        );
        assert!(error.to_string().contains("free some and run the same command again"), "{error}");
        refused += 1;
        let found = Store::load(directory.path()).unwrap();
        assert_eq!(found.runs, first, "after {refused} refusals");
    }
    assert!(refused > 2, "the disk was never full");
    assert_eq!(Store::load(directory.path()).unwrap().runs, runs);
    let marks: u32 =
        store.connection.query_row("SELECT count(*) FROM in_flight", [], |row| row.get(0)).unwrap();
    assert_eq!(marks, 0);
    let sound: String = store.connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(sound, "ok");
}

#[test]
fn commits_are_durable() {
    let directory = tempdir().unwrap();
    let results = synthetic::study_results(1, 1, 1);
    let mut store = Store::create(directory.path(), &results.study).unwrap();
    let session = &results.sessions[0];
    store.begin_session(&session.command, session.started, &session.environment).unwrap();
    // The mark of a run in flight is not flushed; what comes after it is.
    store.begin_run(1, results.runs[0].key, 0).unwrap();
    let pragma = |name: &str| {
        let value: rusqlite::types::Value =
            store.connection.pragma_query_value(None, name, |row| row.get(0)).unwrap();
        format!("{value:?}")
    };
    assert_eq!(pragma("journal_mode"), "Text(\"wal\")");
    assert_eq!(pragma("synchronous"), "Integer(2)");
    assert_eq!(pragma("foreign_keys"), "Integer(1)");
}

#[test]
fn an_immutable_database_is_found_by_any_path() {
    let parent = tempdir().unwrap();
    let directory = parent.path().join("50% of #1? ä&b");
    let results = synthetic::study_results(6, 2, 1);
    synthetic::write(&directory, &results).unwrap();
    let connection = immutable(&directory.join(DATABASE)).unwrap();
    assert_eq!(rows::load_results(&connection).unwrap(), results);
}

#[test]
fn statements_are_prepared_once_whatever_is_bound() {
    let directory = tempdir().unwrap();
    let store = Store::create(directory.path(), &synthetic::study_results(5, 3, 2).study).unwrap();
    let connections = [connect(&store.database).unwrap(), connect_to_read(&store.database).unwrap()];
    for connection in connections {
        let sql = "SELECT time_ns, value FROM samples WHERE sample_series_id = ?1 ORDER BY time_ns";
        let mut statement = connection.prepare(sql).unwrap();
        for series in 0..100 {
            assert!(!statement.exists([series]).unwrap());
        }
        assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    }
}
