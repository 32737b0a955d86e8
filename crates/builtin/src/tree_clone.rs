//! Cloning a repository: many small objects, then the files of a checkout.

use std::collections::BTreeMap;

use super::common::{Checks, Expanded, Use, fileset, group, meet, times};
use super::scale::{Scale, Scaled};
use super::software_build::skewed;
use benchmaster_record::model::{
    Claim, FilePick, Fileset, OpenFlag, OperationKind, Sharing, Size, Until, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

parameters! { pub struct TreeCloneParameters: "Parameters of `tree-clone`.";
    /// Files of the checkout per client, each of one object; rounded up to a multiple of `workers`.
    files: u64 = 70_000,
    /// Their sizes.
    file_size: Size = skewed(ByteSize(4500), 1.4),
    /// Sizes of the objects.
    object_size: Size = skewed(ByteSize(1500), 1.3),
    /// Files in each directory of the checkout.
    directory_width: u64 = 15,
    /// Bytes per read or write.
    io_size: ByteSize = ByteSize::kib(64),
    /// Workers per client.
    workers: u32 = 1,
    /// Stamp every block written and check every block read.
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for TreeCloneParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, self.workers.into());
    }
}

/// Directories of the objects, named by the first two hexadecimal digits of their hashes.
const OBJECT_DIRECTORIES: u64 = 256;

pub(super) fn expand(p: &TreeCloneParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("files", p.files);
    checks.size("file_size", &p.file_size);
    checks.size("object_size", &p.object_size);
    checks.at_least_one("directory_width", p.directory_width);
    checks.at_least_one("io_size", p.io_size.0);
    checks.at_least_one("workers", p.workers.into());
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let workers = u64::from(p.workers);
    let each = p.files.div_ceil(workers);
    let objects = format!("{name}-objects");
    let object = Use { fileset: &objects, purpose: "object" };
    let stored = Use { fileset: &objects, purpose: "stored" };
    let tree = Use { fileset: name, purpose: "file" };
    // An object gets its name when it is whole, and is not to be changed any more.
    let [mut create, write, close] = object.write_file(FilePick::New, p.io_size);
    create.flags.push(OpenFlag::Exclusive);
    let store = vec![
        create,
        write,
        close,
        object.name(OperationKind::Rename, FilePick::Same),
        object.name(OperationKind::Chmod, FilePick::Same),
    ];
    let mut checkout = stored.read_file(FilePick::Once, p.io_size).to_vec();
    let [create, write, close] = tree.write_file(FilePick::New, p.io_size);
    checkout.extend([create, write, tree.on(OperationKind::Fstat), close]);
    // To know later what was changed, the attributes of all files are noted.
    let index = tree.name(OperationKind::Stat, FilePick::Next);
    let flow = vec![
        times(each, store),
        meet("stored"),
        times(each, checkout),
        meet("checked-out"),
        times(each, vec![index]),
    ];
    let number = each * workers;
    let private = |size: &Size| fileset(number, size.clone(), Sharing::Private, false);
    let filesets = BTreeMap::from([
        (
            objects.clone(),
            Fileset { directory_width: number.div_ceil(OBJECT_DIRECTORIES), ..private(&p.object_size) },
        ),
        (name.to_owned(), Fileset { directory_width: p.directory_width, ..private(&p.file_size) }),
    ]);
    Ok(Workload {
        filesets,
        groups: vec![group("clone", p.workers, flow)],
        until: Until { iterations: Some(1), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
