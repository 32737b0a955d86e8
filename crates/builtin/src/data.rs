//! Sequential and random reads and writes.

use serde_json::json;

use super::common::{Checks, Expanded, SyncMode};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::{Claim, IoMethod, OffsetPick, OperationKind, Sharing, Verify};
use benchmaster_units::{ByteSize, Rate, TimeSpan};
use benchmaster_workload::program::Access;

parameters! { pub struct DataParameters: "Parameters of the sequential and random read and write workloads.";
    /// Bytes per read or write.
    io_size: ByteSize = ByteSize::kib(64),
    /// Size of each file.
    file_size: ByteSize = ByteSize(20_000_000_000),
    /// Number of files per client; one per worker if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u64> = None,
    /// Name of the fileset, to share files with another workload of the study; the workload's own name if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    fileset: Option<String> = None,
    /// Whether clients have files of their own or share one set.
    sharing: Sharing = Sharing::Private,
    /// Workers per client.
    workers: u32 = 1,
    /// How reads and writes are issued; means nothing where the target is an `nfs://` URL.
    io: IoMethod = IoMethod::Sync,
    /// Operations each worker keeps outstanding; more than 1 needs `io = "io_uring"` unless the target is an `nfs://` URL.
    queue_depth: u32 = 1,
    /// Durability asked for by each write.
    sync: SyncMode = SyncMode::None,
    /// O_DIRECT: past the page cache. The user-space client has none: unless `cache = "linux"` it changes nothing there.
    direct: bool = false,
    /// Open-loop rate in operations per second over all workers of a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate> = None,
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(60),
    /// Stop a worker earlier, when it has moved so many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<ByteSize> = None,
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// Whether the files exist, filled with data, before the workload starts. Reads need it, unless an earlier workload of
    /// the study writes their `fileset`.
    prefill: bool = true,
    /// Stamp every block written and check every block read.
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
    /// Whether the result is meant to be the storage's or may come from the client's cache.
    claims: Claim = Claim::Device,
}

impl Scaled for DataParameters {
    fn scale(&mut self, scale: Scale) {
        self.file_size = scale.size(self.file_size, self.io_size);
        self.bytes = self.bytes.map(|bytes| scale.size(bytes, self.io_size));
        self.duration = scale.duration(self.duration);
        self.warm_up = scale.duration(self.warm_up);
    }
}

static TEMPLATE: Template = Template::new(include_str!("data.toml"));

/// Reads or writes (`op`) at places that are picked so (`offset`).
pub(super) fn expand(
    p: &DataParameters,
    name: &str,
    (op, offset): (OperationKind, OffsetPick),
    access: Access,
) -> Expanded {
    let writes = op == OperationKind::Write;
    let mut checks = Checks::default();
    positive!(checks, p: workers, queue_depth, io_size, file_size, files, duration);
    checks.fits("io_size", p.io_size, "file_size", p.file_size);
    checks.queue_depth(p.queue_depth, p.io, access);
    checks.require(
        writes || p.sync == SyncMode::None,
        "sync",
        "`sync` is about writes, and this workload only reads",
        "remove it",
    );
    checks.require(
        writes || p.prefill || p.fileset.is_some(),
        "prefill",
        "a read workload needs files to read",
        "remove `prefill = false`, or name the `fileset` that an earlier workload of the study writes",
    );
    checks.require(
        p.queue_depth == 1 || !matches!(p.sync, SyncMode::Fsync | SyncMode::Fdatasync),
        "sync",
        "a flush after every write has no meaning with several writes outstanding",
        "use `sync = \"o_sync\"` or `\"o_dsync\"`, or `queue_depth = 1`",
    );
    checks.direct(p.direct, &[("io_size", p.io_size), ("file_size", p.file_size)]);
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let derived = json!({
        "op": op,
        "open": if writes && !p.prefill { OperationKind::Create } else { OperationKind::Open },
        "offset": offset,
        "files": p.files.unwrap_or(p.workers.into()),
        "fileset": p.fileset.as_deref().unwrap_or(name),
        "rate": p.rate,
        "bytes": p.bytes,
    });
    TEMPLATE.fill(name, p, derived)
}
