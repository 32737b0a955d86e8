//! What a client's caches save.

use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::Verify;
use benchmaster_units::ByteSize;

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
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for ClientCacheParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, 1);
    }
}

static TEMPLATE: Template = Template::new(include_str!("client_cache.toml"));

pub(super) fn expand(p: &ClientCacheParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: files, file_size, io_size, repeats, workers);
    let io_size = p.io_size.min(p.file_size);
    checks.provable("io_size", io_size, p.verify);
    checks.finish()?;
    let derived = json!({ "io_size": io_size, "all_files": p.files * u64::from(p.workers) });
    TEMPLATE.fill(name, p, derived)
}
