//! The machines of a run → rows.

use rusqlite::{Transaction, params};

use super::{RowError, Rows, execute};
use crate::record::LabRecord;

pub(super) fn lab(transaction: &Transaction<'_>, run: i64, lab: &LabRecord) -> Rows {
    if lab.wake_ups.is_nan() {
        return Err(RowError::Record("the packets against lost wake-ups are not a number".into()));
    }
    execute(
        transaction,
        "INSERT INTO labs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        params![run, lab.back_end, lab.time, lab.server, lab.emulated, lab.image, lab.wake_ups],
    )?;
    for (ordinal, m) in (0u32..).zip(&lab.machines) {
        let sql = "INSERT INTO lab_machines VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
        let values = params![
            run,
            ordinal,
            m.name,
            m.kernel,
            m.kernel_hash,
            m.kernel_origin,
            m.memory,
            m.boot_ns,
            m.console
        ];
        execute(transaction, sql, values)?;
    }
    Ok(())
}
