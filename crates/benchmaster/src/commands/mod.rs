//! One module per family of commands.

use std::io;
use std::path::Path;

use benchmaster_study::diagnostics::Diagnostics;
use benchmaster_study::file::{LoadError, StudyFile};
use benchmaster_study::plan::Plan;

use crate::cli::ChangeArgs;
use crate::failure::{Failure, Result};
use crate::output;

pub(crate) mod agent;
pub(crate) mod analyze_data;
pub(crate) mod built_in;
pub(crate) mod certificates;
pub(crate) mod check;
pub(crate) mod ci;
pub(crate) mod compare;
pub(crate) mod data;
pub(crate) mod diagnose;
pub(crate) mod doctor;
pub(crate) mod explore;
pub(crate) mod extend;
pub(crate) mod fleet;
pub(crate) mod history;
pub(crate) mod import;
pub(crate) mod kept;
pub(crate) mod lab;
pub(crate) mod plan;
pub(crate) mod probe;
pub(crate) mod results;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod simulate;
pub(crate) mod virtual_time;
pub(crate) mod watch;
pub(crate) mod wire;
pub(crate) mod witness;

/// Reads and plans a study file.
pub(crate) fn load_plan(path: &Path, change: &ChangeArgs) -> Result<Plan> {
    plan_of(&load_study(path, change)?)
}

/// Reads a study file, with the changes of the command line.
pub(crate) fn load_study(path: &Path, change: &ChangeArgs) -> Result<StudyFile> {
    let overrides = change.overrides().map_err(Failure::wrong_input)?;
    StudyFile::load_with(path, &overrides).map_err(|error| match error {
        LoadError::Invalid(found) => mistakes(&found),
        error => Failure::wrong_input(error),
    })
}

/// Parses the text of a study that this program made itself, with the changes of the command line.
pub(crate) fn parse(name: &str, text: &str, change: &ChangeArgs) -> Result<StudyFile> {
    let overrides = change.overrides().map_err(Failure::wrong_input)?;
    StudyFile::parse_with(name, text, &overrides).map_err(|error| match error {
        LoadError::Invalid(found) => {
            Failure { rendered: Some(found.brief(false)), ..Failure::wrong("the study has mistakes") }
        }
        error => Failure::wrong_input(error),
    })
}

pub(crate) fn plan_of(file: &StudyFile) -> Result<Plan> {
    Plan::from_study(file, env!("CARGO_PKG_VERSION")).map_err(|found| mistakes(&found))
}

/// Prints the warnings of a study, with their places in its file if the user has one.
pub(crate) fn print_warnings(plan: &Plan, in_a_file: bool) {
    if !plan.warnings.is_empty() {
        output::note(plan.warnings.brief(in_a_file).trim_end());
    }
}

/// The failure of a study file with mistakes.
fn mistakes(found: &Diagnostics) -> Failure {
    let rendered = Some(found.render(output::color(&io::stderr())));
    Failure { rendered, ..Failure::wrong("the study file has mistakes") }
}
