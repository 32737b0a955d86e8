//! The schema of `results.db`: its versions, how one becomes the next, and the views.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension, Transaction};

use crate::error::{At, DatabaseError};

/// Written to `PRAGMA application_id` (`BMst`), so that the file can be told from other SQLite databases.
const APPLICATION_ID: u32 = 0x424d_7374;

/// One step makes schema version `i + 1` from version `i`; a released step is never changed.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("schema-2.sql"),
    include_str!("schema-3.sql"),
    include_str!("schema-4.sql"),
    include_str!("schema-5.sql"),
    include_str!("schema-6.sql"),
];

/// Whether a database has to be migrated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    Current,
    Older,
}

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

/// Checks that the database is one of ours and of a version that is known.
pub(crate) fn check(connection: &Connection, path: &Path, known: &[&str]) -> Result<Age, DatabaseError> {
    let application: u32 =
        connection.pragma_query_value(None, "application_id", |row| row.get(0)).at(path)?;
    if application != APPLICATION_ID {
        return Err(DatabaseError::Foreign { path: path.into() });
    }
    let found = version(connection).at(path)?;
    let known = known.len() as u32;
    match found.cmp(&known) {
        std::cmp::Ordering::Greater => Err(DatabaseError::Newer { path: path.into(), found, known }),
        std::cmp::Ordering::Equal => Ok(Age::Current),
        std::cmp::Ordering::Less => Ok(Age::Older),
    }
}

/// Brings the database to the newest version, in the caller's transaction.
pub(crate) fn migrate(transaction: &Transaction<'_>, migrations: &[&str]) -> rusqlite::Result<()> {
    for view in views(transaction)? {
        transaction.execute_batch(&format!("DROP VIEW {}", quoted(&view)))?;
    }
    for step in &migrations[(version(transaction)? as usize).min(migrations.len())..] {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", migrations.len() as u32)?;
    make_views(transaction)
}

/// Makes the views for the factors that are stored.
pub(crate) fn make_views(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch("DROP VIEW IF EXISTS run_responses")?;
    let exists: Option<i64> = transaction
        .query_row("SELECT 1 FROM sqlite_schema WHERE type = 'view' LIMIT 1", [], |row| row.get(0))
        .optional()?;
    if exists.is_none() {
        transaction.execute_batch(include_str!("views.sql"))?;
    }
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

/// Names of the columns that hold the factors' levels in a table which has `taken` columns as well: the factors' own
/// names, with `factor_` before those which would stand twice. Letter case does not tell columns apart.
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

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn views(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'view'")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn migrated(connection: &mut Connection, migrations: &[&str]) -> rusqlite::Result<()> {
        let transaction = connection.transaction()?;
        migrate(&transaction, migrations)?;
        transaction.commit()
    }

    #[test]
    fn an_older_database_is_migrated_with_its_content() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrated(&mut connection, MIGRATIONS).unwrap();
        connection.execute("INSERT INTO factors VALUES (0, 'value')", []).unwrap();
        let mut later = MIGRATIONS.to_vec();
        later.push("ALTER TABLE factors ADD COLUMN hard_to_change INTEGER NOT NULL DEFAULT 0;");
        assert_eq!(check(&connection, Path::new("x"), &later).unwrap(), Age::Older);
        migrated(&mut connection, &later).unwrap();
        assert_eq!(check(&connection, Path::new("x"), &later).unwrap(), Age::Current);
        let row: (String, i64) = connection
            .query_row("SELECT name, hard_to_change FROM factors", [], |r| Ok((r.get(0)?, r.get(1)?)))
            .unwrap();
        assert_eq!(row, ("value".into(), 0));
        connection.prepare("SELECT factor_value, value FROM run_responses").unwrap();

        let error = check(&connection, Path::new("r/results.db"), MIGRATIONS).unwrap_err().to_string();
        let known = MIGRATIONS.len();
        assert_eq!(
            error,
            format!(
                "`r/results.db` was written by a newer version of Benchmaster (schema {}, this version knows \
                 {known}): use that version or a later one",
                known + 1
            )
        );
    }

    #[test]
    fn a_failing_migration_changes_nothing() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrated(&mut connection, MIGRATIONS).unwrap();
        let before = views(&connection).unwrap();
        let mut later = MIGRATIONS.to_vec();
        later
            .extend(["ALTER TABLE factors ADD COLUMN one TEXT;", "ALTER TABLE nothing ADD COLUMN two TEXT;"]);
        migrated(&mut connection, &later).unwrap_err();
        assert_eq!(version(&connection).unwrap(), MIGRATIONS.len() as u32);
        assert_eq!(views(&connection).unwrap(), before);
        assert!(connection.prepare("SELECT one FROM factors").is_err());
    }

    #[test]
    fn a_database_of_another_program_is_told_apart() {
        let connection = Connection::open_in_memory().unwrap();
        let error = check(&connection, Path::new("x"), MIGRATIONS).unwrap_err();
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
