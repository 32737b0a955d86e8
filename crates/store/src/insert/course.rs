//! What happened around the runs → rows.

use rusqlite::{Transaction, params};

use super::{Rows, execute};
use crate::record::{HookRecord, RetryRecord};

/// A command that was run.
pub(crate) fn hook(transaction: &Transaction<'_>, h: &HookRecord) -> Rows {
    execute(
        transaction,
        "INSERT INTO hooks (session, treatment, replicate, step, agent, command, started, elapsed_ns, ended, \
         succeeded, output) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            h.session,
            h.run.map(|run| run.treatment),
            h.run.map(|run| run.replicate),
            h.step,
            h.agent,
            h.command,
            h.started.to_string(),
            h.elapsed_ns,
            h.ended,
            h.succeeded,
            h.output
        ],
    )?;
    Ok(())
}

pub(super) fn retries(transaction: &Transaction<'_>, run: i64, retries: &[RetryRecord]) -> Rows {
    for (ordinal, r) in (0u32..).zip(retries) {
        let sql = "INSERT INTO retries VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let started = r.started.to_string();
        execute(transaction, sql, params![run, ordinal, started, r.elapsed_ns, r.agent, r.reason])?;
    }
    Ok(())
}
