//! Programs of the guest's root, its services and its files below /proc and /sys, each with an error that names them.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::mount::MountFlags;

use super::arguments::PATH;
use crate::exit::Exit;

/// Time that a program which only tells the kernel something may take. They need milliseconds.
pub(super) const SHORT: Duration = Duration::from_secs(20);

/// Most of what a program said that goes into a message.
const SAID: usize = 600;

/// Why a step in a guest was not done.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The program cannot be started.
    #[error(
        "cannot start `{program}` in the guest: {source}; if it is missing, `benchmaster lab setup` builds a root that has it"
    )]
    Start { program: String, source: io::Error },
    #[error("`{command}` failed in the guest ({status}){}", said(.output))]
    Failed {
        /// The command with its arguments.
        command: String,
        status: ExitStatus,
        output: String,
    },
    /// The program did not end.
    #[error("`{command}` was stopped in the guest: it had not ended after {} s{}", .limit.as_secs(), said(.output))]
    Slow {
        /// The command with its arguments.
        command: String,
        limit: Duration,
        output: String,
    },
    /// A service that was started is not there.
    #[error("`{service}` was started in the guest but {sign} did not appear within {} s{}", .limit.as_secs(), said(.output))]
    Silent {
        service: String,
        /// What shows that it serves.
        sign: &'static str,
        /// The time it had, unless it ended before.
        limit: Duration,
        /// What it printed or logged, where that is known.
        output: String,
    },
    /// A file of the kernel.
    #[error("cannot {action} {path} in the guest: {source}")]
    File {
        /// Such as `write 15 to`.
        action: String,
        path: String,
        source: io::Error,
    },
}

fn said(output: &str) -> String {
    let output = output.trim();
    let from = output.char_indices().rev().nth(SAID).map_or(0, |(at, _)| at);
    match output.get(from..) {
        None | Some("") => String::new(),
        Some(end) => format!(": {end}"),
    }
}

/// Runs a program to its end; what it printed, both streams together.
///
/// # Errors
/// All but those of services and files.
pub(super) fn run(program: &str, arguments: &[&str], limit: Duration) -> Result<String, ToolError> {
    let start = |source| ToolError::Start { program: program.to_owned(), source };
    let command = || [&[program], arguments].concat().join(" ");
    // Not a pipe: a service that goes into the background would hold it open.
    let output = memfd_create("output", MemfdFlags::CLOEXEC).map_err(|error| start(error.into()))?;
    let mut output = File::from(output);
    let stream = || output.try_clone().map(Stdio::from).map_err(start);
    let mut child = Command::new(program)
        .args(arguments)
        // Process 1 has none.
        .env("PATH", PATH)
        .stdin(Stdio::null())
        .stdout(stream()?)
        .stderr(stream()?)
        .spawn()
        .map_err(start)?;
    let ended = Exit::of(child.id()).and_then(|exit| exit.within(limit)).map_err(start)?;
    if !ended {
        // It may have ended since; then there is nothing to kill.
        let _ = child.kill();
    }
    let status = child.wait().map_err(start)?;
    let mut text = Vec::new();
    output.rewind().and_then(|()| output.read_to_end(&mut text)).map_err(start)?;
    let text = String::from_utf8_lossy(&text).into_owned();
    match (ended, status.success()) {
        (true, true) => Ok(text),
        (true, false) => Err(ToolError::Failed { command: command(), status, output: text }),
        (false, _) => Err(ToolError::Slow { command: command(), limit, output: text }),
    }
}

/// Starts a service that goes into the background, unless `there` says that it is there already, and waits until it is.
/// `sign` is what `there` looks for.
///
/// # Errors
/// When it does not start or is not there in time.
pub(super) fn service(
    program: &str,
    arguments: &[&str],
    sign: &'static str,
    mut there: impl FnMut() -> bool,
) -> Result<(), ToolError> {
    if there() {
        return Ok(());
    }
    let output = run(program, arguments, SHORT)?;
    if !within(SHORT, &mut there) {
        return Err(ToolError::Silent { service: program.to_owned(), sign, limit: SHORT, output });
    }
    Ok(())
}

/// Waits until something is so, at most for `limit`; whether it is.
pub(super) fn within(limit: Duration, mut so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    let mut pause = Duration::from_millis(1);
    loop {
        if so() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Whether a process of this name lives. Names are cut by the kernel after 15 characters.
pub(super) fn runs(name: &str) -> bool {
    let Ok(processes) = fs::read_dir("/proc") else { return false };
    let mut names =
        processes.flatten().filter_map(|entry| fs::read_to_string(entry.path().join("comm")).ok());
    names.any(|found| found.trim_end() == name.get(..15).unwrap_or(name))
}

/// Writes to a file of the kernel in one call.
///
/// # Errors
/// [`ToolError::File`].
pub(super) fn write(path: impl AsRef<Path>, text: &str) -> Result<(), ToolError> {
    let path = path.as_ref();
    fs::write(path, text).map_err(|source| file(&format!("write {} to", text.trim_end()), path, source))
}

/// Reads a file of the kernel.
///
/// # Errors
/// [`ToolError::File`].
pub(super) fn read(path: impl AsRef<Path>) -> Result<String, ToolError> {
    let path = path.as_ref();
    fs::read_to_string(path).map_err(|source| file("read", path, source))
}

/// Makes a directory and those above it.
///
/// # Errors
/// [`ToolError::File`].
pub(super) fn directory(path: impl AsRef<Path>) -> Result<(), ToolError> {
    let path = path.as_ref();
    fs::create_dir_all(path).map_err(|source| file("make the directory", path, source))
}

/// Mounts a file system of the kernel's own, unless there is something already.
///
/// # Errors
/// [`ToolError`].
pub(super) fn mount(kind: &str, options: &CStr, at: &str) -> Result<(), ToolError> {
    if mounted(at)?.is_some() {
        return Ok(());
    }
    directory(at)?;
    let mounted = rustix::mount::mount(kind, at, kind, MountFlags::empty(), options);
    mounted.map_err(|error| file(&format!("mount {kind} at"), Path::new(at), error.into()))
}

/// The type of the file system that is mounted at a directory, if one is.
///
/// # Errors
/// When /proc is not there.
pub(super) fn mounted(at: &str) -> Result<Option<String>, ToolError> {
    let mounts = read("/proc/self/mounts")?;
    let mut lines = mounts.lines().map(|line| line.split(' '));
    Ok(lines
        .rfind(|line| line.clone().nth(1) == Some(at))
        .and_then(|mut line| line.nth(2).map(str::to_owned)))
}

fn file(action: &str, path: &Path, source: io::Error) -> ToolError {
    ToolError::File { action: action.to_owned(), path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_said_is_in_the_error() {
        assert_eq!(run("sh", &["-c", "echo out; echo err >&2"], SHORT).unwrap(), "out\nerr\n");
        let failed = run("sh", &["-c", "echo no such export >&2; exit 3"], SHORT).unwrap_err().to_string();
        assert!(failed.contains("exit status: 3") && failed.ends_with(": no such export"), "{failed}");
        let missing = run("/no/such/program", &[], SHORT).unwrap_err().to_string();
        assert!(missing.contains("/no/such/program") && missing.contains("lab setup"), "{missing}");
        let quiet = run("false", &[], SHORT).unwrap_err().to_string();
        assert!(quiet.ends_with(')'), "{quiet}");
    }

    #[test]
    fn a_program_that_does_not_end_is_stopped() {
        let slow = run("sh", &["-c", "echo begun; exec sleep 100"], Duration::from_millis(300)).unwrap_err();
        assert!(matches!(&slow, ToolError::Slow { output, .. } if output == "begun\n"), "{slow}");
    }

    #[test]
    fn a_service_in_the_background_does_not_hold_its_caller() {
        let dir = tempfile::tempdir().unwrap();
        let sign = dir.path().join("sign");
        let script = format!("(sleep 100 & echo $! >{0}.new; mv {0}.new {0})", sign.display());
        let there = || sign.exists();
        service("sh", &["-c", &script], "its file", there).unwrap();
        // The second time it is there.
        service("/no/such/program", &[], "its file", there).unwrap();
        let process = fs::read_to_string(&sign).unwrap();
        run("kill", &[process.trim()], SHORT).unwrap();
    }

    #[test]
    fn long_output_is_cut_from_its_front() {
        let text = said(&format!("{}end", "x".repeat(5000)));
        assert!(text.len() < 700 && text.ends_with("end"), "{}", text.len());
        assert_eq!(said(" \n"), "");
    }

    #[test]
    fn mounts_and_processes_are_found() {
        assert_eq!(mounted("/proc").unwrap().as_deref(), Some("proc"));
        assert_eq!(mounted("/proc/self/no").unwrap(), None);
        let own = fs::read_to_string("/proc/self/comm").unwrap();
        assert!(runs(own.trim_end()));
        assert!(!runs("no-such-process"));
    }
}
