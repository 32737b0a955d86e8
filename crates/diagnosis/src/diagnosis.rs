//! What was looked for, and what of it was found.

use serde::Serialize;

use crate::finding::Finding;
pub use crate::results::Part;

/// What was looked for and found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Diagnosis {
    /// What was found, the most important first: by cost and confidence.
    pub findings: Vec<Finding>,
    /// What could not be looked for.
    pub absent: Vec<Absent>,
    /// What was looked for and is not there: names of conditions.
    pub clear: Vec<&'static str>,
    /// What limits each workload in each treatment of a study.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limiting>,
    /// Stored results that could not be read: what they would have told is missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
}

/// Evidence that is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Absent {
    /// The condition that it would tell of.
    pub id: &'static str,
    /// Where.
    pub place: String,
    /// What is not there, and what would give it.
    pub why: String,
}

/// What limits a workload in a treatment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limiting {
    /// The workload.
    pub workload: String,
    /// Index of the treatment in standard order.
    pub treatment: u32,
    /// Its label.
    pub label: String,
    /// What explains most; `None` when that is not determined.
    pub limit: Option<Explained>,
    /// What explains something as well, the most first.
    pub contributing: Vec<Explained>,
    /// Where the time of its calls goes, in the order in which a call has it: parts that add up to 1. Empty where calls were
    /// not counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub account: Vec<Spent>,
}

/// A part of the time of calls.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spent {
    /// Which.
    pub part: Part,
    /// Its share, from 0 to 1: mean over runs.
    pub share: f64,
}

/// How much a limit explains.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explained {
    /// The finding.
    pub id: &'static str,
    /// Its cost, from 0 to 1: mean over the runs in which it was found.
    pub share: f64,
    /// Runs in which it was found.
    pub runs: usize,
    /// Runs in which it could have been found.
    pub of: usize,
}

/// What a detector says.
#[expect(clippy::large_enum_variant, reason = "each is handed on at once and none is kept")]
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    /// It is there.
    Found(Finding),
    /// It is not there.
    Clear,
    /// What it would need is not there; and what would give it.
    Unknown(String),
    /// It cannot be there: nothing of the kind was done.
    Irrelevant,
}

impl Verdict {
    /// That of what needs calls.
    pub(crate) fn uncounted() -> Self {
        Self::Unknown("calls were not counted: mountstats of the clients could not be read".into())
    }
}

impl Diagnosis {
    /// Puts what was found into order: by the cost that is to be expected of it, then the surest.
    pub(crate) fn sort(&mut self) {
        self.clear.sort_unstable();
        self.clear.dedup();
        let expected = |one: &Finding| one.share() * one.confidence.probability();
        self.findings.sort_by(|a, b| {
            expected(b).total_cmp(&expected(a)).then_with(|| b.confidence.cmp(&a.confidence))
        });
    }
}
