//! What a client's caches save.

use std::collections::BTreeMap;

use super::common::{Checks, Expanded, Use, fileset, group, times};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{Claim, FilePick, OperationKind, Sharing, Size, Until, Workload};
use benchmaster_units::{ByteSize, TimeSpan};

parameters! { pub struct ClientCacheParameters: "Parameters of `client-cache`.";
    /// Files of each worker.
    files: u64 = 1000,
    /// Size of each file.
    file_size: ByteSize = ByteSize::kib(256),
    /// Bytes per read.
    io_size: ByteSize = ByteSize::kib(64),
    /// How often each file is looked at again after the first time.
    repeats: u64 = 10,
    /// Workers per client.
    workers: u32 = 1,
    /// Check every block read.
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for ClientCacheParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, 1);
    }
}

pub(super) fn expand(p: &ClientCacheParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("files", p.files);
    checks.at_least_one("file_size", p.file_size.0);
    checks.at_least_one("io_size", p.io_size.0);
    checks.at_least_one("repeats", p.repeats);
    checks.at_least_one("workers", p.workers.into());
    checks.provable("io_size", p.io_size.min(p.file_size), p.verify);
    checks.finish()?;
    let visit = |pick: FilePick, purpose: &str| {
        let files = Use { fileset: name, purpose };
        let mut steps = vec![files.name(OperationKind::Stat, pick)];
        steps.extend(files.read_file(FilePick::Same, p.io_size.min(p.file_size)));
        steps
    };
    let mut flow = visit(FilePick::Next, "first");
    flow.push(times(p.repeats, visit(FilePick::Same, "again")));
    let files = p.files * u64::from(p.workers);
    let files = fileset(files, Size::Fixed(p.file_size), Sharing::Private, true);
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), files)]),
        groups: vec![group("cache", p.workers, flow)],
        until: Until { iterations: Some(p.files), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
