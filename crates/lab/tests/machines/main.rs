//! Machines of each back-end that works here: they boot, end in several ways, and keep the registers of their programs.
//!
//! In the machines this very program is `/benchmaster`, so `guest` is its other half.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, reason = "what the host reads on the console")]

mod guest;
mod host;
mod registers;

use std::process::ExitCode;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("guest") => guest::main(),
        _ => host::main(),
    }
}
