//! Scenarios: what is planted, in which studies, and what is to be found.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;

/// A file of scenarios.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    scenario: Vec<Scenario>,
}

/// One planted condition, or none.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    /// Its name.
    pub(crate) name: String,
    /// How the condition is planted; of a clean control why it is one.
    pub(crate) planted: String,
    /// Findings that are the planted condition: one of them is enough. None in a clean control.
    #[serde(default)]
    pub(crate) finds: Vec<String>,
    /// What follows from what is planted, or is true of every such study: neither found nor wrong.
    #[serde(default)]
    pub(crate) also: Vec<String>,
    /// What it takes.
    #[serde(default)]
    pub(crate) needs: Needs,
    /// Programs that only compute, beside the study.
    #[serde(default)]
    pub(crate) burners: usize,
    /// Of the quick subset.
    #[serde(default)]
    pub(crate) quick: bool,
    /// Changes (`--set`) that make it larger, smaller or otherwise different: each is a case of its own.
    #[serde(default = "unchanged")]
    pub(crate) sizes: Vec<Vec<String>>,
    /// How many seeds each size is tried with.
    #[serde(default = "one")]
    pub(crate) seeds: u32,
    /// The study, without its first section.
    pub(crate) study: String,
}

/// What a scenario takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Needs {
    /// Nothing.
    #[default]
    Nothing,
    /// Network namespaces: root, or a system that lets users make them.
    Namespaces,
    /// A lab of machines in user space.
    Lab,
}

fn unchanged() -> Vec<Vec<String>> {
    vec![Vec::new()]
}

fn one() -> u32 {
    1
}

/// One study to be run.
#[derive(Debug, Clone)]
pub(crate) struct Case<'a> {
    pub(crate) scenario: &'a Scenario,
    /// Index of the size.
    pub(crate) size: usize,
    pub(crate) seed: u32,
}

impl Case<'_> {
    pub(crate) fn name(&self) -> String {
        format!("{}-{}-{}", self.scenario.name, self.size + 1, self.seed)
    }

    pub(crate) fn changes(&self) -> &[String] {
        &self.scenario.sizes[self.size]
    }

    /// The study file.
    pub(crate) fn study(&self) -> String {
        format!("[study]\nname = \"case\"\nseed = {}\n\n{}", self.seed, self.scenario.study)
    }
}

impl Scenario {
    /// One that a seed draws: without a study yet.
    pub(crate) fn drawn(name: String) -> Self {
        Self {
            name,
            planted: String::new(),
            finds: Vec::new(),
            also: Vec::new(),
            needs: Needs::Nothing,
            burners: 0,
            quick: false,
            sizes: unchanged(),
            seeds: 1,
            study: String::new(),
        }
    }

    /// Whether nothing is planted.
    pub(crate) fn is_clean(&self) -> bool {
        self.finds.is_empty()
    }

    /// All its cases.
    pub(crate) fn cases(&self) -> impl Iterator<Item = Case<'_>> {
        let sizes = 0..self.sizes.len();
        sizes.flat_map(move |size| (1..=self.seeds).map(move |seed| Case { scenario: self, size, seed }))
    }
}

/// All scenarios of the files of a directory, by file and in their order.
pub(crate) fn read(directory: &Path) -> Vec<Scenario> {
    let mut files: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut all: Vec<Scenario> = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let file: File = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        all.extend(file.scenario);
    }
    let names: BTreeSet<&str> = all.iter().map(|one| &*one.name).collect();
    assert_eq!(names.len(), all.len(), "two scenarios of the same name");
    all
}
