//! Traces of system calls as studies: the trace stays a file of its own, which the study replays.

use std::collections::BTreeMap;
use std::fmt::Write;

use benchmaster_workload::replay::{Plan, Why};
use serde::Serialize;

use crate::name_of;

/// How a trace is to be replayed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Wanted {
    /// The trace, as the study names it.
    pub trace: String,
    /// The directory of the traced machine below which calls are replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
    /// The directory that the traced command was started in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// What the study measures: a directory or an `nfs://` URL.
    pub target: String,
}

/// What is in a trace, and the study that replays it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Traced {
    /// How it is replayed.
    #[serde(flatten)]
    pub wanted: Wanted,
    /// Threads, each of which a worker replays.
    pub threads: usize,
    /// Calls that are replayed.
    pub calls: u64,
    /// Files that are made before, and their bytes.
    pub files: u64,
    pub bytes: u64,
    /// Seconds from the first to the last call.
    pub seconds: f64,
    /// Calls on files that are not replayed: how many, by what they are.
    pub left_out: BTreeMap<String, u64>,
    /// Calls on other files, or on none.
    pub passed_over: u64,
    pub study: String,
}

/// Describes a trace and writes its study.
pub fn import(plan: &Plan, wanted: Wanted) -> Traced {
    let left_out =
        |matters: bool| plan.left_out.iter().filter(move |(what, _)| what.why.matters() == matters);
    let named = |why: Why, call: &str| format!("{call} ({})", why.text());
    let (files, bytes) = plan.files();
    let mut traced = Traced {
        threads: plan.threads(),
        calls: plan.calls(),
        files,
        bytes,
        seconds: plan.span_ns as f64 / 1e9,
        left_out: left_out(true).map(|(what, count)| (named(what.why, &what.call), *count)).collect(),
        passed_over: left_out(false).map(|(_, count)| count).sum(),
        study: String::new(),
        wanted,
    };
    traced.study = study(&traced);
    traced
}

fn study(traced: &Traced) -> String {
    let Traced { wanted, threads, calls, files, bytes, seconds, left_out, passed_over, .. } = traced;
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let file = std::path::Path::new(&wanted.trace).file_name().unwrap_or_default().to_string_lossy();
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "[study]\nname = {}\n", quoted(&name_of(&format!("replay-{file}"), "replay")));
    let key = if wanted.target.starts_with("nfs://") { "url" } else { "path" };
    let _ = writeln!(text, "[target]\n{key} = {}\n", quoted(&wanted.target));
    let _ = writeln!(text, "[design]\nreplicates = 5\n\n[workload.replay]");
    let _ = writeln!(
        text,
        "# {calls} calls of {threads} threads over {seconds:.3} s; {files} files of {bytes} bytes in all are made before."
    );
    let _ = writeln!(text, "# {passed_over} calls were on other files or on none.");
    for (what, count) in left_out {
        let _ = writeln!(text, "# Not replayed: {count} × {what}.");
    }
    let _ = writeln!(text, "use = \"replay\"\ntrace = {}", quoted(&wanted.trace));
    for (key, value) in [("root", &wanted.root), ("cwd", &wanted.cwd)] {
        if let Some(value) = value {
            let _ = writeln!(text, "{key} = {}", quoted(value));
        }
    }
    let _ = writeln!(text, "speed = 1.0  # how many times as fast as recorded, or \"max\"");
    text
}

#[cfg(test)]
mod tests {
    use benchmaster_workload::replay::{Where, strace};

    use super::*;

    #[test]
    fn a_trace_becomes_a_study_that_names_what_is_left_out() {
        let trace = "7 1.0 openat(AT_FDCWD, \"a\", O_RDONLY) = 3 <0.1>\n\
                     7 1.1 read(3, \"x\"..., 4096) = 4096 <0.1>\n\
                     7 1.2 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3, 0) = 0x7f <0.1>\n\
                     7 1.5 close(3) = 0 <0.1>\n";
        let plan = strace::read(trace.as_bytes(), &Where::new(Some("/w"), None).unwrap()).unwrap();
        let wanted = Wanted {
            trace: "x/job.strace".into(),
            root: Some("/w".into()),
            cwd: None,
            target: "/mnt".into(),
        };
        let traced = import(&plan, wanted);
        assert_eq!((traced.threads, traced.calls, traced.files, traced.bytes), (1, 3, 1, 4096));
        let table: toml::Table = traced.study.parse().unwrap();
        let workload = table["workload"]["replay"].as_table().unwrap();
        assert_eq!(workload["trace"].as_str(), Some("x/job.strace"));
        assert_eq!(workload["root"].as_str(), Some("/w"));
        assert_eq!(table["study"]["name"].as_str(), Some("replay-job-strace"));
        assert!(traced.study.contains("# Not replayed: 1 × mmap (cannot be replayed)."), "{}", traced.study);
    }
}
