//! Rows → the machines of a run.

use rusqlite::{Connection, Result};

use super::all;
use crate::record::{LabMachine, LabRecord};

pub(super) fn lab(connection: &Connection, run: i64) -> Result<Option<LabRecord>> {
    let rows = all(connection, "SELECT * FROM labs WHERE run_id = ?1", [run], |row| {
        let machines = "SELECT * FROM lab_machines WHERE run_id = ?1 ORDER BY ordinal";
        Ok(LabRecord {
            back_end: row.get("back_end")?,
            time: row.get("time")?,
            server: row.get("server")?,
            emulated: row.get("emulated")?,
            image: row.get("image")?,
            wake_ups: row.get("wake_ups")?,
            machines: all(connection, machines, [run], |row| {
                Ok(LabMachine {
                    name: row.get("name")?,
                    kernel: row.get("kernel")?,
                    kernel_hash: row.get("kernel_hash")?,
                    kernel_origin: row.get("kernel_origin")?,
                    memory: row.get("memory")?,
                    boot_ns: row.get("boot_ns")?,
                    console: row.get("console")?,
                })
            })?,
        })
    })?;
    Ok(rows.into_iter().next())
}
