//! Building a program from source files.

use std::collections::BTreeMap;

use super::common::{Checks, Expanded, Use, fileset, group, labelled, meet, times};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, FilePick, OperationKind, Sharing, Size, SizeDistribution, Step, Until, Workload,
};
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
    verify: bool = false,
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

pub(super) fn expand(p: &SoftwareBuildParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("sources", p.sources);
    checks.at_least_one("headers", p.headers);
    checks.at_least_one("includes", p.includes);
    checks.at_least_one("io_size", p.io_size.0);
    checks.at_least_one("workers", p.workers.into());
    checks.provable("io_size", p.io_size, p.verify);
    checks.size("source_size", &p.source_size);
    checks.size("header_size", &p.header_size);
    checks.size("object_size", &p.object_size);
    checks.finish()?;
    let workers = u64::from(p.workers);
    let (sources, headers) = (p.sources.div_ceil(workers), p.headers.div_ceil(workers));
    let names = ["sources", "headers", "objects", "programs"].map(|what| format!("{name}-{what}"));
    let [source, header, object, program] = &names;
    let of = |fileset, purpose| Use { fileset, purpose };
    let look = |fileset: &String| Step {
        fileset: Some(fileset.clone()),
        file: Some(FilePick::Next),
        ..labelled(OperationKind::Stat, "look")
    };
    let include = of(header, "include");
    let mut included = vec![include.name(OperationKind::Stat, FilePick::Random)];
    included.extend(include.read_file(FilePick::Same, p.io_size));
    let mut compile = of(source, "source").read_file(FilePick::Once, p.io_size).to_vec();
    compile.push(times(p.includes, included));
    if p.compile_time.nanos() > 0 {
        compile.push(Step { pause: Some(p.compile_time), ..Step::default() });
    }
    let written = of(object, "object");
    compile.extend(written.write_file(FilePick::New, p.io_size));
    // A compiler writes under another name, so that nobody takes half an object for a whole one.
    compile.push(written.name(OperationKind::Rename, FilePick::Same));
    let build = vec![
        times(sources, vec![look(source)]),
        times(headers, vec![look(header)]),
        meet("looked"),
        times(sources, compile),
        meet("compiled"),
    ];
    let mut link = vec![
        meet("compiled"),
        times(sources * workers, of(object, "link").read_file(FilePick::Next, p.io_size).to_vec()),
    ];
    link.extend(of(program, "program").write_file(FilePick::Own, p.io_size));
    let private = |files: u64, size: &Size, exist| fileset(files, size.clone(), Sharing::Private, exist);
    let filesets = BTreeMap::from([
        (source.clone(), private(sources * workers, &p.source_size, true)),
        (header.clone(), private(headers * workers, &p.header_size, true)),
        (object.clone(), private(sources * workers, &p.object_size, false)),
        (program.clone(), private(1, &Size::Fixed(PROGRAM), false)),
    ]);
    Ok(Workload {
        filesets,
        groups: vec![group("build", p.workers, build), group("link", 1, link)],
        until: Until { iterations: Some(1), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Cache,
    })
}

/// What is linked in the end.
const PROGRAM: ByteSize = ByteSize::mib(1);
