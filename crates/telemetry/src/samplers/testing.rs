//! What the tests of samplers share.

use std::fs;
use std::path::Path;

use crate::sampling::{Kind, Metric, Recorder, Registered, Samples, SamplingConfig, Sink};

/// Everything that a parser gave.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Values(pub(super) Vec<(String, String, Kind, &'static str, f64)>);

impl Sink for Values {
    fn put(&mut self, metric: Metric<'_>, instance: &str, value: f64) {
        self.0.push((metric.name.to_owned(), instance.to_owned(), metric.kind, metric.unit, value));
    }
}

impl Values {
    /// What a parser makes of a text that it must understand.
    pub(super) fn of<E: std::fmt::Debug>(parse: impl FnOnce(&mut Self) -> Result<(), E>) -> Self {
        let mut values = Self::default();
        parse(&mut values).unwrap();
        values
    }

    pub(super) fn get(&self, metric: &str, instance: &str) -> Option<f64> {
        let mut found =
            self.0.iter().filter(|value| (value.0.as_str(), value.1.as_str()) == (metric, instance));
        let first = found.next()?.4;
        assert!(found.next().is_none(), "{metric} {instance} is there twice");
        Some(first)
    }

    /// Values of metrics of one instance.
    pub(super) fn row<const N: usize>(&self, instance: &str, metrics: [&str; N]) -> [f64; N] {
        metrics.map(|metric| {
            self.get(metric, instance).unwrap_or_else(|| panic!("no {metric} of `{instance}`: {self:?}"))
        })
    }

    /// Every metric of the list that is there has the unit and the kind of the list.
    pub(super) fn are_as_listed(&self, registered: &Registered) {
        for (name, _, kind, unit, _) in &self.0 {
            if let Some(listed) = registered.metrics.iter().find(|metric| metric.name == name) {
                assert_eq!((listed.kind, listed.unit), (*kind, *unit), "{name}");
            }
        }
    }
}

/// A directory with these files in it.
pub(super) fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in files {
        write(directory.path(), path, text);
    }
    directory
}

pub(super) fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A configuration that looks into a directory with `proc` and `sys` in it.
pub(super) fn config_in(root: &Path) -> SamplingConfig {
    let mut config = SamplingConfig::default();
    (config.places.proc, config.places.sys) = (root.join("proc"), root.join("sys"));
    config
}

/// One sampler reads as often as there are steps; before each a step is taken. Readings are a second apart.
pub(super) fn sampled(registered: &Registered, config: &SamplingConfig, steps: &[&dyn Fn()]) -> Samples {
    sampled_every(1_000_000_000, registered, config, steps)
}

/// The same with readings that far apart.
pub(super) fn sampled_every(
    interval_ns: i64,
    registered: &Registered,
    config: &SamplingConfig,
    steps: &[&dyn Fn()],
) -> Samples {
    let mut sampler = (registered.make)(config);
    assert_eq!(sampler.name(), registered.name);
    let mut recorder = Recorder::new(sampler.name());
    for (number, step) in steps.iter().enumerate() {
        step();
        let mut reading = recorder.reading(number as i64 * interval_ns);
        if let Err(error) = sampler.read(&mut reading) {
            reading.problem(&error);
        }
    }
    let (series, problems) = recorder.finish();
    Samples { series, problems, ticks: steps.len() as u32, ..Samples::default() }
}

/// The values of a series.
pub(super) fn values(samples: &Samples, metric: &str, instance: &str) -> Vec<f64> {
    let found = samples
        .series
        .iter()
        .find(|s| (s.key.metric.as_str(), s.key.instance.as_str()) == (metric, instance));
    found.map(|series| series.points.iter().map(|point| point.value).collect()).unwrap_or_default()
}
