//! The state of a running study: `live.json` in its results directory.
//!
//! The runner replaces the file about once a second with [`Live::write`], atomically, so that a reader sees a whole state or
//! the one before. It is for people who look on, and no part of the results: nothing is analysed from it, and it may be gone
//! at any time. A state that is older than [`STALE`] belongs to a study that ended without saying so.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

/// Name of the file in the results directory.
pub const FILE: &str = "live.json";
/// The version of the format that this program writes and reads.
pub const FORMAT: u32 = 1;
/// Older states are not of a running study: ten times what the runner takes between two of them.
pub const STALE: Duration = Duration::from_secs(10);
/// Most messages in a state; [`Live::message`] forgets the oldest.
pub const MESSAGES: usize = 20;

/// No state of 10,000 clients is longer.
const LONGEST: u64 = 16 << 20;

/// The state of a running study.
///
/// Fill the fields that are known; `Live::default()` is a session about which nothing is known yet. Times are in
/// milliseconds since 1970 ([`unix_ms`]), so that a viewer on another host with the same file system can tell their age.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Live {
    /// [`FORMAT`].
    pub format: u32,
    /// Name of the study.
    pub study: String,
    /// Host of the controller.
    pub host: String,
    /// Process of the controller.
    pub process: u32,
    /// When this session began.
    pub session_started_ms: u64,
    /// When this state was written; [`Live::write`] sets it.
    pub written_ms: u64,
    /// Whether the session goes on.
    pub session: Session,
    /// Why a session ended that did not finish.
    pub reason: Option<String>,
    /// How far the study is.
    pub runs: Runs,
    /// The run in flight; none between runs.
    pub run: Option<Run>,
    /// The clients of the run in flight, in the order of their names in the study.
    pub clients: Vec<Client>,
    /// What all clients together did in the last interval; none outside of the measured phases.
    pub rates: Option<Rates>,
    /// What happened last, oldest first; at most [`MESSAGES`].
    pub messages: Vec<Message>,
}

/// Whether a session goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Session {
    /// It runs, unless the state is old.
    #[default]
    Running,
    /// All runs are done.
    Finished,
    /// It was interrupted and can be resumed.
    Interrupted,
    /// It stopped because of an error.
    Failed,
}

/// How far a study is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Runs {
    /// The run in flight, from 1; 0 before the first.
    pub position: u64,
    /// Runs planned as far as it is known.
    pub total: u64,
    /// Whether more may be added, while intervals are not tight.
    pub open: bool,
    /// Runs stored by all sessions.
    pub stored: u64,
    /// Of these, runs that failed.
    pub failed: u64,
    /// Seconds that the rest will take, estimated from the runs so far.
    pub seconds_left: Option<f64>,
}

/// The run in flight.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Run {
    /// Label of the treatment: `version=v41 delay=6.87ms`.
    pub treatment: String,
    /// Replicate, from 1.
    pub replicate: u32,
    /// The workload; none while the target is set up.
    pub workload: Option<String>,
    /// `set-up`, `prepare`, `warm-up`, `measure`, `tear-down`.
    pub phase: String,
    /// Seconds since the phase began.
    pub phase_elapsed_s: f64,
    /// Seconds that it takes; none where it ends when its work is done.
    pub phase_length_s: Option<f64>,
}

/// A client of the run in flight. Counters are those of the phase so far, and grow only: rates are differences of two states.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Client {
    /// Name in the study.
    pub name: String,
    /// Host on which it runs.
    pub host: String,
    /// What it does.
    pub state: ClientState,
    /// Why it was lost or failed.
    pub reason: Option<String>,
    /// Operations completed.
    pub operations: u64,
    /// Bytes read and written by the application.
    pub bytes: u64,
    /// Operations that failed.
    pub errors: u64,
    /// Its clock minus the controller's, in microseconds; none before it is measured.
    pub clock_offset_us: Option<f64>,
    /// The offset is right within so many microseconds.
    pub clock_bound_us: Option<f64>,
}

/// What a client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClientState {
    /// It is launched, and not heard of yet.
    #[default]
    Starting,
    /// It waits for the others or for the common instant.
    Ready,
    /// It makes its files.
    Preparing,
    /// It carries out operations.
    Running,
    /// It did its part of the phase or run.
    Done,
    /// It said why it cannot go on.
    Failed,
    /// Nothing is heard of it any more.
    Lost,
}

/// What all clients together did in an interval.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rates {
    /// Length of the interval in seconds.
    pub interval_s: f64,
    /// Operations completed per second.
    pub operations_per_s: f64,
    /// Bytes read per second.
    pub read_bytes_per_s: f64,
    /// Bytes written per second.
    pub written_bytes_per_s: f64,
    /// Operations that failed, per second.
    pub errors_per_s: f64,
    /// Mean latency of the operations in microseconds; none when there were none.
    pub mean_latency_us: Option<f64>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    /// When.
    pub at_ms: u64,
    /// What, in one line.
    pub text: String,
}

/// Why a state could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// There is none: no session of a study writes into this directory, or none that can be watched.
    #[error("`{}` has no {FILE}: no study runs there", directory.display())]
    Absent {
        /// The results directory.
        directory: PathBuf,
    },
    /// The file cannot be written or read.
    #[error("cannot {verb} `{}`", path.display())]
    Io {
        /// `write` or `read`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// It is no state of a study, or one that another program is writing in place.
    #[error("`{}` is not the state of a study: {problem}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// It was written by another version of this program.
    #[error("`{}` has format {found}, this program reads {FORMAT}: watch with the program that runs the study", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
}

impl Default for Live {
    fn default() -> Self {
        Self {
            format: FORMAT,
            study: String::new(),
            host: String::new(),
            process: std::process::id(),
            session_started_ms: 0,
            written_ms: 0,
            session: Session::default(),
            reason: None,
            runs: Runs::default(),
            run: None,
            clients: Vec::new(),
            rates: None,
            messages: Vec::new(),
        }
    }
}

impl Live {
    /// The state of a session of a study that begins now, on this process.
    pub fn begin(study: impl Into<String>, host: impl Into<String>) -> Self {
        Self { study: study.into(), host: host.into(), session_started_ms: unix_ms(), ..Self::default() }
    }

    /// Adds a message, and forgets the oldest beyond [`MESSAGES`].
    pub fn message(&mut self, text: impl Into<String>) {
        self.messages.push(Message { at_ms: unix_ms(), text: text.into() });
        let surplus = self.messages.len().saturating_sub(MESSAGES);
        self.messages.drain(..surplus);
    }

    /// Replaces the state in a results directory by this one. Readers see either of them whole. Nothing is flushed to the
    /// disk: a state is of no use after a crash of the host.
    ///
    /// # Errors
    /// When the directory cannot be written to. That is no reason to stop a measurement.
    pub fn write(&mut self, directory: &Path) -> Result<(), LiveError> {
        self.written_ms = unix_ms();
        let path = directory.join(FILE);
        // One session at a time writes into a results directory, so the name is free; what a killed one left is replaced.
        let new = directory.join(format!(".{FILE}.new"));
        let failed = |source| LiveError::Io { verb: "write", path: path.clone(), source };
        let text = serde_json::to_vec(self).map_err(|error| failed(error.into()))?;
        fs::write(&new, text).and_then(|()| fs::rename(&new, &path)).map_err(failed)
    }

    /// Reads the state in a results directory.
    ///
    /// # Errors
    /// [`LiveError::Absent`] when there is none; see the others there.
    pub fn read(directory: &Path) -> Result<Self, LiveError> {
        let path = directory.join(FILE);
        let failed = |source| LiveError::Io { verb: "read", path: path.clone(), source };
        let file = match File::open(&path) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Err(LiveError::Absent { directory: directory.into() });
            }
            file => file.map_err(failed)?,
        };
        let mut text = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut text).map_err(failed)?;
        let wrong = |problem: String| LiveError::Content { path: path.clone(), problem };
        if text.len() as u64 > LONGEST {
            return Err(wrong(format!("it is longer than {} MiB", LONGEST >> 20)));
        }
        // Another format may have other types where this one has some.
        let format: Format = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if format.format != FORMAT {
            return Err(LiveError::Format { path, found: format.format });
        }
        serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))
    }

    /// How long ago it was written; zero when clocks of two hosts differ the other way.
    pub fn age(&self, now_ms: u64) -> Duration {
        Duration::from_millis(now_ms.saturating_sub(self.written_ms))
    }

    /// Whether it says that a session runs, and is too old for that.
    pub fn is_stale(&self, now_ms: u64) -> bool {
        self.session == Session::Running && self.age(now_ms) > STALE
    }
}

#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// Now, in milliseconds since 1970.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    fn state() -> Live {
        let mut live = Live::begin("wan-nfs", "hpc1");
        live.runs =
            Runs { position: 7, total: 60, open: true, stored: 6, failed: 1, seconds_left: Some(612.5) };
        live.run = Some(Run {
            treatment: "version=v41 delay=6.87ms".into(),
            replicate: 2,
            workload: Some("write".into()),
            phase: "measure".into(),
            phase_elapsed_s: 3.25,
            phase_length_s: Some(10.0),
        });
        live.clients.push(Client {
            name: "c1".into(),
            host: "node1".into(),
            state: ClientState::Running,
            operations: 12,
            clock_offset_us: Some(-3.5),
            ..Client::default()
        });
        live.rates = Some(Rates { operations_per_s: 100.0, ..Rates::default() });
        live.message("c1 began");
        live
    }

    #[test]
    fn what_is_written_is_read() {
        let place = TempDir::new().unwrap();
        let (mut first, mut second) = (state(), Live::default());
        first.write(place.path()).unwrap();
        assert_eq!(Live::read(place.path()).unwrap(), first);
        second.write(place.path()).unwrap();
        assert_eq!(Live::read(place.path()).unwrap(), second);
        let names: Vec<_> =
            fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [FILE]);
    }

    #[test]
    fn a_reader_never_sees_half_a_state() {
        let place = TempDir::new().unwrap();
        let mut live = state();
        live.clients = vec![live.clients[0].clone(); 500];
        live.write(place.path()).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for position in 0..200 {
                    live.runs.position = position;
                    live.clients.truncate(500 - position as usize);
                    live.write(place.path()).unwrap();
                }
            });
            while !writer.is_finished() {
                let seen = Live::read(place.path()).unwrap();
                assert!(seen.clients.len() == 500 || seen.clients.len() as u64 == 500 - seen.runs.position);
            }
        });
    }

    #[test]
    fn age_is_that_of_the_file() {
        let live = Live { written_ms: 50_000, ..Live::default() };
        assert_eq!(live.age(49_000), Duration::ZERO);
        assert_eq!((live.is_stale(60_000), live.is_stale(60_001)), (false, true));
        let done = Live { session: Session::Finished, ..live };
        assert!(!done.is_stale(1_000_000));
    }

    #[test]
    fn other_files_are_refused_by_name() {
        let place = TempDir::new().unwrap();
        let error = |text: &str| {
            fs::write(place.path().join(FILE), text).unwrap();
            Live::read(place.path()).unwrap_err().to_string().replace(place.path().to_str().unwrap(), "DIR")
        };
        assert!(error("{\"format\":").contains("`DIR/live.json` is not the state of a study: EOF"));
        assert!(error("{\"format\":1,\"clients\":3}").contains("invalid type"));
        assert!(error("[]").contains("is not the state of a study"));
        assert!(error("{\"format\":2,\"runs\":\"?\"}").contains("has format 2, this program reads 1"));
        assert!(error(&" ".repeat((16 << 20) + 1)).contains("longer than 16 MiB"));
        fs::remove_file(place.path().join(FILE)).unwrap();
        assert!(matches!(Live::read(place.path()), Err(LiveError::Absent { .. })));
        assert!(matches!(state().write(&place.path().join("nowhere")), Err(LiveError::Io { .. })));
    }

    #[test]
    fn fields_of_newer_writers_are_ignored_and_missing_ones_unknown() {
        let place = TempDir::new().unwrap();
        fs::write(place.path().join(FILE), r#"{"format":1,"study":"s","weather":"fine","clients":[{}]}"#)
            .unwrap();
        let live = Live::read(place.path()).unwrap();
        assert_eq!((live.study.as_str(), live.clients), ("s", vec![Client::default()]));
    }

    #[test]
    fn old_messages_are_forgotten() {
        let mut live = Live::default();
        (0..30).for_each(|n| live.message(format!("{n}")));
        assert_eq!((live.messages.len(), live.messages[0].text.as_str()), (MESSAGES, "10"));
    }
}
