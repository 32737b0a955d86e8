//! Runs, with their responses, checks, events and retries.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use benchmaster_record::results::{
    Check, Event, Evidence, LabMachine, LabRecord, Response, RetryRecord, RunKey, RunRecord,
};
use rusqlite::{Connection, Result, Row, Transaction};

use super::cell::{Cell, Columns, Json, NewRow, damaged};
use super::recording::{insert_recording, load_recordings};
use super::{Inserted, Parts, RowError, all, insert_list, load_list, map, one, wire};

columns! {
    RunKey { treatment, replicate }
    Response { name = "response", value, unit }
    Event { time, kind, text }
    RetryRecord { started, elapsed_ns, agent, reason }
    LabMachine { name, kernel, kernel_hash, kernel_origin, memory, boot_ns, console }
}

pub(crate) fn insert_run(transaction: &Transaction<'_>, run: &RunRecord) -> Inserted {
    let row = store!(NewRow::default().with(&run.key), run, {
        position, session, started, elapsed_ns, failure, stage, block, whole_plot
    });
    let row = row.set("parameters", &Json(run.parameters.clone()));
    let id = row.insert(transaction, "runs")?;
    for (ordinal, record) in (0u32..).zip(&run.recordings) {
        insert_recording(transaction, NewRow::child("run_id", id, ordinal), record)?;
    }
    for (ordinal, response) in (0u32..).zip(&run.responses) {
        if response.value.is_nan() {
            return Err(RowError::Record(format!("the response `{}` is not a number", response.name)));
        }
        NewRow::child("run_id", id, ordinal).with(response).insert(transaction, "responses")?;
    }
    for (ordinal, check) in (0u32..).zip(&run.checks) {
        insert_check(transaction, id, ordinal, check)?;
    }
    insert_list(transaction, "events", ("run_id", id), &run.events)?;
    for (workload, path) in &run.traces {
        let row = NewRow::default().set("run_id", &id).set("workload", workload).set("path", path);
        row.insert(transaction, "traces")?;
    }
    insert_list(transaction, "retries", ("run_id", id), &run.retries)?;
    if let Some(lab) = &run.lab {
        insert_lab(transaction, id, lab)?;
    }
    wire::insert_service(transaction, id, run)
}

fn insert_check(transaction: &Transaction<'_>, run: i64, ordinal: u32, check: &Check) -> Inserted {
    store!(NewRow::child("run_id", run, ordinal), check, { kind, severity, workload, message })
        .insert(transaction, "checks")?;
    for (position, evidence) in (0u32..).zip(&check.evidence) {
        if evidence.value.is_nan() {
            return Err(RowError::Record(format!(
                "{} of the check `{}` is not a number",
                evidence.name, check.kind
            )));
        }
        let row = NewRow::child("run_id", run, ordinal).set("position", &position);
        store!(row, evidence, { name, value, unit }).insert(transaction, "check_evidence")?;
    }
    Ok(())
}

fn insert_lab(transaction: &Transaction<'_>, run: i64, lab: &LabRecord) -> Inserted {
    if lab.wake_ups.is_nan() {
        return Err(RowError::Record("the packets against lost wake-ups are not a number".into()));
    }
    let row = NewRow::default().set("run_id", &run);
    store!(row, lab, { back_end, time, server, emulated, image, wake_ups }).insert(transaction, "labs")?;
    insert_list(transaction, "lab_machines", ("run_id", run), &lab.machines)?;
    Ok(())
}

pub(super) fn load_runs(connection: &Connection) -> Result<Vec<RunRecord>> {
    all(connection, "SELECT * FROM runs ORDER BY position, run_id", [], |row| {
        run(connection, row, Parts::Small)
    })
}

/// One run with all its parts.
pub(crate) fn load_run(connection: &Connection, key: RunKey) -> Result<Option<RunRecord>> {
    let sql = "SELECT * FROM runs WHERE treatment = ?1 AND replicate = ?2";
    one(connection, sql, [key.treatment, key.replicate], |row| run(connection, row, Parts::All))
}

fn run(connection: &Connection, row: &Row<'_>, parts: Parts) -> Result<RunRecord> {
    let id: i64 = row.get("run_id")?;
    Ok(load!(row, RunRecord {
        position, stage, block, whole_plot, session, started, elapsed_ns, failure;
        key: key(row)?,
        parameters: Json::load(row, "parameters")?.0,
        recordings: load_recordings(connection, id, parts)?,
        responses: responses(connection, id)?,
        checks: load_checks(connection, id)?,
        events: load_list(connection, "events", ("run_id", id))?,
        traces: load_traces(connection, id)?,
        service: wire::load_service(connection, id)?,
        lab: load_lab(connection, id)?,
        server_use: wire::load_server_use(connection, id)?,
        retries: load_list(connection, "retries", ("run_id", id))?,
    }))
}

pub(crate) fn key(row: &Row<'_>) -> Result<RunKey> {
    Columns::load(row)
}

pub(crate) fn responses(connection: &Connection, run: i64) -> Result<Vec<Response>> {
    load_list(connection, "responses", ("run_id", run))
}

fn load_checks(connection: &Connection, run: i64) -> Result<Vec<Check>> {
    all(connection, "SELECT * FROM checks WHERE run_id = ?1 ORDER BY ordinal", [run], |row| {
        let sql = "SELECT * FROM check_evidence WHERE run_id = ?1 AND ordinal = ?2 ORDER BY position";
        let evidence = all(connection, sql, (run, row.get::<_, u32>("ordinal")?), |row| {
            Ok(load!(row, Evidence { name, value, unit; half_width: None, runs: 1 }))
        })?;
        Ok(load!(row, Check { kind, severity, workload, message; evidence }))
    })
}

fn load_lab(connection: &Connection, run: i64) -> Result<Option<LabRecord>> {
    one(connection, "SELECT * FROM labs WHERE run_id = ?1", [run], |row| {
        let machines = load_list(connection, "lab_machines", ("run_id", run))?;
        Ok(load!(row, LabRecord { back_end, time, server, emulated, image, wake_ups; machines }))
    })
}

/// Files of a run, which lie in the directory of the results.
fn load_traces(connection: &Connection, run: i64) -> Result<BTreeMap<String, String>> {
    let traces: BTreeMap<String, String> =
        map(connection, "SELECT workload, path FROM traces WHERE run_id = ?1", [run])?;
    let within = |path: &str| Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
    match traces.values().find(|path| !within(path)) {
        Some(path) => Err(damaged("path", format!("`{path}` leads out of the directory of the results"))),
        None => Ok(traces),
    }
}
