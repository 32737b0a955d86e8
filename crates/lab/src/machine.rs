//! What runs machines, a machine that runs, and how it ended.

use std::fmt;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus};

use benchmaster_netem::namespace::MacAddress;
use rustix::process::{Pid, Signal, kill_process_group};
use serde::{Deserialize, Serialize};

use crate::backend::{BackEnd, Unavailable};
use crate::kernel::{Architecture, Kernel};

/// What a machine is to be.
///
/// Its process 1 finds in its environment, from the kernel's command line: `lab_name` (the host name), `lab_interfaces` (such as
/// `vec0:10.77.1.1/16,vec1:10.78.1.1/16`, in the order of [`MachineSpec::interfaces`]) and what [`MachineSpec::arguments`] says.
/// /proc, /sys and /dev are mounted, and with user-mode Linux `/host`.
#[derive(Debug, Clone)]
pub struct MachineSpec {
    pub name: String,
    /// In bytes.
    pub memory: u64,
    pub kernel: Kernel,
    /// Its root: an initramfs of [`crate::root::image`].
    pub image: PathBuf,
    /// Its network interfaces: `data`, then `control`.
    pub interfaces: Vec<Interface>,
    /// Files that are its disks, in order.
    pub disks: Vec<PathBuf>,
    /// A directory of the host that machines of user-mode Linux see as `/host`; those of QEMU have none.
    pub share: PathBuf,
    /// Further words of the kernel's command line, `NAME=VALUE`; those that the kernel does not know are for process 1.
    pub arguments: Vec<(String, String)>,
    /// The file that its console goes to; it is emptied first.
    pub console: PathBuf,
}

/// A network interface of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The TAP device at its other end, in the namespace of the thread that starts the machine.
    pub tap: String,
    pub mac: MacAddress,
    pub address: Ipv4Addr,
    /// Length of the network's prefix, in bits.
    pub prefix: u8,
}

/// Why a machine could not be started.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// A kernel for another back-end.
    #[error("the kernel {} is {is}; the back-end {back_end} boots {boots}", kernel.display())]
    WrongKernel { kernel: PathBuf, is: Architecture, back_end: BackEnd, boots: Architecture },
    /// The program could not be started, or a file not be made.
    #[error("cannot start the machine `{machine}`: {what}: {source}")]
    Start {
        machine: String,
        what: String,
        /// What the kernel of the host said.
        source: io::Error,
    },
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
}

impl MachineSpec {
    pub(crate) fn check_kernel(&self, back_end: BackEnd, boots: Architecture) -> Result<(), MachineError> {
        match self.kernel.architecture {
            is if is == boots => Ok(()),
            is => Err(MachineError::WrongKernel { kernel: self.kernel.file.clone(), is, back_end, boots }),
        }
    }

    pub(crate) fn failed(&self, what: String) -> impl FnOnce(io::Error) -> MachineError + use<> {
        let machine = self.name.clone();
        move |source| MachineError::Start { machine, what, source }
    }

    /// A path as a word of the kernel's command line, or as an option of a mount.
    pub(crate) fn word(&self, path: &Path) -> Result<String, MachineError> {
        let text = path.display().to_string();
        if text.chars().any(|c| c.is_whitespace() || c.is_control() || ",\"'=".contains(c)) {
            let reason = "a path with white space, quotes, commas or equals signs cannot be passed on a kernel's command line";
            Err(self.failed(text)(io::Error::new(io::ErrorKind::InvalidInput, reason)))
        } else {
            Ok(text)
        }
    }

    /// Words of the kernel's command line that are for process 1. `interface`: what the names of its interfaces begin with.
    pub(crate) fn words(&self, interface: &str) -> Vec<String> {
        let interfaces: Vec<String> = (self.interfaces.iter().enumerate())
            .map(|(number, own)| format!("{interface}{number}:{}/{}", own.address, own.prefix))
            .collect();
        let mut words = vec![format!("lab_name={}", self.name)];
        if !interfaces.is_empty() {
            words.push(format!("lab_interfaces={}", interfaces.join(",")));
        }
        words.extend(self.arguments.iter().map(|(name, value)| format!("{name}={value}")));
        words
    }
}

/// What runs machines.
pub trait Backend: fmt::Debug + Send + Sync {
    fn back_end(&self) -> BackEnd;

    /// Whether it works on this host.
    ///
    /// # Errors
    /// What is missing.
    fn available(&self) -> Result<(), Unavailable>;

    /// Starts a machine, in the network namespace of the calling thread. The machine ends with the calling thread.
    ///
    /// # Errors
    /// [`MachineError`]
    fn start(&self, machine: &MachineSpec) -> Result<Machine, MachineError>;
}

/// A machine that was started. It is killed when this is dropped.
#[derive(Debug)]
pub struct Machine {
    child: Child,
    console: PathBuf,
    ended: Option<ExitCause>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MachineState {
    Running,
    Ended(ExitCause),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExitCause {
    PoweredOff,
    /// It was started again from within, which ends a machine of a lab.
    Restarted,
    Panicked {
        /// What the kernel gave as the reason.
        message: String,
    },
    /// Its process was ended by a signal.
    Signalled(i32),
    /// Its process ended with this status.
    Exited(i32),
}

impl fmt::Display for ExitCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PoweredOff => f.write_str("switched itself off"),
            Self::Restarted => f.write_str("rebooted, which ends a machine of a lab"),
            Self::Panicked { message } => write!(f, "its kernel panicked: {message}"),
            Self::Signalled(signal) => write!(f, "its process was ended by signal {signal}"),
            Self::Exited(status) => write!(f, "its process ended with status {status}"),
        }
    }
}

impl Machine {
    pub(crate) fn new(child: Child, console: PathBuf) -> Self {
        Self { child, console, ended: None }
    }

    /// The id of the process that it is.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Whether it runs. Does not wait.
    pub fn state(&mut self) -> MachineState {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            let console = fs::read(&self.console).unwrap_or_default();
            self.ended = Some(cause(status, &String::from_utf8_lossy(&console)));
        }
        self.ended.clone().map_or(MachineState::Running, MachineState::Ended)
    }

    /// Ends it at once, as pulling the plug does.
    pub fn kill(self) {}
}

impl Drop for Machine {
    fn drop(&mut self) {
        if self.ended.is_none() {
            // Its process leads a group, in which are those that play the machine's processes. It may have ended just now.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
            let _ = self.child.wait();
        }
    }
}

/// How a machine ended, by its process and its console.
pub(crate) fn cause(status: ExitStatus, console: &str) -> ExitCause {
    const PANIC: &str = "Kernel panic - not syncing: ";
    if let Some((_, rest)) = console.split_once(PANIC) {
        return ExitCause::Panicked { message: rest.lines().next().unwrap_or_default().trim().into() };
    }
    match (status.signal(), status.code()) {
        (Some(signal), _) => ExitCause::Signalled(signal),
        // QEMU is configured to end then, and user-mode Linux ends without starting again.
        (None, Some(0)) if console.contains("reboot: Restarting system") => ExitCause::Restarted,
        (None, Some(0)) => ExitCause::PoweredOff,
        (None, code) => ExitCause::Exited(code.unwrap_or_default()),
    }
}
