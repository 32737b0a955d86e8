//! Under what conditions the numbers came about: environment, plan, what was done, how to repeat it.

use std::collections::{BTreeMap, BTreeSet};

use benchmaster_record::environment::Environment;
use benchmaster_record::recording::Recording;
use benchmaster_record::results::{RunRecord, SessionEnd, Severity, StudyResults};
use serde::Serialize;

use crate::document::{Cell, Table};
use crate::format;

/// Failed checks shown one by one.
const CHECKS: usize = 500;

#[derive(Debug, Serialize)]
pub(super) struct Plan {
    factors: Table,
    pub(super) runs: Table,
    sessions: Table,
}

#[derive(Debug, Serialize)]
pub(super) struct Reproduce {
    commands: Vec<String>,
    seed: u64,
    generator: String,
    id: String,
    text: String,
}

/// One table per host; where sessions differ, what differs is in columns of its own.
pub(super) fn environment(results: &StudyResults) -> Vec<Table> {
    let mut hosts: BTreeMap<&str, Vec<(u32, &Environment)>> = BTreeMap::new();
    for session in &results.sessions {
        for (host, environment) in &session.environment {
            hosts.entry(host).or_default().push((session.id, environment));
        }
    }
    hosts.into_iter().map(|(host, sessions)| host_table(host, &sessions)).collect()
}

fn host_table(host: &str, sessions: &[(u32, &Environment)]) -> Table {
    let mut table = Table::new(format!("Host {host}"), &["fact", "value"]);
    let mut values: Vec<(String, Vec<(u32, String)>)> = Vec::new();
    for (session, environment) in sessions {
        for (fact, value) in facts(environment) {
            match values.iter_mut().find(|(known, _)| *known == fact) {
                Some((_, of)) => of.push((*session, value)),
                None => values.push((fact, vec![(*session, value)])),
            }
        }
    }
    for (fact, of) in values {
        let distinct: BTreeSet<_> = of.iter().map(|(_, v)| v.as_str()).collect();
        let text = match (distinct.len(), of.as_slice()) {
            (1, [(_, value), ..]) => value.clone(),
            _ => of.iter().map(|(s, v)| format!("session {s}: {v}")).collect::<Vec<_>>().join("; "),
        };
        table.row([Cell::text(fact), Cell::text(text)]);
    }
    table
}

fn facts(environment: &Environment) -> Vec<(String, String)> {
    let unknown = || "not known".to_owned();
    let or_unknown = |value: &Option<String>| value.clone().unwrap_or_else(unknown);
    let mut facts = vec![
        ("benchmaster".into(), environment.benchmaster.clone()),
        ("kernel".into(), environment.kernel.clone()),
        ("distribution".into(), or_unknown(&environment.distribution)),
        ("CPU".into(), or_unknown(&environment.cpu_model)),
        (
            "processors".into(),
            format!("{} online, {} for this process", environment.processors, environment.processors_allowed),
        ),
        ("memory".into(), environment.memory_total.map_or_else(unknown, |n| format::bytes(n as f64))),
        (
            "memory available at the start".into(),
            environment.memory_available.map_or_else(unknown, |n| format::bytes(n as f64)),
        ),
        ("clock source".into(), or_unknown(&environment.clock_source)),
        ("virtualization".into(), environment.virtualization.clone().unwrap_or_else(|| "none found".into())),
        ("frequency governor".into(), or_unknown(&environment.governor)),
    ];
    if let Some(target) = &environment.target {
        let of = |key: &str, value: String| (format!("target: {key}"), value);
        if target.mount_point.is_empty() {
            // An export that no kernel has mounted.
            facts.extend([of("export", target.path.clone()), of("server", target.source.clone())]);
        } else {
            facts.extend([
                of("directory", target.path.clone()),
                of(
                    "file system",
                    format!(
                        "{} from {}, mounted on {}",
                        target.file_system, target.source, target.mount_point
                    ),
                ),
                of("mount options", target.options.clone()),
                of("mount line", target.mount_line.clone()),
                of(
                    "size",
                    format!(
                        "{}, {} free",
                        format::bytes(target.total_bytes as f64),
                        format::bytes(target.free_bytes as f64)
                    ),
                ),
                of("free inodes", target.free_files.map_or_else(|| "not counted".into(), format::count)),
                of("readahead", target.read_ahead_kib.map_or_else(unknown, |kib| format!("{kib} KiB"))),
            ]);
        }
    }
    facts.extend(environment.sysctls.iter().map(|(key, value)| (key.clone(), value.replace('\t', " "))));
    facts
}

pub(super) fn plan(results: &StudyResults) -> Plan {
    let study = &results.study;
    let mut factors = Table::new("Factors", &["factor", "level", "sets"]);
    for factor in &study.factors {
        for (i, level) in factor.levels.iter().enumerate() {
            let sets =
                factor.settings.get(i).into_iter().flatten().map(|(path, value)| format!("{path} = {value}"));
            let level = if i == 0 { format!("{level} (base)") } else { level.clone() };
            factors.row([
                Cell::text(&factor.name),
                Cell::text(level),
                Cell::text(sets.collect::<Vec<_>>().join(", ")),
            ]);
        }
    }
    let head = ["#order", "treatment", "#replicate", "#session", "started (UTC)", "#took", "outcome"];
    let mut runs = Table::new("Runs in the order of execution", &head);
    for run in &results.runs {
        let label = study.treatments.iter().find(|t| t.index == run.key.treatment).map_or("?", |t| &t.label);
        let (word, severity) = outcome(run);
        runs.row([
            Cell::count(run.position as usize + 1),
            Cell::text(label),
            Cell::count(run.key.replicate as usize + 1),
            Cell::count(run.session as usize),
            Cell::text(run.started.strftime("%Y-%m-%d %H:%M:%S").to_string()),
            Cell::number(format::duration(run.elapsed_ns as f64 / 1e9), run.elapsed_ns as f64),
            Cell::text(word).marked(severity),
        ]);
    }
    Plan { factors, runs, sessions: sessions(results) }
}

fn outcome(run: &RunRecord) -> (String, Option<Severity>) {
    if let Some(reason) = &run.failure {
        return (format!("failed: {reason}"), Some(Severity::Invalid));
    }
    match run.checks.iter().map(|c| c.severity).max() {
        Some(Severity::Invalid) => ("invalid, left out".into(), Some(Severity::Invalid)),
        Some(Severity::Warning) => ("warned".into(), Some(Severity::Warning)),
        Some(Severity::Note) => ("ok, with a note".into(), None),
        None => ("ok".into(), None),
    }
}

fn sessions(results: &StudyResults) -> Table {
    let mut table = Table::new("Sessions", &["#session", "started (UTC)", "ended (UTC)", "how", "run lost"]);
    let time = |t: &jiff::Timestamp| t.strftime("%Y-%m-%d %H:%M:%S").to_string();
    for session in &results.sessions {
        let (ended, how) = match &session.ended {
            Some((end, SessionEnd::Complete)) => (time(end), "all runs done"),
            Some((end, SessionEnd::Stopped)) => (time(end), "stopped by the user"),
            Some((end, SessionEnd::Failed)) => (time(end), "gave up on an error"),
            None => ("–".into(), "killed, or still on"),
        };
        let lost = session.lost_run.map_or("–".into(), |key| {
            let label =
                results.study.treatments.iter().find(|t| t.index == key.treatment).map_or("?", |t| &t.label);
            format!("{label}, replicate {} (repeated)", key.replicate + 1)
        });
        table.row([
            Cell::count(session.id as usize),
            Cell::text(time(&session.started)),
            Cell::text(ended),
            Cell::text(how),
            Cell::text(lost),
        ]);
    }
    table
}

/// What was done to caches, cut off, prepared and verified, by workload.
pub(super) fn conditions(results: &StudyResults) -> Table {
    let mut table = Table::new("What was done", &["workload", "what", "how", "#runs"]);
    for workload in &results.study.workloads {
        let mut counts: Vec<(&str, String, usize)> = Vec::new();
        let recordings =
            results.runs.iter().flat_map(|r| &r.recordings).filter(|r| r.workload == workload.name);
        for (what, how) in recordings.flat_map(described) {
            match counts.iter_mut().find(|(w, h, _)| *w == what && *h == how) {
                Some((.., n)) => *n += 1,
                None => counts.push((what, how, 1)),
            }
        }
        counts.sort_by_key(|(what, ..)| *what);
        for (what, how, n) in counts {
            table.row([Cell::text(&workload.name), Cell::text(what), Cell::text(how), Cell::count(n)]);
        }
    }
    table
}

fn described(recording: &Recording) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("cache", format!("asked for {}; done: {}", recording.cache.requested, recording.cache.done)),
        ("warm-up cut", recording.cut_reason.clone()),
        (
            "verification",
            match (&recording.corruption, recording.verified_bytes) {
                (Some(corruption), _) => format!("WRONG DATA: {corruption}"),
                (None, Some(bytes)) => format!("{} proved right", format::bytes(bytes as f64)),
                (None, None) => "off".into(),
            },
        ),
    ];
    for fileset in &recording.filesets {
        let reused = if fileset.reused { "used again" } else { "made" };
        let cached = match fileset.cached_bytes {
            Some(cached) if fileset.bytes > 0 => {
                format!("{} in the page cache", format::percent(cached as f64 / fileset.bytes as f64))
            }
            _ => "share in the page cache not known".into(),
        };
        let size = format::bytes(fileset.bytes as f64);
        all.push((
            "fileset",
            format!("{}: {} files, {size}, {reused}, {cached}", fileset.name, format::count(fileset.files)),
        ));
    }
    all
}

/// Every check that did not pass, run by run.
pub(super) fn checks(results: &StudyResults) -> Option<Table> {
    let head = ["severity", "check", "treatment", "#replicate", "workload", "what", "evidence"];
    let mut table = Table::new("Checks that did not pass, run by run", &head);
    let mut all: Vec<_> = results.runs.iter().flat_map(|r| r.checks.iter().map(move |c| (r, c))).collect();
    all.sort_by_key(|(_, c)| std::cmp::Reverse(c.severity));
    for (run, check) in all.iter().take(CHECKS) {
        let label =
            results.study.treatments.iter().find(|t| t.index == run.key.treatment).map_or("?", |t| &t.label);
        let evidence = check.evidence.iter().map(|one| format!("{} = {}", one.name, one.value));
        let word = match check.severity {
            Severity::Invalid => "invalid",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        table.row([
            Cell::text(word).marked(Some(check.severity)),
            Cell::text(check.kind.name()),
            Cell::text(label),
            Cell::count(run.key.replicate as usize + 1),
            Cell::text(check.workload.as_deref().unwrap_or("whole run")),
            Cell::text(&check.message),
            Cell::text(evidence.collect::<Vec<_>>().join(", ")),
        ]);
    }
    if all.len() > CHECKS {
        table.note = format!("The worst {CHECKS} of {}; all are in results.db.", all.len());
    }
    (!table.rows.is_empty()).then_some(table)
}

pub(super) fn reproduce(results: &StudyResults) -> Reproduce {
    let mut commands: Vec<String> = Vec::new();
    for session in &results.sessions {
        if !commands.contains(&session.command) {
            commands.push(session.command.clone());
        }
    }
    Reproduce {
        commands,
        seed: results.study.seed,
        generator: results.study.generator.clone(),
        id: results.study.id.clone(),
        text: results.study.text.clone(),
    }
}
