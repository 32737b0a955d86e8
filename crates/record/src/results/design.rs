//! The design of a study: factors, treatments, and what was added to it later.

use std::collections::BTreeMap;

use benchmaster_units::{Bandwidth, ByteSize, Rate, TimeSpan};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::{LoadRecord, Replication, RunRecord, StudyRecord};

/// A factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FactorRecord {
    pub name: String,
    /// Names of its levels; the first is the base level. When the design has centre points, the last one is the centre
    /// between the other two, which only centre treatments have.
    pub levels: Vec<String>,
    /// The parameters each level sets: per level, path → value as written in TOML.
    pub settings: Vec<BTreeMap<String, String>>,
    /// The values of the levels as numbers, in base units (bytes, seconds, per second, bytes per second), when each level
    /// sets one parameter to a number or to a text with a unit.
    #[serde(default)]
    pub values: Option<Vec<f64>>,
}

/// A treatment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreatmentRecord {
    /// Number, from 0: in standard order (first factor fastest), or in the order in which they were added.
    pub index: u32,
    /// Per factor, the number of its level.
    pub levels: Vec<u32>,
    /// For people: `io_size=64KiB sync=on`; the study's name when there is no factor.
    pub label: String,
    /// Block that its runs belong to, from 0, when treatments are spread over blocks.
    #[serde(default)]
    pub block: Option<u32>,
    /// Which combination of the levels of factors that are hard to change it has, from 0; `None` without such factors.
    #[serde(default)]
    pub whole_plot: Option<u32>,
    /// Stage in which it was added; 0 is the design of the study file.
    #[serde(default)]
    pub stage: u32,
    /// Whether every factor is at its centre.
    #[serde(default)]
    pub centre: bool,
}

/// What is known of a design beyond its kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DesignRecord {
    /// Generators of a fractional design with the factors' letters (`D=AB`, `E=-ABC`), those that were searched for as
    /// well.
    pub generators: Vec<String>,
    /// Effects of interest, each as ascending numbers of factors.
    pub interest: Vec<Vec<u32>>,
    /// Numbers of the factors that are hard to change.
    pub hard_to_change: Vec<u32>,
    /// How runs are blocked, if they are.
    pub blocks: Option<BlocksRecord>,
    /// Centre runs of each block; all together when runs are not blocked.
    pub centre_points: u32,
    /// Treatments that were left out: the number of the level of each factor.
    pub excluded: Vec<Vec<u32>>,
    /// Combinations of levels that must not be run, in later stages either: per factor a level, or any.
    pub exclude: Vec<Vec<Option<u32>>>,
    /// What the best treatment is to be found for.
    pub goal: Option<GoalRecord>,
    /// To which share of the mean the effects of interest are to be known.
    pub precision: Option<f64>,
    /// Whether what is run after the first design is decided by the results.
    pub screen: bool,
    /// The load curves that are measured: one for every treatment of the other factors.
    pub load: Option<LoadRecord>,
    /// What amounts of data, numbers of files and times of the study file were multiplied by; `None`: they are as written.
    pub scale: Option<f64>,
}

/// How runs are blocked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum BlocksRecord {
    /// Each replicate of all treatments is complete before the next begins, and is a block.
    Replicates,
    /// The treatments are spread over so many blocks.
    Confounded {
        /// Blocks in one replicate.
        count: u32,
        /// Effects that cannot be told from differences between blocks, each as ascending numbers of factors.
        effects: Vec<Vec<u32>>,
    },
    /// Blocks with names, which complete replicates go to in turn.
    Named { names: Vec<String> },
}

/// What the best treatment is to be found for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GoalRecord {
    /// Whether more or less is better.
    pub direction: Direction,
    pub response: String,
}

/// Whether more or less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// More.
    Maximise,
    /// Less.
    Minimise,
}

/// A part of a study that was added after it had begun. Stages are done in order, each with an order of its own; a stage
/// is a block in the analysis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// Its number, from 1.
    pub number: u32,
    pub kind: StageKind,
    /// Why it was added, for people.
    pub reason: String,
    /// Treatments that it runs, in ascending order: new ones, and those of earlier stages that are run again.
    pub treatments: Vec<u32>,
    /// How often it runs each.
    pub replicates: Replication,
    /// When it was added.
    pub made: Timestamp,
}

/// What a stage is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StageKind {
    /// A design of its own.
    Design,
    /// The runs before with the levels of some factors exchanged.
    Foldover,
    /// Half of them.
    Semifold,
    /// Treatments that are needed to tell effects apart, or more replicates.
    Augment,
    /// The best treatment again, against the base treatment.
    Confirmation,
    /// The next points of load curves, or more replicates of points that are not decided yet.
    Load,
}

impl StageKind {
    /// The name that is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Design => "design",
            Self::Foldover => "foldover",
            Self::Semifold => "semifold",
            Self::Augment => "augment",
            Self::Confirmation => "confirmation",
            Self::Load => "load",
        }
    }
}

impl DesignRecord {
    /// Whether this combination of levels may be run.
    pub fn allows(&self, levels: &[u32]) -> bool {
        !self.exclude.iter().any(|left_out| {
            left_out.iter().zip(levels).all(|(level, has)| level.is_none_or(|level| level == *has))
        })
    }
}

impl StudyRecord {
    /// Levels per factor, without the centre.
    pub fn design_levels(&self) -> Vec<u32> {
        let centre = u32::from(self.design_details.centre_points > 0);
        self.factors.iter().map(|factor| (factor.levels.len() as u32).saturating_sub(centre)).collect()
    }

    /// How many factors the design has: all but the loads of load curves, which come last.
    pub fn designed_factors(&self) -> usize {
        self.factors.len() - usize::from(self.design_details.load.is_some())
    }

    /// Which block a run belongs to, in words; `None` when the study has neither blocks nor stages. Differences between
    /// runs of different blocks may be differences between blocks.
    pub fn block_name(&self, run: &RunRecord) -> Option<String> {
        let block = run.block.map(|block| match &self.design_details.blocks {
            Some(BlocksRecord::Named { names }) => {
                names.get(block as usize).cloned().unwrap_or_else(|| format!("block {}", block + 1))
            }
            Some(BlocksRecord::Replicates) => format!("replicate {}", block + 1),
            Some(BlocksRecord::Confounded { .. }) | None => format!("block {}", block + 1),
        });
        let stage = (!self.stages.is_empty()).then(|| format!("stage {}", run.stage));
        match (stage, block) {
            (Some(stage), Some(block)) => Some(format!("{stage}, {block}")),
            (stage, block) => stage.or(block),
        }
    }

    /// Which whole plot a run belongs to, in words; `None` when no factor is hard to change.
    pub fn whole_plot_name(&self, run: &RunRecord) -> Option<String> {
        let plot = run.whole_plot?;
        Some(if self.stages.is_empty() {
            format!("plot {}", plot + 1)
        } else {
            format!("stage {}, plot {}", run.stage, plot + 1)
        })
    }
}

/// The values of a factor's levels as numbers in base units, from what each level sets: path → value as written in TOML.
/// `None` when a level sets several parameters, or the values are not numbers of one kind.
pub fn numeric_values(settings: &[BTreeMap<String, String>]) -> Option<Vec<f64>> {
    let texts: Vec<_> = settings
        .iter()
        .map(|level| match level.len() {
            1 => level.values().next().map(String::as_str),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let kinds: [fn(&str) -> Option<f64>; 5] = [
        number,
        |text| Some(quoted(text)?.parse::<ByteSize>().ok()?.0 as f64),
        |text| Some(quoted(text)?.parse::<TimeSpan>().ok()?.0.as_secs_f64()),
        |text| Some(quoted(text)?.parse::<Rate>().ok()?.0),
        |text| Some(quoted(text)?.parse::<Bandwidth>().ok()?.0),
    ];
    kinds.iter().find_map(|kind| texts.iter().map(|text| kind(text)).collect())
}

/// A number as TOML writes it.
fn number(text: &str) -> Option<f64> {
    let plain = text.replace('_', "");
    let radix = |prefix, radix| Some(i64::from_str_radix(plain.strip_prefix(prefix)?, radix).ok()? as f64);
    let value = plain.parse::<f64>().ok();
    value
        .or_else(|| radix("0x", 16))
        .or_else(|| radix("0o", 8))
        .or_else(|| radix("0b", 2))
        .filter(|v| v.is_finite())
}

/// A text with a unit as TOML writes it: in quotes of either kind. Those have no escapes. A number without a unit in
/// quotes is a name (`"4.1"`).
fn quoted(text: &str) -> Option<&str> {
    let quote = |quote| text.strip_prefix(quote)?.strip_suffix(quote);
    let inner = quote('"').or_else(|| quote('\''))?;
    inner.trim().parse::<f64>().is_err().then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(texts: &[&str]) -> Option<Vec<f64>> {
        let level = |text: &&str| BTreeMap::from([("workload.w.x".to_owned(), (*text).to_owned())]);
        numeric_values(&texts.iter().map(level).collect::<Vec<_>>())
    }

    #[test]
    fn values_with_units_are_numbers_in_base_units() {
        assert_eq!(values(&["\"64KiB\"", "'1MB'"]), Some(vec![65_536.0, 1e6]));
        assert_eq!(values(&["\"0ms\"", "\"6.87ms\"", "\"1s\""]), Some(vec![0.0, 0.006_87, 1.0]));
        assert_eq!(values(&["\"500/s\"", "\"2000/s\""]), Some(vec![500.0, 2000.0]));
        assert_eq!(values(&["\"1Gbit/s\"", "\"100Mbit/s\""]), Some(vec![1.25e8, 1.25e7]));
        assert_eq!(values(&["1", "16_000", "0x10", "0.5", "-3"]), Some(vec![1.0, 16_000.0, 16.0, 0.5, -3.0]));
    }

    #[test]
    fn names_are_no_numbers() {
        for texts in [&["\"3\"", "\"4.1\""][..], &["\"64KiB\"", "\"1s\""], &["true", "false"], &["nan", "1"]]
        {
            assert_eq!(values(texts), None, "{texts:?}");
        }
        let both = BTreeMap::from([("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())]);
        assert_eq!(numeric_values(&[both]), None);
    }
}
