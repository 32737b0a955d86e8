//! The columns of Bonnie.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::Verify;
use benchmaster_units::ByteSize;

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
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for BonnieParameters {
    fn scale(&mut self, scale: Scale) {
        self.file_size = scale.size(self.file_size, self.io_size);
        self.seeks = scale.count(self.seeks, self.seekers.into());
    }
}

static TEMPLATE: Template = Template::new(include_str!("bonnie.toml"));

pub(super) fn expand(p: &BonnieParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: file_size, io_size, char_size, seeks, seekers);
    for (path, size) in [("io_size", p.io_size), ("char_size", p.char_size)] {
        checks.fits(path, size, "file_size", p.file_size);
        checks.provable(path, size, p.verify);
    }
    checks.finish()?;
    let (workers, iterations) = match p.column {
        BonnieColumn::Seeks => (p.seekers, p.seeks.div_ceil(p.seekers.into())),
        _ => (1, 1),
    };
    let fileset = p.fileset.as_deref().unwrap_or(name);
    let derived = json!({ "workers": workers, "iterations": iterations, "fileset": fileset });
    TEMPLATE.fill(name, p, derived)
}
