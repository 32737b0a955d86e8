//! What the locks inside a client cost when many workers use one file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Checks, Expanded, data, fileset, group, step};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, FilePick, Group, OffsetPick, OpenFlag, OperationKind, Sharing, Size, Step, Until, Workload,
};
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
    verify: bool = false,
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

pub(super) fn expand(p: &ClientLocksParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("io_size", p.io_size.0);
    checks.at_least_one("part_size", p.part_size.0);
    checks.lasts("duration", p.duration);
    checks.require(
        p.io_size.0 == 0 || p.part_size.0.is_multiple_of(p.io_size.0),
        "part_size",
        format!("a `part_size` of {} is not a multiple of an `io_size` of {}", p.part_size, p.io_size),
        "make it one, so that no two workers write the same bytes at the same time",
    );
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let (files, size) = match p.files {
        LockedFiles::One => (1, p.part_size.0.saturating_mul(p.workers.into())),
        LockedFiles::Own => (p.workers.into(), p.part_size.0),
    };
    let (flags, flow) = match p.operation {
        LockedOperation::Write => {
            (vec![OpenFlag::Write], data(OperationKind::Write, p.io_size, OffsetPick::Sequential))
        }
        LockedOperation::Read => (vec![], data(OperationKind::Read, p.io_size, OffsetPick::Sequential)),
        LockedOperation::Stat => (vec![], Step { file: Some(FilePick::Own), ..step(OperationKind::Stat) }),
    };
    let open = Step { file: Some(FilePick::Own), flags, ..step(OperationKind::Open) };
    // What was written must reach the server before the run ends, outside the measured phase.
    let teardown = match p.operation {
        LockedOperation::Write => vec![step(OperationKind::Fsync)],
        LockedOperation::Read | LockedOperation::Stat => vec![],
    };
    let files = fileset(files, Size::Fixed(ByteSize(size)), Sharing::Private, true);
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), files)]),
        groups: vec![Group { setup: vec![open], teardown, ..group("locks", p.workers, vec![flow]) }],
        until: Until { duration: Some(p.duration), ..Until::default() },
        warm_up: p.warm_up,
        verify: p.verify && p.operation != LockedOperation::Stat,
        trace: p.trace,
        claims: Claim::Cache,
    })
}
