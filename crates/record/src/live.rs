//! The state of a running study, as the runner publishes it about twice a second for those who watch.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::phase::Phase;

/// The version of the format that this program writes and reads.
pub const FORMAT: u32 = 1;
/// Older states are not of a running study: twenty times the interval at which the runner writes.
pub const STALE: Duration = Duration::from_secs(10);
/// Most messages in a state; [`Live::message`] drops the oldest.
pub const MESSAGES: usize = 20;

/// The state of a running study.
///
/// Fill the fields that are known; `Live::default()` is a session about which nothing is known yet. Times are in
/// milliseconds since 1970, so that a viewer on another host with the same file system can tell their age.
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
    /// When this state was written.
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
    /// What all clients together did lately; none outside of the measured phases.
    pub rates: Option<Rates>,
    /// Operations that failed in the runs of this session so far.
    pub errors: u64,
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
    /// Seconds that the rest will take, estimated from the plan, and after the first run from the runs so far.
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
    pub phase: Phase,
    /// Seconds since the phase began.
    pub phase_elapsed_s: f64,
    /// Seconds that it takes; none where it ends when its work is done.
    pub phase_length_s: Option<f64>,
    /// How certain the study's response is for this treatment so far.
    pub precision: Precision,
}

/// How tight the interval of the mean of a treatment is: of the response that decides about further runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Precision {
    /// Name of the response.
    pub response: String,
    /// Runs of the treatment that count.
    pub runs: u64,
    /// Runs that it gets at least.
    pub runs_min: u64,
    /// Runs that it gets at most; more than the least while intervals are not tight.
    pub runs_max: u64,
    /// Half width of the interval divided by the mean; none before the second run.
    pub relative_half_width: Option<f64>,
    /// Confidence level of the interval.
    pub confidence: f64,
    /// The relative half width that ends the runs of a treatment; none where their number is fixed.
    pub goal: Option<f64>,
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
    /// Latencies of `operations` in nanoseconds, added up.
    pub latency_ns: u64,
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

/// What all clients together did in the last second or so.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rates {
    /// Length of the interval in seconds.
    pub interval_s: f64,
    /// Operations completed per second.
    pub operations_per_s: f64,
    /// Bytes read and written per second.
    pub bytes_per_s: f64,
    /// Operations that failed, per second.
    pub errors_per_s: f64,
    /// Mean latency in seconds; none when no operation was completed.
    pub mean_latency_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Message {
    pub at_ms: u64,
    /// What, in one line.
    pub text: String,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            format: FORMAT,
            study: String::new(),
            host: String::new(),
            process: 0,
            session_started_ms: 0,
            written_ms: 0,
            session: Session::default(),
            reason: None,
            runs: Runs::default(),
            run: None,
            clients: Vec::new(),
            rates: None,
            errors: 0,
            messages: Vec::new(),
        }
    }
}

impl Live {
    /// Adds a message, and drops the oldest beyond [`MESSAGES`].
    pub fn message(&mut self, at_ms: u64, text: impl Into<String>) {
        self.messages.push(Message { at_ms, text: text.into() });
        let surplus = self.messages.len().saturating_sub(MESSAGES);
        self.messages.drain(..surplus);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_that_of_the_file() {
        let live = Live { written_ms: 50_000, ..Live::default() };
        assert_eq!(live.age(49_000), Duration::ZERO);
        assert_eq!((live.is_stale(60_000), live.is_stale(60_001)), (false, true));
        let done = Live { session: Session::Finished, ..live };
        assert!(!done.is_stale(1_000_000));
    }

    #[test]
    fn old_messages_are_dropped() {
        let mut live = Live::default();
        (0..30).for_each(|n| live.message(n, format!("{n}")));
        assert_eq!((live.messages.len(), live.messages[0].text.as_str()), (MESSAGES, "10"));
    }
}
