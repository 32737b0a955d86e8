//! One module per family of commands.

use std::io::{self, ErrorKind};
use std::path::Path;

use benchmaster_study::diagnostics::Diagnostics;
use benchmaster_study::file::{LoadError, StudyFile};
use benchmaster_study::plan::Plan;

use crate::cli::ChangeArgs;
use crate::output;

pub(crate) mod agent;
pub(crate) mod analyze_data;
pub(crate) mod built_in;
pub(crate) mod compare;
pub(crate) mod data;
pub(crate) mod diagnose;
pub(crate) mod extend;
pub(crate) mod history;
pub(crate) mod import;
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

/// How a command ended; see the exit status in the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Fine,
    ChecksFailed,
    WrongInput,
    Interrupted,
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) error: anyhow::Error,
    /// Text to print as it is instead of the error.
    pub(crate) rendered: Option<String>,
    /// What it means for what was done before.
    pub(crate) consequence: Option<String>,
}

impl Failure {
    pub(crate) fn new(status: Status, error: anyhow::Error) -> Self {
        Self { status, error, rendered: None, consequence: None }
    }

    pub(crate) fn wrong_input(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Status::WrongInput, error.into())
    }

    pub(crate) fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Status::ChecksFailed, error.into())
    }

    /// For something that could not be written where the user wanted it: a place that cannot be is wrong input.
    fn of_a_place_given(mut self) -> Self {
        let wrong = |kind| is_no_place(kind) || kind == ErrorKind::NotFound;
        let mut reasons = self.error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
        if reasons.any(|reason| wrong(reason.kind())) {
            self.status = Status::WrongInput;
        }
        self
    }

    fn mistakes(found: &Diagnostics) -> Self {
        let rendered = Some(found.render(output::color(&io::stderr())));
        Self { rendered, ..Self::wrong_input(anyhow::anyhow!("the study file has mistakes")) }
    }
}

/// Whether something else is in the way of a file or directory to be made.
pub(crate) fn is_no_place(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// Reads and plans a study file; prints its warnings.
pub(crate) fn load_plan(path: &Path, change: &ChangeArgs) -> Result<Plan> {
    let file = load_study(path, change)?;
    plan_of(&file)
}

/// Reads a study file, with the changes of the command line.
pub(crate) fn load_study(path: &Path, change: &ChangeArgs) -> Result<StudyFile> {
    let overrides = change.overrides().map_err(Failure::wrong_input)?;
    StudyFile::load_with(path, &overrides).map_err(|error| match error {
        LoadError::Invalid(found) => Failure::mistakes(&found),
        error => Failure::wrong_input(error),
    })
}

/// Plans a study.
pub(crate) fn plan_of(file: &StudyFile) -> Result<Plan> {
    let plan =
        Plan::from_study(file, env!("CARGO_PKG_VERSION")).map_err(|found| Failure::mistakes(&found))?;
    if !plan.warnings.is_empty() {
        output::note(plan.warnings.render(output::color(&io::stderr())).trim_end());
    }
    Ok(plan)
}

/// Parses the text of a study that this program made itself.
pub(crate) fn parse(name: &str, text: &str) -> Result<StudyFile> {
    StudyFile::parse(name, text).map_err(|found| Failure::mistakes(&found))
}
