//! How a client puts writes together and in order.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::Verify;
use benchmaster_units::ByteSize;

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
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for ClientSchedulingParameters {
    fn scale(&mut self, scale: Scale) {
        let unit = if self.order == WriteOrder::Strided { self.stride } else { self.io_size };
        self.file_size = scale.size(self.file_size, unit);
    }
}

static TEMPLATE: Template = Template::new(include_str!("client_scheduling.toml"));

pub(super) fn expand(p: &ClientSchedulingParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: workers, io_size, file_size);
    let strided = p.order == WriteOrder::Strided;
    let (distance, path) = if strided { (p.stride, "stride") } else { (p.io_size, "file_size") };
    checks.require(
        !strided || p.stride > p.io_size,
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
    TEMPLATE.fill(name, p, json!({ "number": p.file_size.0 / distance.0 }))
}
