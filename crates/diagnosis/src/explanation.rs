//! What stands behind each kind of finding.

use std::sync::LazyLock;

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

/// All kinds, by name.
pub fn all() -> &'static [&'static Explanation] {
    static ALL: LazyLock<Vec<&'static Explanation>> = LazyLock::new(|| {
        let mut all: Vec<_> =
            crate::mountstats::explanations().chain(crate::results::explanations()).collect();
        all.sort_by_key(|explanation| explanation.id);
        all.dedup_by_key(|explanation| explanation.id);
        all
    });
    &ALL
}

/// The kind of this name, or that of a validity check of this name.
pub fn explain(id: &str) -> Option<&'static Explanation> {
    let named = |id: &str| {
        let at = all().binary_search_by_key(&id, |explanation| explanation.id).ok()?;
        Some(all()[at])
    };
    named(id).or_else(|| named(crate::results::finding_of_check(id)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_one_kind_each_and_nothing_is_left_out() {
        let all = all();
        assert!(all.windows(2).all(|pair| pair[0].id < pair[1].id), "a name twice");
        for &one in all {
            assert_eq!(explain(one.id), Some(one));
            assert!(one.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", one.id);
            for text in [one.title, one.mechanism, one.formula, one.source] {
                assert!(!text.trim().is_empty(), "{}", one.id);
            }
        }
        assert_eq!(explain("nothing"), None);
    }
}
