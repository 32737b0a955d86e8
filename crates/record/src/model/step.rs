//! The steps of a flow.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use benchmaster_units::{ByteSize, TimeSpan};

use super::{Beside, OperationKind, Size};

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
