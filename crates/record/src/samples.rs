//! Counters of a host over time.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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
    pub key: MetricKey,
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
