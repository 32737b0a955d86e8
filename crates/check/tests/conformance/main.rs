//! The checks against servers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "figures of the full tier; why a test is skipped"
)]

mod directories;
mod embedded;
mod ganesha;
mod mutants;
// The one place that starts it.
#[allow(dead_code, reason = "tests of the client use more of it")]
#[path = "../../../nfs-client/tests/it/support/ganesha.rs"]
mod nfs_ganesha;
mod support;
