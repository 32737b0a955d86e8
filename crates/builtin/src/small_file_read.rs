//! Reading small files.

use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded, WHOLE_READ};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::{Claim, Sharing, Verify};
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
    verify: Verify = Verify::Off,
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

static TEMPLATE: Template = Template::new(include_str!("small_file_read.toml"));

pub(super) fn expand(p: &SmallFileReadParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: files, workers, file_size, duration);
    let io_size = p.file_size.min(WHOLE_READ);
    checks.provable("file_size", io_size, p.verify);
    checks.finish()?;
    TEMPLATE.fill(name, p, json!({ "io_size": io_size }))
}
