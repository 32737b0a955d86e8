//! Agents on this host: children of the controller.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Socket;
use std::path::PathBuf;
use std::process::Stdio;

use tokio::net::UnixStream;
use tokio::process::Command;

use super::{LastLines, LaunchError, Started};

/// How agents on this host are started.
#[derive(Debug)]
pub struct LocalConfig {
    /// The number of the first one, from 0.
    pub first: u32,
    pub processes: u32,
    /// The program and its arguments: `benchmaster agent --stdio`.
    pub program: PathBuf,
    /// See `program`.
    pub arguments: Vec<String>,
}

/// Names of local agents, by number from 1.
pub fn name(number: u32) -> String {
    format!("local-{number}")
}

/// Starts them all; `prepare` may change the command of each, given its number from 0 (to put it into a network
/// namespace, for example).
///
/// # Errors
/// When a process cannot be started. Those that were are ended then.
pub fn launch(
    config: &LocalConfig,
    prepare: &mut dyn FnMut(u32, &mut std::process::Command) -> Result<(), String>,
) -> Result<Vec<Started>, LaunchError> {
    let started =
        |number| start(config, number, prepare).map_err(|reason| LaunchError::new(name(number + 1), reason));
    (config.first..config.first + config.processes).map(started).collect()
}

/// One agent. Its standard input and output are one socket: one file descriptor for each agent here.
fn start(
    config: &LocalConfig,
    number: u32,
    prepare: &mut dyn FnMut(u32, &mut std::process::Command) -> Result<(), String>,
) -> Result<Started, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", config.program.display());
    let (ours, theirs) = Socket::pair().map_err(failed)?;
    ours.set_nonblocking(true).map_err(failed)?;
    let ours = UnixStream::from_std(ours).map_err(failed)?;
    let output = theirs.try_clone().map_err(failed)?;
    let mut command = std::process::Command::new(&config.program);
    command.args(&config.arguments);
    command.stdin(OwnedFd::from(theirs)).stdout(OwnedFd::from(output)).stderr(Stdio::piped());
    prepare(number, &mut command)?;
    let mut command = Command::from(command);
    // Signals of the terminal are the controller's matter, which instructs its agents.
    command.process_group(0).kill_on_drop(true);
    let mut process = command.spawn().map_err(failed)?;
    let errors = process.stderr.take().map(LastLines::follow).unwrap_or_default();
    let (name, stream) = (name(number + 1), Box::new(ours));
    Ok(Started { name, stream, process: Some(process), errors, keep: None, leads: None })
}
