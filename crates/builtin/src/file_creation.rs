//! Creating files.

use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::{Sharing, Verify};
use benchmaster_units::ByteSize;

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
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for FileCreationParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, self.workers.into());
    }
}

static TEMPLATE: Template = Template::new(include_str!("file_creation.toml"));

pub(super) fn expand(p: &FileCreationParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: files, workers, io_size);
    let path = if p.io_size < p.file_size { "io_size" } else { "file_size" };
    let io_size = p.io_size.min(p.file_size);
    checks.provable(path, io_size, p.verify);
    checks.finish()?;
    let derived = json!({ "io_size": io_size, "has_data": p.file_size.0 > 0 });
    TEMPLATE.fill(name, p, derived)
}
