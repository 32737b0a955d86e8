//! The sections `[study]` and `[design]` as they are written.

use std::collections::BTreeMap;
use std::fmt;

use benchmaster_record::results::Replication;
use benchmaster_record::words;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess};
use serde::{Deserialize, Deserializer, Serialize};

use super::blocks::Blocks;
use crate::scalar::Scalar;

/// The section `[study]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
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
    /// Amounts of data, numbers of files and lengths of time of all workloads are multiplied by this, to try an experiment
    /// on a smaller machine. Sizes of I/Os and small files, workers, mixes and rates stay.
    #[serde(default = "whole")]
    pub scale: f64,
}

fn one() -> u64 {
    1
}

fn whole() -> f64 {
    1.0
}

/// The section `[design]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DesignSection {
    /// Which combinations of levels are run.
    pub kind: DesignKind,
    /// Fractional: which factor is the product of which others, as `D=AB` with letters in the order of the factors, or
    /// `delay=storage*sync` with names; `E=-ABC` with the signs switched.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["D=AB", "E=AC", "F=BC"]]))]
    pub generators: Option<Vec<String>>,
    /// Fractional: the least resolution. 3 keeps main effects apart from each other, 4 also from interactions of two
    /// factors, 5 those from each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 3))]
    pub resolution: Option<u32>,
    /// Fractional and orthogonal array: how many treatments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 2))]
    pub runs: Option<u32>,
    /// Effects of interest (`sync`, `delay*sync`). They decide about a fractional design without `generators`, `resolution`
    /// and `runs`, and are marked in other designs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = [["version", "delay*sync"]]))]
    pub clear: Option<Vec<String>>,
    /// Explicit: the level of every factor, for each treatment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub treatments: Option<Vec<BTreeMap<String, LevelWord>>>,
    /// Runs with every factor in the middle between its two levels: their number in each block, or in all.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(range(max = 1000))]
    pub centre_points: u32,
    /// Combinations of levels that are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<BTreeMap<String, LevelWord>>,
    /// How runs are put into blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
    /// Factors whose level is changed as seldom as a fair order allows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hard_to_change: Vec<String>,
    /// What the best treatment is to be found for: `maximise RESPONSE` or `minimise RESPONSE`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("examples" = ["maximise write.throughput", "minimise read.read.latency.p99"]))]
    pub goal: Option<String>,
    /// Share of the mean to which the effects of interest are to be known, for `benchmaster run --screen`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("exclusiveMinimum" = 0.0, "exclusiveMaximum" = 1.0))]
    pub precision: Option<f64>,
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
            generators: None,
            resolution: None,
            runs: None,
            clear: None,
            treatments: None,
            centre_points: 0,
            exclude: Vec::new(),
            blocks: None,
            hard_to_change: Vec::new(),
            goal: None,
            precision: None,
            replicates: Replicates::default(),
            order: RunOrder::default(),
            confidence: 0.95,
            response: None,
        }
    }
}

words! {
    /// Which combinations of levels are run.
    #[derive(Default, JsonSchema)]
    DesignKind {
        /// Every combination of all levels.
        #[default]
        Full = "full",
        /// A fraction of all combinations of factors with two levels.
        Fractional = "fractional",
        /// Few runs for the main effects of many factors with two levels; they are partially aliased with interactions.
        PlackettBurman = "plackett-burman",
        /// A fraction of all combinations of factors with any numbers of levels.
        OrthogonalArray = "orthogonal-array",
        /// The first level of every factor, then each other level alone. Interactions cannot be seen.
        OneAtATime = "one-at-a-time",
        /// The treatments that are listed.
        Explicit = "explicit",
    }
}

/// The name of a level, or the value that it stands for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct LevelWord(pub(crate) Scalar);

impl<'de> Deserialize<'de> for LevelWord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Scalar::read(deserializer, "the name of a level").map(Self)
    }
}

fn is_zero(n: &u32) -> bool {
    *n == 0
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Replicates {
    /// This number of times.
    Fixed(#[schemars(range(min = 1, max = 10_000))] u32),
    /// Until the interval of the response is narrow enough.
    Sequential(SequentialReplicates),
}

impl<'de> Deserialize<'de> for Replicates {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = Replicates;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number such as `5`, or `{ min = 5, max = 30, relative_half_width = 0.05 }`")
            }

            fn visit_i64<E: de::Error>(self, number: i64) -> Result<Replicates, E> {
                let invalid = |_| E::invalid_type(de::Unexpected::Signed(number), &self);
                number.try_into().map(Replicates::Fixed).map_err(invalid)
            }

            fn visit_map<A: MapAccess<'de>>(self, table: A) -> Result<Replicates, A::Error> {
                SequentialReplicates::deserialize(MapAccessDeserializer::new(table))
                    .map(Replicates::Sequential)
            }
        }
        deserializer.deserialize_any(Visitor)
    }
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
    /// The fewest runs of a treatment.
    #[schemars(range(min = 2))]
    pub min: u32,
    /// The most runs of a treatment.
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
