//! Filebench's Web Server.

use super::Conditions;
use super::common::{Checks, Expanded, filebench};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::Verify;
use benchmaster_units::{ByteSize, Rate, TimeSpan};

parameters! { pub struct WebServerParameters: "Parameters of `web-server`.";
    /// Number of files per client.
    files: u64 = 1000,
    /// Mean size of the files; sizes have a gamma distribution of shape 1.5.
    mean_file_size: ByteSize = ByteSize::kib(16),
    /// Files per directory.
    directory_width: u64 = 20,
    /// Files read for each append to the log.
    reads: u64 = 10,
    /// Bytes per read.
    io_size: ByteSize = ByteSize::mib(1),
    /// Most bytes of an append to the log; sizes from 1 to this are equally likely.
    append_size: ByteSize = ByteSize::kib(16),
    /// Workers per client.
    workers: u32 = 100,
    /// Repetitions of the flow per second over all workers of a client; as fast as possible if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate> = None,
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(60),
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// Check what is read.
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for WebServerParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, self.workers.into());
        self.duration = scale.duration(self.duration);
        self.warm_up = scale.duration(self.warm_up);
    }
}

static TEMPLATE: Template = Template::new(include_str!("web_server.toml"));

pub(super) fn expand(p: &WebServerParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: files, workers, reads, io_size, append_size, mean_file_size, duration);
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let derived = filebench(p.files, p.directory_width, p.rate);
    TEMPLATE.fill(name, p, derived)
}
