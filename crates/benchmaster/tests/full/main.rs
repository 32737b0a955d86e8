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
mod pathology;
mod studies;

use std::process::ExitCode;

use libtest_mimic::Arguments;

fn main() -> ExitCode {
    if let Some(ended) = pathology::all() {
        return ended;
    }
    let trials = studies::trials().into_iter().chain(pathology::quick()).chain(client::trials());
    let ignored = trials.map(|trial| trial.with_ignored_flag(true)).collect();
    libtest_mimic::run(&Arguments::from_args(), ignored).exit_code()
}
