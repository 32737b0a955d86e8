//! Creating files.

use std::collections::BTreeMap;

use super::common::{Checks, Expanded, fileset, group, step, whole_file};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, FilePick, Fileset, OpenFlag, OperationKind, Sharing, Size, Step, Until, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

parameters! { pub struct FileCreationParameters: "Parameters of `file-creation`.";
    /// Files created by each client.
    files: u64 = 100_000,
    /// Size of each file.
    file_size: ByteSize = ByteSize(0),
    /// Bytes per write.
    io_size: ByteSize = ByteSize::kib(64),
    /// Files per directory; 0 puts all files into one directory.
    directory_width: u64 = 0,
    /// Whether clients create in directories of their own or in the same one.
    sharing: Sharing = Sharing::Private,
    /// Workers per client.
    workers: u32 = 1,
    /// Flush every file before it is closed.
    fsync: bool = false,
    /// Stamp every block written, and read and check every file in full afterwards.
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for FileCreationParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, self.workers.into());
    }
}

pub(super) fn expand(p: &FileCreationParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("files", p.files);
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("io_size", p.io_size.0);
    checks.provable("io_size", p.io_size, p.verify && p.io_size < p.file_size);
    checks.provable("file_size", p.file_size, p.verify && p.file_size <= p.io_size);
    checks.finish()?;
    let mut flow = vec![Step {
        file: Some(FilePick::New),
        flags: vec![OpenFlag::Write, OpenFlag::Exclusive],
        ..step(OperationKind::Create)
    }];
    if p.file_size.0 > 0 {
        flow.push(whole_file(OperationKind::Write, p.io_size.min(p.file_size)));
    }
    if p.fsync {
        flow.push(step(OperationKind::Fsync));
    }
    flow.push(step(OperationKind::Close));
    let files = fileset(p.files, Size::Fixed(p.file_size), p.sharing, false);
    let files = Fileset { directory_width: p.directory_width, ..files };
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), files)]),
        groups: vec![group("create", p.workers, flow)],
        until: Until::default(),
        warm_up: TimeSpan::default(),
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Device,
    })
}
