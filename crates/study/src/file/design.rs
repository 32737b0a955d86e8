//! The sections `[study]` and `[design]`: the experiment itself.

mod blocks;
mod check;
mod choice;
mod sections;

pub use self::blocks::{Blocks, ConfoundedBlocks, NamedBlock, ReplicateBlocks, TimeOfDay};
pub(crate) use self::check::{check, only_regular};
pub(crate) use self::choice::choose;
pub use self::choice::{DesignChoice, FractionBy, Layout};
pub use self::sections::{
    DesignKind, DesignSection, LevelWord, Replicates, RunOrder, SequentialReplicates, StudySection,
};
