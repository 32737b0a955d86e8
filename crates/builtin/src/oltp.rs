//! Filebench's OLTP: the files of a database.

use std::time::Duration;

use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::Verify;
use benchmaster_units::{ByteSize, Rate, TimeSpan};

parameters! { pub struct OltpParameters: "Parameters of `oltp`.";
    /// Number of data files per client.
    files: u64 = 10,
    /// Size of each data file.
    file_size: ByteSize = ByteSize::mib(10),
    /// Size of the log.
    log_size: ByteSize = ByteSize::mib(10),
    /// Bytes per read and write of data.
    io_size: ByteSize = ByteSize::kib(2),
    /// Bytes per write of the log.
    log_io_size: ByteSize = ByteSize::kib(256),
    /// Workers per client that read data.
    readers: u32 = 200,
    /// Workers per client that write data.
    writers: u32 = 10,
    /// Time for which a reader thinks after each read.
    think_time: TimeSpan = TimeSpan(Duration::from_micros(200)),
    /// Writes of a data writer in one go.
    writes: u64 = 100,
    /// Reads, by all readers, after which each data writer writes again.
    reads_per_data_write: u64 = 1000,
    /// Reads by which the readers may be ahead of the data writers.
    data_ahead: u64 = 2000,
    /// Reads, by all readers, after which the log is written again.
    reads_per_log_write: u64 = 3200,
    /// Reads by which the readers may be ahead of the log writer.
    log_ahead: u64 = 1000,
    /// O_DIRECT: past the page cache.
    direct: bool = false,
    /// Reads per second over all readers of a client; as fast as possible if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate> = None,
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(60),
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// Stamp every block written and check every block read.
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for OltpParameters {
    fn scale(&mut self, scale: Scale) {
        self.file_size = scale.size(self.file_size, self.io_size);
        self.log_size = scale.size(self.log_size, self.log_io_size);
        self.duration = scale.duration(self.duration);
        self.warm_up = scale.duration(self.warm_up);
    }
}

static TEMPLATE: Template = Template::new(include_str!("oltp.toml"));

pub(super) fn expand(p: &OltpParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: files, readers, writers, writes, reads_per_data_write, reads_per_log_write, duration);
    for (path, io, size) in [("io_size", p.io_size, p.file_size), ("log_io_size", p.log_io_size, p.log_size)]
    {
        checks.positive(path, &io);
        checks.require(
            io <= size,
            path,
            format!("an I/O of {io} does not fit into a file of {size}"),
            "make the file at least one I/O long",
        );
        checks.provable(path, io, p.verify);
        checks.require(
            !p.direct || io.0.is_multiple_of(512),
            path,
            format!("O_DIRECT needs sizes that are multiples of 512 bytes, and `{path}` is {}", io.0),
            "change it, or remove `direct = true`",
        );
    }
    checks.finish()?;
    let data_limit = p.reads_per_data_write.saturating_add(p.data_ahead);
    let derived = json!({
        "rate": p.rate,
        "thinks": p.think_time.nanos() > 0,
        "log_limit": p.reads_per_log_write.saturating_add(p.log_ahead),
        "data_limit": data_limit.saturating_mul(p.writers.into()),
    });
    TEMPLATE.fill(name, p, derived)
}
