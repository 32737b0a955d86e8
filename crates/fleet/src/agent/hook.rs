//! A command of the study that is run once on a host: mount, make a file system, restart a server.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::collect::end_with_parent;
use crate::job::HookSpec;
use crate::protocol::HookOutcome;

/// Most bytes of the output that are kept: the last ones.
const KEPT: u64 = 1 << 20;

/// Time between two looks whether it has ended.
const LOOK: Duration = Duration::from_millis(5);

/// Runs a command; `None` when it was stopped. It is killed then, with everything it started, and so it is when its time is
/// over or this thread ends.
pub(super) fn run(hook: &HookSpec, stop: &AtomicBool) -> Option<HookOutcome> {
    // An unnamed file, so that a command that prints much, or leaves something in the background, blocks nothing.
    let output = rustix::fs::memfd_create("hook-output", rustix::fs::MemfdFlags::CLOEXEC).map(File::from);
    let began = output.map_err(io::Error::from).and_then(|output| Ok((start(hook, &output)?, output)));
    let (mut child, output) = match began {
        Ok(began) => began,
        Err(error) => {
            let ended = format!("could not be started: {error}");
            return Some(HookOutcome { ended, fine: false, output: Vec::new() });
        }
    };
    let started = Instant::now();
    let (ended, fine) = loop {
        match child.try_wait() {
            Ok(Some(status)) => break (how_ended(status), status.success()),
            Ok(None) if stop.load(Ordering::Relaxed) => {
                kill(&mut child);
                return None;
            }
            Ok(None) if started.elapsed() < hook.timeout => std::thread::sleep(LOOK),
            Ok(None) => {
                kill(&mut child);
                break (format!("was killed after {} s (`timeout`)", hook.timeout.as_secs_f64()), false);
            }
            Err(error) => break (format!("was lost: {error}"), false),
        }
    };
    Some(HookOutcome { ended, fine, output: printed(&output) })
}

fn start(hook: &HookSpec, output: &File) -> io::Result<Child> {
    let mut command = Command::new("sh");
    command.arg("-c").arg(&hook.command).envs(hook.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output.try_clone()?);
    command.current_dir("/").process_group(0);
    end_with_parent(&mut command);
    command.spawn()
}

fn how_ended(status: ExitStatus) -> String {
    format!("ended with {status}")
}

fn kill(child: &mut Child) {
    if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
        // It may have ended just now.
        let _ = kill_process_group(group, Signal::KILL);
    }
    let _ = child.wait();
}

fn printed(output: &File) -> Vec<u8> {
    let length = output.metadata().map_or(0, |metadata| metadata.len());
    let from = length.saturating_sub(KEPT);
    let mut bytes = vec![0; usize::try_from(length - from).unwrap_or(0)];
    // It may still be written to, so that it is at least that long.
    match output.read_exact_at(&mut bytes, from) {
        Ok(()) => bytes,
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(command: &str) -> HookSpec {
        let environment = vec![("WHERE".to_owned(), "here".to_owned())];
        HookSpec { command: command.into(), timeout: Duration::from_secs(60), environment }
    }

    #[test]
    fn a_command_says_how_it_went_and_what_it_printed() {
        let never = AtomicBool::new(false);
        let ran = run(&hook("echo $WHERE; echo bad >&2; exit 3"), &never).unwrap();
        assert_eq!(ran.output, b"here\nbad\n");
        assert_eq!((ran.ended.as_str(), ran.fine), ("ended with exit status: 3", false));
        assert!(run(&hook("sleep 1000 & true"), &never).unwrap().fine);
        let short = HookSpec { timeout: Duration::from_millis(20), ..hook("sleep 1000") };
        let ran = run(&short, &never).unwrap();
        assert!(ran.ended.contains("was killed after 0.02 s") && !ran.fine, "{ran:?}");
    }

    #[test]
    fn a_command_is_killed_with_all_it_started_when_it_is_stopped() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let stop = AtomicBool::new(false);
        let script = format!("sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display());
        let pid = std::thread::scope(|scope| {
            let running = scope.spawn(|| run(&hook(&script), &stop));
            while !file.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            stop.store(true, Ordering::Relaxed);
            assert_eq!(running.join().unwrap(), None);
            std::fs::read_to_string(&file).unwrap().trim().parse::<i32>().unwrap()
        });
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // No process of ours waits for a grandchild: it may stay a zombie until its new parent does.
        while !state().is_empty() && !state().contains(") Z ") {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
