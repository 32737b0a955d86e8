//! How a client puts writes together and in order.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Checks, Expanded, data, fileset, group, step, times};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, FilePick, OffsetPick, OpenFlag, OperationKind, Sharing, Size, Step, Until, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

/// In which order `client-scheduling` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WriteOrder {
    /// From the start to the end.
    #[default]
    Sequential,
    /// From the end to the start.
    Reverse,
    /// At random places; some are written again.
    Random,
    /// With gaps: no two writes are neighbours.
    Strided,
}

parameters! { pub struct ClientSchedulingParameters: "Parameters of `client-scheduling`.";
    /// In which order the file is written.
    order: WriteOrder = WriteOrder::Sequential,
    /// Bytes per write.
    io_size: ByteSize = ByteSize::kib(1),
    /// With `strided`: bytes from the start of one write to the start of the next.
    stride: ByteSize = ByteSize::kib(16),
    /// Size of the file of each worker.
    file_size: ByteSize = ByteSize::mib(256),
    /// Workers per client.
    workers: u32 = 1,
    /// Stamp every block written; what is there in the end is checked.
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for ClientSchedulingParameters {
    fn scale(&mut self, scale: Scale) {
        let unit = if self.order == WriteOrder::Strided { self.stride } else { self.io_size };
        self.file_size = scale.size(self.file_size, unit);
    }
}

pub(super) fn expand(p: &ClientSchedulingParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("io_size", p.io_size.0);
    checks.at_least_one("file_size", p.file_size.0);
    let (offset, distance, path) = match p.order {
        WriteOrder::Sequential => (OffsetPick::Sequential, p.io_size, "file_size"),
        WriteOrder::Reverse => (OffsetPick::Reverse, p.io_size, "file_size"),
        WriteOrder::Random => (OffsetPick::Random, p.io_size, "file_size"),
        WriteOrder::Strided => (OffsetPick::Strided { stride: p.stride }, p.stride, "stride"),
    };
    checks.require(
        p.order != WriteOrder::Strided || p.stride > p.io_size,
        "stride",
        format!("a `stride` of {} leaves no gap between writes of {}", p.stride, p.io_size),
        "make it larger than `io_size`",
    );
    checks.require(
        p.io_size.0 == 0 || distance.0 == 0 || p.file_size.0.is_multiple_of(distance.0),
        path,
        format!("a `file_size` of {} is not a multiple of {distance}", p.file_size),
        "use one size, so that all writes are equal",
    );
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let create = Step {
        file: Some(FilePick::Own),
        flags: vec![OpenFlag::Write, OpenFlag::Truncate],
        ..step(OperationKind::Create)
    };
    let flow = vec![
        create,
        times(p.file_size.0 / distance.0, vec![data(OperationKind::Write, p.io_size, offset)]),
        step(OperationKind::Fsync),
        step(OperationKind::Close),
    ];
    let files = fileset(p.workers.into(), Size::Fixed(p.file_size), Sharing::Private, false);
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), files)]),
        groups: vec![group("write", p.workers, flow)],
        until: Until { iterations: Some(1), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
