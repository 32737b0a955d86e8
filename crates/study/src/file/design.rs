//! The sections `[study]` and `[design]`: the experiment itself.

mod blocks;
mod check;
mod choice;
mod sections;

use super::section::Reader;
use crate::diagnostics::Diagnostic;

pub use self::blocks::{Blocks, ConfoundedBlocks, NamedBlock, ReplicateBlocks, TimeOfDay};
pub(crate) use self::check::{check, only_regular};
pub(crate) use self::choice::choose;
pub use self::choice::{DesignChoice, FractionBy, Layout};
pub use self::sections::{
    DesignKind, DesignSection, LevelWord, Replicates, RunOrder, SequentialReplicates, StudySection,
};

/// Reports an error at a key of `[design]`.
fn error(reader: &mut Reader<'_>, key: &str, message: impl Into<String>, help: impl Into<String>) {
    reader.error(&format!("design.{key}"), message, help);
}

/// Warns at a key of `[design]`.
fn warn(reader: &mut Reader<'_>, key: &str, message: impl Into<String>, help: impl Into<String>) {
    reader.report_at(&format!("design.{key}"), Diagnostic::warning(message).help(help));
}
