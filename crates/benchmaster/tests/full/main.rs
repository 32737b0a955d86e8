//! The full tier of the command's tests, which `cargo test -- --ignored` runs: every ready study, and conditions that are
//! planted for the diagnosis to find. Trials are made from the files that describe them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests"
)]

mod client;
#[path = "../support/limit.rs"]
mod limit;
mod papers;
mod pathology;
mod random;
mod studies;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use libtest_mimic::Arguments;

/// The program to test: the file that `BENCHMASTER_PROGRAM` names, such as a release build, or the one built with the tests.
fn program() -> PathBuf {
    std::env::var_os("BENCHMASTER_PROGRAM")
        .map_or_else(|| env!("CARGO_BIN_EXE_benchmaster").into(), PathBuf::from)
}

/// The file of a study of the repository.
fn study(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../studies/{name}.toml"))
}

/// Runs a study of the repository with changes (`--set`).
///
/// # Errors
/// What it printed, if it failed.
fn run(
    name: &str,
    results: &Path,
    scale: Option<&str>,
    changes: impl IntoIterator<Item = impl AsRef<OsStr>>,
    patience: Duration,
) -> Result<(), String> {
    let mut command = Command::new(program());
    command.arg("run").arg(study(name)).args(["-q", "-o"]).arg(results).stdin(Stdio::null());
    command.args(scale.iter().flat_map(|scale| ["--scale", scale]));
    for change in changes {
        command.arg("--set").arg(change);
    }
    let output = limit::output_within(command, patience).map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}

/// Puts figures between their marks in a document: `<!-- figures of COMMAND -->` and `<!-- end of figures -->`.
fn update(document: &Path, command: &str, figures: &str) {
    let text = std::fs::read_to_string(document).unwrap();
    let (mark, end) = (format!("<!-- figures of {command} -->\n"), "<!-- end of figures -->\n");
    let (before, rest) = text.split_once(&mark).expect("a mark before the figures");
    let (_, after) = rest.split_once(end).expect("a mark behind the figures");
    std::fs::write(document, format!("{before}{mark}{figures}{end}{after}")).unwrap();
}

fn main() -> ExitCode {
    if let Some(ended) = pathology::all().or_else(papers::all).or_else(random::all) {
        return ended;
    }
    let made = pathology::quick().into_iter().chain(client::trials()).chain(papers::trials());
    let made = made.chain([libtest_mimic::Trial::test("random_conditions_are_run", random::check)]);
    let trials = studies::trials().into_iter().chain(made);
    let ignored = trials.map(|trial| trial.with_ignored_flag(true)).collect();
    libtest_mimic::run(&Arguments::from_args(), ignored).exit_code()
}
