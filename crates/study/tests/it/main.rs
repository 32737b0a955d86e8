//! All integration tests of the study file, its plan and the checks of runs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests"
)]

mod design;
mod designs;
mod load;
mod mistakes;
mod mutations;
mod schedule;
mod schema;
mod studies;
