//! What the locks inside a client cost when many workers use one file.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::Verify;
use benchmaster_units::{ByteSize, TimeSpan};

/// On which files the workers of `client-locks` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockedFiles {
    /// All workers of a client on one file, each in a part of its own.
    #[default]
    One,
    /// Each worker on a file of its own.
    Own,
}

/// What the workers of `client-locks` do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LockedOperation {
    /// Write in place.
    #[default]
    Write,
    /// Read.
    Read,
    /// Ask for attributes.
    Stat,
}

parameters! { pub struct ClientLocksParameters: "Parameters of `client-locks`.";
    /// All workers on one file, or each on a file of its own.
    files: LockedFiles = LockedFiles::One,
    /// What they do.
    operation: LockedOperation = LockedOperation::Write,
    /// Workers per client.
    workers: u32 = 8,
    /// Bytes per read or write.
    io_size: ByteSize = ByteSize::kib(4),
    /// Bytes that each worker has to itself, in the one file or in its own.
    part_size: ByteSize = ByteSize::mib(64),
    /// Length of the measured phase.
    duration: TimeSpan = TimeSpan::seconds(30),
    /// Time for which the workload runs before it is measured.
    warm_up: TimeSpan = TimeSpan::default(),
    /// Stamp every block written and check every block read.
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for ClientLocksParameters {
    fn scale(&mut self, scale: Scale) {
        self.part_size = scale.size(self.part_size, self.io_size);
        self.duration = scale.duration(self.duration);
        self.warm_up = scale.duration(self.warm_up);
    }
}

static TEMPLATE: Template = Template::new(include_str!("client_locks.toml"));

pub(super) fn expand(p: &ClientLocksParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: workers, io_size, part_size, duration);
    checks.require(
        p.io_size.0 == 0 || p.part_size.0.is_multiple_of(p.io_size.0),
        "part_size",
        format!("a `part_size` of {} is not a multiple of an `io_size` of {}", p.part_size, p.io_size),
        "make it one, so that no two workers write the same bytes at the same time",
    );
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let parts = if p.files == LockedFiles::One { p.workers } else { 1 };
    let derived = json!({
        "size": p.part_size.0.saturating_mul(parts.into()),
        "verify": p.verify.where_data(p.operation != LockedOperation::Stat),
    });
    TEMPLATE.fill(name, p, derived)
}
