//! The built-in workloads: parameters with defaults, and their expansion to the full model.
//!
//! Sizes default to those of the papers the workloads come from; scale them down by parameter, or [all together](Scale).
//! Each workload has a file of its own with its parameters, how they [scale](Scaled), and its expansion; the table
//! below names them all.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use benchmaster_record::model::{OffsetPick, OperationKind, ParameterError, Workload};
use benchmaster_workload::program::Access;

/// Parameters of a workload as a table of documentation, name, type and default: the struct that a study file fills in.
macro_rules! parameters {
    (
        pub struct $name:ident: $doc:literal;
        $($(#[$meta:meta])* $field:ident: $type:ty = $default:expr,)+
    ) => {
        #[doc = $doc]
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            $($(#[$meta])* pub $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }
    };
}

/// Checks that parameters, given by name, are not 0.
macro_rules! positive {
    ($checks:ident, $parameters:ident: $($name:ident),+) => {
        $($checks.positive(stringify!($name), &$parameters.$name);)+
    };
}

mod bonnie;
mod client_cache;
mod client_locks;
mod client_network;
mod client_scheduling;
mod client_structures;
mod common;
mod custom;
mod data;
mod delegation_grant;
mod delegation_recall;
mod file_creation;
mod file_server;
mod ior;
mod locked_read;
mod mail_server;
mod mdtest;
mod metadata;
mod mixed;
mod oltp;
mod postmark;
mod replay;
mod scale;
mod small_file_read;
mod smallfile;
mod software_build;
mod template;
#[cfg(test)]
mod tests;
mod tree_clone;
mod tree_extract;
mod web_server;
mod write_latency;

pub use bonnie::{BonnieColumn, BonnieParameters};
pub use client_cache::ClientCacheParameters;
pub use client_locks::{ClientLocksParameters, LockedFiles, LockedOperation};
pub use client_network::{ClientNetworkParameters, NetworkTest};
pub use client_scheduling::{ClientSchedulingParameters, WriteOrder};
pub use client_structures::{ClientStructuresParameters, PageOrder};
pub use common::SyncMode;
pub use data::DataParameters;
pub use delegation_grant::{DelegationGrantParameters, GrantCase};
pub use delegation_recall::DelegationRecallParameters;
pub use file_creation::FileCreationParameters;
pub use file_server::FileServerParameters;
pub use ior::{IorParameters, IorPhases};
pub use locked_read::LockedReadParameters;
pub use mail_server::MailServerParameters;
pub use mdtest::{MdtestParameters, MdtestPhase};
pub use metadata::MetadataParameters;
pub use mixed::MixedParameters;
pub use oltp::OltpParameters;
pub use postmark::PostmarkParameters;
pub use replay::ReplayParameters;
pub use scale::{Scale, Scaled};
pub use small_file_read::SmallFileReadParameters;
pub use smallfile::{SmallfileOperation, SmallfileParameters};
pub use software_build::SoftwareBuildParameters;
pub use tree_clone::TreeCloneParameters;
pub use tree_extract::TreeExtractParameters;
pub use web_server::WebServerParameters;
pub use write_latency::WriteLatencyParameters;

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

/// What an expansion has to know of the study around the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conditions {
    /// How the target is reached.
    pub access: Access,
    /// How many clients there are: some workloads have files that all clients share, with a part for each.
    pub clients: u32,
}

impl Conditions {
    /// One client.
    pub fn alone(access: Access) -> Self {
        Self { access, clients: 1 }
    }
}

/// The table of built-in workloads: documentation, variant, parameters, the name in `use` (the variant in kebab case),
/// a summary, the origin, and the expansion, which is given parameters, the workload's name in the study, and the
/// [`Conditions`].
macro_rules! built_in {
    ($(
        $(#[doc = $doc:literal])+
        $variant:ident($parameters:ty) = $name:literal, $summary:literal, $source:literal, $expand:expr;
    )+) => {
        /// A workload as a study file writes it: a built-in one with parameters, or one in full.
        #[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
        #[serde(tag = "use", rename_all = "kebab-case")]
        pub enum WorkloadSpec {
            $($(#[doc = $doc])+ $variant($parameters),)+
            /// A workload written in full.
            Custom(Workload),
        }

        /// All names a study's `use` takes.
        pub const BUILT_IN: &[BuiltInInfo] = &[
            $(BuiltInInfo { name: $name, summary: $summary, source: $source },)+
            BuiltInInfo {
                name: "custom",
                summary: "filesets, groups and flow written in full",
                source: "the study file",
            },
        ];

        impl WorkloadSpec {
            /// Reads the parameters of the workload called `name` (the value of `use`) from a table without its `use`
            /// key. `None` when there is no such workload.
            ///
            /// # Errors
            /// Those of the deserializer: unknown keys, wrong types, wrong units.
            pub fn deserialize<'de, D: Deserializer<'de>>(name: &str, table: D) -> Option<Result<Self, D::Error>> {
                Some(match name {
                    $($name => Deserialize::deserialize(table).map(Self::$variant),)+
                    "custom" => Deserialize::deserialize(table).map(Self::Custom),
                    _ => return None,
                })
            }

            /// The name its `use` has.
            pub fn use_name(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => $name,)+
                    Self::Custom(_) => "custom",
                }
            }

            /// The workload in full, under these conditions. `name` is its name in the study, which names its
            /// filesets.
            ///
            /// # Errors
            /// Every contradiction among the parameters.
            pub fn expand_under(
                &self,
                name: &str,
                conditions: Conditions,
            ) -> Result<Workload, Vec<ParameterError>> {
                match self {
                    $(Self::$variant(parameters) => {
                        let expand: fn(&$parameters, &str, Conditions) -> common::Expanded = $expand;
                        expand(parameters, name, conditions)
                    })+
                    Self::Custom(workload) => Ok(workload.clone()),
                }
            }

            /// Makes it smaller (or larger) for another machine.
            pub fn scale(&mut self, scale: Scale) {
                match self {
                    $(Self::$variant(parameters) => parameters.scale(scale),)+
                    Self::Custom(workload) => workload.scale(scale),
                }
            }
        }
    };
}

built_in! {
    /// Read files from start to end, again and again.
    SequentialRead(DataParameters) = "sequential-read",
        "read files from start to end, again and again", "paper 000 section 3",
        |p, name, on| data::expand(p, name, (OperationKind::Read, OffsetPick::Sequential), on.access);
    /// Read at random positions.
    RandomRead(DataParameters) = "random-read", "read at random positions", "paper 000 section 3",
        |p, name, on| data::expand(p, name, (OperationKind::Read, OffsetPick::Random), on.access);
    /// Write files from start to end, again and again.
    SequentialWrite(DataParameters) = "sequential-write",
        "write files from start to end, again and again", "paper 000 section 6",
        |p, name, on| data::expand(p, name, (OperationKind::Write, OffsetPick::Sequential), on.access);
    /// Write in place at random positions.
    RandomWrite(DataParameters) = "random-write", "write in place at random positions", "paper 000 section 6",
        |p, name, on| data::expand(p, name, (OperationKind::Write, OffsetPick::Random), on.access);
    /// Create files of one size as fast as possible.
    FileCreation(FileCreationParameters) = "file-creation",
        "create files of one size as fast as possible", "paper 000 section 6",
        file_creation::expand;
    /// Write one fresh file sequentially, flush it, close it; every call is recorded.
    WriteLatency(WriteLatencyParameters) = "write-latency",
        "write a fresh file, flush and close it, timing every call", "paper 003 section 2",
        write_latency::expand;
    /// Open, read whole and close small files picked at random.
    SmallFileRead(SmallFileReadParameters) = "small-file-read",
        "open, read whole and close small files picked at random", "paper 001 figure 1",
        small_file_read::expand;
    /// Create, stat, rename and unlink files, and list a directory.
    Metadata(MetadataParameters) = "metadata",
        "create, stat, rename and unlink files, list a directory", "in the manner of mdtest",
        metadata::expand;
    /// What a client's way to the network costs.
    ClientNetwork(ClientNetworkParameters) = "client-network",
        "what a client's way to the network costs: one small request, many, large reads and writes",
        "paper 003 section 4.1", client_network::expand;
    /// What a client's caches save.
    ClientCache(ClientCacheParameters) = "client-cache",
        "what a client's caches save: attributes of files read for the first time and again", "paper 003 section 4.1",
        client_cache::expand;
    /// What the locks inside a client cost.
    ClientLocks(ClientLocksParameters) = "client-locks",
        "what the locks inside a client cost: workers on one file or on their own files",
        "paper 003 section 4.1", client_locks::expand;
    /// What a client's bookkeeping costs.
    ClientStructures(ClientStructuresParameters) = "client-structures",
        "what a client's bookkeeping costs as dirty data and open files grow", "paper 003 section 4.1",
        client_structures::expand;
    /// Lock, read whole and unlock small files, again and again.
    LockedRead(LockedReadParameters) = "locked-read",
        "lock, read whole and unlock small files", "paper 000 section 5, paper 001 table 2",
        locked_read::expand;
    /// Create, write, append to, read, remove and stat files.
    FileServer(FileServerParameters) = "file-server",
        "create, write, append to, read, remove and stat files", "Filebench's File Server",
        file_server::expand;
    /// Read ten small files, append to a log.
    WebServer(WebServerParameters) = "web-server",
        "read ten small files, append to a log", "Filebench's Web Server",
        web_server::expand;
    /// Remove, create, append to, flush and read small files.
    MailServer(MailServerParameters) = "mail-server",
        "remove, create, append to, flush and read small files", "Filebench's varmail",
        mail_server::expand;
    /// One column of Bonnie: character-wise and block-wise output and input, rewriting, seeks.
    Bonnie(BonnieParameters) = "bonnie",
        "one column of Bonnie: output, input, rewriting, seeks", "paper 002",
        bonnie::expand;
    /// Some clients hold files open for reading, others open them for writing.
    DelegationRecall(DelegationRecallParameters) = "delegation-recall",
        "open for writing what other clients hold open for reading", "paper 000 section 5",
        delegation_recall::expand;
    /// Open files in ways in which a server does or does not grant delegations.
    DelegationGrant(DelegationGrantParameters) = "delegation-grant",
        "open files so that a delegation is granted, or is not", "paper 000 section 5",
        delegation_grant::expand;
    /// Random reads, with writers of data and log behind them.
    Oltp(OltpParameters) = "oltp",
        "random reads of data, with writers of data and log behind them", "Filebench's OLTP",
        oltp::expand;
    /// Build a program: look at all files, read sources and headers, write and rename objects, link.
    SoftwareBuild(SoftwareBuildParameters) = "software-build",
        "build a program: stat all files, read sources and headers, write and rename objects, link",
        "in the manner of make and a compiler", software_build::expand;
    /// How a client puts writes together and in order.
    ClientScheduling(ClientSchedulingParameters) = "client-scheduling",
        "how a client puts small writes together, in order and out of it", "paper 003 section 4.1",
        client_scheduling::expand;
    /// All workers of all clients write one file in segments, or one file each, and read it back.
    Ior(IorParameters) = "ior", "all workers write one file in segments, or one each, and read it back",
        "in the manner of IOR", ior::expand;
    /// Create, stat, read and remove many files, in phases that all begin together.
    Mdtest(MdtestParameters) = "mdtest",
        "create, stat, read and remove many files, in phases that all begin together", "in the manner of mdtest",
        mdtest::expand;
    /// One of twenty operations on many small files.
    Smallfile(SmallfileParameters) = "smallfile", "one of twenty operations on many small files",
        "in the manner of smallfile", smallfile::expand;
    /// Reads and writes in a given proportion, of several sizes, some places more often.
    Mixed(MixedParameters) = "mixed",
        "reads and writes in a given proportion, of several sizes, at some places more often",
        "in the manner of fio's rwmixread and bssplit", mixed::expand;
    /// Create small files, do transactions on them, delete them.
    Postmark(PostmarkParameters) = "postmark",
        "create small files, read, append to, create and delete some, delete all", "in the manner of PostMark",
        postmark::expand;
    /// Unpack an archive of many small files.
    TreeExtract(TreeExtractParameters) = "tree-extract", "unpack an archive of many small files",
        "in the manner of tar", tree_extract::expand;
    /// Clone a repository: many small objects, then the files of a checkout.
    TreeClone(TreeCloneParameters) = "tree-clone",
        "clone a repository: many small objects, then the files of a checkout", "in the manner of git",
        tree_clone::expand;
    /// Replay a recorded trace.
    Replay(ReplayParameters) = "replay",
        "replay the trace of an earlier run, or of system calls by strace", "a recorded trace",
        replay::expand;
}

impl WorkloadSpec {
    /// The workload in full, of one client, for a target that is reached in this way. `name` is its name in the study.
    ///
    /// # Errors
    /// Every contradiction among the parameters.
    pub fn expand_for(&self, name: &str, access: Access) -> Result<Workload, Vec<ParameterError>> {
        self.expand_under(name, Conditions::alone(access))
    }

    /// The workload in full, of one client. `name` is its name in the study, which names its filesets.
    ///
    /// # Errors
    /// Every contradiction among the parameters.
    pub fn expand(&self, name: &str) -> Result<Workload, Vec<ParameterError>> {
        self.expand_for(name, Access::System)
    }
}
