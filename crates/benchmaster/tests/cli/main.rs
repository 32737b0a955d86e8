//! The command as its users see it: the real binary, its text, its exit status, and what it leaves on disks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests"
)]

mod analyze_data;
mod analyze_rows;
mod built_in;
mod change;
mod check;
mod check_directory;
mod check_knfsd;
mod ci;
mod compare;
mod crash;
mod diagnose;
mod durability;
mod english;
mod explore;
mod explore_lab;
mod external;
mod fleet;
mod hosts;
mod import;
mod inputs;
mod interrupt;
mod kept;
mod kerberos;
mod killed;
mod lab_study;
#[path = "../support/limit.rs"]
mod limit;
mod line;
mod live;
mod managed;
mod memory;
mod place;
mod plan_design;
mod probe;
mod prometheus;
mod quiet;
mod replay;
mod report_pages;
mod results;
mod run;
mod serve;
#[path = "../../../fleet/tests/support/slurm.rs"]
mod slurm;
mod space;
#[path = "../../../fleet/tests/support/sshd.rs"]
mod sshd;
mod terminal;
mod tls;
mod usage;
mod watch;
mod wire;
mod wire_command;
