//! Unpacking an archive of many small files.

use std::collections::BTreeMap;

use super::common::{Checks, Expanded, Use, fileset, group, times};
use super::scale::{Scale, Scaled};
use super::software_build::skewed;
use benchmaster_record::model::{
    Claim, FilePick, Fileset, OpenFlag, OperationKind, Sharing, Size, Until, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

parameters! { pub struct TreeExtractParameters: "Parameters of `tree-extract`.";
    /// Files per client; rounded up so that each worker fills whole directories.
    files: u64 = 70_000,
    /// Their sizes.
    file_size: Size = skewed(ByteSize(4500), 1.4),
    /// Files in each directory.
    directory_width: u64 = 15,
    /// Bytes per write.
    io_size: ByteSize = ByteSize::kib(64),
    /// Workers per client; tar is one.
    workers: u32 = 1,
    /// Stamp every block written; what is there in the end is checked.
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for TreeExtractParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, self.directory_width.saturating_mul(self.workers.into()));
    }
}

pub(super) fn expand(p: &TreeExtractParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("files", p.files);
    checks.size("file_size", &p.file_size);
    checks.at_least_one("directory_width", p.directory_width);
    checks.at_least_one("io_size", p.io_size.0);
    checks.at_least_one("workers", p.workers.into());
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let workers = u64::from(p.workers);
    let rounds = p.files.div_ceil(p.directory_width.saturating_mul(workers));
    let files = Use { fileset: name, purpose: "" };
    let [mut create, write, close] = files.write_file(FilePick::Next, p.io_size);
    create.flags.push(OpenFlag::Exclusive);
    let unpack = vec![
        create,
        write,
        close,
        files.name(OperationKind::Utimes, FilePick::Same),
        files.name(OperationKind::Chmod, FilePick::Same),
    ];
    let flow = vec![times(p.directory_width, unpack), files.name(OperationKind::Mkdir, FilePick::Same)];
    let number = rounds.saturating_mul(p.directory_width).saturating_mul(workers);
    let private = fileset(number, p.file_size.clone(), Sharing::Private, false);
    Ok(Workload {
        filesets: BTreeMap::from([(
            name.to_owned(),
            Fileset { directory_width: p.directory_width.saturating_mul(workers), ..private },
        )]),
        groups: vec![group("extract", p.workers, flow)],
        until: Until { iterations: Some(rounds), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
