//! The latency of sequential writes.

use std::collections::BTreeMap;

use super::common::{Checks, Expanded, SyncMode, group, step, sync_flag, whole_file};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, FilePick, Fileset, Group, OpenFlag, OperationKind, Sharing, Size, Step, Until, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

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
    verify: bool = false,
    /// Record every call, as the benchmark is meant to.
    trace: bool = true,
}

impl Scaled for WriteLatencyParameters {
    fn scale(&mut self, scale: Scale) {
        self.file_size = scale.size(self.file_size, self.io_size);
    }
}

pub(super) fn expand(p: &WriteLatencyParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("io_size", p.io_size.0);
    checks.at_least_one("file_size", p.file_size.0);
    checks.require(
        !matches!(p.sync, SyncMode::Fsync | SyncMode::Fdatasync),
        "sync",
        "the benchmark flushes once, after all writes",
        "use `sync = \"none\"`, `\"o_sync\"` or `\"o_dsync\"`",
    );
    checks.provable("io_size", p.io_size.min(p.file_size), p.verify);
    checks.finish()?;
    let mut flags = vec![OpenFlag::Write, OpenFlag::Truncate];
    flags.extend(sync_flag(p.sync));
    let fileset = Fileset {
        files: p.workers.into(),
        size: Size::Fixed(p.file_size),
        directory_width: 0,
        tree: None,
        sharing: Sharing::Private,
        prefill: 0.0,
    };
    let setup = vec![Step { file: Some(FilePick::Own), flags, ..step(OperationKind::Create) }];
    let flow = vec![
        whole_file(OperationKind::Write, p.io_size.min(p.file_size)),
        step(OperationKind::Fsync),
        step(OperationKind::Close),
    ];
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), fileset)]),
        groups: vec![Group { setup, ..group("write", p.workers, flow) }],
        until: Until { iterations: Some(1), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
