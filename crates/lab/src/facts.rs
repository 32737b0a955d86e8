//! What a lab is, for results and for people.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backend::BackEnd;
use crate::config::LabConfig;
use crate::kernel::KernelOrigin;
use crate::machine::MachineState;

/// What a lab that is up consists of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabFacts {
    pub config: LabConfig,
    pub back_end: BackEnd,
    /// Its machines: the server first, if it is one.
    pub machines: Vec<MachineFacts>,
    /// SHA-256 of the image that the machines have as their root, in hexadecimal digits.
    pub image: String,
    /// The traffic against lost wake-ups: packets per second and interface; 0: none is needed.
    pub wake_ups: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// Such as `c1`.
    pub name: String,
    /// Such as `6.1.176`.
    pub kernel: String,
    /// SHA-256 of the kernel's file.
    pub kernel_hash: String,
    /// Where the kernel is from.
    pub kernel_origin: KernelOrigin,
    /// Its memory, in bytes.
    pub memory: u64,
    /// From its start until it served requests.
    pub boot_time: Duration,
    pub state: MachineState,
}

/// A lab of this user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabStatus {
    pub name: String,
    /// The supervisor's process id; `None`: it has ended, and only its directory is left.
    pub process: Option<u32>,
    /// Where its state and the consoles are.
    pub directory: PathBuf,
    /// What it consists of, if it answers.
    pub facts: Option<LabFacts>,
}

/// Something in a machine that a result must not hide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MachineProblem {
    pub machine: String,
    pub what: ProblemKind,
    /// The lines of its console that say so.
    pub lines: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemKind {
    Ended,
    /// It runs and does not answer.
    Hangs,
    /// Its kernel warned: `WARNING:`, `BUG:`, a task blocked for long, a server not responding.
    Warned,
}
