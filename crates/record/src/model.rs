//! A workload in full: filesets, groups of workers, and the flow of operations each worker repeats.
//!
//! Every built-in workload expands to this form, and a study may write it directly. It has one shape for everything
//! from a sequential write to Filebench's File Server: files are *picked* from filesets, opened into a handle, and
//! operated on; steps may be repeated or chosen at random by weight.

mod forms;

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
    /// An error of the parameter at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>, fix: impl Into<String>) -> Self {
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
    pub size: Size,
    /// Files per directory; 0 puts all files into one directory.
    #[serde(default)]
    pub directory_width: u64,
    /// Nested directories over which the files are dealt, instead of `directory_width`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Tree>,
    /// Whether each client has files of its own or all clients share one set.
    #[serde(default)]
    pub sharing: Sharing,
    /// Share of the files (0 to 1) that exist, filled with incompressible data, before the workload starts.
    #[serde(default = "one")]
    pub prefill: f64,
}

impl Default for Fileset {
    /// One file without content, of every client's own.
    fn default() -> Self {
        Self {
            files: 1,
            size: Size::Fixed(ByteSize(0)),
            directory_width: 0,
            tree: None,
            sharing: Sharing::Private,
            prefill: 1.0,
        }
    }
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

/// A tree of directories. The files of the set are dealt over them evenly, in order: each directory has consecutive ones,
/// unless they are dealt `in_turn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// Levels of directories below the fileset's own (mdtest's `-z`).
    pub depth: u32,
    /// Directories in each directory that is not of the last level (mdtest's `-b`).
    #[serde(default = "one_worker")]
    pub branch: u32,
    /// Whether only directories of the last level hold files (mdtest's `-L`).
    #[serde(default)]
    pub leaves_only: bool,
    /// Whether each file goes to the next directory: with as many directories as workers, each worker's share of the files
    /// is in a directory of its own (mdtest's `-u`).
    #[serde(default)]
    pub in_turn: bool,
}

impl Tree {
    /// Number of directories, with the fileset's own; `None` when there are too many to count.
    pub fn directories(&self) -> Option<u64> {
        (0..self.depth).try_fold(1u64, |below, _| below.checked_mul(self.branch.into())?.checked_add(1))
    }

    /// Number of directories of the last level.
    pub fn leaves(&self) -> u64 {
        u64::from(self.branch).saturating_pow(self.depth)
    }
}

/// Sizes of files, or of reads and writes: always the same one, or drawn from a distribution by the study's seed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Size {
    /// All have this size.
    Fixed(ByteSize),
    /// Sizes differ.
    Distributed(SizeDistribution),
}

impl Size {
    /// The size, if there is only one.
    pub fn fixed(&self) -> Option<ByteSize> {
        match self {
            Self::Fixed(size) => Some(*size),
            Self::Distributed(_) => None,
        }
    }

    /// The mean in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(size) => size.0 as f64,
            Self::Distributed(SizeDistribution::Uniform { min, max }) => {
                f64::midpoint(min.0 as f64, max.0 as f64)
            }
            Self::Distributed(SizeDistribution::Gamma { mean, .. }) => mean.0 as f64,
            Self::Distributed(SizeDistribution::LogNormal { median, sigma }) => {
                median.0 as f64 * (sigma * sigma / 2.0).exp()
            }
            Self::Distributed(SizeDistribution::Weighted { sizes }) => {
                let weights: f64 = sizes.iter().map(|each| each.weight).sum();
                sizes.iter().map(|each| each.size.0 as f64 * each.weight).sum::<f64>() / weights
            }
        }
    }
}

impl From<ByteSize> for Size {
    fn from(size: ByteSize) -> Self {
        Self::Fixed(size)
    }
}

/// A distribution of sizes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
    /// Some sizes, each with its weight.
    Weighted {
        /// The sizes.
        sizes: Vec<WeightedSize>,
    },
}

/// One size of a [`SizeDistribution::Weighted`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedSize {
    /// The size.
    pub size: ByteSize,
    /// Relative weight, more than 0.
    pub weight: f64,
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
    /// The clients that do it; all of them if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<ClientRange>,
    /// Workers per client.
    #[serde(default = "one_worker")]
    pub workers: u32,
    /// Operations each worker keeps outstanding.
    #[serde(default = "one_worker")]
    pub queue_depth: u32,
    /// How reads and writes are issued; means nothing where the target is an `nfs://` URL.
    #[serde(default)]
    pub io: IoMethod,
    /// Start operations at this rate (flow repetitions per second over all workers of a client) instead of as fast as the last ones
    /// finish; latencies then count from the intended start.
    pub rate: Option<Rate>,
    /// Steps done once by every worker before the measured phase.
    #[serde(default)]
    pub setup: Vec<Step>,
    /// Steps repeated during the measured phase. Without any the workers hold what their `setup` opened until all others
    /// have left the measured phase.
    pub flow: Vec<Step>,
    /// Steps done once by every worker after the measured phase. Open handles are closed in any case.
    #[serde(default)]
    pub teardown: Vec<Step>,
}

/// Clients by number, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientRange {
    /// The first.
    #[serde(default)]
    pub first: u32,
    /// The last; if absent, the last one of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u32>,
}

impl ClientRange {
    /// Whether a client is among them.
    pub fn contains(self, client: u32) -> bool {
        self.first <= client && self.last.is_none_or(|last| client <= last)
    }
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

words! {
    /// A kind of operation.
    #[derive(JsonSchema)]
    OperationKind {
        /// Open an existing file into the handle.
        Open = "open",
        /// Create a file and open it into the handle.
        Create = "create",
        /// Close the handle.
        Close = "close",
        /// Read from the handle.
        Read = "read",
        /// Write to the handle.
        Write = "write",
        /// Flush data and metadata of the handle.
        Fsync = "fsync",
        /// Flush the data of the handle.
        Fdatasync = "fdatasync",
        /// Take a byte-range lock on the handle's file, waiting for it.
        Lock = "lock",
        /// Release it.
        Unlock = "unlock",
        /// Read a file's attributes by name.
        Stat = "stat",
        /// Give a file another name in its directory.
        Rename = "rename",
        /// Remove a file.
        Unlink = "unlink",
        /// List the directory of a file.
        Readdir = "readdir",
        /// Make a directory.
        Mkdir = "mkdir",
        /// Remove a directory.
        Rmdir = "rmdir",
        /// Set the size of the handle's file to `io_size`.
        Truncate = "truncate",
        /// Reserve space for the first `io_size` bytes of the handle's file.
        Allocate = "allocate",
        /// Look for the first data in the handle's file.
        SeekData = "seek-data",
        /// Read the attributes of the handle's file.
        Fstat = "fstat",
        /// Set a file's permission bits.
        Chmod = "chmod",
        /// Set a file's times to now.
        Utimes = "utimes",
        /// Ask whether a file may be read and written.
        Access = "access",
        /// Make a symbolic link to a file, beside it: `NAME.symlink`.
        Symlink = "symlink",
        /// Read where the symbolic link of a file leads.
        Readlink = "readlink",
        /// Give a file a second name, beside the first: `NAME.link`.
        Link = "link",
        /// Set an extended attribute of a file, of `io_size` bytes.
        Setxattr = "setxattr",
        /// Read that attribute.
        Getxattr = "getxattr",
        /// List the names of a file's extended attributes.
        Listxattr = "listxattr",
        /// Remove the attribute.
        Removexattr = "removexattr",
        /// List the directory of a file with the attributes of all that is in it.
        ReaddirStat = "readdir-stat",
        /// Copy a file without moving its data through the client: `NAME.copy`.
        Copy = "copy",
    }
}

/// A name beside a file's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Beside {
    /// What `symlink` makes.
    Symlink,
    /// What `link` makes.
    Link,
    /// What `copy` makes.
    Copy,
}

impl Beside {
    /// The end of its name.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Symlink => ".symlink",
            Self::Link => ".link",
            Self::Copy => ".copy",
        }
    }
}

impl OperationKind {
    /// Whether it moves file data, so that bytes per second mean something.
    pub fn moves_data(self) -> bool {
        matches!(self, Self::Read | Self::Write)
    }

    /// Whether it opens a file into a handle.
    pub fn opens(self) -> bool {
        matches!(self, Self::Open | Self::Create)
    }

    /// Whether it is about the directory of a file.
    pub fn is_of_directory(self) -> bool {
        matches!(self, Self::Readdir | Self::ReaddirStat | Self::Mkdir | Self::Rmdir)
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
                | Self::Truncate
                | Self::Allocate
                | Self::SeekData
                | Self::Fstat
        )
    }
}

/// One step of a flow. Exactly one of `op`, `repeat`, `choose`, `pause`, `meet`, `post` and `take` is given.
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
    /// Not the file itself, but what another operation made beside it (`open`, `stat`, `access`, `unlink`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<Beside>,
    /// Name of the handle an open or create fills and the others use; `main` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// How to open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<OpenFlag>,
    /// Bytes per read or write, always the same or drawn for each; of a locked range (0: the whole file); of an extended
    /// attribute (64 if absent); to truncate to (0 if absent) or to allocate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub io_size: Option<Size>,
    /// Where to read or write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<OffsetPick>,
    /// Kind of lock.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lock: Option<LockKind>,
    /// Replay a trace: the only step of the only group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replay>,
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
    /// Wait until every worker whose `setup` or `flow` comes to the meeting of this name is there, on all clients and in
    /// all groups; the next time, until all are there again. Workers that have ended no longer take part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub meet: Option<String>,
    /// Add `count` to the counter of this name, which each client has for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post: Option<String>,
    /// Wait until the counter of this name holds `count`, and subtract that. When nobody is left who posts, the worker is
    /// done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub take: Option<String>,
    /// What `post` adds and `take` subtracts; 1 if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// `post` waits while the counter holds at least this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// A recorded trace that is replayed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The file: `traces/*.parquet` of an earlier run, or the output of `strace -f -ttt -T`. Every host of the run reads
    /// it under this path.
    pub trace: String,
    /// How much faster than recorded, or `max`.
    #[serde(default)]
    pub speed: ReplaySpeed,
    /// Of a trace of system calls: the directory of the traced machine below which calls are replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// Of a trace of system calls: the directory in which the traced command was started; `root` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What the file must be; made when the study is planned, so that all hosts replay the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub fingerprint: Option<String>,
}

/// The speed of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum ReplaySpeed {
    /// So many times as fast as recorded.
    Times(f64),
    /// A word.
    Word(ReplayWord),
}

/// A speed that is no number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReplayWord {
    /// As fast as possible, in the order of each thread.
    Max,
}

impl Default for ReplaySpeed {
    fn default() -> Self {
        Self::Times(1.0)
    }
}

/// How often nested steps are repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Repeat {
    /// So many times.
    Times(u64),
    /// Until a sequential read or write has reached the end of the handle's file.
    Until(RepeatUntil),
    /// For a time; what is being done when it is over is finished first.
    For(RepeatFor),
}

/// How long a [`Repeat`] goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RepeatFor {
    /// From the start of its first repetition.
    pub duration: TimeSpan,
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(transform = describe_keys)]
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
    /// All files one after the other, dealt out among the workers of each client, so that every client goes through all of
    /// them; starting over at the end. Differs from `next` where the fileset is shared.
    Every,
    /// The file of the worker's last step.
    Same,
    /// Any existing file, the first one most often: file number `n` with a probability in proportion to `1 / n^exponent`.
    Zipf {
        /// More than 0; 1 halves the probability from the first file to the second.
        exponent: f64,
    },
    /// As `next`, of the share that the worker of the same number on the next client has in a shared fileset: what this
    /// client has not cached (mdtest's `-N`).
    Neighbour,
}

/// Where in the file a read or write goes. Random positions are multiples of the I/O size; where that is drawn, of the
/// smallest one of a uniform or weighted distribution, and of 4 KiB with others.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(transform = describe_keys)]
pub enum OffsetPick {
    /// Right after the last one; after the end of the file, from its start again.
    Sequential,
    /// Any position, each equally likely.
    Random,
    /// At the end of the file, which grows.
    Append,
    /// Right before the last one, from the end of the file; after its start, from the end again.
    Reverse,
    /// Any position, some more often: the `n`-th most frequent with a probability in proportion to `1 / n^exponent`. They
    /// are scattered over the file, in the same way for all workers.
    Zipf {
        /// More than 0; 1 halves the probability from the most frequent position to the second.
        exponent: f64,
    },
    /// A random position of the first part of the file, or of the rest.
    Hotspot {
        /// Size of the first part as a share of the file, between 0 and 1.
        share: f64,
        /// Share of the operations that go there, between 0 and 1.
        accesses: f64,
    },
    /// So many bytes after where the last one began; after the end of the file, from its start again.
    Strided {
        /// Bytes from one position to the next.
        stride: ByteSize,
    },
    /// A file that several workers have open is made of segments, each of one block for every worker of the group over all
    /// clients: one worker goes through its blocks one after the other (IOR's `-b` and `-s`).
    Segments {
        /// Size of a block.
        block: ByteSize,
        /// The blocks of the worker so many places further on, instead of its own: what another has written (IOR's `-C`).
        #[serde(default)]
        shift: u32,
    },
    /// This position.
    At(
        /// Bytes from the start of the file.
        ByteSize,
    ),
}

impl OffsetPick {
    /// Whether it is [`Self::Segments`].
    pub fn is_segments(self) -> bool {
        matches!(self, Self::Segments { .. })
    }

    /// Whether one operation after the other comes to the end of the file.
    pub fn advances(self) -> bool {
        matches!(self, Self::Sequential | Self::Reverse | Self::Strided { .. } | Self::Segments { .. })
    }
}

/// Gives the key of an alternative with values the description of the alternative, for readers of the schema.
fn describe_keys(schema: &mut schemars::Schema) {
    let alternatives = schema.get_mut("oneOf").and_then(|all| all.as_array_mut());
    for alternative in alternatives.into_iter().flatten() {
        let Some(description) = alternative.get("description").cloned() else { continue };
        let keys = alternative.get_mut("properties").and_then(|properties| properties.as_object_mut());
        for key in keys.into_iter().flat_map(|keys| keys.values_mut()) {
            if let Some(key) = key.as_object_mut() {
                key.entry("description").or_insert_with(|| description.clone());
            }
        }
    }
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

/// The steps of a flow that do something, those inside others included, in order.
pub fn leaves(flow: &[Step]) -> Box<dyn Iterator<Item = &Step> + '_> {
    Box::new(flow.iter().flat_map(|step| {
        let own = step.op.is_some().then_some(step);
        own.into_iter()
            .chain(leaves(&step.flow))
            .chain(step.choose.iter().flat_map(|choice| leaves(&choice.flow)))
    }))
}
