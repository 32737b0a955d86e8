//! Sessions, the environments of their hosts, and the commands that were run.

use std::collections::BTreeMap;

use benchmaster_record::environment::{Environment, TargetEnvironment};
use benchmaster_record::results::{HookRecord, RunKey, SessionRecord};
use rusqlite::{Connection, Result, Row, Transaction, params};

use super::cell::{Cell, Columns, NewRow};
use super::{Inserted, all, map};

columns! {
    TargetEnvironment {
        path = "target_path", mount_point = "target_mount_point", source = "target_source",
        file_system = "target_file_system", options = "target_options", mount_line = "target_mount_line",
        total_bytes = "target_total_bytes", free_bytes = "target_free_bytes", free_files = "target_free_files",
        read_ahead_kib = "target_read_ahead_kib"
    }
}

/// Replaces the environments of a session.
pub(crate) fn insert_environments(
    transaction: &Transaction<'_>,
    session: u32,
    all: &BTreeMap<String, Environment>,
) -> Inserted {
    transaction.execute("DELETE FROM environments WHERE session = ?1", params![session])?;
    for (name, environment) in all {
        let mut row = store!(NewRow::default().set("session", &session).set("name", name), environment, {
            host, benchmaster, kernel, distribution, cpu_model, processors, processors_allowed, memory_total,
            memory_available, clock_source, virtualization, governor
        });
        if let Some(target) = &environment.target {
            row = row.with(target);
        }
        row.insert(transaction, "environments")?;
        for (sysctl, value) in &environment.sysctls {
            NewRow::default()
                .set("session", &session)
                .set("environment", name)
                .set("name", sysctl)
                .set("value", value)
                .insert(transaction, "sysctls")?;
        }
    }
    Ok(())
}

pub(super) fn load_sessions(connection: &Connection) -> Result<Vec<SessionRecord>> {
    all(connection, "SELECT * FROM sessions ORDER BY session", [], |row| {
        let lost = Option::zip(row.get("lost_treatment")?, row.get("lost_replicate")?);
        Ok(load!(row, SessionRecord {
            id = "session", started, command;
            ended: Option::zip(Cell::load(row, "ended")?, Cell::load(row, "outcome")?),
            lost_run: lost.map(|(treatment, replicate)| RunKey { treatment, replicate }),
            environment: load_environments(connection, row.get("session")?)?,
        }))
    })
}

fn load_environments(connection: &Connection, session: u32) -> Result<BTreeMap<String, Environment>> {
    let rows = all(connection, "SELECT * FROM environments WHERE session = ?1", [session], |row| {
        let name: String = row.get("name")?;
        let sql = "SELECT name, value FROM sysctls WHERE session = ?1 AND environment = ?2";
        let sysctls = map(connection, sql, (session, &name))?;
        let has_target = row.get::<_, Option<String>>("target_path")?.is_some();
        let target = if has_target { Some(Columns::load(row)?) } else { None };
        let environment = load!(row, Environment {
            host, benchmaster, kernel, distribution, cpu_model, processors, processors_allowed, memory_total,
            memory_available, clock_source, virtualization, governor;
            target,
            sysctls,
        });
        Ok((name, environment))
    })?;
    Ok(rows.into_iter().collect())
}

/// A command that was run.
pub(crate) fn insert_hook(transaction: &Transaction<'_>, hook: &HookRecord) -> Inserted {
    let row = store!(NewRow::default(), hook, {
        session, step, agent, command, started, elapsed_ns, ended, succeeded, output
    });
    row.set("treatment", &hook.run.map(|run| run.treatment))
        .set("replicate", &hook.run.map(|run| run.replicate))
        .insert(transaction, "hooks")?;
    Ok(())
}

pub(super) fn load_hooks(connection: &Connection) -> Result<Vec<HookRecord>> {
    all(connection, "SELECT * FROM hooks ORDER BY hook_id", [], |row| {
        let run = Option::zip(row.get("treatment")?, row.get("replicate")?);
        let run = run.map(|(treatment, replicate)| RunKey { treatment, replicate });
        Ok(load!(row, HookRecord {
            session, step, agent, command, started, elapsed_ns, ended, succeeded, output; run
        }))
    })
}
