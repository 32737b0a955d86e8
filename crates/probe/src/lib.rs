//! What the network between two hosts can do, without a file system: round trips, throughput, fairness.
//!
//! [`network`] measures against a far end ([`serve`]) on the other host. [`rpc_null`] needs none: it opens
//! connections to any NFS server and calls the procedure that does nothing, which gives a baseline of its latency.
//!
//! Every figure has an interval over repetitions that are independent of one another: each opens new connections, so
//! that ports, the queues that they hash to, and congestion windows are new too. Repetitions of all tests take turns,
//! so that what changes slowly on a network touches all of them alike.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

mod client;
mod far_end;
mod handshake;
mod null;
mod protocol;
mod result;
mod rpc;
mod session;
mod stream;
mod tcp_info;

pub use client::{network, network_with};
pub use far_end::{FarEnd, Served, serve};
pub use result::{
    CONFIDENCE, Direction, Estimate, Flow, Latency, NetworkProbe, NullData, Repetition, RpcProbe, Throughput,
};
pub use rpc::{answers, rpc_null};
pub use tcp_info::TcpSample;

/// Most connections of one test.
pub const MOST_FLOWS: u16 = 64;
/// Longest test, warm-up included.
pub const LONGEST_TEST: Duration = Duration::from_secs(60);
/// Largest reply of null data.
pub const LARGEST_REPLY: u32 = 16 << 20;
/// TCP_INFO is read at most so often.
pub const SHORTEST_SAMPLE_INTERVAL: Duration = Duration::from_millis(10);

/// What is measured, and how long.
#[derive(Debug, Clone)]
pub struct ProbeConfig {
    /// The far end; `None`: one in this process, over loopback.
    pub target: Option<SocketAddr>,
    /// What the far end wants to know, if it wants something.
    pub token: Option<Token>,
    /// Repetitions of each test; intervals are over them. 5 by default; 1 gives no interval.
    pub repetitions: u16,
    /// Round trips in all. Each repetition takes its part of them, but ends after [`ProbeConfig::duration`] on a slow
    /// network.
    pub round_trips: u32,
    /// Bytes of the messages of round trips, at most 64 KiB.
    pub message_bytes: u32,
    /// Connections opened in all to measure how long that takes.
    pub connects: u32,
    /// Numbers of connections that transfer at once; empty: no transfers.
    pub flows: Vec<u16>,
    pub directions: Vec<Direction>,
    /// How long each repetition of a transfer is measured.
    pub duration: Duration,
    /// What passes before, while windows grow. `None`: 20 round trips, but at least 250 ms and at most 5 s.
    pub warm_up: Option<Duration>,
    /// Time between two readings of TCP_INFO.
    pub sample_interval: Duration,
    /// Threads that request null data; `None`: not measured.
    pub null_data: Option<NullDataConfig>,
    /// A connection on which nothing happens for so long has failed.
    pub patience: Duration,
    /// Ends the probe between two repetitions once it is set.
    pub stop: Option<Arc<AtomicBool>>,
}

/// How null data are requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NullDataConfig {
    pub connections: u16,
    /// Threads that share each connection, with one request outstanding each.
    pub threads: u16,
    /// Bytes of a reply.
    pub reply_bytes: u32,
}

impl Default for NullDataConfig {
    fn default() -> Self {
        Self { connections: 4, threads: 4, reply_bytes: 64 << 10 }
    }
}

impl Default for ProbeConfig {
    fn default() -> Self {
        Self {
            target: None,
            token: None,
            repetitions: 5,
            round_trips: 2_000,
            message_bytes: 64,
            connects: 20,
            flows: vec![1, 2, 4, 8],
            directions: vec![Direction::ToFarEnd, Direction::ToClient],
            duration: Duration::from_millis(500),
            warm_up: None,
            sample_interval: Duration::from_millis(50),
            null_data: Some(NullDataConfig::default()),
            patience: Duration::from_secs(10),
            stop: None,
        }
    }
}

impl ProbeConfig {
    /// What a study measures before its first run: one and eight connections in either direction; about 20 s.
    pub fn baseline(target: Option<SocketAddr>) -> Self {
        Self { target, flows: vec![1, 8], null_data: None, ..Self::default() }
    }

    /// About how long it will take on a network whose round trips take `round_trip`.
    pub fn estimate(&self, round_trip: Duration) -> Duration {
        let tests = self.flows.len() * self.directions.len() + usize::from(self.null_data.is_some());
        let transfer = self.warm_up_for(round_trip) + self.duration + round_trip * 5;
        let pings = (round_trip * self.round_trips).min(self.duration * self.repetitions.into());
        let small = round_trip * (self.connects + 30 * u32::from(self.repetitions));
        pings + small + transfer * u32::from(self.repetitions) * tests as u32
    }

    fn warm_up_for(&self, round_trip: Duration) -> Duration {
        let rule = || (round_trip * 20).clamp(Duration::from_millis(250), Duration::from_secs(5));
        self.warm_up.unwrap_or_else(rule)
    }

    fn stopped(&self) -> Result<(), ProbeError> {
        if self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            Err(ProbeError::Stopped)
        } else {
            Ok(())
        }
    }

    fn check(&self) -> Result<(), ProbeError> {
        let wrong = |text: String| Err(ProbeError::Config(text));
        let flows = self.flows.iter().copied();
        let null = self.null_data.unwrap_or_default();
        let connections = || flows.clone().chain([null.connections]);
        if let Some(flows) = connections().find(|flows| !(1..=MOST_FLOWS).contains(flows)) {
            return wrong(format!("{flows} connections at once; write 1 to {MOST_FLOWS}"));
        }
        if !(1..=MOST_FLOWS).contains(&null.threads) {
            return wrong(format!("{} threads on a connection; write 1 to {MOST_FLOWS}", null.threads));
        }
        if !(1..=LARGEST_REPLY).contains(&null.reply_bytes) {
            return wrong(format!("replies of {} bytes; write 1 to {LARGEST_REPLY}", null.reply_bytes));
        }
        if !(1..=protocol::LONGEST_ECHO).contains(&self.message_bytes) {
            let longest = protocol::LONGEST_ECHO;
            return wrong(format!("messages of {} bytes; write 1 to {longest}", self.message_bytes));
        }
        if self.repetitions == 0 || self.round_trips == 0 || self.connects == 0 {
            return wrong("no repetitions, round trips or connections; write 1 or more of each".into());
        }
        if self.sample_interval < SHORTEST_SAMPLE_INTERVAL || self.sample_interval > Duration::from_secs(10) {
            return wrong(format!("TCP_INFO every {:?}; write 10 ms to 10 s", self.sample_interval));
        }
        let total = self.duration + self.warm_up.unwrap_or(Duration::from_secs(5));
        if self.duration < Duration::from_millis(10) || total > LONGEST_TEST {
            return wrong(format!(
                "transfers of {:?}; write 10 ms or more, with the warm-up at most {LONGEST_TEST:?}",
                self.duration
            ));
        }
        Ok(())
    }
}

/// How a far end serves.
#[derive(Debug, Clone)]
pub struct ServeConfig {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Only clients that know it are served.
    pub token: Option<Token>,
    pub connections: usize,
    /// Longest test that a client may ask for; at most [`LONGEST_TEST`].
    pub longest: Duration,
    /// A connection on which nothing happens for so long is closed.
    pub patience: Duration,
}

impl ServeConfig {
    /// A far end without a token.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            token: None,
            connections: 128,
            longest: LONGEST_TEST,
            patience: Duration::from_secs(10),
        }
    }
}

/// A secret of both ends, so that no one else can use the far end. It is never sent.
#[derive(Clone)]
pub struct Token(Vec<u8>);

impl Token {
    /// Fewest bytes of a token.
    pub const SHORTEST: usize = 16;

    /// A token of [`Token::SHORTEST`] to 4096 bytes.
    ///
    /// # Errors
    /// [`ProbeError::Token`] for other lengths.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, ProbeError> {
        let bytes = bytes.into();
        if (Self::SHORTEST..=4096).contains(&bytes.len()) {
            Ok(Self(bytes))
        } else {
            Err(ProbeError::Token(bytes.len()))
        }
    }

    /// Reads a token from a file, without white space at its ends.
    ///
    /// # Errors
    /// When the file cannot be read, or has no token of the right length.
    pub fn read(path: &Path) -> Result<Self, ProbeError> {
        let bytes =
            std::fs::read(path).map_err(|source| ProbeError::TokenFile { path: path.to_owned(), source })?;
        Self::new(bytes.trim_ascii())
    }

    fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The configuration asks for what cannot be measured.
    #[error("cannot probe with {0}")]
    Config(String),
    /// A token of the wrong length.
    #[error("a token of {0} bytes; write 16 to 4096, such as the output of `openssl rand -hex 32`")]
    Token(usize),
    /// The token's file cannot be read.
    #[error("cannot read the token from `{}`", path.display())]
    TokenFile { path: PathBuf, source: io::Error },
    /// The address is in use, or not one of this host.
    #[error("cannot listen on {address}")]
    Listen { address: SocketAddr, source: io::Error },
    /// No server listens, or it does not reply.
    #[error("cannot connect to {target}")]
    Connect { target: SocketAddr, source: io::Error },
    #[error("{target} is not a probe server ({problem}); start `benchmaster probe network --serve` there")]
    NotAFarEnd { target: SocketAddr, problem: String },
    /// The far end speaks another version.
    #[error(
        "{target} speaks version {found} of the probe protocol; use the same version of benchmaster on both hosts"
    )]
    Version { target: SocketAddr, found: u16 },
    /// The far end does not do what was asked for.
    #[error("{target} refuses: {reason}")]
    Refused { target: SocketAddr, reason: String },
    /// A connection failed, or was silent for too long.
    #[error("{doing} with {target} failed")]
    Io { doing: &'static str, target: SocketAddr, source: io::Error },
    /// The other end sent what it must not.
    #[error("{doing} with {target} failed: {problem}")]
    Protocol { doing: &'static str, target: SocketAddr, problem: String },
    /// A transfer was so slow that nothing arrived in the time measured.
    #[error("{doing} with {target}: nothing arrived during the measurement; use a longer duration")]
    TooSlow { doing: &'static str, target: SocketAddr },
    /// No thread or descriptor is left.
    #[error("cannot start the probe")]
    Resources(#[source] io::Error),
    /// [`ProbeConfig::stop`] was set.
    #[error("the probe was stopped")]
    Stopped,
}
