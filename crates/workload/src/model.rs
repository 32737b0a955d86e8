//! A workload in full: filesets, groups of workers, and the flow of operations each worker repeats.
//!
//! Every built-in workload expands to this form, and a study may write it directly. It has one shape for everything
//! from a sequential write to Filebench's File Server: files are *picked* from filesets, opened into a handle, and
//! operated on; steps may be repeated or chosen at random by weight.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use benchmaster_units::{ByteSize, Rate, TimeSpan};

/// A value that is well-formed but cannot be meant, at a place within a workload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}; {fix}")]
pub struct ParameterError {
    /// Path below the workload's table: `io_size`, `groups[0].flow[2].offset`. Empty for the table itself.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub fix: String,
}

impl ParameterError {
    pub(crate) fn new(path: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), fix: fix.into() }
    }
}

/// A workload in full.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// The sets of files the workload works on, by name. Workloads of one study that name the same fileset, with the
    /// same description, share its files: a later one reads what an earlier one wrote.
    pub filesets: BTreeMap<String, Fileset>,
    /// Groups of workers. All groups run at the same time.
    pub groups: Vec<Group>,
    /// When each worker stops.
    #[serde(default)]
    pub until: Until,
    /// Time for which the flow runs before anything is measured.
    #[serde(default)]
    pub warm_up: TimeSpan,
    /// Stamp every block written with file, offset and generation, and check every block read.
    #[serde(default)]
    pub verify: bool,
    /// Record every call of the measured phase.
    #[serde(default)]
    pub trace: bool,
    /// Whether the result is meant to be the storage's (reads should not come from this host's page cache) or may come
    /// from the cache.
    #[serde(default)]
    pub claims: Claim,
}

/// What the reads of a workload are meant to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Claim {
    /// The file system and what is behind it: a data set that fits the page cache is a validity warning.
    #[default]
    Device,
    /// The client's cache as well.
    Cache,
}

/// A set of files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fileset {
    /// Number of files (per client when private).
    pub files: u64,
    /// Size of each file.
    pub size: FileSize,
    /// Files per directory; 0 puts all files into one directory.
    #[serde(default)]
    pub directory_width: u64,
    /// Whether each client has files of its own or all clients share one set.
    #[serde(default)]
    pub sharing: Sharing,
    /// Share of the files (0 to 1) that exist, filled with incompressible data, before the workload starts.
    #[serde(default = "one")]
    pub prefill: f64,
}

fn one() -> f64 {
    1.0
}

/// Who uses a fileset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Each client has its own.
    #[default]
    Private,
    /// All clients use the same files.
    Shared,
}

/// Sizes of files: one size for all, or drawn from a distribution by the study's seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum FileSize {
    /// All files have this size.
    Fixed(ByteSize),
    /// Sizes differ.
    Distributed(SizeDistribution),
}

/// A distribution of file sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SizeDistribution {
    /// Every size from `min` to `max` is equally likely.
    Uniform {
        /// Smallest size.
        min: ByteSize,
        /// Largest size.
        max: ByteSize,
    },
    /// Gamma distribution, as Filebench uses (its default shape is 1.5).
    Gamma {
        /// Mean size.
        mean: ByteSize,
        /// Shape parameter, more than 0.
        #[serde(default = "gamma_shape")]
        shape: f64,
    },
    /// The logarithm of the size is normally distributed.
    LogNormal {
        /// Median size.
        median: ByteSize,
        /// Standard deviation of the natural logarithm, more than 0.
        sigma: f64,
    },
}

fn gamma_shape() -> f64 {
    1.5
}

/// When a worker stops: at whichever limit is reached first. Without any, it stops when no file is left to pick.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Until {
    /// Length of the measured phase.
    pub duration: Option<TimeSpan>,
    /// Repetitions of the flow by each worker.
    pub iterations: Option<u64>,
    /// Bytes read and written by each worker.
    pub bytes: Option<ByteSize>,
}

/// A group of workers with one flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Workers per client.
    #[serde(default = "one_worker")]
    pub workers: u32,
    /// Operations each worker keeps outstanding.
    #[serde(default = "one_worker")]
    pub queue_depth: u32,
    /// How reads and writes are issued.
    #[serde(default)]
    pub io: IoMethod,
    /// Start operations at this rate (flow repetitions per second over all workers of a client) instead of as fast as the last ones
    /// finish; latencies then count from the intended start.
    pub rate: Option<Rate>,
    /// Steps done once by every worker before the measured phase.
    #[serde(default)]
    pub setup: Vec<Step>,
    /// Steps repeated during the measured phase.
    pub flow: Vec<Step>,
    /// Steps done once by every worker after the measured phase. Open handles are closed in any case.
    #[serde(default)]
    pub teardown: Vec<Step>,
}

fn one_worker() -> u32 {
    1
}

/// How reads and writes reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IoMethod {
    /// `pread` and `pwrite`.
    #[default]
    Sync,
    /// io_uring.
    IoUring,
}

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OperationKind {
    /// Open an existing file into the handle.
    Open,
    /// Create a file and open it into the handle.
    Create,
    /// Close the handle.
    Close,
    /// Read from the handle.
    Read,
    /// Write to the handle.
    Write,
    /// Flush data and metadata of the handle.
    Fsync,
    /// Flush the data of the handle.
    Fdatasync,
    /// Take a byte-range lock on the handle's file, waiting for it.
    Lock,
    /// Release it.
    Unlock,
    /// Read a file's attributes by name.
    Stat,
    /// Give a file another name in its directory.
    Rename,
    /// Remove a file.
    Unlink,
    /// List the directory of a file.
    Readdir,
    /// Make a directory.
    Mkdir,
    /// Remove a directory.
    Rmdir,
}

impl OperationKind {
    /// Every kind, in a fixed order.
    pub const ALL: [Self; 15] = [
        Self::Open,
        Self::Create,
        Self::Close,
        Self::Read,
        Self::Write,
        Self::Fsync,
        Self::Fdatasync,
        Self::Lock,
        Self::Unlock,
        Self::Stat,
        Self::Rename,
        Self::Unlink,
        Self::Readdir,
        Self::Mkdir,
        Self::Rmdir,
    ];

    /// The name used in study files, tables and the database.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Create => "create",
            Self::Close => "close",
            Self::Read => "read",
            Self::Write => "write",
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::Lock => "lock",
            Self::Unlock => "unlock",
            Self::Stat => "stat",
            Self::Rename => "rename",
            Self::Unlink => "unlink",
            Self::Readdir => "readdir",
            Self::Mkdir => "mkdir",
            Self::Rmdir => "rmdir",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it moves file data, so that bytes per second mean something.
    pub fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }

    /// Whether it works on an open handle (else on a file picked by name).
    pub fn needs_handle(self) -> bool {
        matches!(
            self,
            Self::Close
                | Self::Read
                | Self::Write
                | Self::Fsync
                | Self::Fdatasync
                | Self::Lock
                | Self::Unlock
        )
    }
}

/// One step of a flow. Exactly one of `op`, `repeat`, `choose` and `pause` is given.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Do this operation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op: Option<OperationKind>,
    /// Name under which the operation is counted; the operation's name if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Fileset to pick a file from; may be left out when the workload has only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fileset: Option<String>,
    /// Which file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FilePick>,
    /// Name of the handle an open or create fills and the others use; `main` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// How to open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<OpenFlag>,
    /// Bytes per read or write, or of a locked range (0: the whole file).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_size: Option<ByteSize>,
    /// Where to read or write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<OffsetPick>,
    /// Kind of lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockKind>,
    /// Repeat the steps of `flow`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<Repeat>,
    /// Steps to repeat.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<Step>,
    /// Do one of these, at random by weight.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choose: Vec<Choice>,
    /// Wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<TimeSpan>,
}

/// How often nested steps are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Repeat {
    /// So many times.
    Times(u64),
    /// Until a sequential read or write has reached the end of the handle's file.
    Until(RepeatUntil),
}

/// The condition that ends a [`Repeat`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatUntil {
    /// The sequential position has reached the file's size in its fileset.
    EndOfFile,
}

/// One alternative of a `choose` step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// Relative weight, more than 0.
    pub weight: f64,
    /// What is done.
    pub flow: Vec<Step>,
}

/// Which file of a fileset a step works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilePick {
    /// File number = worker number (modulo the number of files).
    Own,
    /// Any existing file, each equally likely.
    Random,
    /// The worker's share of the files one after the other, starting over at the end.
    Next,
    /// A file that does not exist yet; when there is none left the worker is done.
    New,
    /// A file no worker has had before; when there is none left the worker is done.
    Once,
    /// The file of the worker's last step.
    Same,
}

/// Where in the file a read or write goes. Positions are multiples of the I/O size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OffsetPick {
    /// Right after the last one; after the end of the file, from its start again.
    Sequential,
    /// Any position, each equally likely.
    Random,
    /// At the end of the file, which grows.
    Append,
}

/// How a file is opened. Reading is always allowed unless `write-only`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OpenFlag {
    /// Open for reading and writing.
    Write,
    /// Open for writing only.
    WriteOnly,
    /// O_SYNC: each write returns when data and metadata are stable.
    Sync,
    /// O_DSYNC: each write returns when data are stable.
    Dsync,
    /// O_DIRECT: past the page cache.
    Direct,
    /// O_APPEND.
    Append,
    /// O_TRUNC: empty the file.
    Truncate,
    /// O_EXCL: a create fails when the file exists.
    Exclusive,
}

/// Kind of a byte-range lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockKind {
    /// Others may hold read locks.
    #[default]
    Read,
    /// Nobody else may hold a lock.
    Write,
}
