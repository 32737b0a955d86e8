//! A proposed stage for people and programs.

use std::borrow::Cow;
use std::fmt::Write as _;

use benchmaster_record::results::{Replication, StageKind};
use serde::Serialize;

use super::extension::Proposal;
use crate::plan::design::{BlockInput, DesignDescription, DesignInput, TextForm};
use crate::plan::study::Plan;
use benchmaster_units::format::plural;

/// So many treatments are listed in full in the text form.
const LISTED: usize = 40;

/// A stage that can be added to a study.
#[derive(Debug, Clone, Serialize)]
pub struct ExtensionDescription {
    pub stage: u32,
    pub kind: StageKind,
    /// Why it is there.
    pub reason: String,
    /// How often each treatment is run.
    pub replicates: Replication,
    /// Runs, at least.
    pub runs_min: u64,
    /// Runs, at most.
    pub runs_max: u64,
    pub treatments: Vec<AddedTreatment>,
    /// Treatments that the study file excludes and that are therefore not run.
    pub left_out: u32,
    /// Whether it was added to the study.
    pub applied: bool,
    /// What all treatments together can tell, the stages not being held apart.
    pub design: DesignDescription,
}

/// A treatment of the stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AddedTreatment {
    pub index: u32,
    pub label: String,
    /// Whether the study does not have it yet.
    pub new: bool,
}

impl Plan {
    /// What is to be described of the study with its stages: all treatments that are run, one after the other.
    pub fn extended_input(&self) -> DesignInput<'static> {
        let (rows, _) = self.run_rows();
        DesignInput {
            kind: "explicit".to_owned(),
            rows: Cow::Owned(rows),
            fraction: None,
            before_exclusion: None,
            blocks: BlockInput::default(),
            ..self.design_input()
        }
    }
}

impl Proposal {
    /// The proposal for people. `plan` is that of the study with the stage, `design` what is said of its treatments.
    pub fn describe(&self, plan: &Plan, design: DesignDescription, applied: bool) -> ExtensionDescription {
        let treatments =
            self.stage.treatments.iter().filter_map(|&index| plan.study.treatments.get(index as usize));
        let treatments: Vec<_> = treatments
            .map(|treatment| AddedTreatment {
                index: treatment.index,
                label: treatment.label.clone(),
                new: treatment.stage == self.stage.number,
            })
            .collect();
        let (least, most) = match self.stage.replicates {
            Replication::Fixed(n) => (n, n),
            Replication::Sequential { min, max, .. } => (min, max),
        };
        let runs = |replicates: u32| u64::from(replicates) * treatments.len() as u64;
        ExtensionDescription {
            stage: self.stage.number,
            kind: self.stage.kind,
            reason: self.stage.reason.clone(),
            replicates: self.stage.replicates,
            runs_min: runs(least),
            runs_max: runs(most),
            left_out: self.left_out,
            applied,
            design,
            treatments,
        }
    }
}

impl ExtensionDescription {
    /// The description as text. `directory` is that of the results, as the user wrote it.
    pub fn render(&self, directory: &str, form: TextForm) -> String {
        let mut out = String::new();
        let runs = if self.runs_min == self.runs_max {
            plural(self.runs_min as usize, "run")
        } else {
            format!("{} to {} runs", self.runs_min, self.runs_max)
        };
        // Writing to a string cannot fail.
        let _ = writeln!(out, "stage {} ({}): {}", self.stage, self.kind.name(), self.reason);
        let _ = writeln!(out, "{}, {runs}", plural(self.treatments.len(), "treatment"));
        if self.left_out > 0 {
            let _ = writeln!(out, "{} more are excluded by the study file and not run", self.left_out);
        }
        let shown = if form.all { usize::MAX } else { LISTED };
        for treatment in self.treatments.iter().take(shown) {
            let again = if treatment.new { "" } else { " (again)" };
            let _ = writeln!(out, "  {:>3}  {}{again}", treatment.index + 1, treatment.label);
        }
        if self.treatments.len() > shown {
            let _ = writeln!(out, "  … and {} more", self.treatments.len() - shown);
        }
        let _ = writeln!(
            out,
            "\nThe stage is a block: differences between then and now do not bias the effects."
        );
        let _ = writeln!(out, "\nAll treatments together:\n\n{}", self.design.render(form).trim_end());
        let _ = if self.applied {
            writeln!(
                out,
                "\nThe stage is part of the study in {directory}: `benchmaster run` with its file runs it."
            )
        } else {
            writeln!(out, "\nNothing has been changed; `--apply` adds the stage to {directory}.")
        };
        out
    }
}
