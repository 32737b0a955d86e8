//! The schema of `results.db`, its version and the views.

use std::path::Path;

use rusqlite::{Connection, Transaction};

use crate::error::{At, DatabaseError};

/// Written to `PRAGMA application_id` (`BMst`), which distinguishes the file from other SQLite databases.
const APPLICATION_ID: u32 = 0x424d_7374;

/// Written to `PRAGMA user_version`: the version of `schema.sql`.
const VERSION: u32 = 1;

/// Columns of the view `run_responses` beside those of the factors.
const RESPONSE_COLUMNS: &[&str] = &[
    "run_id",
    "treatment",
    "label",
    "replicate",
    "position",
    "session",
    "response",
    "value",
    "unit",
    "severity",
];

/// Checks that the database was written by Benchmaster and has the schema that this program reads.
pub(crate) fn check(connection: &Connection, path: &Path) -> Result<(), DatabaseError> {
    let application: u32 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0)).at(path)?;
    if application != APPLICATION_ID {
        return Err(DatabaseError::Foreign { path: path.into() });
    }
    let version: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).at(path)?;
    if version != VERSION {
        return Err(DatabaseError::Version { path: path.into(), found: version, known: VERSION });
    }
    Ok(())
}

/// Creates the tables and views of an empty database, in the caller's transaction.
pub(crate) fn create(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(include_str!("schema.sql"))?;
    transaction.execute_batch(include_str!("views.sql"))?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)
}

/// Creates the view that has a column per factor, once the factors are stored.
pub(crate) fn create_response_view(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut statement = transaction.prepare("SELECT name FROM factors ORDER BY factor")?;
    let names: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    let columns: String = (0..)
        .zip(factor_columns(&names, RESPONSE_COLUMNS))
        .map(|(factor, column): (u32, _)| {
            format!(
                "(SELECT l.name FROM treatment_levels tl JOIN levels l USING (factor, level) \
                 WHERE tl.treatment = r.treatment AND tl.factor = {factor}) AS {}, ",
                quoted(&column)
            )
        })
        .collect();
    transaction.execute_batch(&format!(
        "CREATE VIEW run_responses AS \
         SELECT r.run_id, r.treatment, t.label, {columns}r.replicate, r.position, r.session, \
         p.response, p.value, p.unit, (SELECT c.severity FROM checks c WHERE c.run_id = r.run_id \
         ORDER BY instr('invalid warning note', c.severity) LIMIT 1) AS severity \
         FROM responses p JOIN runs r USING (run_id) JOIN treatments t USING (treatment)"
    ))
}

/// Names of the columns that hold the factors' levels in a table that also has the columns `taken`: the factors' own
/// names, prefixed with `factor_` where a name would be a duplicate. Column names are not case-sensitive.
pub fn factor_columns(factors: &[String], taken: &[&str]) -> Vec<String> {
    let mut used: Vec<String> = taken.iter().map(|name| name.to_lowercase()).collect();
    let mut columns = Vec::new();
    for factor in factors {
        let mut column = factor.clone();
        while used.contains(&column.to_lowercase()) {
            column.insert_str(0, "factor_");
        }
        used.push(column.to_lowercase());
        columns.push(column);
    }
    columns
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_of_another_version_is_refused() {
        let mut connection = Connection::open_in_memory().unwrap();
        let transaction = connection.transaction().unwrap();
        create(&transaction).unwrap();
        transaction.commit().unwrap();
        check(&connection, Path::new("x")).unwrap();
        connection.pragma_update(None, "user_version", 7).unwrap();
        let error = check(&connection, Path::new("r/results.db")).unwrap_err().to_string();
        assert_eq!(
            error,
            "`r/results.db` has schema version 7, this version of Benchmaster reads version 1: use the version \
             that wrote it"
        );
    }

    #[test]
    fn the_view_of_responses_has_a_column_per_factor() {
        let mut connection = Connection::open_in_memory().unwrap();
        let transaction = connection.transaction().unwrap();
        create(&transaction).unwrap();
        transaction.execute("INSERT INTO factors (factor, name) VALUES (0, 'value')", []).unwrap();
        create_response_view(&transaction).unwrap();
        transaction.prepare("SELECT factor_value, value FROM run_responses").unwrap();
    }

    #[test]
    fn a_database_of_another_program_is_refused() {
        let connection = Connection::open_in_memory().unwrap();
        let error = check(&connection, Path::new("x")).unwrap_err();
        assert!(matches!(error, DatabaseError::Foreign { .. }), "{error}");
    }

    #[test]
    fn factor_columns_never_stand_twice() {
        let names = ["io_size", "Unit", "unit", "factor_unit"].map(String::from);
        assert_eq!(
            factor_columns(&names, &["unit"]),
            ["io_size", "factor_Unit", "factor_factor_unit", "factor_factor_factor_unit"]
        );
    }
}
