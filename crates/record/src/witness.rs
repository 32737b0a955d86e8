//! The durability witness: what a server or file system said is stable, and what was there after a cut.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

words! {
    /// The reply after which something must survive.
    Promise {
        /// The fileset was there, and flushed, when the workload began.
        Prepared = "preparation",
        /// A write through a file opened with `O_SYNC` or `O_DSYNC`: over NFS a WRITE with FILE_SYNC.
        Write = "write",
        /// `fsync`: over NFS a COMMIT, or WRITEs with FILE_SYNC.
        Fsync = "fsync",
        /// `fdatasync`, the same over NFS.
        Fdatasync = "fdatasync",
        /// `close`, where it flushes: by the user-space NFS client without a cache.
        Close = "close",
        /// A file was made; promised over NFS.
        Create = "create",
        /// A file got its other name; promised over NFS.
        Rename = "rename",
        /// A file was removed; promised over NFS.
        Unlink = "unlink",
    }
}

words! {
    /// What happens to the server between the measured phase and the check.
    #[derive(Default, JsonSchema)]
    CutKind {
        /// It loses power: what was not on stable storage is gone.
        #[default]
        Power = "power",
        /// Its process is killed: what it had only in its own memory is gone.
        Process = "process",
        /// Nothing: everything is only read back.
        None = "none",
    }
}

impl CutKind {
    /// What happened, as a sentence.
    pub fn told(self) -> &'static str {
        match self {
            Self::Power => "the server lost power",
            Self::Process => "the server's process was killed",
            Self::None => "nothing was cut",
        }
    }
}

words! {
    /// What a result is worth after a failure, best first.
    Durability {
        /// All that was acknowledged survived a loss of power.
        Power = "survives power loss",
        /// All that was acknowledged survived the death of the server's process; more was not tried.
        Process = "survives its process",
        /// Nothing was cut.
        Untested = "not tested",
        /// Something that was acknowledged was lost.
        Loses = "loses",
    }
}

/// How the server was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutRecord {
    /// What happened to it.
    pub kind: CutKind,
    /// By what, and what became of the disk, in words.
    pub how: String,
    /// From the cut until it served again.
    pub outage_ns: u64,
}

/// Something acknowledged that was not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Broken {
    /// The file, below the working directory.
    pub file: String,
    /// Of a block: its offset. `None`: the file's name.
    pub offset: Option<u64>,
    /// The reply that promised it.
    pub promise: Promise,
    /// When that came, from the start of the measured phase (negative before it), to within 1 ms.
    pub at_ns: i64,
    /// What was promised and what was found, in words.
    pub found: String,
}

/// The verdict on one workload of one run. Blocks have [`Self::block`] bytes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Witness {
    /// How the server was cut; `None` where it was not.
    pub cut: Option<CutRecord>,
    /// Bytes of a block.
    pub block: u32,
    /// Blocks whose last promised content was acknowledged as stable.
    pub blocks: u64,
    /// Names whose last change was acknowledged as stable.
    pub names: u64,
    /// Of both, those of which nothing is left.
    pub lost: u64,
    /// Of both, those in whose place an earlier state was found.
    pub old: u64,
    /// Blocks of which parts are older than what was promised, or unknown.
    pub torn: u64,
    /// Blocks with newer content than what was promised, which is allowed; some of it in part.
    pub newer: u64,
    /// How many promises of each kind were broken.
    pub by: BTreeMap<Promise, u64>,
    /// The first that were broken.
    pub broken: Vec<Broken>,
}

impl Witness {
    /// The most of [`Self::broken`] that are kept.
    pub const MOST_BROKEN: usize = 20;

    /// Blocks and names that were acknowledged as stable.
    pub fn acknowledged(&self) -> u64 {
        self.blocks + self.names
    }

    /// Those of them that were not there any more as promised.
    pub fn missing(&self) -> u64 {
        self.lost + self.old + self.torn
    }

    /// What the result is worth.
    pub fn durability(&self) -> Durability {
        match self.cut.as_ref().map_or(CutKind::None, |cut| cut.kind) {
            _ if self.missing() > 0 => Durability::Loses,
            CutKind::None => Durability::Untested,
            _ if self.acknowledged() == 0 => Durability::Untested,
            CutKind::Process => Durability::Process,
            CutKind::Power => Durability::Power,
        }
    }

    /// That of several processes of one run.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.cut = self.cut.or(other.cut);
        self.block = self.block.max(other.block);
        self.blocks += other.blocks;
        self.names += other.names;
        self.lost += other.lost;
        self.old += other.old;
        self.torn += other.torn;
        self.newer += other.newer;
        for (promise, count) in other.by {
            *self.by.entry(promise).or_default() += count;
        }
        self.broken.extend(other.broken);
        self.broken.truncate(Self::MOST_BROKEN);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_needs_a_cut_and_something_acknowledged() {
        let cut = |kind| Some(CutRecord { kind, how: "test".into(), outage_ns: 1 });
        let witness = Witness { blocks: 3, ..Witness::default() };
        assert_eq!(witness.durability(), Durability::Untested);
        let of = |kind, lost| Witness { cut: cut(kind), lost, ..witness.clone() }.durability();
        assert_eq!(of(CutKind::Power, 0), Durability::Power);
        assert_eq!(of(CutKind::Process, 0), Durability::Process);
        assert_eq!(of(CutKind::None, 0), Durability::Untested);
        assert_eq!(of(CutKind::Power, 1), Durability::Loses);
        let nothing = Witness { cut: cut(CutKind::Power), ..Witness::default() };
        assert_eq!(nothing.durability(), Durability::Untested, "nothing was promised");
    }
}
