//! What a server is told when it starts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::inject::Rule;

/// Everything that can be chosen about a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where to listen (TCP for all versions, UDP for v2 and v3); port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where to answer as portmapper, if at all.
    pub portmap: Option<SocketAddr>,
    /// The exports; at least one.
    pub exports: Vec<ExportConfig>,
    /// Threads that serve connections.
    pub threads: usize,
    /// Lease time of NFSv4 (RFC 7530 §9.5), also the length of the grace period.
    pub lease: Duration,
    /// Slots of a session's fore channel (RFC 8881 §2.10.6).
    pub slots: u32,
    /// Largest READ and WRITE.
    pub max_io: u32,
    /// Whether read delegations are granted.
    pub delegations: bool,
    /// Whether write delegations are granted to clients that state no preference; one that asks for a write delegation
    /// (`OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG`) gets it when `delegations` is on.
    pub write_delegations: bool,
    /// READ answers from one page of zeros and WRITE drops the data; sizes and times are kept.
    pub null_data: bool,
    /// Steps in which change attribute and times move (as of servers with coarse clocks); `None`: every change counts.
    pub change_granularity: Option<Duration>,
    /// Behaviour on demand, in order of precedence.
    pub rules: Vec<Rule>,
    /// Seed of everything drawn at random: injected events, verifiers.
    pub seed: u64,
    /// File in which files and client names survive a restart.
    pub state: Option<PathBuf>,
    /// Whether user 0 acts as nobody (`root_squash`).
    pub root_squash: bool,
}

/// One export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportConfig {
    /// Absolute path, such as `/export`; `/` alone exports the root itself.
    pub path: String,
    /// Whether changes are refused with ROFS.
    pub read_only: bool,
    /// Bytes of data after which writes get NOSPC.
    pub limit: Option<u64>,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 2049)),
            portmap: None,
            exports: vec![ExportConfig { path: "/export".into(), read_only: false, limit: None }],
            threads: std::thread::available_parallelism().map_or(1, Into::into),
            lease: Duration::from_secs(90),
            slots: 64,
            max_io: 1 << 20,
            delegations: true,
            write_delegations: false,
            null_data: false,
            change_granularity: None,
            rules: Vec::new(),
            seed: 0,
            state: None,
            root_squash: false,
        }
    }
}
