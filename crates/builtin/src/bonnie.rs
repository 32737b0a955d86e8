//! The columns of Bonnie.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::common::{Checks, Expanded, group, labelled, step, whole_file};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Choice, Claim, FilePick, Fileset, Group, OffsetPick, OpenFlag, OperationKind, Repeat, RepeatUntil,
    Sharing, Size, Step, Until, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

/// What Bonnie measures, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BonnieColumn {
    /// The file is written anew as the C library's buffer passes single characters on.
    CharWrite,
    /// It is written anew in blocks.
    #[default]
    BlockWrite,
    /// Each block is read and written back.
    Rewrite,
    /// It is read as the C library's buffer takes it for single characters.
    CharRead,
    /// It is read in blocks.
    BlockRead,
    /// Several workers read blocks at random; each tenth is followed by a write.
    Seeks,
}

parameters! { pub struct BonnieParameters: "Parameters of `bonnie`.";
    /// What is measured.
    column: BonnieColumn = BonnieColumn::BlockWrite,
    /// Size of the file.
    file_size: ByteSize = ByteSize(2_000_000_000),
    /// Bytes of a block.
    io_size: ByteSize = ByteSize::kib(8),
    /// Bytes per call of the columns that go character by character: the C library's buffer. 1 makes a call of each.
    char_size: ByteSize = ByteSize::kib(4),
    /// Name of the fileset, to use the file of another column of the study; the workload's own name if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    fileset: Option<String> = None,
    /// Whether the file is there, filled with data, before the workload starts; the same for all columns that share one.
    prefill: bool = true,
    /// Reads of the column `seeks`, over all its workers.
    seeks: u64 = 4000,
    /// Workers of the column `seeks`.
    seekers: u32 = 3,
    /// Stamp every block written and check every block read.
    verify: bool = false,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for BonnieParameters {
    fn scale(&mut self, scale: Scale) {
        self.file_size = scale.size(self.file_size, self.io_size);
        self.seeks = scale.count(self.seeks, self.seekers.into());
    }
}

pub(super) fn expand(p: &BonnieParameters, name: &str) -> Expanded {
    let mut checks = Checks::default();
    for (path, size) in [("file_size", p.file_size), ("io_size", p.io_size), ("char_size", p.char_size)] {
        checks.at_least_one(path, size.0);
        checks.require(
            size <= p.file_size,
            path,
            format!("a `{path}` of {size} does not fit into a `file_size` of {}", p.file_size),
            "make the file at least one I/O long",
        );
    }
    checks.at_least_one("seeks", p.seeks);
    checks.at_least_one("seekers", p.seekers.into());
    checks.provable("io_size", p.io_size, p.verify);
    checks.provable("char_size", p.char_size, p.verify);
    checks.finish()?;
    let open = |flags, handle: &str| Step {
        file: Some(FilePick::Own),
        flags,
        handle: Some(handle.into()),
        ..step(OperationKind::Open)
    };
    let anew = Step {
        file: Some(FilePick::Own),
        flags: vec![OpenFlag::Write, OpenFlag::Truncate],
        ..step(OperationKind::Create)
    };
    let close = || step(OperationKind::Close);
    let (workers, iterations) = match p.column {
        BonnieColumn::Seeks => (p.seekers, p.seeks.div_ceil(p.seekers.into())),
        _ => (1, 1),
    };
    let (setup, flow) = match p.column {
        BonnieColumn::CharWrite => (vec![anew], vec![whole_file(OperationKind::Write, p.char_size), close()]),
        BonnieColumn::BlockWrite => (vec![anew], vec![whole_file(OperationKind::Write, p.io_size), close()]),
        BonnieColumn::CharRead => {
            (vec![open(Vec::new(), "main")], vec![whole_file(OperationKind::Read, p.char_size), close()])
        }
        BonnieColumn::BlockRead => {
            (vec![open(Vec::new(), "main")], vec![whole_file(OperationKind::Read, p.io_size), close()])
        }
        BonnieColumn::Rewrite => {
            // Two handles, so that each goes through the file at its own place: a block is written where it was read.
            let at = |op, handle: &str| Step {
                handle: Some(handle.into()),
                io_size: Some(p.io_size.into()),
                offset: Some(OffsetPick::Sequential),
                ..step(op)
            };
            let blocks = Step {
                repeat: Some(Repeat::Until(RepeatUntil::EndOfFile)),
                flow: vec![at(OperationKind::Read, "from"), at(OperationKind::Write, "to")],
                ..Step::default()
            };
            let end = Step { handle: Some("to".into()), ..close() };
            (vec![open(Vec::new(), "from"), open(vec![OpenFlag::Write], "to")], vec![blocks, end])
        }
        BonnieColumn::Seeks => {
            let at = |op, label: &str| Step {
                io_size: Some(p.io_size.into()),
                offset: Some(OffsetPick::Random),
                ..labelled(op, label)
            };
            let tenth = vec![
                Choice { weight: 9.0, flow: Vec::new() },
                Choice { weight: 1.0, flow: vec![at(OperationKind::Write, "update")] },
            ];
            let flow = vec![at(OperationKind::Read, "seek"), Step { choose: tenth, ..Step::default() }];
            (vec![open(vec![OpenFlag::Write], "main")], flow)
        }
    };
    let fileset = Fileset {
        files: 1,
        size: Size::Fixed(p.file_size),
        directory_width: 0,
        tree: None,
        sharing: Sharing::Private,
        prefill: if p.prefill { 1.0 } else { 0.0 },
    };
    Ok(Workload {
        filesets: BTreeMap::from([(p.fileset.clone().unwrap_or_else(|| name.to_owned()), fileset)]),
        groups: vec![Group { setup, ..group("bonnie", workers, flow) }],
        until: Until { iterations: Some(iterations), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: p.verify,
        trace: p.trace,
        claims: Claim::Device,
    })
}
