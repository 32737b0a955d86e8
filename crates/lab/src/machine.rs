//! What runs machines, a machine that runs, and how it ended.

use std::fmt;
use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use benchmaster_netem::namespace::MacAddress;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use serde::{Deserialize, Serialize};

use crate::backend::{BackEnd, Unavailable};
use crate::kernel::{Architecture, Kernel};
use crate::spawn::spawn;

/// What a machine is to be.
///
/// Its process 1 finds in its environment, from the kernel's command line: `lab_name` (the host name) and what
/// [`MachineSpec::arguments`] says. /proc, /sys and /dev are mounted, and with user-mode Linux `/host`.
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
    /// The two files of the log of the first disk, if one is to be kept ([`crate::cut`]); with user-mode Linux only.
    pub disk_log: Option<[PathBuf; 2]>,
    /// A directory of the host that machines of user-mode Linux see as `/host`; those of QEMU have none.
    pub share: PathBuf,
    /// Further words of the kernel's command line, `NAME=VALUE`; those that the kernel does not know are for process 1.
    pub arguments: Vec<(String, String)>,
    /// The file that its console goes to.
    pub console: PathBuf,
    /// Whether what is in that file stays in front, as of the machine before its power was cut; else it is emptied.
    pub again: bool,
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
    pub(crate) fn check_kernel(&self, back_end: BackEnd) -> Result<(), MachineError> {
        let is = self.kernel.architecture;
        match back_end.architecture() {
            Some(boots) if is == boots => Ok(()),
            Some(boots) => {
                Err(MachineError::WrongKernel { kernel: self.kernel.file.clone(), is, back_end, boots })
            }
            None => Err(Unavailable { back_end, reason: "it boots no kernels".into() }.into()),
        }
    }

    /// Starts its process, whose output is the console.
    pub(crate) fn spawn(&self, mut command: Command) -> Result<Machine, MachineError> {
        let failed = |what: &Path| self.failed(what.display().to_string());
        let mut console = File::options();
        console.append(true).create(true);
        let console = console.open(&self.console).map_err(failed(&self.console))?;
        if !self.again {
            console.set_len(0).map_err(failed(&self.console))?;
        }
        let output = console.try_clone().map_err(failed(&self.console))?;
        command.stdin(Stdio::null()).stdout(output).stderr(console);
        let program = PathBuf::from(command.get_program());
        let child = spawn(command).map_err(failed(&program))?;
        Ok(Machine::new(child, Some(self.console.clone())))
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

    /// Words of the kernel's command line that are for process 1.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        let name = std::iter::once(format!("lab_name={}", self.name));
        name.chain(self.arguments.iter().map(|(name, value)| format!("{name}={value}")))
    }
}

/// A machine that was started. It is killed when this is dropped.
#[derive(Debug)]
pub struct Machine {
    child: Child,
    /// `None`: it is a process that stands for a machine.
    console: Option<PathBuf>,
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
    pub(crate) fn new(child: Child, console: Option<PathBuf>) -> Self {
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
            let console = self.console.as_ref().map(|console| fs::read(console).unwrap_or_default());
            self.ended = Some(cause(status, console.as_deref().map(String::from_utf8_lossy).as_deref()));
        }
        self.ended.clone().map_or(MachineState::Running, MachineState::Ended)
    }

    /// Ends it at once, as pulling the plug does.
    pub fn kill(&mut self) {
        if self.state() == MachineState::Running {
            // Its process leads a group, in which are those that play the machine's processes. It may have ended just now.
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
    }
}

impl Machine {
    /// Ends it at once and waits until nothing of it is left that could still write to its disks.
    ///
    /// # Errors
    /// When some process of it does not end, as one that waits for a failing disk of the host.
    pub(crate) fn pull_the_plug(&mut self) -> io::Result<()> {
        const ENOUGH: Duration = Duration::from_secs(20);
        let group = Pid::from_child(&self.child);
        self.kill();
        self.child.wait()?;
        let start = Instant::now();
        while test_kill_process_group(group) != Err(rustix::io::Errno::SRCH) {
            if start.elapsed() > ENOUGH {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "its processes do not end"));
            }
            thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.kill();
        let _ = self.child.wait();
    }
}

/// How a machine ended, by its process and its console, or a process that stands for one.
fn cause(status: ExitStatus, console: Option<&str>) -> ExitCause {
    const PANIC: &str = "Kernel panic - not syncing: ";
    if let Some((_, rest)) = console.and_then(|console| console.split_once(PANIC)) {
        return ExitCause::Panicked { message: rest.lines().next().unwrap_or_default().trim().into() };
    }
    match (status.signal(), status.code(), console) {
        (Some(signal), ..) => ExitCause::Signalled(signal),
        // QEMU is configured to end then, and user-mode Linux ends without starting again.
        (None, Some(0), Some(console)) if console.contains("reboot: Restarting system") => {
            ExitCause::Restarted
        }
        (None, Some(0), Some(_)) => ExitCause::PoweredOff,
        (None, code, _) => ExitCause::Exited(code.unwrap_or_default()),
    }
}
