//! `docs/results.md` describes the database as it is: its queries run, its tables have the columns it lists.

use std::collections::BTreeMap;
use std::path::Path;

use benchmaster_store::Store;
use benchmaster_testkit as synthetic;
use rusqlite::Connection;

fn document() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results.md");
    std::fs::read_to_string(path).unwrap()
}

/// A database with a row in every table but `in_flight`.
fn database() -> (tempfile::TempDir, Connection) {
    let directory = tempfile::tempdir().unwrap();
    let mut results = synthetic::study_results(7, 4, 5);
    synthetic::fail(&mut results.runs[5], "agent died");
    synthetic::serve(&mut results);
    synthetic::spread(&mut results);
    synthetic::in_lab(&mut results, "uml", "6.1.176");
    results.runs[3].recordings[0].rpc.as_mut().unwrap().problems = vec!["2 calls outstanding".into()];
    results.runs[0].traces.insert("write".into(), "traces/run-0-1-write.parquet".into());
    synthetic::write(directory.path(), &results).unwrap();
    let connection = Connection::open(directory.path().join("results.db")).unwrap();
    (directory, connection)
}

/// The text of every fenced block of a language.
fn blocks<'a>(document: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    document.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// The tables of the section `## Tables`, with the first column of each one's description.
fn described(document: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let section = document.split("\n## Tables\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut tables = BTreeMap::new();
    for part in section.split("\n### `").skip(1) {
        let (name, text) = part.split_once('`').unwrap();
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
        let cells = rows.map(|row| {
            let (column, rest) = row.split_once('`').unwrap();
            (column.to_owned(), rest.split('|').nth(1).unwrap().trim().to_uppercase())
        });
        tables.insert(name.to_owned(), cells.collect());
    }
    tables
}

fn columns(connection: &Connection, table: &str) -> Vec<(String, String)> {
    let mut statement = connection.prepare("SELECT name, type FROM pragma_table_info(?1)").unwrap();
    let rows = statement.query_map([table], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(|row| row.unwrap()).collect()
}

fn names(connection: &Connection, kind: &str) -> Vec<String> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = ?1 AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([kind], |row| row.get(0)).unwrap();
    rows.map(|row| row.unwrap()).collect()
}

#[test]
fn every_query_runs_and_finds_something() {
    let (_directory, connection) = database();
    let document = document();
    let queries = blocks(&document, "sql");
    assert!(queries.len() > 15, "only {} queries", queries.len());
    for query in queries {
        let rows = connection.prepare(query).and_then(|mut statement| {
            let mut rows = statement.query([])?;
            let mut count = 0;
            while rows.next()?.is_some() {
                count += 1;
            }
            Ok(count)
        });
        match rows {
            Ok(count) => assert!(count > 0, "no row:\n{query}"),
            Err(error) => panic!("{error}:\n{query}"),
        }
    }
}

#[test]
fn every_table_and_column_is_described() {
    let (_directory, connection) = database();
    let described = described(&document());
    assert_eq!(described.keys().cloned().collect::<Vec<_>>(), names(&connection, "table"));
    for (table, described) in described {
        assert_eq!(described, columns(&connection, &table), "{table}");
    }
}

#[test]
fn every_view_is_described_and_has_rows() {
    let (_directory, connection) = database();
    let document = document();
    let section = document.split("\n## Views\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let common = ["run_id", "treatment", "label", "replicate", "position"];
    let range = ["mean_ns", "p50_ns", "p99_ns", "p999_ns"];
    for view in names(&connection, "view") {
        let row = section.lines().find(|line| line.starts_with(&format!("| `{view}` |")));
        let row = row.unwrap_or_else(|| panic!("{view} is not described"));
        for (column, _) in columns(&connection, &view) {
            let known = common.contains(&column.as_str())
                || row.contains("`min_ns` … `max_ns`") && range.contains(&column.as_str())
                || view == "run_responses" && ["io_size", "sync"].contains(&column.as_str());
            assert!(known || row.contains(&format!("`{column}`")), "{view}.{column} is not described");
        }
        let count: u32 =
            connection.query_row(&format!("SELECT count(*) FROM {view}"), [], |row| row.get(0)).unwrap();
        assert!(count > 0, "{view} is empty");
    }
}

#[test]
fn the_schema_version_is_the_one_described() {
    let (directory, connection) = database();
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert!(document().contains(&format!("This document describes schema version {version}.")));
    let application: u32 = connection.pragma_query_value(None, "application_id", |row| row.get(0)).unwrap();
    assert!(document().contains(&format!("{application:#x}")));
    drop(connection);
    Store::load(directory.path()).unwrap();
}
