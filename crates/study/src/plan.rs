//! The plan of a study: its treatments, each checked, and what it will take to run them.

mod compatible;
mod describe;
mod estimate;

use benchmaster_design::{DesignError, GENERATOR, full, one_at_a_time};
use benchmaster_store::record::{StudyRecord, TreatmentRecord, WorkloadRecord};
use benchmaster_workload::model::Workload;

pub use self::compatible::{Difference, compatible};
pub use self::describe::{PlanDescription, PlannedFactor, PlannedLevel, PlannedRun, PlannedWorkload};
pub use self::estimate::Estimate;
use crate::diagnostics::{Diagnostic, Diagnostics};
use crate::file::{DesignKind, StudyFile};
use crate::settings::Settings;

/// A study that can be run: every treatment has been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What the results directory keeps of the study; its `id` is empty.
    pub study: StudyRecord,
    /// The treatments in standard order.
    pub treatments: Vec<PlannedTreatment>,
    /// What the study's author should know.
    pub warnings: Diagnostics,
}

/// A treatment with everything it sets.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTreatment {
    /// Its number, levels and label.
    pub record: TreatmentRecord,
    /// Its parameters.
    pub settings: Settings,
    /// Its workloads in full, in the order in which a run does them.
    pub workloads: Vec<(String, Workload)>,
}

impl Plan {
    /// Lists the treatments of a study and checks each of them. `version` is that of the program.
    ///
    /// # Errors
    /// All contradictions of all treatments, at their places in the file.
    pub fn from_study(file: &StudyFile, version: &str) -> Result<Self, Diagnostics> {
        let levels: Vec<_> = file.factors.iter().map(|factor| factor.levels.len() as u32).collect();
        let rows =
            rows(file.design.kind, &levels).map_err(|error| {
                let mut found = file.warnings.clone();
                found.push(Diagnostic::error(error.to_string()).help(
                    "`kind = \"one-at-a-time\"` in `[design]` has far fewer treatments than `\"full\"`",
                ));
                found
            })?;
        let read = file.treatments(&rows)?;
        let treatments: Vec<_> = rows
            .into_iter()
            .zip(read)
            .zip(0..)
            .map(|((levels, treatment), index)| PlannedTreatment {
                record: TreatmentRecord { index, label: file.label(&levels), levels },
                settings: treatment.settings,
                workloads: treatment.workloads,
            })
            .collect();
        let workloads = file
            .base
            .workloads
            .iter()
            .map(|(name, spec)| WorkloadRecord { name: name.clone(), use_name: spec.use_name().to_owned() });
        let order = benchmaster_design::Order::from(file.design.order);
        let study = StudyRecord {
            name: file.study.name.clone(),
            description: file.study.description.clone(),
            text: file.text.clone(),
            id: String::new(),
            seed: file.study.seed,
            generator: GENERATOR.to_owned(),
            design: file.design.kind.name().to_owned(),
            order: order.name().to_owned(),
            replicates: file.design.replicates.into(),
            confidence: file.design.confidence,
            primary_response: file.response.clone(),
            factors: file.factors.clone(),
            treatments: treatments.iter().map(|treatment| treatment.record.clone()).collect(),
            workloads: workloads.collect(),
            version: version.to_owned(),
        };
        Ok(Self { study, treatments, warnings: file.warnings.clone() })
    }
}

fn rows(kind: DesignKind, levels: &[u32]) -> Result<Vec<Vec<u32>>, DesignError> {
    match kind {
        DesignKind::Full => full(levels),
        DesignKind::OneAtATime => one_at_a_time(levels),
    }
}
