//! The replay of a recorded trace.

use serde_json::json;

use super::Conditions;
use super::common::Expanded;
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::{ParameterError, Replay, ReplaySpeed};
use benchmaster_units::TimeSpan;
use benchmaster_workload::replay;

parameters! { pub struct ReplayParameters: "Parameters of `replay`.";
    /// The trace: `traces/*.parquet` of an earlier run, or the output of `strace -f -ttt -T`. Every host of the run reads
    /// it under this path. `example` is a small one that is always there.
    trace: String = replay::EXAMPLE.into(),
    /// How many times as fast as recorded, or `max`.
    speed: ReplaySpeed = ReplaySpeed::default(),
    /// Of a trace of system calls: the directory of the traced machine below which calls are replayed; everything but
    /// the system's own directories if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String> = None,
    /// Of a trace of system calls: the directory in which the traced command was started; `root` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String> = None,
    /// Stop after this time, even if the trace is longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<TimeSpan> = None,
    /// Record every call.
    record: bool = false,
}

impl Scaled for ReplayParameters {
    // A trace is what it is: a part of it would be another one.
    fn scale(&mut self, scale: Scale) {
        self.duration = self.duration.map(|duration| scale.duration(duration));
    }
}

static TEMPLATE: Template = Template::new(include_str!("replay.toml"));

pub(super) fn expand(p: &ReplayParameters, name: &str, _: Conditions) -> Expanded {
    if p.trace.is_empty() {
        let fix = "name the file, for example `trace = \"job.strace\"`";
        return Err(vec![ParameterError::new("trace", "the trace to replay is missing", fix)]);
    }
    let mut replay = Replay {
        trace: absolute(&p.trace),
        speed: p.speed,
        root: p.root.clone(),
        cwd: p.cwd.clone(),
        fingerprint: None,
    };
    let extent = replay::survey(&mut replay).map_err(|error| vec![error])?;
    let derived = json!({
        "replay": replay,
        "files": extent.files,
        "threads": extent.threads,
        "duration": p.duration,
    });
    TEMPLATE.fill(name, p, derived)
}

/// The path from the root on: processes that work elsewhere shall find the same file.
fn absolute(trace: &str) -> String {
    match std::path::absolute(trace) {
        Ok(path) if trace != replay::EXAMPLE => path.to_string_lossy().into_owned(),
        _ => trace.to_owned(),
    }
}
