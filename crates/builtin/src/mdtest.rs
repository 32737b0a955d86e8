//! Creating, looking at, reading and removing many files, in phases that all workers begin together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::{FilePick, Tree, Verify};
use benchmaster_units::ByteSize;

/// One phase of `mdtest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MdtestPhase {
    /// Files are created (and written, if they have a size) and closed.
    Create,
    /// Their attributes are read by name.
    Stat,
    /// They are opened, read and closed.
    Read,
    /// They are removed.
    Remove,
}

parameters! { pub struct MdtestParameters: "Parameters of `mdtest`.";
    /// Files of each worker.
    items: u64 = 10_000,
    /// Size of each file.
    file_size: ByteSize = ByteSize(0),
    /// What is done, always in the order create, stat, read, remove. Without `create` the files exist before.
    phases: Vec<MdtestPhase> = vec![MdtestPhase::Create, MdtestPhase::Stat, MdtestPhase::Read, MdtestPhase::Remove],
    /// Each worker also makes and removes so many directories, before the files.
    directories: u64 = 0,
    /// Levels of directories.
    depth: u32 = 0,
    /// Directories in each directory.
    branch: u32 = 1,
    /// Only directories of the last level hold files.
    leaves_only: bool = false,
    /// Each worker has a directory of its own, instead of all working in the same ones.
    unique: bool = false,
    /// Look at, read and remove the files of the worker of the same number on the next client: what this client has not
    /// cached.
    neighbour: bool = false,
    /// Flush every file before it is closed.
    fsync: bool = false,
    /// Workers per client: mdtest's tasks per node.
    workers: u32 = 4,
    /// Stamp every block written and check every block read.
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for MdtestParameters {
    fn scale(&mut self, scale: Scale) {
        self.items = scale.count(self.items, 1);
        self.directories = scale.count(self.directories, 1);
    }
}

/// Files are written and read by calls of at most this size.
const IO_SIZE: ByteSize = ByteSize::mib(1);
/// Directories of a tree at most.
const MOST: u64 = 1_000_000;

static TEMPLATE: Template = Template::new(include_str!("mdtest.toml"));

pub(super) fn expand(p: &MdtestParameters, name: &str, on: Conditions) -> Expanded {
    let has = |phase| p.phases.contains(&phase);
    let creates = has(MdtestPhase::Create);
    let mut checks = Checks::default();
    positive!(checks, p: items, workers, branch);
    checks.require(!p.phases.is_empty(), "phases", "there is nothing to do", "name at least one phase");
    let twice = p.phases.iter().enumerate().any(|(at, phase)| p.phases[..at].contains(phase));
    checks.require(!twice, "phases", "a phase is named twice", "each is done once");
    checks.require(
        !p.unique || p.depth == 0,
        "unique",
        "a directory for each worker and a tree of directories for all exclude each other",
        "remove `unique` or `depth`",
    );
    checks.require(
        !p.fsync || creates,
        "fsync",
        "`fsync` applies to created files, and `phases` has no `create`",
        "remove it",
    );
    let io_size = p.file_size.min(IO_SIZE);
    checks.provable("file_size", io_size, p.verify);
    let tree = match (p.unique, p.depth) {
        (true, _) => {
            let branch = p.workers.saturating_mul(on.clients.max(1));
            Some(Tree { depth: 1, branch, leaves_only: true, in_turn: true })
        }
        (false, 0) => None,
        (false, depth) => Some(Tree { depth, branch: p.branch, leaves_only: p.leaves_only, in_turn: false }),
    };
    let many = tree.as_ref().is_some_and(|tree| tree.directories().is_none_or(|number| number > MOST));
    checks.require(
        !many,
        "depth",
        format!("the tree has more than {MOST} directories"),
        "lower `depth` or `branch`",
    );
    checks.finish()?;
    let ranks = u64::from(p.workers) * u64::from(on.clients);
    let derived = json!({
        "creates": creates,
        "stats": has(MdtestPhase::Stat),
        "reads": has(MdtestPhase::Read),
        "removes": has(MdtestPhase::Remove),
        "makes_directories": p.directories > 0,
        "all_items": p.items.saturating_mul(ranks),
        "all_directories": p.directories.saturating_mul(ranks),
        "again": if p.neighbour { FilePick::Neighbour } else { FilePick::Next },
        "tree": tree,
        "has_data": p.file_size.0 > 0,
        "io_size": io_size,
        "verify": p.verify.where_data(p.file_size.0 > 0),
    });
    TEMPLATE.fill(name, p, derived)
}
