//! The lab: machines in user space with the real Linux NFS client and server, in real and in virtual time.
//!
//! * [`kernel`]: kernels to boot: packaged, built, given.
//! * [`packages`] and [`root`]: what guests have as their root file system, made of Debian's packages.
//! * [`backend`]: the kinds of what runs a machine, user-mode Linux or QEMU ([`qemu`]); [`choice`] of one.
//! * [`machine`]: a machine that runs, and how it ended.
//! * [`config`]: what a lab is to be; [`facts`]: what one is.
//! * [`lab`]: a lab that is up, by its [`supervisor`]; [`network`] connects its machines.
//! * [`cut`]: a power cut of the server machine.
//! * [`guest`]: process 1 of a guest, and the requests that it serves.
//! * [`virtual_time`]: server, clients and network in one kernel whose clock moves only when all of them wait.

pub mod backend;
pub mod choice;
pub mod config;
pub mod cut;
pub mod facts;
pub mod guest;
pub mod kernel;
pub mod lab;
pub mod machine;
pub mod network;
pub mod packages;
pub mod qemu;
pub mod root;
pub mod supervisor;
pub mod virtual_time;

mod cache;
mod exit;
mod file_error;
mod last_lines;
mod spawn;
mod uml;

pub use backend::BackEnd;
pub use config::{FileSystem, KnfsdConfig, LabConfig, ServerKind};
pub use cut::{CutDisk, CutFacts, PowerCut, Recent};
pub use facts::{LabFacts, LabStatus, MachineFacts, MachineProblem};
pub use file_error::FileError;
pub use kernel::{Kernel, KernelChoice, KernelOrigin};
pub use lab::{Lab, LabError};
pub use machine::{ExitCause, Interface, Machine, MachineSpec, MachineState};
