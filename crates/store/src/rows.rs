//! Records ↔ rows. The file of a subject both writes and reads its tables; every function works in the caller's transaction.

#[macro_use]
mod cell;
mod hosts;
mod recording;
mod run;
mod session;
mod study;
mod wire;

use std::collections::BTreeMap;

use benchmaster_record::results::StudyResults;
use rusqlite::types::FromSql;
use rusqlite::{Connection, Params, Result, Row};

pub(crate) use self::cell::{RowError, name_of};
pub(crate) use self::run::{insert_run, key, load_run, responses};
pub(crate) use self::session::{insert_environments, insert_hook};
pub(crate) use self::study::{insert_stage, insert_study, load_study};
pub(crate) use self::wire::insert_baseline;

use self::cell::{Columns, NewRow};

type Inserted = std::result::Result<(), RowError>;

/// Which parts of runs are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parts {
    All,
    /// Without the points of samples and the outputs of attached commands.
    Small,
}

/// Everything, in the caller's transaction.
pub(crate) fn load_results(connection: &Connection) -> Result<StudyResults> {
    Ok(StudyResults {
        study: load_study(connection)?,
        runs: run::load_runs(connection)?,
        sessions: session::load_sessions(connection)?,
        hooks: session::load_hooks(connection)?,
        baselines: wire::load_baselines(connection)?,
    })
}

/// All rows of a query.
pub(crate) fn all<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(parameters, read)?.collect()
}

/// Inserts a list that belongs to a row of another table: the column and the value that refer to it.
fn insert_list(
    connection: &Connection,
    table: &str,
    (column, parent): (&'static str, i64),
    list: &[impl Columns],
) -> Inserted {
    for (ordinal, item) in (0u32..).zip(list) {
        NewRow::child(column, parent, ordinal).with(item).insert(connection, table)?;
    }
    Ok(())
}

/// Reads a list that [`insert_list`] has inserted.
fn load_list<T: Columns>(
    connection: &Connection,
    table: &str,
    (column, parent): (&str, i64),
) -> Result<Vec<T>> {
    let sql = format!("SELECT * FROM {table} WHERE {column} = ?1 ORDER BY ordinal");
    all(connection, &sql, [parent], Columns::load)
}

/// The row of a query that has at most one.
fn one<T>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
    read: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<Option<T>> {
    Ok(all(connection, sql, parameters, read)?.into_iter().next())
}

/// A query of names and values.
fn map<V: FromSql>(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
) -> Result<BTreeMap<String, V>> {
    let pairs = all(connection, sql, parameters, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(pairs.into_iter().collect())
}
