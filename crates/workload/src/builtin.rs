//! The built-in workloads: parameters with defaults, and their expansion to the full model.
//!
//! Sizes default to those of the papers the workloads come from; scale them down by parameter.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::model::{Claim, IoMethod, OffsetPick, OperationKind, ParameterError, Sharing, Workload};
use benchmaster_units::{ByteSize, Rate, TimeSpan};

mod expand;

/// A workload as a study file writes it: a built-in one with parameters, or one in full.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "use", rename_all = "kebab-case")]
pub enum WorkloadSpec {
    /// Read files from start to end, again and again.
    SequentialRead(DataParameters),
    /// Read at random positions.
    RandomRead(DataParameters),
    /// Write files from start to end, again and again.
    SequentialWrite(DataParameters),
    /// Write in place at random positions.
    RandomWrite(DataParameters),
    /// Create files of one size as fast as possible.
    FileCreation(FileCreationParameters),
    /// Write one fresh file sequentially, flush it, close it; every call is recorded.
    WriteLatency(WriteLatencyParameters),
    /// Open, read whole and close small files picked at random.
    SmallFileRead(SmallFileReadParameters),
    /// Create, stat, rename and unlink files, and list a directory.
    Metadata(MetadataParameters),
    /// A workload written in full.
    Custom(Workload),
}

/// Name, one-line description and origin of a built-in workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BuiltInInfo {
    /// The name a study's `use` takes.
    pub name: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// All names a study's `use` takes.
pub const BUILT_IN: [BuiltInInfo; 9] = [
    BuiltInInfo {
        name: "sequential-read",
        summary: "read files from start to end, again and again",
        source: "paper 000 section 3",
    },
    BuiltInInfo { name: "random-read", summary: "read at random positions", source: "paper 000 section 3" },
    BuiltInInfo {
        name: "sequential-write",
        summary: "write files from start to end, again and again",
        source: "paper 000 section 6",
    },
    BuiltInInfo {
        name: "random-write",
        summary: "write in place at random positions",
        source: "paper 000 section 6",
    },
    BuiltInInfo {
        name: "file-creation",
        summary: "create files of one size as fast as possible",
        source: "paper 000 section 6",
    },
    BuiltInInfo {
        name: "write-latency",
        summary: "write a fresh file, flush and close it, timing every call",
        source: "paper 003 section 2",
    },
    BuiltInInfo {
        name: "small-file-read",
        summary: "open, read whole and close small files picked at random",
        source: "paper 001 figure 1",
    },
    BuiltInInfo {
        name: "metadata",
        summary: "create, stat, rename and unlink files, list a directory",
        source: "in the manner of mdtest",
    },
    BuiltInInfo {
        name: "custom",
        summary: "filesets, groups and flow written in full",
        source: "the study file",
    },
];

/// Durability asked for by each write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncMode {
    /// None: data may stay in the client's cache.
    #[default]
    None,
    /// O_SYNC.
    OSync,
    /// O_DSYNC.
    ODsync,
    /// `fsync` after every write.
    Fsync,
    /// `fdatasync` after every write.
    Fdatasync,
}

/// Parameters of the sequential and random read and write workloads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DataParameters {
    /// Bytes per read or write.
    pub io_size: ByteSize,
    /// Size of each file.
    pub file_size: ByteSize,
    /// Number of files per client; one per worker if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Name of the fileset, to share files with another workload of the study; the workload's own name if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fileset: Option<String>,
    /// Whether clients have files of their own or share one set.
    pub sharing: Sharing,
    /// Workers per client.
    pub workers: u32,
    /// How reads and writes are issued.
    pub io: IoMethod,
    /// Operations each worker keeps outstanding; more than 1 needs `io = "io_uring"`.
    pub queue_depth: u32,
    /// Durability asked for by each write.
    pub sync: SyncMode,
    /// O_DIRECT: past the page cache.
    pub direct: bool,
    /// Open-loop rate in operations per second over all workers of a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Length of the measured phase.
    pub duration: TimeSpan,
    /// Stop a worker earlier, when it has moved so many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<ByteSize>,
    /// Time for which the workload runs before it is measured.
    pub warm_up: TimeSpan,
    /// Whether the files exist, filled with data, before the workload starts (reads need it).
    pub prefill: bool,
    /// Stamp every block written and check every block read.
    pub verify: bool,
    /// Record every call.
    pub trace: bool,
    /// Whether the result is meant to be the storage's or may come from the client's cache.
    pub claims: Claim,
}

impl Default for DataParameters {
    fn default() -> Self {
        Self {
            io_size: ByteSize::kib(64),
            file_size: ByteSize(20_000_000_000),
            files: None,
            fileset: None,
            sharing: Sharing::Private,
            workers: 1,
            io: IoMethod::Sync,
            queue_depth: 1,
            sync: SyncMode::None,
            direct: false,
            rate: None,
            duration: TimeSpan::seconds(60),
            bytes: None,
            warm_up: TimeSpan::default(),
            prefill: true,
            verify: false,
            trace: false,
            claims: Claim::Device,
        }
    }
}

/// Parameters of `file-creation`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FileCreationParameters {
    /// Files created by each client.
    pub files: u64,
    /// Size of each file.
    pub file_size: ByteSize,
    /// Bytes per write.
    pub io_size: ByteSize,
    /// Files per directory; 0 puts all files into one directory.
    pub directory_width: u64,
    /// Whether clients create in directories of their own or in the same one.
    pub sharing: Sharing,
    /// Workers per client.
    pub workers: u32,
    /// Flush every file before it is closed.
    pub fsync: bool,
    /// Record every call.
    pub trace: bool,
}

impl Default for FileCreationParameters {
    fn default() -> Self {
        Self {
            files: 100_000,
            file_size: ByteSize(0),
            io_size: ByteSize::kib(64),
            directory_width: 0,
            sharing: Sharing::Private,
            workers: 1,
            fsync: false,
            trace: false,
        }
    }
}

/// Parameters of `write-latency`, the sequential-write latency benchmark of paper 003.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WriteLatencyParameters {
    /// Size of the file (the paper sweeps 25 MB to 450 MB).
    pub file_size: ByteSize,
    /// Bytes per write.
    pub io_size: ByteSize,
    /// Workers per client, each with a file of its own.
    pub workers: u32,
    /// Durability asked for by each write.
    pub sync: SyncMode,
    /// Record every call, as the benchmark is meant to.
    pub trace: bool,
}

impl Default for WriteLatencyParameters {
    fn default() -> Self {
        Self {
            file_size: ByteSize(100_000_000),
            io_size: ByteSize::kib(8),
            workers: 1,
            sync: SyncMode::None,
            trace: true,
        }
    }
}

/// Parameters of `small-file-read`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SmallFileReadParameters {
    /// Number of files per client.
    pub files: u64,
    /// Size of each file.
    pub file_size: ByteSize,
    /// Files per directory; 0 puts all files into one directory.
    pub directory_width: u64,
    /// Whether clients have files of their own or share one set.
    pub sharing: Sharing,
    /// Workers per client.
    pub workers: u32,
    /// Length of the measured phase.
    pub duration: TimeSpan,
    /// Time for which the workload runs before it is measured.
    pub warm_up: TimeSpan,
    /// Check every block read.
    pub verify: bool,
    /// Record every call.
    pub trace: bool,
    /// Whether the result is meant to be the storage's or may come from the client's cache.
    pub claims: Claim,
}

impl Default for SmallFileReadParameters {
    fn default() -> Self {
        Self {
            files: 10_000,
            file_size: ByteSize::kib(4),
            directory_width: 1000,
            sharing: Sharing::Private,
            workers: 16,
            duration: TimeSpan::seconds(60),
            warm_up: TimeSpan::default(),
            verify: false,
            trace: false,
            claims: Claim::Device,
        }
    }
}

/// Parameters of `metadata`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MetadataParameters {
    /// Workers per client.
    pub workers: u32,
    /// Entries of the directory that is listed once per round.
    pub directory_entries: u64,
    /// Length of the measured phase.
    pub duration: TimeSpan,
    /// Time for which the workload runs before it is measured.
    pub warm_up: TimeSpan,
    /// Record every call.
    pub trace: bool,
}

impl Default for MetadataParameters {
    fn default() -> Self {
        Self {
            workers: 1,
            directory_entries: 100,
            duration: TimeSpan::seconds(60),
            warm_up: TimeSpan::default(),
            trace: false,
        }
    }
}

impl WorkloadSpec {
    /// Reads the parameters of the workload called `name` (the value of `use`) from a table without its `use` key.
    /// `None` when there is no such workload.
    ///
    /// # Errors
    /// Those of the deserializer: unknown keys, wrong types, wrong units.
    pub fn deserialize<'de, D: Deserializer<'de>>(name: &str, table: D) -> Option<Result<Self, D::Error>> {
        Some(match name {
            "sequential-read" => Deserialize::deserialize(table).map(Self::SequentialRead),
            "random-read" => Deserialize::deserialize(table).map(Self::RandomRead),
            "sequential-write" => Deserialize::deserialize(table).map(Self::SequentialWrite),
            "random-write" => Deserialize::deserialize(table).map(Self::RandomWrite),
            "file-creation" => Deserialize::deserialize(table).map(Self::FileCreation),
            "write-latency" => Deserialize::deserialize(table).map(Self::WriteLatency),
            "small-file-read" => Deserialize::deserialize(table).map(Self::SmallFileRead),
            "metadata" => Deserialize::deserialize(table).map(Self::Metadata),
            "custom" => Deserialize::deserialize(table).map(Self::Custom),
            _ => return None,
        })
    }

    /// The name its `use` has.
    pub fn use_name(&self) -> &'static str {
        match self {
            Self::SequentialRead(_) => "sequential-read",
            Self::RandomRead(_) => "random-read",
            Self::SequentialWrite(_) => "sequential-write",
            Self::RandomWrite(_) => "random-write",
            Self::FileCreation(_) => "file-creation",
            Self::WriteLatency(_) => "write-latency",
            Self::SmallFileRead(_) => "small-file-read",
            Self::Metadata(_) => "metadata",
            Self::Custom(_) => "custom",
        }
    }

    /// The workload in full. `name` is its name in the study, which names its filesets.
    ///
    /// # Errors
    /// Every contradiction among the parameters.
    pub fn expand(&self, name: &str) -> Result<Workload, Vec<ParameterError>> {
        use OffsetPick::{Random, Sequential};
        use OperationKind::{Read, Write};
        match self {
            Self::SequentialRead(p) => expand::data(p, name, Read, Sequential),
            Self::RandomRead(p) => expand::data(p, name, Read, Random),
            Self::SequentialWrite(p) => expand::data(p, name, Write, Sequential),
            Self::RandomWrite(p) => expand::data(p, name, Write, Random),
            Self::FileCreation(p) => expand::file_creation(p, name),
            Self::WriteLatency(p) => expand::write_latency(p, name),
            Self::SmallFileRead(p) => expand::small_file_read(p, name),
            Self::Metadata(p) => expand::metadata(p, name),
            Self::Custom(workload) => Ok(workload.clone()),
        }
    }
}
