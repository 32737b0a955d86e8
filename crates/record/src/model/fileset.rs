//! Filesets: how many files, of which sizes, in which directories.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use benchmaster_units::ByteSize;

/// A set of files.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fileset {
    /// Number of files (per client when private).
    pub files: u64,
    /// Size of each file.
    pub size: Size,
    /// Files per directory; 0 puts all files into one directory.
    #[serde(default)]
    pub directory_width: u64,
    /// Nested directories over which the files are dealt, instead of `directory_width`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<Tree>,
    /// Whether each client has its own files or all clients share one set.
    #[serde(default)]
    pub sharing: Sharing,
    /// Share of the files (0 to 1) that exist, filled with incompressible data, before the workload starts.
    #[serde(default = "one")]
    pub prefill: f64,
}

impl Default for Fileset {
    /// One file without content, of every client's own.
    fn default() -> Self {
        Self {
            files: 1,
            size: Size::Fixed(ByteSize(0)),
            directory_width: 0,
            tree: None,
            sharing: Sharing::Private,
            prefill: 1.0,
        }
    }
}

fn one() -> f64 {
    1.0
}

/// Who uses a fileset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// Each client has its own.
    #[default]
    Private,
    /// All clients use the same files.
    Shared,
}

/// A tree of directories. The files of the set are dealt over them evenly, in order: each directory has consecutive ones,
/// unless they are dealt `in_turn`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// Levels of directories below the fileset's own (mdtest's `-z`).
    pub depth: u32,
    /// Directories in each directory that is not of the last level (mdtest's `-b`).
    #[serde(default = "super::one_worker")]
    pub branch: u32,
    /// Whether only directories of the last level hold files (mdtest's `-L`).
    #[serde(default)]
    pub leaves_only: bool,
    /// Whether each file goes to the next directory: with as many directories as workers, each worker's share of the files
    /// is in a directory of its own (mdtest's `-u`).
    #[serde(default)]
    pub in_turn: bool,
}

impl Tree {
    /// Number of directories, with the fileset's own; `None` when there are too many to count.
    pub fn directories(&self) -> Option<u64> {
        (0..self.depth).try_fold(1u64, |below, _| below.checked_mul(self.branch.into())?.checked_add(1))
    }

    /// Number of directories of the last level.
    pub fn leaves(&self) -> u64 {
        u64::from(self.branch).saturating_pow(self.depth)
    }
}

/// Sizes of files, or of reads and writes: always the same one, or drawn from a distribution by the study's seed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Size {
    /// All have this size.
    Fixed(ByteSize),
    /// Sizes differ.
    Distributed(SizeDistribution),
}

impl Size {
    /// The size, if there is only one.
    pub fn fixed(&self) -> Option<ByteSize> {
        match self {
            Self::Fixed(size) => Some(*size),
            Self::Distributed(_) => None,
        }
    }

    /// The mean in bytes.
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(size) => size.0 as f64,
            Self::Distributed(SizeDistribution::Uniform { min, max }) => {
                f64::midpoint(min.0 as f64, max.0 as f64)
            }
            Self::Distributed(SizeDistribution::Gamma { mean, .. }) => mean.0 as f64,
            Self::Distributed(SizeDistribution::LogNormal { median, sigma }) => {
                median.0 as f64 * (sigma * sigma / 2.0).exp()
            }
            Self::Distributed(SizeDistribution::Weighted { sizes }) => {
                let weights: f64 = sizes.iter().map(|each| each.weight).sum();
                sizes.iter().map(|each| each.size.0 as f64 * each.weight).sum::<f64>() / weights
            }
        }
    }
}

impl From<ByteSize> for Size {
    fn from(size: ByteSize) -> Self {
        Self::Fixed(size)
    }
}

/// A distribution of sizes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "distribution", rename_all = "kebab-case", deny_unknown_fields)]
pub enum SizeDistribution {
    /// Every size from `min` to `max` is equally likely.
    Uniform {
        /// Smallest size.
        min: ByteSize,
        /// Largest size.
        max: ByteSize,
    },
    /// Gamma distribution, as Filebench uses (its default shape is 1.5).
    Gamma {
        /// Mean size.
        mean: ByteSize,
        /// Shape parameter, more than 0.
        #[serde(default = "gamma_shape")]
        shape: f64,
    },
    /// The logarithm of the size is normally distributed.
    LogNormal {
        /// Median size.
        median: ByteSize,
        /// Standard deviation of the natural logarithm, more than 0.
        sigma: f64,
    },
    /// Some sizes, each with its weight.
    Weighted {
        /// The sizes.
        sizes: Vec<WeightedSize>,
    },
}

/// One size of a [`SizeDistribution::Weighted`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WeightedSize {
    /// The size.
    pub size: ByteSize,
    /// Relative weight, more than 0.
    pub weight: f64,
}

pub(super) fn gamma_shape() -> f64 {
    1.5
}
