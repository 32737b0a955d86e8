//! All workers of all clients write one file or one each, and read it back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded, SyncMode};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::{Claim, FilePick, OffsetPick, Sharing, Verify};
use benchmaster_units::ByteSize;

/// What `ior` does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IorPhases {
    /// Writes, and when all have written reads.
    #[default]
    WriteRead,
    /// Only writes.
    Write,
    /// Only reads what is there.
    Read,
}

parameters! { pub struct IorParameters: "Parameters of `ior`.";
    /// What is done.
    phases: IorPhases = IorPhases::WriteRead,
    /// Bytes per read or write.
    transfer_size: ByteSize = ByteSize::kib(256),
    /// Bytes that a worker writes one after the other in each segment.
    block_size: ByteSize = ByteSize::mib(1),
    /// How often the blocks of all workers follow each other in the file; in a file of its own a worker writes so many
    /// blocks.
    segments: u64 = 1024,
    /// A file for each worker, instead of one for all workers of all clients.
    file_per_process: bool = false,
    /// Each worker reads what the worker of the same number on the next client wrote: what this client has not cached.
    reorder: bool = false,
    /// Durability asked for by each write.
    sync: SyncMode = SyncMode::None,
    /// Flush what was written before the file is closed.
    fsync: bool = false,
    /// O_DIRECT: past the page cache.
    direct: bool = false,
    /// Name of the fileset, to share files with another workload of the study; the workload's own name if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    fileset: Option<String> = None,
    /// Workers per client: IOR's tasks per node.
    workers: u32 = 4,
    /// Stamp every block written and check every block read.
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
    /// Whether the result is meant to be the storage's or may come from the client's cache.
    claims: Claim = Claim::Device,
}

impl Scaled for IorParameters {
    fn scale(&mut self, scale: Scale) {
        // Where there is one segment, its block is the amount.
        match self.segments {
            1 => self.block_size = scale.size(self.block_size, self.transfer_size),
            segments => self.segments = scale.count(segments, 1),
        }
    }
}

static TEMPLATE: Template = Template::new(include_str!("ior.toml"));

pub(super) fn expand(p: &IorParameters, name: &str, on: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: transfer_size, block_size, segments, workers);
    checks.require(
        p.transfer_size.0 == 0 || p.block_size.0.is_multiple_of(p.transfer_size.0),
        "block_size",
        format!(
            "a `block_size` of {} is not a multiple of a `transfer_size` of {}",
            p.block_size, p.transfer_size
        ),
        "make it one: a block is written in whole transfers",
    );
    let reads_only = p.phases == IorPhases::Read;
    checks.require(
        !reads_only || p.sync == SyncMode::None && !p.fsync,
        if p.fsync { "fsync" } else { "sync" },
        "this is about writes, and `phases = \"read\"` has none",
        "remove it",
    );
    checks.require(
        p.phases != IorPhases::Write || !p.reorder,
        "reorder",
        "`reorder` is about reads, and `phases = \"write\"` has none",
        "remove it",
    );
    checks.direct(p.direct, &[("transfer_size", p.transfer_size), ("block_size", p.block_size)]);
    checks.provable("transfer_size", p.transfer_size, p.verify);
    checks.finish()?;
    let ranks = u64::from(p.workers) * u64::from(on.clients);
    let each = p.block_size.0.saturating_mul(p.segments);
    // In a fileset that all share, a file of one's own is the next one of one's share.
    let (number, size, sharing, pick) = match (p.file_per_process, p.reorder) {
        (false, _) => (1, each.saturating_mul(ranks), Sharing::Shared, FilePick::Own),
        (true, false) => (p.workers.into(), each, Sharing::Private, FilePick::Own),
        (true, true) => (ranks, each, Sharing::Shared, FilePick::Next),
    };
    let place = |shift| {
        if p.file_per_process {
            OffsetPick::Sequential
        } else {
            OffsetPick::Segments { block: p.block_size, shift }
        }
    };
    let derived = json!({
        "files": p.fileset.as_deref().unwrap_or(name),
        "number": number,
        "size": size,
        "sharing": sharing,
        // What another workload is meant to have written is not there before.
        "exist": reads_only && p.fileset.is_none(),
        "pick": pick,
        "read_pick": if p.reorder && p.file_per_process { FilePick::Neighbour } else { pick },
        "transfers": each / p.transfer_size.0,
        "write_offset": place(0),
        "read_offset": place(if p.reorder { p.workers } else { 0 }),
    });
    TEMPLATE.fill(name, p, derived)
}
