//! Reading small files.

use std::collections::BTreeMap;

use super::common::{Checks, Expanded, WHOLE_READ, fileset, group, step, whole_file};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, FilePick, Fileset, OperationKind, Sharing, Size, Step, Until, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

parameters! { pub struct SmallFileReadParameters: "Parameters of `small-file-read`.";
    /// Number of files per client.
    files: u64 = 10_000,
    /// Size of each file.
    file_size: ByteSize = ByteSize::kib(4),
    /// Files per directory; 0 puts all files into one directory.
    directory_width: u64 = 1000,
    /// Whether clients have files of their own or share one set.
    sharing: Sharing = Sharing::Private,
    /// Workers per client.
    workers: u32 = 16,
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(60),
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// Check every block read.
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
    /// Whether the result is meant to be the storage's or may come from the client's cache.
    claims: Claim = Claim::Device,
}

impl Scaled for SmallFileReadParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, self.workers.into());
        self.duration = scale.duration(self.duration);
        self.warm_up = scale.duration(self.warm_up);
    }
}

pub(super) fn expand(p: &SmallFileReadParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("files", p.files);
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("file_size", p.file_size.0);
    checks.require(p.duration.nanos() > 0, "duration", "`duration` is 0", "give the measured phase a length");
    checks.provable("file_size", p.file_size.min(WHOLE_READ), p.verify);
    checks.finish()?;
    let flow = vec![
        Step { file: Some(FilePick::Random), ..step(OperationKind::Open) },
        whole_file(OperationKind::Read, p.file_size.min(WHOLE_READ)),
        step(OperationKind::Close),
    ];
    let files = fileset(p.files, Size::Fixed(p.file_size), p.sharing, true);
    let files = Fileset { directory_width: p.directory_width, ..files };
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), files)]),
        groups: vec![group("read", p.workers, flow)],
        until: Until { duration: Some(p.duration), ..Until::default() },
        warm_up: p.warm_up,
        verify: p.verify,
        trace: p.trace,
        claims: p.claims,
    })
}
