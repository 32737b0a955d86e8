//! What is proved of data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is proved of data: `false`, `true` (every block that is read, and all files at the end), or `"durability"` (also
/// that what was acknowledged as stable survives a cut of the server).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(from = "Written", into = "Written")]
#[schemars(with = "Written")]
pub enum Verify {
    /// Nothing.
    #[default]
    Off,
    /// Blocks are stamped with file, offset and generation, and checked wherever they are read.
    Blocks,
    /// The same, and what is acknowledged as stable is checked after a cut.
    Durability,
}

/// As a study file writes it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Written {
    /// Whether blocks are checked.
    Switch(bool),
    Word(Word),
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Word {
    /// Blocks, and what is acknowledged as stable.
    Durability,
}

impl Verify {
    /// Whether blocks are stamped and checked.
    pub fn is_on(self) -> bool {
        self != Self::Off
    }

    /// The same for a workload that moves data or not: without data there are no blocks to check, but names survive or not.
    #[must_use]
    pub fn where_data(self, moves_data: bool) -> Self {
        if self == Self::Blocks && !moves_data { Self::Off } else { self }
    }
}

impl From<bool> for Verify {
    fn from(on: bool) -> Self {
        if on { Self::Blocks } else { Self::Off }
    }
}

impl From<Written> for Verify {
    fn from(written: Written) -> Self {
        match written {
            Written::Switch(on) => on.into(),
            Written::Word(Word::Durability) => Self::Durability,
        }
    }
}

impl From<Verify> for Written {
    fn from(verify: Verify) -> Self {
        match verify {
            Verify::Off => Self::Switch(false),
            Verify::Blocks => Self::Switch(true),
            Verify::Durability => Self::Word(Word::Durability),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_or_a_word() {
        for (text, verify) in
            [("false", Verify::Off), ("true", Verify::Blocks), ("\"durability\"", Verify::Durability)]
        {
            assert_eq!(serde_json::from_str::<Verify>(text).unwrap(), verify);
            assert_eq!(serde_json::to_string(&verify).unwrap(), text);
        }
        assert!(serde_json::from_str::<Verify>("\"durable\"").is_err());
    }
}
