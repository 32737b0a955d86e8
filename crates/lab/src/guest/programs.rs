//! Programs in a guest: with a connection as their standard input and output, or run to their end.

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::protocol::answer;
use super::{Command, Output};

/// Makes a connection standard input and output of a program, and waits for its end.
pub(super) fn stream(stream: &TcpStream, argv: &[String]) {
    let prepared = prepare(argv).and_then(|command| {
        let duplicate = || stream.as_fd().try_clone_to_owned().map_err(|error| error.to_string());
        Ok((command, duplicate()?, duplicate()?))
    });
    let (mut command, input, output): (std::process::Command, OwnedFd, OwnedFd) = match prepared {
        Ok(prepared) => prepared,
        Err(reason) => return answer(stream, Err::<(), _>(reason)),
    };
    // Before the program can print: the first message is ours.
    answer(stream, Ok(()));
    match command.stdin(input).stdout(output).process_group(0).spawn() {
        Ok(mut child) => {
            drop(command);
            let _ = child.wait();
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "benchmaster: cannot start {}: {error}", argv.join(" "));
        }
    }
    // Children of the program may hold it open.
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

/// Runs a program to its end.
pub(super) fn run(asked: &Command) -> Result<Output, String> {
    let mut command = prepare(&asked.argv)?;
    command.envs(asked.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child =
        command.spawn().map_err(|error| format!("cannot start {}: {error}", asked.argv.join(" ")))?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        let text = asked.input.as_bytes();
        scope.spawn(move || input.map(|mut input| input.write_all(text)));
        let output = scope.spawn(move || everything(output));
        let errors = scope.spawn(move || everything(errors));
        let status = within(&mut child, asked.limit);
        // What it has started holds its output open, and is of no use without it.
        end_group(&child);
        let (stdout, mut stderr) = (output.join().unwrap_or_default(), errors.join().unwrap_or_default());
        let status = match status.map_err(|error| error.to_string())? {
            Some(status) => status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default()),
            None => {
                stderr += &format!("\nit was killed, as it took longer than {:?}", asked.limit);
                124
            }
        };
        Ok(Output { status, stdout, stderr })
    })
}

fn everything(from: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut from) = from {
        // What was read until an error is what there is.
        let _ = from.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits for the end; `None`: it took too long.
fn within(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            end_group(child);
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn end_group(child: &Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may be empty.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// A command for a program that is there.
pub(super) fn prepare(argv: &[String]) -> Result<std::process::Command, String> {
    let Some((program, arguments)) = argv.split_first() else { return Err("no program was named".into()) };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let file = find(program, &path).ok_or_else(|| format!("program `{program}` not found in the guest"))?;
    let mut command = std::process::Command::new(file);
    command.arg0(program).args(arguments).current_dir("/");
    Ok(command)
}

/// The file of a program: by its path, or by the directories in which the shell looks.
fn find(program: &str, path: &std::ffi::OsStr) -> Option<PathBuf> {
    let executable = |file: &Path| {
        fs::metadata(file).is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        Some(PathBuf::from(program)).filter(|file| executable(file))
    } else {
        std::env::split_paths(path).map(|place| place.join(program)).find(|file| executable(file))
    }
}
