//! A results directory of a stranger: every value of every column may be anything.

use std::panic::catch_unwind;
use std::path::Path;

use benchmaster_analysis::analyze;
use benchmaster_diagnosis::results::diagnose;
use benchmaster_report::details::ResultsDirectory;
use benchmaster_report::pages;
use benchmaster_store::Store;
use benchmaster_testkit::{Random, study_results, write};
use rusqlite::Connection;
use tempfile::tempdir;

/// What is put into columns, as SQL.
const VALUES: [&str; 6] =
    ["NULL", "-1", "9223372036854775807", "1e308", "9e999", "'</script><img src=x onerror=alert(1)>'"];

/// The page of results that can be read.
fn page(directory: &Path) -> Option<String> {
    let results = Store::load(directory).ok()?;
    let details = ResultsDirectory::new(directory);
    let analysis = analyze(&results);
    let findings = diagnose(&results, &analysis, &details);
    pages::study(&results, &analysis, &findings, Some(&details)).page().ok()
}

/// Each value in each column: what `keep` leaves of them. How many directories were read, and of how many.
fn read_all(mut keep: impl FnMut() -> bool) -> (usize, usize) {
    let directory = tempdir().unwrap();
    write(directory.path(), &study_results(1, 4, 3)).unwrap();
    let path = directory.path().join("results.db");
    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "journal_mode", "delete").unwrap();
    let sql = "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.type = 'table' \
               ORDER BY 1, 2";
    let mut statement = connection.prepare(sql).unwrap();
    let columns: Vec<(String, String)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    drop(statement);
    drop(connection);
    let good = std::fs::read(&path).unwrap();
    let (mut read, mut tried, mut broken) = (0, 0, Vec::new());
    for (table, column) in &columns {
        for value in VALUES {
            if !keep() {
                continue;
            }
            std::fs::write(&path, &good).unwrap();
            let connection = Connection::open(&path).unwrap();
            connection.pragma_update(None, "ignore_check_constraints", true).unwrap();
            connection.pragma_update(None, "foreign_keys", false).unwrap();
            let sql = format!("UPDATE OR IGNORE \"{table}\" SET \"{column}\" = {value}");
            // Types of columns, and generated ones, forbid some.
            if connection.execute(&sql, []).is_err() {
                continue;
            }
            drop(connection);
            tried += 1;
            match catch_unwind(|| page(directory.path())) {
                Ok(Some(page)) => {
                    assert!(!page.contains("<img src=x"), "{table}.{column} = {value}: it is not escaped");
                    read += 1;
                }
                Ok(None) => {}
                Err(_) => broken.push(format!("{table}.{column} = {value}")),
            }
        }
    }
    assert!(broken.is_empty(), "{} panic: {broken:#?}", broken.len());
    (read, tried)
}

#[test]
fn values_that_no_run_writes_break_nothing() {
    let mut random = Random(1);
    let (read, tried) = read_all(|| random.bits().is_multiple_of(40));
    assert!(read > 5 && tried > 20, "{read} of {tried} were read");
}

#[test]
#[ignore = "full tier: minutes"]
fn no_value_of_any_column_breaks_anything() {
    let (read, tried) = read_all(|| true);
    assert!(read > 500, "{read} of {tried} were read");
}
