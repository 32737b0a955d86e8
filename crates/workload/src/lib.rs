//! Workloads: what clients do to a file system, and what is recorded of it.
//!
//! * [`units`]: sizes, durations and rates as users write them.
//! * [`builtin`]: ready workloads with parameters, as a study file names them by `use`.
//! * [`model`]: a workload in full: filesets, groups of workers, and the flow of operations each worker repeats.
//! * [`recording`]: what one workload of one run leaves behind.
#![deny(missing_docs)]

pub mod builtin;
pub mod model;
pub mod recording;
pub mod units;
