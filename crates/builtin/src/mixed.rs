//! Reads and writes in a given proportion.

use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded, SyncMode};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::{Claim, OffsetPick, Sharing, Size, SizeDistribution, WeightedSize};
use benchmaster_units::{ByteSize, Rate, TimeSpan};

parameters! { pub struct MixedParameters: "Parameters of `mixed`.";
    /// Share of the operations that read, from 0 to 1; the others write in place.
    reads: f64 = 0.7,
    /// Bytes per read or write: always the same, or drawn for each.
    io_size: Size = mostly_small(),
    /// Where they go.
    offset: OffsetPick = OffsetPick::Zipf { exponent: 0.99 },
    /// Size of each file.
    file_size: ByteSize = ByteSize::mib(1024),
    /// Number of files per client; one per worker if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<u64> = None,
    /// Whether clients have files of their own or share one set.
    sharing: Sharing = Sharing::Private,
    /// Workers per client.
    workers: u32 = 8,
    /// Durability asked for by each write.
    sync: SyncMode = SyncMode::None,
    /// O_DIRECT: past the page cache.
    direct: bool = false,
    /// Open-loop rate in operations per second over all workers of a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate> = None,
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(60),
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// Stamp every block written and check every block read.
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
    /// Whether the result is meant to be the storage's or may come from the client's cache.
    claims: Claim = Claim::Device,
}

/// Many small transfers, and few large ones.
fn mostly_small() -> Size {
    let weighted = |(kib, weight)| WeightedSize { size: ByteSize::kib(kib), weight };
    let sizes = [(4, 6.0), (16, 3.0), (64, 1.0)].map(weighted).to_vec();
    Size::Distributed(SizeDistribution::Weighted { sizes })
}

impl Scaled for MixedParameters {
    fn scale(&mut self, scale: Scale) {
        self.file_size = scale.size(self.file_size, largest(&self.io_size));
        self.duration = scale.duration(self.duration);
        self.warm_up = scale.duration(self.warm_up);
    }
}

/// The largest size, or what stands for it.
fn largest(size: &Size) -> ByteSize {
    match size {
        Size::Fixed(size) => *size,
        Size::Distributed(SizeDistribution::Uniform { max, .. }) => *max,
        Size::Distributed(SizeDistribution::Weighted { sizes }) => {
            sizes.iter().map(|each| each.size).max().unwrap_or_default()
        }
        other => ByteSize(other.mean().ceil() as u64),
    }
}

static TEMPLATE: Template = Template::new(include_str!("mixed.toml"));

pub(super) fn expand(p: &MixedParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: workers, file_size, files, duration);
    let message = format!("`reads` is a share of the operations, and {} is not", p.reads);
    checks.require((0.0..=1.0).contains(&p.reads), "reads", message, "write a number from 0 to 1");
    checks.require(
        p.reads < 1.0 || p.sync == SyncMode::None,
        "sync",
        "`sync` is about writes, and with `reads = 1` there are none",
        "remove it",
    );
    checks.drawn("io_size", &p.io_size, p.verify);
    checks.fits("io_size", largest(&p.io_size), "file_size", p.file_size);
    checks
        .direct(p.direct, &[("file_size", p.file_size), ("io_size", p.io_size.fixed().unwrap_or_default())]);
    checks.require(
        !matches!(p.offset, OffsetPick::Append | OffsetPick::Segments { .. }),
        "offset",
        "this pick is for files that only one worker writes, or that only grow",
        "use \"random\", \"sequential\", `{ zipf = { exponent = 0.99 } }` or `{ hotspot = { share = 0.1, accesses = 0.9 } }`",
    );
    checks.finish()?;
    let mix = match p.reads {
        reads if reads >= 1.0 => "read",
        reads if reads <= 0.0 => "write",
        _ => "both",
    };
    let derived = json!({
        "mix": mix,
        "writes": 1.0 - p.reads,
        "files": p.files.unwrap_or(p.workers.into()),
        "rate": p.rate,
    });
    TEMPLATE.fill(name, p, derived)
}
