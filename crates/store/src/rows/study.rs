//! The study and its plan.

use benchmaster_record::results::{
    FactorRecord, Replication, StageRecord, StudyRecord, TreatmentRecord, WorkloadRecord,
};
use rusqlite::{Connection, Result, Row, Transaction};

use super::cell::{Cell, Columns, Json, NewRow, damaged};
use super::{Inserted, RowError, all, map};

columns! {
    WorkloadRecord { name, use_name }
}

impl Columns for Replication {
    fn store(&self, row: NewRow) -> NewRow {
        let (min, max, width) = match *self {
            Self::Fixed(n) => (n, n, None),
            Self::Sequential { min, max, relative_half_width } => (min, max, Some(relative_half_width)),
        };
        row.set("replicates_min", &min).set("replicates_max", &max).set("relative_half_width", &width)
    }

    fn load(row: &Row<'_>) -> Result<Self> {
        let (min, max) = (row.get("replicates_min")?, row.get("replicates_max")?);
        Ok(match row.get("relative_half_width")? {
            None => Self::Fixed(max),
            Some(relative_half_width) => Self::Sequential { min, max, relative_half_width },
        })
    }
}

pub(crate) fn insert_study(transaction: &Transaction<'_>, study: &StudyRecord) -> Inserted {
    check(study)?;
    let row = store!(NewRow::default(), study, {
        id, name, description, text, generator, design, order = "run_order", confidence, primary_response, version
    });
    row.set("seed", &study.seed.to_string())
        .with(&study.replicates)
        .set("design_details", &Json(study.design_details.clone()))
        .insert(transaction, "studies")?;
    for (number, record) in (0u32..).zip(&study.factors) {
        insert_factor(transaction, number, record)?;
    }
    for record in &study.treatments {
        insert_treatment(transaction, record)?;
    }
    for (ordinal, workload) in (0u32..).zip(&study.workloads) {
        NewRow::default().set("ordinal", &ordinal).with(workload).insert(transaction, "workloads")?;
    }
    for record in &study.stages {
        insert_only_stage(transaction, record)?;
    }
    Ok(())
}

fn insert_factor(transaction: &Transaction<'_>, number: u32, factor: &FactorRecord) -> Inserted {
    NewRow::default().set("factor", &number).set("name", &factor.name).insert(transaction, "factors")?;
    for (level, (name, settings)) in (0u32..).zip(factor.levels.iter().zip(&factor.settings)) {
        let value = factor.values.as_ref().and_then(|values| values.get(level as usize)).copied();
        let key = || NewRow::default().set("factor", &number).set("level", &level);
        key().set("name", name).set("value", &value).insert(transaction, "levels")?;
        for (parameter, value) in settings {
            key().set("parameter", parameter).set("value", value).insert(transaction, "settings")?;
        }
    }
    Ok(())
}

fn insert_treatment(transaction: &Transaction<'_>, treatment: &TreatmentRecord) -> Inserted {
    store!(NewRow::default(), treatment, { index = "treatment", label, stage, block, whole_plot, centre })
        .insert(transaction, "treatments")?;
    for (factor, level) in (0u32..).zip(&treatment.levels) {
        NewRow::default()
            .set("treatment", &treatment.index)
            .set("factor", &factor)
            .set("level", level)
            .insert(transaction, "treatment_levels")?;
    }
    Ok(())
}

fn insert_only_stage(transaction: &Transaction<'_>, stage: &StageRecord) -> Inserted {
    store!(NewRow::default(), stage, { number = "stage", kind, reason, made })
        .with(&stage.replicates)
        .insert(transaction, "stages")?;
    for treatment in &stage.treatments {
        NewRow::default()
            .set("stage", &stage.number)
            .set("treatment", treatment)
            .insert(transaction, "stage_treatments")?;
    }
    Ok(())
}

/// Adds the last stage of `study` and the last `new` treatments, which the caller has appended to `study`.
pub(crate) fn insert_stage(transaction: &Transaction<'_>, study: &StudyRecord, new: usize) -> Inserted {
    check(study)?;
    let first = study.treatments.len().saturating_sub(new);
    for record in study.treatments.iter().skip(first) {
        insert_treatment(transaction, record)?;
    }
    study.stages.last().map_or(Ok(()), |added| insert_only_stage(transaction, added))
}

/// What the tables cannot express, and would thus come back as something else.
fn check(study: &StudyRecord) -> Inserted {
    let fault = |problem: String| Err(RowError::Record(problem));
    for factor in &study.factors {
        if factor.levels.len() != factor.settings.len() {
            return fault(format!("factor `{}` does not have settings for each level", factor.name));
        }
        let values = factor.values.as_deref();
        if values.is_some_and(|v| v.len() != factor.levels.len() || v.iter().any(|v| !v.is_finite())) {
            return fault(format!("factor `{}` does not have a value for each level", factor.name));
        }
    }
    for (index, treatment) in (0u32..).zip(&study.treatments) {
        if treatment.index != index {
            return fault(format!(
                "treatment `{}` is number {index}, not {}",
                treatment.label, treatment.index
            ));
        }
        let levels = treatment.levels.iter().zip(&study.factors);
        if treatment.levels.len() != study.factors.len()
            || levels.clone().any(|(&level, factor)| level as usize >= factor.levels.len())
        {
            return fault(format!("treatment `{}` does not have a level of each factor", treatment.label));
        }
    }
    for (number, stage) in (1u32..).zip(&study.stages) {
        let label = stage.kind.name();
        if stage.number != number {
            return fault(format!("the stage `{label}` is number {number}, not {}", stage.number));
        }
        let known = |treatment: &u32| {
            study.treatments.get(*treatment as usize).is_some_and(|treatment| treatment.stage <= number)
        };
        let ascending = stage.treatments.is_sorted_by(|a, b| a < b);
        if stage.treatments.is_empty() || !ascending || !stage.treatments.iter().all(known) {
            return fault(format!("stage {number} does not run treatments of the study, each once"));
        }
    }
    let stages = study.stages.len();
    if let Some(treatment) = study.treatments.iter().find(|treatment| treatment.stage as usize > stages) {
        return fault(format!(
            "treatment `{}` is of stage {}, which is not there",
            treatment.label, treatment.stage
        ));
    }
    let widths = std::iter::once(&study.replicates).chain(study.stages.iter().map(|stage| &stage.replicates));
    for replicates in widths {
        match replicates {
            Replication::Sequential { relative_half_width, .. } if !relative_half_width.is_finite() => {
                return fault(format!("the relative half width {relative_half_width} is no number"));
            }
            _ => {}
        }
    }
    Ok(())
}

pub(crate) fn load_study(connection: &Connection) -> Result<StudyRecord> {
    let factors = all(connection, "SELECT factor, name FROM factors ORDER BY factor", [], |row| {
        load_factor(connection, row.get(0)?, row.get(1)?)
    })?;
    let treatments = all(connection, "SELECT * FROM treatments ORDER BY treatment", [], |row| {
        let sql = "SELECT level FROM treatment_levels WHERE treatment = ?1 ORDER BY factor";
        let levels = all(connection, sql, [row.get::<_, u32>("treatment")?], |row| row.get(0))?;
        Ok(
            load!(row, TreatmentRecord { index = "treatment", label, block, whole_plot, stage, centre; levels }),
        )
    })?;
    let stages = all(connection, "SELECT * FROM stages ORDER BY stage", [], |row| {
        let sql = "SELECT treatment FROM stage_treatments WHERE stage = ?1 ORDER BY treatment";
        let treatments = all(connection, sql, [row.get::<_, u32>("stage")?], |row| row.get(0))?;
        let replicates = Columns::load(row)?;
        Ok(load!(row, StageRecord { number = "stage", kind, reason, made; treatments, replicates }))
    })?;
    let workloads = all(connection, "SELECT * FROM workloads ORDER BY ordinal", [], Columns::load)?;
    connection.query_row("SELECT * FROM studies", [], |row| {
        let seed: String = row.get("seed")?;
        let Json(design_details) = Cell::load(row, "design_details")?;
        Ok(load!(row, StudyRecord {
            id, name, description, text, generator, design, order = "run_order", confidence, primary_response, version;
            seed: seed.parse().map_err(|error| damaged("seed", error))?,
            design_details,
            replicates: Columns::load(row)?,
            factors,
            treatments,
            stages,
            workloads,
        }))
    })
}

fn load_factor(connection: &Connection, number: u32, name: String) -> Result<FactorRecord> {
    let sql = "SELECT level, name, value FROM levels WHERE factor = ?1 ORDER BY level";
    let rows: Vec<(u32, String, Option<f64>)> =
        all(connection, sql, [number], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let sql = "SELECT parameter, value FROM settings WHERE factor = ?1 AND level = ?2";
    let settings =
        rows.iter().map(|(level, ..)| map(connection, sql, [number, *level])).collect::<Result<Vec<_>>>()?;
    let values = rows.iter().map(|(.., value)| *value).collect();
    Ok(FactorRecord { name, levels: rows.into_iter().map(|(_, name, _)| name).collect(), settings, values })
}
