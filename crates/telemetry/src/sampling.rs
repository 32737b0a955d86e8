//! Readings of the system's counters in regular intervals, by a thread of its own.
//!
//! A [`Sampler`] reads one part of the system. [`Sampling`] reads all of them in every tick, keeps what changed, and gives
//! [`Samples`]. Nothing that a sampler meets stops the sampling: what could not be read stands in [`Samples::problems`].

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

mod budget;
mod engine;
pub(crate) mod folder;
mod registry;
mod series;
mod source;
pub(crate) mod table;
pub mod text;

pub use benchmaster_record::samples::{
    Cost, Kind, MetricKey, Point, SamplerCost, SamplerProblem, Samples, Series,
};
pub use engine::Sampling;
pub use registry::{all_metrics, documentation, sampler_names, samplers};
pub use series::{Reading, Recorder};
pub use source::Source;
pub(crate) use table::metrics;

/// What is sampled, and how often.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SamplingConfig {
    /// Time between two ticks; not less than [`SamplingConfig::SHORTEST`] is used.
    pub interval: Duration,
    /// Names of the samplers wanted; `None` for all.
    pub samplers: Option<Vec<String>>,
    /// What is looked at more closely.
    pub watch: Watched,
    /// Where the system's files are.
    pub places: Places,
}

impl SamplingConfig {
    /// The shortest time between two ticks.
    pub const SHORTEST: Duration = Duration::from_millis(10);
}

impl Default for SamplingConfig {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            samplers: None,
            watch: Watched::default(),
            places: Places::default(),
        }
    }
}

/// What samplers look at more closely, or at all.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Watched {
    /// A directory: the NFS mount that it lies on is read in full. Other mounts are skipped, as there may be hundreds.
    pub mount: Option<PathBuf>,
    /// TCP connections with one of these ports at either end are read.
    pub server_ports: Vec<u16>,
    /// Where addresses are given, only connections with one of them at either end.
    pub server_addresses: Vec<IpAddr>,
    /// Processes beside this one.
    pub pids: Vec<u32>,
}

/// Where the system's files are. Tests and measurements of the cost put recorded ones in their place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Places {
    /// Instead of `/proc`.
    pub proc: PathBuf,
    /// Instead of `/sys`.
    pub sys: PathBuf,
    /// A folder with `mountstats` and `mountinfo`, instead of those of `/proc/self`.
    pub mounts: Option<PathBuf>,
}

impl Default for Places {
    fn default() -> Self {
        Self { proc: "/proc".into(), sys: "/sys".into(), mounts: None }
    }
}

/// One part of the system that can be read.
pub trait Sampler: Send {
    /// Its name, in lower case.
    fn name(&self) -> &'static str;
    /// It is not read more often than this, whatever the interval of the ticks.
    fn least_interval(&self) -> Duration {
        Duration::ZERO
    }
    /// Reads now.
    ///
    /// # Errors
    /// See [`SampleError`]; what was recorded before stays, and the next tick tries again.
    fn read(&mut self, out: &mut Reading<'_>) -> Result<(), SampleError>;
}

/// A sampler that can be made.
pub(crate) struct Registered {
    pub(crate) name: &'static str,
    /// What it reads, in a sentence.
    pub(crate) about: &'static str,
    /// Where the kernel's file has names, those that are not listed are recorded too.
    pub(crate) metrics: &'static [MetricInfo],
    pub(crate) make: fn(&SamplingConfig) -> Box<dyn Sampler>,
}

/// What is known of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricInfo {
    /// Name, unique in the sampler.
    pub name: &'static str,
    /// `B`, `ns`, `1` for plain numbers, …
    pub unit: &'static str,
    pub kind: Kind,
    /// What it means.
    pub about: &'static str,
    /// What an instance is; empty if there is only one.
    pub instance: &'static str,
}

impl MetricInfo {
    pub const fn counter(
        name: &'static str,
        unit: &'static str,
        instance: &'static str,
        about: &'static str,
    ) -> Self {
        Self { name, unit, kind: Kind::Counter, about, instance }
    }

    pub const fn gauge(
        name: &'static str,
        unit: &'static str,
        instance: &'static str,
        about: &'static str,
    ) -> Self {
        Self { name, unit, kind: Kind::Gauge, about, instance }
    }

    /// What is recorded with each value.
    pub const fn metric(&self) -> Metric<'static> {
        Metric { name: self.name, unit: self.unit, kind: self.kind }
    }
}

/// The part of a [`MetricInfo`] that is recorded with each value. Its name may come from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric<'a> {
    /// Name, unique in the sampler.
    pub name: &'a str,
    /// `B`, `ns`, `1` for plain numbers, …
    pub unit: &'static str,
    pub kind: Kind,
}

impl<'a> Metric<'a> {
    pub const fn counter(name: &'a str, unit: &'static str) -> Self {
        Self { name, unit, kind: Kind::Counter }
    }

    pub const fn gauge(name: &'a str, unit: &'static str) -> Self {
        Self { name, unit, kind: Kind::Gauge }
    }
}

/// What parsers give their values to.
pub trait Sink {
    /// Takes the value of a metric of an instance.
    fn put(&mut self, metric: Metric<'_>, instance: &str, value: f64);
}

/// Why something could not be sampled.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The system does not have it.
    #[error("{path} is not there: {hint}")]
    Missing {
        path: PathBuf,
        /// What that means.
        hint: &'static str,
    },
    /// This user may not.
    #[error("{path} must not be read by this user: run as root to have it")]
    Forbidden { path: PathBuf },
    /// Reading failed.
    #[error("cannot read {path}: {source}")]
    Read {
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The text is not in the kernel's format. What was in it is recorded.
    #[error("{path}, {fault}")]
    Format {
        path: PathBuf,
        /// Where, and what.
        fault: text::Malformed,
    },
    #[error("{0}")]
    Other(String),
}
