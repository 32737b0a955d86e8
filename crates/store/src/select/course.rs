//! Rows → what happened around the runs.

use rusqlite::{Connection, Result};

use super::{all, time};
use crate::record::{HookRecord, RetryRecord, RunKey};

pub(super) fn hooks(connection: &Connection) -> Result<Vec<HookRecord>> {
    all(connection, "SELECT * FROM hooks ORDER BY hook_id", [], |row| {
        let run = match (row.get("treatment")?, row.get("replicate")?) {
            (Some(treatment), Some(replicate)) => Some(RunKey { treatment, replicate }),
            _ => None,
        };
        Ok(HookRecord {
            session: row.get("session")?,
            run,
            step: row.get("step")?,
            agent: row.get("agent")?,
            command: row.get("command")?,
            started: time(row, "started")?,
            elapsed_ns: row.get("elapsed_ns")?,
            ended: row.get("ended")?,
            succeeded: row.get("succeeded")?,
            output: row.get("output")?,
        })
    })
}

pub(super) fn retries(connection: &Connection, run: i64) -> Result<Vec<RetryRecord>> {
    all(connection, "SELECT * FROM retries WHERE run_id = ?1 ORDER BY ordinal", [run], |row| {
        Ok(RetryRecord {
            started: time(row, "started")?,
            elapsed_ns: row.get("elapsed_ns")?,
            agent: row.get("agent")?,
            reason: row.get("reason")?,
        })
    })
}
