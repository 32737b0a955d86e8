//! The replay of a recorded trace.

use std::collections::BTreeMap;

use super::common::{Expanded, group};
use super::scale::{Scale, Scaled};
use benchmaster_record::model::{
    Claim, Fileset, Group, ParameterError, Replay, ReplaySpeed, Sharing, Size, Step, Until, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};
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

pub(super) fn expand(p: &ReplayParameters, name: &str) -> Expanded {
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
    let fileset = Fileset {
        // A record of the replay names a file by the number of its path.
        files: extent.files,
        size: Size::Fixed(ByteSize(0)),
        directory_width: 0,
        sharing: Sharing::Private,
        prefill: 0.0,
        tree: None,
    };
    let flow = vec![Step { replay: Some(replay), ..Step::default() }];
    Ok(Workload {
        filesets: BTreeMap::from([(name.to_owned(), fileset)]),
        groups: vec![Group { ..group("replay", extent.threads, flow) }],
        until: Until { duration: p.duration, ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: false,
        trace: p.record,
        claims: Claim::Cache,
    })
}

/// The path from the root on: processes that work elsewhere shall find the same file.
fn absolute(trace: &str) -> String {
    match std::path::absolute(trace) {
        Ok(path) if trace != replay::EXAMPLE => path.to_string_lossy().into_owned(),
        _ => trace.to_owned(),
    }
}
