//! The latency of sequential writes.

use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded, SyncMode};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::Verify;
use benchmaster_units::ByteSize;

parameters! { pub struct WriteLatencyParameters: "Parameters of `write-latency`, the sequential-write latency benchmark of paper 003.";
    /// Size of the file (the paper sweeps 25 MB to 450 MB).
    file_size: ByteSize = ByteSize(100_000_000),
    /// Bytes per write.
    io_size: ByteSize = ByteSize::kib(8),
    /// Workers per client, each with a file of its own.
    workers: u32 = 1,
    /// Durability asked for by each write.
    sync: SyncMode = SyncMode::None,
    /// Stamp every block written, and check the file afterwards.
    verify: Verify = Verify::Off,
    /// Record every call, as the benchmark is meant to.
    trace: bool = true,
}

impl Scaled for WriteLatencyParameters {
    fn scale(&mut self, scale: Scale) {
        self.file_size = scale.size(self.file_size, self.io_size);
    }
}

static TEMPLATE: Template = Template::new(include_str!("write_latency.toml"));

pub(super) fn expand(p: &WriteLatencyParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: workers, io_size, file_size);
    checks.require(
        !matches!(p.sync, SyncMode::Fsync | SyncMode::Fdatasync),
        "sync",
        "the benchmark flushes once, after all writes",
        "use `sync = \"none\"`, `\"o_sync\"` or `\"o_dsync\"`",
    );
    let io_size = p.io_size.min(p.file_size);
    checks.provable("io_size", io_size, p.verify);
    checks.finish()?;
    TEMPLATE.fill(name, p, json!({ "io_size": io_size }))
}
