//! The messages between controller and agents.
//!
//! The agent serves and the controller calls, whoever made the byte stream between them: a child's standard input and
//! output, those of ssh, or TCP with TLS. A message is a [frame](benchmaster_frames) whose header is the number of the
//! call that it belongs to, so that calls can overlap. The controller sends `Message`s; the agent sends `Answer`s, one
//! for each call, and `Report`s as the answers of `Request::Perform` until one of them ends it.
//!
//! Both sides are of one version of the program, which the first call checks. `Message::Cancel` stops what a call does:
//! that is how a run ends when there is no time for `Instruction::Stop`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use benchmaster_frames::FrameError;
use benchmaster_record::phase::Phase;
use benchmaster_workload::conduct::{Attendance, Share, Start, Step};
use benchmaster_workload::execute::Done;
use benchmaster_workload::target::{NfsTarget, Target};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::controller::MemberState;
use crate::controller::group::Terms;
use crate::job::{HookSpec, Job};
use crate::launch::Muster;
use crate::merge::Gathered;
use crate::perform::{Observations, Performed};

mod batch;
pub(crate) mod bytes;

pub(crate) use self::batch::{RECORDS, TraceBatch};

/// Version of the protocol. Agents and controller are of one version of the program, and have the same.
pub const PROTOCOL: u32 = 5;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Limit of a controller's message, in bytes, and of the first message of an agent.
pub(crate) const REQUEST_LIMIT: usize = 4 << 20;

/// Limit of an agent's message, in bytes: recordings are in them.
pub(crate) const ANSWER_LIMIT: usize = 1 << 30;

/// The number of a call, as the header of frames.
pub(crate) type Header = [u8; 4];

/// What a controller sends.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Message {
    /// Begins a call.
    Call(Request),
    /// To the call of `Request::Perform`.
    Instruct(Instruction),
    /// What the call does is stopped; its answer is not read.
    Cancel,
}

/// What an agent is asked to do. The comments name the type of the answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Must be the first call. [`Introduction`]
    Hello(Hello),
    /// One exchange of time stamps. [`ClockReading`]
    Exchange,
    /// Makes the working directory of a study on a target, or joins the one that another agent made. `()`
    Open { place: String, target: RemoteTarget, id: String, join: bool },
    /// Before the first workload of a run. `()`
    BeginRun { place: String, fresh: bool },
    /// The same files by other mount options. `()`
    ReachBy { place: String, target: RemoteTarget },
    /// One workload of one run. `Report`s
    Perform(Box<Task>),
    /// Runs a command of the study. [`HookOutcome`]
    RunHook(HookSpec),
    /// Looks at the agent's host, and at the file system of a directory.
    /// [`Environment`](benchmaster_telemetry::environment::Environment)
    Environment { directory: Option<String> },
    /// Removes the working directories of all places. `()`
    Remove,
    /// The agent listens for those that it is to lead. [`Listening`]
    Listen { version_6: bool },
    /// The agent becomes an aggregator: it starts other agents and leads them from now on. The calls above are then for them,
    /// by [`Self::Each`]; `Perform` is for all of them. [`Result`] of [`Led`] and [`LaunchError`]
    Lead { muster: Box<Muster>, terms: Terms },
    /// Asks agents behind an aggregator, by number in ascending order. [`Vec`] of [`Reply`]
    Each { whom: Vec<u32>, request: Box<Request> },
    /// The agent ends after its answer. `()`
    End,
}

/// The value asked for, or why there is none.
pub(crate) type Answer<T> = Result<T, String>;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: String,
    pub(crate) protocol: u32,
    /// The agent's name in the study.
    pub(crate) name: String,
    /// The agent ends when it hears nothing from the controller for this long.
    pub(crate) patience: Duration,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Introduction {
    pub(crate) version: String,
    pub(crate) protocol: u32,
    pub(crate) host: String,
    pub(crate) pid: u32,
    /// Identity of its monotonic clock: equal for two processes that read the same clock; `None` if unknown.
    pub(crate) clock: Option<String>,
}

/// Times of the agent's monotonic clock in nanoseconds.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ClockReading {
    /// After the request was read.
    pub(crate) received: i64,
    /// Before the answer is written.
    pub(crate) replied: i64,
}

/// Where an aggregator listens, and what its agents need.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Listening {
    pub(crate) port: u16,
    /// As one line of JSON.
    pub(crate) credentials: Zeroizing<String>,
}

/// The part of one agent in a run, or of those behind an aggregator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) place: String,
    pub(crate) job: Job,
    /// Of each agent.
    pub(crate) roles: Vec<Role>,
}

/// What an agent is in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Role {
    /// Its clients; `None`: it observes the server's host.
    pub(crate) share: Option<Share>,
    /// Agents on its host.
    pub(crate) neighbours: u32,
    /// Whether it runs samplers and commands; one agent of each host does.
    pub(crate) looks: bool,
}

/// What a controller says while a task is performed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Instruction {
    /// All agents have reached this step.
    Go(Step),
    /// A phase begins at this time of the agent's monotonic clock, in nanoseconds.
    StartAt(i64),
    /// Stop early, but orderly.
    Stop,
    /// Workers of all processes were at a meeting, by its number in the program, for this time, counted from 1.
    Met { meeting: u16, time: u64 },
}

/// What an agent says while it performs a task.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Report {
    /// It waits at this step.
    Reached(Step),
    /// It waits for a phase, which must not begin earlier than `lead` from now.
    Ready {
        phase: Start,
        lead: Duration,
    },
    /// All its workers that take part are at a meeting, or none takes part any more.
    Attended {
        meeting: u16,
        attendance: Attendance,
    },
    Progress(PhaseProgress),
    /// How far the agents behind an aggregator are: the one that is furthest behind, and each.
    Members {
        behind: PhaseProgress,
        members: Vec<MemberDone>,
    },
    /// Calls that were recorded.
    Trace(TraceBatch),
    /// The end of a task with clients.
    Performed(Box<Performed>),
    /// The end of the task of an aggregator.
    Gathered(Box<Gathered>),
    /// The end of a task without clients.
    Observed(Box<Observations>),
    /// The end of a task that failed.
    Failed(Failure),
    /// The same of an aggregator, by the fault of one of its agents; `lost`: it is of no more use.
    MemberFailed {
        agent: String,
        lost: bool,
        failure: Failure,
    },
}

/// State and sums of an agent behind an aggregator: operations, bytes, errors, latencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MemberDone(pub(crate) MemberState, pub(crate) [u64; 4]);

/// How far an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PhaseProgress {
    pub(crate) phase: Phase,
    /// Since the phase began.
    pub(crate) elapsed: Duration,
    /// Of the phase, if it is limited by time.
    pub(crate) length: Option<Duration>,
    pub(crate) done: Done,
}

/// What became of a job that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureKind {
    /// The workload, a working directory or a command failed; the fleet is as good as before.
    Job,
    /// The agent stopped without having been asked to.
    Stopped,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn of_job(text: impl Into<String>) -> Self {
        Self { kind: FailureKind::Job, text: text.into() }
    }
}

/// How a command of the study went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HookOutcome {
    /// In words.
    pub(crate) ended: String,
    /// Whether it did what it should.
    pub(crate) fine: bool,
    /// What it printed on standard output and standard error; only the end if that is much.
    #[serde(with = "bytes")]
    pub(crate) output: Vec<u8>,
}

/// A target in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum RemoteTarget {
    /// A path, which need not be UTF-8.
    Directory(OsString),
    Nfs {
        url: String,
        threads: Option<u32>,
    },
}

impl From<&Target> for RemoteTarget {
    fn from(target: &Target) -> Self {
        match target {
            Target::Directory(path) => Self::Directory(path.clone().into_os_string()),
            Target::Nfs(export) => Self::Nfs { url: export.options.to_string(), threads: export.threads },
        }
    }
}

impl TryFrom<RemoteTarget> for Target {
    type Error = String;

    fn try_from(target: RemoteTarget) -> Result<Self, String> {
        match target {
            RemoteTarget::Directory(path) => Ok(Self::Directory(PathBuf::from(path))),
            RemoteTarget::Nfs { url, threads } => {
                let options = url.parse().map_err(|error| format!("target `{url}`: {error}"))?;
                Ok(Self::Nfs(NfsTarget { threads, ..NfsTarget::new(options) }))
            }
        }
    }
}

/// A controller's message as a frame.
pub(crate) fn message(call: u32, message: &Message) -> Result<Vec<u8>, FrameError> {
    benchmaster_frames::encode(&call.to_be_bytes(), message, REQUEST_LIMIT)
}

/// An agent's answer as a frame.
pub(crate) fn answer<T: Serialize>(call: u32, answer: &Answer<T>) -> Result<Vec<u8>, FrameError> {
    benchmaster_frames::encode(&call.to_be_bytes(), answer, ANSWER_LIMIT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn targets_come_through() {
        let url = "nfs://server:2050/export%3F/x?version=3&nconnect=4";
        let export = NfsTarget { threads: Some(3), ..NfsTarget::new(url.parse().unwrap()) };
        let bytes: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"/a\xff/b");
        for target in [Target::Nfs(export), Target::Directory(bytes.into())] {
            let frame = benchmaster_frames::encode(&[], &RemoteTarget::from(&target), 1000).unwrap();
            let remote: RemoteTarget = benchmaster_frames::decode(&frame[4..]).unwrap();
            assert_eq!(Target::try_from(remote), Ok(target));
        }
        let wrong = RemoteTarget::Nfs { url: "gopher://x".into(), threads: None };
        assert!(Target::try_from(wrong).unwrap_err().contains("gopher://x"));
    }

    /// Frames of either direction, without their lengths and headers.
    fn values() -> Vec<Vec<u8>> {
        let target = RemoteTarget::Directory("/x".into());
        let hello = Hello { version: "1".into(), protocol: 1, name: "a".into(), patience: Duration::MAX };
        let progress = PhaseProgress {
            phase: Phase::Verify,
            elapsed: Duration::from_nanos(1),
            length: None,
            done: Done { operations: u64::MAX, bytes: 0, errors: 1, latency_ns: u64::MAX },
        };
        let messages = [
            Message::Call(Request::Hello(hello)),
            Message::Call(Request::Open { place: "p".into(), target, id: "i".into(), join: true }),
            Message::Instruct(Instruction::Met { meeting: 3, time: 4 }),
            Message::Cancel,
        ];
        let reports = [
            Report::Ready { phase: Start::Measure, lead: Duration::from_micros(3) },
            Report::Attended { meeting: 1, attendance: Attendance::Left },
            Report::Progress(progress),
            Report::Trace(TraceBatch(vec![Default::default(); 3])),
            Report::Observed(Box::default()),
            Report::Failed(Failure::of_job("x")),
        ];
        let messages = messages.iter().map(|value| message(1, value).unwrap());
        let reports = reports.into_iter().map(|report| answer(1, &Answer::Ok(report)).unwrap());
        messages.chain(reports).map(|frame| frame[8..].to_vec()).collect()
    }

    fn decode(bytes: &[u8]) -> [Result<(), FrameError>; 2] {
        let message = benchmaster_frames::decode::<Message>(bytes).map(drop);
        [message, benchmaster_frames::decode::<Answer<Report>>(bytes).map(drop)]
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&bytes);
        }

        #[test]
        fn truncated_and_altered_messages_are_no_panic(
            which in any::<prop::sample::Index>(),
            at in any::<prop::sample::Index>(),
            with: u8,
        ) {
            let mut value = which.get(&values()).clone();
            prop_assert!(decode(&value).iter().any(Result::is_ok));
            let at = at.index(value.len());
            prop_assert!(decode(&value[..at]).iter().all(Result::is_err));
            value[at] = with;
            let _ = decode(&value);
        }
    }

    #[test]
    fn outputs_of_commands_come_through_as_bytes() {
        let outcome = HookOutcome { ended: "x".into(), fine: true, output: vec![0xff; 10_000] };
        let frame = answer(7, &Ok(outcome.clone())).unwrap();
        assert!(frame.len() < 10_100, "{}", frame.len());
        assert_eq!(frame[4..8], 7u32.to_be_bytes());
        assert_eq!(benchmaster_frames::decode(&frame[8..]), Ok(Answer::Ok(outcome)));
    }
}
