//! Workloads: what clients do to a file system, and what is recorded of it.
//!
//! * [`model`]: a workload in full: filesets, groups of workers, and the flow of operations each worker repeats.
//! * [`target`]: the file system under test, a directory or an export of an NFS server.
//! * [`program`]: a workload compiled for execution.
//! * `engine`: the file operations, by system calls, io_uring, or nothing.
//! * [`execute`]: carries a workload out in a [working directory](area) of a target, alone or
//!   [together](conduct) with other processes.
//! * [`recording`]: what one workload of one run leaves behind.

pub mod area;
pub mod cache;
pub mod calibrate;
pub mod client_cache;
pub mod conduct;
pub mod content;
pub mod execute;
pub mod files;
pub mod program;
pub mod random;
pub mod recording;
pub mod rendezvous;
pub mod replay;
pub mod target;
pub mod witness;

pub use benchmaster_record::model;

mod counts;
mod engine;
mod gate;
mod lane;
mod ledger;
mod nfs;
mod operation_error;
mod parallel;
mod priority;
mod recorder;
mod sizes;
mod task;
mod trace;
mod verify;
mod worker;

/// Whether this process can use io_uring, found by trying.
///
/// # Errors
/// Why the kernel refuses it.
pub fn try_io_uring() -> std::io::Result<()> {
    io_uring::IoUring::new(2).map(drop)
}
