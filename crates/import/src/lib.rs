//! Job files of other tools as workloads of this one: text in, values out.
//!
//! * [`fio`]: fio's job files.
//! * [`mod@line`]: a study in one line, in fio's words.
//! * [`filebench`]: Filebench's workload files.
//! * [`strace`]: traces of system calls, to be replayed.
//! * [`pcap`]: captures of a network as such traces.
//! * [`study`]: what was imported, written as a study file for people to read and change.
//!
//! Nothing is dropped silently: every option of a job file that does not simply become part of a workload has a
//! [`Note`] with its line that says what became of it, and what is not an option at all is a [`Mistake`].

use std::fmt;

use benchmaster_record::model::Workload;
use serde::{Deserialize, Serialize};

mod fates;
pub mod filebench;
pub mod fio;
pub mod line;
pub mod pcap;
mod steps;
pub mod strace;
pub mod study;

pub use study::to_study;

/// A job file as workloads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Imported {
    /// Name for the study: that of the file, as far as its letters may be part of a name.
    pub name: String,
    /// What the file says about itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Seed of everything random, when the file has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// The directory that the file names as the place of its files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Keys of the study's section `[run]` that the file asks for, such as `cache = "fadvise"`.
    #[serde(skip_serializing_if = "toml::Table::is_empty")]
    pub run: toml::Table,
    /// The response that the file's own units ask for, where it is not that of a flow: operations per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
    /// The workloads by name, in the order in which they are done.
    pub workloads: Vec<(String, Workload)>,
    /// What became of the file's options, in the order of their lines.
    pub notes: Vec<Note>,
}

impl Imported {
    /// The notes about options that a workload does without, or does otherwise than the file says.
    pub fn unmet(&self) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(|note| matches!(note.kind, NoteKind::Approximated | NoteKind::Unsupported))
    }
}

/// What became of one option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The included file it is in; absent for the file itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its line, from 1.
    pub line: usize,
    /// The option as it is written.
    pub text: String,
    /// What became of it.
    pub kind: NoteKind,
    /// In words: what it became, or why it became nothing.
    pub message: String,
    /// The workload it belongs to; absent when it belongs to all of them, or to none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}, ")?;
        }
        write!(f, "line {}: `{}`: {}: {}", self.line, self.text, self.kind, self.message)
    }
}

/// What became of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoteKind {
    /// It is in the workload.
    Translated,
    /// The workload does something near to it.
    Approximated,
    /// The workload does without it.
    Unsupported,
    /// It has no bearing on what is done to files: output, process control, other kinds of storage.
    Irrelevant,
}

impl fmt::Display for NoteKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Translated => "translated",
            Self::Approximated => "approximated",
            Self::Unsupported => "not supported",
            Self::Irrelevant => "not needed",
        })
    }
}

/// Something in a job file that its own tool would not accept either, or that leaves nothing to import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}line {line}: `{text}`: {message}", .file.as_ref().map(|file| format!("{file}, ")).unwrap_or_default())]
pub struct Mistake {
    /// The included file it is in; absent for the file itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its line, from 1.
    pub line: usize,
    /// What is written there.
    pub text: String,
    /// What is wrong with it, and what would be right.
    pub message: String,
}

/// Why a job file cannot be imported: everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImportError {
    /// What is wrong, in the order of lines; at least one.
    pub mistakes: Vec<Mistake>,
}

impl std::error::Error for ImportError {}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, mistake) in self.mistakes.iter().enumerate() {
            write!(f, "{}{mistake}", if number == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// A text as far as it may be a name of a study, workload, fileset or group: letters, digits, `-` and `_`, at most 64.
///
/// Everything else becomes `-`; a text without any letter or digit becomes `fallback`.
pub fn name_of(text: &str, fallback: &str) -> String {
    let replaced: String =
        text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect();
    let mut name = String::new();
    for part in replaced.split('-').filter(|part| !part.is_empty()) {
        if !name.is_empty() {
            name.push('-');
        }
        name.push_str(part);
    }
    name.truncate(64);
    match name.trim_matches('-') {
        "" => fallback.to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_what_may_be_in_them() {
        assert_eq!(name_of("random-read 4k.fio", "job"), "random-read-4k-fio");
        assert_eq!(name_of("--[]", "job"), "job");
        assert_eq!(name_of(&"é".repeat(80), "job"), "job");
        assert_eq!(name_of(&"ab-".repeat(80), "job").len(), 64 - 1 + 1);
    }
}
