//! How files are opened.

use crate::model::OpenFlag;

/// Open flags as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenFlags {
    pub write: bool,
    pub write_only: bool,
    pub sync: bool,
    pub dsync: bool,
    pub direct: bool,
    pub append: bool,
    pub truncate: bool,
    pub exclusive: bool,
}

impl OpenFlags {
    pub(super) fn of(flags: &[OpenFlag]) -> Self {
        let has = |flag| flags.contains(&flag);
        Self {
            write: has(OpenFlag::Write) || has(OpenFlag::WriteOnly),
            write_only: has(OpenFlag::WriteOnly),
            sync: has(OpenFlag::Sync),
            dsync: has(OpenFlag::Dsync),
            direct: has(OpenFlag::Direct),
            append: has(OpenFlag::Append),
            truncate: has(OpenFlag::Truncate),
            exclusive: has(OpenFlag::Exclusive),
        }
    }
}
