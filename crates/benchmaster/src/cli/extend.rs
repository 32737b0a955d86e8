//! The arguments of `plan --extend`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

use super::complete::results;

/// What is added to a study that has run.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("extension").args(["fold", "semifold", "resolve"]).requires("extend"))]
pub(crate) struct ExtendArgs {
    /// Results of a study that has run: what to run in addition, as --fold, --semifold or --resolve says
    #[arg(long, value_name = "DIR", requires = "extension", help_heading = "More runs of a study", add = results())]
    pub(crate) extend: Option<PathBuf>,
    /// All treatments again with the levels of these factors exchanged; `all` exchanges those of all factors, which makes
    /// main effects clear of interactions of two factors
    #[arg(long, value_name = "all|FACTOR,...", help_heading = "More runs of a study")]
    pub(crate) fold: Option<String>,
    /// Half of the treatments again with the levels of this factor exchanged
    #[arg(long, value_name = "FACTOR", help_heading = "More runs of a study")]
    pub(crate) semifold: Option<String>,
    /// The fewest treatments found that separate these effects from all other effects of one and two factors
    #[arg(long, value_name = "EFFECT,...", help_heading = "More runs of a study")]
    pub(crate) resolve: Option<String>,
    /// Add the runs to the study: `benchmaster run` with the study file does them
    #[arg(long, requires = "extend", help_heading = "More runs of a study")]
    pub(crate) apply: bool,
}
