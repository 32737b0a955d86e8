//! Workloads carried out on real files in temporary directories.
//!
//! Nothing here depends on how fast the machine is: limits are counts wherever possible, and times are only bounded from
//! the side that a slow machine cannot violate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bench;
mod built_in;
mod cache;
mod client_areas;
mod deterministic;
mod errors;
mod filesets;
mod flows;
mod meet;
mod nfs;
mod offsets;
mod operations;
mod papers;
mod peers;
mod phases;
mod replay;
mod sizes;
mod tracing;
mod trees;
mod uring;
mod verification;
mod wire;
mod witness;
