//! What stands behind each kind of finding.

use serde::Serialize;

/// One kind of finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// Its name: `retransmission`.
    pub id: &'static str,
    /// What sort of thing it says.
    pub group: Group,
    /// What it says, without numbers.
    pub title: &'static str,
    /// Why it happens, and why it costs.
    pub mechanism: &'static str,
    /// How it is told, and how its cost is estimated.
    pub formula: &'static str,
    /// Where this is from.
    pub source: &'static str,
}

/// What sort of thing a finding says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// The number is not what it seems to be.
    Doubt,
    /// What kept the result from being better.
    Limit,
    /// Something with a name that takes time or throughput.
    Phenomenon,
    /// A state or a setting of clients, servers or mounts that costs.
    Condition,
}

impl Group {
    /// In a word or two.
    pub fn words(self) -> &'static str {
        match self {
            Self::Doubt => "not what it seems",
            Self::Limit => "what limits",
            Self::Phenomenon => "what happens",
            Self::Condition => "settings and states",
        }
    }
}
