//! What makes a command fail, and what CI shows of it.

use std::path::PathBuf;

use benchmaster_report::verdicts::Outcome;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

/// What gives the exit status 1. It means the same wherever a command accepts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// Nothing
    Never,
    /// A run that failed or is invalid, or an operation that failed; always included
    Invalid,
    /// A run that failed, is invalid or has a warning
    Warning,
    /// A change for the worse, or of unknown direction
    #[value(alias = "worse")]
    Regression,
    /// Any change
    Changed,
    /// Any change, and what could not be decided
    Undecided,
}

impl FailOn {
    pub(crate) fn includes(self, outcome: Outcome) -> bool {
        let change = matches!(outcome, Outcome::Better | Outcome::Worse | Outcome::Changed);
        match self {
            Self::Never => false,
            Self::Invalid => outcome == Outcome::Invalid,
            Self::Warning => matches!(outcome, Outcome::Invalid | Outcome::Warned),
            Self::Regression => matches!(outcome, Outcome::Worse | Outcome::Changed),
            Self::Changed => change,
            Self::Undecided => change || outcome == Outcome::Undecided,
        }
    }

    /// Whether it is about a comparison.
    pub(crate) fn compares(self) -> bool {
        matches!(self, Self::Regression | Self::Changed | Self::Undecided)
    }
}

/// Some of the words of [`FailOn`].
pub(super) fn fail_on(words: impl IntoIterator<Item = FailOn>) -> impl TypedValueParser<Value = FailOn> {
    let values = words.into_iter().filter_map(|word| word.to_possible_value());
    PossibleValuesParser::new(values).try_map(|word| FailOn::from_str(&word, false))
}

/// What CI shows.
#[derive(Debug, Default, Args)]
pub(crate) struct CiArgs {
    /// Write the verdicts as JUnit XML too
    #[arg(long, value_name = "FILE.xml")]
    pub(crate) junit: Option<PathBuf>,
    /// Annotate the change under test with regressions and warnings
    #[arg(long, value_enum, value_name = "SERVICE")]
    pub(crate) annotations: Option<Service>,
}

/// A service that shows annotations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Service {
    /// Print workflow commands (with --json on standard error)
    Github,
    /// Write gl-code-quality-report.json into the current directory
    Gitlab,
}
