//! What one treatment asks for: every parameter of a study except those of the experiment itself.
//!
//! Any parameter here can be a factor; its path is the one of the study file (`run.cache`, `workload.write.io_size`).

use std::path::PathBuf;

use benchmaster_units::TimeSpan;
use benchmaster_workload::builtin::WorkloadSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The target path that stands for a scratch directory.
pub const SCRATCH: &str = "{scratch}";

/// The parameters of one treatment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Settings {
    /// The file system under test.
    pub target: TargetSettings,
    /// Who generates load.
    pub clients: ClientSettings,
    /// How a run is done.
    pub run: RunSettings,
    /// The workloads of a run, in the order in which it does them, which is that of the file.
    pub workloads: Vec<(String, WorkloadSpec)>,
}

/// The file system under test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetSettings {
    /// A directory that exists, absolute or relative to the current directory, usually on a mounted network file
    /// system. `{scratch}` stands for a new directory below the system's directory for temporary files, which is
    /// removed after the study.
    #[schemars(extend("examples" = ["/mnt/nfs", "{scratch}"]))]
    pub path: String,
}

impl TargetSettings {
    /// The directory; `None` when the study asks for a scratch directory.
    pub fn directory(&self) -> Option<PathBuf> {
        (self.path != SCRATCH).then(|| PathBuf::from(&self.path))
    }
}

/// Who generates load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientSettings {
    /// Clients on this host. Each does the whole workload with workers of its own, and with files of its own where
    /// filesets are private.
    #[schemars(range(min = 1, max = 10_000))]
    pub count: u32,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self { count: 1 }
    }
}

/// How a run is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSettings {
    /// Length of an interval of the time series. Automatic if absent: 1 s, or a sixtieth of a workload's duration
    /// when it is shorter than a minute (at least 10 ms), or 100 ms for workloads that end when their work is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<TimeSpan>,
    /// What is done to the page cache of this host before each workload's measured phase.
    pub cache: CacheControl,
    /// Shell command run before each workload's measured phase, to remount the target for example. The target
    /// directory is in the environment variable `BENCHMASTER_TARGET`; a command that fails stops the study, which can be
    /// resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_hook: Option<String>,
    /// Time after which `cache_hook` is stopped, and the study with it.
    pub hook_timeout: TimeSpan,
    /// Rule that cuts the warm-up off the measured phase of workloads that run for a time.
    pub cut: Cut,
    /// Whether files prepared by an earlier run of the study are used again.
    pub filesets: FilesetReuse,
    /// Record every call of every workload, as `trace = true` does for one.
    pub trace: bool,
    /// A worker gives up after so many errors in a row.
    #[schemars(range(min = 1))]
    pub max_errors: u64,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            interval: None,
            cache: CacheControl::default(),
            cache_hook: None,
            hook_timeout: TimeSpan::seconds(60),
            cut: Cut::default(),
            filesets: FilesetReuse::default(),
            trace: false,
            max_errors: 100,
        }
    }
}

impl RunSettings {
    /// The length of an interval for a workload whose measured phase is limited to `duration`, if it is limited by time.
    pub fn interval_for(&self, duration: Option<TimeSpan>) -> TimeSpan {
        let automatic = || match duration {
            Some(limit) => (limit.0 / 60).clamp(TimeSpan::millis(10).0, TimeSpan::seconds(1).0),
            None => TimeSpan::millis(100).0,
        };
        self.interval.unwrap_or_else(|| TimeSpan(automatic()))
    }
}

/// What is done to the page cache before the measured phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CacheControl {
    /// Nothing.
    #[default]
    Keep,
    /// Write everything back and drop all clean pages of the host through `/proc/sys/vm/drop_caches`; needs root.
    Drop,
    /// Flush the workload's files and ask the kernel to forget their pages with `posix_fadvise`; needs no privilege.
    Fadvise,
}

impl CacheControl {
    /// The name used in study files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Drop => "drop",
            Self::Fadvise => "fadvise",
        }
    }
}

/// The rule that cuts the warm-up off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum Cut {
    /// MSER-5 on the interval series: the cut that minimises the standard error of what remains.
    #[default]
    #[serde(rename = "mser-5")]
    Mser5,
    /// Nothing is cut.
    #[serde(rename = "none")]
    None,
}

/// Whether prepared files are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FilesetReuse {
    /// Files that an earlier run of this study prepared with the same description are used as they are.
    #[default]
    Reuse,
    /// Every run removes the files and makes them anew.
    Fresh,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_follow_the_length_of_the_workload() {
        let run = RunSettings::default();
        assert_eq!(run.interval_for(Some(TimeSpan::seconds(3600))), TimeSpan::seconds(1));
        assert_eq!(run.interval_for(Some(TimeSpan::seconds(60))), TimeSpan::seconds(1));
        assert_eq!(run.interval_for(Some(TimeSpan::seconds(30))), TimeSpan::millis(500));
        assert_eq!(run.interval_for(Some(TimeSpan::millis(100))), TimeSpan::millis(10));
        assert_eq!(run.interval_for(None), TimeSpan::millis(100));
        let fixed = RunSettings { interval: Some(TimeSpan::seconds(5)), ..run };
        assert_eq!(fixed.interval_for(Some(TimeSpan::millis(100))), TimeSpan::seconds(5));
    }
}
