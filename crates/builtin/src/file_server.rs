//! Filebench's File Server.

use super::Conditions;
use super::common::{Checks, Expanded, FILES_PER_WORKER, filebench};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::Verify;
use benchmaster_units::{ByteSize, Rate, TimeSpan};

parameters! { pub struct FileServerParameters: "Parameters of `file-server`.";
    /// Number of files per client; four fifths of them are there when it begins.
    files: u64 = 10_000,
    /// Mean size of the files; sizes have a gamma distribution of shape 1.5.
    mean_file_size: ByteSize = ByteSize::kib(128),
    /// Files per directory.
    directory_width: u64 = 20,
    /// Bytes per read and write of whole files.
    io_size: ByteSize = ByteSize::mib(1),
    /// Most bytes of an append; sizes from 1 to this are equally likely.
    append_size: ByteSize = ByteSize::kib(16),
    /// Workers per client.
    workers: u32 = 50,
    /// Repetitions of the flow per second over all workers of a client; as fast as possible if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate> = None,
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(60),
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// Stamp files that are written whole and check what is read of them; what is appended is not checked.
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for FileServerParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, FILES_PER_WORKER * u64::from(self.workers));
        self.duration = scale.duration(self.duration);
        self.warm_up = scale.duration(self.warm_up);
    }
}

static TEMPLATE: Template = Template::new(include_str!("file_server.toml"));

pub(super) fn expand(p: &FileServerParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: workers, io_size, append_size, mean_file_size, duration);
    checks.enough_files(p.files, p.workers, "create one before they remove one");
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let derived = filebench(p.files, p.directory_width, p.rate);
    TEMPLATE.fill(name, p, derived)
}
