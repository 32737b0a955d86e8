//! What stands behind each kind of finding: texts that no number changes, in the files of `texts`, one for each group.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::finding::{Cost, Plot};
use crate::remedy::Remedy;

/// One kind of finding.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explanation {
    /// Its name: `retransmission`.
    #[serde(skip_deserializing)]
    pub id: String,
    /// What sort of thing it says.
    #[serde(skip_deserializing)]
    pub group: Group,
    /// What it says, without numbers.
    pub title: String,
    /// Why it happens, and why it costs.
    pub mechanism: String,
    /// How it is told, and how its cost is estimated.
    pub formula: String,
    /// Where this is from.
    pub source: String,
    /// What its cost is a share of, and how that is estimated, unless it depends on what was found.
    #[serde(default, skip_serializing)]
    pub(crate) cost: Option<Cost>,
    /// The plot that proves it, unless it depends on what was found.
    #[serde(default, skip_serializing)]
    pub(crate) plot: Option<Plot>,
    /// What to do, where that depends on the set-up alone.
    #[serde(default, skip_serializing)]
    pub(crate) remedy: Remedy,
    /// The same where it also depends on what was found.
    #[serde(default, skip_serializing)]
    cases: BTreeMap<String, Remedy>,
}

const TEXTS: [(Group, &str); 4] = [
    (Group::Doubt, include_str!("texts/doubts.toml")),
    (Group::Limit, include_str!("texts/limits.toml")),
    (Group::Phenomenon, include_str!("texts/phenomena.toml")),
    (Group::Condition, include_str!("texts/conditions.toml")),
];

fn read(group: Group, text: &str) -> Result<Vec<Explanation>, toml::de::Error> {
    let read: BTreeMap<String, Explanation> = toml::from_str(text)?;
    Ok(read.into_iter().map(|(id, one)| Explanation { id, group, ..one }).collect())
}

/// All kinds, by name.
pub(crate) fn all() -> &'static [Explanation] {
    static ALL: LazyLock<Vec<Explanation>> = LazyLock::new(|| {
        // That each file can be read is a test.
        let mut all: Vec<_> =
            TEXTS.iter().flat_map(|(group, text)| read(*group, text).unwrap_or_default()).collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    });
    &ALL
}

/// The kind of this name.
pub(crate) fn find(id: &str) -> Option<&'static Explanation> {
    let at = all().binary_search_by(|one| one.id.as_str().cmp(id)).ok()?;
    all().get(at)
}

/// What to do about a kind in one of its cases.
pub(crate) fn case(id: &str, name: &str) -> Remedy {
    find(id).and_then(|one| one.cases.get(name)).cloned().unwrap_or_default()
}

/// What sort of thing a finding says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    /// The number is not what it seems to be.
    #[default]
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn each_file_is_read_in_full() {
        for (group, text) in TEXTS {
            let names: Vec<String> = read(group, text).unwrap().into_iter().map(|one| one.id).collect();
            assert!(names.is_sorted() && names.len() > 20, "{group:?}: {names:?}");
            let sections = text.lines().filter_map(|line| line.strip_prefix('[')?.strip_suffix(']'));
            assert!(sections.eq(&names), "{group:?}: in the order of their names");
        }
    }

    /// All sources of this crate below a folder.
    fn sources(folder: &Path) -> String {
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let text = |path: PathBuf| match path.extension().and_then(|is| is.to_str()) {
            Some("rs") => fs::read_to_string(path).unwrap(),
            _ if path.is_dir() => sources(&path),
            _ => String::new(),
        };
        entries.map(text).collect()
    }

    #[test]
    fn rules_and_texts_name_the_same_cases() {
        let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        let named = sources.split("case(\"").skip(1).filter_map(|rest| {
            let (id, rest) = rest.split_once("\", \"")?;
            Some((id, rest.split_once("\")")?.0))
                .filter(|(id, name)| !id.contains('"') && !name.contains('"'))
        });
        for (id, name) in named {
            assert_ne!(case(id, name), Remedy::default(), "{id}: {name}");
        }
        for one in all() {
            for name in one.cases.keys() {
                assert!(sources.contains(&format!("\"{name}\"")), "{}: no rule names {name}", one.id);
            }
        }
    }
}
