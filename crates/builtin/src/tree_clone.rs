//! Cloning a repository: many small objects, then the files of a checkout.

use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::software_build::skewed;
use super::template::Template;
use benchmaster_record::model::{Size, Verify};
use benchmaster_units::ByteSize;

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
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for TreeCloneParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, self.workers.into());
    }
}

/// Objects are spread over directories by the first byte of their hash.
const OBJECT_DIRECTORIES: u64 = 256;

static TEMPLATE: Template = Template::new(include_str!("tree_clone.toml"));

pub(super) fn expand(p: &TreeCloneParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: files, file_size, object_size, directory_width, io_size, workers);
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let workers = u64::from(p.workers);
    let each = p.files.div_ceil(workers);
    let number = each * workers;
    let derived =
        json!({ "each": each, "number": number, "objects_width": number.div_ceil(OBJECT_DIRECTORIES) });
    TEMPLATE.fill(name, p, derived)
}
