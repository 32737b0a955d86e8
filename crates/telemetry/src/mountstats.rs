//! What the kernel's NFS client counted for each mount: `/proc/self/mountstats`.
//!
//! The format is that of `nfs_show_stats` and `rpc_clnt_show_stats` of Linux 2.6.17 and later: a line per mount, and for NFS
//! lines below it, each with a key. Kernels added columns at the ends of lines, and lines; none was ever taken away. Lines
//! with unknown keys are kept as they are.
//!
//! The kernel counts by file system, not by mount: whoever uses another mount of the same export with the same options is
//! counted too. Times are sums over calls, written in whole milliseconds.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::mountinfo::{self, Mount};

mod change;
mod numbers;
mod parse;

pub use change::{Change, ChangeError};
pub(crate) use numbers::METRICS;
pub use numbers::Numbers;
pub use parse::{ParseError, Problem};

/// The NFS mounts in the text of `mountstats`, in its order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mountstats {
    /// Mounts of other types of file systems have no statistics and are left out.
    pub mounts: Vec<NfsMount>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NfsMount {
    /// What is mounted: `server:/export`.
    pub device: String,
    pub mount_point: PathBuf,
    /// `nfs` or `nfs4`.
    pub file_system: String,
    /// Version of the format (`statvers`): `1.0` or `1.1`.
    pub version: String,
    /// Options of the mount, as in `/proc/mounts`.
    pub options: String,
    /// Seconds since it was mounted.
    pub age: u64,
    /// What an NFSv4.1 server says that it is (`impl_id`).
    pub implementation: Option<String>,
    /// What the client knows of the server (`caps`): `caps=0x7,wtmult=4096,…`.
    pub capabilities: String,
    /// Attributes that the server has, sessions, pNFS, lease (`nfsv4`).
    pub nfsv4: Option<String>,
    /// Security flavors (`sec`).
    pub security: String,
    /// What applications and the cache did; see [`Numbers::EVENTS`].
    pub events: Numbers,
    /// Bytes that applications read and wrote, and that went to and from the server; see [`Numbers::BYTES`].
    pub bytes: Numbers,
    /// Pages of the local cache on disk (`fsc`); see [`Numbers::CACHE`].
    pub cache: Option<Numbers>,
    /// Version of the format of what follows, the program and its version: `1.1`, 100003, 3.
    pub rpc: Option<RpcProgram>,
    /// Connections.
    pub transports: Vec<Transport>,
    /// Calls, by operation, in the kernel's order; those never used too.
    pub operations: Vec<Operation>,
    /// Lines with other keys.
    pub other: Vec<(String, String)>,
}

/// The line `RPC iostats version: 1.1  p/v: 100003/3 (nfs)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcProgram {
    /// Version of the format.
    pub iostats: String,
    /// Number of the RPC program: 100003 for NFS.
    pub program: u32,
    /// Its version: 2, 3, or 4 for every minor version.
    pub version: u32,
    pub name: String,
}

/// A connection, or a socket for datagrams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transport {
    /// `tcp`, `udp`, `rdma`, `local`.
    pub kind: String,
    /// What it counted; the names are in [`Numbers::transport`].
    pub numbers: Numbers,
}

/// What was called, and what it cost.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Operation {
    /// Name in capitals; the kernel writes a number where it has no name.
    pub name: String,
    /// Calls completed.
    pub ops: u64,
    /// Times that requests were sent; more than `ops` where they were sent again.
    pub transmissions: u64,
    /// Major timeouts.
    pub timeouts: u64,
    /// Bytes of requests, with RPC headers.
    pub bytes_sent: u64,
    /// Bytes of replies, with RPC headers.
    pub bytes_received: u64,
    /// Milliseconds, summed over calls, from when a request was ready until it was sent.
    pub queue_ms: u64,
    /// Milliseconds from then until the reply.
    pub rtt_ms: u64,
    /// Milliseconds from the beginning of the call until its end.
    pub execute_ms: u64,
    /// Calls that ended with an error. `None` before Linux 5.3, which does not count them.
    pub errors: Option<u64>,
    /// Columns of newer kernels.
    pub further: Vec<u64>,
}

/// Why the statistics of this process's mounts could not be had.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// `/proc` is not there, or must not be read.
    #[error("cannot read {path}")]
    Read {
        path: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// The text is not in the format known.
    #[error("cannot understand /proc/self/mountstats")]
    Parse(#[from] ParseError),
}

impl Mountstats {
    /// Parses the text of `mountstats`.
    ///
    /// # Errors
    /// Where a known line is not in the kernel's format.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        parse::parse(text)
    }

    /// Reads those of this process's mounts.
    ///
    /// # Errors
    /// See [`ReadError`].
    pub fn read() -> Result<Self, ReadError> {
        Ok(Self::parse(&read("/proc/self/mountstats")?)?)
    }

    /// The NFS mount on which an absolute path without symbolic links lies, if it lies on one. `mounts` are those of
    /// `mountinfo`, read at the same time: they tell which of several mounts on one point is on top, and which is hidden.
    pub fn mount_of(&self, mounts: &[Mount], path: &Path) -> Option<&NfsMount> {
        let mount = mountinfo::mount_of(mounts, path).filter(|mount| is_nfs(&mount.file_system))?;
        // Both files list mounts in the same order.
        let same_point =
            |other: &&Mount| other.mount_point == mount.mount_point && is_nfs(&other.file_system);
        let at = mounts.iter().filter(same_point).position(|other| other.id == mount.id)?;
        let mut found = self.mounts.iter().filter(|other| other.mount_point == mount.mount_point);
        found.nth(at).filter(|found| found.device == mount.source)
    }
}

/// Reads the statistics of the NFS mount on which an absolute path without symbolic links lies.
///
/// # Errors
/// See [`ReadError`].
pub fn read_mount_of(path: &Path) -> Result<Option<NfsMount>, ReadError> {
    let mounts = mountinfo::parse(&read("/proc/self/mountinfo")?);
    Ok(Mountstats::read()?.mount_of(&mounts, path).cloned())
}

/// Names of files can be any bytes; what is no UTF-8 is replaced.
fn read(path: &'static str) -> Result<String, ReadError> {
    let bytes = std::fs::read(path).map_err(|source| ReadError::Read { path, source })?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_nfs(file_system: &str) -> bool {
    matches!(file_system, "nfs" | "nfs4")
}

impl NfsMount {
    /// An operation's counters; `None` where the kernel does not know it.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        self.operations.iter().find(|operation| operation.name == name)
    }

    /// An option's value, as in `vers=4.1`; empty for an option without value.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.split(',').find_map(|option| match option.split_once('=') {
            Some((key, value)) if key == name => Some(value),
            None if option == name => Some(""),
            _ => None,
        })
    }
}

impl fmt::Display for NfsMount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {}", self.device, self.mount_point.display())
    }
}

#[cfg(test)]
mod tests;
