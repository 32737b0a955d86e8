//! Agents on other hosts by the system's OpenSSH, so that its keys, agents, jump hosts and configuration hold.
//!
//! `ssh HOST` runs a small shell script there that looks for the program, prints what it found in one line, and becomes the
//! agent, whose standard input and output are the stream from then on. Where this very build is not there yet, it is
//! copied to `~/.cache/benchmaster/VERSION-HASH/benchmaster` first. Nothing else is left on a host; sessions end with the
//! controller, whatever ends that: ssh's input is closed then, so is the agent's, and the agent ends.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{LastLines, LaunchError, Started};
use crate::protocol::VERSION;
use crate::secure::build;

mod explain;
mod script;

use script::Answer;

/// How agents are started over ssh.
#[derive(Debug, Clone)]
pub struct SshConfig {
    /// The client: `ssh`.
    pub program: PathBuf,
    /// Its further options, as they would be typed: `-p`, `2222`, `-o`, `ProxyJump=gate`. They override all of ours but
    /// `BatchMode`: it never asks.
    pub options: Vec<String>,
    /// The file of this program, which is copied where it is missing.
    pub binary: PathBuf,
    /// Where the program is on the hosts, which are then left as they are: a path there (also from `~/`), or a name that the
    /// shell finds. `None`: the copy in the user's cache directory.
    pub binary_on_hosts: Option<PathBuf>,
    /// The agent's arguments.
    pub arguments: Vec<String>,
    /// How long one host may take until its agent runs, copying included.
    pub deadline: Duration,
    /// How many hosts are connected to at the same time.
    pub parallel: usize,
}

impl SshConfig {
    /// `ssh HOST benchmaster agent --stdio`, 32 hosts at a time, each within a minute.
    pub fn new(binary: PathBuf) -> Self {
        Self {
            program: "ssh".into(),
            options: Vec::new(),
            binary,
            binary_on_hosts: None,
            arguments: vec!["agent".into(), "--stdio".into()],
            deadline: Duration::from_secs(60),
            parallel: 32,
        }
    }
}

/// The name of the agent of a host: without a user's.
pub fn name(host: &str) -> &str {
    host.rsplit_once('@').map_or(host, |(_, bare)| bare)
}

/// Starts one agent on each host (`host` or `user@host`, as [`crate::hosts::expand`] gives them), in their order. `tell` hears
/// what users should know. Dropping the future ends what was started.
///
/// # Errors
/// When one cannot be started: the reason of the first with what helps, and the names of the others. Those that were
/// started are ended then.
pub async fn launch(
    config: &SshConfig,
    hosts: &[String],
    tell: &mut (impl FnMut(&str) + ?Sized),
) -> Result<Vec<Started>, LaunchError> {
    let first = hosts.first().map_or("ssh", |host| name(host));
    let program = Program::of(config).await.map_err(|reason| LaunchError::new(first, reason))?;
    let shared = Arc::new((config.clone(), program, Semaphore::new(config.parallel.max(1))));
    let mut tasks = JoinSet::new();
    for (number, host) in hosts.iter().cloned().enumerate() {
        let shared = Arc::clone(&shared);
        tasks.spawn(async move {
            let (config, program, slots) = &*shared;
            // The semaphore is never closed.
            let _slot = slots.acquire().await;
            let host = Host { host: &host, config, program };
            let mut notes = Vec::new();
            let outcome = match timeout(config.deadline, host.start(&mut notes)).await {
                Ok(outcome) => outcome,
                Err(_) => Err(format!(
                    "no agent ran there within {:?}; try `{}`, and check whether the host hangs",
                    config.deadline,
                    host.by_hand()
                )),
            };
            (number, notes, outcome)
        });
    }
    let mut started = Vec::new();
    let mut failed = Vec::new();
    while let Some(done) = tasks.join_next().await {
        // Tasks are not cancelled but with this future.
        let Ok((number, notes, outcome)) = done else { continue };
        notes.iter().for_each(|note| tell(note));
        match outcome {
            Ok(agent) => started.push((number, agent)),
            Err(reason) => failed.push((number, reason)),
        }
    }
    failed.sort_by_key(|(number, _)| *number);
    if let Some((number, reason)) = failed.first() {
        let named = |number: usize| hosts.get(number).map_or("", |host| name(host));
        let others: Vec<&str> = failed.iter().skip(1).map(|(number, _)| named(*number)).collect();
        let also = match others.as_slice() {
            [] => String::new(),
            some if some.len() > 10 => format!(" ({} other hosts failed too)", some.len()),
            some => format!(" (also failed: {})", some.join(", ")),
        };
        return Err(LaunchError::new(named(*number), format!("{reason}{also}")));
    }
    started.sort_by_key(|(number, _)| *number);
    Ok(started.into_iter().map(|(_, agent)| agent).collect())
}

/// The program on this host.
#[derive(Debug)]
struct Program {
    hash: String,
    bytes: u64,
    /// Where it is, or is to be, on the hosts.
    there: String,
}

impl Program {
    async fn of(config: &SshConfig) -> Result<Self, String> {
        let binary = config.binary.clone();
        let looked_at = tokio::task::spawn_blocking(move || {
            let bytes = std::fs::metadata(&binary).map(|facts| facts.len());
            build::hash_of(&binary).map_err(|error| error.to_string()).map(|hash| (hash, bytes.unwrap_or(0)))
        });
        let (hash, bytes) = looked_at.await.map_err(|error| error.to_string())??;
        let there = match &config.binary_on_hosts {
            Some(path) => path_text(path)?,
            None => format!("~/.cache/benchmaster/{VERSION}-{hash}/benchmaster"),
        };
        Ok(Self { hash, bytes, there })
    }
}

fn path_text(path: &Path) -> Result<String, String> {
    path.to_str()
        .filter(|text| !text.is_empty() && !text.chars().any(char::is_control))
        .map(str::to_owned)
        .ok_or_else(|| {
            format!("the program's path on the hosts, {path:?}, has characters that shells do not keep")
        })
}

/// Attempts when a host, or the one before it, has too many connections at once.
const ATTEMPTS: u32 = 4;

struct Host<'a> {
    host: &'a str,
    config: &'a SshConfig,
    program: &'a Program,
}

impl Host<'_> {
    /// Connects, copies if needed, and leaves an agent behind.
    async fn start(&self, notes: &mut Vec<String>) -> Result<Started, String> {
        let mut copied = false;
        let mut attempt = 1;
        loop {
            let mut session = self.run(&script::start(&self.program.there, self.config), Stdio::piped())?;
            match read_answer(&mut session.output).await {
                Answer::Ready { hash, version } if self.is_ours(hash.as_deref(), &version)? => {
                    if self.config.binary_on_hosts.is_some() && hash.is_none() {
                        notes.push(format!(
                            "{}: no sha256sum there to check whether {} is this build; its version is the same",
                            name(self.host),
                            self.program.there
                        ));
                    }
                    return session
                        .agent(name(self.host))
                        .ok_or_else(|| "ssh has no standard input".to_owned());
                }
                Answer::Missing { system } => {
                    self.check_system(&system)?;
                    if let Some(path) = &self.config.binary_on_hosts {
                        let path = path.display();
                        return Err(format!(
                            "there is no program {path} that can be run; put this one there, or leave its path out of the \
                             study, so that it is copied"
                        ));
                    }
                    if copied {
                        return Err(format!("{} was copied there but is gone again", self.program.there));
                    }
                    self.copy().await?;
                    copied = true;
                    let megabytes = self.program.bytes as f64 / 1e6;
                    notes.push(format!("{}: copied the program there ({megabytes:.1} MB)", name(self.host)));
                }
                // A file of our name that is not ours: a disk that was full, or a crash of the host.
                Answer::Ready { .. } | Answer::Broken { .. }
                    if !copied && self.config.binary_on_hosts.is_none() =>
                {
                    self.copy().await?;
                    copied = true;
                }
                Answer::Ready { version, .. } => {
                    return Err(format!("{} says it is `{version}`", self.program.there));
                }
                Answer::Broken { status, system, libc } => {
                    self.check_system(&system)?;
                    let (_, said) = session.end().await;
                    return Err(explain::broken(&self.program.there, status, &libc, &said));
                }
                Answer::Copied | Answer::None => {
                    let (status, said) = session.end().await;
                    if explain::is_crowded(&said) && attempt < ATTEMPTS {
                        sleep(Duration::from_millis(250) * attempt).await;
                        attempt += 1;
                        continue;
                    }
                    return Err(explain::failed(self.host, &self.by_hand(), status, &said));
                }
            }
        }
    }

    /// Whether the program there is this one. An error when it should be, by the study, and is not.
    fn is_ours(&self, hash: Option<&str>, version: &str) -> Result<bool, String> {
        let same =
            version == format!("benchmaster {VERSION}") && hash.is_none_or(|hash| hash == self.program.hash);
        if same || self.config.binary_on_hosts.is_none() {
            return Ok(same);
        }
        let (there, found) =
            (&self.program.there, hash.map_or_else(String::new, |hash| format!(", SHA-256 {hash}")));
        Err(format!(
            "{there} is another build ({version}{found}) than the controller (benchmaster {VERSION}, SHA-256 {}); put \
             this one there, or leave its path out of the study, so that it is copied",
            self.program.hash
        ))
    }

    fn check_system(&self, system: &str) -> Result<(), String> {
        let ours = format!("Linux {}", std::env::consts::ARCH);
        if system == ours {
            return Ok(());
        }
        Err(format!(
            "that host is {system} and the controller {ours}: build Benchmaster there and give its path in the study"
        ))
    }

    /// Puts the program there. Several controllers may do so at the same time, and be killed: the name appears when the
    /// file is whole.
    async fn copy(&self) -> Result<(), String> {
        let reading =
            |error: std::io::Error| format!("cannot read {}: {error}", self.config.binary.display());
        let file = std::fs::File::open(&self.config.binary).map_err(reading)?;
        let mut session =
            self.run(&script::copy(&self.program.there, self.program.bytes)?, Stdio::from(file))?;
        if read_answer(&mut session.output).await == Answer::Copied {
            return Ok(());
        }
        let (status, said) = session.end().await;
        Err(format!(
            "the program could not be copied: {}",
            explain::failed(self.host, &self.by_hand(), status, &said)
        ))
    }

    /// Runs a command there.
    fn run(&self, command: &str, input: Stdio) -> Result<Session, String> {
        let failed = |error: std::io::Error| {
            format!("cannot run {}: {error}; is OpenSSH's client installed?", self.config.program.display())
        };
        let mut ssh = Command::new(&self.config.program);
        ssh.args(["-T", "-o", "BatchMode=yes"]).args(&self.config.options);
        // The first value of an option counts, so these are for those that the user has not set.
        for option in
            ["ConnectTimeout=15", "ServerAliveInterval=5", "ServerAliveCountMax=3", "ClearAllForwardings=yes"]
        {
            ssh.args(["-o", option]);
        }
        ssh.args(["--", self.host, command]);
        ssh.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Signals of the terminal are the controller's matter, which instructs its agents.
        ssh.process_group(0).kill_on_drop(true);
        let mut process = ssh.spawn().map_err(failed)?;
        let (Some(output), Some(messages)) = (process.stdout.take(), process.stderr.take()) else {
            return Err("ssh has no standard output".to_owned());
        };
        let errors = LastLines::follow(messages);
        let input = process.stdin.take();
        Ok(Session { process, input, output: BufReader::with_capacity(1024, output), errors })
    }

    /// What a user can type to see the same.
    fn by_hand(&self) -> String {
        let options: String =
            self.config.options.iter().map(|option| format!("{} ", script::quote(option))).collect();
        format!("{} {options}{} true", self.config.program.display(), self.host)
    }
}

struct Session {
    process: Child,
    /// `None` when it was given a file.
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: LastLines,
}

impl Session {
    /// Waits until ssh has ended; gives how, and its last words.
    async fn end(mut self) -> (Option<ExitStatus>, String) {
        // The other side has nothing more to say and should end by itself.
        const PATIENCE: Duration = Duration::from_secs(3);
        drop(self.input);
        let status = timeout(PATIENCE, self.process.wait()).await.ok().and_then(Result::ok);
        let _ = timeout(PATIENCE, self.errors.read_to_end()).await;
        (status, self.errors.text())
    }

    fn agent(self, name: &str) -> Option<Started> {
        let stream = Box::new(tokio::io::join(self.output, self.input?));
        let process = Some(self.process);
        Some(Started { name: name.to_owned(), stream, process, errors: self.errors, keep: None, leads: None })
    }
}

/// Most bytes that a host's shell may say before our script does.
const MOST_NOISE: usize = 64 << 10;

/// What the script there says. Other lines before it are skipped: some shells greet.
async fn read_answer(output: &mut (impl AsyncBufRead + Unpin)) -> Answer {
    let mut line = Vec::new();
    let mut seen = 0;
    while seen < MOST_NOISE {
        line.clear();
        match (&mut *output).take((MOST_NOISE - seen) as u64).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => break,
            Ok(n) => seen += n,
        }
        if let Some(answer) = Answer::of(&String::from_utf8_lossy(&line)) {
            return answer;
        }
    }
    Answer::None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_answer_is_found_behind_greetings_and_the_stream_goes_on_behind_it() {
        let said =
            b"Welcome to c1!\r\n\xff\xfe\n\nbenchmaster-launch ready - benchmaster 9.9.9\nPRI * HTTP/2.0"
                .as_slice();
        let mut output = BufReader::with_capacity(16, said);
        let answer = read_answer(&mut output).await;
        assert_eq!(answer, Answer::Ready { hash: None, version: "benchmaster 9.9.9".into() });
        let mut rest = String::new();
        output.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, "PRI * HTTP/2.0");
    }

    #[tokio::test]
    async fn a_host_that_only_talks_has_an_end() {
        let endless = tokio::io::repeat(b'y');
        assert_eq!(read_answer(&mut BufReader::new(endless)).await, Answer::None);
        assert_eq!(read_answer(&mut b"hello\n".as_slice()).await, Answer::None);
        assert_eq!(read_answer(&mut b"".as_slice()).await, Answer::None);
    }

    #[test]
    fn agents_are_named_after_hosts() {
        assert_eq!(name("c1"), "c1");
        assert_eq!(name("root@c1.example"), "c1.example");
    }
}
