//! Commands that run while a workload is measured (`perf record`, `tcpdump`, …), and what they print.

use std::io::{self, PipeReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use benchmaster_clock::monotonic_ns;
use benchmaster_record::recording::Collected;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::job::CollectSpec;

/// How long a command may take to end after SIGINT; then it is killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// Commands at work. Dropping it kills them.
#[derive(Debug)]
pub struct Collecting {
    running: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    spec: CollectSpec,
    start_ns: i64,
    /// Or why it could not be started.
    child: Result<Started, String>,
}

#[derive(Debug)]
struct Started {
    child: Child,
    reader: Option<JoinHandle<Printed>>,
}

#[derive(Debug, Default)]
struct Printed {
    kept: Vec<u8>,
    lost: u64,
    problem: Option<io::Error>,
}

impl Collecting {
    /// Starts the commands, each in a process group of its own.
    pub fn start(commands: impl IntoIterator<Item = CollectSpec>) -> Self {
        let start = |spec: CollectSpec| {
            let start_ns = monotonic_ns();
            let child = Started::new(&spec).map_err(|error| format!("could not be started: {error}"));
            Running { spec, start_ns, child }
        };
        Self { running: commands.into_iter().map(start).collect() }
    }

    /// The measured phase is over: asks all commands to end, and gives what they printed. Times are of this host's
    /// monotonic clock.
    pub fn finish(mut self, agent: &str) -> Vec<Collected> {
        let finished = self.running.iter_mut().flat_map(|running| running.child.as_mut());
        let early: Vec<Option<ExitStatus>> =
            finished.map(|started| started.child.try_wait().ok().flatten()).collect();
        for started in self.running.iter().flat_map(|running| &running.child) {
            started.signal(Signal::INT);
        }
        let mut early = early.into_iter();
        let deadline = Instant::now() + PATIENCE;
        let collected = self.running.drain(..).map(|running| {
            let early = if running.child.is_ok() { early.next().flatten() } else { None };
            running.finish(agent, early, deadline)
        });
        collected.collect()
    }
}

impl Drop for Collecting {
    fn drop(&mut self) {
        for started in self.running.iter_mut().flat_map(|running| &mut running.child) {
            started.signal(Signal::KILL);
            // It was killed: it ends.
            let _ = started.child.wait();
        }
    }
}

impl Running {
    fn finish(self, agent: &str, early: Option<ExitStatus>, deadline: Instant) -> Collected {
        let Self { spec, start_ns, child } = self;
        let (ended, printed) = match child {
            Ok(started) => started.finish(early, deadline),
            Err(problem) => (problem, Printed::default()),
        };
        let ended = match printed.problem {
            Some(error) => format!("{ended}; its output could not be read to the end: {error}"),
            None => ended,
        };
        Collected {
            name: spec.name,
            agent: agent.to_owned(),
            command: spec.command,
            ended,
            output: printed.kept,
            lost: printed.lost,
            start_ns,
            end_ns: monotonic_ns(),
        }
    }
}

impl Started {
    fn new(spec: &CollectSpec) -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        let mut command = Command::new("sh");
        command.arg("-c").arg(&spec.command).stdin(Stdio::null()).process_group(0);
        command.stdout(writer.try_clone()?).stderr(writer);
        end_with_parent(&mut command);
        let child = command.spawn()?;
        let limit = spec.limit;
        // The command holds the writing end of the pipe as well.
        drop(command);
        let reader = std::thread::Builder::new().name("collect".into()).spawn(move || read(reader, limit))?;
        Ok(Self { child, reader: Some(reader) })
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended already.
            let _ = kill_process_group(group, signal);
        }
    }

    fn finish(mut self, early: Option<ExitStatus>, deadline: Instant) -> (String, Printed) {
        let ended = match early {
            Some(status) => format!("{} before the phase did", how_ended(status)),
            None => self.wait(deadline),
        };
        // What it started in the background may hold its output open.
        self.signal(Signal::KILL);
        let printed = self.reader.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        (ended, printed)
    }

    fn wait(&mut self, deadline: Instant) -> String {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.signal() == Some(Signal::INT.as_raw()) => {
                    return "ended with the phase (SIGINT)".into();
                }
                Ok(Some(status)) => return how_ended(status),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                Ok(None) => {
                    self.signal(Signal::KILL);
                    // It was killed: it ends.
                    let _ = self.child.wait();
                    return format!("killed, as it did not end within {} s of SIGINT", PATIENCE.as_secs());
                }
                Err(error) => return format!("could not be waited for: {error}"),
            }
        }
    }
}

fn how_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with exit status {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

fn read(mut pipe: PipeReader, limit: u64) -> Printed {
    let mut printed = Printed::default();
    let mut buffer = [0; 16 << 10];
    loop {
        match pipe.read(&mut buffer) {
            Ok(0) => return printed,
            Ok(read) => {
                let room = limit.saturating_sub(printed.kept.len() as u64);
                let kept = read.min(usize::try_from(room).unwrap_or(usize::MAX));
                printed.kept.extend_from_slice(&buffer[..kept]);
                printed.lost += (read - kept) as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                printed.problem = Some(error);
                return printed;
            }
        }
    }
}

/// The child gets SIGKILL when the thread that starts it ends, however it does, and SIGINT reaches it: what a shell starts in
/// the background ignores that, and so would the child.
pub(crate) fn end_with_parent(command: &mut Command) {
    let set = || {
        // SAFETY: the default action is no function of this process.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(io::Error::from)
    };
    // SAFETY: the closure runs in the child between fork and exec and only makes two system calls, both safe in signal handlers;
    // it neither allocates nor takes locks.
    unsafe { command.pre_exec(set) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Side;

    fn spec(command: &str) -> CollectSpec {
        CollectSpec { name: "x".into(), command: command.into(), on: Side::Clients, limit: 1000 }
    }

    fn collect(command: &str, wait_for: &str) -> Collected {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("begun");
        let collecting = Collecting::start([spec(&format!("begun={}; {command}", file.display()))]);
        if !wait_for.is_empty() {
            while !file.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        collecting.finish("c1").remove(0)
    }

    #[test]
    fn commands_end_with_the_phase_and_what_they_print_is_kept() {
        let done = collect(
            "trap 'echo summary; exit 3' INT; echo out; echo err >&2; : > $begun; while :; do sleep 0.01; done",
            "begun",
        );
        assert_eq!((String::from_utf8_lossy(&done.output).as_ref(), done.lost), ("out\nerr\nsummary\n", 0));
        assert_eq!((done.ended.as_str(), done.agent.as_str()), ("ended with exit status 3", "c1"));
        assert!(done.end_ns > done.start_ns);
        let done = collect(": > $begun; exec sleep 1000", "begun");
        assert_eq!(done.ended, "ended with the phase (SIGINT)");
    }

    #[test]
    fn more_than_the_limit_is_counted() {
        let done = collect("head -c 5000 /dev/zero; : > $begun; exec sleep 1000", "begun");
        assert_eq!((done.output.len(), done.lost), (1000, 4000));
    }

    #[test]
    fn a_command_that_ends_early_says_how() {
        let collecting = Collecting::start([spec("echo no such counter; exit 7")]);
        if let Ok(started) = &collecting.running[0].child {
            let pid = Pid::from_raw(started.child.id().cast_signed()).unwrap();
            let options = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
            rustix::process::waitid(rustix::process::WaitId::Pid(pid), options).unwrap();
        }
        let done = collecting.finish("c1").remove(0);
        assert_eq!(done.ended, "ended with exit status 7 before the phase did");
        assert_eq!(done.output, b"no such counter\n");
    }

    #[test]
    fn a_dropped_command_is_killed_with_what_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let script = format!("sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display());
        let collecting = Collecting::start([spec(&script)]);
        while !file.exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let pid: i32 = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        drop(collecting);
        let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // No process of ours waits for a grandchild: it may stay a zombie until its new parent does.
        while !state().is_empty() && !state().contains(") Z ") {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}
