//! Seeds, mutants, and scenarios that failed once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "tests")]

mod hostile;
mod kept;
mod mutants;
mod seeds;
