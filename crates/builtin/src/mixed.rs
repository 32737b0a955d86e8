//! Reads and writes in a given proportion.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Checks, Expanded, SyncMode, fileset, group, step, sync_flag, sync_step};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Choice, Claim, FilePick, Group, OffsetPick, OpenFlag, OperationKind, Sharing, Size, SizeDistribution,
    Step, Until, WeightedSize, Workload,
};
use benchmaster_units::{ByteSize, Rate, TimeSpan};

/// Parameters of `mixed`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MixedParameters {
    /// Share of the operations that read, from 0 to 1; the others write in place.
    pub reads: f64,
    /// Bytes per read or write: always the same, or drawn for each.
    pub io_size: Size,
    /// Where they go.
    pub offset: OffsetPick,
    /// Size of each file.
    pub file_size: ByteSize,
    /// Number of files per client; one per worker if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Whether clients have files of their own or share one set.
    pub sharing: Sharing,
    /// Workers per client.
    pub workers: u32,
    /// Durability asked for by each write.
    pub sync: SyncMode,
    /// O_DIRECT: past the page cache.
    pub direct: bool,
    /// Open-loop rate in operations per second over all workers of a client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Length of the measured phase.
    pub duration: TimeSpan,
    /// Time for which the workload runs before it is measured.
    pub warm_up: TimeSpan,
    /// Stamp every block written and check every block read.
    pub verify: bool,
    /// Record every call.
    pub trace: bool,
    /// Whether the result is meant to be the storage's or may come from the client's cache.
    pub claims: Claim,
}

impl Default for MixedParameters {
    fn default() -> Self {
        let weighted = |(kib, weight)| WeightedSize { size: ByteSize::kib(kib), weight };
        let sizes = [(4, 6.0), (16, 3.0), (64, 1.0)].map(weighted).to_vec();
        Self {
            reads: 0.7,
            io_size: Size::Distributed(SizeDistribution::Weighted { sizes }),
            offset: OffsetPick::Zipf { exponent: 0.99 },
            file_size: ByteSize::mib(1024),
            files: None,
            sharing: Sharing::Private,
            workers: 8,
            sync: SyncMode::None,
            direct: false,
            rate: None,
            duration: TimeSpan::seconds(60),
            warm_up: TimeSpan::default(),
            verify: false,
            trace: false,
            claims: Claim::Device,
        }
    }
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

pub(super) fn expand(p: &MixedParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("file_size", p.file_size.0);
    checks.at_least_one("files", p.files.unwrap_or(1));
    checks.lasts("duration", p.duration);
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
    let moves = |op| Step { io_size: Some(p.io_size.clone()), offset: Some(p.offset), ..step(op) };
    let read = vec![moves(OperationKind::Read)];
    let mut write = vec![moves(OperationKind::Write)];
    write.extend(sync_step(p.sync));
    let flow = if p.reads >= 1.0 {
        read
    } else if p.reads <= 0.0 {
        write
    } else {
        let choose =
            vec![Choice { weight: p.reads, flow: read }, Choice { weight: 1.0 - p.reads, flow: write }];
        vec![Step { choose, ..Step::default() }]
    };
    let writes = p.reads < 1.0;
    let flags = writes.then_some(OpenFlag::Write).into_iter().chain(sync_flag(p.sync));
    let flags = flags.chain(p.direct.then_some(OpenFlag::Direct)).collect();
    // What was written must reach the server before the run ends, outside the measured phase.
    let teardown = if writes { vec![step(OperationKind::Fsync)] } else { vec![] };
    let files = fileset(p.files.unwrap_or(p.workers.into()), Size::Fixed(p.file_size), p.sharing, true);
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), files)]),
        groups: vec![Group {
            rate: p.rate,
            setup: vec![Step { file: Some(FilePick::Own), flags, ..step(OperationKind::Open) }],
            teardown,
            ..group("mix", p.workers, flow)
        }],
        until: Until { duration: Some(p.duration), ..Until::default() },
        warm_up: p.warm_up,
        verify: p.verify,
        trace: p.trace,
        claims: p.claims,
    })
}
