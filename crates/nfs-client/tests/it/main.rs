//! The client against the embedded server, against servers that a test scripts, and against nfs-ganesha.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "why a test is skipped")]

mod support;

mod crash;
mod ganesha;
mod gss;
mod hostile;
mod injection;
mod linux;
mod linux_tables;
mod mount;
mod mount_allocation;
mod mount_faults;
mod paging;
mod reactor;
mod rpc;
mod tls;
mod v2;
mod v3;
mod v3_allocation;
mod v3_injection;
mod v3_locks;
mod v3_portmap;
mod v3_scripted;
mod v4;
mod v4_allocation;
mod v4_faults;
mod v4_sessions;
mod v4_state;
mod v4_trunk;
