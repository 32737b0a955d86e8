//! What a study on virtual time found, exactly: written once, and compared with every time it runs again.
//!
//! On virtual time the same study finds the same, to the nanosecond and the last RPC. So what it found can be kept in a
//! file beside the code, and any difference is a change of the client, the server or the program: a protocol test that
//! needs no tolerance. Random identifiers, times of day and process ids are not in the file.

mod differ;
mod latency;
mod read;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use benchmaster_store::LoadError;
use benchmaster_trace::TraceError;
use serde::{Deserialize, Serialize};

pub use self::differ::{Change, Difference};

/// The version of the file's form.
const FORMAT: u32 = 1;

/// What stands at the top of the file.
const HEAD: &str = "\
# What a study on virtual time found: exact, and the same in every run. `benchmaster run STUDY --expect THIS-FILE` compares
# with it and tells every difference; with `--accept` it writes what it finds.
#
# operations: how often each was done, and how long it took (`9 x 4.01ms`: nine times); `round_trips` is the median divided
#     by the round trip of the network that the study asks for.
# rpcs: calls of each procedure over all clients, by mountstats: while files were set up, measured, and taken away.
# client: what the client's caches did while measured (mountstats; bytes and pages where the name says so).
# server: operations that the server did while measured (/proc/net/rpc/nfsd).
";

/// What a study on virtual time found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expectation {
    /// The version of the file's form.
    format: u32,
    /// The study's name.
    pub study: String,
    /// By label, and by workload. Replicates after the first have their number in the label.
    pub treatment: BTreeMap<String, BTreeMap<String, WorkloadFindings>>,
}

/// What was found of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkloadFindings {
    /// By `group.label` of the flow.
    pub operations: BTreeMap<String, OperationFindings>,
    /// Calls by phase and procedure.
    pub rpcs: BTreeMap<String, BTreeMap<String, u64>>,
    /// What caches did.
    pub client: BTreeMap<String, u64>,
    /// Operations of the server.
    pub server: BTreeMap<String, u64>,
}

/// What was found of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct OperationFindings {
    /// How often it was done without error.
    pub count: u64,
    /// Errors by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// The median in round trips of the network; absent where no delay is emulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub round_trips: Option<String>,
    /// Latencies, from the smallest on: how often, and how long. Of many different ones the quantiles.
    pub latency: Vec<String>,
}

/// Why an expectation could not be read, made or written.
#[derive(Debug, thiserror::Error)]
pub enum ExpectError {
    /// The file.
    #[error("{}: {source}{}", path.display(), hint(source))]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is none.
    #[error("{}: {problem}", path.display())]
    Text {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// Made by another version.
    #[error("{}: its format is {found}, and this program reads {FORMAT}; regenerate it with `--accept`", path.display())]
    Format {
        /// Which.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
    /// A run failed: what it found is not what is to be expected.
    #[error("treatment `{treatment}` failed: {reason}")]
    Failed {
        /// The treatment.
        treatment: String,
        /// Why.
        reason: String,
    },
    /// Not all runs were done.
    #[error("the study is incomplete ({done} runs): an expectation needs all runs")]
    Incomplete {
        /// Runs done.
        done: usize,
    },
    /// The results.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// A trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// Exact latencies were not recorded.
    #[error(
        "workload `{workload}` of treatment `{treatment}` has no trace, so that its latencies are not known exactly"
    )]
    NoTrace {
        /// The treatment.
        treatment: String,
        /// The workload.
        workload: String,
    },
    /// It cannot be written as TOML.
    #[error("the expectation cannot be written: {0}; internal error, please report it")]
    Write(#[from] toml::ser::Error),
}

fn hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::NotFound => "; write it with `--accept`",
        _ => "",
    }
}

impl Expectation {
    /// Reads a file.
    ///
    /// # Errors
    /// [`ExpectError::File`], [`ExpectError::Text`], [`ExpectError::Format`].
    pub fn load(path: &Path) -> Result<Self, ExpectError> {
        let text =
            fs::read_to_string(path).map_err(|source| ExpectError::File { path: path.into(), source })?;
        let problem =
            |error: toml::de::Error| ExpectError::Text { path: path.into(), problem: error.to_string() };
        // The form of another version may be another.
        let any: toml::Table = toml::from_str(&text).map_err(problem)?;
        match any.get("format").and_then(toml::Value::as_integer) {
            Some(format) if format == i64::from(FORMAT) => toml::from_str(&text).map_err(problem),
            Some(format) => Err(ExpectError::Format {
                path: path.into(),
                found: u32::try_from(format).unwrap_or(u32::MAX),
            }),
            None => {
                let problem = "it has no `format`: this is not an expectation".to_owned();
                Err(ExpectError::Text { path: path.into(), problem })
            }
        }
    }

    /// The text of its file: the same for equal findings.
    ///
    /// # Errors
    /// [`ExpectError::Write`]
    pub fn text(&self) -> Result<String, ExpectError> {
        Ok(format!("{HEAD}\n{}", toml::to_string(self)?))
    }

    /// Writes the file, whole or not at all.
    ///
    /// # Errors
    /// [`ExpectError::File`], [`ExpectError::Write`].
    pub fn save(&self, path: &Path) -> Result<(), ExpectError> {
        let text = self.text()?;
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        let done = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
        done.map_err(|source| {
            // It may not have come to be.
            let _ = fs::remove_file(&beside);
            ExpectError::File { path: path.into(), source }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn example() -> Expectation {
        let create = OperationFindings {
            count: 10,
            errors: BTreeMap::new(),
            round_trips: Some("2.005".into()),
            latency: vec!["9 x 4.010752ms".into(), "1 x 13.4s".into()],
        };
        let findings = WorkloadFindings {
            operations: BTreeMap::from([("create.create".into(), create)]),
            rpcs: BTreeMap::from([
                ("measure".into(), BTreeMap::from([("CLOSE".into(), 10), ("OPEN".into(), 10)])),
                ("set-up".into(), BTreeMap::new()),
            ]),
            client: BTreeMap::from([("vfs_open".into(), 10)]),
            server: BTreeMap::from([("OPEN".into(), 10)]),
        };
        Expectation {
            format: FORMAT,
            study: "virtual-create".into(),
            treatment: BTreeMap::from([(
                "delay=1ms version=4.1".into(),
                BTreeMap::from([("files".into(), findings)]),
            )]),
        }
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("expected.toml");
        example().save(&path).unwrap();
        assert_eq!(Expectation::load(&path).unwrap(), example());
        let text = fs::read_to_string(&path).unwrap();
        assert!(
            text.contains("[treatment.\"delay=1ms version=4.1\".files.operations.\"create.create\"]"),
            "{text}"
        );
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn other_files_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("expected.toml");
        let error = Expectation::load(&path).unwrap_err().to_string();
        assert!(error.contains("write it with `--accept`"), "{error}");
        for (text, expected) in [
            ("[study]\nname = \"x\"\n", "no `format`"),
            ("format = 99\n", "its format is 99"),
            ("format = 1\nstudy = 3\n", "invalid type"),
            ("format = 1\nstudy = \"x\"\n[treatment.t.w]\nrcps = {}\n", "rcps"),
        ] {
            fs::write(&path, text).unwrap();
            let error = Expectation::load(&path).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
