//! What a client's bookkeeping costs as it has more to keep.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::Verify;
use benchmaster_units::ByteSize;
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
    verify: Verify = Verify::Off,
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

static TEMPLATE: Template = Template::new(include_str!("client_structures.toml"));

pub(super) fn expand(p: &ClientStructuresParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: workers, dirty, io_size);
    checks.require(
        p.io_size.0 == 0 || p.dirty.0.is_multiple_of(p.io_size.0),
        "dirty",
        format!("`dirty` is {}, and that is no number of writes of {}", p.dirty, p.io_size),
        "make it a multiple of `io_size`",
    );
    checks.provable("io_size", p.io_size, p.verify);
    checks.finish()?;
    let ends = stages(p.dirty, p.io_size);
    let begins = std::iter::once(0).chain(ends.iter().map(|end| end.0));
    let stage = |(begin, end): (u64, &ByteSize)| {
        let label = format!("dirty-{end}");
        let write = json!({ "op": "write", "label": label, "io_size": p.io_size, "offset": p.order });
        json!({ "repeat": (end.0 - begin) / p.io_size.0, "flow": [write] })
    };
    let most = MAX_HANDLES as u64;
    let (full, rest) = (p.open_files / most, p.open_files % most);
    let holds = |number: u64| {
        let open = |number| {
            let fileset = format!("{name}-open");
            json!({ "op": "open", "fileset": fileset, "file": "once", "handle": format!("held-{number}") })
        };
        (0..number).map(open).collect::<Vec<_>>()
    };
    let derived = json!({
        "stages": begins.zip(&ends).map(stage).collect::<Vec<_>>(),
        "holds": p.open_files > 0,
        "has_full_holders": full > 0,
        "full_holders": full.min(u32::MAX.into()),
        "holds_most": holds(most),
        "has_rest": rest > 0,
        "holds_rest": holds(rest),
    });
    TEMPLATE.fill(name, p, derived)
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
