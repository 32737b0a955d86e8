//! Building a program from source files.

use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::{Size, SizeDistribution, Verify};
use benchmaster_units::{ByteSize, TimeSpan};

parameters! { pub struct SoftwareBuildParameters: "Parameters of `software-build`.";
    /// Source files per client; rounded up to a multiple of `workers`.
    sources: u64 = 2500,
    /// Their sizes.
    source_size: Size = skewed(ByteSize::kib(8), 1.2),
    /// Header files per client; rounded up to a multiple of `workers`.
    headers: u64 = 4000,
    /// Their sizes.
    header_size: Size = skewed(ByteSize::kib(3), 1.2),
    /// Headers that are looked up and read for each source file.
    includes: u64 = 100,
    /// Sizes of the object files, one for each source file.
    object_size: Size = skewed(ByteSize::kib(24), 1.0),
    /// Bytes per read or write.
    io_size: ByteSize = ByteSize::kib(64),
    /// Time that each source file is thought about before its object file is written.
    compile_time: TimeSpan = TimeSpan::default(),
    /// Compilations at a time per client, as `make -j` says.
    workers: u32 = 8,
    /// Stamp every block written and check every block read.
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

/// Sizes of files as they are in source trees: most small, some large.
pub(super) fn skewed(median: ByteSize, sigma: f64) -> Size {
    Size::Distributed(SizeDistribution::LogNormal { median, sigma })
}

impl Scaled for SoftwareBuildParameters {
    fn scale(&mut self, scale: Scale) {
        self.sources = scale.count(self.sources, self.workers.into());
        self.headers = scale.count(self.headers, self.workers.into());
    }
}

static TEMPLATE: Template = Template::new(include_str!("software_build.toml"));

pub(super) fn expand(p: &SoftwareBuildParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: sources, headers, includes, io_size, workers, source_size, header_size, object_size);
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let workers = u64::from(p.workers);
    let (sources, headers) = (p.sources.div_ceil(workers), p.headers.div_ceil(workers));
    let derived = json!({
        "each_sources": sources,
        "each_headers": headers,
        "all_sources": sources * workers,
        "all_headers": headers * workers,
        "compiles": p.compile_time.nanos() > 0,
    });
    TEMPLATE.fill(name, p, derived)
}
