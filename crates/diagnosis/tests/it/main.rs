//! All integration tests of the diagnosis and of the validity checks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod papers;
mod validity;
