//! Unpacking an archive of many small files.

use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::software_build::skewed;
use super::template::Template;
use benchmaster_record::model::{Size, Verify};
use benchmaster_units::ByteSize;

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
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for TreeExtractParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, self.directory_width.saturating_mul(self.workers.into()));
    }
}

static TEMPLATE: Template = Template::new(include_str!("tree_extract.toml"));

pub(super) fn expand(p: &TreeExtractParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: files, file_size, directory_width, io_size, workers);
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let all_width = p.directory_width.saturating_mul(p.workers.into());
    let rounds = p.files.div_ceil(all_width);
    let derived =
        json!({ "all_width": all_width, "rounds": rounds, "number": rounds.saturating_mul(all_width) });
    TEMPLATE.fill(name, p, derived)
}
