//! What a client's bookkeeping costs as it has more to keep.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Checks, Expanded, data, fileset, group, step, times};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, FilePick, Fileset, Group, OffsetPick, OpenFlag, OperationKind, Sharing, Size, Step, Until,
    Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};
use benchmaster_workload::program::MAX_HANDLES;

/// In which order the pages of a file are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PageOrder {
    /// From the start to the end.
    #[default]
    Sequential,
    /// At random places; some are written again.
    Random,
}

parameters! { pub struct ClientStructuresParameters: "Parameters of `client-structures`.";
    /// Bytes written to one file before they are flushed.
    dirty: ByteSize = ByteSize::mib(1024),
    /// Bytes per write.
    io_size: ByteSize = ByteSize::kib(4),
    /// In which order pages are written.
    order: PageOrder = PageOrder::Sequential,
    /// Other files of the client that are open all the time.
    open_files: u64 = 0,
    /// Workers per client, each with a file of its own.
    workers: u32 = 1,
    /// Stamp every block written; what is there in the end is checked.
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for ClientStructuresParameters {
    fn scale(&mut self, scale: Scale) {
        self.dirty = scale.size(self.dirty, self.io_size);
        self.open_files = scale.count(self.open_files, 1);
    }
}

/// The first stage ends when so much is outstanding; each further stage ends at four times as much.
const FIRST_STAGE: ByteSize = ByteSize::kib(64);

/// Amounts at which the stages end; the last is the whole.
fn stages(dirty: ByteSize, io_size: ByteSize) -> Vec<ByteSize> {
    let ends = std::iter::successors(Some(FIRST_STAGE.0), |end| end.checked_mul(4));
    let whole = |end: &u64| end.is_multiple_of(io_size.0) && *end < dirty.0;
    ends.take_while(|end| *end < dirty.0).filter(whole).chain([dirty.0]).map(ByteSize).collect()
}

pub(super) fn expand(p: &ClientStructuresParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    checks.at_least_one("workers", p.workers.into());
    checks.at_least_one("dirty", p.dirty.0);
    checks.at_least_one("io_size", p.io_size.0);
    checks.require(
        p.io_size.0 == 0 || p.dirty.0.is_multiple_of(p.io_size.0),
        "dirty",
        format!("`dirty` is {}, and that is no number of writes of {}", p.dirty, p.io_size),
        "make it a multiple of `io_size`",
    );
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let (written, held) = (name.to_owned(), format!("{name}-open"));
    let offset = match p.order {
        PageOrder::Sequential => OffsetPick::Sequential,
        PageOrder::Random => OffsetPick::Random,
    };
    let mut flow = Vec::new();
    let mut before = 0;
    for end in stages(p.dirty, p.io_size) {
        let label = format!("dirty-{end}").replace(' ', "");
        let write = Step { label: Some(label), ..data(OperationKind::Write, p.io_size, offset) };
        flow.push(times((end.0 - before) / p.io_size.0, vec![write]));
        before = end.0;
    }
    flow.extend([step(OperationKind::Fsync), step(OperationKind::Close)]);
    let create = Step {
        fileset: Some(written.clone()),
        file: Some(FilePick::Own),
        flags: vec![OpenFlag::Write, OpenFlag::Truncate],
        ..step(OperationKind::Create)
    };
    let mut filesets: BTreeMap<String, Fileset> =
        BTreeMap::from([(written, fileset(p.workers.into(), Size::Fixed(p.dirty), Sharing::Private, false))]);
    let mut groups = vec![Group { setup: vec![create], ..group("write", p.workers, flow) }];
    if p.open_files > 0 {
        filesets.insert(
            held.clone(),
            fileset(p.open_files, Size::Fixed(ByteSize::kib(4)), Sharing::Private, true),
        );
        groups.extend(holders(p.open_files, &held));
    }
    Ok(Workload {
        filesets,
        groups,
        until: Until { iterations: Some(1), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Cache,
    })
}

/// Groups of workers that hold `files` files of a fileset open, each as many as it can.
fn holders(files: u64, fileset: &str) -> Vec<Group> {
    let open = |number: u64| Step {
        fileset: Some(fileset.to_owned()),
        file: Some(FilePick::Once),
        handle: Some(format!("held-{number}")),
        ..step(OperationKind::Open)
    };
    let holder = |name: &str, workers: u64, each: u64| Group {
        setup: (0..each).map(open).collect(),
        ..group(name, u32::try_from(workers).unwrap_or(u32::MAX), vec![])
    };
    let each = MAX_HANDLES as u64;
    let (full, rest) = (files / each, files % each);
    let full = (full > 0).then(|| holder("hold", full, each));
    let rest = (rest > 0).then(|| holder("hold-rest", 1, rest));
    full.into_iter().chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_grow_by_four_up_to_the_whole() {
        let of = |dirty, io| {
            stages(ByteSize(dirty), ByteSize(io)).into_iter().map(|end| end.0).collect::<Vec<_>>()
        };
        assert_eq!(of(1 << 20, 4096), [65_536, 262_144, 1 << 20]);
        assert_eq!(of(4096, 4096), [4096]);
        assert_eq!(of(65_536, 4096), [65_536]);
        assert_eq!(of(300_000, 100_000), [300_000], "no stage ends within a write");
    }
}
