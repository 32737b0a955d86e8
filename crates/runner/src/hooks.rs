//! Commands of the study that are run on this host.

use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use benchmaster_fleet::job::HookSpec;
use rustix::process::{Pid, Signal, kill_process_group};

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    /// Whether that is success.
    pub(super) succeeded: bool,
    /// `exit status 0`, `killed after 30s`, or why it could not be run.
    pub(super) ended: String,
    /// The end of what it printed.
    pub(super) output: String,
}

/// Most bytes of an output that are kept.
const KEPT: u64 = 16 << 10;
/// How often is looked whether a command has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Runs a command in a process group of its own, and waits for its end. `stop` ends it with everything that it started.
pub(super) fn run(spec: &HookSpec, stop: &AtomicBool) -> Ended {
    let failed = |ended: String| Ended { succeeded: false, ended, output: String::new() };
    let mut output = match tempfile() {
        Ok(output) => output,
        Err(error) => return failed(format!("its output cannot be kept: {error}")),
    };
    let mut child = match spawn(spec, &output) {
        Ok(child) => child,
        Err(error) => return failed(format!("could not be started: {error}")),
    };
    let began = Instant::now();
    let (succeeded, ended) = loop {
        match child.try_wait() {
            Ok(Some(status)) => {
                break (status.success(), status.to_string().replacen("exit status:", "exit status", 1));
            }
            Ok(None) if stop.load(Ordering::Relaxed) => {
                kill(&mut child);
                break (false, "killed because the study was stopped".to_owned());
            }
            Ok(None) if began.elapsed() < spec.timeout => std::thread::sleep(LOOK),
            Ok(None) => {
                kill(&mut child);
                break (false, format!("killed after {}", benchmaster_units::TimeSpan(spec.timeout)));
            }
            Err(error) => break (false, format!("was lost: {error}")),
        }
    };
    let output = end_of(&mut output).unwrap_or_else(|error| format!("(its output cannot be read: {error})"));
    Ended { succeeded, ended, output }
}

fn tempfile() -> io::Result<std::fs::File> {
    Ok(rustix::fs::memfd_create("hook", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

fn spawn(spec: &HookSpec, output: &std::fs::File) -> io::Result<Child> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(&spec.command).stdin(Stdio::null()).process_group(0);
    command.stdout(output.try_clone()?).stderr(output.try_clone()?);
    command.envs(spec.environment.iter().map(|(name, value)| (name, value)));
    command.spawn()
}

fn kill(child: &mut Child) {
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        // It may have ended just now.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

fn end_of(output: &mut std::fs::File) -> io::Result<String> {
    let length = output.metadata()?.len();
    output.seek(SeekFrom::Start(length.saturating_sub(KEPT)))?;
    let mut bytes = Vec::new();
    output.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(command: &str, timeout: Duration) -> HookSpec {
        HookSpec { command: command.into(), timeout, environment: vec![("WHAT".into(), "a thing".into())] }
    }

    #[test]
    fn the_end_and_the_output_are_told() {
        let stop = AtomicBool::new(false);
        let long = Duration::from_secs(60);
        let ended = run(&spec("echo \"$WHAT\"; echo no >&2; exit 3", long), &stop);
        assert_eq!((ended.succeeded, ended.ended.as_str()), (false, "exit status 3"));
        assert_eq!(ended.output, "a thing\nno");
        assert!(run(&spec("true", long), &stop).succeeded);
        let late = run(&spec("sleep 60 & wait", Duration::from_millis(20)), &stop);
        assert_eq!((late.succeeded, late.ended.as_str()), (false, "killed after 20ms"));
        stop.store(true, Ordering::Relaxed);
        assert!(!run(&spec("sleep 60", long), &stop).succeeded);
        let much = run(&spec("head -c 100000 /dev/zero | tr '\\0' x", long), &AtomicBool::new(false));
        assert_eq!(much.output.len() as u64, KEPT);
    }
}
