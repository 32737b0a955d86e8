//! The command as its users see it: the real binary, its text, its exit status, and what it leaves on disks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "tests")]

mod built_in;
mod crash;
mod inputs;
mod interrupt;
mod memory;
mod place;
mod results;
mod run;
mod serve;
mod space;
mod terminal;
mod usage;
