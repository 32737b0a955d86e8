//! Reads and writes in a given proportion.

use serde_json::{Value, json};

use super::Conditions;
use super::common::{Checks, Expanded, SyncMode};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::{
    Claim, IoMethod, OffsetPick, OperationKind, Sharing, Size, SizeDistribution, Verify, WeightedSize,
};
use benchmaster_units::{Bandwidth, ByteSize, Rate, TimeSpan};

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
    /// How reads and writes are issued; means nothing where the target is an `nfs://` URL.
    io: IoMethod = IoMethod::Sync,
    /// Operations each worker keeps outstanding; more than 1 needs `io = "io_uring"` unless the target is an `nfs://` URL. Reads
    /// and writes then follow each other in a fixed cycle of 20.
    queue_depth: u32 = 1,
    /// Durability asked for by each write.
    sync: SyncMode = SyncMode::None,
    /// Flush the file after this number of writes of a worker, of a mix on average; 0: never.
    fsync: u32 = 0,
    /// O_DIRECT: past the page cache.
    direct: bool = false,
    /// Open-loop rate in operations per second over all workers of a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Rate> = None,
    /// Open-loop rate in bytes per second of each worker, instead of `rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    bandwidth: Option<Bandwidth> = None,
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(60),
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// Stamp every block written and check every block read.
    verify: Verify = Verify::Off,
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

/// Steps of a mix of which several are outstanding.
const CYCLE: u32 = 20;

pub(super) fn expand(p: &MixedParameters, name: &str, conditions: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: workers, queue_depth, file_size, files, duration);
    checks.queue_depth(p.queue_depth, p.io, conditions.access);
    let flushes = p.fsync > 0 || matches!(p.sync, SyncMode::Fsync | SyncMode::Fdatasync);
    checks.require(
        p.queue_depth == 1 || p.reads >= 1.0 || !flushes,
        if p.fsync > 0 { "fsync" } else { "sync" },
        "a flush between writes has no meaning with several writes outstanding",
        "use `sync = \"o_sync\"` or `\"o_dsync\"`, or `queue_depth = 1`",
    );
    checks.require(
        p.rate.is_none() || p.bandwidth.is_none(),
        "bandwidth",
        "`rate` and `bandwidth` both set how fast operations start",
        "keep one of them",
    );
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
    let (flow, operations) = flow(p);
    let of_all = |bandwidth: Bandwidth| Rate(bandwidth.0 * f64::from(p.workers) / p.io_size.mean());
    let rate = p.rate.or(p.bandwidth.map(of_all)).map(|rate| Rate(rate.0 / operations));
    let derived =
        json!({ "mix": mix, "flow": flow, "files": p.files.unwrap_or(p.workers.into()), "rate": rate });
    TEMPLATE.fill(name, p, derived)
}

/// The steps, and the reads and writes of one repetition.
fn flow(p: &MixedParameters) -> (Vec<Value>, f64) {
    let transfer = |op: OperationKind| json!({ "op": op, "io_size": p.io_size, "offset": p.offset });
    let read = vec![transfer(OperationKind::Read)];
    let mut write = vec![transfer(OperationKind::Write)];
    match p.sync {
        SyncMode::Fsync | SyncMode::Fdatasync => write.push(json!({ "op": p.sync })),
        SyncMode::None | SyncMode::OSync | SyncMode::ODsync => {}
    }
    let (mut flow, mut operations) = match p.reads {
        reads if reads >= 1.0 => return (read, 1.0),
        reads if reads <= 0.0 => (write, 1.0),
        reads if p.queue_depth > 1 => {
            let reads = (reads * f64::from(CYCLE)).round().clamp(1.0, f64::from(CYCLE) - 1.0) as u32;
            let is_read = |step: u32| (step + 1) * reads / CYCLE > step * reads / CYCLE;
            let steps = (0..CYCLE).flat_map(|step| if is_read(step) { &read } else { &write });
            (steps.cloned().collect(), f64::from(CYCLE))
        }
        reads => {
            let choice = |weight: f64, flow: Vec<Value>| json!({ "weight": weight, "flow": flow });
            (vec![json!({ "choose": [choice(reads, read), choice(1.0 - reads, write)] })], 1.0)
        }
    };
    if p.fsync > 0 {
        let every = (f64::from(p.fsync) / (1.0 - p.reads)).round().max(1.0);
        if every > 1.0 {
            flow = vec![json!({ "repeat": every as u64, "flow": flow })];
        }
        flow.push(json!({ "op": OperationKind::Fsync }));
        operations *= every;
    }
    (flow, operations)
}
