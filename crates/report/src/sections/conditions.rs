//! The conditions of a measurement: environment, plan, preparation.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::{Block, Cell, Table, word};
use crate::format;
use benchmaster_record::environment::Environment;
use benchmaster_record::recording::Recording;
use benchmaster_record::results::{RunKey, RunRecord, SessionEnd, Severity, StudyResults};

/// Failed checks shown one by one.
const CHECKS: usize = 500;

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
    let unknown = || "unknown".to_owned();
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
        (
            "virtualization".into(),
            environment.virtualization.clone().unwrap_or_else(|| "none detected".into()),
        ),
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

pub(super) fn factors(results: &StudyResults) -> Block {
    let mut factors = Table::new("Factors", &["factor", "level", "sets"]);
    for factor in &results.study.factors {
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
    factors.filled().map_or_else(|| "The study has no factors: one treatment.".into(), Block::from)
}

pub(super) fn runs(results: &StudyResults) -> Table {
    let head = ["#order", "treatment", "#replicate", "#session", "started (UTC)", "#duration", "outcome"];
    let mut runs = Table::new("Runs in the order of execution", &head);
    for run in &results.runs {
        let (outcome, severity) = outcome(run);
        runs.row([
            Cell::count(run.position as usize + 1),
            Cell::text(label(results, run.key)),
            Cell::count(run.key.replicate as usize + 1),
            Cell::count(run.session as usize),
            Cell::text(time(&run.started)),
            Cell::number(format::duration(run.elapsed_ns as f64 / 1e9), run.elapsed_ns as f64),
            Cell::text(outcome).marked(severity),
        ]);
    }
    runs
}

fn label(results: &StudyResults, run: RunKey) -> &str {
    results.study.treatments.iter().find(|t| t.index == run.treatment).map_or("?", |t| &t.label)
}

fn time(time: &jiff::Timestamp) -> String {
    time.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

fn outcome(run: &RunRecord) -> (String, Option<Severity>) {
    if let Some(reason) = &run.failure {
        return (format!("failed: {reason}"), Some(Severity::Invalid));
    }
    match run.checks.iter().map(|c| c.severity).max() {
        Some(Severity::Invalid) => ("invalid, excluded".into(), Some(Severity::Invalid)),
        Some(Severity::Warning) => ("warning".into(), Some(Severity::Warning)),
        Some(Severity::Note) => ("ok, with a note".into(), None),
        None => ("ok".into(), None),
    }
}

pub(super) fn sessions(results: &StudyResults) -> Table {
    let mut table = Table::new("Sessions", &["#session", "started (UTC)", "ended (UTC)", "end", "lost run"]);
    for session in &results.sessions {
        let (ended, how) = match &session.ended {
            Some((end, SessionEnd::Complete)) => (time(end), "complete"),
            Some((end, SessionEnd::Stopped)) => (time(end), "stopped by the user"),
            Some((end, SessionEnd::Failed)) => (time(end), "ended by an error"),
            None => ("–".into(), "killed or still running"),
        };
        let lost = session.lost_run.map_or("–".into(), |key| {
            format!("{}, replicate {} (repeated)", label(results, key), key.replicate + 1)
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
pub(super) fn conditions(results: &StudyResults) -> Vec<Table> {
    let mut table = Table::new("Preparation and conditions", &["workload", "what", "end", "#runs"]);
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
    table.filled().into_iter().collect()
}

fn described(recording: &Recording) -> Vec<(&'static str, String)> {
    let mut all = vec![
        ("cache", format!("requested {}; done: {}", recording.cache.requested, recording.cache.done)),
        ("warm-up cut", recording.cut_reason.clone()),
        (
            "verification",
            match (&recording.corruption, recording.verified_bytes) {
                (Some(corruption), _) => format!("WRONG DATA: {corruption}"),
                (None, Some(bytes)) => format!("{} verified", format::bytes(bytes as f64)),
                (None, None) => "off".into(),
            },
        ),
    ];
    for fileset in &recording.filesets {
        let reused = if fileset.reused { "reused" } else { "created" };
        let cached = match fileset.cached_bytes {
            Some(cached) if fileset.bytes > 0 => {
                format!("{} in the page cache", format::percent(cached as f64 / fileset.bytes as f64))
            }
            _ => "share in the page cache unknown".into(),
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
    let mut table = Table::new("Failed checks, run by run", &head);
    let mut all: Vec<_> = results.runs.iter().flat_map(|r| r.checks.iter().map(move |c| (r, c))).collect();
    all.sort_by_key(|(_, c)| std::cmp::Reverse(c.severity));
    for (run, check) in all.iter().take(CHECKS) {
        let evidence = check.evidence.iter().map(|one| format!("{} = {}", one.name, one.value));
        table.row([
            Cell::text(word(check.severity)).marked(Some(check.severity)),
            Cell::text(check.kind.name()),
            Cell::text(label(results, run.key)),
            Cell::count(run.key.replicate as usize + 1),
            Cell::text(check.workload.as_deref().unwrap_or("whole run")),
            Cell::text(&check.message),
            Cell::text(evidence.collect::<Vec<_>>().join(", ")),
        ]);
    }
    if all.len() > CHECKS {
        table.note = format!("The worst {CHECKS} of {}; all are in results.db.", all.len());
    }
    table.filled()
}
