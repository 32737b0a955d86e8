//! A directory of a test's own, and the command run in it.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use benchmaster_record::results::StudyResults;
use benchmaster_store::Store;
use regex_lite::Regex;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::limit::output_within;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_benchmaster");

/// No command of these tests takes as long, however busy the host is: only one that hangs is ended.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// Ten runs of 30 ms each in the directory `target`.
pub(crate) const TINY: &str = r#"[study]
name = "tiny"
seed = 1

[target]
path = "target"

[run]
interval = "30ms"

[factors.io_size]
parameter = "workload.write.io_size"
levels = ["1KiB", "4KiB"]

[design]
replicates = 5

[workload.write]
use = "sequential-write"
file_size = "64KiB"
duration = "30ms"
claims = "cache"
"#;

/// A directory with `target` to measure, `tmp` for scratch directories, and whatever a test writes.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self::within(TempDir::new().unwrap())
    }

    /// In memory where that can be had, for tests of many runs: a disk's flushes would take most of their time.
    pub(crate) fn in_memory() -> Self {
        Self::within(TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap())
    }

    fn within(directory: TempDir) -> Self {
        for name in ["target", "tmp"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self(directory)
    }

    /// With the study [`TINY`] in `tiny.toml`.
    pub(crate) fn tiny() -> Self {
        let place = Self::in_memory();
        place.write("tiny.toml", TINY);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// The command with this directory as the current one, in a known environment, writing to pipes.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        self.surround(&mut command);
        command.args(arguments);
        command
    }

    /// Gives any command the current directory, environment and pipes of [`Place::command`].
    pub(crate) fn surround(&self, command: &mut Command) {
        for name in ["NO_COLOR", "CLICOLOR_FORCE", "LC_ALL", "LC_CTYPE", "TERM"] {
            command.env_remove(name);
        }
        command
            .current_dir(self.root())
            .env("TMPDIR", self.path("tmp"))
            .env("LANG", "C.UTF-8")
            .env("COLUMNS", "100")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        finish(self.command(arguments))
    }

    pub(crate) fn results(&self, directory: &str) -> StudyResults {
        Store::load(&self.path(directory)).unwrap()
    }

    /// What a directory holds, sorted.
    pub(crate) fn list(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(directory)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Neither on the target nor among temporary files is anything left.
    pub(crate) fn assert_nothing_left(&self) {
        assert_eq!(self.list("target"), [""; 0], "on the target");
        assert_eq!(self.list("tmp"), [""; 0], "among temporary files");
    }
}

/// Runs a command to its end, which must come in time.
pub(crate) fn finish(command: Command) -> Output {
    output_within(command, PATIENCE).unwrap()
}

/// A command at work, whose standard error is read line by line.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let stderr = child.stderr.take().unwrap();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, seen: Vec::new() }
    }

    /// Waits for a line that begins so, and gives it.
    pub(crate) fn wait_for(&mut self, start: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if line.starts_with(start) {
                        return line;
                    }
                }
                Err(_) => panic!("no line `{start}…` came:\n{}", self.seen.join("\n")),
            }
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end; gives status, standard output, and all lines of standard error.
    pub(crate) fn end(mut self) -> (ExitStatus, String, String) {
        let mut stdout = String::new();
        if let Some(mut pipe) = self.child.stdout.take() {
            pipe.read_to_string(&mut stdout).unwrap();
        }
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
                None => {
                    self.child.kill().unwrap();
                    panic!("it did not end");
                }
            }
        };
        self.seen.extend(self.lines.iter());
        (status, stdout, self.seen.join("\n"))
    }
}

impl Drop for Running {
    /// A test that fails leaves nothing running.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// Everything a user sees of a command, for snapshots.
pub(crate) fn transcript(output: &Output) -> String {
    let status = output.status.code().map_or("none".to_owned(), |code| code.to_string());
    format!(
        "exit status: {status}\n----- stdout -----\n{}----- stderr -----\n{}",
        stdout(output),
        stderr(output)
    )
}

/// Compares with a snapshot after taking out what differs between machines and runs.
pub(crate) fn snapshot(name: &str, place: &Place, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let mut text = text.replace(&place.root().display().to_string(), "[DIR]");
    for (pattern, instead) in FILTERS {
        text = Regex::new(pattern).unwrap().replace_all(&text, *instead).into_owned();
    }
    settings.bind(|| insta::assert_snapshot!(name, text));
}

/// Places, hosts, ids; then times, rates and the checks that depend on how busy the machine is.
const FILTERS: &[(&str, &str)] = &[
    (r"benchmaster-scratch-[0-9a-f]{8}", "benchmaster-scratch-[ID]"),
    (r"benchmaster-[0-9a-f]{8}", "benchmaster-[ID]"),
    (r" on \S+ \(\S+\), host .* processors", " on [FILE SYSTEM], host [HOST]"),
    (r"(measuring .*), on \S+ \(\S+\)", "$1, on [FILE SYSTEM]"),
    (r"(?s)\nvalidity\n.*?\n\n", "\nvalidity\n[CHECKS]\n\n"),
    (r"(?s)\nfindings[:,] .*?\nreport: ", "\n[FINDINGS AND VALIDITY]\nreport: "),
    (r"; (warnings: [^(\n]*|INVALID [^\n]*)", ""),
    (r"\d+(\.\d+)? [kMGT]?B/s", "[RATE]"),
    (r" ?\(about [^)]* left\)", " ([TIME] left)"),
    (r"benchmaster \d+\.\d+\.\d+", "benchmaster [VERSION]"),
];

/// The signals that end commands; without SIGHUP where the tests run below `nohup`, whose children ignore it.
pub(crate) fn ending_signals() -> Vec<Signal> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(mask.trim(), 16).unwrap();
    let is_ignored = ignored & (1 << (Signal::HUP.as_raw() - 1)) != 0;
    let hangup = (!is_ignored).then_some(Signal::HUP);
    [Signal::INT, Signal::TERM].into_iter().chain(hangup).collect()
}
