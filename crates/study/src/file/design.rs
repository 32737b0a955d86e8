//! The sections `[study]` and `[design]`: the experiment itself.

use benchmaster_store::record::Replication;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::section::Reader;
use crate::diagnostics::Diagnostic;

/// The section `[study]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StudySection {
    /// Name of the study: letters, digits, `_` and `-`.
    #[schemars(regex(pattern = r"^[A-Za-z0-9_-]+$"))]
    pub name: String,
    /// What it is for, in the author's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Seed of everything random: the order of runs, random positions, contents and sizes of files.
    #[serde(default = "one")]
    pub seed: u64,
}

fn one() -> u64 {
    1
}

/// The section `[design]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DesignSection {
    /// Which combinations of levels are run.
    pub kind: DesignKind,
    /// How often each treatment is run.
    pub replicates: Replicates,
    /// In which order the runs are done.
    pub order: RunOrder,
    /// Confidence level of all intervals.
    #[schemars(extend("exclusiveMinimum" = 0.5, "exclusiveMaximum" = 1.0))]
    pub confidence: f64,
    /// Response whose interval decides about further replicates, and which tables show first. If absent, the throughput of
    /// the first workload when it moves data, else its operations per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["write.throughput", "create.operations", "read.read.latency.p99"]))]
    pub response: Option<String>,
}

impl Default for DesignSection {
    fn default() -> Self {
        Self {
            kind: DesignKind::default(),
            replicates: Replicates::default(),
            order: RunOrder::default(),
            confidence: 0.95,
            response: None,
        }
    }
}

/// Which combinations of levels are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DesignKind {
    /// Every combination of all levels.
    #[default]
    Full,
    /// The first level of every factor, then each other level alone. Interactions cannot be seen.
    OneAtATime,
}

impl DesignKind {
    /// The name used in study files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::OneAtATime => "one-at-a-time",
        }
    }
}

/// In which order the runs are done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunOrder {
    /// Shuffled by the seed, so that drift and disturbances fall on all treatments alike.
    #[default]
    Random,
    /// Replicate by replicate, treatments in standard order. Drift over time then looks like an effect.
    Listed,
}

impl From<RunOrder> for benchmaster_design::Order {
    fn from(order: RunOrder) -> Self {
        match order {
            RunOrder::Random => Self::Random,
            RunOrder::Listed => Self::Listed,
        }
    }
}

/// How often each treatment is run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Replicates {
    /// So many times.
    Fixed(#[schemars(range(min = 1, max = 10_000))] u32),
    /// Until the interval of the response is narrow enough.
    Sequential(SequentialReplicates),
}

impl Default for Replicates {
    fn default() -> Self {
        Self::Fixed(5)
    }
}

impl From<Replicates> for Replication {
    fn from(replicates: Replicates) -> Self {
        match replicates {
            Replicates::Fixed(n) => Self::Fixed(n),
            Replicates::Sequential(s) => {
                Self::Sequential { min: s.min, max: s.max, relative_half_width: s.relative_half_width }
            }
        }
    }
}

/// Replication until the response's confidence interval is narrow enough.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SequentialReplicates {
    /// At least so many times.
    #[schemars(range(min = 2))]
    pub min: u32,
    /// At most so many times.
    #[schemars(range(max = 10_000))]
    pub max: u32,
    /// Half width of the confidence interval divided by the mean that is narrow enough.
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub relative_half_width: f64,
}

impl Default for SequentialReplicates {
    fn default() -> Self {
        Self { min: 5, max: 30, relative_half_width: 0.05 }
    }
}

/// The most replicates of a treatment.
const MAX_REPLICATES: u32 = 10_000;

/// Values of `[design]` that cannot be meant, and those that should not.
pub(crate) fn check(reader: &mut Reader<'_, '_>, design: &DesignSection) {
    let mut report = |path: &str, diagnostic: Diagnostic| {
        let place = reader.place(&format!("design.{path}"));
        reader.found.push(diagnostic.at(place));
    };
    if !(design.confidence > 0.5 && design.confidence < 1.0) {
        report(
            "confidence",
            Diagnostic::error(format!("a confidence level of {} makes no interval", design.confidence))
                .help("it must be above 0.5 and below 1, usually `0.95`"),
        );
    }
    match design.replicates {
        Replicates::Fixed(0) => {
            report("replicates", Diagnostic::error("`replicates` is 0").help("5 or more are useful"))
        }
        Replicates::Fixed(n) if n > MAX_REPLICATES => report("replicates", too_many(n)),
        Replicates::Fixed(1) => report(
            "replicates",
            Diagnostic::warning("with 1 replicate no result has an interval")
                .help("5 or more replicates give intervals worth having"),
        ),
        Replicates::Fixed(n) if n < 5 => report("replicates", few("replicates", n)),
        Replicates::Fixed(_) => {}
        Replicates::Sequential(s) => check_sequential(s, &mut report),
    }
    if design.order == RunOrder::Listed {
        report(
            "order",
            Diagnostic::warning("runs in listed order confound drift over time with the factors")
                .help("`order = \"random\"` spreads drift over all treatments"),
        );
    }
}

fn check_sequential(s: SequentialReplicates, report: &mut impl FnMut(&str, Diagnostic)) {
    if s.min < 2 {
        let message = format!("`min` is {}, and fewer than 2 runs have no interval to decide by", s.min);
        report(
            "replicates.min",
            Diagnostic::error(message).help("it must be at least 2; 5 or more keep intervals honest"),
        );
    } else if s.min < 5 {
        report("replicates.min", few("min", s.min));
    }
    if s.max < s.min {
        let message = format!("`max` is {} and below `min`, which is {}", s.max, s.min);
        report("replicates.max", Diagnostic::error(message).help("`max` must be at least `min`"));
    } else if s.max > MAX_REPLICATES {
        report("replicates.max", too_many(s.max));
    }
    if !(s.relative_half_width > 0.0 && s.relative_half_width < 1.0) {
        let message =
            format!("a `relative_half_width` of {} cannot be reached or says nothing", s.relative_half_width);
        report(
            "replicates.relative_half_width",
            Diagnostic::error(message).help("write `0.05` for ±5 % of the mean"),
        );
    }
}

fn too_many(n: u32) -> Diagnostic {
    Diagnostic::error(format!("{n} replicates are too many")).help(format!("at most {MAX_REPLICATES}"))
}

fn few(key: &str, n: u32) -> Diagnostic {
    let what = match key {
        "min" => "stopping after so few runs makes intervals narrower than they should be",
        _ => "intervals from so few runs are wide",
    };
    Diagnostic::warning(format!("`{key}` is {n}: {what}")).help("5 or more are better")
}
