//! The process that holds a lab.
//!
//! It is three processes in a row. The first makes namespaces of process ids and mounts and ends; the second is
//! process 1 of them, which only waits for others: when it ends, by whatever, the kernel ends everything in the lab;
//! the third, the *holder*, has the networks, the machines and a Unix socket on which it serves requests of other
//! processes. They share standard input (a socket to the process that brings the lab up), standard output (a locked
//! file: as long as it is locked the lab is up) and standard error (a log).

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::backend::BackEnd;
use crate::config::LabConfig;
use crate::kernel::Kernel;

mod boot;
mod cut;
mod hold;
mod networks;
pub(crate) mod socket;
mod stages;
pub(crate) mod state;
mod wake_ups;

pub use stages::{Stage, run};
pub(crate) use stages::{command, lifeline};

/// What a holder makes: everything is found and built already.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) config: LabConfig,
    pub(crate) back_end: BackEnd,
    /// What clients boot; `None`: there are no machines.
    pub(crate) client: Option<Bootable>,
    /// What the server machine boots, if there is one.
    pub(crate) server: Option<Bootable>,
    pub(crate) directory: PathBuf,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Bootable {
    pub(crate) kernel: Kernel,
    pub(crate) image: PathBuf,
    /// SHA-256 of the root, in hexadecimal digits.
    pub(crate) image_hash: String,
}

/// What the processes of a supervisor say on standard input to the one that brings the lab up.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum News {
    /// Process 1 of the lab has this id in the namespace of the first process.
    Process(u32),
    Tell(String),
    /// Requests are served from now on.
    Up,
    /// It could not be brought up, and has ended.
    Failed(Failure),
}

/// What the process that brings a lab up says to its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Word {
    /// Stay when this socket is closed.
    Stay,
}

/// Why a holder does not do what it is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Failure {
    #[error("the machine `{machine}` has ended: {cause}{}", tail(.lines))]
    Ended {
        machine: String,
        cause: crate::machine::ExitCause,
        /// The last lines of its console.
        lines: Vec<String>,
    },
    /// The machine does not answer.
    #[error("the machine `{machine}` runs and has not answered within {} s{}", .limit.as_secs(), tail(.lines))]
    Silent {
        machine: String,
        limit: std::time::Duration,
        /// The last lines of its console.
        lines: Vec<String>,
    },
    /// The machine refused what it was asked for.
    #[error("the machine `{machine}`: {reason}")]
    Refused { machine: String, reason: String },
    /// There is no such machine.
    #[error("the lab has no machine `{machine}`; it has {}", .there.join(", "))]
    NoMachine { machine: String, there: Vec<String> },
    /// The lab has no wire.
    #[error(
        "the lab's network is not emulated, so its links cannot be changed; bring it up with `--emulated`"
    )]
    NotEmulated,
    /// The server is no machine, or none whose configuration can be changed.
    #[error("the lab's server is `{0}`: only `knfsd` can be set up in another way")]
    NoKnfsd(String),
    /// The lab is not of a kind whose server's power can be cut.
    #[error("the power of the lab's server cannot be cut: {reason}")]
    NoPowerCut { reason: String },
    /// Something of the host: in words.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    pub(crate) fn other(what: &str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Other(format!("{what}: {error}"))
    }
}

fn tail(lines: &[String]) -> String {
    match lines {
        [] => "; its console is empty".into(),
        lines => format!("; the end of its console:\n{}", lines.join("\n")),
    }
}
