//! Readings of the system's counters in regular intervals, by a thread of its own.
//!
//! A [`Sampler`] reads one part of the system. [`Sampling`] reads all of them in every tick, keeps what changed, and gives
//! [`Samples`]. Nothing that a sampler meets stops the sampling: what could not be read stands in [`Samples::problems`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

mod budget;
mod engine;
pub(crate) mod folder;
pub(crate) mod registry;
mod series;
mod source;
pub mod text;

pub use engine::{Latest, LatestValue, Sampling};
pub use registry::{all_metrics, documentation, sampler_names, samplers};
pub use series::{Reading, Recorder};
pub use source::Source;

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

/// Which number it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MetricKey {
    /// Name of the sampler.
    pub sampler: String,
    /// Name of the metric, unique in the sampler.
    pub metric: String,
    /// Of what: number of the processor, device, interface, mount and operation, connection, …; empty if there is only one.
    pub instance: String,
}

/// How a metric behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// It only grows, but for a restart of what counts: differences mean something.
    Counter,
    /// It goes up and down: the value itself means something.
    Gauge,
}

/// One metric of one instance over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Which one.
    pub key: MetricKey,
    /// How it behaves.
    pub kind: Kind,
    /// `B`, `ns`, `1` for plain numbers, …
    pub unit: Cow<'static, str>,
    /// In order of time. Of equal readings that follow each other only the first and the last are kept: straight lines
    /// between the points pass through every reading.
    pub points: Vec<Point>,
}

/// One reading.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// `CLOCK_MONOTONIC` of the host when it was read, in nanoseconds.
    pub time_ns: i64,
    /// Whole numbers beyond 2⁵³ are rounded.
    pub value: f64,
}

/// What was sampled.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Samples {
    /// In the order of samplers, and in them as first seen.
    pub series: Vec<Series>,
    /// Ticks in which was read, the first and the last included.
    pub ticks: u32,
    /// Ticks left out because an earlier one, or the system, took too long.
    pub late: u32,
    /// What could not be read, and why; each reason once.
    pub problems: Vec<SamplerProblem>,
    /// What it took.
    pub cost: Cost,
}

impl Samples {
    /// A series by its key.
    pub fn find(&self, sampler: &str, metric: &str, instance: &str) -> Option<&Series> {
        let is = |key: &MetricKey| {
            (key.sampler.as_str(), key.metric.as_str(), key.instance.as_str()) == (sampler, metric, instance)
        };
        self.series.iter().find(|series| is(&series.key))
    }

    /// A metric of all its instances.
    pub fn of<'a>(&'a self, sampler: &'a str, metric: &'a str) -> impl Iterator<Item = &'a Series> {
        self.series.iter().filter(move |series| series.key.sampler == sampler && series.key.metric == metric)
    }
}

/// Something that a sampler could not do.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SamplerProblem {
    /// Its name.
    pub sampler: String,
    /// What, and why.
    pub problem: String,
}

/// What sampling took of the processor.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Cost {
    /// CPU time of all readings, in user mode and in the kernel, in nanoseconds.
    pub cpu_ns: u64,
    /// Time from the first reading until the end of the last, in nanoseconds.
    pub elapsed_ns: u64,
    /// By sampler.
    pub samplers: BTreeMap<String, SamplerCost>,
}

impl Cost {
    /// Share of one processor, from 0; `None` when no time has passed.
    pub fn share(&self) -> Option<f64> {
        (self.elapsed_ns > 0).then(|| self.cpu_ns as f64 / self.elapsed_ns as f64)
    }
}

/// What one sampler took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SamplerCost {
    /// CPU time for reading, parsing and recording, in nanoseconds.
    pub cpu_ns: u64,
    /// Readings; fewer than ticks where the sampler is read more seldom, because it need not or because it costs too much.
    pub reads: u32,
}

/// One part of the system that can be read.
pub trait Sampler: Send {
    /// Its name, in lower case.
    fn name(&self) -> &'static str;
    /// What it reads. Where the kernel's file has names, those that are not listed are recorded too.
    fn metrics(&self) -> &'static [MetricInfo];
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

/// What is known of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MetricInfo {
    /// Name, unique in the sampler.
    pub name: &'static str,
    /// `B`, `ns`, `1` for plain numbers, …
    pub unit: &'static str,
    /// How it behaves.
    pub kind: Kind,
    /// What it means.
    pub about: &'static str,
    /// What an instance is; empty if there is only one.
    pub instance: &'static str,
}

impl MetricInfo {
    /// A counter.
    pub const fn counter(
        name: &'static str,
        unit: &'static str,
        instance: &'static str,
        about: &'static str,
    ) -> Self {
        Self { name, unit, kind: Kind::Counter, about, instance }
    }

    /// A gauge.
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
    /// How it behaves.
    pub kind: Kind,
}

impl<'a> Metric<'a> {
    /// A counter.
    pub const fn counter(name: &'a str, unit: &'static str) -> Self {
        Self { name, unit, kind: Kind::Counter }
    }

    /// A gauge.
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
        /// The file.
        path: PathBuf,
        /// What that means.
        hint: &'static str,
    },
    /// This user may not.
    #[error("{path} must not be read by this user: run as root to have it")]
    Forbidden {
        /// The file.
        path: PathBuf,
    },
    /// Reading failed.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The text is not in the kernel's format. What was in it is recorded.
    #[error("{path}, {fault}")]
    Format {
        /// The file.
        path: PathBuf,
        /// Where, and what.
        fault: text::Malformed,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}
