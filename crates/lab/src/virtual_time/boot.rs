//! The host's side of virtual time: one guest is booted, and lives as long as the controller in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::GUEST;
use super::first::Job;
use super::processor::Processor;
use crate::backend::BackEnd;
use crate::choice;
use crate::file_error::{FileError, at};
use crate::last_lines::last_lines;
use crate::machine::{ExitCause, MachineError, MachineSpec, MachineState};
use crate::uml;

/// Time between two looks at the guest.
const LOOK: Duration = Duration::from_millis(5);

/// Lines of the console that go into a message.
const LINES: usize = 12;

/// A guest on virtual time, and what is done in it.
#[derive(Debug)]
pub struct Boot<'a> {
    /// The root of the guest.
    pub image: &'a Path,
    /// An empty directory: what the guest sees as `/host`, with whatever the job needs.
    pub share: &'a Path,
    /// What is done, and with which kernel: a user-mode one with virtual time.
    pub job: &'a Job,
    /// How long it may take, on the host's clock.
    pub limit: Duration,
    /// Set from outside to end it.
    pub stop: &'a AtomicBool,
}

/// What a job on virtual time left in the share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// The exit status of the controller.
    pub status: i32,
    pub output: String,
    /// What it printed as errors and notes.
    pub messages: String,
}

/// Why a job was not done to its end.
#[derive(Debug, thiserror::Error)]
pub enum BootError {
    /// The kernel knows no virtual time.
    #[error(
        "the kernel {release} ({}) has no virtual time (`CONFIG_UML_TIME_TRAVEL_SUPPORT`): build one with \
         `benchmaster lab kernel build 6.12` and choose it with `lab.kernel = \"6.12\"`", file.display()
    )]
    NoVirtualTime { release: String, file: PathBuf },
    /// The guest was not started.
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    File(#[from] FileError),
    /// The guest ended before the controller.
    #[error("the guest on virtual time {cause} before the study was done{}", lines(console))]
    Ended {
        cause: ExitCause,
        /// The last lines of its console.
        console: Vec<String>,
    },
    /// Process 1 could not do the job.
    #[error("the guest on virtual time could not run the study: {0}")]
    Job(String),
    /// It took too long on the host's clock.
    #[error(
        "the guest on virtual time was ended after {} s on this host's clock: a program that waits without sleeping stops \
         virtual time{}", limit.as_secs(), lines(console)
    )]
    TooLong {
        limit: Duration,
        /// The last lines of its console.
        console: Vec<String>,
    },
    /// It was stopped from outside.
    #[error("interrupted: a study on virtual time is run whole or not at all")]
    Stopped,
}

fn lines(console: &[String]) -> String {
    match console {
        [] => String::new(),
        lines => format!("; its console:\n{}", lines.join("\n")),
    }
}

/// An empty directory for a guest's share: in memory, where this host has that. What the guest's disk flushes takes no time then.
///
/// # Errors
/// When no place can be written to.
pub fn share() -> io::Result<tempfile::TempDir> {
    tempfile::tempdir_in(uml::memory_directory(0)?)
}

/// Boots a guest, has the job done in it, and waits for its end.
///
/// # Errors
/// [`BootError`]. No guest is left.
pub fn boot(boot: &Boot<'_>) -> Result<Ended, BootError> {
    if !boot.job.kernel.virtual_time {
        let (release, file) = (boot.job.kernel.release.clone(), boot.job.kernel.file.clone());
        return Err(BootError::NoVirtualTime { release, file });
    }
    let file = |name: &str| boot.share.join(name);
    let job = file("job.json");
    let text = serde_json::to_vec(boot.job).map_err(|error| at(&job)(error.into()))?;
    fs::write(&job, text).map_err(at(&job))?;
    if let Some(size) = boot.job.disk {
        let disk = file(super::DISK);
        let length = size.saturating_mul(u64::from(super::LIVES) + 1);
        fs::File::create(&disk).and_then(|file| file.set_len(length)).map_err(at(&disk))?;
    }
    let console = file("console.log");
    let mut machine = MachineSpec {
        name: GUEST.into(),
        memory: boot.job.memory,
        kernel: boot.job.kernel.clone(),
        image: boot.image.to_owned(),
        interfaces: Vec::new(),
        disks: Vec::new(),
        disk_log: None,
        share: boot.share.to_owned(),
        arguments: vec![
            // What the kernel does not know becomes a variable of process 1.
            (super::VARIABLE.into(), "1".into()),
            // Clients would find out that the server is in the same kernel, and read and write its files themselves.
            ("nfs.localio_enabled".into(), "0".into()),
        ],
        console: console.clone(),
        again: false,
    };
    if boot.job.seed != 0 {
        // The guest's kernel stirs its command line into its random numbers.
        machine.arguments.push(("BENCHMASTER_SEED".into(), boot.job.seed.to_string()));
    }
    let processor = Processor::claim();
    let mut machine = choice::start(BackEnd::UmlVirtualTime, &machine)?;
    if let (Some(processor), Some(process)) = (&processor, Pid::from_raw(machine.process().cast_signed())) {
        processor.keep(process);
    }
    let last = || last_lines(&console, LINES);
    let began = Instant::now();
    let cause = loop {
        match machine.state() {
            MachineState::Ended(cause) => break cause,
            MachineState::Running if boot.stop.load(Ordering::Relaxed) => {
                return Err(BootError::Stopped);
            }
            MachineState::Running if began.elapsed() > boot.limit => {
                return Err(BootError::TooLong { limit: boot.limit, console: last() });
            }
            MachineState::Running => thread::sleep(LOOK),
        }
    };
    if let Ok(error) = fs::read_to_string(file("error")) {
        return Err(BootError::Job(error));
    }
    let read = |name: &str| {
        let path = file(name);
        fs::read_to_string(&path).map_err(at(&path))
    };
    let status = read("status").ok().and_then(|text| text.trim().parse().ok());
    let Some(status) = status else { return Err(BootError::Ended { cause, console: last() }) };
    Ok(Ended { status, output: read("output")?, messages: read("messages")? })
}
