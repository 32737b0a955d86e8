//! Job files of other tools as studies.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod filebench;
mod fio;
