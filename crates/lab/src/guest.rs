//! Process 1 of a guest, and the requests that it serves.
//!
//! Process 1 ([`process_1`]) mounts what programs need, names the machine, brings its interfaces up and starts the
//! control server, which serves requests ([`Request`]) on TCP [`PORT`] of the control address. The same server runs
//! without a machine, in a network namespace of the host, where a lab has no machines ([`serve`]).
//!
//! A connection carries one request and its answer ([`protocol`]).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::config::KnfsdConfig;

pub mod arguments;
pub mod client;
mod facts;
pub mod ganesha;
mod init;
pub mod knfsd;
mod programs;
pub mod protocol;
mod serve;
mod state;
mod terminal;
mod tools;

pub use facts::{BootStep, GuestFacts};
pub use init::{InitError, process_1};
pub use knfsd::WAKING_DISK;
pub use protocol::{AskError, ask};
pub use serve::serve;
pub use state::{STATE_DEVICE, STATE_DISK};
pub use tools::ToolError;

/// The TCP port of a guest's control address on which it serves requests.
pub const PORT: u16 = 7077;

/// What a guest is asked for. Answered with `()` unless said otherwise.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// The connection becomes standard input and output of the program, after the answer. What it prints as errors
    /// goes to the console.
    Stream {
        /// The program and its arguments.
        argv: Vec<String>,
    },
    /// Runs a program to its end; answered with an [`Output`].
    Run(Command),
    /// A program on a terminal, whose other side the connection becomes after the answer.
    Shell {
        /// The program and its arguments.
        argv: Vec<String>,
        /// Lines of the terminal.
        rows: u16,
        /// Columns of the terminal.
        columns: u16,
    },
    /// What the guest is; answered with [`GuestFacts`].
    Facts,
    /// Makes the kernel's server what is asked for: [`knfsd::start`]; answered with [`knfsd::Started`].
    StartServer(KnfsdConfig),
    /// Has the kernel's server serve again after a power cut: [`knfsd::recover`]; answered with [`knfsd::Recovered`].
    RecoverServer(KnfsdConfig),
    /// Ends the kernel's server: [`knfsd::stop`].
    StopServer,
    /// What the kernel's server says of itself: [`knfsd::statistics`].
    ServerStatistics,
    /// Starts nfs-ganesha: [`ganesha::start`].
    StartGanesha,
    /// Ends the guest, after the answer.
    PowerOff,
}

/// A program to run in a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables of its environment besides the guest's own.
    pub environment: Vec<(String, String)>,
    pub input: String,
    /// How long it may take. It is killed then, with all that it has started.
    pub limit: Duration,
}

impl Default for Command {
    fn default() -> Self {
        Self {
            argv: Vec::new(),
            environment: Vec::new(),
            input: String::new(),
            limit: Duration::from_secs(60),
        }
    }
}

impl Command {
    /// A program with its arguments, for a minute at most.
    pub fn new<S: Into<String>>(argv: impl IntoIterator<Item = S>) -> Self {
        Self { argv: argv.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Commands for the guest's shell, which ends with the first one that fails.
    pub fn shell(commands: &str) -> Self {
        Self { input: commands.into(), ..Self::new(["sh", "-eu"]) }
    }
}

/// What a program in a guest gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its exit status; 128 and the number for a signal; 124 when it took too long.
    pub status: i32,
    /// What it printed; of bytes that are no text their replacement.
    pub stdout: String,
    /// What it printed as errors.
    pub stderr: String,
}
